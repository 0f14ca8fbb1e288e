//! TLS at the beginning of a connection: what refuses it, and what finds it.

use kurabe_relay::Way;

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
    Encrypt {
        /// What the client is told before, once the server's side is encrypted.
        answer: Vec<u8>,
        /// What the client has sent of its handshake.
        client: Vec<u8>,
        /// What the server has sent of its handshake.
        server: Vec<u8>,
    },
}

/// Looks whether the client begins with TLS.
#[derive(Default)]
pub(crate) struct DirectStart {
    /// The first bytes, as long as they may be those of TLS.
    held: Vec<u8>,
}

impl TlsStart for DirectStart {
    fn sent(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        self.held.extend_from_slice(bytes);
        let Some(is_tls) = begins_with_tls(&self.held) else { return };
        let held = std::mem::take(&mut self.held);
        if is_tls {
            acts.push(Act::Encrypt { answer: Vec::new(), client: held, server: Vec::new() });
        } else {
            plain(held, acts);
        }
    }

    fn received(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        acts.push(Act::Forward(Way::ToClient, bytes.to_vec()));
        plain(std::mem::take(&mut self.held), acts);
    }
}

/// The client's bytes so far, and all that follow, are no TLS.
pub(crate) fn plain(held: Vec<u8>, acts: &mut Vec<Act>) {
    acts.extend([Act::Forward(Way::ToServer, held), Act::Plain]);
}

/// Whether a stream begins with a `ClientHello` of TLS (RFC 8446, sections 4 and 5.1); `None` if that is not known yet.
pub(crate) fn begins_with_tls(bytes: &[u8]) -> Option<bool> {
    let expected = |at: usize, byte: u8| match at {
        0 => byte == 22,
        1 => byte == 3,
        2 => byte <= 4,
        5 => byte == 1,
        _ => true,
    };
    let fits = bytes.iter().take(6).enumerate().all(|(at, byte)| expected(at, *byte));
    if !fits {
        Some(false)
    } else if bytes.len() < 6 {
        None
    } else {
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_hello_is_recognised_when_six_bytes_are_there() {
        let hello = b"\x16\x03\x01\x02\x00\x01\xff";
        assert_eq!(begins_with_tls(&hello[..5]), None);
        assert_eq!(begins_with_tls(hello), Some(true));
        assert_eq!(begins_with_tls(b"GET"), Some(false));
        assert_eq!(begins_with_tls(b"\x16\x03\x01\x00\x00\x00"), Some(false));
    }
}
