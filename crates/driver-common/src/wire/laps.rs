//! A stopwatch for the parts of connecting.

use std::time::{Duration, Instant};

/// Measures the durations of successive parts.
pub struct Laps(Instant);

impl Laps {
    /// Starts the stopwatch.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start or the last lap.
    pub fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}
