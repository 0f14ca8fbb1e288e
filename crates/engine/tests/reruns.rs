//! Disturbed trials are repeated once; more rounds are made on request.

use crate::common::{self, Each, experiment, null, target};
use kurabe_core::run::{MachineFacts, Measurement, Outcome, Run, RunSpec, TrialRecord, Until};
use kurabe_engine::plan::Plan;
use kurabe_engine::{Conditions, Event, InterferenceCheck, NewRun, RestOfRun};

/// A run of point reads on `null:` with this many rounds, and more up to `most`; or the rest of an earlier one. Returns
/// the run, and the number of trials that were recorded before.
fn run(
    rounds: u32,
    most: Option<u32>,
    interference_check: Option<InterferenceCheck>,
    earlier: Option<Run>,
) -> (Run, usize) {
    let until = most.map(|max_rounds| Until { margin: 0.05, max_rounds, budget_ns: None });
    let spec = RunSpec { rounds, until, seed: 5, ..common::spec("point-read", &[], "read", 3_000) };
    let mut targets = [target("null", null())];
    let plan = Plan::new(experiment("point-read"), &spec, &targets).unwrap();
    let conditions = Conditions { interference_check, ..Conditions::default() };
    let mut listener = Each(|event: Event<'_>| {
        if let Event::TrialBegins { ended, planned, .. } = event {
            assert!(ended < planned, "{ended} of {planned}");
        }
    });
    let before = earlier.as_ref().map_or(0, |run| run.trials.len());
    let run = match earlier {
        None => {
            kurabe_engine::run(NewRun::new(plan), &mut targets, &conditions, &mut listener).unwrap().unwrap()
        }
        Some(run) => {
            let rest = RestOfRun { run, plan, max_rounds: None, machine: MachineFacts::default() };
            kurabe_engine::resume(rest, &mut targets, &conditions, &mut listener).unwrap()
        }
    };
    assert!(run.is_complete());
    (run, before)
}

fn always(measured: &Measurement) -> Option<String> {
    (measured.completed > 0).then(|| "other processes used 40 % of the machine's CPU".to_owned())
}

fn never(_: &Measurement) -> Option<String> {
    None
}

#[test]
fn disturbed_trial_is_rerun_once_at_end_of_round_within_limits() {
    let trials = run(40, None, Some(always), None).0.trials;
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
        assert_eq!(run(4, None, interference_check, None).0.trials.len(), 8);
    }
}

#[test]
fn resumed_run_reruns_trials_in_which_it_was_stopped() {
    let (mut earlier, _) = run(2, None, None, None);
    let Outcome::Measured(measured) = &mut earlier.trials[1].outcome else { panic!("{earlier:?}") };
    measured.stood_still_ns = 5_000_000_000;
    let stopped = earlier.trials[1].clone();
    let (resumed, before) = run(2, None, None, Some(earlier));
    let [again] = &resumed.trials[before..] else { panic!("{resumed:?}") };
    assert_eq!((again.round, again.cell), (stopped.round, stopped.cell));
    assert_eq!(again.rerun_reason.as_deref(), Some("kurabe itself stood still for 5 s"));
    let (whole, before) = run(2, None, None, Some(resumed));
    assert_eq!(whole.trials.len(), before);
}

#[test]
fn further_rounds_follow_at_planned_analyses_while_undecided() {
    let rounds = |trials: &[TrialRecord]| trials.iter().map(|trial| trial.round).collect::<Vec<_>>();
    let (whole, _) = run(2, Some(5), None, None);
    assert_eq!(rounds(&whole.trials), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    // Resumed during the additional rounds: only the missing trials are made.
    let earlier = Run { trials: whole.trials[..7].to_vec(), end: None, ..whole.clone() };
    let (resumed, before) = run(2, Some(5), None, Some(earlier));
    assert_eq!(rounds(&resumed.trials[before..]), [3, 4, 4]);
    let (again, before) = run(2, Some(5), None, Some(whole));
    assert_eq!(again.trials.len(), before);
}
