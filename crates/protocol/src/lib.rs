//! Frames and messages of the protocols of databases: the headers, the constants of tags and commands, and the parts of
//! messages, read where they are. The native clients read answers by it, and `wire` reads both directions by it.
//!
//! The readers of frames allocate nothing. Nothing is kept, and any bytes are taken.

pub mod bytes;
pub mod call;
pub mod command;
pub mod http;
/// memcached's protocol: `protocol.txt` and `proxy.txt` of its source.
pub mod memcached;
/// MongoDB's protocol: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.
pub mod mongodb {
    pub mod bson;
    pub mod command;
    pub mod frame;
}
/// The protocol of MySQL and MariaDB: MySQL Source Code Documentation, "Client/Server Protocol"; MariaDB's documentation,
/// "Clients & Connectors: Protocol".
pub mod mysql {
    pub mod capability;
    pub mod frame;
    pub mod handshake;
    pub mod message;
}
/// PostgreSQL's protocol, version 3: manual, "Frontend/Backend Protocol".
pub mod postgres {
    pub mod frame;
    pub mod message;
}
pub mod resp;
pub mod sql;

/// What received bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<H> {
    /// It is known once there are this many bytes.
    Need(usize),
    Header(H),
    /// No header; the length that it would announce.
    Invalid(u64),
}

/// The header of a frame.
pub trait Header: Copy {
    /// Its length, in bytes.
    const LENGTH: usize;

    /// Reads the header that these bytes begin with.
    fn find(bytes: &[u8]) -> Found<Self>;

    /// The length of the rest of the frame, in bytes.
    fn body(self) -> u64;

    /// Whether the next frame continues the message.
    #[inline]
    fn continues(self) -> bool {
        false
    }
}
