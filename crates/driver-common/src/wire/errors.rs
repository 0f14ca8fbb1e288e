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

/// What to do about a certificate that is not trusted.
const UNTRUSTED: &str = "name the authority that signed the server's certificate, or that certificate itself, with ca=FILE, and the host as the certificate has it; \
     the server's administrator knows both, and whether this is its certificate";

/// Converts an error of a TLS session.
fn no_tls(error: &rustls::Error) -> Error {
    let message = format!("no TLS connection: {error}");
    match error {
        // A self-signed certificate as OpenSSL makes it is one of an authority.
        rustls::Error::InvalidCertificate(_) if message.contains("CaUsedAsEndEntity") => {
            let message = "no TLS connection: the server's certificate is signed by itself, and the target does not name it";
            Error::new(ErrorKind::Denied, message).hint(UNTRUSTED)
        }
        rustls::Error::InvalidCertificate(_) => Error::new(ErrorKind::Denied, message).hint(UNTRUSTED),
        _ => Error::new(ErrorKind::Protocol, message),
    }
}

/// The error of a server that offers no TLS to a client that asks for it. `setting`: where its administrator turns TLS on.
pub fn offers_no_tls(setting: &str) -> Error {
    Error::unsupported("the server does not support TLS, which the target asks for; nothing secret was sent").hint(format!(
        "its administrator turns TLS on ({setting}); if it is on, something between you and the server has taken the offer away"
    ))
}

/// The same error of the operating system, to be kept as a source.
pub(super) fn copy_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
