//! A minimal loop, as an example of the interface: each client repeats the smallest request. This file contains
//! everything that such an experiment needs.

use kurabe_core::axis::{AxisInfo, AxisKind, Cell};
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::experiment::{
    Client, Dataset, DatasetState, Experiment, ExperimentInfo, OperationInfo, Recorder, Transaction, Workload,
};
use kurabe_core::operation::Operation;
use kurabe_core::planned::{LoopPolicy, Need, PlannedCell};
use kurabe_core::value::Reply;
use kurabe_core::{Error, Result};

static INFO: ExperimentInfo = ExperimentInfo {
    name: "noop-loop",
    question: "How often does a server answer the smallest request?",
    about: "Requests the smallest reply.",
    axes: &[
        AxisInfo::new("clients", "concurrent clients", AxisKind::count(1, 100), &["2"]),
        AxisInfo::new("idle", "idle connections beside the clients'", AxisKind::count(0, 100), &["0", "5"]),
    ],
    operations: &[OperationInfo { name: "ping", about: "send a ping", requests: 100, writes: false }],
    ..ExperimentInfo::BASE
};

fn plan(cell: &Cell, _: &Dataset) -> Result<PlannedCell> {
    let policy = LoopPolicy::new(cell.number("clients")? as usize);
    let needs = vec![Need::IdleConnections(cell.number("idle")? as usize)];
    Ok(PlannedCell { needs, ..PlannedCell::new("nothing", vec![Operation::Ping], policy, Pings) })
}

struct Pings;

impl Workload for Pings {
    fn transaction(&self, _: &str, _: &DatasetState, _: Client) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(Ping { prepared: None, reply: Reply::new() }))
    }
}

struct Ping {
    prepared: Option<Prepared>,
    reply: Reply,
}

impl Transaction for Ping {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&Operation::Ping)?);
        Ok(())
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let prepared = self.prepared.as_ref().ok_or_else(|| Error::unsupported("not attached"))?;
        session.execute(prepared, &[], &mut self.reply)
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        if self.reply.rows() == 0 { Ok(()) } else { Err(Error::mismatch("the reply has unexpected rows")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{self, null, target};
    use kurabe_core::interceptor::{DriverLayer, Interceptor};
    use kurabe_core::run::{Outcome, RunSpec};

    use kurabe_engine::plan::Plan;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The number of plans of cells.
    static PLANNED: AtomicUsize = AtomicUsize::new(0);

    static COUNTED: Experiment = Experiment::new(&INFO, &|cell, dataset| {
        PLANNED.fetch_add(1, Ordering::Relaxed);
        plan(cell, dataset)
    });

    /// Counts the sessions that are opened.
    struct Counted;

    impl Interceptor for Counted {}

    #[test]
    fn loop_follows_its_plan_and_each_cell_is_planned_once() {
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let driver = DriverLayer::new(null(), move || {
            count.fetch_add(1, Ordering::Relaxed);
            Counted
        });
        let mut targets = [target("null", Box::new(driver))];
        let axes = INFO.axes.iter().map(|axis| {
            (axis.name.to_owned(), axis.default.iter().map(|text| axis.parse(text).unwrap()).collect())
        });
        let spec = RunSpec {
            axes: axes.collect(),
            operations: INFO.operation_names(),
            requests: BTreeMap::from([("ping".to_owned(), 100)]),
            rounds: 3,
            ..RunSpec::new(INFO.name, ["null:"])
        };
        let plan = Plan::new(&COUNTED, &spec, &targets).unwrap();
        assert_eq!((plan.cells.len(), plan.connections()), (3, 9));
        let trials = common::trials(plan, &mut targets);
        assert_eq!(trials.len(), 9);
        for trial in trials {
            let Outcome::Measured(measured) = trial.outcome else { panic!("{:?}", trial.outcome) };
            assert_eq!((measured.clients, measured.completed), (2, 100));
            // Each reply was compared.
            assert_eq!(measured.verified.unwrap().answers, 100 + measured.warmup);
        }
        // One session loads and checks; two clients per trial, and the idle connections of one cell in three rounds.
        assert_eq!(opened.load(Ordering::Relaxed), 1 + 9 * 2 + 3 * 5);
        assert_eq!(PLANNED.load(Ordering::Relaxed), 3, "two cells, and the repeat of the first");
    }
}
