//! Errors of the connection, and of the server (`{"error":…,"reason":…}`, see "HTTP Status Codes" of CouchDB's manual).

use super::config::Config;
use super::document::{Object, parse};
use kurabe_core::{Error, ErrorKind};

/// The error of a request without an answer.
pub(super) fn of_exchange(error: Error, config: &Config) -> Error {
    let plain = config.server.tls.is_off();
    let (speaks, other) = if plain { ("plain HTTP", "couchdbs:") } else { ("TLS", "couchdb:") };
    let error = match error.kind() {
        ErrorKind::ConnectionLost => {
            let hint = format!("has the server ended, or does it not speak {speaks} there ({other})?");
            error.hint(hint)
        }
        ErrorKind::Protocol if plain => {
            error.context("not CouchDB").hint("are host and port right?; for HTTPS write couchdbs:")
        }
        ErrorKind::Protocol => error
            .context("not CouchDB")
            .hint("are host and port right, and is it the port of HTTPS? Its administrator turns it on ([ssl] enable)"),
        // Its message has the address already.
        ErrorKind::Unreachable | ErrorKind::Interrupted => return error,
        _ => error,
    };
    error.context(format!("CouchDB at {}", config.server.place))
}

fn not_couchdb(what: &str, config: &Config) -> Error {
    let hint = if config.server.tls.is_off() { "; for HTTPS write couchdbs:" } else { "" };
    Error::new(ErrorKind::Protocol, format!("not CouchDB: the server sent {what}"))
        .hint(format!("are host and port right?{hint}"))
}

/// The member `reason` of an answer, if it is one of CouchDB's errors.
pub(super) fn reason(answer: &[u8]) -> Option<String> {
    let object = parse::<Object<'_>>(answer).ok()?;
    object.text("error")?;
    Some(object.text("reason").unwrap_or_default().to_owned())
}

/// The error of an unsuccessful answer.
pub(super) fn of_answer(status: u16, answer: &[u8], config: &Config) -> Error {
    let context = format!("CouchDB at {}", config.server.place);
    let said = parse::<Object<'_>>(answer).ok();
    let code = said.as_ref().and_then(|said| said.text("error"));
    let Some(code) = code else {
        return match status {
            413 => Error::new(ErrorKind::Limit, "the request is too long for the server").code(status),
            _ => not_couchdb(&format!("status {status} without CouchDB's JSON"), config),
        }
        .context(context);
    };
    let reason = said.as_ref().and_then(|said| said.text("reason")).unwrap_or_default();
    let (kind, hint) = kind(status, code);
    let message = match (kind, &config.user) {
        (ErrorKind::Denied, Some(user)) => format!("the server refused user {user}: {reason}"),
        (ErrorKind::Denied, None) => format!("the server requires a user: {reason}"),
        _ => format!("the server answered {status}: {reason}"),
    };
    Error::new(kind, message).code(code).context(context).hint(hint)
}

/// The error of a user who may not create databases.
pub(super) fn no_administrator(config: &Config) -> Error {
    let who = match &config.user {
        Some(user) => format!("user {user} may not create databases"),
        None => "without a user, databases cannot be created".to_owned(),
    };
    let error =
        Error::new(ErrorKind::NotPermitted, who).context(format!("CouchDB at {}", config.server.place));
    error.hint("name a server administrator: couchdb://user:password@host")
}

fn kind(status: u16, code: &str) -> (ErrorKind, &'static str) {
    match (status, code) {
        (401, _) => (ErrorKind::Denied, "check the user and the password: couchdb://user:password@host"),
        (403, _) => (ErrorKind::NotPermitted, "only a server administrator may create and remove databases"),
        (404, _) => (ErrorKind::NotFound, ""),
        (413, _) | (_, "too_large" | "document_too_large") => {
            (ErrorKind::Limit, "raise [couchdb] max_document_size, or use a smaller payload")
        }
        (503, _) => (ErrorKind::Limit, "the server is too busy"),
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::target::TargetUrl;

    fn config() -> Config {
        Config::from_url(&TargetUrl::parse("couchdb://bob:hunter2@h").unwrap()).unwrap()
    }

    #[test]
    fn error_answer_has_kind_and_hint() {
        for (status, answer, kind, part) in [
            (
                401,
                r#"{"error":"unauthorized","reason":"Name or password is incorrect."}"#,
                ErrorKind::Denied,
                "bob",
            ),
            (403, r#"{"error":"forbidden","reason":"no"}"#, ErrorKind::NotPermitted, "administrator"),
            (404, r#"{"error":"not_found","reason":"no_db_file"}"#, ErrorKind::NotFound, "no_db_file"),
            (
                409,
                r#"{"error":"conflict","reason":"Document update conflict."}"#,
                ErrorKind::Server,
                "[conflict]",
            ),
            (413, r#"{"error":"document_too_large","reason":"!k"}"#, ErrorKind::Limit, "max_document_size"),
            (502, "<html>Bad Gateway</html>", ErrorKind::Protocol, "not CouchDB"),
            (413, "<html>Too large</html>", ErrorKind::Limit, "too long"),
            (200, "[1]", ErrorKind::Protocol, "are host and port right"),
        ] {
            let error = of_answer(status, answer.as_bytes(), &config());
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(part) && !error.to_string().contains("hunter2"), "{error}");
        }
        assert_eq!(reason(br#"{"error":"not_found","reason":"missing"}"#).as_deref(), Some("missing"));
        assert_eq!(reason(b"<html>"), None);
    }

    #[test]
    fn failed_exchange_says_which_protocol_was_expected() {
        let of = |kind, config: &Config| of_exchange(Error::new(kind, "x"), config);
        let tls = Config::from_url(&TargetUrl::parse("couchdbs://:@h").unwrap()).unwrap();
        for (kind, config, part) in [
            (
                ErrorKind::ConnectionLost,
                &config(),
                "CouchDB at h:5984: x; has the server ended, or does it not speak plain HTTP",
            ),
            (ErrorKind::ConnectionLost, &tls, "does it not speak TLS there (couchdb:)"),
            (
                ErrorKind::Protocol,
                &config(),
                "CouchDB at h:5984: not CouchDB: x; are host and port right?; for HTTPS",
            ),
            (ErrorKind::Protocol, &tls, "is it the port of HTTPS?"),
            (ErrorKind::Timeout, &tls, "CouchDB at h:6984: x"),
        ] {
            let error = of(kind, config);
            assert!(error.kind() == kind && error.to_string().contains(part), "{error}");
        }
        assert_eq!(of(ErrorKind::Unreachable, &tls).to_string(), "x");
    }
}
