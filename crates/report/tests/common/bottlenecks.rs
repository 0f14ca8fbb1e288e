//! What is observed of synthetic trials with known bottlenecks, and a run of such trials.

use super::Scenario;
use kurabe_core::observation::{
    CpuUse, DiskUse, HostUse, InterfaceUse, Observation, ProcessUse, Sample, ServerUse, ThreadUse, WireUse,
};
use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_core::stats_probe::{
    Counter, CounterScope, EngineCount, EngineUse, EngineWaits, SessionSample, StatementUse, Unavailable,
    WaitState,
};

/// The bottleneck of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    ClientFull,
    ServerThreadFull,
    Disk,
    RoundTrip,
    Unseen,
    InClient,
}

/// The observation of a trial with this bottleneck, on a machine with two processors.
pub fn observed(pattern: Pattern, measured: &Measurement) -> Observation {
    let wall_ns = measured.elapsed_ns.max(1_000_000_000);
    let of = |share: f64| (wall_ns as f64 * share) as u64;
    let process = |name: &str, cpu: f64, disk: f64| ProcessUse {
        name: name.to_owned(),
        processes: 1,
        threads: 2,
        cpu_ns: of(cpu),
        queue_ns: Some(of(0.01)),
        busiest: vec![ThreadUse { name: format!("{name}-1"), cpu_ns: of(cpu * 0.98), queue_ns: 0 }],
        read_bytes: Some(0),
        written_bytes: Some(of(disk) / 100),
        memory_bytes: 50_000_000,
        cpus: vec![0, 1],
        disk_wait: Some(disk),
        stopped: Some(0.0),
        ..ProcessUse::default()
    };
    let (client, server, disk) = match pattern {
        Pattern::ClientFull => (0.96, 0.3, 0.0),
        Pattern::ServerThreadFull => (0.3, 0.97, 0.0),
        Pattern::Disk => (0.05, 0.1, 0.9),
        Pattern::RoundTrip => (0.4, 0.4, 0.0),
        Pattern::Unseen => (0.5, 0.0, 0.0),
        Pattern::InClient => (0.99, 0.0, 0.0),
    };
    let busy = |share: f64| CpuUse { cpu: 0, busy_ns: of(share), steal_ns: 0 };
    Observation {
        wall_ns,
        client: ProcessUse { quota_cpus: None, ..process("kurabe", client, 0.0) },
        server: match pattern {
            Pattern::InClient => ServerUse::InClient,
            Pattern::Unseen => ServerUse::NotObserved("the server runs on another host, db.example".into()),
            _ => ServerUse::Seen(Box::new(process("secretserver", server, disk))),
        },
        tiers: Vec::new(),
        host: HostUse {
            cpus: vec![busy(client), CpuUse { cpu: 1, ..busy(server) }],
            disks: vec![DiskUse { name: "sda".into(), busy_ns: of(disk), writes: 9, ..DiskUse::default() }],
            interfaces: vec![InterfaceUse {
                name: "lo".into(),
                received_bytes: 1,
                sent_bytes: 1,
                speed: None,
            }],
            io_stall_ns: Some(of(disk)),
        },
        server_host: None,
        wire: Some(WireUse { connections: 1, rtt_us: 12.0, ..WireUse::default() }),
        waits: None,
        engine: None,
        samples: vec![Sample {
            at_ms: 500,
            client_cpu: client,
            server_cpu: Some(server),
            ..Sample::default()
        }],
        samples_taken: 12,
        cost_ns: of(0.002),
    }
}

/// Three targets with different bottlenecks: memcached's client, PostgreSQL's server (and storage for writes),
/// SQLite's process.
pub fn bottlenecks() -> Run {
    let mut run = Scenario {
        targets: vec!["sqlite", "postgres", "memcached"],
        payloads: vec![1_000, 10_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        rounds: 5,
        ..Scenario::default()
    }
    .run();
    let cells = run.header.cells.clone();
    for trial in &mut run.trials {
        let target = cells[trial.cell].target;
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        let pattern = match (target, trial.operation.as_str()) {
            (0, _) => Pattern::InClient,
            (1, "write") => Pattern::Disk,
            (1, _) => Pattern::ServerThreadFull,
            _ => Pattern::ClientFull,
        };
        let mut seen = observed(pattern, measured);
        (seen.engine, seen.waits) = server_statistics(target, trial.operation == "write", measured.completed);
        measured.observed = Some(Box::new(seen));
    }
    run
}

/// The server statistics of [`bottlenecks`]: SQLite reports bytes written, PostgreSQL most counters, memcached hardly
/// any.
fn server_statistics(
    target: usize,
    writes: bool,
    completed: u64,
) -> (Option<EngineUse>, Option<EngineWaits>) {
    let of = |what, value, from: &str, scope| EngineCount::new(what, value, from, scope);
    let mut engine = EngineUse::default();
    match target {
        0 => {
            let value = if writes { completed * 13_000 } else { 0 };
            engine.counts =
                vec![of(Counter::FileBytes, value, "wchar of this process", CounterScope::Process)];
            engine.not_sampled = Some("it works within the client".into());
            return (Some(engine), None);
        }
        1 => {}
        _ => return (Some(EngineUse::silent("it does not tell what its secretserver does")), None),
    }
    let log = if writes { completed * 1_280 } else { 90 };
    engine.counts = vec![
        of(Counter::LogBytes, log, "secretserver_lsn", CounterScope::Server),
        of(Counter::PagesRequested, completed * 3, "secretserver_hits", CounterScope::Database),
        of(Counter::PagesMissed, completed / 10, "secretserver_reads", CounterScope::Database),
        of(Counter::RowsExamined, completed, "secretserver_rows", CounterScope::Database),
        of(Counter::RowsReturned, completed, "secretserver_sent", CounterScope::Database),
        of(Counter::Checkpoints, 1, "secretserver_checkpoints", CounterScope::Server),
    ];
    engine.statements = vec![StatementUse {
        text: "SELECT data FROM secretserver WHERE id = $1".into(),
        calls: completed,
        time_ns: completed * 21_000,
        cpu_ns: None,
        rows_examined: None,
        rows: completed,
    }];
    engine.unavailable =
        vec![Unavailable { what: "lock waits".into(), why: "the secretserver counts none".into() }];
    let session_sample = |wait_state, state: &str, event: &str, statement: &str| SessionSample {
        wait_state,
        state: state.into(),
        event: event.into(),
        statement: statement.into(),
    };
    let mut waits = EngineWaits { cost_ns: 900_000, ..EngineWaits::default() };
    for n in 0..10 {
        let update = "UPDATE secretserver SET data = $1 WHERE id = $2";
        let at_work = if writes {
            session_sample(WaitState::Log, "active", "IO: SecretserverSync", update)
        } else {
            session_sample(WaitState::Running, "active", "", "SELECT data FROM secretserver WHERE id = $1")
        };
        waits.add(vec![if n == 9 { session_sample(WaitState::Idle, "idle", "", "") } else { at_work }]);
    }
    waits.finish();
    (Some(engine), Some(waits))
}
