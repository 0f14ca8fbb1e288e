//! The attribution of trials to bottlenecks, and its sentences.

use crate::common::{INFO, Pattern, Scenario, bottlenecks, observed, of_any_start};
use kurabe_core::observation::{Observation, ProcessUse, ServerUse, TierUse, WireUse};
use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_core::stats_probe::{EngineWaits, WaitGroup, WaitState};
use kurabe_report::attribution::{Attribution, Bottleneck, Confidence, of_trial};
use kurabe_report::finding::{Section, Why};
use kurabe_report::summary::VerdictResult;
use kurabe_report::{View, analyse, compare, csv, html, json, markdown, terminal};

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
        found.evidence.split_once("; behind the client, ").map(|(_, tiers)| tiers.to_owned())
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

#[test]
fn server_cpu_per_operation_uses_observed_rounds() {
    let mut run = bottlenecks();
    // PostgreSQL was not observed in one round.
    let postgres = run.header.cells.iter().position(|cell| cell.target == 1).unwrap();
    let (mut cpu_ns, mut completed) = (0, 0);
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == postgres && trial.operation == "read") {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        let seen = measured.observed.as_deref_mut().unwrap();
        if trial.round == 2 {
            seen.server = ServerUse::NotObserved("no observer ran".to_owned());
        } else {
            cpu_ns += seen.server_seen().unwrap().cpu_ns;
            completed += measured.completed;
        }
    }
    let summary = analyse(&run, Some(&INFO));
    let of = |target: &str| {
        let cell = summary.cells.iter().find(|cell| cell.target == target && cell.operation == "read");
        cell.unwrap().server_cpu_us_per_op
    };
    assert_eq!(of("sqlite"), None, "it is in the client");
    assert_eq!(of("postgres"), Some(cpu_ns as f64 / 1e3 / completed as f64));
    assert!(of("memcached").is_some());
    // Without an observed server there is no such column.
    let unseen = analyse(&Scenario::default().run(), Some(&INFO));
    assert!(!markdown::render(&unseen).contains("server CPU/op"));
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

#[test]
fn each_pattern_is_named_with_high_confidence() {
    for (pattern, bound) in [
        (Pattern::ClientFull, Bottleneck::ClientCpu),
        (Pattern::ServerThreadFull, Bottleneck::ServerCpu),
        (Pattern::Disk, Bottleneck::Disk),
        (Pattern::RoundTrip, Bottleneck::Latency),
        (Pattern::InClient, Bottleneck::ProcessCpu),
    ] {
        let found = plain(pattern);
        assert_eq!((found.bottleneck, found.confidence), (bound, Confidence::High), "{pattern:?}: {found:?}");
        assert!(!found.evidence.is_empty() && !found.evidence.contains("secretserver"), "{}", found.evidence);
    }
}

#[test]
fn no_observation_gives_no_attribution() {
    assert_eq!(of_trial(&measured(), None), None);
}

#[test]
fn unobserved_server_is_unknown_unless_client_is_saturated() {
    let found = plain(Pattern::Unseen);
    assert_eq!((found.bottleneck, found.split), (Bottleneck::Unknown, None));
    assert!(found.evidence.contains("another host"), "{}", found.evidence);
    let found = attributed(Pattern::Unseen, |seen, _| {
        seen.client.cpu_ns = 970_000_000;
        seen.client.busiest[0].cpu_ns = 960_000_000;
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ClientCpu, Confidence::High));
}

#[test]
fn single_threaded_server_is_saturated_on_half_idle_machine() {
    let found = attributed(Pattern::ServerThreadFull, |_, measured| measured.clients = 8);
    assert_eq!(found.bottleneck, Bottleneck::ServerCpu);
    assert!(found.evidence.contains("one thread of the server"), "{}", found.evidence);
}

