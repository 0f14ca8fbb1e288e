//! The three transports to a server: TCP, a Unix socket, and TLS over TCP.

use super::{MOST, Peer, Place, Socket, lost, tls};
use crate::prelude::*;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, IoSlice, Read, Write};

/// A connected socket, encrypted or not.
pub struct Stream {
    way: Way,
    /// Size limit of an answer, in bytes.
    most: u64,
}

enum Way {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    /// Connects. Everything until [`Peer::ready`] shares the time allowed; then each exchange has all of it.
    pub fn connect(place: &Place, options: &ConnectOptions) -> Result<Self> {
        let socket = Socket::connect(place, options.timeout).map_err(|error| place.unreachable(&error))?;
        Ok(Self { way: Way::Plain(socket), most: MOST.saturating_add(options.largest_answer) })
    }

    /// Starts TLS on a TCP connection and completes the handshake.
    pub fn encrypt(self, mode: &tls::Mode, host: &str) -> Result<Self> {
        let Way::Plain(mut socket) = self.way else {
            return Err(Error::new(ErrorKind::Internal, "TLS within TLS"));
        };
        let mut session = mode.session(host)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|e| lost(&e))?;
        }
        Ok(Self { way: Way::Tls(Box::new(StreamOwned::new(session, socket))), most: self.most })
    }

    /// Whether the peer has closed the connection or sent data, as far as this host knows. Consumes only TLS's own
    /// messages, such as session tickets.
    pub fn stirred(&mut self) -> bool {
        let stream = match &mut self.way {
            Way::Plain(socket) => return socket.stirred(),
            Way::Tls(stream) => stream,
        };
        // This does not belong to the previous exchange, whose time may be over.
        let _ = stream.sock.begin();
        loop {
            match stream.conn.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed() => {}
                _ => return true,
            }
            if !stream.sock.stirred() {
                return false;
            }
            if !matches!(stream.conn.read_tls(&mut stream.sock), Ok(1..)) {
                return true;
            }
        }
    }

    fn socket(&self) -> &Socket {
        match &self.way {
            Way::Plain(socket) => socket,
            Way::Tls(stream) => &stream.sock,
        }
    }

    fn socket_mut(&mut self) -> &mut Socket {
        match &mut self.way {
            Way::Plain(socket) => socket,
            Way::Tls(stream) => &mut stream.sock,
        }
    }

    /// The local TCP port; `None` on a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.socket().port()
    }

    /// Whether the connection is private (TLS or a Unix socket), so that a password may be sent in plain text.
    pub fn is_private(&self) -> bool {
        matches!(self.way, Way::Tls(_)) || self.socket().is_unix()
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Plain(socket) => socket.read(buffer),
            Way::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Peer for Stream {
    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.way {
            Way::Plain(socket) => {
                out.reserve(most);
                socket.receive(out)
            }
            Way::Tls(stream) => super::receive_by_read(stream, most, out),
        }
    }

    #[inline]
    fn begin(&mut self) -> io::Result<()> {
        self.socket_mut().begin()
    }

    fn ready(&mut self) {
        self.socket_mut().ready();
    }

    fn most(&self) -> u64 {
        self.most
    }

    fn transport(&self) -> String {
        let transport = match &self.way {
            Way::Plain(socket) if socket.is_unix() => "Unix socket",
            Way::Plain(_) => "TCP",
            Way::Tls(stream) => match stream.conn.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "TCP with TLS 1.3",
                Some(rustls::ProtocolVersion::TLSv1_2) => "TCP with TLS 1.2",
                _ => "TCP with TLS",
            },
        };
        transport.to_owned()
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Plain(socket) => socket.write(bytes),
            Way::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.way {
            Way::Plain(socket) => socket.write_vectored(slices),
            Way::Tls(stream) => stream.write_vectored(slices),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Plain(_) => Ok(()),
            Way::Tls(stream) => stream.flush(),
        }
    }
}
