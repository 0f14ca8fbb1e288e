//! The messages between both ends. Numbers are little-endian, and a text is its length in one byte and UTF-8.

use std::io::{self, Read, Write};

/// The first bytes of both ends: the protocol and its version.
pub const MAGIC: &[u8; 12] = b"KURABE-TCP1\n";
/// The largest block, in bytes. Each connection has two buffers of its length at the listener.
pub const LARGEST_BLOCK: u64 = 4 << 20;
/// The port of a listener that the user starts without one.
pub const PORT: u16 = 7007;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Requests about the others.
    Control,
    /// Blocks of one length, one way.
    Stream,
    /// Blocks of one length, each sent back.
    Echo,
}

/// The first message of a connection, from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub role: Role,
    /// The length of its blocks, in bytes; 0 for control.
    pub block: u64,
    /// By which the client asks for its result; 0 if it does not.
    pub token: u64,
}

impl Greeting {
    /// Sends it in one write.
    pub fn write(self, to: &mut impl Write) -> io::Result<()> {
        let role = match self.role {
            Role::Control => b'c',
            Role::Stream => b's',
            Role::Echo => b'e',
        };
        to.write_all(&[&MAGIC[..], &[role], &self.block.to_le_bytes(), &self.token.to_le_bytes()].concat())
    }

    /// Receives it.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) for other bytes; or as for reading.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        magic(from)?;
        let role = match byte(from)? {
            b'c' => Role::Control,
            b's' => Role::Stream,
            b'e' => Role::Echo,
            _ => return Err(invalid("unknown role of a connection")),
        };
        let (block, token) = (number(from)?, number(from)?);
        let fits = if role == Role::Control { block == 0 } else { (1..=LARGEST_BLOCK).contains(&block) };
        if fits { Ok(Self { role, block, token }) } else { Err(invalid("length of blocks out of range")) }
    }
}

/// What a listener reports of itself, on each control connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl Hello {
    /// Sends it in one write.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u64::from(self.sized_port).to_le_bytes());
        bytes.extend(self.largest_receive.to_le_bytes());
        for text in [&self.version, &self.kernel, &self.congestion] {
            push_text(&mut bytes, text);
        }
        to.write_all(&bytes)
    }

    /// Receives it.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) for other bytes; or as for reading.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        magic(from)?;
        let sized_port = number(from)?.try_into().map_err(|_| invalid("invalid port"))?;
        Ok(Self {
            sized_port,
            largest_receive: number(from)?,
            version: text(from)?,
            kernel: text(from)?,
            congestion: text(from)?,
        })
    }
}

/// A request on a control connection. Each has one answer: a [`Verdict`], and after it a [`Received`] if that was asked
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Request {
    /// Sends it in one write.
    pub fn write(self, to: &mut impl Write) -> io::Result<()> {
        let (kind, value) = match self {
            Self::Ping => (b'p', 0),
            Self::Buffers(bytes) => (b'b', bytes),
            Self::Connected => (b'c', 0),
            Self::Result(token) => (b'r', token),
        };
        to.write_all(&[&[kind][..], &value.to_le_bytes()].concat())
    }

    /// Receives it; `None` at the end of the connection.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) for other bytes; or as for reading.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let kind = match byte(from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            kind => kind?,
        };
        let value = number(from)?;
        match kind {
            b'p' => Ok(Some(Self::Ping)),
            b'b' => Ok(Some(Self::Buffers(value))),
            b'c' => Ok(Some(Self::Connected)),
            b'r' => Ok(Some(Self::Result(value))),
            _ => Err(invalid("unknown request")),
        }
    }
}

/// Whether the listener did what was requested; if not, why, as a clause.
pub type Verdict = Result<(), String>;

/// Sends a verdict in one write.
pub fn write_verdict(verdict: &Verdict, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![u8::from(verdict.is_ok())];
    if let Err(why) = verdict {
        push_text(&mut bytes, why);
    }
    to.write_all(&bytes)
}

/// Receives a verdict.
///
/// # Errors
/// [`InvalidData`](io::ErrorKind::InvalidData) for other bytes; or as for reading.
pub fn read_verdict(from: &mut impl Read) -> io::Result<Verdict> {
    match byte(from)? {
        1 => Ok(Ok(())),
        0 => text(from).map(Err),
        _ => Err(invalid("unknown answer")),
    }
}

