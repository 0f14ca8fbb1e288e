//! No finding contradicts the results of its own run. Random runs: several targets and axes, closed loops and given
//! rates, saturated clients, overload, a late generator, failed and unavailable cells.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod common;

use common::{INFO as SESSION, Pattern, Scenario, observed};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::error::ErrorKind;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::RATE;
use kurabe_core::metric::{Better, Metric, MetricValue, Source, THROUGHPUT, Unit};
use kurabe_core::run::{CellRecord, Measurement, OpenLoop, Outcome, Run, RunEnd, TrialRecord};
use kurabe_core::verification::Verification;
use kurabe_report::attribution::{Bottleneck, Confidence};
use kurabe_report::finding::{
    Comparison, Finding, Pair, Ranking, Rates, Scope, Section, Span, Trials, Values, Why,
};
use kurabe_report::summary::{CellResult, Status, Summary, Verdict, VerdictResult};
use kurabe_report::{analyse, compare, csv, html, json, markdown, terminal};
use kurabe_stats::{Histogram, Rng};
use proptest::prelude::*;

/// The session experiment with additional metrics: with either direction, primary or not, and a slope.
static INFO: ExperimentInfo = ExperimentInfo {
    metrics: &[
        Metric::new("hit ratio", Unit::Share, Better::Higher, "answered").primary(),
        Metric::new("memory", Unit::Bytes, Better::Lower, "held"),
        Metric::new("lost", Unit::Count, Better::Lower, "often none"),
        Metric::new("memory per byte", Unit::Bytes, Better::Lower, "a slope")
            .primary()
            .from(Source::Slope("memory")),
    ],
    ..SESSION
};

/// A random run, the same for each seed.
fn random(seed: u64) -> Run {
    let mut rng = Rng::new(seed);
    let mut few = |most: u64| rng.below(most) as usize;
    let targets = ["sqlite", "postgres", "memcached", "sqlite"][..=few(4)].to_vec();
    let payloads = [1_000, 10_000, 100_000][..=few(3)].to_vec();
    let layouts = ["blob", "rows"][..=few(2)].to_vec();
    let compress = ["none", "zstd", "gzip"][..=few(3)].to_vec();
    let operations = ["write", "read"][few(2)..].to_vec();
    let rounds = 1 + few(7) as u32;
    let open = few(3) == 0;
    let scenario =
        Scenario { targets, payloads, layouts, compress, operations, rounds, ..Scenario::default() };
    let mut header = scenario.header();
    if open {
        // The payloads become rates.
        let rates: Vec<AxisValue> = header.spec.axes["payload"].clone();
        header.spec.axes.insert("payload".to_owned(), vec![AxisValue::Number(1_000)]);
        header.spec.axes.insert(RATE.name.to_owned(), rates);
        for cell in &mut header.cells {
            let mut axes = cell.axes.values().clone();
            let rate = axes.insert("payload".to_owned(), AxisValue::Number(1_000)).unwrap();
            axes.insert(RATE.name.to_owned(), rate);
            cell.axes = Cell::new(axes);
        }
    }
    let levels: Vec<f64> = header.cells.iter().map(|_| 100.0 * 4f64.powf(unit(&mut rng))).collect();
    let noise = [0.0, 0.01, 0.05, 0.3][rng.below(4) as usize];
    let patterns: Vec<Option<Pattern>> = header.cells.iter().map(|_| pattern(&mut rng)).collect();
    let mut trials = Vec::new();
    for cell in &mut header.cells {
        if rng.below(15) == 0 {
            cell.unavailable = Some("it has no such thing".to_owned());
        }
    }
    for round in 0..rounds {
        for (at, cell) in header.cells.iter().enumerate().filter(|(_, cell)| cell.unavailable.is_none()) {
            for operation in &header.spec.operations {
                // Equal cells differ only by noise.
                let level = if seed.is_multiple_of(3) { 200.0 } else { levels[at] };
                let rate = level * (1.0 + noise * (unit(&mut rng) - 0.5));
                let outcome = outcome(&mut rng, cell, rate, patterns[at], operation == "write");
                trials.push(TrialRecord {
                    round,
                    cell: at,
                    operation: operation.clone(),
                    at_ms: 0,
                    outcome,
                    rerun_reason: None,
                });
            }
        }
    }
    Run { header, trials, resumptions: Vec::new(), end: Some(RunEnd { at_ms: 0, complete: true }) }
}

