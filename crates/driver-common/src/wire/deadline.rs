//! The deadline of one exchange: a request with its whole answer, or all of connecting.
//!
//! The first receive and the first send of an exchange use the socket's timeout, which equals the time allowed. So an
//! ordinary exchange costs one read of the coarse clock and no system call. Before each further receive or send the
//! remaining time is computed, and the socket's timeout is changed if it has become notably less.
//!
//! A task of a reactor has no timeouts in the kernel, where each costs a timer. It computes the remaining time before it
//! waits, and the reactor has one timer for all.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::Duration;

/// Minimum timeout: the kernel may round a shorter one down to zero, which means no timeout.
const MIN: Duration = Duration::from_millis(1);

/// A direction of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Receive,
    Send,
}

/// The deadline of an exchange, and the socket's current timeouts.
#[derive(Debug)]
pub(super) struct Deadline {
    allowed: Duration,
    /// The time allowed for each exchange after connecting.
    afterwards: Duration,
    /// Start of the exchange, by the coarse monotonic clock.
    began: Duration,
    /// The socket's timeouts of one receive and one send.
    set: [Duration; 2],
    /// Whether this exchange has had a receive and a send.
    used: [bool; 2],
    /// Connecting is one exchange, however many requests it takes.
    connecting: bool,
}

impl Deadline {
    /// Starts the deadline of connecting.
    pub(super) fn connecting(allowed: Duration) -> Self {
        let allowed = allowed.max(MIN);
        Self {
            allowed,
            afterwards: allowed,
            began: now(),
            set: [allowed; 2],
            used: [true; 2],
            connecting: true,
        }
    }

    /// The time allowed for each exchange.
    pub(super) fn allowed(&self) -> Duration {
        self.allowed
    }

    /// The remaining time of the exchange.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if there is none.
    pub(super) fn left(&self) -> io::Result<Duration> {
        let left = self.allowed.saturating_sub(now().saturating_sub(self.began));
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.max(MIN)) }
    }

    /// Sets the time allowed for each exchange after connecting.
    pub(super) fn allow(&mut self, allowed: Duration) {
        self.afterwards = allowed.max(MIN);
    }

    /// Ends connecting: from now on each request has its own deadline.
    pub(super) fn ready(&mut self) {
        self.connecting = false;
        self.allowed = self.afterwards;
    }

    /// Records that the socket's timeouts are those of a whole exchange again.
    pub(super) fn reset(&mut self) {
        self.set = [self.allowed; 2];
    }

    /// Starts an exchange. Returns the timeout to set on both directions, if they must be reset.
    #[inline]
    pub(super) fn begin(&mut self) -> Option<Duration> {
        if self.connecting {
            return None;
        }
        self.began = now();
        self.used = [false; 2];
        if self.set == [self.allowed; 2] {
            return None;
        }
        self.set = [self.allowed; 2];
        Some(self.allowed)
    }

    /// Called before a receive or a send. Returns the timeout to set first, if it must change.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if the exchange's time is over.
    #[inline]
    pub(super) fn before(&mut self, way: Way) -> io::Result<Option<Duration>> {
        if !std::mem::replace(&mut self.used[way as usize], true) {
            return Ok(None);
        }
        let left = self.left()?;
        let set = &mut self.set[way as usize];
        // An eighth more is acceptable, and most answers of several pieces end long before.
        if left + self.allowed / 8 >= *set {
            return Ok(None);
        }
        *set = left;
        Ok(Some(left))
    }

    /// Records that a send may have blocked, so that the first receive uses the remaining time.
    #[inline]
    pub(super) fn sent_much(&mut self) {
        self.used[Way::Receive as usize] = true;
    }
}

/// The coarse monotonic clock: a few milliseconds late, at an eighth of the cost of the fine one.
fn now() -> Duration {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: Duration = Duration::from_secs(8);

    fn ready() -> Deadline {
        let mut deadline = Deadline::connecting(ALLOWED);
        deadline.ready();
        deadline
    }

    #[test]
    fn first_receive_and_first_send_change_no_timeout() {
        let mut deadline = ready();
        for _ in 0..3 {
            assert_eq!(deadline.begin(), None);
            assert_eq!(deadline.before(Way::Send).unwrap(), None);
            assert_eq!(deadline.before(Way::Receive).unwrap(), None);
        }
    }

    #[test]
    fn further_receives_share_the_remaining_time() {
        let mut deadline = ready();
        deadline.begin();
        deadline.before(Way::Receive).unwrap();
        deadline.began -= ALLOWED / 2;
        let left = deadline.before(Way::Receive).unwrap().unwrap();
        assert!(left <= ALLOWED / 2, "{left:?}");
        deadline.began -= ALLOWED;
        assert_eq!(deadline.before(Way::Receive).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(deadline.begin(), Some(ALLOWED));
        assert_eq!(deadline.before(Way::Receive).unwrap(), None);
    }

    #[test]
    fn reply_may_take_longer_than_connecting() {
        let mut deadline = Deadline::connecting(ALLOWED);
        deadline.allow(ALLOWED * 100);
        deadline.ready();
        assert_eq!(deadline.begin(), Some(ALLOWED * 100));
        deadline.before(Way::Receive).unwrap();
        deadline.began -= ALLOWED * 50;
        assert!(deadline.before(Way::Receive).is_ok());
    }

    #[test]
    fn requests_of_connecting_share_one_deadline() {
        let mut deadline = Deadline::connecting(ALLOWED);
        deadline.began -= ALLOWED;
        deadline.begin();
        assert!(deadline.before(Way::Send).is_err() && deadline.before(Way::Receive).is_err());
    }
}
