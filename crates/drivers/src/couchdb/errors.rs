//! Errors of the connection, and of the server (`{"error":…,"reason":…}`, see "HTTP Status Codes" of CouchDB's manual).

use super::config::Config;
use super::document::{Object, parse};
use crate::cancel;
use crate::wire::tls;
use kurabe_core::{Error, ErrorKind};
use std::io;

/// The error of a request without an answer.
pub(super) fn of_ureq(error: ureq::Error, config: &Config) -> Error {
    let place = &config.place;
    let at = |error: Error| error.context(format!("CouchDB at {place}"));
    match error {
        ureq::Error::Io(error) => match of_io(&error, config) {
            // Its message has the address already.
            error if error.kind() == ErrorKind::Unreachable => error,
            error => at(error),
        },
        ureq::Error::Rustls(error) => at(of_tls(&error)),
        ureq::Error::Timeout(_) => {
            Error::new(ErrorKind::Timeout, format!("{place} does not answer within the time allowed"))
        }
        ureq::Error::HostNotFound => {
            Error::new(ErrorKind::Unreachable, format!("the host of '{place}' is unknown"))
                .hint("is the host right?")
        }
        ureq::Error::Protocol(error) => at(not_couchdb(&format!("invalid HTTP ({error})"), config)),
        ureq::Error::LargeResponseHeader(..) => at(not_couchdb("a response header that is too long", config)),
        // The remaining errors do not concern the target, and contain no password.
        error => at(Error::new(ErrorKind::Environment, format!("the request could not be made: {error}"))),
    }
}

fn of_io(error: &io::Error, config: &Config) -> Error {
    use io::ErrorKind as Io;
    if cancel::is_cut() {
        return cancel::error();
    }
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return error.clone();
    }
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return of_tls(error);
    }
    match error.kind() {
        Io::UnexpectedEof
        | Io::ConnectionReset
        | Io::ConnectionAborted
        | Io::BrokenPipe
        | Io::NotConnected => {
            let lost = Error::new(ErrorKind::ConnectionLost, format!("the connection was lost: {error}"));
            let (speaks, other) =
                if config.tls.is_some() { ("TLS", "couchdb:") } else { ("plain HTTP", "couchdbs:") };
            lost.hint(format!("has the server ended, or does it not speak {speaks} there ({other})?"))
        }
        _ => config.place.unreachable(error),
    }
}

fn of_tls(error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidMessage(_) => {
            Error::new(ErrorKind::Protocol, format!("the server does not speak TLS ({error})"))
                .hint("for plain HTTP write couchdb: without tls=")
        }
        _ => tls::failed(error),
    }
}

fn not_couchdb(what: &str, config: &Config) -> Error {
    let hint = if config.tls.is_some() { "" } else { "; for HTTPS write couchdbs:" };
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
    let context = format!("CouchDB at {}", config.place);
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
    let error = Error::new(ErrorKind::NotPermitted, who).context(format!("CouchDB at {}", config.place));
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
    fn lost_and_refused_connections_have_different_kinds() {
        let lost = of_ureq(ureq::Error::Io(io::ErrorKind::ConnectionReset.into()), &config());
        assert_eq!(lost.kind(), ErrorKind::ConnectionLost, "{lost}");
        let closed = of_ureq(ureq::Error::Io(io::ErrorKind::ConnectionRefused.into()), &config());
        assert_eq!(closed.kind(), ErrorKind::Unreachable, "{closed}");
        let plain = of_io(
            &io::Error::other(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)),
            &config(),
        );
        assert_eq!(plain.kind(), ErrorKind::Protocol, "{plain}");
        assert!(plain.to_string().contains("does not speak TLS"), "{plain}");
    }
}
