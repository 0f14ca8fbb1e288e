//! The attribution of trials to bottlenecks, and its sentences.

use crate::common::{Pattern, Scenario, observed};
use kurabe_core::observation::{Observation, ProcessUse, ServerUse, TierUse, WireUse};
use kurabe_core::run::{Measurement, Outcome};
use kurabe_core::stats_probe::{EngineWaits, WaitGroup, WaitState};
use kurabe_report::attribution::{Attribution, Bottleneck, Confidence, disturbed, of_trial};

fn measured() -> Measurement {
    let run = Scenario::default().run();
    let Outcome::Measured(measured) = &run.trials[0].outcome else {
        unreachable!("synthetic trials have figures")
    };
    Measurement { elapsed_ns: 1_000_000_000, ..(**measured).clone() }
}

/// The attribution of a trial with a modified pattern.
fn attributed(pattern: Pattern, change: impl FnOnce(&mut Observation, &mut Measurement)) -> Attribution {
    let mut measured = measured();
    let mut seen = observed(pattern, &measured);
    change(&mut seen, &mut measured);
    measured.observed = Some(Box::new(seen));
    of_trial(&measured, Some(500.0)).unwrap()
}

fn plain(pattern: Pattern) -> Attribution {
    attributed(pattern, |_, _| ())
}

#[test]
fn tier_that_used_most_of_server_cpu_is_named() {
    // CPU usage of each tier, in hundredths of a processor; `None` if it was not observed.
    let behind = |pattern: Pattern, tiers: &[(&str, Option<u64>)]| {
        let found = attributed(pattern, |seen, _| {
            let tier = |(name, cpu): &(&str, Option<u64>)| {
                let used = cpu.map_or(ServerUse::NotObserved("it is elsewhere".into()), |hundredths| {
                    let cpu_ns = seen.wall_ns / 100 * hundredths;
                    ServerUse::Seen(Box::new(ProcessUse { cpu_ns, ..ProcessUse::default() }))
                });
                TierUse { name: (*name).to_owned(), used }
            };
            seen.tiers = tiers.iter().map(tier).collect();
        });
        found.evidence.to_string().split_once("; behind the client, ").map(|(_, tiers)| tiers.to_owned())
    };
    let full = Pattern::ServerThreadFull;
    let (application, database) = (TierUse::APPLICATION, TierUse::DATABASE);
    assert_eq!(
        behind(full, &[(application, Some(70)), (database, Some(27))]).unwrap(),
        "application 0.70 CPUs and database 0.27 CPUs; the application is the bottleneck"
    );
    assert_eq!(
        behind(full, &[(application, Some(30)), (database, Some(67))]).unwrap(),
        "application 0.30 CPUs and database 0.67 CPUs; the database is the bottleneck"
    );
    // Applications count together.
    assert_eq!(
        behind(full, &[("application 1", Some(35)), ("application 2", Some(35)), (database, Some(27))])
            .unwrap(),
        "application 1 0.35 CPUs, application 2 0.35 CPUs and database 0.27 CPUs; the application is the bottleneck"
    );
    // Neither has most of it; one was not observed; something else was saturated.
    for (pattern, tiers) in [
        (full, [(application, Some(50)), (database, Some(47))]),
        (full, [(application, Some(90)), (database, None)]),
        (Pattern::ClientFull, [(application, Some(28)), (database, Some(2))]),
    ] {
        let clause = behind(pattern, &tiers).unwrap();
        assert!(clause.starts_with("application 0.") && !clause.contains("is the bottleneck"), "{clause}");
    }
    assert_eq!(behind(full, &[]), None);
}

/// Sets the machine's counters to those of client and server, without other load.
fn quiet(seen: &mut Observation) {
    seen.host.cpus[0].busy_ns = seen.client.cpu_ns;
    seen.host.cpus[1].busy_ns = server(seen).cpu_ns;
}

fn server(seen: &mut Observation) -> &mut kurabe_core::observation::ProcessUse {
    let ServerUse::Seen(server) = &mut seen.server else { unreachable!("this pattern has a server") };
    server
}

/// A trial, its bottleneck, how certain that is, and what the evidence says.
type Case = (Attribution, Bottleneck, Confidence, &'static [&'static str]);

fn assert_all(cases: impl IntoIterator<Item = Case>) {
    for (number, (found, bottleneck, confidence, parts)) in cases.into_iter().enumerate() {
        assert_eq!((found.bottleneck, found.confidence), (bottleneck, confidence), "{number}: {found:?}");
        let has = |part: &&str| found.evidence.to_string().contains(part);
        assert!(!found.evidence.to_string().is_empty() && parts.iter().all(has), "{number}: {found:?}");
        assert!(!found.evidence.to_string().contains("secretserver"), "{number}: {found:?}");
    }
}

