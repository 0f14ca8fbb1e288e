//! A second server of a run, beside the target: the *remote*. The target's server reads the remote's collections by
//! its own means, over a *link*; or Kurabe's client reads them itself.

use crate::named::named;
use crate::target::TargetUrl;
use crate::{Error, ErrorKind, Result};

named! {
    /// Which server a target's remote is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RemoteServer {
        /// The target's own server: a link leads from the server to itself.
        Same => "same",
        /// A second instance of the target's server: another process of a throwaway server, or another file of a
        /// temporary embedded database.
        Second => "second",
        /// A second instance of a throwaway server on a host of its own: a network namespace, behind a link with an MTU
        /// of 1,500, that of Ethernet.
        Host => "host",
        /// The same behind a link with an MTU of 9,000, that of jumbo frames.
        HostJumbo => "host-9000",
        /// The server that the user names with `--remote`.
        Given => "remote",
    }
    /// Its name on the command line and in facts.
    pub fn name;
}

#[derive(Clone, Debug)]
pub struct RemoteAddress {
    pub server: RemoteServer,
    /// Its URL, with the password. For an embedded database the path is that of its file.
    pub url: TargetUrl,
}

/// The servers to which a target's links may lead, with their addresses, or why they cannot.
pub type Addresses<A> = Vec<(RemoteServer, Result<A>)>;

/// The address of a server.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if it is unknown, or why no link can lead there.
pub fn address_of<A>(known: &[(RemoteServer, Result<A>)], server: RemoteServer) -> Result<&A> {
    let address = known.iter().find(|(known, _)| *known == server).map(|(_, address)| address);
    let unknown = || format!("the address of the remote '{}' is unknown", server.name());
    let address = address.ok_or_else(|| Error::new(ErrorKind::Internal, unknown()))?;
    address.as_ref().map_err(Clone::clone)
}

/// Where a collection is that is not an ordinary one of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCollection {
    /// The server with the rows.
    pub server: RemoteServer,
    /// How the target's server reads them; `None`: the collection itself is on that server, and Kurabe's client reads
    /// it there.
    pub link: Option<Link>,
}

/// How a server reads a collection of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name of the engine's means, on the command line and in its driver: `fdw`.
    pub way: &'static str,
    /// The name of the collection on the remote.
    pub source: String,
    /// Rows per round trip between the servers; `None`: the engine's default.
    pub fetch: Option<u64>,
}
