//! Throwaway servers are restarted between blocks of rounds, and reloaded.

use kurabe_core::run::{Outcome, RunSpec, TrialRecord, Until};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::{Restart, SecondInstance, Target};
use kurabe_engine::run::event::Event;
use kurabe_engine::run::runner::Runner;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The restarts of three servers: the first target's, its second instance, the other target's.
type Counts = [Arc<AtomicU32>; 3];

fn counting(count: &Arc<AtomicU32>) -> Restart {
    let count = Arc::clone(count);
    Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

fn targets(counts: &Counts) -> [Target; 2] {
    let open = || kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = open().describe().unwrap();
    let [mut a, mut b] = ["a", "b"].map(|name| Target::new(name, open(), facts.clone()));
    a.restart = Some(counting(&counts[0]));
    a.second = Some(SecondInstance { driver: open(), restart: Some(counting(&counts[1])), restrict: None });
    b.restart = Some(counting(&counts[2]));
    [a, b]
}

fn spec(rounds: u32, restarts: u32, slice_ns: Option<u64>) -> RunSpec {
    let info = kurabe_experiments::registry::find("point-read").unwrap().info();
    RunSpec {
        axes: info.baseline(&[]).unwrap().alone(),
        operations: vec!["read".to_owned()],
        rounds,
        restarts,
        requests: BTreeMap::from([("read".to_owned(), 40)]),
        records: Some(100),
        slice_ns,
        ..RunSpec::new(info.name, ["null:", "null:"])
    }
}

/// The events of a run: its trials, and before which trial each restart came, with the loads after it.
#[derive(Default)]
struct Seen {
    trials: Vec<TrialRecord>,
    restarts: Vec<usize>,
    loads: usize,
}

fn run(spec: &RunSpec, targets: &[Target; 2], earlier: &[TrialRecord]) -> Result<Seen> {
    let experiment = kurabe_experiments::registry::find("point-read").unwrap();
    let plan = Plan::new(experiment, spec, targets).unwrap();
    let mut seen = Seen::default();
    let fixtures = Fixture::open_all(&plan, targets, "restarts").unwrap();
    let complete = Runner::new(&plan, "restarts", targets).run(fixtures, earlier, &mut |event| {
        match event {
            Event::TrialEnds { record } => seen.trials.push(record.clone()),
            Event::Restarting => seen.restarts.push(seen.trials.len()),
            Event::Loading { .. } => seen.loads += 1,
            Event::RoundsEnd { rounds, further } if spec.until.is_some() && rounds == spec.rounds => {
                *further = 4;
            }
            _ => {}
        }
        Ok(())
    })?;
    assert!(complete && seen.trials.iter().all(|trial| matches!(trial.outcome, Outcome::Measured(_))));
    Ok(seen)
}

fn counted(counts: &Counts) -> [u32; 3] {
    [0, 1, 2].map(|at| counts[at].load(Ordering::Relaxed))
}

#[test]
fn both_instances_are_restarted_between_blocks_and_reloaded() {
    // Two targets and two A/A controls per round.
    for (spec, before) in [
        (spec(6, 2, None), vec![8, 16]),
        (spec(9, 2, Some(1_000_000)), vec![12, 24]),
        (spec(6, 0, None), vec![]),
    ] {
        let counts = Counts::default();
        let seen = run(&spec, &targets(&counts), &[]).unwrap();
        assert_eq!(seen.restarts, before);
        assert_eq!(counted(&counts), [spec.restarts; 3]);
        assert_eq!(seen.trials.len() as u32, 4 * spec.rounds);
        for trial in &seen.trials {
            let Outcome::Measured(measured) = &trial.outcome else { panic!("{trial:?}") };
            // Each block begins with continuous trials.
            let continuous = spec.slice_ns.is_none() || trial.round % 3 == 0;
            assert_eq!(measured.slices == 0, continuous, "{trial:?}");
        }
        // Each instance; and a second store on the server without a second instance, if trials are interleaved.
        let stores = if spec.slice_ns.is_some() { 4 } else { 3 };
        assert_eq!(seen.loads as u32, stores * spec.blocks());
    }
}

#[test]
fn resumed_run_continues_with_the_same_blocks() {
    let whole = run(&spec(6, 2, None), &targets(&Counts::default()), &[]).unwrap();
    // Rounds 1 and 2 are a block, 3 and 4 the next. The servers were just started for it.
    for (made, before) in [(4, vec![4, 12]), (8, vec![8]), (10, vec![6]), (20, vec![])] {
        let counts = Counts::default();
        let seen = run(&spec(6, 2, None), &targets(&counts), &whole.trials[..made]).unwrap();
        assert_eq!(seen.restarts, before, "after {made} trials");
        assert_eq!(counted(&counts), [before.len() as u32; 3]);
        assert_eq!(seen.trials.len(), 24 - made);
    }
}

#[test]
fn further_rounds_are_further_blocks() {
    let until = Until { margin: 0.05, max_rounds: 8, budget_ns: None };
    let counts = Counts::default();
    let spec = RunSpec { until: Some(until), ..spec(4, 1, None) };
    let seen = run(&spec, &targets(&counts), &[]).unwrap();
    assert_eq!((seen.trials.len(), seen.restarts), (32, vec![8, 16, 24]));
    assert_eq!(counted(&counts), [3; 3]);
}

#[test]
fn server_that_does_not_restart_ends_run_with_its_reason() {
    let mut targets = targets(&Counts::default());
    targets[1].restart = Some(Box::new(|| Err(Error::new(ErrorKind::Unreachable, "its port is taken"))));
    let error = run(&spec(4, 1, None), &targets, &[]).err().unwrap().to_string();
    assert!(error.contains("b: restarting the server: its port is taken"), "{error}");
}
