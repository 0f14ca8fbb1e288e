//! Conversion of the crate's errors. Codes are the server's
//! (<https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>).

use super::config::Config;
use crate::wire;
use kurabe_core::{Error, ErrorKind};
use mongodb::error::ErrorKind as Kind;
use std::io;

/// Length limit of the crate's messages, in characters: some of them contain the whole topology.
const LONGEST: usize = 300;

/// Converts an error of a client or a request. `failure` is why the server does not answer, if the monitor knows.
pub(super) fn failed(
    error: &mongodb::error::Error,
    config: &Config,
    failure: Option<&mongodb::error::Error>,
) -> Error {
    let place = &config.place;
    let said = |text: &str| {
        let text = config.without_password(text);
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(at, _)| at);
        text[..end].trim_end_matches('.').to_owned()
    };
    match &*error.kind {
        Kind::Command(command) => server(command.code, &command.code_name, &said(&command.message)),
        Kind::Authentication { message, .. } => {
            Error::new(ErrorKind::Denied, format!("the server refused the user: {}", said(message)))
                .hint("check user, password and authSource (the database that defines the user)")
        }
        Kind::Io(error) => io_failed(error, config),
        Kind::ServerSelection { .. } => match failure {
            Some(failure) if !matches!(&*failure.kind, Kind::ServerSelection { .. }) => {
                request_failed(failure, config, None)
            }
            _ if !config.names_one_server() => {
                Error::new(ErrorKind::Unreachable, format!("no primary was found at {place}"))
                    .hint("is the replica set's name right, and has it elected a primary?")
            }
            // The port is open, or a firewall drops the packets.
            _ => Error::new(ErrorKind::Timeout, format!("the server at {place} does not answer as MongoDB"))
                .hint(if config.transport == "TCP" {
                    "is it MongoDB? A server that requires TLS does not answer either: tls=true"
                } else {
                    "is it MongoDB, and does it offer TLS?"
                }),
        },
        Kind::ConnectionPoolCleared { .. } => match failure {
            Some(failure) => request_failed(failure, config, None),
            None => Error::new(ErrorKind::ConnectionLost, "the server closed the connection"),
        },
        Kind::InvalidResponse { message, .. } => Error::new(
            ErrorKind::Protocol,
            format!("the server at {place} does not use MongoDB's protocol: {}", said(message)),
        )
        .hint("are host and port right?"),
        Kind::DnsResolve { message, .. } => {
            Error::new(ErrorKind::Unreachable, format!("no DNS answer for {place}: {}", said(message)))
                .hint("is the name right, and can this machine resolve it?")
        }
        Kind::InvalidTlsConfig { message, .. } => {
            Error::usage(format!("mongodb: TLS cannot be set up: {}", said(message)))
        }
        Kind::IncompatibleServer { message, .. } => Error::unsupported(said(message)),
        Kind::InvalidArgument { message, .. } => Error::usage(format!("mongodb: {}", said(message))),
        Kind::Transaction { message, .. } => server(0, "Transaction", &said(message)),
        other => Error::new(ErrorKind::Protocol, said(&other.to_string())),
    }
}

/// Converts an error of a request. Kurabe's arguments are valid, so `InvalidArgument` means a wrong length in an
/// answer.
pub(super) fn request_failed(
    error: &mongodb::error::Error,
    config: &Config,
    failure: Option<&mongodb::error::Error>,
) -> Error {
    if matches!(&*error.kind, Kind::InvalidArgument { .. }) {
        let place = &config.place;
        return Error::new(ErrorKind::Protocol, format!("{place} sent a message that is not MongoDB's"))
            .hint("are host and port right?");
    }
    failed(error, config, failure)
}

