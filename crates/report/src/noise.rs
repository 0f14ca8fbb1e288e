//! The noise floor: the difference between two measurements of the same cell in each round.

use crate::comparison::paired;
use crate::finding::NoiseFloor;
use crate::labels::Labels;
use crate::summary::{CellResult, MetricInfo, Status};
use kurabe_core::run::RunSpec;
use kurabe_stats::{IntervalSettings, PairedRatio, mix, noise_floor};

/// The results of the run's A/A pairs.
#[derive(Debug, Default)]
pub(crate) struct Noise {
    floors: Vec<Floor>,
}

/// The noise floor of one metric of one pair.
#[derive(Debug)]
struct Floor {
    target: usize,
    operation: String,
    metric: MetricInfo,
    difference: f64,
    /// Whether the A/A control ran on a second instance of the server.
    second_instance: bool,
}

impl Noise {
    /// Compares each A/A control with its cell. Intervals are corrected within one target, so that a target's floor
    /// does not grow with the number of other targets.
    pub fn of(labels: &Labels, cells: &[CellResult], spec: &RunSpec) -> Self {
        let pairs: Vec<(&CellResult, &CellResult)> = cells
            .iter()
            .filter(|cell| cell.aa_control && cell.status == Status::Ok)
            .filter_map(|aa_control| Some((aa_control, original(cells, aa_control)?)))
            .collect();
        let floor = |aa_control: &CellResult, original: &CellResult, metric: &MetricInfo| {
            let same =
                pairs.iter().filter(|(other, _)| other.target_index == aa_control.target_index).count();
            let settings = IntervalSettings::new(mix(spec.seed, 0xAA)).for_comparisons(same as u32);
            let pair = paired(aa_control, original, metric, spec);
            let difference = noise_floor(&[PairedRatio::of(&pair.a, &pair.b, &settings).ok()?])?;
            Some(Floor {
                target: aa_control.target_index,
                operation: aa_control.operation.clone(),
                metric: metric.clone(),
                difference,
                second_instance: aa_control.second_instance,
            })
        };
        let of_pair = |(aa_control, original): &(&CellResult, &CellResult)| {
            labels.metrics.iter().filter_map(|metric| floor(aa_control, original, metric)).collect::<Vec<_>>()
        };
        Self { floors: pairs.iter().flat_map(of_pair).collect() }
    }

    /// The largest floor of any metric of speed.
    pub fn largest(&self) -> Option<f64> {
        largest(self.floors.iter().filter(|floor| floor.metric.is_speed()).map(|floor| floor.difference))
    }

    /// The metric's floor for comparing an operation between these targets: the largest of theirs, or otherwise the
    /// operation's, or the run's.
    pub fn floor(&self, targets: &[usize], operation: &str, metric: &MetricInfo) -> Option<f64> {
        let largest = |holds: &dyn Fn(&Floor) -> bool| {
            // Cells with other loads than the A/A pair's use its floor for any metric of speed.
            let same =
                |floor: &&Floor| floor.metric == *metric || floor.metric.is_speed() && metric.is_speed();
            largest(
                self.floors.iter().filter(same).filter(|floor| holds(floor)).map(|floor| floor.difference),
            )
        };
        largest(&|floor| floor.operation == operation && targets.contains(&floor.target))
            .or_else(|| largest(&|floor| floor.operation == operation))
            .or_else(|| largest(&|_| true))
    }

    /// Sets each cell's floor from its target and operation.
    pub fn tell(&self, labels: &Labels, cells: &mut [CellResult]) {
        for cell in cells {
            let speed = labels.metrics.iter().find(|metric| metric.name == cell.metric);
            cell.noise_floor =
                speed.and_then(|speed| self.floor(&[cell.target_index], &cell.operation, speed));
        }
    }

    /// For the report.
    pub fn list(&self, target_name: impl Fn(usize) -> String) -> Vec<NoiseFloor> {
        let primary = self.floors.iter().filter(|floor| floor.metric.primary || floor.metric.is_speed());
        primary
            .map(|floor| NoiseFloor {
                target: target_name(floor.target),
                operation: floor.operation.clone(),
                metric: floor.metric.name.clone(),
                noise_floor: floor.difference,
                second_instance: floor.second_instance,
            })
            .collect()
    }
}

fn original<'a>(cells: &'a [CellResult], aa_control: &CellResult) -> Option<&'a CellResult> {
    cells.iter().find(|cell| {
        !cell.aa_control
            && cell.status == Status::Ok
            && cell.target_index == aa_control.target_index
            && cell.operation == aa_control.operation
            && cell.axes == aa_control.axes
    })
}

fn largest(floors: impl Iterator<Item = f64>) -> Option<f64> {
    floors.max_by(f64::total_cmp)
}
