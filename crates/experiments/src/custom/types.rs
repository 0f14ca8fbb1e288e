//! Metrics of each transaction type of a workload that has several: its share and its times.

use super::declared::Program;
use crate::prelude::*;
use kurabe_stats::Histogram;
use std::time::Duration;

/// The service times of each transaction type, in the order of the file; empty if there is only one type.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeTimes(Vec<Histogram>);

impl TypeTimes {
    pub(super) fn new(programs: &[Program]) -> Self {
        let types = if programs.len() > 1 { programs.len() } else { 0 };
        Self(vec![Histogram::new(); types])
    }

    #[inline]
    pub(super) fn record(&mut self, program: usize, time: Duration) {
        if let Some(times) = self.0.get_mut(program) {
            times.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, own)| all.merge(own));
    }

    /// Of each type: the mean, the 99th percentile, and its share of all transactions.
    pub(super) fn values(&self, programs: &[Program]) -> Vec<MetricValue> {
        let all: u64 = self.0.iter().map(Histogram::count).sum();
        let of_type = |(times, program): (&Histogram, &Program)| {
            let name = &program.name;
            let time = |name: String, ns: Option<f64>| Some(MetricValue::new(name, Unit::Nanoseconds, ns?));
            let share = times.count() as f64 / all.max(1) as f64;
            let values = [
                time(name.clone(), times.mean()),
                time(format!("{name} p99"), times.quantile(0.99).map(|ns| ns as f64)),
                Some(MetricValue::new(format!("{name} share"), Unit::Share, share)),
            ];
            values.into_iter().flatten()
        };
        self.0.iter().zip(programs).flat_map(of_type).collect()
    }
}

/// The metrics of each transaction type, if there are several.
pub(super) fn metrics(programs: &[Program]) -> Vec<Metric> {
    let of_type = |program: &Program| {
        let name = |suffix: &str| -> &'static str { format!("{}{suffix}", program.name).leak() };
        let time = |suffix, about| Metric::new(name(suffix), Unit::Nanoseconds, Better::Lower, about);
        let share = Metric::new(name(" share"), Unit::Share, Better::Neither, "share of all transactions");
        [time("", "mean time of this transaction type"), time(" p99", "99th percentile of its times"), share]
    };
    programs.iter().filter(|_| programs.len() > 1).flat_map(of_type).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program { name: name.to_owned(), weight: 1, steps: Vec::new(), retry: Vec::new(), retries: Some(0) }
    }

    #[test]
    fn each_type_of_several_has_its_own_times_and_share() {
        let programs = [program("browse"), program("visit")];
        let mut all = TypeTimes::new(&programs);
        for _client in 0..2 {
            let mut own = TypeTimes::new(&programs);
            own.record(0, Duration::from_micros(10));
            own.record(0, Duration::from_micros(30));
            own.record(0, Duration::from_micros(20));
            own.record(1, Duration::from_millis(1));
            all.merge(&own);
        }
        let values = all.values(&programs);
        let value = |name: &str| values.iter().find(|value| value.name == name).unwrap().value;
        assert_eq!((value("browse"), value("browse share")), (20_000.0, 0.75));
        assert_eq!((value("visit"), value("visit share")), (1_000_000.0, 0.25));
        assert!((value("browse p99") / 30_000.0 - 1.0).abs() < 0.02);
        assert!(TypeTimes::new(&programs[..1]).values(&programs[..1]).is_empty());
    }
}