#[test]
fn patterns_and_unobserved_servers_are_named() {
    use Bottleneck::{ClientCpu, Disk, Latency, ProcessCpu, ServerCpu, Unknown};
    use Confidence::{High, Low};
    let saturated = |seen: &mut Observation, _: &mut Measurement| {
        (seen.client.cpu_ns, seen.client.busiest[0].cpu_ns) = (970_000_000, 960_000_000);
    };
    let many = |_: &mut Observation, measured: &mut Measurement| measured.clients = 8;
    let at_quota = |seen: &mut Observation, _: &mut Measurement| {
        let server = server(seen);
        (server.cpu_ns, server.quota_cpus, server.throttled_ns) = (200_000_000, Some(0.2), Some(700_000_000));
        quiet(seen);
    };
    let short = |seen: &mut Observation, _: &mut Measurement| {
        for ns in [&mut seen.wall_ns, &mut seen.client.cpu_ns] {
            *ns /= 20;
        }
        let server = server(seen);
        server.cpu_ns /= 20;
        server.busiest[0].cpu_ns /= 20;
    };
    // Running for 8 % and runnable for 80 % of the time, on processors used by others.
    let throttled = |seen: &mut Observation, _: &mut Measurement| {
        seen.client.cpu_ns = seen.wall_ns / 100 * 8;
        seen.client.busiest[0].cpu_ns = seen.client.cpu_ns;
        seen.client.queue_ns = Some(seen.wall_ns / 100 * 80);
    };
    assert_all([
        (plain(Pattern::ClientFull), ClientCpu, High, &[][..]),
        (plain(Pattern::ServerThreadFull), ServerCpu, High, &[]),
        (plain(Pattern::Disk), Disk, High, &[]),
        (plain(Pattern::RoundTrip), Latency, High, &[]),
        (plain(Pattern::InClient), ProcessCpu, High, &[]),
        (plain(Pattern::Unseen), Unknown, Low, &["another host"]),
        (attributed(Pattern::Unseen, saturated), ClientCpu, High, &[]),
        (attributed(Pattern::ServerThreadFull, many), ServerCpu, High, &["one thread of the server"]),
        (attributed(Pattern::RoundTrip, at_quota), ServerCpu, High, &["control group"]),
        (attributed(Pattern::ServerThreadFull, short), ServerCpu, Low, &[]),
    ]);
    assert_eq!(plain(Pattern::Unseen).split, None);
    let found = attributed(Pattern::InClient, throttled);
    assert_eq!((found.bottleneck, found.ground), (Unknown, None));
}

#[test]
fn saturated_processors_are_attributed_to_who_used_them() {
    use Bottleneck::{ClientCpu, ServerCpu};
    use Confidence::{High, Low};
    let pinned = |seen: &mut Observation, measured: &mut Measurement| {
        measured.clients = 8;
        (seen.client.cpus, seen.client.cpu_ns) = (vec![0], 400_000_000);
        let server = server(seen);
        (server.cpus, server.cpu_ns) = (vec![1], 960_000_000);
        server.busiest[0].cpu_ns = 200_000_000;
    };
    // A thread of the client that is not pinned may use the server's processor too.
    let beside = |seen: &mut Observation, measured: &mut Measurement| {
        measured.clients = 32;
        (seen.client.cpus, seen.client.cpu_ns) = (vec![0, 1], 500_000_000);
        let server = server(seen);
        (server.cpus, server.cpu_ns) = (vec![1], 920_000_000);
        server.busiest[0].cpu_ns = 40_000_000;
        seen.host.cpus[0].busy_ns = 500_000_000;
        seen.host.cpus[1].busy_ns = 930_000_000;
        seen.waits = Some(said(WaitState::Log, "IO: WALSync", 27));
    };
    assert_all([
        (shared(990, 400_000_000, 1_560_000_000), ServerCpu, High, &[][..]),
        (shared(990, 800_000_000, 1_160_000_000), ServerCpu, Low, &[]),
        (shared(990, 1_500_000_000, 460_000_000), ClientCpu, High, &["shared by client and server"]),
        // Nearly saturated: the server has most of it.
        (shared(850, 350_000_000, 1_300_000_000), ServerCpu, Low, &["shared by client and server"]),
        (attributed(Pattern::RoundTrip, pinned), ServerCpu, High, &[]),
        (attributed(Pattern::RoundTrip, beside), ServerCpu, High, &["used 0.92 of its 1 CPU"]),
    ]);
    assert_ne!(shared(850, 750_000_000, 900_000_000).bottleneck, ServerCpu);
}

