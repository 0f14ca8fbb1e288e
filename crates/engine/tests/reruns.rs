//! Disturbed trials are repeated once; more rounds are made on request.

use crate::common::{self, experiment, null, target};
use kurabe_core::run::{Measurement, Outcome, RunSpec, TrialRecord};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::run::event::Event;
use kurabe_engine::run::runner::{InterferenceCheck, Runner};

/// A run of point reads on `null:` with this many rounds, and additional rounds after them.
fn run(
    rounds: u32,
    more: &[u32],
    interference_check: Option<InterferenceCheck>,
    earlier: &[TrialRecord],
) -> Vec<TrialRecord> {
    let spec = RunSpec { rounds, seed: 5, ..common::spec("point-read", &[], "read", 3_000) };
    let targets = [target("null", null())];
    let plan = Plan::new(experiment("point-read"), &spec, &targets).unwrap();
    let runner = Runner { interference_check, ..Runner::new(&plan, "again", &targets) };
    let mut trials = Vec::new();
    let mut more = more.iter();
    let fixtures = Fixture::open_all(&plan, &targets, "again").unwrap();
    let complete = runner.run(fixtures, earlier, &mut |event| {
        match event {
            Event::TrialEnds { record } => trials.push(record.clone()),
            Event::RoundsEnd { further, .. } => *further = more.next().copied().unwrap_or(0),
            Event::TrialBegins { ended, planned, .. } => assert!(ended < planned, "{ended} of {planned}"),
            Event::Loading { .. } | Event::Restarting | Event::AgentLost { .. } | Event::Replanned { .. } => {
            }
        }
        Ok(())
    });
    assert!(complete.unwrap());
    trials
}

fn always(measured: &Measurement) -> Option<String> {
    (measured.completed > 0).then(|| "other processes used 40 % of the machine's CPU".to_owned())
}

fn never(_: &Measurement) -> Option<String> {
    None
}

#[test]
fn disturbed_trial_is_rerun_once_at_end_of_round_within_limits() {
    let trials = run(40, &[], Some(always), &[]);
    let again: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.rerun_reason.is_some()).collect();
    // The cell and its A/A control, forty rounds; all disturbed, with a fifth of the time for reruns.
    assert_eq!(trials.len() - again.len(), 80);
    assert!(!again.is_empty() && again.len() <= 40, "{}", again.len());
    for trial in &again {
        let same = |other: &&TrialRecord| other.round == trial.round && other.cell == trial.cell;
        assert_eq!(trials.iter().filter(same).count(), 2, "more than once: {trial:?}");
        let at = trials.iter().position(|other| std::ptr::eq(other, *trial)).unwrap();
        assert!(trials[..at].iter().any(|other| same(&other)), "before the trial that it replaces");
        let next = trials[at..].iter().find(|other| other.rerun_reason.is_none());
        assert!(next.is_none_or(|next| next.round > trial.round), "not at the end of its round");
    }
    assert!(trials.iter().all(|trial| trial.round < 40));
}

#[test]
fn no_trial_is_rerun_without_reason() {
    for interference_check in [None, Some(never as InterferenceCheck)] {
        assert_eq!(run(4, &[], interference_check, &[]).len(), 8);
    }
}

#[test]
fn resumed_run_reruns_trials_in_which_it_was_stopped() {
    let mut earlier = run(2, &[], None, &[]);
    let Outcome::Measured(measured) = &mut earlier[1].outcome else { panic!("it failed: {earlier:?}") };
    measured.stood_still_ns = 5_000_000_000;
    let resumed = run(2, &[], None, &earlier);
    assert_eq!(resumed.len(), 1);
    assert_eq!((resumed[0].round, resumed[0].cell), (earlier[1].round, earlier[1].cell));
    assert_eq!(resumed[0].rerun_reason.as_deref(), Some("kurabe itself stood still for 5 s"));
    earlier.extend(resumed);
    assert!(run(2, &[], None, &earlier).is_empty());
}

#[test]
fn further_rounds_follow_while_requested() {
    let trials = run(2, &[1, 2], None, &[]);
    let rounds: Vec<u32> = trials.iter().map(|trial| trial.round).collect();
    assert_eq!(rounds, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    // Resumed during the additional rounds: only the missing trials are made.
    let resumed = run(2, &[1, 2], None, &trials[..7]);
    assert_eq!(resumed.iter().map(|trial| trial.round).collect::<Vec<_>>(), [3, 4, 4]);
    assert!(run(2, &[1, 2], None, &trials).is_empty());
}