fn unit(rng: &mut Rng) -> f64 {
    rng.below(1_000_000) as f64 / 1e6
}

fn pattern(rng: &mut Rng) -> Option<Pattern> {
    let all = [Pattern::ClientFull, Pattern::ServerThreadFull, Pattern::Disk, Pattern::RoundTrip];
    all.get(rng.below(6) as usize).copied()
}

fn outcome(rng: &mut Rng, cell: &CellRecord, rate: f64, pattern: Option<Pattern>, writes: bool) -> Outcome {
    if rng.below(60) == 0 {
        return Outcome::Failed { kind: ErrorKind::Mismatch, reason: "record 7".into(), mismatches: 1 };
    }
    let completed = 100;
    let mut service = Histogram::new();
    (0..completed).for_each(|_| service.record((1e9 / rate * (0.5 + unit(rng))) as u64));
    let mut measured = Measurement {
        clients: 1 + rng.below(3),
        offered: completed,
        completed,
        failed: 0,
        dropped: 0,
        retries: 0,
        warmup: 0,
        elapsed_ns: (completed as f64 * 1e9 / rate) as u64,
        client_cpu_ns: 1_000,
        service,
        open: None,
        verify_ns_per_op: 1.0,
        verified: Some(Verification {
            writes: if writes { completed } else { 0 },
            answers: completed,
            ..Verification::default()
        }),
        exhausted: None,
        overhead_ns: 0,
        observed: None,
        metrics: Vec::new(),
        windows: Vec::new(),
        slices: 0,
        stood_still_ns: 0,
        threads: 0,
    };
    if let Some(AxisValue::Number(due)) = cell.axes.get(RATE.name) {
        let (mut response, mut lag) = (Histogram::new(), Histogram::new());
        (0..100).for_each(|_| response.record((1e9 / rate * (1.0 + unit(rng))) as u64));
        let late = if rng.below(12) == 0 { 1e9 / rate } else { 1e7 / rate };
        (0..100).for_each(|_| lag.record(late as u64));
        let due_ns = measured.elapsed_ns;
        if rng.below(12) == 0 {
            measured.elapsed_ns *= 3;
            measured.dropped = rng.below(9);
            measured.offered += measured.dropped;
        }
        let rate = *due as f64;
        measured.open = Some(OpenLoop { rate, response, lag, due_ns, backlog: 1, probes: 0 });
    }
    let value = |name: &str, unit, value| MetricValue::new(name, unit, value);
    measured.metrics = vec![
        value("hit ratio", Unit::Share, rate / 1_000.0),
        value("memory", Unit::Bytes, 1e9 / rate),
        value("lost", Unit::Count, rng.below(3) as f64),
    ];
    if rng.below(20) == 0 {
        measured.metrics.pop();
    }
    measured.observed = pattern.map(|pattern| {
        let mut seen = observed(pattern, &measured);
        if rng.below(9) == 0 {
            seen.host.cpus[0].steal_ns = seen.wall_ns / 3;
        }
        Box::new(seen)
    });
    Outcome::Measured(Box::new(measured))
}

/// The points of a scope: each operation at each value of the chart axis.
fn points(scope: &Scope) -> Vec<(String, Option<AxisValue>)> {
    // Every experiment here has a chart axis; only a slope has no value of it.
    let mut xs: Vec<Option<AxisValue>> = scope.at.iter().cloned().map(Some).collect();
    if xs.is_empty() {
        xs.push(None);
    }
    scope.operations.iter().flat_map(|o| xs.iter().map(move |x| (o.clone(), x.clone()))).collect()
}

/// The cells of a target at the baseline of every axis except the given ones.
struct Figures<'a>(&'a Summary);