#[test]
fn waits_are_attributed_by_what_the_server_reports_or_else_by_where_requests_are() {
    use Bottleneck::{Disk, Latency, Locks, Network, Unknown};
    use Confidence::{High, Low};
    // Without statements.
    let counts = EngineWaits { active: 40, locks: 36, ..EngineWaits::default() };
    let locks = |seen| Some(said(WaitState::Lock, "Lock: transactionid", seen));
    let log = || Some(said(WaitState::Log, "IO: WALSync", 27));
    let sleep = Some(said(WaitState::Other, "Timeout: PgSleep", 29));
    assert_all([
        // A server that wrote may have waited for its log as well, …
        (held(None, 0.0, 98), Unknown, Low, &[][..]),
        // … which samples show, …
        (held(None, 0.35, 98), Disk, Low, &["35 %"]),
        // … and one that wrote nothing waited for something else.
        (held_without_writes(), Locks, Low, &[]),
        // What a tunnel to a far server holds is not at the server, as one sample of idle sessions shows.
        (
            held_by(Some(EngineWaits { samples: 1, sessions: 1, ..EngineWaits::default() }), 0.0, 98, 0),
            Latency,
            Low,
            &[],
        ),
        (held(None, 0.0, 2), Network, High, &[]),
        (held(None, 0.0, 45), Latency, Low, &[]),
        (
            held(locks(27), 0.0, 98),
            Locks,
            High,
            &["the server reports", "90 % of 30", "Lock: transactionid", "UPDATE t"],
        ),
        (held(Some(counts), 0.0, 98), Locks, High, &[]),
        (held(sleep, 0.0, 98), Latency, Low, &["Timeout: PgSleep"]),
        // A few waits for locks are not what the clients waited for.
        (held(locks(3), 0.0, 98), Latency, Low, &[]),
        (held(log(), 0.0, 98), Disk, Low, &[]),
        (held(log(), 0.4, 98), Disk, High, &["IO: WALSync"]),
    ]);
    let busy = attributed(Pattern::RoundTrip, |seen, _| {
        seen.client.cpu_ns = seen.wall_ns / 100 * 8;
        seen.client.queue_ns = Some(seen.wall_ns / 100 * 45);
        let server = server(seen);
        (server.cpu_ns, server.busiest[0].cpu_ns) = (90_000_000, 90_000_000);
        (server.queue_ns, server.written_bytes) = (Some(300_000_000), Some(9_000));
        seen.waits = Some(said(WaitState::Log, "IO: WALSync", 23));
    });
    assert!(busy.ground.unwrap().share >= 0.5, "{busy:?}");
    assert_all([(busy, Disk, Low, &["WALSync"][..])]);
}

#[test]
fn no_observation_gives_no_attribution() {
    assert_eq!(of_trial(&measured(), None), None);
}

/// Two processors shared by client and server, each busy for this many thousandths of the time.
fn shared(busy: u64, client: u64, server_cpu: u64) -> Attribution {
    attributed(Pattern::RoundTrip, |seen, measured| {
        measured.clients = 16;
        seen.client.cpu_ns = client;
        let server = server(seen);
        server.cpu_ns = server_cpu;
        server.busiest[0].cpu_ns = server_cpu / 10;
        for cpu in &mut seen.host.cpus {
            cpu.busy_ns = busy * 1_000_000;
        }
    })
}

#[test]
fn thread_does_not_run_for_more_than_the_whole_time() {
    for clients in [1, 4] {
        // The client has other threads, and its counters are read after the clock.
        let found = attributed(Pattern::ClientFull, |seen, measured| {
            measured.clients = clients;
            seen.client.cpu_ns = seen.wall_ns * clients * 103 / 100;
            seen.client.cpus = (0..8).collect();
            seen.client.busiest[0].cpu_ns = seen.wall_ns * 101 / 100;
        });
        assert_eq!(found.bottleneck, Bottleneck::ClientCpu, "{found:?}");
        assert!(found.evidence.to_string().contains("running for 100 % of the time"), "{}", found.evidence);
    }
}

#[test]
fn a_database_in_the_client_makes_no_round_trips() {
    let found = attributed(Pattern::InClient, |seen, measured| {
        seen.client.cpu_ns = 100_000_000;
        seen.client.busiest[0].cpu_ns = 100_000_000;
        seen.samples_taken = 3;
        measured.completed = 1_000;
    });
    assert_eq!(found.bottleneck, Bottleneck::Latency, "{found:?}");
    assert!(
        found.evidence.to_string().contains("of an operation of")
            && !found.evidence.to_string().contains("round trip"),
        "{found:?}"
    );
}

/// A saturated server with one processor on another machine; the client's processor has the same number.
fn on_another_machine(seen: &mut Observation, measured: &mut Measurement) {
    measured.clients = 8;
    seen.client.cpus = vec![0];
    seen.client.cpu_ns = 600_000_000;
    let server = server(seen);
    server.cpus = vec![0];
    server.cpu_ns = 960_000_000;
    server.busiest[0].cpu_ns = 200_000_000;
    let mut far = seen.host.clone();
    far.cpus.truncate(1);
    far.cpus[0].busy_ns = 970_000_000;
    seen.host.cpus.truncate(1);
    seen.host.cpus[0].busy_ns = 610_000_000;
    seen.server_host = Some(far);
}

