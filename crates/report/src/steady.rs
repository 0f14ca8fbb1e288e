//! Whether the trials of a cell were steady.

use crate::cell::Steady;
use kurabe_core::run::Measurement;
use kurabe_stats::median;
use kurabe_stats::steady::{Steadiness, steadiness};

/// Whether the windows of a cell's trials were steady; `None` if no trial has any.
pub(crate) fn of_trials<'a>(measured: impl Iterator<Item = &'a Measurement>) -> Option<Steady> {
    let mut changes = Vec::new();
    let mut steady = Steady { trials: 0, never: 0, late: 0, change: None };
    for measurement in measured {
        let windows: Vec<f64> = measurement.windows.iter().map(|n| *n as f64).collect();
        let Some(found) = steadiness(&windows) else { continue };
        steady.trials += 1;
        match found {
            Steadiness::Throughout => {}
            Steadiness::From(_) => steady.late += 1,
            Steadiness::Never(change) => {
                steady.never += 1;
                changes.push(change);
            }
        }
    }
    steady.change = median(&changes).filter(|change| change.is_finite());
    (steady.trials > 0).then_some(steady)
}

impl Steady {
    /// Whether most trials were never steady.
    pub fn is_never(&self) -> bool {
        self.never * 2 > self.trials
    }

    /// Whether most trials became steady after a different beginning.
    pub fn is_late(&self) -> bool {
        !self.is_never() && (self.never + self.late) * 2 > self.trials
    }
}
