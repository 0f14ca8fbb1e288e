//! A run as OpenTelemetry's messages: spans of the run, its rounds and its trials, and metrics of the trials.

use crate::parent::Parent;
use kurabe_core::axis::AxisValue;
use kurabe_core::run::{Measurement, Outcome, Run, TrialRecord};
use kurabe_stats::Histogram as Times;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use std::collections::BTreeMap;

/// The shortest time that the histogram of durations distinguishes, in nanoseconds. Each further bucket is twice as long.
const SHORTEST: u64 = 1_000;
/// The number of bounds of the histogram: up to 16.8 seconds.
const BOUNDS: u32 = 25;

/// A number of 128 bits for some texts: FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>). The same run has the same
/// trace whenever it is sent.
fn number(texts: &[&str]) -> u128 {
    let mut sum = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for text in texts {
        for byte in text.bytes().chain([0]) {
            sum = (sum ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    // All zeros is no identifier.
    sum | 1
}

fn span_id(texts: &[&str]) -> Vec<u8> {
    (number(texts) as u64).to_be_bytes().to_vec()
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn whole(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn real(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

/// Who measured what, for all messages of a run.
pub(crate) fn resource(run: &Run) -> Resource {
    let header = &run.header;
    let mut attributes = vec![
        text("service.name", "kurabe"),
        text("service.version", &header.kurabe),
        text("service.instance.id", &header.run),
        text("os.description", &header.machine.system),
        text("kurabe.run", &header.run),
        text("kurabe.experiment", &header.spec.experiment),
    ];
    attributes.extend(header.origin.suite.iter().map(|suite| text("kurabe.suite", suite)));
    if let Some(git) = &header.origin.git {
        attributes.push(text("vcs.ref.head.revision", &git.commit));
    }
    Resource { attributes, ..Resource::default() }
}

/// The source of the measurements.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "kurabe".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// When trials were made, in nanoseconds since 1970.
struct Clock {
    /// The time on the run's clock from which on a start counts, in milliseconds, and that start in milliseconds since
    /// 1970. The clock stands still between a stop and the resumption.
    starts: Vec<(u64, u64)>,
    /// The length of each group of interleaved trials in nanoseconds, by its begin on the run's clock.
    groups: BTreeMap<u64, u64>,
}

impl Clock {
    fn of(run: &Run) -> Self {
        let mut starts = vec![(0, run.header.began * 1_000)];
        for resumption in &run.resumptions {
            let before = (resumption.trials_before as usize).checked_sub(1);
            let from = before.and_then(|last| run.trials.get(last)).map_or(0, |trial| trial.at_ms + 1);
            starts.push((from, resumption.began * 1_000));
        }
        let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
        for trial in &run.trials {
            if let Outcome::Measured(measured) = &trial.outcome
                && measured.slices > 0
            {
                *groups.entry(trial.at_ms).or_default() += measured.elapsed_ns;
            }
        }
        Self { starts, groups }
    }

    /// A time on the run's clock, in nanoseconds since 1970.
    fn at(&self, ms: u64) -> u64 {
        let start = self.starts.iter().rev().find(|(from, _)| *from <= ms).copied().unwrap_or((0, 0));
        let since = ms - start.0.min(ms);
        (start.1 + since) * 1_000_000
    }

    fn begin(&self, trial: &TrialRecord) -> u64 {
        self.at(trial.at_ms)
    }

    /// The end of a trial: of interleaved ones, that of their group.
    fn end(&self, trial: &TrialRecord) -> u64 {
        let long = match &trial.outcome {
            Outcome::Measured(measured) if measured.slices > 0 => {
                self.groups.get(&trial.at_ms).copied().unwrap_or(measured.elapsed_ns)
            }
            Outcome::Measured(measured) => measured.elapsed_ns,
            Outcome::Failed { .. } => 0,
        };
        self.begin(trial) + long
    }
}

/// The spans of a run: itself, its rounds, its trials; with the run as the child of `parent`, if there is one.
pub(crate) fn spans(run: &Run, parent: Option<Parent>) -> Vec<Span> {
    let name = run.header.run.as_str();
    let clock = Clock::of(run);
    let trace_id = parent.map_or_else(
        || number(&[name, &run.header.began.to_string()]).to_be_bytes().to_vec(),
        |parent| parent.trace_id.to_vec(),
    );
    let root = span_id(&[name]);
    let begin = run.header.began * 1_000_000_000;
    let last = run.trials.iter().map(|trial| clock.end(trial)).max().unwrap_or(begin);
    let end = run.end.as_ref().map_or(last, |end| clock.at(end.at_ms).max(last));
    let span = |id: Vec<u8>, parent: Vec<u8>, name: String, begin: u64, end: u64| Span {
        trace_id: trace_id.clone(),
        span_id: id,
        parent_span_id: parent,
        name,
        kind: SpanKind::Internal as i32,
        start_time_unix_nano: begin,
        end_time_unix_nano: end,
        ..Span::default()
    };
    let mut all = vec![Span {
        attributes: of_run(run),
        ..span(
            root.clone(),
            parent.map(|parent| parent.span_id.to_vec()).unwrap_or_default(),
            format!("run {}", run.header.spec.experiment),
            begin,
            end,
        )
    }];
    let mut rounds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for trial in &run.trials {
        let (begin, end) = (clock.begin(trial), clock.end(trial));
        let round = rounds.entry(trial.round).or_insert((begin, end));
        *round = (round.0.min(begin), round.1.max(end));
    }
    let of_round = |round: u32| span_id(&[name, &round.to_string()]);
    all.extend(rounds.into_iter().map(|(round, (begin, end))| Span {
        attributes: vec![whole("kurabe.round", u64::from(round) + 1)],
        ..span(of_round(round), root.clone(), format!("round {}", round + 1), begin, end)
    }));
    all.extend(run.trials.iter().enumerate().map(|(n, trial)| Span {
        attributes: [of_cell(run, trial), of_outcome(trial)].concat(),
        events: events(trial, clock.begin(trial)),
        status: Some(status(trial)),
        ..span(
            span_id(&[name, "trial", &n.to_string()]),
            of_round(trial.round),
            trial.operation.clone(),
            clock.begin(trial),
            clock.end(trial),
        )
    }));
    all
}

fn of_run(run: &Run) -> Vec<KeyValue> {
    let header = &run.header;
    let mut all = vec![
        text("kurabe.targets", &header.spec.targets.join(" ")),
        whole("kurabe.rounds", u64::from(header.spec.rounds)),
        whole("kurabe.seed", header.spec.seed),
        attribute("kurabe.complete", Value::BoolValue(run.is_complete())),
    ];
    if !header.origin.labels.is_empty() {
        all.push(text("kurabe.labels", &header.origin.labels.join(" ")));
    }
    all
}

/// What identifies a trial's cell; the attributes of its metrics too.
fn of_cell(run: &Run, trial: &TrialRecord) -> Vec<KeyValue> {
    let mut all =
        vec![text("kurabe.operation", &trial.operation), whole("kurabe.round", u64::from(trial.round) + 1)];
    if let Some(cell) = run.header.cells.get(trial.cell) {
        if let Some(target) = run.header.targets.get(cell.target) {
            all.push(text("kurabe.target", &target.name));
        }
        all.extend(cell.axes.values().iter().map(|(axis, value)| {
            let key = format!("kurabe.axis.{axis}");
            match value {
                AxisValue::Number(number) => whole(&key, *number),
                AxisValue::Word(word) => text(&key, word),
            }
        }));
        all.push(attribute("kurabe.aa_control", Value::BoolValue(cell.aa_control)));
    }
    all
}

/// Times of an open loop from when a transaction was due, otherwise those of the server.
fn times(measured: &Measurement) -> &Times {
    measured.open.as_ref().map_or(&measured.service, |open| &open.response)
}

fn of_outcome(trial: &TrialRecord) -> Vec<KeyValue> {
    let mut all = Vec::new();
    all.extend(trial.rerun_reason.iter().map(|why| text("kurabe.rerun_reason", why)));
    let Outcome::Measured(measured) = &trial.outcome else { return all };
    all.extend([
        whole("kurabe.clients", measured.clients),
        whole("kurabe.offered", measured.offered),
        whole("kurabe.completed", measured.completed),
        whole("kurabe.failed", measured.failed),
        whole("kurabe.dropped", measured.dropped),
        whole("kurabe.measured_ns", measured.elapsed_ns),
        whole("kurabe.slices", measured.slices),
        real("kurabe.operations_per_second", measured.ops_per_second()),
    ]);
    for (name, q) in [("kurabe.p50_ns", 0.5), ("kurabe.p99_ns", 0.99), ("kurabe.max_ns", 1.0)] {
        all.extend(times(measured).quantile(q).map(|ns| whole(name, ns)));
    }
    all.extend(
        measured.metrics.iter().map(|metric| real(&format!("kurabe.metric.{}", metric.name), metric.value)),
    );
    all
}

/// The server's work in the background, where its samples begin to show it.
fn events(trial: &TrialRecord, begin: u64) -> Vec<Event> {
    let Outcome::Measured(measured) = &trial.outcome else { return Vec::new() };
    let waits = measured.observed.as_ref().and_then(|observed| observed.waits.as_ref());
    let points = waits.map_or(&[][..], |waits| &waits.course);
    let mut before: &[String] = &[];
    let mut all = Vec::new();
    for point in points {
        all.extend(point.background.iter().filter(|work| !before.contains(work)).map(|work| Event {
            time_unix_nano: begin + point.at_ms * 1_000_000,
            name: work.clone(),
            ..Event::default()
        }));
        before = &point.background;
    }
    all
}

fn status(trial: &TrialRecord) -> Status {
    match &trial.outcome {
        Outcome::Measured(_) => Status { code: StatusCode::Ok as i32, ..Status::default() },
        Outcome::Failed { reason, .. } => Status { code: StatusCode::Error as i32, message: reason.clone() },
    }
}

/// The metrics of the trials that are the figures of their cells: throughput, and a histogram of durations.
pub(crate) fn metrics(run: &Run) -> Vec<Metric> {
    let clock = Clock::of(run);
    let rates = run.figures().map(|(trial, measured)| NumberDataPoint {
        attributes: of_cell(run, trial),
        start_time_unix_nano: clock.begin(trial),
        time_unix_nano: clock.end(trial),
        value: Some(Number::AsDouble(measured.ops_per_second())),
        ..NumberDataPoint::default()
    });
    let durations = run.figures().map(|(trial, measured)| HistogramDataPoint {
        attributes: of_cell(run, trial),
        start_time_unix_nano: clock.begin(trial),
        time_unix_nano: clock.end(trial),
        ..histogram(times(measured))
    });
    vec![
        Metric {
            name: "kurabe.trial.throughput".to_owned(),
            description: "Operations per second of a continuous trial".to_owned(),
            unit: "{operation}/s".to_owned(),
            data: Some(Data::Gauge(Gauge { data_points: rates.collect() })),
            ..Metric::default()
        },
        Metric {
            name: "kurabe.operation.duration".to_owned(),
            description: "Response times of an open loop, otherwise service times".to_owned(),
            unit: "s".to_owned(),
            data: Some(Data::Histogram(Histogram {
                data_points: durations.collect(),
                aggregation_temporality: AggregationTemporality::Delta as i32,
            })),
            ..Metric::default()
        },
    ]
}

/// Counts below each bound and above the last one. A recorded bucket is 1 % wide and counts where its middle is.
fn histogram(times: &Times) -> HistogramDataPoint {
    let bounds: Vec<u64> = (0..BOUNDS).map(|n| SHORTEST << n).collect();
    let mut counts = vec![0; bounds.len() + 1];
    for bucket in times.buckets() {
        let middle = bucket.low.midpoint(bucket.high);
        let at = bounds.partition_point(|bound| *bound < middle);
        if let Some(count) = counts.get_mut(at) {
            *count += bucket.count;
        }
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    HistogramDataPoint {
        count: counts.iter().sum(),
        sum: Some(times.sum() as f64 / 1e9),
        bucket_counts: counts,
        explicit_bounds: bounds.into_iter().map(seconds).collect(),
        min: times.min().map(seconds),
        max: times.max().map(seconds),
        ..HistogramDataPoint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_one_bucket() {
        let mut times = Times::new();
        for exponent in 0..40 {
            times.record(1 << exponent);
        }
        let found = histogram(&times);
        assert_eq!((found.count, found.bucket_counts.len()), (40, found.explicit_bounds.len() + 1));
        // 2^0 to 2^9 are below a microsecond.
        assert_eq!((found.bucket_counts[0], found.bucket_counts[1]), (10, 1));
        assert!(found.explicit_bounds.is_sorted());
    }

    #[test]
    fn clock_goes_on_where_the_run_was_resumed() {
        let clock = Clock { starts: vec![(0, 10_000), (501, 90_000)], groups: BTreeMap::new() };
        assert_eq!(clock.at(500), 10_500_000_000);
        assert_eq!(clock.at(501), 90_000_000_000);
        assert_eq!(clock.at(601), 90_100_000_000);
    }
}
