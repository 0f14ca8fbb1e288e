//! Addresses of servers.

use crate::cancel;
use crate::prelude::*;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host name or address, without brackets, and a port.
    Tcp {
        /// The name or address.
        host: String,
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Place {
    /// The URL's Unix socket, or its host and port, by default 127.0.0.1 and `port`.
    pub fn from_url(url: &TargetUrl, port: u16) -> Self {
        if let Some(socket) = url.option("socket") {
            return Self::Unix(PathBuf::from(socket));
        }
        let host = url.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
        Self::Tcp { host, port: url.port.unwrap_or(port) }
    }

    /// The address as an endpoint, for observing the server's processes.
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Self::Tcp { host, port } => Endpoint::Tcp { host: host.clone(), port: *port },
            Self::Unix(path) => Endpoint::Unix(path.clone()),
        }
    }

    /// The error of an unreachable server.
    pub fn unreachable(&self, error: &io::Error) -> Error {
        if cancel::is_cut() {
            return cancel::error();
        }
        let unreachable = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Error::new(ErrorKind::Timeout, format!("{self} does not answer within the time allowed"))
                    .hint("are host and port right? --timeout allows more")
            }
            io::ErrorKind::PermissionDenied => {
                Error::new(ErrorKind::Denied, format!("this user may not connect to {self}"))
            }
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound if matches!(self, Self::Unix(_)) => {
                Error::new(ErrorKind::Unreachable, format!("no server listens at {self}"))
                    .hint("is it running, and is the socket's path right?")
            }
            io::ErrorKind::ConnectionRefused => {
                Error::new(ErrorKind::Unreachable, format!("nothing listens at {self}"))
                    .hint("is the server running, and are host and port right?")
            }
            io::ErrorKind::OutOfMemory | io::ErrorKind::QuotaExceeded => limit(error),
            // EMFILE and ENFILE have no stable kind.
            _ if matches!(error.raw_os_error(), Some(23 | 24)) => limit(error),
            _ => Error::new(ErrorKind::Unreachable, format!("cannot reach {self}: {error}"))
                .hint("are host and port right?"),
        };
        unreachable.caused_by(super::errors::copy_of(error))
    }
}

fn limit(error: &io::Error) -> Error {
    Error::new(ErrorKind::Limit, format!("no more connections from this machine: {error}"))
        .hint("raise the limit of open files (ulimit -n)")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
