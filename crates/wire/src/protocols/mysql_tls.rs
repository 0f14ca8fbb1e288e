//! The offer of TLS in MySQL's greeting. Without it, a client that does not insist connects without TLS. With it, a client
//! that wants TLS sends the beginning of its first packet, then its handshake, and then the whole packet.

use crate::tls::{Act, TlsRefusal, TlsStart, plain};
use kurabe_protocol::mysql::frame::Packet;
use kurabe_protocol::mysql::handshake::{HandshakeResponse, SSL_REQUEST};
use kurabe_protocol::{Found, Header as _};
use kurabe_relay::Way;

/// Bytes between the version and the flags: zero 1, connection 4, scramble 8, filler 1.
const TO_FLAGS: usize = 14;
/// `CLIENT_SSL` in the second byte of the flags.
const SSL: u8 = 0x08;

/// Clears the flag in passing.
#[derive(Default)]
pub(crate) struct MysqlTls {
    /// Bytes of the server so far, until the flags.
    at: usize,
    /// The position of the zero after the version.
    version_ends: Option<usize>,
    over: bool,
    refused: bool,
}

impl TlsRefusal for MysqlTls {
    fn received(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.over {
                return;
            }
            match (self.at, self.version_ends) {
                // The packet's header.
                (0..4, _) => {}
                // The protocol's version; an error has another first byte.
                (4, _) => self.over = *byte != 10,
                (at, None) => self.version_ends = (*byte == 0).then_some(at),
                (at, Some(end)) if at == end + TO_FLAGS + 1 => {
                    self.refused = *byte & SSL != 0;
                    *byte &= !SSL;
                    self.over = true;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn has_refused(&self) -> bool {
        self.refused
    }
}

/// Passes the greeting and the request for TLS on.
#[derive(Default)]
pub(crate) struct MysqlStart {
    /// What the client sent, as long as it may be such a request.
    held: Vec<u8>,
}

impl TlsStart for MysqlStart {
    fn sent(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        self.held.extend_from_slice(bytes);
        if matches!(Packet::find(&self.held), Found::Header(packet) if packet.length != SSL_REQUEST) {
            return plain(std::mem::take(&mut self.held), acts);
        }
        let length = Packet::LENGTH + SSL_REQUEST;
        let Some((request, handshake)) = self.held.split_at_checked(length) else { return };
        if !HandshakeResponse::is_ssl_request(&request[Packet::LENGTH..]) {
            return plain(std::mem::take(&mut self.held), acts);
        }
        acts.push(Act::Tell(Way::ToServer, request.to_vec()));
        let client = handshake.to_vec();
        acts.push(Act::Encrypt { answer: Vec::new(), client, server: Vec::new() });
    }

    fn received(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        acts.push(Act::Forward(Way::ToClient, bytes.to_vec()));
    }
}
