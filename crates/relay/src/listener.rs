//! A thread that accepts connections.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The pause between two looks at connections.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// Accepts connections until it is dropped.
pub struct Listener {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Calls `accept` with each connection.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread.
    pub fn start(listen: SocketAddr, accept: impl Fn(TcpStream) + Send + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                match client {
                    Ok(client) => accept(client),
                    // Out of file descriptors: others may end.
                    Err(_) => thread::sleep(POLL),
                }
            }
        })?;
        Ok(Self { address, stop, thread: Some(thread) })
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
