//! Time budgets: trials are long enough, and values or rounds are dropped for that.

use crate::common::{self, experiment, null, target};
use kurabe_core::axis::AxisValue;
use kurabe_core::question::Question;
use kurabe_core::run::{MIN_TRIAL, RunSpec};
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::{Fit, Free, fit};
use kurabe_engine::prepare::target::Target;
use std::time::Duration;

/// Fits `session` with this number of rounds, and all axes at their defaults, into a budget.
fn fitted(rounds: u32, free: &Free, budget: Duration) -> (RunSpec, Fit) {
    fitted_on(1, rounds, free, budget, false)
}

/// The same with several targets, which can be restarted if they are throwaway servers.
fn fitted_on(targets: usize, rounds: u32, free: &Free, budget: Duration, throwaway: bool) -> (RunSpec, Fit) {
    let (plan, fit) = fitted_of("session", targets, rounds, free, budget, throwaway, None);
    // Dropped values are no longer planned.
    assert_eq!(plan.cells.len(), targets * values(&plan.spec));
    (plan.spec, fit)
}

/// The same with this experiment.
fn fitted_of(
    experiment: &str,
    targets: usize,
    rounds: u32,
    free: &Free,
    budget: Duration,
    throwaway: bool,
    slice_ns: Option<u64>,
) -> (Plan, Fit) {
    let experiment = common::experiment(experiment);
    let info = experiment.info;
    let default = |text: &&str, axis: &kurabe_core::axis::AxisInfo| axis.parse(text).unwrap();
    let axes = info.axes.iter().map(|axis| {
        // More than a budget has room for.
        let values = match axis.name {
            "compress" => &["none", "gzip", "zstd", "lz4"],
            // `null:` has no program that dumps.
            "tool" => &["kurabe"][..],
            _ => axis.default,
        };
        (axis.name.to_owned(), values.iter().map(|text| default(text, axis)).collect::<Vec<_>>())
    });
    let spec = RunSpec {
        axes: axes.collect(),
        operations: info.operation_names(),
        rounds,
        budget_ns: Some(budget.as_nanos() as u64),
        slice_ns,
        ..RunSpec::new(info.name, vec![if throwaway { "up:null" } else { "null:" }; targets])
    };
    let targets: Vec<Target> = (0..targets).map(|number| target(format!("null#{number}"), null())).collect();
    let mut plan = Plan::draft(experiment, spec, &vec![false; targets.len()]).unwrap();
    plan.compare(&targets);
    let fit = fit(&mut plan, &targets, free, budget, 1.0);
    (plan, fit)
}

fn default_of(axis: &str) -> Vec<AxisValue> {
    let info = experiment("session").info;
    let axis = info.axes.iter().find(|one| one.name == axis).unwrap();
    axis.default.iter().map(|text| axis.parse(text).unwrap()).collect()
}

fn all_free() -> Free {
    let info = experiment("session").info;
    Free { axes: info.axes.iter().map(|axis| axis.name.to_owned()).collect(), rounds: true, restarts: true }
}

fn values(spec: &RunSpec) -> usize {
    spec.axes.values().map(Vec::len).product()
}

#[test]
fn default_run_drops_cells_instead_of_shortening_trials() {
    let budget = Duration::from_secs(60);
    let (spec, fit) = fitted(6, &all_free(), budget);
    assert!(fit.trial >= MIN_TRIAL, "{:?}", fit.trial);
    assert!(!fit.left_out.is_empty() && fit.expected <= budget, "{fit:?}");
    // Three operations, and the A/A control of the first cell.
    let trials = (values(&spec) as u32 + 1) * 3 * spec.rounds;
    assert!(fit.trial * trials <= budget, "{trials} trials of {:?}", fit.trial);
    assert_eq!(spec.rounds, 6, "cells are dropped before rounds");
    // The remaining sizes are the two ends and values between them.
    let payloads = &spec.axes["payload"];
    assert_eq!(payloads.first(), Some(&AxisValue::Number(1_000)));
    assert_eq!(payloads.last(), Some(&AxisValue::Number(1_000_000)));
    assert!(payloads.len() >= 3, "{payloads:?}");
}

