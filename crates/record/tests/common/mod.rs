//! A small run with every member of the format.

use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::error::ErrorKind;
use kurabe_core::facts::{Limit, Limits, ServerFacts, Setting};
use kurabe_core::observation::{
    CpuUse, DiskUse, HostUse, InterfaceUse, Observation, ProcessUse, Sample, ServerUse, ThreadUse, TierUse,
    WireUse,
};
use kurabe_core::run::{
    CellRecord, MachineFacts, Measurement, Outcome, OverheadRecord, Resumption, RunEnd, RunHeader, RunSpec,
    TailCourse, TargetRecord, TrialRecord,
};
use kurabe_core::stats_probe::{
    Counter, CounterScope, EngineCount, EngineUse, EngineWaits, StatementUse, Unavailable, WaitGroup,
    WaitPoint, WaitState,
};
use kurabe_core::verification::Verification;
use kurabe_stats::Histogram;
use std::collections::BTreeMap;

fn cell(payload: u64, layout: &str) -> Cell {
    Cell::new([
        ("payload".to_owned(), AxisValue::Number(payload)),
        ("layout".to_owned(), AxisValue::Word(layout.to_owned())),
    ])
}

pub fn header(name: &str, began: u64) -> RunHeader {
    let facts = ServerFacts {
        engine: "SQLite".into(),
        version: "3.50.4".into(),
        client: "libsqlite3 in process".into(),
        transport: "in process".into(),
        durability: Some(DurabilityClass::Synced),
        durability_settings: vec![Setting::new("synchronous", "FULL")],
        settings: vec![Setting::new("page_size", "4096")],
        limits: Limits {
            value_bytes: Some(Limit { most: 1_000_000_000, set_by: "SQLITE_MAX_LENGTH".into() }),
            ..Limits::default()
        },
        notes: vec!["Ein Satz, mit \"Anführung\".".into()],
        ..ServerFacts::default()
    };
    let measured =
        CellRecord { axes: cell(1_000, "blob"), stored_bytes: Some(1_000), ..CellRecord::default() };
    RunHeader {
        run: name.to_owned(),
        began,
        kurabe: "0.1.0".into(),
        command: vec!["kurabe".into(), "run".into(), "session".into()],
        spec: RunSpec {
            axes: BTreeMap::from([
                ("payload".to_owned(), vec![AxisValue::Number(1_000), AxisValue::Number(4_000)]),
                ("layout".to_owned(), vec![AxisValue::Word("blob".into())]),
            ]),
            operations: vec!["write".into(), "read".into()],
            requests: BTreeMap::from([("write".to_owned(), 1_000), ("read".to_owned(), 10_000)]),
            budget_ns: Some(60_000_000_000),
            rounds: 2,
            seed: 42,
            // Not written, as other optional members.
            full_blocks: false,
            ..RunSpec::new("session", ["sqlite:"])
        },
        machine: MachineFacts {
            cpu: "A processor".into(),
            cpus: 2,
            memory_bytes: 8 << 30,
            system: "Linux 6".into(),
        },
        targets: vec![TargetRecord {
            name: "sqlite".into(),
            url: "sqlite:".into(),
            scheme: "sqlite".into(),
            facts,
            publishing: None,
        }],
        cells: vec![
            measured.clone(),
            CellRecord { aa_control: true, second_instance: true, ..measured },
            CellRecord {
                axes: cell(4_000, "blob"),
                unavailable: Some("a value of 4 kB is over the limit".into()),
                ..CellRecord::default()
            },
        ],
        warnings: vec!["the machine is busy".into()],
        origin: kurabe_core::origin::Origin::default(),
        agents: Vec::new(),
        overhead: vec![OverheadRecord {
            axes: cell(1_000, "blob"),
            operation: "read".into(),
            ns_per_op: 118.3,
        }],
    }
}

pub fn trials(count: u32) -> Vec<TrialRecord> {
    (0..count).map(trial).collect()
}

