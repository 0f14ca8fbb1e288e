//! What a decoder of a protocol learns from the bytes of a connection.

use crate::reader::{Stop, UntilStop};
use crate::view::Step;
use kurabe_relay::Way;

/// A decoder, for one connection. It reads a copy of the stream, in pieces of any size, and never fails: of a stream that
/// it cannot read it says so once, with [`Seen::Unreadable`].
pub trait Decoder: Send {
    /// Reads what the client sent next.
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>);

    /// Reads what the server sent next.
    fn received(&mut self, bytes: &[u8], seen: &mut Vec<Seen>);
}

/// Decodes the requests of one protocol, until it stops.
pub(crate) trait Decode: Send {
    /// Reads what the client sent next.
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop>;

    /// Reads what the server sent next. Most protocols need none of it.
    fn received(&mut self, _bytes: &[u8], _seen: &mut Vec<Seen>) -> Result<(), Stop> {
        Ok(())
    }
}

impl<D: Decode> Decoder for UntilStop<D> {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        let checked = self.checked(bytes);
        let Some(decoder) = self.reader() else { return };
        if let Err(stop) = checked.and_then(|bytes| decoder.sent(&bytes, seen)) {
            self.stop();
            seen.push(stop.into());
        }
    }

    fn received(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        let Some(decoder) = self.reader() else { return };
        if let Err(stop) = decoder.received(bytes, seen) {
            self.stop();
            seen.push(stop.into());
        }
    }
}

impl From<Stop> for Seen {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Encrypted => Self::Encrypted,
            Stop::Unreadable(why) => Self::Unreadable(why),
        }
    }
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A request of the client.
    Request(Request),
    /// What the client calls itself: `mysql-connector-j 9.5.0`.
    Client(String),
    /// Something else worth knowing, such as an error of the server while connecting.
    Note(String),
    /// The connection is encrypted from here on.
    Encrypted,
    /// The rest cannot be read, and why.
    Unreadable(&'static str),
}

/// A request of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of bytes that the client sent before it.
    pub at: u64,
    /// The statement or the command, without anything that may be a password.
    pub text: String,
    /// How the statement was sent.
    pub step: Step,
    /// Whether it sets up the connection or asks about the server, as drivers do on their own account.
    pub is_setup: bool,
}

/// Removes the offer of TLS from a connection, so that its statements can be read.
pub trait TlsRefusal: Send {
    /// Takes the next piece of the client's stream: gives what the server gets, and what the client is answered instead.
    fn sent(&mut self, bytes: &[u8], to_server: &mut Vec<u8>, _to_client: &mut Vec<u8>) {
        to_server.extend_from_slice(bytes);
    }

    /// Changes the next piece of the server's stream. Its length stays.
    fn received(&mut self, _bytes: &mut [u8]) {}

    /// Whether TLS was offered and refused.
    fn has_refused(&self) -> bool;
}

/// Reads the beginning of a connection until it is known whether it uses TLS, for a relay that ends TLS on both sides.
pub trait TlsStart: Send {
    /// Takes what the client sent next, in pieces of any size.
    fn sent(&mut self, bytes: &[u8], acts: &mut Vec<Act>);

    /// Takes what the server sent next, in pieces of any size.
    fn received(&mut self, bytes: &[u8], acts: &mut Vec<Act>);
}

/// What a relay does at the beginning of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// These bytes go to that end. They are about encryption, and nobody else sees them.
    Tell(Way, Vec<u8>),
    /// These bytes go to that end, and are those of a connection without TLS.
    Forward(Way, Vec<u8>),
    /// All that follows is in plain text. It is the last act, as the next one is.
    Plain,
    /// TLS begins on both sides.
    Encrypt {
        /// What the client is told before, once the server's side is encrypted.
        answer: Vec<u8>,
        /// What the client has sent of its handshake.
        client: Vec<u8>,
        /// What the server has sent of its handshake.
        server: Vec<u8>,
    },
}
