//! Synthetic runs: what an experiment would record, the same on every machine.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "each test file uses a part of it; what cannot go on stops"
)]

mod bottlenecks;
pub mod others;

pub use bottlenecks::{Pattern, bottlenecks, observed};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::cpus::CPUS;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::error::ErrorKind;
use kurabe_core::experiment::{Answer, ExperimentInfo, OperationInfo};
use kurabe_core::facts::{Limits, ServerFacts, Setting};
use kurabe_core::run::{
    CellRecord, MachineFacts, Measurement, OpenLoop, Outcome, OverheadRecord, Run, RunEnd, RunHeader,
    RunSpec, TargetRecord, TrialRecord,
};
use kurabe_core::verification::Verification;
use kurabe_stats::{Histogram, Rng};
use std::collections::BTreeMap;

pub static INFO: ExperimentInfo = ExperimentInfo {
    name: "session",
    question: "How should an application keep its web sessions?",
    about: "Writes and reads sessions by id.",
    axes: &[
        AxisInfo::new("payload", "bytes of one session", AxisKind::size(1, 1 << 30), &["1k"]),
        AxisInfo::new(
            "layout",
            "how a session is kept",
            AxisKind::choice(&[("blob", "one value"), ("rows", "split over rows of 4,000 bytes")]),
            &["blob"],
        ),
        AxisInfo::new(
            "compress",
            "what the client does before it writes",
            AxisKind::choice(&[
                ("none", "nothing"),
                ("zstd", "Zstandard, level 1"),
                ("gzip", "deflate, level 6"),
            ]),
            &["none"],
        ),
        AxisInfo::new("clients", "clients at once", AxisKind::count(1, 1_000), &["1"]),
    ],
    operations: &[
        OperationInfo { name: "write", about: "inserts a session", requests: 1_000, writes: true },
        OperationInfo { name: "read", about: "reads a session by its id", requests: 10_000, writes: false },
    ],
    metrics: &[],
    chart_axis: "payload",
    answer: Answer::Comparison,
    published: Some("session_store.csv"),
};

/// What one cell's rate depends on.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub target: &'a str,
    pub operation: &'a str,
    pub payload: u64,
    pub layout: &'a str,
    pub compress: &'a str,
}

/// A synthetic run.
pub struct Scenario {
    pub targets: Vec<&'static str>,
    pub payloads: Vec<u64>,
    pub layouts: Vec<&'static str>,
    pub compress: Vec<&'static str>,
    pub operations: Vec<&'static str>,
    pub rounds: u32,
    /// The relative spread between trials.
    pub noise: f64,
    /// Operations per second of a cell.
    pub rate: fn(At<'_>) -> f64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            targets: vec!["sqlite"],
            payloads: vec![1_000, 10_000, 100_000],
            layouts: vec!["blob", "rows"],
            compress: vec!["none", "zstd"],
            operations: vec!["write", "read"],
            rounds: 7,
            noise: 0.01,
            rate: plausible,
        }
    }
}

/// Rates similar to those of real databases: a cost per operation and a cost per byte.
pub fn plausible(at: At<'_>) -> f64 {
    let read = at.operation == "read";
    let (per_operation, per_byte) = match (at.target, read) {
        ("sqlite", true) => (4.0, 0.000_4),
        ("sqlite", false) => (30.0, 0.002),
        ("memcached", _) => (11.0, 0.000_5),
        (_, true) => (22.0, 0.001_1),
        (_, false) => (120.0, 0.004),
    };
    let bytes = at.payload as f64 * if at.compress == "none" { 1.0 } else { 0.45 };
    let squeeze = match (at.compress, read) {
        ("none", _) => 0.0,
        ("zstd", true) => 0.5 + at.payload as f64 * 0.000_15,
        ("zstd", false) => 4.0 + at.payload as f64 * 0.000_3,
        (_, true) => 1.0 + at.payload as f64 * 0.000_6,
        (_, false) => 9.0 + at.payload as f64 * 0.006,
    };
    let pieces = if at.layout == "rows" { (bytes / 4_000.0).ceil() } else { 1.0 };
    let micros = per_operation + pieces.mul_add(1.5, -1.5) + bytes * per_byte + squeeze;
    1e6 / micros
}

