//! What the page shows of a cell on demand: the distribution of its times, and the course of its trials.

use kurabe_core::observation::Sample;
use kurabe_core::run::Measurement;
use kurabe_core::sort;
use kurabe_core::stats_probe::{WaitPoint, WaitState};
use kurabe_stats::Histogram;
use std::collections::BTreeMap;

/// The maximum number of points of a time series.
const POINTS: u64 = 30;

/// What trials of a cell show besides its results.
///
/// Courses are of the continuous ones: slices of interleaved trials alternate with those of others, and have none.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    /// Times over the compared trials, in nanoseconds: response times of an open loop, otherwise service times.
    pub times: Histogram,
    /// Operations per second in equal parts of the measured phase, the mean over the trials; empty if not recorded.
    pub course: Vec<f64>,
    /// The mean length of these trials' measured phase in seconds.
    pub seconds: f64,
    /// The 99th percentile over time, the median over the trials; `None` if not recorded.
    pub tail: Option<Tail>,
    /// The resources in use over the time of a trial, the mean over the observed trials; empty if not observed.
    pub usage: Vec<Usage>,
    /// The number of the machine's processors; 0 if not observed.
    pub cpus: usize,
    /// The clients' sessions by wait state over the time of a trial, the mean over the trials; empty if not sampled.
    pub waits: Vec<Waits>,
    /// What the server did in the background during the longest trial.
    pub events: Vec<Event>,
}

/// The 99th percentile of times over the time of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tail {
    /// The length of a part in seconds.
    pub part_seconds: f64,
    /// The percentile in each part in nanoseconds; `None` if most trials had too few operations in it.
    pub p99_ns: Vec<Option<u64>>,
}

/// The resources in use during a part of a trial.
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
    /// The share of the time in which the busiest disk had a request; `None` if not observed.
    pub disk: Option<f64>,
    /// Bytes per second over the busiest network interface; `None` if not observed.
    pub network: Option<f64>,
}

/// The mean number of sessions in each wait state during a part of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waits {
    /// The end of the part: milliseconds since the gate opened.
    pub at_ms: f64,
    /// Sessions by wait state; idle ones are left out.
    pub states: BTreeMap<WaitState, f64>,
}

/// The server's work in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The work in the server's own terms.
    pub what: String,
    /// The first sample in which it was seen, or the one before: milliseconds since the gate opened.
    pub from_ms: u64,
    /// The last sample in which it was seen.
    pub to_ms: u64,
}

pub(crate) fn of_cell(
    measured: &BTreeMap<u32, &Measurement>,
    compared: &BTreeMap<u32, &Measurement>,
) -> Detail {
    let mut times = Histogram::new();
    for trial in compared.values() {
        times.merge(trial.open.as_ref().map_or(&trial.service, |open| &open.response));
    }
    let observed = || measured.values().filter_map(|trial| trial.observed.as_deref());
    let (course, seconds) = course(measured);
    let cpus = observed().map(|observed| observed.host.cpus.len()).max().unwrap_or(0);
    let points = || observed().filter_map(|seen| seen.waits.as_ref()).map(|waits| waits.course.as_slice());
    Detail {
        times,
        course,
        seconds,
        tail: tail(measured),
        usage: usage(measured, cpus),
        cpus,
        waits: waits(points()),
        events: events(
            points().max_by_key(|points| points.last().map_or(0, |last| last.at_ms)).unwrap_or(&[]),
        ),
    }
}

/// The mean rate in each part, over the trials with the usual number of parts, and their mean length in seconds.
fn course(measured: &BTreeMap<u32, &Measurement>) -> (Vec<f64>, f64) {
    let parts = measured.values().map(|trial| trial.windows.len()).max().unwrap_or(0);
    let trials: Vec<&&Measurement> = measured
        .values()
        .filter(|trial| parts > 0 && trial.windows.len() == parts && trial.elapsed_ns > 0)
        .collect();
    if trials.is_empty() {
        return (Vec::new(), 0.0);
    }
    let rate = |part: usize| {
        let each = |trial: &&&Measurement| {
            trial.windows[part] as f64 * parts as f64 * 1e9 / trial.windows_time_ns() as f64
        };
        trials.iter().map(each).sum::<f64>() / trials.len() as f64
    };
    let seconds: f64 = trials.iter().map(|trial| trial.windows_time_ns() as f64 / 1e9).sum();
    ((0..parts).map(rate).collect(), seconds / trials.len() as f64)
}

