//! What a plan concludes from a server's facts: fewer records over a long way, values that need too many connections.

use crate::common::{self, null, target};
use kurabe_core::axis::AxisValue;
use kurabe_core::facts::Limit;
use kurabe_core::run::RunSpec;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::latency;
use kurabe_engine::prepare::target::Target;

/// A plan of all defaults on a target with other facts, with these values of `clients` and number of records.
fn planned(
    experiment: &str,
    clients: &[u64],
    records: Option<u64>,
    change: impl FnOnce(&mut Target),
) -> (Plan, [Target; 1]) {
    let experiment = common::experiment(experiment);
    let info = experiment.info;
    let axes = info.axes.iter().map(|axis| {
        let default = axis.default.iter().map(|text| axis.parse(text).unwrap()).collect::<Vec<_>>();
        let clients = clients.iter().map(|number| AxisValue::Number(*number)).collect();
        (axis.name.to_owned(), if axis.name == "clients" { clients } else { default })
    });
    let spec = RunSpec {
        axes: axes.collect(),
        operations: info.operation_names(),
        records,
        ..RunSpec::new(info.name, ["null:"])
    };
    let mut target = target("far", null());
    change(&mut target);
    let targets = [target];
    let mut plan = Plan::draft(experiment, spec, &[false]).unwrap();
    plan.compare(&targets);
    (plan, targets)
}

#[test]
fn fewer_records_are_loaded_over_a_long_way_unless_their_number_was_given() {
    let far = |milliseconds: u64| {
        move |target: &mut Target| target.facts.round_trip_ns = Some(milliseconds * 1_000_000)
    };
    let (mut plan, targets) = planned("point-read", &[1], None, |_| {});
    assert!(latency::fit(&mut plan, &targets).unwrap().is_empty() && plan.spec.records.is_none());
    let (mut plan, targets) = planned("point-read", &[1], None, far(10));
    let said = latency::fit(&mut plan, &targets).unwrap();
    assert!(plan.spec.records.is_none() && said[0].contains("a round trip takes 10 ms"), "{said:?}");
    let (mut plan, targets) = planned("point-read", &[1], None, far(400));
    let said = latency::fit(&mut plan, &targets).unwrap();
    assert!(plan.spec.records.is_some_and(|records| records < 100_000), "{:?}", plan.spec.records);
    assert!(said[0].contains("400 ms") && said[0].contains("records instead"), "{said:?}");
    let (mut plan, targets) = planned("point-read", &[1], Some(100_000), far(400));
    let said = latency::fit(&mut plan, &targets).unwrap();
    assert!(plan.spec.records == Some(100_000) && said[0].contains("about"), "{said:?}");
}

#[test]
fn store_that_a_long_way_reduced_grows_to_the_requests_that_were_asked_for() {
    let asked = |records| {
        let far = |target: &mut Target| target.facts.round_trip_ns = Some(400_000_000);
        let (mut plan, targets) = planned("point-write", &[1], records, far);
        plan.spec.requests = plan.operations.iter().map(|one| (one.name.to_owned(), 80_000)).collect();
        latency::fit(&mut plan, &targets).unwrap();
        plan.enlarge_stores(&targets).unwrap()
    };
    assert!(asked(None).is_some_and(|records| records >= 80_000), "{:?}", asked(None));
    assert_eq!(asked(Some(2_000)), None, "the user's number stays");
}

#[test]
fn only_default_values_are_left_out_for_lack_of_connections() {
    let limited = |most| {
        move |target: &mut Target| {
            target.facts.limits.connections = Some(Limit::new(most, "max_connections"));
            target.facts.limits.connections_in_use = Some(3);
        }
    };
    let measured = |most, free: &[&str]| {
        let (mut plan, targets) = planned("connect", &[1, 10], None, limited(most));
        let free: Vec<String> = free.iter().map(|name| (*name).to_owned()).collect();
        plan.leave_out_unconnectable(&targets, &free);
        let ten = AxisValue::Number(10);
        let all = plan.available().filter(|(record, _)| record.axes.values().get("clients") == Some(&ten));
        (all.count(), plan.available().count())
    };
    let (with_ten, all) = measured(100, &["clients"]);
    assert!(with_ten == 3 && all == 6);
    // A pool of four connections fits.
    assert_eq!(measured(16, &["clients"]), (1, 4));
    assert_eq!(measured(16, &[]), (3, 6));
    // Nothing fits: that is said by the check before the run.
    assert_eq!(measured(4, &["clients"]), (3, 6));
}