#[test]
fn time_for_long_trials_makes_rounds_instead() {
    let minutes = Duration::from_secs(1_800);
    let (spec, fit) = fitted(6, &all_free(), minutes);
    assert!((7..=16).contains(&spec.rounds), "{}", spec.rounds);
    assert!(fit.trial >= Duration::from_secs(1), "{:?}", fit.trial);
    assert_eq!(fit.rounds_before, None, "rounds were added, not dropped");
    let (asked, fit) = fitted(6, &Free { rounds: false, ..all_free() }, minutes);
    assert_eq!(asked.rounds, 6, "the user's value stays");
    assert!(fit.trial > Duration::from_secs(1), "{:?}", fit.trial);
}

#[test]
fn interleaved_runs_have_many_short_rounds() {
    let free = Free { axes: Vec::new(), ..all_free() };
    let fitted = |budget: u64, free: &Free| {
        let (plan, fit) =
            fitted_of("point-read", 2, 6, free, Duration::from_secs(budget), false, Some(10_000_000));
        (plan.spec.rounds, fit)
    };
    // Two targets with their A/A controls for the usual time.
    let (rounds, fit) = fitted(40, &free);
    assert!((20..=30).contains(&rounds), "{rounds}");
    assert!(fit.trial >= MIN_TRIAL && fit.trial < Duration::from_millis(400), "{fit:?}");
    // More time makes longer trials; less makes fewer rounds, of at least four.
    let (rounds, long) = fitted(400, &free);
    assert!(rounds == 30 && long.trial > 5 * fit.trial, "{long:?}");
    let (rounds, short) = fitted(8, &free);
    assert!((7..=12).contains(&rounds) && short.rounds_before.is_none(), "{rounds} {short:?}");
    assert_eq!(fitted(1, &free).0, 4);
    assert_eq!(fitted(40, &Free { rounds: false, ..free.clone() }).0, 6, "the user's value stays");
}

#[test]
fn default_axes_give_way_to_rounds_where_targets_are_compared_at_values_of_others() {
    let payloads = |named: &str| {
        let axes = experiment("session").info.axes.iter().map(|axis| axis.name.to_owned());
        let free = Free { axes: axes.filter(|axis| axis != named).collect(), ..all_free() };
        let budget = Duration::from_secs(60);
        let experiment = common::experiment("session");
        let mut spec = RunSpec {
            axes: free.axes.iter().map(|name| (name.clone(), default_of(name))).collect(),
            operations: experiment.info.operation_names(),
            rounds: 6,
            budget_ns: Some(budget.as_nanos() as u64),
            slice_ns: Some(10_000_000),
            question: Some(Question {
                compare: vec!["targets".to_owned()],
                within: ["payload", named]
                    .iter()
                    .filter(|name| !name.is_empty())
                    .map(|name| (*name).to_owned())
                    .collect(),
            }),
            ..RunSpec::new("session", vec!["null:"; 3])
        };
        if !named.is_empty() {
            spec.axes.insert(named.to_owned(), [1, 16].map(AxisValue::Number).into());
        }
        let targets: Vec<Target> = (0..3).map(|number| target(format!("null#{number}"), null())).collect();
        let mut plan = Plan::draft(experiment, spec, &[false; 3]).unwrap();
        plan.compare(&targets);
        fit(&mut plan, &targets, &free, budget, 1.0);
        (plan.spec.axes["payload"].len(), plan.spec.rounds)
    };
    let (one, many_rounds) = payloads("clients");
    let (several, rounds) = payloads("");
    assert_eq!((one, several), (1, 2));
    assert!(many_rounds >= 7 && rounds >= 7, "{many_rounds} {rounds}");
}

#[test]
fn time_of_work_that_cannot_be_shortened_is_counted() {
    let experiment = common::experiment("reload");
    let budget = experiment.budget.unwrap();
    let (plan, fit) =
        fitted_of("reload", 1, 6, &Free { axes: Vec::new(), ..all_free() }, budget, false, None);
    // Two million rows, two orders, and the A/A control.
    assert!(fit.trial >= Duration::from_secs(5) && fit.expected <= budget, "{fit:?}");
    let trials = 3 * plan.spec.rounds;
    assert!(fit.trial * trials <= budget, "{trials} trials of {:?}", fit.trial);
    let (plan, late) =
        fitted_of("reload", 1, 6, &Free { axes: Vec::new(), ..all_free() }, budget / 8, false, None);
    assert!(plan.spec.rounds < 6 && late.expected > budget / 8, "{late:?}");
}