impl Figures<'_> {
    fn baseline(&self, axis: &str) -> AxisValue {
        self.0.spec.axes[axis][0].clone()
    }

    /// The chart axis: rates if several were given.
    fn chart(&self) -> &str {
        if self.0.spec.axes.get(RATE.name).is_some_and(|rates| rates.len() > 1) {
            RATE.name
        } else {
            "payload"
        }
    }

    /// The cell at this point; `axis` has this value, all others their baseline.
    fn cell(&self, target: &str, operation: &str, x: Option<&AxisValue>, axis: (&str, &str)) -> &CellResult {
        let found = self.0.cells.iter().find(|cell| {
            let is = |(name, value): (&String, &AxisValue)| match x {
                None if name == self.chart() => true,
                Some(x) if name == self.chart() => value == x,
                _ if name == axis.0 => value.to_string() == axis.1,
                _ => *value == self.baseline(name),
            };
            cell.target == target
                && cell.operation == operation
                && !cell.aa_control
                && cell.axes.values().iter().all(is)
        });
        found.unwrap_or_else(|| panic!("no cell of {target}, {operation}, {x:?}, {axis:?}"))
    }

    /// The two cells of a pair, and its verdict: `a` against `b`.
    fn pair(
        &self,
        pair: &Pair,
        target: Option<&String>,
        point: &(String, Option<AxisValue>),
    ) -> Compared<'_> {
        let (operation, x) = point;
        let side = |side: &str| match target {
            None => self.cell(side, operation, x.as_ref(), ("", "")),
            Some(target) => self.cell(target, operation, x.as_ref(), (&pair.axis, side)),
        };
        let (a, b) = (side(&pair.a), side(&pair.b));
        let verdict = self.0.verdicts.iter().find_map(|verdict| {
            let here = verdict.operation == *operation
                && verdict.pair.axis == pair.axis
                && verdict.pair.metric == pair.metric
                && verdict.target.as_ref() == target
                && verdict.at.get(self.chart()) == x.as_ref();
            let sides = (&verdict.pair.a, &verdict.pair.b);
            match sides {
                _ if !here => None,
                _ if sides == (&pair.a, &pair.b) => Some((verdict, true)),
                _ if sides == (&pair.b, &pair.a) => Some((verdict, false)),
                _ => None,
            }
        });
        let (verdict, forward) = verdict.unwrap_or_else(|| panic!("no verdict on {pair:?} at {point:?}"));
        Compared { a, b, verdict, forward }
    }
}

struct Compared<'a> {
    a: &'a CellResult,
    b: &'a CellResult,
    verdict: &'a Verdict,
    forward: bool,
}

impl Compared<'_> {
    /// Whether a saturated client bounds the metric.
    fn is_timed(&self) -> bool {
        !INFO.metrics.iter().any(|metric| metric.name == self.verdict.pair.metric)
    }

    /// Whether `a` is significantly better than `b`, and the results allow it; returns the interval.
    fn won(&self) -> Span {
        let wanted = if self.forward { VerdictResult::Better } else { VerdictResult::Worse };
        assert_eq!(self.verdict.result, wanted, "{:?}", self.verdict);
        let timed = self.is_timed();
        for cell in [self.a, self.b] {
            assert_eq!(cell.status, Status::Ok);
            assert!(!cell.is_overloaded() && !cell.is_generator_late(), "{cell:?}");
        }
        assert!(self.verdict.target.is_some() || !timed || !self.b.is_lower_bound(), "{:?}", self.b);
        let (low, high) = (self.verdict.low.unwrap(), self.verdict.high.unwrap());
        let span = if self.forward { Span { low, high } } else { Span { low: 1.0 / high, high: 1.0 / low } };
        assert!(span.low > 1.0, "an interval that excludes 1: {:?}", self.verdict);
        // The means of many rounds agree with the verdict; those of few noisy rounds may differ slightly.
        let metric = &self.verdict.pair.metric;
        let (a, b) = (self.a.metric(metric).unwrap(), self.b.metric(metric).unwrap());
        let lower = INFO.metrics.iter().any(|known| known.name == metric && known.better == Better::Lower)
            || metric.ends_with("p99");
        let (most, least) = if lower { (b, a) } else { (a, b) };
        assert!(most.high.unwrap_or(most.value) >= least.low.unwrap_or(least.value), "{a:?} {b:?}");
        span
    }
}

fn within(span: Span, whole: Span) {
    let slack = 1e-9;
    assert!(span.low >= whole.low * (1.0 - slack) && span.high <= whole.high * (1.0 + slack));
}

fn target_pair(metric: &str, a: &str, b: &str) -> Pair {
    Pair { metric: metric.to_owned(), axis: "target".to_owned(), a: a.to_owned(), b: b.to_owned() }
}

/// The targets of a scope; one `None` if targets are compared.
fn targets(scope: &Scope) -> Vec<Option<&String>> {
    if scope.targets.is_empty() { vec![None] } else { scope.targets.iter().map(Some).collect() }
}

