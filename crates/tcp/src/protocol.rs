//! The messages between both ends: [`MAGIC`], the length in two bytes, little-endian, and JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The first bytes of each message: the protocol and its version.
pub const MAGIC: &[u8; 12] = b"KURABE-TCP2\n";
/// The largest block, in bytes. Each connection has two buffers of its length at the listener.
pub const LARGEST_BLOCK: u64 = 4 << 20;
/// The port of a listener that the user starts without one.
pub const PORT: u16 = 7007;

/// Sends a message in one write.
///
/// # Errors
/// As for writing; [`InvalidData`](io::ErrorKind::InvalidData) if it is longer than 65,535 bytes.
pub fn send(message: &impl Serialize, to: &mut impl Write) -> io::Result<()> {
    let json = serde_json::to_vec(message)?;
    let length = u16::try_from(json.len()).map_err(|_| invalid("a message is too long"))?;
    to.write_all(&[&MAGIC[..], &length.to_le_bytes(), &json].concat())
}

/// Receives a message.
///
/// # Errors
/// [`InvalidData`](io::ErrorKind::InvalidData) for what is no message of this type; or as for reading.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(invalid("the other end does not speak Kurabe's protocol"));
    }
    let mut length = [0; 2];
    from.read_exact(&mut length)?;
    let mut json = vec![0; usize::from(u16::from_le_bytes(length))];
    from.read_exact(&mut json)?;
    serde_json::from_slice(&json).map_err(|error| invalid(&error.to_string()))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Requests about the others.
    Control,
    /// Blocks of one length, one way.
    Stream,
    /// Blocks of one length, each sent back.
    Echo,
}

/// The first message of a connection, from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    pub role: Role,
    /// The length of its blocks, in bytes; 0 for control.
    pub block: u64,
    /// By which the client asks for its result; 0 if it does not.
    pub token: u64,
}

impl Greeting {
    /// Receives it.
    ///
    /// # Errors
    /// As for [`receive`]; [`InvalidData`](io::ErrorKind::InvalidData) if the length of blocks is out of range.
    pub fn receive(from: &mut impl Read) -> io::Result<Self> {
        let greeting: Self = receive(from)?;
        let allowed = if greeting.role == Role::Control { 0..=0 } else { 1..=LARGEST_BLOCK };
        if allowed.contains(&greeting.block) {
            Ok(greeting)
        } else {
            Err(invalid("length of blocks out of range"))
        }
    }
}

/// What a listener reports of itself, on each control connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The port whose connections have buffers of a fixed size.
    pub sized_port: u16,
    /// The largest receive buffer that a process may ask for there, in bytes (`net.core.rmem_max`).
    pub largest_receive: u64,
    /// Kurabe's version.
    pub version: String,
    /// The kernel and its version.
    pub kernel: String,
    /// The congestion control of new connections.
    pub congestion: String,
}

/// A request on a control connection. Each has one [`Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Answer at once.
    Ping,
    /// Set the buffers of the next connection to the second port, in bytes. Until [`Request::Connected`] no other
    /// client can do so.
    Buffers(u64),
    /// That connection is made.
    Connected,
    /// The result of the stream with this token, once it has ended.
    Result(u64),
}

/// The result that was asked for, if one was; or why the listener did not do what was requested, as a clause.
pub type Answer = Result<Option<Received>, String>;

/// What the listener reports of a connection that was just made, as its kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connected {
    /// Its receive buffer in bytes. Linux reports twice the size that was asked for (`socket(7)`).
    pub receive_buffer: u64,
    /// Its send buffer in bytes.
    pub send_buffer: u64,
    /// The largest segment that it sends, in bytes.
    pub segment: u64,
    /// Its congestion control.
    pub congestion: String,
}

/// The result of a stream that the client has closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Bytes that arrived.
    pub bytes: u64,
    /// The position of the first wrong byte, if there is one.
    pub wrong_at: Option<u64>,
    /// CPU time of the thread that received and compared them, in nanoseconds.
    pub cpu_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(message: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        send(message, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn every_message_is_received_as_it_was_sent() {
        let greeting = Greeting { role: Role::Stream, block: 8_192, token: u64::MAX };
        assert_eq!(Greeting::receive(&mut &*sent(&greeting)).unwrap(), greeting);
        for request in [Request::Ping, Request::Buffers(1), Request::Connected, Request::Result(u64::MAX)] {
            assert_eq!(receive::<Request>(&mut &*sent(&request)).unwrap(), request);
        }
        let received = |wrong_at| Ok(Some(Received { bytes: 7, wrong_at, cpu_ns: 8 }));
        for answer in [Ok(None), received(None), received(Some(0)), Err("no".to_owned())] {
            assert_eq!(receive::<Answer>(&mut &*sent(&answer)).unwrap(), answer);
        }
    }

    #[test]
    fn greeting_of_other_protocol_or_with_too_large_block_is_refused() {
        let other = [&b"KURABE-TCP9\n"[..], &sent(&Request::Ping)[MAGIC.len()..]].concat();
        for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &other, &sent(&Request::Ping)] {
            assert_eq!(Greeting::receive(&mut &*bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        for block in [0, LARGEST_BLOCK + 1] {
            let greeting = Greeting { role: Role::Echo, block, token: 0 };
            assert!(Greeting::receive(&mut &*sent(&greeting)).is_err(), "{block}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let length = (bytes.len() as u16).to_le_bytes();
            for bytes in [&bytes[..], &[&MAGIC[..], &bytes].concat(), &[&MAGIC[..], &length, &bytes].concat()] {
                let _ = Greeting::receive(&mut &*bytes);
                let _ = receive::<Hello>(&mut &*bytes);
                let _ = receive::<Answer>(&mut &*bytes);
            }
        }
    }
}