fn facts(target: &str) -> ServerFacts {
    let (engine, version, durability, settings) = match target {
        "postgres" => (
            "PostgreSQL",
            "17.6",
            DurabilityClass::Synced,
            vec![("synchronous_commit", "on"), ("fsync", "on")],
        ),
        "memcached" => ("memcached", "1.6.38", DurabilityClass::Memory, vec![]),
        _ => (
            "SQLite",
            "3.50.4",
            DurabilityClass::OsCache,
            vec![("journal_mode", "wal"), ("synchronous", "NORMAL")],
        ),
    };
    ServerFacts {
        engine: engine.into(),
        version: version.into(),
        client: "a client".into(),
        transport: if target.starts_with("sqlite") { "in process" } else { "TCP" }.into(),
        durability: Some(durability),
        durability_settings: settings.into_iter().map(|(name, value)| Setting::new(name, value)).collect(),
        settings: vec![Setting::new("page_size", "4096")],
        limits: Limits::default(),
        notes: Vec::new(),
        ..ServerFacts::default()
    }
}

fn word(text: &str) -> AxisValue {
    AxisValue::Word(text.to_owned())
}

/// The verification of that many transactions: writes are all read back and counted.
fn verified(writes: bool, made: u64) -> Verification {
    if writes {
        Verification { answers: 0, writes: made, records: made, counted: made, read_back: made }
    } else {
        Verification { answers: made, ..Verification::default() }
    }
}

impl Scenario {
    /// The complete run of this scenario.
    pub fn run(&self) -> Run {
        let header = self.header();
        let mut rng = Rng::new(7);
        let mut trials = Vec::new();
        for round in 0..self.rounds {
            for (cell, record) in header.cells.iter().enumerate() {
                if record.unavailable.is_some() {
                    continue;
                }
                for operation in &self.operations {
                    let outcome = Outcome::Measured(Box::new(self.measure(record, operation, &mut rng)));
                    let at_ms = trials.len() as u64 * 500;
                    trials.push(TrialRecord {
                        round,
                        cell,
                        operation: (*operation).to_owned(),
                        at_ms,
                        outcome,
                        rerun_reason: None,
                    });
                }
            }
        }
        let at_ms = trials.len() as u64 * 500;
        Run { trials, end: Some(RunEnd { at_ms, complete: true }), ..Run::new(header) }
    }

    fn measure(&self, record: &CellRecord, operation: &str, rng: &mut Rng) -> Measurement {
        let at = At {
            target: self.targets[record.target],
            operation,
            payload: record.axes.number("payload").unwrap(),
            layout: record.axes.word("layout").unwrap(),
            compress: record.axes.word("compress").unwrap(),
        };
        let unit = |rng: &mut Rng| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let rate = (self.rate)(at) * (1.0 + self.noise * (2.0 * unit(rng) - 1.0));
        let completed = 400;
        let mean_ns = 1e9 / rate;
        let mut service = Histogram::new();
        for _ in 0..completed {
            let tail = if unit(rng) > 0.98 { 3.0 } else { 0.0 };
            service.record((mean_ns * (0.85 + 0.2 * unit(rng) + tail)) as u64);
        }
        let writes = operation == "write";
        Measurement {
            clients: 1,
            offered: completed,
            completed,
            warmup: 40,
            elapsed_ns: (completed as f64 * mean_ns) as u64,
            client_cpu_ns: (completed as f64 * mean_ns * 0.6) as u64,
            service,
            verify_ns_per_op: 20.0 + at.payload as f64 * 0.000_05,
            verified: Some(verified(writes, completed + 40)),
            overhead_ns: 2_000_000,
            ..Measurement::default()
        }
    }

