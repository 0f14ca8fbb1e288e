//! What the tests share: targets on `null:`, and specs of runs.

use kurabe_core::Result;
use kurabe_core::driver::Driver;
use kurabe_core::experiment::Experiment;
use kurabe_core::run::{RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, Event, Listener, NewRun};
use std::collections::BTreeMap;

pub(crate) fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

pub(crate) fn null() -> Box<dyn Driver> {
    open("null:")
}

/// A target with the facts that its driver reports.
pub(crate) fn target(name: impl Into<String>, driver: Box<dyn Driver>) -> Target {
    let facts = driver.describe().unwrap();
    Target::new(name, driver, facts)
}

pub(crate) fn experiment(name: &str) -> &'static Experiment {
    kurabe_experiments::registry::find(name).unwrap()
}

/// One round of so many requests of an operation on 100 records: the baseline with these values.
pub(crate) fn spec(name: &str, given: &[(&str, &str)], operation: &str, requests: u64) -> RunSpec {
    RunSpec {
        axes: experiment(name).info.baseline(given).unwrap().alone(),
        operations: vec![operation.to_owned()],
        requests: BTreeMap::from([(operation.to_owned(), requests)]),
        records: Some(100),
        ..RunSpec::new(name, ["null:"])
    }
}

/// Does something at each event of a run.
pub(crate) struct Each<F>(pub(crate) F);

impl<F: FnMut(Event<'_>)> Listener for Each<F> {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        (self.0)(event);
        Ok(())
    }
}

/// Makes a run of a plan under these conditions. Returns its trials.
pub(crate) fn trials_under(
    plan: Plan,
    targets: &mut [Target],
    conditions: &Conditions<'_>,
) -> Vec<TrialRecord> {
    kurabe_engine::run(NewRun::new(plan), targets, conditions, &mut ()).unwrap().unwrap().trials
}

/// Makes a run of a plan. Returns its trials.
pub(crate) fn trials(plan: Plan, targets: &mut [Target]) -> Vec<TrialRecord> {
    trials_under(plan, targets, &Conditions::default())
}
