//! What the page shows of a cell on demand: the distribution of its times, and the course of its trials.

use kurabe_core::run::Measurement;
use kurabe_stats::Histogram;
use std::collections::BTreeMap;

/// The maximum number of points of a time series.
const POINTS: u64 = 40;

/// What trials of a cell show besides its results.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    /// Times over all trials, in nanoseconds: response times of an open loop, otherwise service times.
    pub times: Histogram,
    /// Operations per second in equal parts of the measured phase, the mean over the trials; empty if not recorded.
    pub course: Vec<f64>,
    /// The mean length of the measured phase in seconds.
    pub seconds: f64,
    /// The processors in use over the time of a trial, the mean over the observed trials; empty if not observed.
    pub usage: Vec<Usage>,
    /// The number of the machine's processors; 0 if not observed.
    pub cpus: usize,
}

/// The processors in use during a part of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// The end of the part: milliseconds since the gate opened.
    pub at_ms: f64,
    /// Processors that the client used.
    pub client: f64,
    /// Processors that the server used; `None` if its processes were not observed.
    pub server: Option<f64>,
    /// Processors in use on the client's machine.
    pub host: f64,
    /// Threads that waited for a disk.
    pub disk_waits: f64,
}

/// The details of a cell. `counted` are the trials whose speed counts; `measured` includes those that were observed.
pub(crate) fn of_cell(
    counted: &BTreeMap<u32, &Measurement>,
    measured: &BTreeMap<u32, &Measurement>,
) -> Detail {
    let mut times = Histogram::new();
    for trial in counted.values() {
        times.merge(trial.open.as_ref().map_or(&trial.service, |open| &open.response));
    }
    let seconds: f64 = counted.values().map(|trial| trial.elapsed_ns as f64 / 1e9).sum();
    let observed = || measured.values().filter_map(|trial| trial.observed.as_deref());
    Detail {
        times,
        course: course(counted),
        seconds: seconds / (counted.len().max(1)) as f64,
        usage: usage(measured),
        cpus: observed().map(|observed| observed.host.cpus.len()).max().unwrap_or(0),
    }
}

/// The mean rate in each part, over the trials with the usual number of parts.
fn course(counted: &BTreeMap<u32, &Measurement>) -> Vec<f64> {
    let parts = counted.values().map(|trial| trial.windows.len()).max().unwrap_or(0);
    let trials: Vec<&&Measurement> =
        counted.values().filter(|trial| trial.windows.len() == parts && trial.elapsed_ns > 0).collect();
    let rate = |part: usize| {
        let each =
            |trial: &&&Measurement| trial.windows[part] as f64 * parts as f64 * 1e9 / trial.elapsed_ns as f64;
        trials.iter().map(each).sum::<f64>() / trials.len() as f64
    };
    if trials.is_empty() { Vec::new() } else { (0..parts).map(rate).collect() }
}

/// The mean samples in equal parts of the longest observed trial.
fn usage(measured: &BTreeMap<u32, &Measurement>) -> Vec<Usage> {
    let samples = || {
        let observed = measured.values().filter_map(|trial| trial.observed.as_deref());
        observed.flat_map(|observed| &observed.samples)
    };
    let Some(longest) = samples().map(|sample| sample.at_ms).max().filter(|longest| *longest > 0) else {
        return Vec::new();
    };
    let most = samples().count() as u64;
    let each = longest.div_ceil(POINTS.min(most.max(1))).max(1);
    let mut parts: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for sample in samples() {
        parts.entry(sample.at_ms.saturating_sub(1) / each).or_default().push(sample);
    }
    let part = |(number, samples): (u64, Vec<&kurabe_core::observation::Sample>)| {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        let of = |value: fn(&kurabe_core::observation::Sample) -> f64| {
            mean(&mut samples.iter().map(|sample| value(sample))).unwrap_or(0.0)
        };
        Usage {
            at_ms: ((number + 1) * each) as f64,
            client: of(|sample| sample.client_cpu),
            server: mean(&mut samples.iter().filter_map(|sample| sample.server_cpu)),
            host: of(|sample| sample.host_cpu),
            disk_waits: of(|sample| sample.disk_waits as f64),
        }
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::{Observation, Sample};

    #[test]
    fn course_is_the_mean_rate_of_each_part() {
        let trial =
            |windows: Vec<u64>, elapsed_ns| Measurement { windows, elapsed_ns, ..Measurement::default() };
        let (a, b) = (trial(vec![10, 30], 2_000_000_000), trial(vec![20, 20], 1_000_000_000));
        let other = trial(vec![5], 1_000_000_000);
        let trials = BTreeMap::from([(0, &a), (1, &b), (2, &other)]);
        assert_eq!(course(&trials), [25.0, 35.0]);
        assert!(course(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn usage_has_a_bounded_number_of_points_and_keeps_means() {
        let samples: Vec<Sample> = (1..=1_000)
            .map(|n| Sample { at_ms: n * 10, client_cpu: 1.0, host_cpu: 3.0, ..Sample::default() })
            .collect();
        let observed = Observation { samples, ..Observation::default() };
        let trial = Measurement { observed: Some(Box::new(observed)), ..Measurement::default() };
        let found = usage(&BTreeMap::from([(0, &trial)]));
        assert!((30..=POINTS as usize).contains(&found.len()), "{}", found.len());
        assert!(found.iter().all(|one| (one.client, one.host, one.server) == (1.0, 3.0, None)));
        assert!(usage(&BTreeMap::new()).is_empty());
    }
}
