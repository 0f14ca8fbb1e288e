//! A socket of a reactor.

use crate::scheduler;
use crate::state::{Interest, Shared, current};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, RawFd};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A non-blocking socket that is registered with a reactor. One task at a time waits on it.
///
/// It is registered once, for both directions and edge-triggered, so that a wait needs no system call. An edge that
/// nobody waited for is remembered: see [`Source::may_receive`]. To use the socket on another thread, register it there.
/// Here it still works then, but blocks the thread.
#[derive(Debug)]
pub struct Source<S: AsFd> {
    shared: Arc<Shared>,
    socket: S,
}

impl<S: AsFd> Source<S> {
    /// Registers a non-blocking socket with the reactor of this thread; `None` on an ordinary thread.
    ///
    /// # Errors
    /// That of the kernel, such as a limit of watches.
    pub fn new(socket: S) -> io::Result<Option<Self>> {
        if current() == 0 {
            return Ok(None);
        }
        let Some(shared) = scheduler::shared() else { return Ok(None) };
        let fd = socket.as_fd().as_raw_fd();
        scheduler::with_state(shared.id, |state| state.reset_slot(fd));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&shared.epoll, &socket, EventData::new_u64(fd as u64), flags)?;
        Ok(Some(Self { shared, socket }))
    }

    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The number of its reactor, to compare with [`current`].
    pub fn reactor(&self) -> u64 {
        self.shared.id
    }

    fn fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }

    /// Whether something may have arrived that no task has waited for since. If not, and all that arrived earlier was
    /// received, a task that waits misses nothing.
    pub fn may_receive(&self) -> bool {
        scheduler::with_state(self.shared.id, |state| state.may_receive(self.fd())).unwrap_or(true)
    }

    /// Suspends the task until the kernel reports the socket, which may be for no reason. Where no task of its reactor
    /// runs, or the task unwinds, it blocks the thread.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) after this time.
    pub fn wait(&self, interest: Interest, left: Duration) -> io::Result<()> {
        scheduler::wait_for_socket(self.shared.id, self.fd(), interest, left)
            .unwrap_or_else(|| wait_blocking(&self.socket, interest, left))
    }
}

impl<S: AsFd> Drop for Source<S> {
    fn drop(&mut self) {
        // An error means that the socket is not registered any more.
        let _ = epoll::delete(&self.shared.epoll, &self.socket);
    }
}

/// Blocks the thread until a socket is ready.
///
/// # Errors
/// [`TimedOut`](io::ErrorKind::TimedOut) after this time.
pub fn wait_blocking(socket: &impl AsFd, interest: Interest, left: Duration) -> io::Result<()> {
    let flags = match interest {
        Interest::Receive => PollFlags::IN,
        Interest::Send => PollFlags::OUT,
        Interest::Either => PollFlags::IN | PollFlags::OUT,
    };
    let until = Instant::now() + left;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) as _ };
        match poll(&mut [PollFd::new(socket, flags)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
