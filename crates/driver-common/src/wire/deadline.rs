//! The time that one exchange may take: a request with its whole answer, or all of connecting.
//!
//! The first receive and the first send of an exchange run under the socket's own time-out, which equals the time
//! allowed, so that an ordinary exchange costs one read of the coarse clock and no system call. Where more is to be
//! received or sent, what is left is looked at before each, and told to the socket where it has become notably less.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::Duration;

/// The kernel rounds shorter time-outs down to none at all.
const LEAST: Duration = Duration::from_millis(1);

/// A direction of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Receive,
    Send,
}

/// One exchange's time, and what the socket's time-outs are.
#[derive(Debug)]
pub(super) struct Deadline {
    allowed: Duration,
    /// When the exchange began, by the coarse monotonic clock.
    began: Duration,
    /// The longest that the kernel lets one receive and one send take.
    set: [Duration; 2],
    /// Whether one receive and one send were made in this exchange.
    used: [bool; 2],
    /// Connecting is one exchange, however many requests it takes.
    connecting: bool,
}

impl Deadline {
    /// Begins to connect.
    pub(super) fn connecting(allowed: Duration) -> Self {
        let allowed = allowed.max(LEAST);
        Self { allowed, began: now(), set: [allowed; 2], used: [true; 2], connecting: true }
    }

    /// The time allowed for each exchange.
    pub(super) fn allowed(&self) -> Duration {
        self.allowed
    }

    /// What is left of the exchange's time.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) where none is.
    pub(super) fn left(&self) -> io::Result<Duration> {
        let left = self.allowed.saturating_sub(now().saturating_sub(self.began));
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.max(LEAST)) }
    }

    /// The connection is ready: from now on each request has its own time.
    pub(super) fn ready(&mut self) {
        self.connecting = false;
    }

    /// Begins an exchange. Gives the directions whose time-outs are to be set to the time allowed again.
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

    /// To be called before a receive or a send. Gives the time-out to set first, where it is to be another one.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) where the exchange's time is over.
    #[inline]
    pub(super) fn before(&mut self, way: Way) -> io::Result<Option<Duration>> {
        if !std::mem::replace(&mut self.used[way as usize], true) {
            return Ok(None);
        }
        let left = self.left()?;
        let set = &mut self.set[way as usize];
        // An eighth more does no harm, and most answers of several pieces end long before.
        if left + self.allowed / 8 >= *set {
            return Ok(None);
        }
        *set = left;
        Ok(Some(left))
    }

    /// A send may have waited: the time before the first receive counts.
    #[inline]
    pub(super) fn sent_much(&mut self) {
        self.used[Way::Receive as usize] = true;
    }
}

/// The coarse monotonic clock: some milliseconds late, and an eighth of the price of the fine one.
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
    fn first_receive_and_first_send_ask_for_nothing() {
        let mut deadline = ready();
        for _ in 0..3 {
            assert_eq!(deadline.begin(), None);
            assert_eq!(deadline.before(Way::Send).unwrap(), None);
            assert_eq!(deadline.before(Way::Receive).unwrap(), None);
        }
    }

    #[test]
    fn further_receives_share_what_is_left_and_the_next_exchange_has_all_again() {
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
    fn requests_of_connecting_share_one_time() {
        let mut deadline = Deadline::connecting(ALLOWED);
        deadline.began -= ALLOWED;
        deadline.begin();
        assert!(deadline.before(Way::Send).is_err() && deadline.before(Way::Receive).is_err());
    }
}
