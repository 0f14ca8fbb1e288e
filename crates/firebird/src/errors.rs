//! Errors of the client and of the server.

use kurabe_driver_common::prelude::*;
use kurabe_driver_common::wire::lost;
use rsfbclient_core::FbError;

/// The code of errors by which a request lost against a concurrent one.
pub const CONFLICT: &str = "40001";

/// Parts of messages of Firebird and the client, their meaning, SQLSTATE and hint.
const KNOWN: [(&str, ErrorKind, &str, &str); 10] = [
    ("read-only transaction", ErrorKind::ReadOnly, "25006", ""),
    ("ContAuth", ErrorKind::Denied, "28000", "the server asks again: check the user and the password"),
    ("Connection closed", ErrorKind::ConnectionLost, "08006", ""),
    ("Error while trying to open", ErrorKind::NotFound, "08001", "does the server have that alias or file?"),
    ("Table unknown", ErrorKind::NotFound, "42S02", ""),
    ("key size", ErrorKind::Limit, "54000", "use shorter keys, or a database with larger pages"),
    ("Name longer than", ErrorKind::Limit, "42000", "a name has at most 31 characters in Firebird 3"),
    ("PRIMARY or UNIQUE KEY", ErrorKind::Server, "23000", ""),
    ("deadlock", ErrorKind::Server, CONFLICT, ""),
    ("lock conflict", ErrorKind::Server, CONFLICT, ""),
];

/// Converts an error of the client, which has the server's message, but few of its codes.
pub fn explain(error: FbError) -> Error {
    let (message, kind, code) = match error {
        FbError::Io(error) => return lost(&error),
        FbError::Sql { msg, code } => (msg.replace('\n', ": "), ErrorKind::Server, code.to_string()),
        FbError::Other(text) => (text, ErrorKind::Protocol, "client".to_owned()),
    };
    let known = KNOWN.iter().find(|(words, ..)| message.contains(words));
    let (_, kind, code, hint) = *known.unwrap_or(&("", kind, &*code, ""));
    Error::new(kind, format!("Firebird: {message}")).code(code).hint(hint)
}

/// Shows the line of a statement that the server names in its message: `- line 2, column 8`.
pub fn located(error: Error, statement: &str) -> Error {
    let text = error.to_string();
    let number = |label: &str| -> Option<usize> {
        let (_, rest) = text.rsplit_once(label)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let (Some(line), Some(column)) = (number("line "), number("column ")) else { return error };
    let before: usize =
        statement.split_inclusive('\n').take(line.saturating_sub(1)).map(|line| line.chars().count()).sum();
    error.position(before + column).in_statement(statement)
}