#[test]
fn server_at_cgroup_limit_is_saturated() {
    let found = attributed(Pattern::RoundTrip, |seen, _| {
        let server = server(seen);
        (server.cpu_ns, server.quota_cpus, server.throttled_ns) = (200_000_000, Some(0.2), Some(700_000_000));
        quiet(seen);
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::High));
    assert!(found.evidence.contains("control group"), "{}", found.evidence);
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
fn saturated_shared_cpus_are_attributed_to_larger_user() {
    let found = shared(990, 400_000_000, 1_560_000_000);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::High), "{found:?}");
    let found = shared(990, 800_000_000, 1_160_000_000);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::Low), "{found:?}");
    let found = shared(990, 1_500_000_000, 460_000_000);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ClientCpu, Confidence::High), "{found:?}");
    assert!(found.evidence.contains("shared by client and server"), "{}", found.evidence);
}

#[test]
fn nearly_saturated_shared_cpus_are_attributed_to_server_with_most_use() {
    let found = shared(850, 350_000_000, 1_300_000_000);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::Low), "{found:?}");
    assert!(found.evidence.contains("shared by client and server"), "{}", found.evidence);
    let found = shared(850, 750_000_000, 900_000_000);
    assert_ne!(found.bottleneck, Bottleneck::ServerCpu, "{found:?}");
}

#[test]
fn pinned_server_is_saturated_with_its_cpu() {
    let found = attributed(Pattern::RoundTrip, |seen, measured| {
        measured.clients = 8;
        seen.client.cpus = vec![0];
        seen.client.cpu_ns = 400_000_000;
        let server = server(seen);
        server.cpus = vec![1];
        server.cpu_ns = 960_000_000;
        server.busiest[0].cpu_ns = 200_000_000;
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::High), "{found:?}");
}

/// A thread of the client that is not pinned may use the server's processor too.
#[test]
fn server_on_one_of_the_clients_cpus_is_saturated_with_it() {
    let found = attributed(Pattern::RoundTrip, |seen, measured| {
        measured.clients = 32;
        (seen.client.cpus, seen.client.cpu_ns) = (vec![0, 1], 500_000_000);
        let server = server(seen);
        (server.cpus, server.cpu_ns) = (vec![1], 920_000_000);
        server.busiest[0].cpu_ns = 40_000_000;
        seen.host.cpus[0].busy_ns = 500_000_000;
        seen.host.cpus[1].busy_ns = 930_000_000;
        seen.waits = Some(said(WaitState::Log, "IO: WALSync", 27));
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::High), "{found:?}");
    assert!(found.evidence.contains("used 0.92 of its 1 CPU"), "{}", found.evidence);
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
        assert!(found.evidence.contains("running for 100 % of the time"), "{}", found.evidence);
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
        found.evidence.contains("of an operation of") && !found.evidence.contains("round trip"),
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
    assert!(found.evidence.contains("the server used") && !found.evidence.contains("share"), "{found:?}");
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
fn pending_side_distinguishes_locks_from_network() {
    let sleeping = |at_server: u64| {
        attributed(Pattern::RoundTrip, |seen, measured| {
            seen.client.cpu_ns = 10_000_000;
            server(seen).cpu_ns = 20_000_000;
            server(seen).busiest[0].cpu_ns = 20_000_000;
            quiet(seen);
            measured.completed = 100;
            seen.wire = Some(WireUse {
                connections: 1,
                rtt_us: 30.0,
                classified: 100,
                at_server,
                ..WireUse::default()
            });
        })
    };
    let found = sleeping(98);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Locks, Confidence::Low), "{found:?}");
    let found = sleeping(2);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Network, Confidence::High), "{found:?}");
    let found = sleeping(45);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Latency, Confidence::Low), "{found:?}");
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

/// A trial whose clients slept while the server had their requests, and what the server reports.
fn held(said: Option<EngineWaits>, disk: f64) -> Attribution {
    attributed(Pattern::RoundTrip, |seen, measured| {
        seen.client.cpu_ns = 10_000_000;
        let server = server(seen);
        (server.cpu_ns, server.busiest[0].cpu_ns) = (20_000_000, 20_000_000);
        (server.disk_wait, server.written_bytes) = (Some(disk), Some(9_000));
        quiet(seen);
        measured.completed = 100;
        seen.wire = Some(WireUse {
            connections: 1,
            rtt_us: 30.0,
            classified: 100,
            at_server: 98,
            ..WireUse::default()
        });
        seen.waits = said;
    })
}

