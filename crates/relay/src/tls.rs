//! TLS on a socket, of which one thread reads while another writes.
//!
//! No lock that both need is held while one of them waits for the other end: an end may send much before it reads, in both
//! directions at once.

use crate::lock::lock;
use crate::stream::Stream;
use rustls::Connection;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// The size of what is received at once, in bytes: some records of TLS.
const RECEIVED: usize = 64 * 1024;

/// How long a handshake waits for the other end. While one end is waited for, nobody sees whether the other one closes.
const WAITING: Duration = Duration::from_secs(30);

/// An encrypted socket.
pub struct Tls {
    stream: Stream,
    connection: Mutex<Connection>,
    /// Held by who reads, also while it waits.
    input: Mutex<Input>,
    /// What is encrypted and has to be sent. Held by who sends, also while it waits: records must not change places.
    output: Mutex<Vec<u8>>,
}

/// What was received and is not decrypted yet: a part of `bytes`.
struct Input {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({:?})", self.stream)
    }
}

impl Tls {
    /// Makes the handshake, of which the other end has sent `received` already.
    ///
    /// # Errors
    /// If it fails, or the other end closes, or does not answer; after the alert was sent.
    pub(crate) fn shake_hands(stream: Stream, connection: Connection, received: Vec<u8>) -> io::Result<Self> {
        let input = Input { from: 0, to: received.len(), bytes: received };
        let (connection, output) = (Mutex::new(connection), Mutex::default());
        let tls = Self { stream, connection, input: Mutex::new(input), output };
        tls.stream.limit(Some(WAITING))?;
        let mut input = lock(&tls.input);
        loop {
            tls.flush()?;
            let mut connection = lock(&tls.connection);
            if !connection.is_handshaking() {
                break;
            }
            let taken = input.feed(&mut connection);
            drop(connection);
            if taken.is_err() {
                // The other end learns why, if it still listens.
                let _ = tls.flush();
            }
            if !taken? && input.receive(&tls.stream)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        drop(input);
        tls.stream.limit(None)?;
        Ok(tls)
    }

    /// Reads what was decrypted; 0 bytes if the other end sends nothing any more. Who closes the socket without saying so has
    /// ended too: many clients do.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = lock(&self.input);
        loop {
            let read = self.decrypted(&mut input, buffer);
            // Answers of TLS itself, such as alerts. If they cannot be sent, who writes will notice.
            let _ = self.flush();
            if let Some(read) = read? {
                return Ok(read);
            }
            if input.receive(&self.stream)? == 0 {
                return Ok(0);
            }
        }
    }

    /// Decrypts what was received, as much as there is room for; `None` if that gives nothing yet.
    fn decrypted(&self, input: &mut Input, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut connection = lock(&self.connection);
        let mut filled = 0;
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            let result = match connection.reader().read(room) {
                Ok(0) => return Ok(Some(filled)),
                Ok(read) => {
                    filled += read;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => input.feed(&mut connection),
                Err(error) => Err(error),
            };
            match result {
                Ok(true) => {}
                // An error comes again, once what was before it is read.
                Ok(false) | Err(_) if filled > 0 => break,
                Ok(false) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(filled))
    }

    /// Encrypts and sends the beginning of `bytes`, and says how much that is.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.send(lock(&self.output), bytes)?;
        self.flush()?;
        Ok(taken)
    }

    /// Sends what TLS itself has to say. If somebody else sends, it does this next.
    fn flush(&self) -> io::Result<()> {
        while lock(&self.connection).wants_write() {
            let output = match self.output.try_lock() {
                Ok(output) => output,
                Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) => break,
            };
            self.send(output, &[])?;
        }
        Ok(())
    }

    /// Who has sent must [flush](Self::flush) once it holds the lock no longer.
    fn send(&self, mut output: MutexGuard<'_, Vec<u8>>, bytes: &[u8]) -> io::Result<usize> {
        let taken = {
            let mut connection = lock(&self.connection);
            let taken = if bytes.is_empty() { 0 } else { connection.writer().write(bytes)? };
            while connection.wants_write() {
                connection.write_tls(&mut *output)?;
            }
            taken
        };
        let mut rest = output.as_slice();
        while !rest.is_empty() {
            match self.stream.send(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        output.clear();
        Ok(taken)
    }

    /// Closes one direction or both. Only an end of what is sent is said to the other end: of a connection that fails it must
    /// not look complete.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        if how == Shutdown::Write {
            lock(&self.connection).send_close_notify();
            // It may be closed already.
            let _ = self.flush();
        }
        self.stream.shutdown(how);
    }
}

impl AsFd for Tls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Input {
    /// Gives some of it to TLS; `false` if there is none.
    fn feed(&mut self, connection: &mut Connection) -> io::Result<bool> {
        let mut rest = self.bytes.get(self.from..self.to).unwrap_or_default();
        if rest.is_empty() {
            return Ok(false);
        }
        self.from += connection.read_tls(&mut rest)?;
        connection.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(true)
    }

    /// Waits for more, and says how much it is.
    fn receive(&mut self, stream: &Stream) -> io::Result<usize> {
        self.bytes.resize(RECEIVED, 0);
        (self.from, self.to) = (0, 0);
        self.to = loop {
            match stream.receive(&mut self.bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received?,
            }
        };
        Ok(self.to)
    }
}

#[cfg(test)]
mod tests;
