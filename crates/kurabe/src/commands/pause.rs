//! A point at which a run waits, for tests that kill or interrupt something while it goes on.

use crate::signals;
use std::path::PathBuf;
use std::time::Duration;

/// The variable that asks for pauses: `3:FILE` makes `FILE.waits` after the third trial that counts, and waits until `FILE` exists or the
/// run is stopped; several are separated by commas. Only builds with debug assertions read it.
const PAUSE: &str = "KURABE_PAUSE";
/// The interval of looking for the file.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Pauses after trials.
pub(super) struct Pauses {
    /// The trials so far.
    trials: u64,
    /// After which trial, and until which file exists.
    asked: Vec<(u64, PathBuf)>,
}

impl Pauses {
    /// The pauses that are asked for.
    pub(super) fn asked_for() -> Self {
        let text = if cfg!(debug_assertions) { std::env::var(PAUSE).ok() } else { None };
        let parse = |one: &str| {
            let (trial, file) = one.split_once(':')?;
            Some((trial.parse().ok()?, PathBuf::from(file)))
        };
        Self { trials: 0, asked: text.iter().flat_map(|text| text.split(',')).filter_map(parse).collect() }
    }

    /// Counts a trial, and waits if it is one of those.
    pub(super) fn after_trial(&mut self) {
        self.trials += 1;
        for (_, file) in self.asked.iter().filter(|(trial, _)| *trial == self.trials) {
            // Who cannot be told does not let the run go on either, which fails the test.
            let _ = std::fs::write(file.with_extension("waits"), "");
            while !file.exists() && !signals::stopped() {
                std::thread::sleep(ASK_EVERY);
            }
        }
    }
}
