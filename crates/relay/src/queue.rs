//! A socket that never waits.

use crate::stream::Stream;
use std::io::{self, ErrorKind};
use std::net::Shutdown;

/// A socket whose writes never wait: what the other end does not take yet is kept.
#[derive(Debug)]
pub struct Queue {
    stream: Stream,
    unsent: Vec<u8>,
    /// Whether nothing comes after what is kept.
    is_last: bool,
}

impl Queue {
    pub(crate) fn new(stream: Stream) -> io::Result<Self> {
        stream.never_wait()?;
        Ok(Self { stream, unsent: Vec::new(), is_last: false })
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = if self.unsent.is_empty() { send(&self.stream, bytes)? } else { 0 };
        self.unsent.extend_from_slice(bytes.get(sent..).unwrap_or_default());
        Ok(bytes.len())
    }

    /// Sends what is kept, as far as the other end takes it. If it is gone, nothing is kept any more.
    pub(crate) fn send_queued(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let sent = send(&self.stream, &self.unsent).inspect_err(|_| self.unsent = Vec::new())?;
        self.unsent.drain(..sent);
        if self.unsent.is_empty() {
            self.clear();
            if self.is_last {
                self.finish();
            }
        }
        Ok(())
    }

    /// Closes the direction to the other end once what is kept was sent.
    pub(crate) fn finish(&mut self) {
        self.is_last = true;
        if self.unsent.is_empty() {
            self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Forgets what is kept.
    pub(crate) fn clear(&mut self) {
        self.unsent = Vec::new();
    }
}

/// Sends what the other end takes at once, and returns how much that was.
fn send(stream: &Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        match stream.send(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(more) => sent += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use crate::Socket;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn end_comes_after_all_that_was_written_before_it() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut here = Socket::Plain(here.into()).queued().unwrap();
        let sent = vec![7; 3_000_000];
        here.write_all(&sent).unwrap();
        assert!(here.unsent() > 0, "the other end reads nothing yet");
        here.finish();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            there.read_to_end(&mut received).unwrap();
            received
        });
        while here.unsent() > 0 {
            here.send_queued().unwrap();
        }
        assert!(reader.join().unwrap() == sent);
    }
}
