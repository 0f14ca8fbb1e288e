//! Decides which clients may connect: a client of a relay has what the relay's user has at the server, where the server knows that
//! user by a certificate or by a Unix socket.

use crate::listener::At;
use kurabe_os::account::{Accounts, Peer};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Stands for no account: the kernel gives it to none.
const NOBODY: u32 = u32::MAX;

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// The account of this process, and root. At an address that other hosts reach, their accounts are not known, and everybody
    /// may connect.
    Own,
    /// Everybody.
    All,
}

/// The connections that were refused.
#[derive(Debug)]
pub struct Refused {
    others: AtomicU64,
    /// The account of the first of them.
    account: AtomicU32,
    gone: AtomicU64,
}

impl Refused {
    /// The number of connections of other accounts.
    pub fn others(&self) -> u64 {
        self.others.load(Ordering::SeqCst)
    }

    /// The first other account that was refused.
    pub fn account(&self) -> Option<u32> {
        Some(self.account.load(Ordering::SeqCst)).filter(|account| *account != NOBODY)
    }

    /// The number of connections whose client had closed them before it was known whose they were.
    pub fn gone(&self) -> u64 {
        self.gone.load(Ordering::SeqCst)
    }
}

/// Looks at each client before anything is done with its connection.
pub(crate) struct Admission {
    /// `None`: everybody may connect, or the clients are of a Unix socket.
    accounts: Option<Accounts>,
    clients: Clients,
    refused: Arc<Refused>,
}

impl Admission {
    pub(crate) fn new(clients: Clients, at: &At) -> io::Result<Self> {
        let is_loopback = matches!(at, At::Tcp(address) if address.ip().to_canonical().is_loopback());
        let is_checked = clients == Clients::Own && is_loopback;
        let unknown = |error: io::Error| {
            let what = format!("this system does not say which account a connection is of: {error}");
            io::Error::new(io::ErrorKind::Unsupported, what)
        };
        let accounts = is_checked.then(Accounts::new).transpose().map_err(unknown)?;
        let (others, account, gone) = (AtomicU64::new(0), AtomicU32::new(NOBODY), AtomicU64::new(0));
        Ok(Self { accounts, clients, refused: Arc::new(Refused { others, account, gone }) })
    }

    pub(crate) fn refused(&self) -> Arc<Refused> {
        Arc::clone(&self.refused)
    }

    /// Whether the client of this address may connect. A connection whose account cannot be found is refused.
    pub(crate) fn admits(&mut self, client: &TcpStream, from: SocketAddr) -> bool {
        let Some(accounts) = &mut self.accounts else { return true };
        let peer = client.local_addr().and_then(|local| accounts.peer(local, from));
        self.judge(&peer)
    }

    /// As [`admits`](Self::admits), for a client of a Unix socket, whose account the kernel noted when it connected.
    pub(crate) fn admits_peer(&mut self, client: &UnixStream) -> bool {
        if self.clients == Clients::All {
            return true;
        }
        let peer = socket_peercred(client).map_err(io::Error::from).map(|peer| {
            if peer.uid.is_root() || peer.uid == geteuid() {
                Peer::Own
            } else {
                Peer::Other(peer.uid.as_raw())
            }
        });
        self.judge(&peer)
    }

    fn judge(&self, peer: &io::Result<Peer>) -> bool {
        match *peer {
            Ok(Peer::Own) => return true,
            Ok(Peer::Other(account)) => {
                let set = |of: u32| (of == NOBODY).then_some(account);
                // It is set already if this is not the first one.
                let _ = self.refused.account.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set);
                self.refused.others.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Peer::Gone) | Err(_) => {
                self.refused.gone.fetch_add(1, Ordering::SeqCst);
            }
        }
        false
    }
}
