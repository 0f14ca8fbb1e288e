//! Links from one database to another.

use super::{Driver, Support};
use crate::error::{Error, Result};
use crate::remote::{Link, RemoteServer};
use std::path::PathBuf;

/// A database that can be linked to others.
pub trait Links {
    /// The file of an embedded database, which another database may attach; `None` if it has no such file.
    fn file(&self) -> Option<PathBuf>;

    /// The driver of a remote server, for what the client does there over connections of its own.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the run has no such server.
    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver>;

    /// Whether its server can read collections of a remote server by this link. May ask the server. If the address of
    /// the remote is not known yet, it is not considered.
    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support>;
}

/// The error of a run without this remote.
///
/// # Errors
/// Always.
pub fn no_remote<T>(server: RemoteServer) -> Result<T> {
    Err(Error::unsupported(format!("this run has no remote '{}'", server.name())))
}
