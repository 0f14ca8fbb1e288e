//! The noise between instances: the difference of two measurements of one cell.

use crate::cell::{CellResult, MetricInfo, Status};
use crate::format::difference;
use crate::labels::Labels;
use crate::metrics::{is_speed, paired};
use crate::target::TargetId;
use crate::wording::{joined, metric_of, say};
use kurabe_core::run::{RunSpec, Sampled};
use kurabe_stats::{IntervalSettings, PairedRatio, instance_variance, noise_floor};
use serde::Serialize;

/// What two instances of one target differ by in an operation, beyond the noise of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    pub target: TargetId,
    pub operation: String,
    pub metric: String,
    /// The relative difference: 0.03 is 3 %.
    pub noise_floor: f64,
    /// Whether the A/A control ran on a second instance of the server; otherwise on the same server.
    pub second_instance: bool,
}

/// The results of the run's A/A pairs.
#[derive(Debug, Default)]
pub(crate) struct Noise {
    pairs: Vec<AaPair>,
    /// Whether the samples are of different instances.
    any_start: bool,
}

/// One metric of an A/A control and its cell.
#[derive(Debug)]
struct AaPair {
    target: TargetId,
    operation: String,
    metric: MetricInfo,
    ratio: PairedRatio,
    /// Student's quantile of a comparison of the cell: A/A controls may have fewer rounds than what is compared.
    quantile: f64,
    /// Whether the A/A control ran on a second instance of the server.
    second_instance: bool,
}

impl Noise {
    /// Compares each A/A control with its cell.
    pub fn of(labels: &Labels, cells: &[CellResult], spec: &RunSpec) -> Self {
        let mut pairs = Vec::new();
        for control in cells.iter().filter(|cell| cell.aa_control && cell.status == Status::Ok) {
            let Some(original) = original(cells, control) else { continue };
            for metric in &labels.metrics {
                let settings = IntervalSettings::default();
                let pair = paired(control, original, metric, spec);
                let compared = paired(original, original, metric, spec).a.len() as f64;
                let ratio = pair.ratio(&settings);
                pairs.extend(ratio.map(|ratio| AaPair {
                    target: control.target.clone(),
                    operation: control.operation.clone(),
                    metric: metric.clone(),
                    ratio,
                    quantile: if compared > 1.0 { settings.student(compared - 1.0) } else { 0.0 },
                    second_instance: control.second_instance,
                }));
            }
        }
        Self { pairs, any_start: spec.sampled() == Sampled::AnyStart }
    }

    /// The largest noise floor of any metric of speed.
    pub fn largest(&self) -> Option<f64> {
        let speed = self.pairs.iter().filter(|pair| pair.metric.is_speed());
        speed.filter_map(AaPair::floor).max_by(f64::total_cmp)
    }

    /// The variance between instances for comparing an operation's metric between these targets: of their A/A pairs, or
    /// otherwise of the operation's, or of the run's. `None` if the samples are of different instances: then intervals
    /// include their variance.
    pub fn variance(&self, targets: &[usize], operation: &str, metric: &MetricInfo) -> Option<f64> {
        if self.any_start {
            return None;
        }
        let of = |holds: &dyn Fn(&AaPair) -> bool| {
            // Cells with other loads than the A/A pair's use its noise for any metric of speed.
            let same = |pair: &&AaPair| pair.metric == *metric || pair.metric.is_speed() && metric.is_speed();
            let ratios: Vec<PairedRatio> = self
                .pairs
                .iter()
                .filter(same)
                .filter(|pair| holds(pair))
                .map(|pair| pair.ratio)
                .filter(|ratio| ratio.error.is_some())
                .collect();
            instance_variance(&ratios)
        };
        of(&|pair| pair.operation == operation && targets.contains(&pair.target.at()))
            .or_else(|| of(&|pair| pair.operation == operation))
            .or_else(|| of(&|_| true))
    }

    /// Sets the noise floor of each cell's speed, from its target and operation.
    pub fn tell(&self, labels: &Labels, cells: &mut [CellResult]) {
        let quantile = self.pairs.first().map_or(0.0, |pair| pair.quantile);
        for cell in cells {
            let speed = labels.metrics.iter().find(|metric| metric.name == cell.metric);
            let variance = speed.and_then(|speed| self.variance(&[cell.target.at()], &cell.operation, speed));
            cell.noise_floor = variance.map(|variance| noise_floor(variance, quantile));
        }
    }

    /// For the report.
    pub fn list(&self) -> Vec<NoiseFloor> {
        let primary = self.pairs.iter().filter(|pair| pair.metric.primary || pair.metric.is_speed());
        primary
            .filter_map(|pair| {
                Some(NoiseFloor {
                    target: pair.target.clone(),
                    operation: pair.operation.clone(),
                    metric: pair.metric.name.clone(),
                    noise_floor: pair.floor()?,
                    second_instance: pair.second_instance,
                })
            })
            .collect()
    }
}

impl AaPair {
    /// Its noise floor; `None` with fewer than two rounds.
    fn floor(&self) -> Option<f64> {
        instance_variance(&[self.ratio]).map(|variance| noise_floor(variance, self.quantile))
    }
}

fn original<'a>(cells: &'a [CellResult], aa_control: &CellResult) -> Option<&'a CellResult> {
    cells.iter().find(|cell| {
        cell.is_reported()
            && cell.target == aa_control.target
            && cell.operation == aa_control.operation
            && cell.axes == aa_control.axes
    })
}

/// That equal measurements may differ by the largest of these.
pub(crate) fn sentence(largest: f64, each: &[NoiseFloor], labels: &Labels) -> String {
    let language = labels.language;
    let one = |floor: &NoiseFloor| {
        let (metric, operations) = (&floor.metric, labels.plural(&floor.operation));
        let what = if is_speed(metric) { operations } else { metric_of(metric, &operations, language) };
        format!("{what} {}", difference(floor.noise_floor, language))
    };
    let of_target = |floors: &[NoiseFloor]| {
        let name = if labels.several_targets() {
            let name = labels.target(&floors[0].target);
            say!(language, "{name} ", "{name} の")
        } else {
            String::new()
        };
        let on = if floors[0].second_instance {
            say!(language, "on a second instance", "別のインスタンス")
        } else {
            say!(language, "on the same server", "同じサーバー")
        };
        let each: Vec<String> = floors.iter().map(one).collect();
        let each = joined(&each, ", ", language);
        say!(language, "{name}{on}: {each}", "{name}{on}で {each}")
    };
    let targets: Vec<String> = each.chunk_by(|a, b| a.target == b.target).map(of_target).collect();
    let whose = if targets.len() > 1 { "one combination of each target" } else { "one combination" };
    let targets = joined(&targets, "; ", language);
    let largest = difference(largest, language);
    say!(
        language,
        "two equal measurements of {whose} may differ by {largest} more than their rounds explain ({targets}). \
         No interval includes that.",
        "同じ条件の 2 つの測定は、ラウンドのばらつきを超えて最大 {largest} 違うことがあります: {targets}。区間はこれを含みません。",
    )
}
