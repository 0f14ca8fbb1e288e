//! The memory of a server that keeps values in a limited memory, such as a cache: what is free, and what it does when
//! nothing is.

use crate::error::Result;

/// The memory limit of a server, and its use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreMemory {
    /// The most that the server uses, in bytes.
    pub limit: u64,
    /// The setting of the limit, with its value as the server prints it: `maxmemory = 62914560`.
    pub set_by: String,
    /// The part of the limit that new values can have, in bytes.
    pub free: u64,
    /// Values in the server, of anybody.
    pub keys: u64,
    /// Of these, Kurabe's own entries, such as its ownership table.
    pub own_keys: u64,
    /// Values evicted since the server's start.
    pub evicted: u64,
    /// What the server does with a write when its memory is full, as a clause: "evicts any key (maxmemory-policy =
    /// allkeys-lru)".
    pub when_full: String,
    /// Memory that a value needs besides its bytes: key, header, entry in a table.
    pub value_overhead: u64,
}

impl StoreMemory {
    /// Keys of other users.
    pub fn foreign_keys(&self) -> u64 {
        self.keys.saturating_sub(self.own_keys)
    }

    /// The memory that values need, in bytes. It is generous: allocators round sizes up.
    pub fn needed(&self, values: u64, bytes: u64) -> u64 {
        let rounded = bytes.saturating_add(bytes / 4);
        rounded.saturating_add(values.saturating_mul(self.value_overhead))
    }
}

/// A connection that reads the memory of one server.
pub trait MemoryProbe: Send {
    /// The server's memory now; `None` if it has no limit. `value_bytes` is the size of the values that are going to be
    /// stored, since some servers divide their memory by size.
    fn read(&mut self, value_bytes: u64) -> Result<Option<StoreMemory>>;
}

/// A server of a target whose memory is limited.
pub struct LimitedServer {
    /// What it is to the target, as in "the cache"; empty for the target's own server.
    pub role: &'static str,
    /// Reads its memory.
    pub probe: Box<dyn MemoryProbe>,
}