fn io_failed(error: &io::Error, config: &Config) -> Error {
    let place = &config.place;
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            Error::new(ErrorKind::Unreachable, format!("nothing listens at {place}"))
                .hint("is the server running, and are host and port right?")
        }
        io::ErrorKind::PermissionDenied => {
            Error::new(ErrorKind::Denied, format!("this user may not connect to {place}"))
        }
        io::ErrorKind::TimedOut => silent(config),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            Error::new(ErrorKind::ConnectionLost, format!("the server at {place} closed the connection"))
                .hint(if config.transport == "TCP" {
                    "is it still running? A server that requires TLS closes the connection too: tls=true"
                } else {
                    "is it still running, is it MongoDB, and does it offer TLS?"
                })
        }
        // EMFILE and ENFILE have no stable kind.
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => {
            Error::new(ErrorKind::Limit, format!("no more connections from this machine: {error}"))
                .hint("raise the limit of open files (ulimit -n)")
        }
        _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(_)) => {
                Error::new(ErrorKind::Denied, format!("the certificate of {place} is not trusted: {error}"))
                    .hint("name the authority that signed it with tlsCAFile=FILE")
            }
            Some(_) => Error::new(ErrorKind::Protocol, format!("no TLS connection with {place}: {error}"))
                .hint("does the server offer TLS? If not, leave tls=true out"),
            None => wire::lost(error).context(place),
        },
    }
}

/// The error of a request that timed out.
pub(super) fn silent(config: &Config) -> Error {
    Error::new(ErrorKind::Timeout, format!("{} does not answer within the time allowed", config.place))
}

/// The error of a panic in the crate, whose message would not help a user.
pub(super) fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "the mongodb crate panicked")
}

/// The error of an error response.
pub(super) fn server(code: i32, name: &str, message: &str) -> Error {
    let (kind, hint) = kind(code);
    let message = if message.is_empty() { name } else { message };
    let error = Error::new(kind, format!("the server answered: {message}"));
    if code == 0 { error.code(name) } else { error.code(code) }.hint(hint)
}

fn kind(code: i32) -> (ErrorKind, &'static str) {
    match code {
        18 | 11 => (ErrorKind::Denied, "check user, password and authSource"),
        13 | 8000 => (ErrorKind::NotPermitted, "the user needs the role readWrite on this database"),
        26 => (ErrorKind::NotFound, ""),
        50 | 202 | 262 => (ErrorKind::Timeout, ""),
        10_334 | 17_419 | 17_420 | 10_003 => {
            (ErrorKind::Limit, "a document holds at most 16 MB: use a smaller payload")
        }
        14_031 => (ErrorKind::Limit, "the server's disk is full"),
        10_107 | 13_435 | 11_602 => (ErrorKind::ConnectionLost, "the primary has changed"),
        91 | 11_600 | 6 | 7 | 89 | 9_001 => (ErrorKind::ConnectionLost, ""),
        79 | 100 => (ErrorKind::Limit, "the replica set does not have the members that w= requires"),
        20 => (ErrorKind::Unsupported, ""),
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::target::TargetUrl;

    fn config() -> Config {
        Config::from_url(&TargetUrl::parse("mongodb://bob:hunter2@127.0.0.1:1/db").unwrap()).unwrap()
    }

    #[test]
    fn server_error_has_its_code_and_a_hint() {
        let error =
            server(17_419, "BSONObjectTooLarge", "Resulting document after update is larger than 16777216");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("17419")));
        assert!(error.to_string().contains("smaller payload"), "{error}");
        assert_eq!(server(11_000, "DuplicateKey", "E11000").kind(), ErrorKind::Server);
        assert_eq!(server(13, "Unauthorized", "not authorized").kind(), ErrorKind::NotPermitted);
    }

    #[test]
    fn connection_errors_contain_neither_topology_nor_password() {
        let refused: mongodb::error::Error = io::Error::from(io::ErrorKind::ConnectionRefused).into();
        let error = failed(&refused, &config(), None).to_string();
        assert!(error.contains("nothing listens at 127.0.0.1:1"), "{error}");
        let eof: mongodb::error::Error = io::Error::from(io::ErrorKind::UnexpectedEof).into();
        assert!(failed(&eof, &config(), None).to_string().contains("tls=true"));
        let custom = mongodb::error::Error::custom("about hunter2 and much more ".repeat(100));
        let error = failed(&custom, &config(), None).to_string();
        assert!(error.len() < 500 && !error.contains("hunter2"), "{error}");
    }
}