#[test]
fn equal_cpu_numbers_of_two_machines_are_distinct() {
    let found = attributed(Pattern::RoundTrip, on_another_machine);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::High), "{found:?}");
    assert!(
        found.evidence.to_string().contains("the server used")
            && !found.evidence.to_string().contains("share"),
        "{found:?}"
    );
    // Other load on the server's machine disturbs a trial as well as on the client's.
    let found = attributed(Pattern::RoundTrip, |seen, measured| {
        on_another_machine(seen, measured);
        seen.server_host.as_mut().unwrap().cpus[0].busy_ns = 1_160_000_000;
    });
    assert_eq!(found.confidence, Confidence::Low);
    assert!(found.disturbed.unwrap().contains("other processes used 20 %"));
    let found = attributed(Pattern::RoundTrip, |seen, measured| {
        on_another_machine(seen, measured);
        seen.server_host.as_mut().unwrap().cpus[0].steal_ns = 300_000_000;
    });
    assert!(found.disturbed.unwrap().contains("hypervisor"));
}

#[test]
fn work_of_other_processes_marks_trial_disturbed() {
    let found = attributed(Pattern::ServerThreadFull, |seen, _| seen.host.cpus[0].busy_ns += 600_000_000);
    assert_eq!(found.confidence, Confidence::Low);
    assert!(found.disturbed.unwrap().contains("other processes"));
    let found = attributed(Pattern::ServerThreadFull, |seen, _| seen.host.cpus[0].steal_ns = 300_000_000);
    assert!(found.disturbed.unwrap().contains("hypervisor"));
}

#[test]
fn other_load_is_known_of_trials_that_are_long_enough_for_counters() {
    let trial = |wall_ns: u64| {
        let mut measured = measured();
        let mut seen = observed(Pattern::ServerThreadFull, &measured);
        seen.host.cpus[0].busy_ns += 600_000_000;
        seen.wall_ns = wall_ns;
        measured.observed_group = Some(Box::new(seen));
        measured
    };
    assert!(disturbed(&trial(1_000_000_000)).unwrap().contains("other processes"));
    assert_eq!(disturbed(&trial(10_000_000)), None, "counters have steps of 10 ms");
    assert_eq!(disturbed(&measured()), None);
}

/// The server's report if the sessions of three clients were in this state in `seen` of ten samples.
fn said(wait_state: WaitState, event: &str, seen: u64) -> EngineWaits {
    let group = WaitGroup {
        wait_state,
        state: "active".into(),
        event: event.into(),
        statement: "UPDATE t SET a = ? WHERE id = ?".into(),
        seen,
    };
    let of = |wanted: WaitState| if wait_state == wanted { seen } else { 0 };
    EngineWaits {
        active: seen,
        locks: of(WaitState::Lock),
        logs: of(WaitState::Log),
        samples: 10,
        sessions: 30,
        groups: vec![group],
        course: Vec::new(),
        cost_ns: 1,
    }
}

/// A trial whose clients slept while the server had so many of their hundred requests, and what the server reports.
fn held(said: Option<EngineWaits>, disk: f64, at_server: u64) -> Attribution {
    held_by(said, disk, at_server, 9_000)
}

fn held_without_writes() -> Attribution {
    held_by(None, 0.0, 98, 0)
}

/// The same of a server that wrote so many bytes.
fn held_by(said: Option<EngineWaits>, disk: f64, at_server: u64, written: u64) -> Attribution {
    attributed(Pattern::RoundTrip, |seen, measured| {
        seen.client.cpu_ns = 10_000_000;
        let server = server(seen);
        (server.cpu_ns, server.busiest[0].cpu_ns) = (20_000_000, 20_000_000);
        (server.disk_wait, server.written_bytes) = (Some(disk), Some(written));
        quiet(seen);
        measured.completed = 100;
        seen.wire =
            Some(WireUse { connections: 1, rtt_us: 30.0, classified: 100, at_server, ..WireUse::default() });
        seen.waits = said;
    })
}

#[test]
fn embedded_database_with_dominant_tool_cost_is_attributed_to_tool() {
    let mut measured = measured();
    measured.observed = Some(Box::new(observed(Pattern::InClient, &measured)));
    let own = 0.8 * 1e9 / measured.completed as f64;
    assert_eq!(of_trial(&measured, Some(own)).unwrap().bottleneck, Bottleneck::ClientCpu);
    assert_eq!(of_trial(&measured, Some(own / 4.0)).unwrap().bottleneck, Bottleneck::ProcessCpu);
}