/// What the listener reports of a connection that was just made, as its kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl Connected {
    /// Sends it in one write.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        for value in [self.receive_buffer, self.send_buffer, self.segment] {
            bytes.extend(value.to_le_bytes());
        }
        push_text(&mut bytes, &self.congestion);
        to.write_all(&bytes)
    }

    /// Receives it.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) for other bytes; or as for reading.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        magic(from)?;
        let (receive_buffer, send_buffer) = (number(from)?, number(from)?);
        Ok(Self { receive_buffer, send_buffer, segment: number(from)?, congestion: text(from)? })
    }
}

/// The result of a stream that the client has closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes that arrived.
    pub bytes: u64,
    /// The position of the first wrong byte, if there is one.
    pub wrong_at: Option<u64>,
    /// CPU time of the thread that received and compared them, in nanoseconds.
    pub cpu_ns: u64,
}

impl Received {
    /// Sends it in one write.
    pub fn write(self, to: &mut impl Write) -> io::Result<()> {
        let values = [self.bytes, self.wrong_at.map_or(0, |at| at + 1), self.cpu_ns];
        to.write_all(&values.map(u64::to_le_bytes).concat())
    }

    /// Receives it.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (bytes, wrong_at) = (number(from)?, number(from)?.checked_sub(1));
        Ok(Self { bytes, wrong_at, cpu_ns: number(from)? })
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn magic(from: &mut impl Read) -> io::Result<()> {
    let mut bytes = [0; MAGIC.len()];
    from.read_exact(&mut bytes)?;
    if bytes == *MAGIC { Ok(()) } else { Err(invalid("the other end does not speak Kurabe's protocol")) }
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn text(from: &mut impl Read) -> io::Result<String> {
    let mut bytes = vec![0; usize::from(byte(from)?)];
    from.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| invalid("a text is not UTF-8"))
}

/// Appends a text, of which at most 255 bytes are sent.
fn push_text(bytes: &mut Vec<u8>, text: &str) {
    let most = text.len().min(usize::from(u8::MAX));
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let text = &text[..end];
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn every_message_is_received_as_it_was_sent() {
        for role in [Role::Control, Role::Stream, Role::Echo] {
            let block = if role == Role::Control { 0 } else { 8_192 };
            let greeting = Greeting { role, block, token: 9 };
            assert_eq!(Greeting::read(&mut &*sent(|to| greeting.write(to))).unwrap(), greeting);
        }
        let hello = Hello {
            sized_port: 60_000,
            largest_receive: 212_992,
            version: "1".to_owned(),
            kernel: "é".repeat(200),
            congestion: String::new(),
        };
        let received = Hello::read(&mut &*sent(|to| hello.write(to))).unwrap();
        // A text is cut at a character.
        assert_eq!(received, Hello { kernel: "é".repeat(127), ..hello });
        for request in [Request::Ping, Request::Buffers(1), Request::Connected, Request::Result(u64::MAX)] {
            assert_eq!(Request::read(&mut &*sent(|to| request.write(to))).unwrap(), Some(request));
        }
        assert_eq!(Request::read(&mut &b""[..]).unwrap(), None);
        for verdict in [Ok(()), Err("no".to_owned())] {
            assert_eq!(read_verdict(&mut &*sent(|to| write_verdict(&verdict, to))).unwrap(), verdict);
        }
        let connected =
            Connected { receive_buffer: 1, send_buffer: 2, segment: 3, congestion: "bbr".to_owned() };
        assert_eq!(Connected::read(&mut &*sent(|to| connected.write(to))).unwrap(), connected);
        for wrong_at in [None, Some(0), Some(5)] {
            let received = Received { bytes: 7, wrong_at, cpu_ns: 8 };
            assert_eq!(Received::read(&mut &*sent(|to| received.write(to))).unwrap(), received);
        }
    }

    #[test]
    fn greeting_of_other_protocol_or_with_too_large_block_is_refused() {
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n   "[..],
            b"KURABE-TCP9\ns\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            assert_eq!(Greeting::read(&mut &*bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        for block in [0, LARGEST_BLOCK + 1] {
            let greeting = Greeting { role: Role::Echo, block, token: 0 };
            assert!(Greeting::read(&mut &*sent(|to| greeting.write(to))).is_err(), "{block}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let framed = [&MAGIC[..], &bytes].concat();
            for bytes in [&bytes, &framed] {
                let _ = Greeting::read(&mut &**bytes);
                let _ = Hello::read(&mut &**bytes);
                let _ = Request::read(&mut &**bytes);
                let _ = Connected::read(&mut &**bytes);
                let _ = Received::read(&mut &**bytes);
                let _ = read_verdict(&mut &**bytes);
            }
        }
    }
}