/// Asserts that the results support the finding.
#[allow(clippy::too_many_lines, reason = "one check for each kind, in one list")]
fn check(figures: &Figures<'_>, finding: &Finding) {
    let summary = figures.0;
    let each = |scope: &Scope, pair: &Pair, check: &mut dyn FnMut(Compared<'_>)| {
        let mut count = 0;
        for target in targets(scope) {
            for point in points(scope) {
                check(figures.pair(pair, target, &point));
                count += 1;
            }
        }
        count
    };
    match finding {
        Finding::Comparison(Comparison::Better {
            scope,
            pair,
            ratio,
            comparisons,
            lower_bound,
            limit,
            ..
        }) => {
            let mut bounded = false;
            let count = each(scope, pair, &mut |compared| {
                within(compared.won(), *ratio);
                bounded |= pair.axis == "target" && compared.is_timed() && compared.a.is_lower_bound();
                if let Some(limit) = limit {
                    let found = compared.b.attribution.as_ref().unwrap();
                    assert_eq!(found.bottleneck, limit.bottleneck);
                    assert!(limit.confidence == Confidence::Low || found.confidence == Confidence::High);
                }
            });
            assert_eq!((count, bounded), (*comparisons, *lower_bound));
        }
        Finding::Comparison(Comparison::NoDifference { scope, pair, comparisons, margin }) => {
            let count = each(scope, pair, &mut |compared| {
                let (low, high) = (compared.verdict.low.unwrap(), compared.verdict.high.unwrap());
                assert!(low >= 1.0 / (1.0 + margin) - 1e-9 && high <= 1.0 + margin + 1e-9);
                assert!(
                    pair.axis != "target"
                        || !compared.is_timed()
                        || !compared.a.is_lower_bound() && !compared.b.is_lower_bound()
                );
                assert!(!compared.a.is_overloaded() && !compared.b.is_overloaded());
            });
            assert_eq!(count, *comparisons);
        }
        Finding::Comparison(Comparison::Inconclusive { scope, pair, comparisons, smallest_detectable }) => {
            let count = each(scope, pair, &mut |compared| {
                assert_eq!(compared.verdict.result, VerdictResult::Inconclusive);
                assert_eq!(compared.verdict.low.is_some(), smallest_detectable.is_some());
            });
            assert_eq!(count, *comparisons);
        }
        Finding::Comparison(Comparison::NotComparable { scope, pair, comparisons, why }) => {
            let count = each(scope, pair, &mut |compared| {
                assert_eq!(
                    (compared.verdict.result, compared.verdict.why.as_ref()),
                    (VerdictResult::NotComparable, Some(why))
                );
                let some = |holds: fn(&CellResult) -> bool| holds(compared.a) || holds(compared.b);
                match why {
                    Why::ClientBound { .. } => assert!(some(CellResult::is_lower_bound)),
                    Why::Overloaded { .. } => assert!(some(CellResult::is_overloaded)),
                    Why::GeneratorLate { .. } => assert!(some(CellResult::is_generator_late)),
                    Why::NoCommonRound => {}
                    Why::NotPositive => assert_ne!(pair.metric, THROUGHPUT.name),
                    _ => assert!(some(|cell| cell.status != Status::Ok)),
                }
            });
            assert_eq!(count, *comparisons);
        }
        Finding::Ranking(Ranking::Best { scope, metric, than, ratio, lower_bound, .. }) => {
            let [winner] = &scope.targets[..] else { panic!("one winner: {scope:?}") };
            let mut bounded = false;
            assert!(!than.is_empty());
            for other in than {
                for point in points(scope) {
                    let compared = figures.pair(&target_pair(metric, winner, other), None, &point);
                    within(compared.won(), *ratio);
                    bounded |= compared.is_timed() && compared.a.is_lower_bound();
                }
            }
            assert_eq!(bounded, *lower_bound);
            if metric != "memory per byte" {
                all_are_named(figures, finding, metric, scope, &[&[winner.clone()][..], than].concat());
            }
        }
        Finding::Ranking(Ranking::Ahead { scope, metric, than, .. }) => {
            assert!(scope.targets.len() > 1 && !than.is_empty());
            for (leader, other) in scope.targets.iter().flat_map(|a| than.iter().map(move |b| (a, b))) {
                for point in points(scope) {
                    figures.pair(&target_pair(metric, leader, other), None, &point).won();
                }
            }
            if metric != "memory per byte" {
                all_are_named(figures, finding, metric, scope, &[&scope.targets[..], than].concat());
            }
        }
        Finding::Ranking(Ranking::NoBest { scope, metric, .. }) => {
            let others = || summary.targets.iter().map(|target| &target.name);
            for point in points(scope) {
                for (one, other) in scope.targets.iter().flat_map(|a| others().map(move |b| (a, b))) {
                    let (operation, x) = &point;
                    let has = |target| {
                        figures.cell(target, operation, x.as_ref(), ("", "")).metric(metric).is_some()
                    };
                    if one == other || metric != THROUGHPUT.name && !(has(one) && has(other)) {
                        continue;
                    }
                    let compared = figures.pair(&target_pair(metric, one, other), None, &point);
                    let lost = if compared.forward { VerdictResult::Worse } else { VerdictResult::Better };
                    assert!(
                        compared.verdict.result != lost
                            || matches!(finding, Finding::Ranking(Ranking::NoBest { among: Some(_), .. })),
                        "{:?}",
                        compared.verdict
                    );
                }
            }
        }
        Finding::Rates(Rates::Overloaded { scope, .. }) => {
            for cell in scope_cells(figures, scope) {
                assert!(cell.is_overloaded(), "{cell:?}");
            }
        }
        Finding::Rates(Rates::GeneratorLate { scope, lag_us, p99_us }) => {
            assert!(*lag_us > 0.1 * p99_us);
            assert!(scope_cells(figures, scope).iter().all(|cell| cell.is_generator_late()));
        }
        Finding::Rates(Rates::ResponseTimes { scope, points, bend }) => {
            let cells = scope_cells(figures, scope);
            assert!(cells.iter().all(|cell| !cell.is_overloaded() && !cell.is_generator_late()));
            assert_eq!(cells.len(), points.len());
            if let Some(bend) = bend {
                assert!(points[0].rate < *bend && points.iter().any(|point| point.rate == *bend));
            }
        }
        Finding::Values(Values::MetricValues { scope, name, points, .. }) => {
            for point in points {
                let cell = summary.cells.iter().find(|cell| {
                    let here = point.axes.values().iter().all(|(axis, at)| cell.axes.get(axis) == Some(at));
                    here && cell.target == scope.targets[0]
                        && scope.operations.contains(&cell.operation)
                        && cell.metric(name).is_some()
                });
                let found = cell.unwrap().metric(name).unwrap().interval();
                assert_eq!(point.figure, found);
                assert!(found.low.is_none_or(|low| low <= found.value && found.value <= found.high.unwrap()));
            }
        }
        Finding::Values(Values::Throughput { rates, .. }) => {
            assert!(rates.iter().all(|rate| rate.per_second.value > 0.0));
        }
        Finding::Trials(Trials::Bottleneck { scope, exact, bottleneck, cells, .. }) => {
            let with = |cell: &&CellResult| {
                cell.target == scope.targets[0]
                    && cell.operation == scope.operations[0]
                    && !cell.aa_control
                    && (scope.at.is_empty()
                        || cell.axes.get(figures.chart()).is_some_and(|x| scope.at.contains(x)))
                    && scope.axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
            };
            let here: Vec<&CellResult> = summary.cells.iter().filter(with).collect();
            let found = |cell: &&&CellResult| {
                cell.attribution.as_ref().is_some_and(|found| found.bottleneck == *bottleneck)
            };
            assert_eq!(here.iter().filter(found).count(), *cells as usize);
            assert!(!exact || here.len() == *cells as usize, "{finding:?}");
        }
        Finding::Values(Values::Cost { pair, cost_us, factor, scope }) => {
            let target = scope.targets.first();
            let point = &points(scope)[0];
            let pair = &Pair { metric: THROUGHPUT.name.to_owned(), ..pair.clone() };
            let compared = figures.pair(pair, target, point);
            assert!(matches!(compared.verdict.result, VerdictResult::Better | VerdictResult::Worse));
            assert!(cost_us.low.unwrap() <= cost_us.value && cost_us.value <= cost_us.high.unwrap());
            assert_eq!(cost_us.value > 0.0, factor.low > 1.0);
        }
        _ => {}
    }
}

