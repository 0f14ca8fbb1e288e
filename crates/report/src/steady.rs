//! Whether the trials of a cell were steady.

use crate::format::{capital, list, of_cells, percent};
use crate::summary::{CellFigures, Steady};
use crate::words::Words;
use kurabe_core::run::Measurement;
use kurabe_stats::median;
use kurabe_stats::steady::{Steadiness, steadiness};

/// What the windows of a cell's trials show; `None` where no trial has any.
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
    /// Whether most trials were not.
    pub fn is_never(&self) -> bool {
        self.never * 2 > self.trials
    }

    /// Whether most trials became so after a beginning that differs.
    fn is_late(&self) -> bool {
        !self.is_never() && (self.never + self.late) * 2 > self.trials
    }
}

/// What a reader must know of cells whose trials were not steady: one sentence for each kind and operation.
pub(crate) fn notes(words: &Words, cells: &[CellFigures]) -> Vec<String> {
    let mut notes = Vec::new();
    for operation in &words.operations {
        let here: Vec<(&CellFigures, &Steady)> = cells
            .iter()
            .filter(|cell| cell.operation == operation.name && !cell.baseline_repeat)
            .filter_map(|cell| Some((cell, cell.steady.as_ref()?)))
            .collect();
        let name = capital(&words.plural(&operation.name));
        let on = |cells: &[&(&CellFigures, &Steady)]| {
            let mut names: Vec<&str> = cells
                .iter()
                .filter_map(|(cell, _)| Some(words.targets.get(cell.target_index)?.as_str()))
                .collect();
            names.dedup();
            if words.several_targets() { format!(" on {}", list(&names)) } else { String::new() }
        };
        let never: Vec<_> = here.iter().filter(|(_, steady)| steady.is_never()).collect();
        let far = |change: f64| change.max(f64::MIN_POSITIVE).ln().abs();
        let most = never.iter().filter_map(|(_, steady)| steady.change);
        let most = most.max_by(|a, b| far(*a).total_cmp(&far(*b)));
        if let Some(change) = most {
            let (word, by) = if change < 1.0 { ("fell", 1.0 - change) } else { ("rose", change - 1.0) };
            notes.push(format!(
                "{name}{} were never steady{} (marked ~): throughput {word} by up to {} from the first quarter of a trial \
                 to its last. Longer trials (--duration) show where it ends.",
                on(&never),
                of_cells(never.len(), here.len()),
                percent(by)
            ));
        }
        let late: Vec<_> = here.iter().filter(|(_, steady)| steady.is_late()).collect();
        if !late.is_empty() {
            notes.push(format!(
                "{name}{} became steady only after warming up had ended{}: their figures hold the beginning too. Longer \
                 trials (--duration) make its part smaller.",
                on(&late),
                of_cells(late.len(), here.len())
            ));
        }
    }
    notes
}