    pub fn header(&self) -> RunHeader {
        let mut cells = Vec::new();
        let cell = |target, payload, layout, compress, aa_control| {
            let axes = Cell::new([
                ("payload".to_owned(), AxisValue::Number(payload)),
                ("layout".to_owned(), word(layout)),
                ("compress".to_owned(), word(compress)),
                ("clients".to_owned(), AxisValue::Number(1)),
            ]);
            let stored = if compress == "none" { payload } else { payload * 45 / 100 };
            let stored_bytes = Some(stored);
            // The first target's A/A control uses a second instance, as for a throwaway server.
            let second_instance = aa_control && target == 0;
            CellRecord {
                target,
                axes,
                aa_control,
                second_instance,
                unavailable: None,
                unavailable_operations: BTreeMap::new(),
                stored_bytes,
            }
        };
        for target in 0..self.targets.len() {
            for payload in &self.payloads {
                for layout in &self.layouts {
                    for compress in &self.compress {
                        cells.push(cell(target, *payload, layout, compress, false));
                    }
                }
            }
            cells.push(cell(target, self.payloads[0], self.layouts[0], self.compress[0], true));
        }
        let overhead = self.operations.iter().zip([141.0, 118.0]).map(|(operation, ns_per_op)| {
            OverheadRecord { axes: cells[0].axes.clone(), operation: (*operation).to_owned(), ns_per_op }
        });
        RunHeader {
            run: "2026-03-01-1406-session".into(),
            began: 1_772_374_000,
            kurabe: "0.1.0".into(),
            command: ["kurabe", "run", "session"].map(str::to_owned).to_vec(),
            spec: RunSpec {
                axes: BTreeMap::from([
                    ("payload".to_owned(), self.payloads.iter().map(|n| AxisValue::Number(*n)).collect()),
                    ("layout".to_owned(), self.layouts.iter().map(|text| word(text)).collect()),
                    ("compress".to_owned(), self.compress.iter().map(|text| word(text)).collect()),
                    ("clients".to_owned(), vec![AxisValue::Number(1)]),
                ]),
                operations: self.operations.iter().map(|name| (*name).to_owned()).collect(),
                requests: BTreeMap::from([("write".to_owned(), 1_000), ("read".to_owned(), 10_000)]),
                duration_ns: Some(500_000_000),
                rounds: self.rounds,
                seed: 42,
                ..RunSpec::new("session", self.targets.iter().map(|target| format!("{target}:")))
            },
            machine: MachineFacts {
                cpu: "Example CPU 3.0 GHz".into(),
                cpus: 8,
                memory_bytes: 16_000_000_000,
                system: "Linux 6.12".into(),
            },
            targets: self
                .targets
                .iter()
                .enumerate()
                .map(|(n, name)| TargetRecord {
                    name: if self.targets[..n].contains(name) {
                        format!("{name}#2")
                    } else {
                        (*name).to_owned()
                    },
                    url: format!("{name}:"),
                    scheme: (*name).to_owned(),
                    facts: facts(name),
                    publishing: None,
                })
                .collect(),
            overhead: overhead.collect(),
            warnings: Vec::new(),
            origin: kurabe_core::origin::Origin::default(),
            agents: Vec::new(),
            cells,
        }
    }
}

/// The same run with throwaway servers that were started again between four blocks of rounds.
pub fn of_any_start(mut run: Run) -> Run {
    run.header.spec.restarts = 3;
    run.header.spec.targets = run.header.spec.targets.iter().map(|name| format!("up:{name}")).collect();
    run
}

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
    for trial in run.trials.iter_mut().filter(|trial| trial.round > 0) {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        measured.slices = 10;
        let of_second = run.header.cells[trial.cell].target == 1;
        measured.elapsed_ns = measured.elapsed_ns / 100 * if of_second { slower } else { 100 };
    }
    run
}