#[test]
fn round_trips_of_jobs_take_as_long_as_was_measured() {
    let experiment = common::experiment("bulk");
    let expected = |round_trip: Duration| {
        let axes = experiment.info.axes.iter().map(|axis| {
            let text = if axis.name == "fetch" { "1" } else { axis.default[0] };
            (axis.name.to_owned(), vec![axis.parse(text).unwrap()])
        });
        let axes = axes.collect();
        let operations = experiment.info.operation_names();
        let spec = RunSpec { axes, operations, rounds: 4, ..RunSpec::new("bulk", vec!["null:"]) };
        let targets = [Target { round_trip: Some(round_trip), ..target("null".to_owned(), null()) }];
        let mut plan = Plan::draft(experiment, spec, &[false]).unwrap();
        plan.compare(&targets);
        let operations = plan.operations.len() as u32;
        (fit(&mut plan, &targets, &Free::default(), Duration::from_secs(20), 1.0).expected, operations)
    };
    let ((near, operations), (far, _)) = (expected(Duration::ZERO), expected(Duration::from_millis(20)));
    // 100,000 rows one by one, in each operation of four rounds; the A/A control is measured in some of them.
    let least = Duration::from_secs(2_000) * 4 * operations;
    let more = far.saturating_sub(near);
    assert!((least..=least * 3).contains(&more), "{near:?} {far:?}");
}

/// The time of `point-read` or another experiment with 100,000 rows, of a target that is changed.
fn expected_with(name: &str, change: impl FnOnce(&mut Target)) -> Duration {
    expected_at(1.0, name, change)
}

/// The same on a machine that is slower by this factor.
fn expected_at(slowness: f64, name: &str, change: impl FnOnce(&mut Target)) -> Duration {
    let experiment = common::experiment(name);
    let mut axes = experiment.info.baseline(&[]).unwrap().alone();
    // `null:` has no program that dumps.
    axes.entry("tool".to_owned()).and_modify(|tools| *tools = vec![AxisValue::Word("kurabe".to_owned())]);
    let operations = experiment.info.operation_names();
    let spec =
        RunSpec { axes, operations, rounds: 4, records: Some(100_000), ..RunSpec::new(name, vec!["null:"]) };
    let mut target = target("null".to_owned(), null());
    change(&mut target);
    let mut plan = Plan::draft(experiment, spec, &[false]).unwrap();
    plan.compare(std::slice::from_ref(&target));
    fit(&mut plan, &[target], &Free::default(), Duration::from_secs(1), slowness).expected
}

#[test]
fn loading_and_searching_take_as_long_as_the_database_needs() {
    let usual = expected_with("point-read", |_| {});
    let slow = expected_with("point-read", |target| target.pace.loaded_per_second = 10e3);
    // Ten seconds for the rows, and ten for those of the A/A control on the same server.
    assert!((9.0..30.0).contains(&slow.saturating_sub(usual).as_secs_f64()), "{usual:?} {slow:?}");
    let scans = |target: &mut Target| target.pace.scanned_per_second = Some(100e3);
    let searched = expected_with("point-read", scans).saturating_sub(usual);
    // A request takes a second. Each of some five trials has three at least.
    assert!((9.0..30.0).contains(&searched.as_secs_f64()), "{searched:?}");
    // Sessions have keys of text, which an index finds.
    assert_eq!(expected_with("session", scans), expected_with("session", |_| {}));
}

#[test]
fn work_whose_end_is_not_set_takes_as_long_as_the_machine_is_slow() {
    let times = |name| [1.0, 3.0].map(|slowness| expected_at(slowness, name, |_| {}).as_secs_f64());
    let [usual, slow] = times("reload");
    assert!((2.5..3.1).contains(&(slow / usual)), "{usual} {slow}");
    let scans = |target: &mut Target| target.pace.scanned_per_second = Some(100e3);
    let [usual, slow] = [1.0, 3.0].map(|slowness| expected_at(slowness, "point-read", scans).as_secs_f64());
    assert!((2.5..3.1).contains(&(slow / usual)), "{usual} {slow}");
}

