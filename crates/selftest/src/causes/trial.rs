//! One trial with a planted cause.

use super::group::{Limit, disk_of};
use super::kind::Kind;
use super::plant::{Plan, Planter};
use super::wrap::{Burden, burdened};
use crate::EMBEDDED;
use kurabe_core::driver::Driver;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::Experiment;
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::run::{Measurement, Outcome, Run, RunSpec};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan as RunPlan;
use kurabe_engine::plan::budget::Fit;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, Event, Listener, NewRun, Start};
use kurabe_experiments::registry;
use kurabe_observe::Monitor;
use kurabe_relay::{LOOPBACK, Late, Relay};
use kurabe_report::attribution::{Attribution, of_trial};
use kurabe_targets::open_one;
use kurabe_testbed::Server;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The tool's own cost per operation, for an embedded database: far below the planted cause.
const OWN_NS: f64 = 5_000.0;
/// Writes per second of the throttled disk.
const WRITES: u64 = 150;

/// The context of planted causes.
pub(super) struct Ground<'a> {
    pub(super) engine: &'static str,
    pub(super) server: Option<&'a Server>,
    pub(super) time: Duration,
    pub(super) cancel: &'a AtomicBool,
}

impl Ground<'_> {
    /// Plants a cause, measures, and returns the attribution.
    pub(super) fn trial(&self, kind: Kind, round: u64) -> Result<Attribution> {
        // A file that a second session can open too; it is removed with the folder.
        let folder = tempfile::tempdir().map_err(|e| {
            Error::new(ErrorKind::Environment, format!("no temporary folder could be made: {e}"))
        })?;
        let file = folder.path().join("selftest.db");
        let url = if let Some(server) = self.server {
            TargetUrl::parse(server.url())?
        } else {
            // On a slow disk clients wait longer for syncs, of commits and checkpoints, than for the locks.
            let synchronous = if kind == Kind::Lock { "off" } else { "full" };
            TargetUrl::parse(&format!("{EMBEDDED}:{}?synchronous={synchronous}", file.display()))?
        };
        let durability = (kind == Kind::Disk && self.engine != EMBEDDED).then_some(DurabilityClass::Synced);
        let (driver, facts, skip_reason) = open_one(&url, durability)?;
        if let Some(why) = skip_reason {
            return Err(Error::unsupported(why));
        }
        let server = driver.endpoint();
        let mut monitor = Monitor::new();
        let mut relay = None;
        let driver: Box<dyn Driver> = match kind {
            Kind::Network => {
                let address = address(&server)?;
                let delay = Duration::from_millis(20 + 10 * (round % 3));
                let late = move |_| Arc::new(Late::new(delay, Duration::ZERO, &Arc::default())) as _;
                let started = Relay::start(LOOPBACK, address.into(), late).map_err(|e| {
                    Error::new(ErrorKind::Environment, format!("no relay could be started: {e}"))
                })?;
                let mut through = url.clone();
                through.host = Some(started.address().ip().to_string());
                through.port = Some(started.address().port());
                let (driver, ..) = open_one(&through, None)?;
                monitor.behind(driver.endpoint(), server.clone());
                relay = Some(started);
                driver
            }
            Kind::ClientCpu => burdened(driver, Burden::Client(Duration::from_millis(1 + round % 3))),
            Kind::Table => burdened(driver, Burden::Table),
            _ => driver,
        };
        let experiment = registry::find(if kind.writes() { "point-write" } else { "point-read" })?;
        let spec = self.spec(experiment, kind, round)?;
        let mut targets = [Target::new(self.engine, driver, facts)];
        let run = RunPlan::draft(experiment, spec, &[false])?;
        let plan = match kind {
            Kind::ServerCpu => Plan::Limit(Limit::Cpu(0.1 + 0.05 * (round % 3) as f64)),
            Kind::Disk => {
                let folder = self.server.map_or_else(std::env::temp_dir, |server| server.dir().to_owned());
                Plan::Limit(Limit::Writes(disk_of(&folder).map_err(Error::unsupported)?, WRITES))
            }
            Kind::Lock => self.hold(&url, &run, kind)?,
            _ => Plan::Nothing,
        };
        let failed = Arc::default();
        let planter = Planter { monitor, plan, server, failed: Arc::clone(&failed) };
        let measured = self.measure(run, &mut targets, &planter)?;
        drop(relay);
        if let Some(why) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(Error::unsupported(format!("it could not be planted: {why}")));
        }
        of_trial(&measured, Some(OWN_NS))
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a trial ran without an observation"))
    }

    fn spec(&self, experiment: &Experiment, kind: Kind, round: u64) -> Result<RunSpec> {
        let info = experiment.info;
        let clients = kind.clients().to_string();
        Ok(RunSpec {
            axes: info.baseline(&[("clients", &clients)])?.alone(),
            operations: info.operation_names(),
            duration_ns: Some(self.time.as_nanos() as u64),
            seed: 1 + round,
            records: Some(kind.records()),
            ..RunSpec::new(info.name, [self.engine])
        })
    }

    /// The session that locks all rows, over a separate connection.
    fn hold(&self, url: &TargetUrl, run: &RunPlan, kind: Kind) -> Result<Plan> {
        let (driver, ..) = open_one(url, None)?;
        for operation in [Operation::Begin, Operation::Rollback] {
            if let kurabe_core::driver::Support::No(why) = driver.supports(&operation) {
                return Err(Error::unsupported(why));
            }
        }
        let operations = run.available().flat_map(|(_, cell)| cell.demand.operations.clone());
        let update = operations.into_iter().find(|operation| matches!(operation, Operation::Update { .. }));
        let update = update.ok_or_else(|| Error::unsupported("the experiment changes no rows"))?;
        Ok(Plan::Hold(driver, update, kind.records(), self.time))
    }

    fn measure(&self, plan: RunPlan, targets: &mut [Target], planter: &Planter) -> Result<Measurement> {
        let conditions = Conditions { cancel: self.cancel, observer: Some(planter), ..Conditions::default() };
        let run = kurabe_engine::run(NewRun::new(plan), targets, &conditions, &mut OneTrial)?;
        let outcome = run.and_then(|Run { mut trials, .. }| trials.pop()).map(|trial| trial.outcome);
        match outcome {
            Some(Outcome::Measured(measured)) => Ok(*measured),
            Some(Outcome::Failed { kind, reason, .. }) => Err(Error::new(kind, reason)),
            None => Err(Error::new(ErrorKind::Interrupted, "stopped by the user")),
        }
    }
}

/// Makes one trial of the first cell.
struct OneTrial;

impl Listener for OneTrial {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        let Event::Planned { plan, .. } = event else { return Ok(()) };
        let unavailable = plan.cells.first().and_then(|cell| cell.record.unavailable.clone());
        unavailable.map_or(Ok(()), |why| Err(Error::unsupported(why)))
    }

    fn start(&mut self, plan: &mut RunPlan, _: Option<&Fit>, _: &[Target]) -> Result<Start> {
        // Another session can lock only few rows.
        plan.allow_rewrites();
        plan.retain(|cell| !cell.aa_control);
        Ok(Start::Measure { warnings: Vec::new() })
    }
}

fn address(server: &Endpoint) -> Result<SocketAddr> {
    match server {
        Endpoint::Tcp { host, port } => {
            let ip = host
                .parse()
                .map_err(|_| Error::unsupported(format!("{host} is not an address of this machine")))?;
            Ok(SocketAddr::new(ip, *port))
        }
        _ => Err(Error::unsupported("it is not reached by TCP")),
    }
}