/// The median in each part, over the trials with the most frequent length of parts.
fn tail(measured: &BTreeMap<u32, &Measurement>) -> Option<Tail> {
    let mut by_length: BTreeMap<u64, Vec<&[Option<u64>]>> = BTreeMap::new();
    for tail in measured.values().filter_map(|trial| trial.tail.as_ref()) {
        by_length.entry(tail.part_ns).or_default().push(&tail.p99_ns);
    }
    let (part_ns, trials) = by_length.into_iter().max_by_key(|(_, trials)| trials.len())?;
    let parts = trials.iter().map(|trial| trial.len()).max().unwrap_or(0);
    let median = |part: usize| {
        let mut values: Vec<u64> =
            trials.iter().filter_map(|trial| trial.get(part).copied().flatten()).collect();
        values.sort_unstable();
        (values.len() * 2 >= trials.len()).then(|| values.get(values.len() / 2).copied()).flatten()
    };
    Some(Tail { part_seconds: part_ns as f64 / 1e9, p99_ns: (0..parts).map(median).collect() })
}

/// Puts points into equal parts of the time of the longest series: the end of each part in milliseconds, with its points.
fn in_parts<T: Copy>(points: &[T], at_ms: impl Fn(T) -> u64) -> Vec<(f64, Vec<T>)> {
    let longest = points.iter().map(|point| at_ms(*point)).max().unwrap_or(0);
    if longest == 0 {
        return Vec::new();
    }
    let each = longest.div_ceil(POINTS.min(points.len().max(1) as u64)).max(1);
    let mut parts: BTreeMap<u64, Vec<T>> = BTreeMap::new();
    for point in points {
        parts.entry(at_ms(*point).saturating_sub(1) / each).or_default().push(*point);
    }
    parts.into_iter().map(|(number, points)| (((number + 1) * each) as f64, points)).collect()
}

/// The mean samples in equal parts of the longest observed trial, on a machine with this many processors.
///
/// The kernel counts the machine's processor time in ticks (10 ms on most systems), in the sample in which a tick ends. So
/// a short sample may have more of it than there are processors.
fn usage(measured: &BTreeMap<u32, &Measurement>, cpus: usize) -> Vec<Usage> {
    let most = if cpus == 0 { f64::INFINITY } else { cpus as f64 };
    let observed = measured.values().filter_map(|trial| trial.observed.as_deref());
    let samples: Vec<&Sample> = observed.flat_map(|observed| &observed.samples).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let part = |(at_ms, samples): (f64, Vec<&Sample>)| {
        let of =
            |value: fn(&Sample) -> f64| mean(&mut samples.iter().map(|sample| value(sample))).unwrap_or(0.0);
        let seen =
            |value: fn(&Sample) -> Option<f64>| mean(&mut samples.iter().filter_map(|sample| value(sample)));
        Usage {
            at_ms,
            client: of(|sample| sample.client_cpu),
            server: seen(|sample| sample.server_cpu),
            host: of(|sample| sample.host_cpu).min(most),
            disk_waits: of(|sample| sample.disk_waits as f64),
            disk: seen(|sample| sample.disk_busy),
            network: seen(|sample| sample.network.map(|bytes| bytes as f64)),
        }
    };
    in_parts(&samples, |sample| sample.at_ms).into_iter().map(part).collect()
}

/// The mean sessions by wait state in equal parts of the longest trial.
fn waits<'a>(trials: impl Iterator<Item = &'a [WaitPoint]>) -> Vec<Waits> {
    let points: Vec<&WaitPoint> = trials.flatten().collect();
    let part = |(at_ms, points): (f64, Vec<&WaitPoint>)| {
        let samples: u64 = points.iter().map(|point| point.samples).sum();
        let mut states: BTreeMap<WaitState, f64> = BTreeMap::new();
        for (state, count) in points.iter().flat_map(|point| &point.states) {
            *states.entry(*state).or_default() += *count as f64 / samples.max(1) as f64;
        }
        Waits { at_ms, states }
    };
    in_parts(&points, |point| point.at_ms).into_iter().map(part).collect()
}

