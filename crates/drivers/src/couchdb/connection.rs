//! The transport of `ureq`: Kurabe's own socket. A request with its whole answer has one deadline, an answer has a size
//! limit, and cancelling a run closes the connection. `ureq` itself has timeouts for single reads only, unless the
//! remaining time is set on the socket before every request.

use crate::wire::{MOST, Place, Socket, too_much};
use kurabe_core::driver::ConnectOptions;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// The number of requests of a client, by which its connection notices the start of a new one.
pub(super) type Requests = Arc<AtomicU64>;

/// A resolver that returns a placeholder: the socket resolves the address.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from(([0, 0, 0, 0], 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
pub(super) struct ToServer {
    pub(super) place: Place,
    pub(super) options: ConnectOptions,
    pub(super) requests: Requests,
}

impl Connector for ToServer {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<Connection>, Error> {
        let config = details.config;
        Ok(Some(Connection {
            socket: Socket::connect(&self.place, self.options.timeout)?,
            buffers: LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
            // Connecting and the first request share one deadline.
            request: self.requests.load(Ordering::Relaxed),
            requests: Arc::clone(&self.requests),
            received: 0,
            most: MOST.saturating_add(self.options.largest_answer),
        }))
    }
}

pub(super) struct Connection {
    socket: Socket,
    buffers: LazyBuffers,
    requests: Requests,
    /// Number of the current request.
    request: u64,
    /// Bytes received of its answer, and the limit.
    received: u64,
    most: u64,
}

impl Connection {
    fn begin(&mut self) -> io::Result<()> {
        let request = self.requests.load(Ordering::Relaxed);
        if request == self.request {
            return Ok(());
        }
        self.request = request;
        self.received = 0;
        self.socket.ready();
        self.socket.begin()
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        self.begin()?;
        Ok(self.socket.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        self.begin()?;
        let input = self.buffers.input_append_buf();
        if input.is_empty() {
            // The buffer is full, but the response header is incomplete.
            return Err(Error::LargeResponseHeader(self.received as usize, self.received as usize));
        }
        let got = loop {
            match self.socket.read(input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.buffers.input_appended(got);
        self.received += got as u64;
        if self.received > self.most {
            return Err(io::Error::other(too_much(self.most)).into());
        }
        Ok(got > 0)
    }

    fn is_open(&mut self) -> bool {
        !self.socket.stirred()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("socket", &self.socket).finish_non_exhaustive()
    }
}
