//! The noise floor: how far a cell is from itself when it is measured twice in each round.

use crate::comparison::paired;
use crate::finding::NoiseFloor;
use crate::summary::{CellFigures, Status};
use kurabe_stats::{IntervalSettings, PairedRatio, mix, noise_floor};

/// What the run's A/A pairs show.
#[derive(Debug, Default)]
pub(crate) struct Noise {
    /// For each pair: target, operation, floor.
    floors: Vec<(usize, String, f64)>,
}

impl Noise {
    /// Compares each repeat with the cell that it repeats.
    pub fn of(cells: &[CellFigures], seed: u64) -> Self {
        let pairs: Vec<(&CellFigures, &CellFigures)> = cells
            .iter()
            .filter(|cell| cell.baseline_repeat && cell.status == Status::Ok)
            .filter_map(|repeat| Some((repeat, original(cells, repeat)?)))
            .collect();
        let settings = IntervalSettings::new(mix(seed, 0xAA)).for_comparisons((pairs.len() as u32).max(1));
        let floors = pairs.iter().filter_map(|(repeat, original)| {
            let (subject, baseline) = paired(repeat, original);
            let ratio = PairedRatio::of(&subject, &baseline, &settings).ok()?;
            Some((repeat.target_index, repeat.operation.clone(), noise_floor(&[ratio])?))
        });
        Self { floors: floors.collect() }
    }

    /// The largest of all.
    pub fn largest(&self) -> Option<f64> {
        largest(self.floors.iter().map(|floor| floor.2))
    }

    /// The floor for comparing an operation between these targets: theirs, or where they have none the
    /// operation's, or the run's.
    pub fn floor(&self, targets: &[usize], operation: &str) -> Option<f64> {
        let of_operation = || self.floors.iter().filter(|floor| floor.1 == operation);
        largest(of_operation().filter(|floor| targets.contains(&floor.0)).map(|floor| floor.2))
            .or_else(|| largest(of_operation().map(|floor| floor.2)))
            .or_else(|| self.largest())
    }

    /// For the report.
    pub fn list(&self, target_name: impl Fn(usize) -> String) -> Vec<NoiseFloor> {
        self.floors
            .iter()
            .map(|(target, operation, floor)| NoiseFloor {
                target: target_name(*target),
                operation: operation.clone(),
                noise_floor: *floor,
            })
            .collect()
    }
}

fn original<'a>(cells: &'a [CellFigures], repeat: &CellFigures) -> Option<&'a CellFigures> {
    cells.iter().find(|cell| {
        !cell.baseline_repeat
            && cell.status == Status::Ok
            && cell.target_index == repeat.target_index
            && cell.operation == repeat.operation
            && cell.axes == repeat.axes
    })
}

fn largest(floors: impl Iterator<Item = f64>) -> Option<f64> {
    floors.max_by(f64::total_cmp)
}
