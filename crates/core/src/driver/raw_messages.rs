//! A session's connection as its protocol's messages.

use crate::error::Result;

/// A session that sends messages of its protocol as they are, and shows what arrives.
pub trait RawMessages {
    /// Sends messages, and passes on what arrives, in pieces of any size, until `receive` says that the answer is complete.
    /// `receive` may write further messages into its second argument. Of HTTP it is one request without `Host` and
    /// `Authorization`, which the session adds.
    ///
    /// # Errors
    /// The error of `receive`, or that of the connection, after which the session must not be used.
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()>;

    /// The capability flags of MySQL's protocol that both ends have; 0 for other protocols.
    fn flags(&mut self) -> u32;

    /// The database that each message must name; `None` for protocols whose connections have one.
    fn database(&mut self) -> Option<&str>;
}

/// Reads a piece of an answer. Returns whether the answer is complete.
pub type Receive<'a> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool> + 'a;
