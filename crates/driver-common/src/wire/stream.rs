//! The three transports to a server: TCP, a Unix socket, and TLS over TCP.

use super::{MAX, Peer, Place, Socket, lost, tls};
use crate::prelude::*;
use rustls::{ClientConnection, ProtocolVersion};
use std::io::{self, IoSlice, Read, Write};
use std::time::Duration;

/// Largest content of a TLS record, in bytes (RFC 8446, 5.1).
const RECORD: usize = 1 << 14;

/// A socket that TLS does not wait for.
struct AtOnce<'a>(&'a mut Socket);

impl Read for AtOnce<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.receive_at_once(buffer)
    }
}

impl Write for AtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_at_once(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connected socket, encrypted or not.
pub struct Stream {
    socket: Socket,
    /// The TLS session, if encrypted.
    session: Option<Box<ClientConnection>>,
    /// Bytes of a pipeline that are encrypted, and not sent completely.
    encrypted: usize,
    /// Size limit of an answer, in bytes.
    most: u64,
}

impl Stream {
    /// Connects. Everything until [`Peer::ready`] shares the time allowed; then each exchange has all of it.
    pub fn connect(place: &Place, options: &ConnectOptions) -> Result<Self> {
        Self::connect_within(place, options, options.timeout)
    }

    /// Connects, with a time limit of its own until [`Peer::ready`].
    pub fn connect_within(place: &Place, options: &ConnectOptions, timeout: Duration) -> Result<Self> {
        let mut socket = Socket::connect(place, timeout).map_err(|error| place.unreachable(&error))?;
        socket.allow(options.reply_timeout()).map_err(|error| place.unreachable(&error))?;
        Ok(Self { socket, session: None, encrypted: 0, most: MAX.saturating_add(options.largest_answer) })
    }

    /// Starts TLS on a TCP connection and completes the handshake.
    pub fn encrypt(mut self, mode: &tls::Mode, host: &str) -> Result<Self> {
        if self.session.is_some() {
            return Err(Error::new(ErrorKind::Internal, "TLS within TLS"));
        }
        let mut session = mode.session(host)?;
        while session.is_handshaking() {
            session.complete_io(&mut self.socket).map_err(|e| lost(&e))?;
        }
        Ok(Self { session: Some(Box::new(session)), ..self })
    }

    /// Whether the peer has closed the connection or sent data, as far as this host knows. Consumes only TLS's own
    /// messages, such as session tickets.
    pub fn stirred(&mut self) -> bool {
        let Some(session) = &mut self.session else { return self.socket.stirred() };
        // This does not belong to the previous exchange, whose time may be over.
        let _ = self.socket.begin();
        loop {
            match session.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed() => {}
                _ => return true,
            }
            if !self.socket.stirred() {
                return false;
            }
            if !matches!(session.read_tls(&mut self.socket), Ok(1..)) {
                return true;
            }
        }
    }

    /// How often what was received had to wait for the peer.
    pub fn round_trips(&self) -> u64 {
        self.socket.round_trips()
    }

    /// The local TCP port; `None` on a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.socket.port()
    }

    /// The server's certificate (DER), if encrypted.
    pub fn certificate(&self) -> Option<&[u8]> {
        let chain = self.session.as_ref()?.peer_certificates()?;
        chain.first().map(|certificate| &**certificate)
    }

    /// Whether the connection is private (TLS or a Unix socket), so that a password may be sent in plain text.
    pub fn is_private(&self) -> bool {
        self.session.is_some() || self.socket.is_unix()
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.read(buffer),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.socket).read(buffer),
        }
    }
}

impl Peer for Stream {
    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        if self.session.is_some() {
            return super::receive_by_read(self, most, out);
        }
        out.reserve(most);
        self.socket.receive(out)
    }

    fn exchange(&mut self, out: &[u8], inbox: &mut [u8]) -> io::Result<(usize, usize)> {
        let Some(session) = &mut self.session else { return self.socket.exchange(out, inbox) };
        loop {
            match session.reader().read(inbox) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                got => return Ok((0, got?)),
            }
            if self.encrypted == 0 {
                self.encrypted = session.writer().write(&out[..out.len().min(RECORD)])?;
            }
            match session.write_tls(&mut AtOnce(&mut self.socket)) {
                Ok(_) if session.wants_write() => continue,
                Ok(_) => return Ok((std::mem::take(&mut self.encrypted), 0)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match session.read_tls(&mut AtOnce(&mut self.socket)) {
                Ok(_) => session.process_new_packets().map(|_| ()).map_err(io::Error::other)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.wait_for_either()?,
                Err(error) => return Err(error),
            }
        }
    }

    #[inline]
    fn begin(&mut self) -> io::Result<()> {
        self.socket.begin()
    }

    fn ready(&mut self) {
        self.socket.ready();
    }

    fn limit(&mut self, allowed: Duration) {
        // Only a longer limit needs anything of the kernel.
        let _ = self.socket.allow(allowed);
        self.socket.ready();
    }

    fn most(&self) -> u64 {
        self.most
    }

    fn transport(&self) -> String {
        let transport = match self.session.as_ref().map(|session| session.protocol_version()) {
            None if self.socket.is_unix() => "Unix socket",
            None => "TCP",
            Some(Some(ProtocolVersion::TLSv1_3)) => "TCP with TLS 1.3",
            Some(Some(ProtocolVersion::TLSv1_2)) => "TCP with TLS 1.2",
            Some(_) => "TCP with TLS",
        };
        transport.to_owned()
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.write(bytes),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.socket).write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.session.is_none() {
            return self.socket.write_vectored(slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        first.map_or(Ok(0), |slice| self.write(slice))
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => rustls::Stream::new(&mut **session, &mut self.socket).flush(),
        }
    }
}