/// The times in which each work in the background was seen without a pause.
fn events(points: &[WaitPoint]) -> Vec<Event> {
    let mut ended: Vec<Event> = Vec::new();
    let mut going_on: Vec<Event> = Vec::new();
    let mut before = 0;
    for point in points {
        let (same, over): (Vec<Event>, Vec<Event>) =
            going_on.drain(..).partition(|event| point.background.contains(&event.what));
        ended.extend(over);
        going_on = same.into_iter().map(|event| Event { to_ms: point.at_ms, ..event }).collect();
        for what in &point.background {
            if going_on.iter().all(|event| event.what != *what) {
                going_on.push(Event { what: what.clone(), from_ms: before, to_ms: point.at_ms });
            }
        }
        before = point.at_ms;
    }
    ended.extend(going_on);
    sort::by_key(&mut ended, |event| event.from_ms);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::Observation;
    use kurabe_core::run::TailCourse;

    #[test]
    fn course_is_the_mean_rate_of_each_part() {
        let trial =
            |windows: Vec<u64>, elapsed_ns| Measurement { windows, elapsed_ns, ..Measurement::default() };
        let (a, b) = (trial(vec![10, 30], 2_000_000_000), trial(vec![20, 20], 1_000_000_000));
        let other = trial(vec![5], 1_000_000_000);
        let interleaved = trial(Vec::new(), 9_000_000_000);
        let trials = BTreeMap::from([(0, &a), (1, &b), (2, &other), (3, &interleaved)]);
        assert_eq!(course(&trials), (vec![25.0, 35.0], 1.5));
        assert!(course(&BTreeMap::new()).0.is_empty());
    }

    #[test]
    fn tail_is_the_median_of_each_part() {
        let trial = |part_ns, p99_ns: &[Option<u64>]| Measurement {
            tail: Some(TailCourse { part_ns, p99_ns: p99_ns.to_vec() }),
            ..Measurement::default()
        };
        let trials = [
            trial(1_000_000_000, &[Some(10), Some(100), None]),
            trial(1_000_000_000, &[Some(30), Some(120), None, Some(5)]),
            trial(1_000_000_000, &[Some(20), Some(900)]),
            trial(2_000_000_000, &[Some(7)]),
        ];
        let found = tail(&(0..).zip(&trials).collect()).unwrap();
        assert_eq!((found.part_seconds, found.p99_ns), (1.0, vec![Some(20), Some(120), None, None]));
        assert_eq!(tail(&BTreeMap::new()), None);
    }

    #[test]
    fn work_in_the_background_has_its_times() {
        let point = |at_ms, work: &[&str]| WaitPoint {
            at_ms,
            samples: 1,
            background: work.iter().map(|work| (*work).to_owned()).collect(),
            ..WaitPoint::default()
        };
        let points = [
            point(100, &[]),
            point(200, &["checkpointer"]),
            point(300, &["checkpointer", "autovacuum worker"]),
            point(400, &[]),
            point(500, &["checkpointer"]),
        ];
        let event = |what: &str, from_ms, to_ms| Event { what: what.to_owned(), from_ms, to_ms };
        assert_eq!(
            events(&points),
            [
                event("checkpointer", 100, 300),
                event("autovacuum worker", 200, 300),
                event("checkpointer", 400, 500)
            ]
        );
    }

    #[test]
    fn sessions_are_means_of_their_samples() {
        let point = |at_ms, samples, locks| WaitPoint {
            at_ms,
            samples,
            states: [(WaitState::Lock, locks)].into(),
            ..WaitPoint::default()
        };
        let (a, b) = ([point(100, 1, 4), point(200, 1, 8)], [point(100, 3, 12), point(200, 1, 0)]);
        let found = waits([&a[..], &b[..]].into_iter());
        let locks: Vec<f64> = found.iter().map(|part| part.states[&WaitState::Lock]).collect();
        assert_eq!(locks, [4.0, 4.0]);
    }

    #[test]
    fn usage_has_a_bounded_number_of_points_and_keeps_means() {
        let samples: Vec<Sample> = (1..=1_000)
            .map(|n| Sample {
                at_ms: n * 10,
                client_cpu: 1.0,
                host_cpu: 3.0,
                disk_busy: Some(0.5),
                ..Sample::default()
            })
            .collect();
        let observed = Observation { samples, ..Observation::default() };
        let trial = Measurement { observed: Some(Box::new(observed)), ..Measurement::default() };
        let found = usage(&BTreeMap::from([(0, &trial)]), 4);
        assert!((20..=POINTS as usize).contains(&found.len()), "{}", found.len());
        assert!(found.iter().all(|one| (one.client, one.host, one.server) == (1.0, 3.0, None)));
        assert!(found.iter().all(|one| (one.disk, one.network) == (Some(0.5), None)));
        let found = usage(&BTreeMap::from([(0, &trial)]), 2);
        assert!(
            found.iter().all(|one| (one.client, one.host) == (1.0, 2.0)),
            "more processors in use than there are"
        );
        assert!(usage(&BTreeMap::new(), 2).is_empty());
    }
}
