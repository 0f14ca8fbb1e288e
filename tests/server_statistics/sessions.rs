//! Session samples, compared with injected waits.

use super::*;

/// Locks the rows of the collection that the experiment changes, in a transaction of its own session.
fn hold(url: &str, spec: &RunSpec) -> Box<dyn Session> {
    let driver: Box<dyn Driver> = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    let experiment = registry::find(&spec.experiment).unwrap();
    let cell = Cell::new(spec.axes.iter().map(|(name, values)| (name.clone(), values[0].clone())));
    let dataset = Dataset { seed: spec.seed, records: spec.records, slot: 0 };
    let operations = (experiment.plan)(&cell, &dataset).unwrap().demand.operations;
    let update = operations.into_iter().find(|operation| matches!(operation, Operation::Update { .. }));
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let mut reply = Reply::new();
    let [begin, update] = [Operation::Begin, update.unwrap()].map(|one| session.prepare(&one).unwrap());
    session.execute(&begin, &[], &mut reply).unwrap();
    for row in 1..=8 {
        session.execute(&update, &[Value::Text("held"), Value::Int(row)], &mut reply).unwrap();
    }
    session
}

#[test]
fn row_lock_of_other_session_is_reported_as_lock_wait_with_statement() {
    let none: &[(&str, &str)] = &[];
    for (engine, settings) in [
        ("mysql", none),
        // Then its list of sessions is in another place.
        ("mysql", &[("performance_schema", "OFF")]),
        ("mariadb", none),
        ("postgres", none),
    ] {
        let Some(server) = testing::server_with(engine, |options| {
            settings.iter().fold(options, |options, (name, value)| options.set(*name, *value))
        }) else {
            continue;
        };
        let url = server.url().to_owned();
        let spec = spec("point-write", 3, None);
        let (held, asked) = (url.clone(), spec.clone());
        let first = AtomicBool::new(true);
        let hand = move || {
            if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                let mut holder = hold(&held, &asked);
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(900));
                    let rollback = holder.prepare(&Operation::Rollback).unwrap();
                    holder.execute(&rollback, &[], &mut Reply::new()).unwrap();
                    holder.close().unwrap();
                });
            }
            0
        };
        let (measured, _) = trial(&url, &spec, Arc::new(hand));
        let waits = measured.observed.as_ref().unwrap().waits.as_ref().unwrap();
        let lock = waits.groups.iter().find(|group| group.wait_state == WaitState::Lock);
        let lock = lock.unwrap_or_else(|| panic!("{engine}: no wait for a lock in {waits:?}"));
        assert!(lock.statement.contains("UPDATE") && lock.statement.contains("point_write"), "{lock:?}");
        assert!(!lock.event.is_empty() && waits.locks >= 3, "{engine}: {waits:?}");
        // The session with the locks is not a client's: there are three clients, and a sample may miss one.
        let seen = waits.samples * 2..=waits.samples * 3;
        assert!(seen.contains(&waits.sessions), "{engine}: {waits:?}");
        let found = kurabe_report::attribution::of_trial(&measured, None).unwrap();
        let observed = measured.observed.as_ref().unwrap();
        let others = kurabe_report::attribution::disturbed(&measured).is_some();
        // These clients wait. If their process is busy, that is for other tests, which the attribution cannot know.
        let busy = observed.client.cpu_ns > observed.wall_ns / 4;
        if others && found.bottleneck == Bottleneck::Unknown || busy {
            continue;
        }
        assert_eq!(found.bottleneck, Bottleneck::Locks, "{engine}: {found:?}");
        assert!(found.evidence.to_string().contains("the server reports"), "{found:?}");
        assert!(found.evidence.to_string().contains("UPDATE"), "{found:?}");
    }
}

#[test]
fn sleeping_statement_is_not_reported_as_lock_wait() {
    let statements = [
        ("mysql", "SELECT SLEEP(0.05) AS n", "User sleep"),
        ("mariadb", "SELECT SLEEP(0.05) AS n", "User sleep"),
        ("postgres", "SELECT 1 AS n FROM pg_sleep(0.05)", "Timeout: PgSleep"),
    ];
    beside_each_other(statements, |(engine, statement, event)| {
        let Some(server) = testing::server(engine) else { return };
        let place = Place::new();
        let text = format!(
            "[axes]\nclients = [3]\n[transaction.sleep]\nsteps = [ {{ sql = \"{statement}\", columns = [\"n\"], rows = 1 }} ]\n"
        );
        let path = place.file("sleep.toml", text);
        let args = ["--duration", "3s", "--rounds", "1", "--no-html", "--verbose"];
        let url = server.url().to_owned();
        let args = [&["run", "-f", &path, &url][..], &args].concat();
        place.run(&args).success();
        let report = place.report();
        let cell = &report["cells"][0];
        assert_ne!(cell["attribution"]["bottleneck"], "locks", "{engine}: {}", cell["attribution"]);
        let sessions = cell["sessions"].as_array().unwrap();
        assert!(sessions.iter().all(|session| session["wait_state"] != "lock"), "{engine}: {sessions:?}");
        let asleep = sessions.iter().find(|session| session["event"] == event).unwrap_or_else(|| {
            panic!("{engine}: no session was seen asleep: {sessions:?}, {}", cell["observed"])
        });
        let said = asleep["statement"].as_str().unwrap().to_ascii_lowercase();
        assert!(asleep["wait_state"] == "other" && said.contains("sleep"), "{engine}: {asleep}");
        let whole = place.run(&["report", "last", "--verbose"]).out;
        assert!(whole.contains("Session samples") && whole.contains(event), "{whole}");
    });
}