/// The cells of a scope at given rates.
fn scope_cells<'a>(figures: &'a Figures<'_>, scope: &Scope) -> Vec<&'a CellResult> {
    let of = |cell: &&CellResult| {
        cell.target == scope.targets[0]
            && cell.operation == scope.operations[0]
            && !cell.aa_control
            && cell.axes.get(RATE.name).is_some_and(|rate| scope.at.contains(rate))
            && scope.axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
    };
    figures.0.cells.iter().filter(of).collect()
}

/// A superlative includes all targets with rankable results.
fn all_are_named(figures: &Figures<'_>, finding: &Finding, metric: &str, scope: &Scope, named: &[String]) {
    if matches!(
        finding,
        Finding::Ranking(Ranking::Best { among: Some(_), .. } | Ranking::Ahead { among: Some(_), .. })
    ) {
        return;
    }
    for (operation, x) in points(scope) {
        for target in &figures.0.targets {
            let cell = figures.cell(&target.name, &operation, x.as_ref(), ("", ""));
            let valid = !cell.is_overloaded() && !cell.is_generator_late();
            let ranked = cell.status == Status::Ok && valid && cell.metric(metric).is_some();
            assert_eq!(ranked, named.contains(&target.name), "{finding:?}: {cell:?}");
        }
    }
}