#[test]
fn records_that_are_loaded_alone_wait_for_their_answers() {
    let with = |round_trip| expected_with("cache-aside", |target| target.round_trip = Some(round_trip));
    let (near, slow) = (with(Duration::from_micros(10)), with(Duration::from_millis(1)));
    // 100,000 records, each written and read by a request of its own.
    let more = slow.saturating_sub(near).as_secs_f64();
    assert!((200.0..1_000.0).contains(&more), "{near:?} {slow:?}");
}

#[test]
fn budget_includes_aa_controls() {
    let budget = Duration::from_secs(90);
    let (spec, fit) = fitted_on(3, 6, &all_free(), budget, false);
    assert!(fit.expected <= budget, "{fit:?}");
    let trials = 3 * (values(&spec) as u32 + 1) * 3 * spec.rounds;
    // The rest is for warming up, loading and checking.
    assert!(fit.trial * trials <= budget.mul_f64(0.61), "{trials} trials of {:?}", fit.trial);
}

#[test]
fn throwaway_servers_are_restarted_where_there_is_time() {
    let minutes = Duration::from_secs(1_800);
    let (spec, fit) = fitted_on(2, 6, &all_free(), minutes, true);
    assert_eq!(spec.restarts, 8);
    assert_eq!(spec.rounds_in_blocks(spec.rounds), spec.rounds, "blocks have equal lengths");
    assert!(fit.trial >= MIN_TRIAL && fit.expected.as_secs() <= minutes.as_secs(), "{fit:?}");
    for free in [Free { rounds: false, ..all_free() }, Free { restarts: false, ..all_free() }] {
        let (asked, _) = fitted_on(2, 6, &free, minutes, true);
        assert_eq!(asked.restarts, 0, "the user's value stays");
    }
    let (short, _) = fitted_on(2, 6, &all_free(), Duration::from_secs(20), true);
    assert_eq!((short.restarts, short.rounds <= 6), (0, true), "cells have priority over restarts");
    let (own, _) = fitted_on(2, 6, &all_free(), minutes, false);
    assert_eq!(own.restarts, 0, "only throwaway servers can be restarted");
}

#[test]
fn nothing_is_dropped_if_there_is_time_for_all() {
    // Separate trials, and interleaved ones, of which a run has more rounds.
    for slice_ns in [None, Some(10_000_000)] {
        let fitted = |budget| fitted_of("session", 1, 6, &all_free(), budget, false, slice_ns);
        let (_, fit) = fitted(Duration::from_secs(40));
        assert!(!fit.left_out.is_empty() && fit.time_for_all > Duration::from_secs(40), "{fit:?}");
        let (plan, enough) = fitted(fit.time_for_all + Duration::from_secs(1));
        assert!(enough.left_out.is_empty() && enough.rounds_before.is_none(), "{enough:?}");
        assert_eq!(values(&plan.spec), 40);
    }
    let (_, fit) = fitted(6, &all_free(), Duration::from_secs(40));
    let (spec, long) = fitted(6, &all_free(), fit.time_for_all * 10);
    assert!(long.trial * spec.rounds > MIN_TRIAL * 6 * 9, "the time is used: {:?}", long.trial);
}

#[test]
fn rounds_are_dropped_if_user_set_the_axes() {
    let free = Free { axes: Vec::new(), rounds: true, restarts: true };
    let (spec, fit) = fitted(6, &free, Duration::from_secs(90));
    assert_eq!(values(&spec), 40);
    assert_eq!(fit.rounds_before, Some(6));
    assert!((4..6).contains(&spec.rounds), "{}", spec.rounds);
}

#[test]
fn budget_that_cannot_be_kept_is_reported() {
    let budget = Duration::from_secs(15);
    let (spec, fit) = fitted(6, &Free::default(), budget);
    assert_eq!((values(&spec), spec.rounds), (40, 6), "the user asked for these");
    assert!(fit.trial >= MIN_TRIAL && fit.expected > budget * 4, "{fit:?}");
}
