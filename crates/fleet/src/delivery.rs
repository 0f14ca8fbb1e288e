//! Delivers each numbered message exactly once and in order, over a transport that may lose what was in flight when it
//! was restarted.
//!
//! A sender keeps what the other side has not confirmed, and sends it again after a while. A receiver takes only the
//! next number. A pipe loses nothing: there, nothing is ever sent again.

use crate::message::Frame;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// After this time an unconfirmed message is sent again: two signs of life, which confirm, have not done so.
const AGAIN: Duration = Duration::from_millis(1_200);

/// One side's state.
#[derive(Debug)]
pub(crate) struct Delivery<M> {
    sent: u64,
    received: u64,
    unconfirmed: VecDeque<(u64, M, Instant)>,
}

impl<M> Default for Delivery<M> {
    fn default() -> Self {
        Self { sent: 0, received: 0, unconfirmed: VecDeque::new() }
    }
}

impl<M: Clone> Delivery<M> {
    /// A frame for a message that must arrive.
    pub(crate) fn numbered(&mut self, message: M, now: Instant) -> Frame<M> {
        self.sent += 1;
        self.unconfirmed.push_back((self.sent, message.clone(), now));
        Frame { number: self.sent, seen: self.received, message }
    }

    /// A frame for a message that may be lost.
    pub(crate) fn unnumbered(&self, message: M) -> Frame<M> {
        Frame { number: 0, seen: self.received, message }
    }

    /// What is to be sent again.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Frame<M>> {
        let seen = self.received;
        let late = self.unconfirmed.iter_mut().filter(|(.., at)| now.saturating_duration_since(*at) >= AGAIN);
        let again = |(number, message, at): &mut (u64, M, Instant)| {
            *at = now;
            Frame { number: *number, seen, message: message.clone() }
        };
        late.map(again).collect()
    }

    /// Whether a received frame is to be processed: it is the next one, or has no number. `seen` is the number that it
    /// confirms.
    pub(crate) fn accept(&mut self, number: u64, seen: u64) -> bool {
        while self.unconfirmed.front().is_some_and(|(number, ..)| *number <= seen) {
            self.unconfirmed.pop_front();
        }
        if number == self.received + 1 {
            self.received = number;
            return true;
        }
        number == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::rng::Rng;

    #[test]
    fn lossy_transport_delivers_everything_once_and_in_order() {
        let mut rng = Rng::new(11);
        let (mut ours, mut theirs) = (Delivery::<u64>::default(), Delivery::<u64>::default());
        let mut now = Instant::now();
        let mut got = Vec::new();
        for step in 0..400 {
            let mut line = Vec::new();
            if step < 100 {
                line.push(ours.numbered(step, now));
            }
            now += Duration::from_millis(300);
            line.extend(ours.due(now));
            for frame in line {
                // A third is lost, and a third arrives twice.
                for _ in 0..rng.below(3) {
                    if theirs.accept(frame.number, frame.seen) {
                        got.push(frame.message);
                    }
                }
            }
            let beat = theirs.unnumbered(0);
            if rng.below(2) == 0 {
                assert!(ours.accept(beat.number, beat.seen));
            }
        }
        assert_eq!(got, (0..100).collect::<Vec<_>>());
        assert!(ours.accept(0, 100) && ours.unconfirmed.is_empty());
    }

    #[test]
    fn confirmed_message_is_not_sent_again() {
        let now = Instant::now();
        let mut ours = Delivery::default();
        assert_eq!(ours.numbered('a', now).number, 1);
        ours.numbered('b', now);
        assert!(ours.due(now).is_empty());
        ours.accept(0, 1);
        let again: Vec<char> = ours.due(now + AGAIN).into_iter().map(|frame| frame.message).collect();
        assert_eq!(again, ['b']);
        assert!(ours.due(now + AGAIN).is_empty(), "not twice at once");
    }
}
