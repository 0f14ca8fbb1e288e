//! Errors of connections and of answers.

use crate::cancel;
use kurabe_core::{Error, ErrorKind, units};
use std::io;

/// The error of an answer that violates the protocol.
pub fn malformed(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, what)
}

/// The error of an answer that exceeds the size limit.
pub fn too_much(most: u64) -> Error {
    let most = units::size(most);
    malformed(format!("the server's answer is larger than {most}, which is more than was asked for"))
        .hint("it may be a different kind of server, or the statement returns too much")
}

/// The error of using a failed connection.
#[cold]
pub(super) fn failed_before() -> Error {
    if cancel::is_cut() {
        return cancel::error();
    }
    let what = "the connection failed in an earlier operation and is not used again";
    Error::new(ErrorKind::ConnectionLost, what)
}

/// Converts an error of a connected socket.
pub fn lost(error: &io::Error) -> Error {
    if cancel::is_cut() {
        return cancel::error();
    }
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return no_tls(error);
    }
    // A layer below the protocol found it violated.
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return error.clone();
    }
    let lost = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the server did not send its whole answer within the time allowed")
                .hint("--timeout allows more")
        }
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::WriteZero => {
            Error::new(ErrorKind::ConnectionLost, "the server closed the connection")
        }
        _ => Error::new(ErrorKind::ConnectionLost, format!("the connection failed: {error}")),
    };
    lost.caused_by(copy_of(error))
}

/// Converts an error of a TLS session.
fn no_tls(error: &rustls::Error) -> Error {
    let message = format!("no TLS connection: {error}");
    match error {
        rustls::Error::InvalidCertificate(_) => Error::new(ErrorKind::Denied, message)
            .hint("name the authority that signed the server's certificate with ca=FILE, or use tls=require"),
        _ => Error::new(ErrorKind::Protocol, message),
    }
}

/// The same error of the operating system, to be kept as a source.
pub(super) fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
