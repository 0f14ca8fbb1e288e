//! The account that a TCP connection of this machine belongs to (`sock_diag(7)`).

use crate::diag::NetlinkClient;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::thread;

/// Looks up the accounts of those who connect from this machine.
#[derive(Debug)]
pub struct Accounts {
    netlink: NetlinkClient,
    own: u32,
}

/// Who has the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The account of this process, or root, who can become any account.
    Own,
    /// Another account, by its number.
    Other(u32),
    /// Nobody any more, or nobody on this machine.
    Gone,
}

impl Accounts {
    /// Makes sure that the kernel answers.
    ///
    /// # Errors
    /// If it does not: it was built without `INET_DIAG`, or this process may not ask.
    pub fn new() -> io::Result<Self> {
        let mut accounts = Self { netlink: NetlinkClient::new()?, own: rustix::process::geteuid().as_raw() };
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let client = std::net::TcpStream::connect(probe.local_addr()?)?;
        let (server, from) = probe.accept()?;
        match accounts.peer(server.local_addr()?, from)? {
            Peer::Own => {
                drop(client);
                Ok(accounts)
            }
            _ => Err(io::Error::other("the kernel does not say whose a connection is")),
        }
    }

    /// Like [`Accounts::new`], for connections that come from the network of another process; only root may ask there.
    ///
    /// # Errors
    /// As for `new`, and if this process may not enter that network.
    pub fn in_network_of(pid: u32) -> io::Result<Self> {
        // Only this thread enters it. A socket stays in the network in which it was made.
        let make = move || {
            let network = File::open(format!("/proc/{pid}/ns/net"))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            Self::new()
        };
        let made = thread::Builder::new().name("network".to_owned()).spawn(make)?;
        made.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }

    /// Who has the other end of a connection that was accepted at `local` from `peer`.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn peer(&mut self, local: SocketAddr, peer: SocketAddr) -> io::Result<Peer> {
        Ok(match self.netlink.owner(peer, local)? {
            Some(uid) if uid == self.own || uid == 0 => Peer::Own,
            Some(uid) => Peer::Other(uid),
            None => Peer::Gone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpStream;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    /// An account that is not ours.
    const OTHER: u32 = 54_321;

    /// A client of another account, which connects and waits.
    fn client_of(uid: u32, port: u16) -> Child {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo x; exec cat");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).uid(uid).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn account_of_the_other_end_is_found_for_both_families_and_mapped_addresses() {
        let mut accounts = Accounts::new().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "::1"] {
            let Ok(listener) = TcpListener::bind((address, 0)) else { continue };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, from) = listener.accept().unwrap();
            assert_eq!(accounts.peer(server.local_addr().unwrap(), from).unwrap(), Peer::Own, "{address}");
        }
        // Clients with sockets for both families, as Java's, connect from a mapped address.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mapped = (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), listener.local_addr().unwrap().port());
        let _client = TcpStream::connect(mapped).unwrap();
        let (server, from) = listener.accept().unwrap();
        assert_eq!(accounts.peer(server.local_addr().unwrap(), from).unwrap(), Peer::Own);
    }

    #[test]
    fn client_that_has_closed_is_nobodys_also_with_a_listener_at_its_port() {
        let mut accounts = Accounts::new().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        let at = server.local_addr().unwrap();
        // It has sent its end and is still there.
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(accounts.peer(at, from).unwrap(), Peer::Own);
        drop(client);
        assert_eq!(accounts.peer(at, from).unwrap(), Peer::Gone);
        // The kernel finds a listener where there is no connection.
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let _listens = TcpListener::bind(other).unwrap();
        assert_eq!(accounts.peer(at, other).unwrap(), Peer::Gone);
    }

    #[test]
    fn other_account_is_named_and_is_never_root_once_it_has_closed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut accounts = Accounts::new().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut child = client_of(OTHER, listener.local_addr().unwrap().port());
        let (server, from) = listener.accept().unwrap();
        let at = server.local_addr().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(accounts.peer(at, from).unwrap(), Peer::Other(OTHER));
        drop(child.stdin.take());
        child.wait().unwrap();
        // Some kernels say account 0 of what it has sent and nobody has any more.
        assert!(matches!(accounts.peer(at, from).unwrap(), Peer::Gone | Peer::Other(OTHER)));
    }
}
