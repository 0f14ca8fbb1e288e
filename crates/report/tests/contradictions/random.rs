//! Random runs.

use crate::common::{Pattern, Scenario, observed};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::error::ErrorKind;
use kurabe_core::load::RATE;
use kurabe_core::metric::{MetricValue, Unit};
use kurabe_core::run::{CellRecord, Measurement, OpenLoop, Outcome, Run, RunEnd, TrialRecord};
use kurabe_core::verification::Verification;
use kurabe_stats::{Histogram, Rng};

/// A random run, the same for each seed.
pub fn random(seed: u64) -> Run {
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
        elapsed_ns: (completed as f64 * 1e9 / rate) as u64,
        client_cpu_ns: 1_000,
        service,
        verify_ns_per_op: 1.0,
        verified: Some(Verification {
            writes: if writes { completed } else { 0 },
            answers: completed,
            ..Verification::default()
        }),
        ..Measurement::default()
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
