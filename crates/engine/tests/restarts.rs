//! Throwaway servers are restarted between blocks of rounds, and reloaded.

use crate::common::{self, Each, null, target};
use kurabe_core::run::{MachineFacts, Outcome, Run, RunSpec, TrialRecord, Until};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::Free;
use kurabe_engine::prepare::target::{Restart, SecondInstance, Target};
use kurabe_engine::{Conditions, Event, NewRun, RestOfRun};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

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
    let [mut a, mut b] = ["a", "b"].map(|name| target(name, null()));
    a.restart = Some(counting(&counts[0]));
    a.second = Some(SecondInstance { driver: null(), restart: Some(counting(&counts[1])), restrict: None });
    b.restart = Some(counting(&counts[2]));
    [a, b]
}

fn spec(rounds: u32, restarts: u32, slice_ns: Option<u64>) -> RunSpec {
    let targets = vec!["null:".to_owned(); 2];
    RunSpec { targets, rounds, restarts, slice_ns, ..common::spec("point-read", &[], "read", 40) }
}

/// What happens in a run: its trials since it was resumed, and before which trial each restart came, with the loads
/// after it.
#[derive(Default)]
struct Seen {
    trials: Vec<TrialRecord>,
    restarts: Vec<usize>,
    loads: usize,
}

/// Makes a run, or continues an earlier one.
fn run(spec: &RunSpec, targets: &mut [Target; 2], earlier: Option<Run>) -> Result<(Run, Seen)> {
    let plan = Plan::new(common::experiment("point-read"), spec, targets).unwrap();
    let mut seen = Seen::default();
    let mut listener = Each(|event: Event<'_>| match event {
        Event::TrialEnds { record } => seen.trials.push(record.clone()),
        Event::Restarting => seen.restarts.push(seen.trials.len()),
        Event::Loading { .. } => seen.loads += 1,
        _ => {}
    });
    let conditions = Conditions::default();
    let run = match earlier {
        None => kurabe_engine::run(NewRun::new(plan), targets, &conditions, &mut listener)?.unwrap(),
        Some(run) => {
            let rest = RestOfRun { run, plan, max_rounds: None, machine: MachineFacts::default() };
            kurabe_engine::resume(rest, targets, &conditions, &mut listener)?
        }
    };
    assert!(run.is_complete() && !run.trials.iter().any(TrialRecord::has_failed));
    Ok((run, seen))
}

/// The numbers of rounds and of restarts of a run with this budget.
fn within(spec: &RunSpec, budget: Duration) -> (u32, u32) {
    let counts = Counts::default();
    let mut targets = targets(&counts);
    let plan = Plan::new(common::experiment("point-read"), spec, &targets).unwrap();
    let (mut said, mut restarts) = (spec.rounds, spec.restarts);
    let mut listener = Each(|event: Event<'_>| {
        if let Event::Replanned { plan, planned, .. } = event {
            assert!(plan.rounds <= planned && planned == said);
            said = plan.rounds;
            restarts = plan.restarts;
        }
    });
    let free = Free { rounds: true, restarts: true, ..Free::default() };
    let new = NewRun { free, budget: Some(budget), ..NewRun::new(plan) };
    let run = kurabe_engine::run(new, &mut targets, &Conditions::default(), &mut listener).unwrap().unwrap();
    assert!(run.is_complete());
    // Each cell has every round, and no more than was said.
    let rounds = run.trials.iter().map(|trial| trial.round + 1).max().unwrap();
    assert_eq!(run.trials.len(), run.header.cells.len() * rounds as usize);
    assert_eq!((rounds, run.header.spec.rounds, run.header.spec.restarts), (said, said, restarts));
    assert_eq!(counts[0].load(Ordering::Relaxed), restarts);
    (rounds, restarts)
}

#[test]
fn a_run_gives_up_blocks_that_its_budget_does_not_allow_and_keeps_those_that_verdicts_need() {
    let (none, much, slice) = (Duration::from_nanos(1), Duration::from_secs(3_600), Some(1_000_000));
    assert_eq!(within(&spec(18, 8, slice), much), (18, 8));
    // A restart is taken to need two seconds, and a run may be late by three tenths.
    // Six blocks, or fewer where other work makes the trials longer than they are.
    let (rounds, restarts) = within(&spec(18, 8, slice), Duration::from_secs(10));
    assert!((1..=6).contains(&restarts) && rounds <= 14, "{rounds} rounds, {restarts} restarts");
    assert_eq!(within(&spec(18, 8, slice), Duration::from_secs(4)), (18, 0));
    assert_eq!(within(&spec(18, 8, slice), none), (4, 0));
    assert_eq!(within(&spec(16, 0, slice), much), (16, 0));
    assert_eq!(within(&spec(16, 0, slice), none), (4, 0));
    assert_eq!(within(&spec(16, 0, None), none), (4, 0));
    assert_eq!(within(&spec(3, 0, None), none), (3, 0));
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
        let (_, seen) = run(&spec, &mut targets(&counts), None).unwrap();
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
    let (whole, _) = run(&spec(6, 2, None), &mut targets(&Counts::default()), None).unwrap();
    // Rounds 1 and 2 are a block, 3 and 4 the next. The servers were just started for it.
    for (made, before) in [(4, vec![4, 12]), (8, vec![8]), (10, vec![6]), (20, vec![])] {
        let counts = Counts::default();
        let earlier = Run { trials: whole.trials[..made].to_vec(), end: None, ..whole.clone() };
        let (_, seen) = run(&spec(6, 2, None), &mut targets(&counts), Some(earlier)).unwrap();
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
    let (_, seen) = run(&spec, &mut targets(&counts), None).unwrap();
    assert_eq!((seen.trials.len(), seen.restarts), (32, vec![8, 16, 24]));
    assert_eq!(counted(&counts), [3; 3]);
}

#[test]
fn server_that_does_not_restart_ends_run_with_its_reason() {
    let mut targets = targets(&Counts::default());
    targets[1].restart = Some(Box::new(|| Err(Error::new(ErrorKind::Unreachable, "its port is taken"))));
    let error = run(&spec(4, 1, None), &mut targets, None).err().unwrap().to_string();
    assert!(error.contains("b: restarting the server: its port is taken"), "{error}");
}
