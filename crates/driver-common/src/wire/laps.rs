//! A watch for the parts of connecting.

use std::time::{Duration, Instant};

/// Tells how long each part took, one after the other.
pub struct Laps(Instant);

impl Laps {
    /// Starts.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start or the last lap.
    pub fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}
