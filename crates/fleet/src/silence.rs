//! Silence by the clock.
//!
//! Another side is silent if nothing of it was received for [`SILENCE`](crate::SILENCE), however many others send. Two things
//! look like silence and are none: what was received and waits to be handled, so that the clock is that of the messages that
//! were handled; and a standstill of this process itself, which is measured here and given to all others.

use std::time::{Duration, Instant};

/// A loop that makes no turn for this long stood still. Each of its turns takes much less.
const STILL: Duration = Duration::from_millis(700);

/// How long this process stood still, for a loop that looks at it in each turn.
#[derive(Debug)]
pub(crate) struct Stillness(Instant);

impl Stillness {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// How long it stood still since the last look; zero if it did not.
    pub(crate) fn look(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.0);
        self.0 = now;
        if since >= STILL { since } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_turn_is_a_standstill() {
        let mut stillness = Stillness::new();
        let began = stillness.0;
        let after = |ms| began + Duration::from_millis(ms);
        assert_eq!(stillness.look(after(600)), Duration::ZERO);
        assert_eq!(stillness.look(after(1_200)), Duration::ZERO);
        assert_eq!(stillness.look(after(6_200)), Duration::from_secs(5));
        assert_eq!(stillness.look(after(6_250)), Duration::ZERO);
    }
}
