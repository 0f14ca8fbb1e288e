//! Error kinds of SQLSTATEs (PostgreSQL manual, "PostgreSQL Error Codes").

use crate::sql::sqlstate;
use kurabe_core::{Error, ErrorKind};

/// Converts an `ErrorResponse` to an error with a hint.
pub(crate) fn server(state: &str, message: &str) -> Error {
    let (kind, hint) = kind(state, message);
    let error = Error::new(kind, format!("the server answered: {message}"));
    error.code(state).code_name(sqlstate::name(state)).hint(hint)
}

fn kind(state: &str, message: &str) -> (ErrorKind, &'static str) {
    match state {
        "28000" if message.contains("no encryption") => (
            ErrorKind::Denied,
            "the server may require TLS: add tls=verify, or tls=require, which checks no certificate",
        ),
        "28P01" | "28000" => (ErrorKind::Denied, "check the user and the password"),
        "3D000" => (ErrorKind::NotFound, "create the database first, or name another"),
        "42P01" | "3F000" => (ErrorKind::NotFound, ""),
        "42501" => (ErrorKind::NotPermitted, "the user needs CREATE on the schema, or must own the tables"),
        "25006" => (ErrorKind::ReadOnly, "the server or the transaction is read-only"),
        "53300" => (ErrorKind::Limit, "raise max_connections, or use fewer clients"),
        "53100" => (ErrorKind::Limit, "the server's disk is full"),
        "53200" => (ErrorKind::Limit, "the server is out of memory"),
        "53400" => (ErrorKind::Limit, ""),
        "57014" => (ErrorKind::Timeout, "the server cancelled the statement (statement_timeout)"),
        "57P03" => (ErrorKind::Unreachable, "the server is starting or stopping; try again in a moment"),
        "57P01" | "57P02" | "57P04" | "57P05" => (ErrorKind::ConnectionLost, ""),
        _ if state.starts_with("54") => (ErrorKind::Limit, ""),
        _ if state.starts_with("08") => (ErrorKind::ConnectionLost, ""),
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_sqlstate_and_hint() {
        let error = server("53300", "sorry, too many clients already");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("53300")));
        assert!(error.to_string().contains("max_connections"), "{error}");
        assert_eq!(server("54011", "tables can have at most 1600 columns").kind(), ErrorKind::Limit);
        assert_eq!(server("42601", "syntax error").kind(), ErrorKind::Server);
    }
}