#[test]
fn server_reported_lock_waits_are_certain() {
    let found = held(Some(said(WaitState::Lock, "Lock: transactionid", 27)), 0.0);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Locks, Confidence::High));
    assert!(
        found.evidence.contains("the server reports") && found.evidence.contains("90 % of 30"),
        "{}",
        found.evidence
    );
    assert!(
        found.evidence.contains("Lock: transactionid") && found.evidence.contains("UPDATE t"),
        "{}",
        found.evidence
    );
    // Runs of the first version contain only this.
    let old = EngineWaits { active: 40, locks: 36, ..EngineWaits::default() };
    let found = held(Some(old), 0.0);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Locks, Confidence::High));
}

#[test]
fn server_reported_other_waits_exclude_locks() {
    assert_eq!(held(None, 0.0).bottleneck, Bottleneck::Locks);
    let found = held(Some(said(WaitState::Other, "Timeout: PgSleep", 29)), 0.0);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Latency, Confidence::Low), "{found:?}");
    assert!(found.evidence.contains("Timeout: PgSleep"), "{}", found.evidence);
    // A few waits for locks are not what the clients waited for.
    let found = held(Some(said(WaitState::Lock, "Lock: transactionid", 3)), 0.0);
    assert_eq!(found.bottleneck, Bottleneck::Latency, "{found:?}");
}

#[test]
fn server_reported_log_waits_count_as_storage() {
    let found = held(Some(said(WaitState::Log, "IO: WALSync", 27)), 0.0);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Disk, Confidence::Low), "{found:?}");
    let found = held(Some(said(WaitState::Log, "IO: WALSync", 27)), 0.4);
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Disk, Confidence::High), "{found:?}");
    assert!(found.evidence.contains("IO: WALSync"), "{}", found.evidence);
}

#[test]
fn embedded_database_with_dominant_tool_cost_is_attributed_to_tool() {
    let mut measured = measured();
    measured.observed = Some(Box::new(observed(Pattern::InClient, &measured)));
    let own = 0.8 * 1e9 / measured.completed as f64;
    assert_eq!(of_trial(&measured, Some(own)).unwrap().bottleneck, Bottleneck::ClientCpu);
    assert_eq!(of_trial(&measured, Some(own / 4.0)).unwrap().bottleneck, Bottleneck::ProcessCpu);
}

#[test]
fn a_trial_too_short_for_the_counters_is_never_certain() {
    let found = attributed(Pattern::ServerThreadFull, |seen, _| {
        for ns in [&mut seen.wall_ns, &mut seen.client.cpu_ns] {
            *ns /= 20;
        }
        let server = server(seen);
        server.cpu_ns /= 20;
        server.busiest[0].cpu_ns /= 20;
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::ServerCpu, Confidence::Low));
}

#[test]
fn verdicts_name_bottleneck_and_saturated_client_is_never_slower() {
    let summary = analyse(&bottlenecks(), Some(&INFO));
    let all: Vec<&str> =
        [Section::Verdict, Section::Detail].into_iter().flat_map(|s| summary.sentences(s)).collect();
    let has = |text: &str| assert!(all.iter().any(|sentence| sentence.contains(text)), "{text}: {all:#?}");
    has("PostgreSQL's bottleneck is the server's CPU");
    has("PostgreSQL's bottleneck is storage");
    has("Writes on memcached are at least 2.7 times as fast as on SQLite at every payload tested");
    has("Reads on memcached are at least");
    has("the client was saturated on memcached, so its result is a lower bound");
    for verdict in &summary.verdicts {
        let loser_is_memcached = verdict.pair.b == "memcached" && verdict.result == VerdictResult::Better
            || verdict.pair.a == "memcached" && verdict.result == VerdictResult::Worse;
        assert!(!loser_is_memcached, "{verdict:?}");
    }
}

