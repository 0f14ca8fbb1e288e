//! Synthetic runs: what an experiment would record, the same on every machine.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "each test file uses a part of it; what cannot go on stops"
)]

mod bottlenecks;
mod changed;
pub mod latin;
pub mod others;

pub use bottlenecks::{Pattern, bottlenecks, observed};
pub use changed::{by_cpus, interleaved, open_loop, troubled};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Answer, ExperimentInfo, OperationInfo};
use kurabe_core::facts::{Limits, ServerFacts, Setting};
use kurabe_core::run::{
    CellRecord, MachineFacts, Measurement, Outcome, OverheadRecord, Run, RunEnd, RunHeader, RunSpec,
    TargetRecord, TrialRecord,
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

/// A trial that was measured.
pub struct Measured<'a> {
    /// The position of its cell, and its record.
    pub cell: usize,
    pub record: &'a CellRecord,
    pub operation: &'a str,
    pub round: u32,
}

/// The measurements of a run, each with its trial.
pub fn measurements(run: &mut Run) -> impl Iterator<Item = (Measured<'_>, &mut Measurement)> {
    let Run { header, trials, .. } = run;
    trials.iter_mut().filter_map(|TrialRecord { cell, operation, round, outcome, .. }| {
        let Outcome::Measured(measured) = outcome else { return None };
        let record = &header.cells[*cell];
        Some((Measured { cell: *cell, record, operation, round: *round }, &mut **measured))
    })
}

/// The same run with throwaway servers that were started again between four blocks of rounds.
pub fn of_any_start(mut run: Run) -> Run {
    run.header.spec.restarts = 3;
    run.header.spec.targets = run.header.spec.targets.iter().map(|name| format!("up:{name}")).collect();
    run
}
