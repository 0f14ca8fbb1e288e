//! What decides a comparison of two runs at different times: whatever sampled the differences between two runs.

use crate::cell::{CellResult, MetricInfo, Status};
use crate::finding::Between;
use crate::metrics::samples;
use crate::summary::Summary;
use kurabe_core::run::Sampled;
use kurabe_stats::separate::{MAX_RUNS, MIN_RUNS, is_enough};
use kurabe_stats::{Estimate, IntervalSettings, PairedRatio};

impl Between {
    /// What decides a comparison of these runs, with these earlier ones.
    pub(crate) fn of(first: &Summary, second: &Summary, earlier: &[&Summary]) -> Self {
        let any_start = |summary: &Summary| summary.spec.sampled() == Sampled::AnyStart;
        if any_start(first) && any_start(second) {
            return Self::Starts;
        }
        let earlier = &earlier[..earlier.len().min(MAX_RUNS)];
        let began = earlier.iter().map(|run| run.began);
        let covered = began.clone().max().unwrap_or(0) - began.min().unwrap_or(0);
        let (runs, apart) = (earlier.len() as u32, second.began.abs_diff(first.began));
        if is_enough(earlier.len(), covered as f64, apart as f64) {
            return Self::Runs { runs };
        }
        let needed_time = (apart as f64 / kurabe_stats::separate::REACH).ceil() as u64;
        Self::Nothing { runs, needed: MIN_RUNS as u32, covered, needed_time }
    }

    /// The ratio of a metric of the first of these cells to the second, with its interval if something decides.
    pub(super) fn ratio(
        self,
        metric: &MetricInfo,
        [b, a]: [(&Summary, &CellResult); 2],
        earlier: &[&Summary],
        settings: &IntervalSettings,
    ) -> Option<Estimate> {
        let figures = |(summary, cell): (&Summary, &CellResult)| {
            let rounds = cell.metric(&metric.name).map(|found| &found.by_round);
            let good = |(round, value): (&u32, &f64)| (*round, metric.higher_is_better(*value));
            samples(rounds.into_iter().flatten().map(good), &summary.spec)
        };
        let separate = PairedRatio::from_separate(&figures(b), &figures(a), settings)?;
        match self {
            Self::Starts => Some(separate.estimate),
            Self::Nothing { .. } => Some(Estimate::new(separate.estimate.value, None)),
            Self::Runs { .. } => {
                let mean = |of| Some(kurabe_stats::interval_of_mean(&figures(of), settings)?.value);
                let same = |cell: &&CellResult| {
                    cell.target_index == a.1.target_index && cell.is_like(a.1) && cell.status == Status::Ok
                };
                let earlier = earlier.iter().take(MAX_RUNS);
                let there = earlier.filter_map(|run| Some((*run, run.cells.iter().find(same)?)));
                let earlier: Vec<f64> = there.map(mean).collect::<Option<_>>()?;
                let ratio = PairedRatio::from_runs(mean(b)?, mean(a)?, &earlier, settings)?;
                let is_enough = earlier.len() >= MIN_RUNS;
                Some(if is_enough { ratio.estimate } else { Estimate::new(ratio.estimate.value, None) })
            }
        }
    }
}