#[test]
fn runs_with_saturated_clients_are_not_compared() {
    let first = of_any_start(bottlenecks());
    let mut second = first.clone();
    for trial in &mut second.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        measured.elapsed_ns *= 2;
    }
    let [a, b] = [&first, &second].map(|run| analyse(run, Some(&INFO)));
    let compared = compare::compare(&a, &b, &[]);
    for row in compared.rows.iter().filter(|row| row.primary) {
        let full = row.target == "memcached";
        let expected = if full { VerdictResult::NotComparable } else { VerdictResult::Worse };
        assert_eq!(
            (row.result, matches!(row.why, Some(Why::ClientBound { .. }))),
            (expected, full),
            "{row:?}"
        );
    }
}

#[test]
fn throttled_work_is_no_cpu_bottleneck() {
    // Running for 8 % and runnable for 80 % of the time, on processors used by others.
    let found = attributed(Pattern::InClient, |seen, _| {
        seen.client.cpu_ns = seen.wall_ns / 100 * 8;
        seen.client.busiest[0].cpu_ns = seen.client.cpu_ns;
        seen.client.queue_ns = Some(seen.wall_ns / 100 * 80);
    });
    assert_eq!(found.bottleneck, Bottleneck::Unknown, "{found:?}");
    assert_eq!(found.ground, None);
}

#[test]
fn sessions_that_wait_for_the_log_are_named_on_a_busy_machine_too() {
    let found = attributed(Pattern::RoundTrip, |seen, _| {
        seen.client.cpu_ns = seen.wall_ns / 100 * 8;
        seen.client.queue_ns = Some(seen.wall_ns / 100 * 45);
        let server = server(seen);
        (server.cpu_ns, server.busiest[0].cpu_ns) = (90_000_000, 90_000_000);
        (server.queue_ns, server.written_bytes) = (Some(300_000_000), Some(9_000));
        seen.waits = Some(said(WaitState::Log, "IO: WALSync", 23));
    });
    assert_eq!((found.bottleneck, found.confidence), (Bottleneck::Disk, Confidence::Low), "{found:?}");
    assert!(found.ground.unwrap().share >= 0.5 && found.evidence.contains("WALSync"), "{found:?}");
}

#[test]
fn every_rendering_marks_lower_bounds_with_evidence() {
    let summary = analyse(&bottlenecks(), Some(&INFO));
    let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
    for text in [terminal::render(&summary, &options), markdown::render(&summary)] {
        assert!(text.contains("≥ ") && text.contains("limited by") && text.contains("client CPU"), "{text}");
        assert!(text.contains("Bottlenecks") && text.contains("lower bound"), "{text}");
    }
    let page = html::render(&summary, &html::Options::default());
    assert!(page.contains("a lower bound") && page.contains("class=\"bar least\""));
    assert!(csv::render(&summary).contains(",client-cpu,"));
    assert!(json::render(&summary).contains("\"bottleneck\": \"disk\""));
}

#[test]
fn anonymous_report_omits_program_names() {
    let view = View { anonymise: true, ..View::default() };
    let summary = view.analyse(&bottlenecks(), Some(&INFO)).unwrap();
    let page = html::render(&summary, &html::Options::default());
    for text in [json::render(&summary), markdown::render(&summary), csv::render(&summary), page] {
        assert!(!text.to_ascii_lowercase().contains("secretserver"), "{text}");
    }
    assert!(json::render(&analyse(&bottlenecks(), Some(&INFO))).contains("secretserver"));
}

#[test]
fn attribution_of_cell_is_majority_of_trials() {
    let mut run: Run = bottlenecks();
    let mut changed = 0;
    for trial in &mut run.trials {
        if trial.cell == 0 && trial.operation == "read" && trial.round < 2 {
            let Outcome::Measured(measured) = &mut trial.outcome else { continue };
            measured.observed = Some(Box::new(observed(Pattern::Disk, &measured.clone())));
            changed += 1;
        }
    }
    assert_eq!(changed, 2);
    let summary = analyse(&run, Some(&INFO));
    let cell = summary.cells.iter().find(|cell| cell.target == "sqlite" && cell.operation == "read").unwrap();
    let found = cell.attribution.as_ref().unwrap();
    assert_eq!((found.bottleneck, found.trials, found.of_trials), (Bottleneck::ProcessCpu, 3, 5));
    assert_eq!(found.confidence, Confidence::Low);
}
