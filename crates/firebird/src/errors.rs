//! The client's errors as Kurabe's. It passes on the server's words, and of its numbers only some.

use kurabe_driver_common::prelude::*;
use kurabe_driver_common::wire;
use rsfbclient_core::FbError;

/// Words of Firebird's messages (`firebird.msg`), what they mean, the SQLSTATE that Firebird documents for them, and what
/// to do.
const KNOWN: [(&str, ErrorKind, &str, &str); 16] = [
    ("Your user name and password", ErrorKind::Denied, "28000", "check the user and the password"),
    (
        "Error while trying to open file",
        ErrorKind::NotFound,
        "08001",
        "does the server have that alias or file?",
    ),
    ("Table unknown", ErrorKind::NotFound, "42S02", ""),
    ("no permission for", ErrorKind::NotPermitted, "28000", "the user may not do that there"),
    ("unable to allocate memory", ErrorKind::Limit, "HY001", "the server is out of memory"),
    ("key size", ErrorKind::Limit, "54000", "use shorter keys, or a database with larger pages"),
    ("Implementation limit exceeded", ErrorKind::Limit, "54000", ""),
    ("Name longer than", ErrorKind::Limit, "42000", "a name has at most 31 characters in Firebird 3"),
    ("PRIMARY or UNIQUE KEY", ErrorKind::Server, "23000", ""),
    ("validation error", ErrorKind::Server, "23000", ""),
    ("is in use", ErrorKind::Server, "42000", "another connection uses the table: close it"),
    ("lock conflict", ErrorKind::Server, "40001", ""),
    ("deadlock", ErrorKind::Server, "40001", ""),
    ("shutdown", ErrorKind::ConnectionLost, "08006", ""),
    ("connection lost", ErrorKind::ConnectionLost, "08006", ""),
    ("Error reading data from the connection", ErrorKind::ConnectionLost, "08006", ""),
];

pub(crate) fn explain(error: FbError) -> Error {
    let (message, code) = match error {
        FbError::Io(error) => return wire::lost(&error),
        FbError::Other(message) if message.starts_with("Connection closed") => {
            return wire::lost(&std::io::ErrorKind::UnexpectedEof.into());
        }
        // The server goes on asking: it did not take the password.
        FbError::Other(message) if message.contains("ContAuth") => {
            return Error::new(ErrorKind::Denied, "the server refused the user or the password")
                .hint("check the user and the password");
        }
        FbError::Other(message) => return Error::new(ErrorKind::Protocol, message),
        FbError::Sql { msg, code } => (msg.replace('\n', ": "), code),
    };
    let known = KNOWN.iter().find(|(words, ..)| message.contains(words));
    let answered = format!("the server answered: {message}");
    match known {
        Some((_, kind, state, hint)) => Error::new(*kind, answered).code(state).hint(*hint),
        None => Error::new(ErrorKind::Server, answered).code(code),
    }
}
