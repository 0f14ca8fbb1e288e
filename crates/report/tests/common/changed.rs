//! Synthetic runs with something of their own: given rates, problems, processors in place of sizes, interleaved trials.

use super::{Scenario, measurements};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::cpus::CPUS;
use kurabe_core::error::ErrorKind;
use kurabe_core::run::{CellRecord, OpenLoop, Outcome, Run};
use kurabe_stats::Histogram;

/// Two targets in an open loop at two rates; the second target serves only the lower one.
pub fn open_loop() -> Run {
    let scenario = Scenario {
        targets: vec!["sqlite", "postgres"],
        rounds: 5,
        operations: vec!["read"],
        ..Scenario::default()
    };
    let mut run = scenario.run();
    // The payloads of the synthetic run become rates.
    let rates: Vec<AxisValue> = [1_000, 5_000].map(AxisValue::Number).to_vec();
    let payloads = run.header.spec.axes.insert("payload".to_owned(), vec![AxisValue::Number(1_000)]).unwrap();
    run.header.spec.axes.insert("rate".to_owned(), rates.clone());
    run.header.spec.arrivals = Some(kurabe_core::load::Arrivals::Poisson);
    let kept: Vec<usize> = (0..run.header.cells.len())
        .filter(|at| payloads[..2].contains(run.header.cells[*at].axes.get("payload").unwrap()))
        .collect();
    let cells = &run.header.cells;
    let cells: Vec<CellRecord> = kept
        .iter()
        .map(|at| {
            let mut axes = cells[*at].axes.values().clone();
            let rate = payloads.iter().position(|payload| Some(payload) == axes.get("payload")).unwrap();
            axes.insert("payload".to_owned(), AxisValue::Number(1_000));
            axes.insert("rate".to_owned(), rates[rate].clone());
            CellRecord { axes: Cell::new(axes), ..cells[*at].clone() }
        })
        .collect();
    run.trials.retain_mut(|trial| {
        let Some(at) = kept.iter().position(|cell| *cell == trial.cell) else { return false };
        trial.cell = at;
        let cell = &cells[at];
        let rate = cell.axes.number("rate").unwrap() as f64;
        let Outcome::Measured(measured) = &mut trial.outcome else { return true };
        let overloaded = cell.target == 1 && rate > 2_000.0;
        let (mut response, mut lag) = (Histogram::new(), Histogram::new());
        for n in 0..measured.completed {
            let wait = if overloaded { n * 2_000_000 } else { 90_000 + u64::from(trial.round) * 500 };
            response.record(wait + 40_000 * (1 + cell.target as u64));
            lag.record(11_000);
        }
        let due_ns = (measured.completed as f64 / rate * 1e9) as u64;
        if overloaded {
            measured.dropped = 100;
            measured.offered += 100;
            measured.elapsed_ns = due_ns * 3;
        } else {
            measured.elapsed_ns = due_ns;
        }
        let backlog = if overloaded { 310 } else { 0 };
        measured.open = Some(OpenLoop { rate, response, lag, due_ns, backlog, probes: 0 });
        true
    });
    run.header.cells = cells;
    run
}

/// A run with every kind of problem: an unavailable cell, one that failed in one round, one with a wrong reply, and
/// no end. Its texts contain markup.
pub fn troubled() -> Run {
    let scenario =
        Scenario { targets: vec!["sqlite", "postgres", "memcached"], rounds: 5, ..Scenario::default() };
    let mut run = scenario.run();
    let reason = "a value of 100 kB is over the item size <b>1,024</b> | \"-I\", & more";
    let big = |record: &CellRecord| record.target == 2 && record.axes.number("payload").unwrap() == 100_000;
    for record in &mut run.header.cells {
        if big(record) {
            record.unavailable = Some(reason.to_owned());
            record.stored_bytes = None;
        }
    }
    let cells = run.header.cells.clone();
    run.trials.retain(|trial| !big(&cells[trial.cell]));
    let failed =
        |kind, reason: &str, mismatches| Outcome::Failed { kind, reason: reason.to_owned(), mismatches };
    for trial in &mut run.trials {
        if trial.cell == 1 && trial.round == 2 && trial.operation == "read" {
            trial.outcome = failed(ErrorKind::Mismatch, "record 17 came back as record 18", 1);
        }
        if trial.cell == 15 {
            trial.outcome =
                failed(ErrorKind::ConnectionLost, "the server closed the connection\n\u{1b}[31m", 0);
        }
    }
    run.trials.truncate(run.trials.len() - 7);
    run.header.targets[1].facts.notes =
        vec!["Its licence restricts publishing <script>alert(1)</script>.".into()];
    run.header.command.push("--note=<img src=x onerror=alert(1)>".into());
    run
}

/// The same run with numbers of the server's processors in place of payloads.
pub fn by_cpus(mut run: Run) -> Run {
    for record in &mut run.header.cells {
        let values = record.axes.values().clone().into_iter();
        record.axes = Cell::new(values.map(|(axis, value)| match axis.as_str() {
            "payload" => (CPUS.name.to_owned(), value),
            _ => (axis, value),
        }));
    }
    let values = run.header.spec.axes.remove("payload").unwrap();
    run.header.spec.axes.insert(CPUS.name.to_owned(), values);
    run
}

/// Two targets of equal rates, whose second one takes so many hundredths of the time in slices: round 0 is continuous, the
/// others are interleaved.
pub fn interleaved(slower: u64) -> Run {
    let targets = vec!["sqlite", "postgres"];
    let mut run =
        Scenario { targets, rounds: 8, noise: 0.001, rate: |_| 20_000.0, ..Scenario::default() }.run();
    run.header.spec.slice_ns = Some(10_000_000);
    for (trial, measured) in measurements(&mut run).filter(|(trial, _)| trial.round > 0) {
        measured.slices = 10;
        let of_second = trial.record.target == 1;
        measured.elapsed_ns = measured.elapsed_ns / 100 * if of_second { slower } else { 100 };
    }
    run
}