fn hold(run: &Run) {
    let summary = analyse(run, Some(&INFO));
    let figures = Figures(&summary);
    let verdict = summary.statements(Section::Verdict).count();
    assert!(verdict > 0, "there is always an answer");
    for statement in &summary.findings {
        check(&figures, &statement.finding);
        let text = &statement.sentence;
        let superlative =
            matches!(statement.finding, Finding::Ranking(Ranking::Best { .. } | Ranking::NoBest { .. }));
        assert!(superlative || !text.contains("fastest"), "{text}");
        assert!(text.ends_with('.') && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    for cell in &summary.cells {
        let Some(found) = &cell.attribution else { continue };
        let none = [Bottleneck::Latency, Bottleneck::Load, Bottleneck::Unknown].contains(&found.bottleneck);
        assert_eq!(found.ground.is_none(), none, "{found:?}");
        assert!(found.ground.is_none_or(|ground| ground.share >= ground.threshold), "{found:?}");
    }
}

/// Each case takes half a second in debug builds; `PROPTEST_CASES` sets the number.
fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(32), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_finding_follows_from_results(seed in any::<u64>()) {
        hold(&random(seed));
    }

    #[test]
    fn only_comparable_cells_of_two_runs_are_compared(seed in any::<u64>()) {
        let (first, mut second) = (random(seed), random(seed));
        let factor = [1, 1, 2, 5][seed as usize % 4];
        for trial in &mut second.trials {
            if let Outcome::Measured(measured) = &mut trial.outcome {
                measured.elapsed_ns *= factor;
            }
        }
        let [a, b] = [&first, &second].map(|run| analyse(run, Some(&INFO)));
        let compared = compare::compare(&a, &b);
        for row in &compared.rows {
            let of = |summary: &Summary| {
                let same = |cell: &&CellResult| {
                    cell.target == row.target && cell.axes == row.axes && cell.operation == row.operation && !cell.aa_control
                };
                summary.cells.iter().find(same).cloned().unwrap()
            };
            let (one, other) = (of(&a), of(&b));
            let loser = match row.result {
                VerdictResult::Better => one,
                VerdictResult::Worse => other,
                _ => continue,
            };
            let timed = !INFO.metrics.iter().any(|metric| metric.name == row.metric);
            prop_assert!(!timed || !loser.is_lower_bound() && !loser.is_overloaded() && !loser.is_generator_late());
        }
    }
}

#[test]
fn every_rendering_shows_the_findings_and_decides_nothing() {
    for seed in 0..4 {
        let summary = analyse(&random(seed), Some(&INFO));
        let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
        let flat =
            |text: String| text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, page) =
            (flat(terminal::render(&summary, &options)), html::render(&summary, &html::Options::default()));
        let (page, markdown) =
            (flat(page.replace("&#39;", "'").replace("&amp;", "&")), flat(markdown::render(&summary)));
        let json: serde_json::Value = serde_json::from_str(&json::render(&summary)).unwrap();
        assert!(csv::render(&summary).lines().count() > summary.cells.len());
        for (at, statement) in summary.findings.iter().enumerate() {
            let sentence = &statement.sentence;
            assert_eq!(json["findings"][at]["sentence"], **sentence);
            // Without markup and line breaks.
            let has = |text: &str| text.replace("• ", "").contains(sentence.as_str().trim());
            let plain = !sentence.contains(['<', '"', '\'', '_', '#', '|', '—', '“']);
            if plain {
                assert!(has(&text), "the terminal lacks: {sentence}");
                assert!(has(&page), "the page lacks: {sentence}");
                assert!(has(&markdown), "Markdown lacks: {sentence}");
            }
        }
    }
}
