//! A point at which a run waits, for tests that kill or interrupt something while it goes on.

use crate::signals;
use std::path::PathBuf;
use std::time::Duration;

/// The variable that asks for a pause: `3:FILE` waits after the third trial until the file exists, or until the run is
/// stopped. Only builds with debug assertions read it.
const PAUSE: &str = "KURABE_PAUSE";
/// The interval of looking for the file.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A pause after a trial.
pub(super) struct Pause {
    /// The trials until then.
    left: u64,
    file: PathBuf,
}

impl Pause {
    /// The pause that is asked for, if any.
    pub(super) fn asked_for() -> Option<Self> {
        if !cfg!(debug_assertions) {
            return None;
        }
        let text = std::env::var(PAUSE).ok()?;
        let (left, file) = text.split_once(':')?;
        Some(Self { left: left.parse().ok()?, file: PathBuf::from(file) })
    }

    /// Counts a recorded trial, and waits if it is the one.
    pub(super) fn after_trial(&mut self) {
        self.left = self.left.wrapping_sub(1);
        while self.left == 0 && !self.file.exists() && !signals::stopped() {
            std::thread::sleep(ASK_EVERY);
        }
    }
}
