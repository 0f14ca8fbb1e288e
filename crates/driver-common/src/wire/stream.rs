//! The three ways to a server: TCP, a Unix socket, TLS over TCP.

use super::socket::{End, Socket};
use super::{MOST, Peer, Place, lost, tls};
use crate::prelude::*;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, IoSlice, Read, Write};

/// A connected socket, encrypted or not.
pub struct Stream {
    way: Way,
    /// The most bytes of one answer.
    most: u64,
}

enum Way {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    /// Connects. All that follows until [`Peer::ready`] has the rest of the time allowed; then each exchange has all of it.
    pub fn connect(place: &Place, options: &ConnectOptions) -> Result<Self> {
        let socket = Socket::connect(place, options.timeout).map_err(|error| place.unreachable(&error))?;
        Ok(Self { way: Way::Plain(socket), most: MOST.saturating_add(options.largest_answer) })
    }

    /// Puts TLS around a TCP connection and completes the handshake.
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

    /// How the server is reached, for [`kurabe_core::facts::ServerFacts`].
    pub fn transport(&self) -> String {
        match &self.way {
            Way::Plain(socket) => match socket.end() {
                End::Tcp(_) => "TCP".to_owned(),
                End::Unix(_) => "Unix socket".to_owned(),
            },
            Way::Tls(stream) => match stream.conn.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "TCP with TLS 1.3".to_owned(),
                Some(rustls::ProtocolVersion::TLSv1_2) => "TCP with TLS 1.2".to_owned(),
                _ => "TCP with TLS".to_owned(),
            },
        }
    }

    /// Whether the peer has closed the connection or sent anything, as far as is known here. Takes nothing but what TLS
    /// sends for itself, such as tickets for later sessions.
    pub fn stirred(&mut self) -> bool {
        let stream = match &mut self.way {
            Way::Plain(socket) => return socket.stirred(),
            Way::Tls(stream) => stream,
        };
        // It does not belong to the exchange before, whose time may be over.
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

    /// The local port, where this is TCP.
    pub fn port(&self) -> Option<u16> {
        match self.socket().end() {
            End::Tcp(stream) => stream.local_addr().ok().map(|address| address.port()),
            End::Unix(_) => None,
        }
    }

    /// Whether nobody on the way can read what is sent: a password may go over it as it is.
    pub fn is_private(&self) -> bool {
        match &self.way {
            Way::Plain(socket) => matches!(socket.end(), End::Unix(_)),
            Way::Tls(_) => true,
        }
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
