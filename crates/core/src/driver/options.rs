//! How a session is opened.

use crate::compression::Compression;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Time limit of connecting, and of each reply after that.
    pub timeout: Duration,
    /// Whether a reply may take as long as the server works, such as on an index: only connecting has a time limit.
    pub long_replies: bool,
    /// The largest expected reply, in bytes. A reply that exceeds it by more than a fixed amount fails.
    pub largest_answer: u64,
    /// How the connection compresses what both ends send.
    pub compression: Compression,
    /// What its statements may do.
    pub access: Access,
    /// The trial to which the session belongs, or 0: [`statements`](crate::statements) ends what it runs if that fails.
    pub trial: u64,
}

/// What the statements of a session may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Whatever its user may do.
    #[default]
    ReadWrite,
    /// Read: in every transaction of the session, the server refuses what changes data, with an error of kind
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly). Only if [`Capabilities::read_only_sessions`](super::Capabilities::read_only_sessions) says so. A server's
    /// read-only transactions still allow some side effects, such as locks.
    ReadOnly,
}

/// The values of [`ConnectOptions::default`], in nanoseconds and bytes.
static TIMEOUT: AtomicU64 = AtomicU64::new(30_000_000_000);
static LARGEST_ANSWER: AtomicU64 = AtomicU64::new(0);
static LONG_REPLIES: AtomicBool = AtomicBool::new(false);

/// The time limit of a reply that may take as long as the server works.
const LONG: Duration = Duration::from_secs(30 * 24 * 3_600);

impl ConnectOptions {
    /// The default options with another time limit.
    pub fn within(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Makes its limits the defaults of this process. A program calls it once, before it connects to anything.
    pub fn make_default(self) {
        TIMEOUT.store(u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        LARGEST_ANSWER.store(self.largest_answer, Ordering::Relaxed);
        LONG_REPLIES.store(self.long_replies, Ordering::Relaxed);
    }

    /// The time limit of a reply.
    pub fn reply_timeout(&self) -> Duration {
        if self.long_replies { LONG } else { self.timeout }
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_nanos(TIMEOUT.load(Ordering::Relaxed)),
            largest_answer: LARGEST_ANSWER.load(Ordering::Relaxed),
            long_replies: LONG_REPLIES.load(Ordering::Relaxed),
            compression: Compression::Off,
            access: Access::ReadWrite,
            trial: 0,
        }
    }
}