fn trial(n: u32) -> TrialRecord {
    let mut service = Histogram::new();
    for i in 0..200_u64 {
        service.record(5_000 + i * i + u64::from(n));
    }
    let measured = Measurement {
        clients: 1,
        offered: 200,
        completed: 200,
        warmup: 20,
        elapsed_ns: service.sum() as u64 + 40_000,
        client_cpu_ns: 900_000,
        service,
        verify_ns_per_op: 0.1 + f64::from(n) / 3.0,
        verified: Some(Verification { answers: 220, ..Verification::default() }),
        overhead_ns: 1_000_000,
        observed: Some(Box::new(observed())),
        tail: Some(TailCourse { part_ns: 1 << 20, p99_ns: vec![None, Some(50_000)] }),
        ..Measurement::default()
    };
    let outcome = if n % 4 == 3 {
        Outcome::Failed { kind: ErrorKind::Mismatch, reason: "record 7 is another's".into(), mismatches: 1 }
    } else {
        Outcome::Measured(Box::new(measured))
    };
    TrialRecord {
        round: n / 2,
        cell: (n % 2) as usize,
        operation: "read".into(),
        at_ms: u64::from(n) * 100,
        outcome,
        rerun_reason: None,
    }
}

pub fn resumption(trials_before: u64) -> Resumption {
    let RunHeader { machine, targets, .. } = header("a", 100);
    Resumption { began: 200, trials_before, max_rounds: None, kurabe: "0.2.0".into(), machine, targets }
}

pub fn end(complete: bool) -> RunEnd {
    RunEnd { at_ms: 12_345, complete }
}

/// The observation of a trial, with every optional member present.
fn observed() -> Observation {
    let process = ProcessUse {
        name: "server".into(),
        processes: 1,
        threads: 1,
        cpu_ns: 5,
        queue_ns: Some(6),
        busiest: vec![ThreadUse { name: "main".into(), cpu_ns: 5, queue_ns: 6 }],
        voluntary_switches: 7,
        involuntary_switches: 8,
        read_bytes: Some(9),
        written_bytes: Some(10),
        memory_bytes: 11,
        cpus: vec![0, 1],
        quota_cpus: Some(0.5),
        throttled_ns: Some(12),
        disk_wait: Some(0.25),
        stopped: Some(0.0),
    };
    Observation {
        wall_ns: 1_000_000_000,
        client: process.clone(),
        server: ServerUse::Seen(Box::new(process.clone())),
        tiers: vec![
            TierUse { name: "application".into(), used: ServerUse::Seen(Box::new(process)) },
            TierUse { name: "database".into(), used: ServerUse::NotObserved("elsewhere".into()) },
        ],
        host: HostUse {
            cpus: vec![CpuUse { cpu: 0, busy_ns: 1, steal_ns: 2 }],
            disks: vec![DiskUse { name: "sda".into(), flushes: 3, ..DiskUse::default() }],
            interfaces: vec![InterfaceUse { name: "eth0".into(), speed: Some(1), ..InterfaceUse::default() }],
            io_stall_ns: Some(4),
        },
        server_host: Some(HostUse::default()),
        wire: Some(WireUse { connections: 1, rtt_us: 20.5, ..WireUse::default() }),
        waits: Some(EngineWaits {
            active: 3,
            locks: 1,
            logs: 1,
            samples: 2,
            sessions: 4,
            groups: vec![WaitGroup {
                wait_state: WaitState::Lock,
                state: "active".into(),
                event: "Lock: transactionid".into(),
                statement: "UPDATE t".into(),
                seen: 1,
            }],
            course: vec![WaitPoint {
                at_ms: 105,
                samples: 1,
                states: [(WaitState::Lock, 1)].into(),
                background: vec!["checkpointer".into()],
            }],
            cost_ns: 14,
        }),
        engine: Some(EngineUse {
            counts: vec![EngineCount::new(
                Counter::LogBytes,
                15,
                "pg_current_wal_insert_lsn",
                CounterScope::Server,
            )],
            statements: vec![StatementUse {
                text: "UPDATE t".into(),
                calls: 16,
                time_ns: 17,
                cpu_ns: Some(7),
                rows_examined: Some(18),
                rows: 19,
            }],
            unavailable: vec![Unavailable { what: "lock waits".into(), why: "it counts none".into() }],
            not_sampled: Some("it cannot be asked".into()),
        }),
        samples: vec![Sample {
            at_ms: 100,
            server_cpu: Some(0.5),
            disk_busy: Some(0.25),
            network: Some(1_000),
            ..Sample::default()
        }],
        samples_taken: 3,
        cost_ns: 13,
    }
}
