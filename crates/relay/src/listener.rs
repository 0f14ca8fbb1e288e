//! A thread that accepts connections.

use crate::admission::{Admission, Clients, Refused};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The pause between two looks at connections.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// Where to listen, and for whom. An address alone is for this process's own account.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// Port 0 chooses a free one.
    pub address: SocketAddr,
    pub clients: Clients,
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self { address, clients: Clients::Own }
    }
}

/// Accepts connections until it is dropped.
pub struct Listener {
    address: SocketAddr,
    refused: Arc<Refused>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Calls `accept` with each connection of a client that may connect. Others are closed.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread. [`Unsupported`](io::ErrorKind::Unsupported) if the system does not
    /// say which account a connection is of.
    pub fn start(listen: impl Into<Listen>, accept: impl Fn(TcpStream) + Send + 'static) -> io::Result<Self> {
        let Listen { address, clients } = listen.into();
        let listener = TcpListener::bind(address)?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let (mut admission, stopped) = (Admission::new(clients, address)?, Arc::clone(&stop));
        let refused = admission.refused();
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            loop {
                let client = listener.accept();
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                match client {
                    Ok((client, from)) if admission.admits(&client, from) => accept(client),
                    Ok(_) => {}
                    // Out of file descriptors: others may end.
                    Err(_) => thread::sleep(POLL),
                }
            }
        })?;
        Ok(Self { address, refused, stop, thread: Some(thread) })
    }

    /// The connections that were refused so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no further connections.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return };
        // Wakes the thread; an address of all interfaces is reached by that of loopback.
        let mut wake = self.address;
        match wake {
            SocketAddr::V4(at) if at.ip().is_unspecified() => wake.set_ip(Ipv4Addr::LOCALHOST.into()),
            SocketAddr::V6(at) if at.ip().is_unspecified() => wake.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        drop(TcpStream::connect(wake));
        let _ = thread.join();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}
