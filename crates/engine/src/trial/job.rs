//! One trial of a job: timed from its start to its end in one thread, then verified.

use crate::clients::clock::process_cpu;
use crate::clients::cpu_partition;
use crate::conditions::Conditions;
use crate::plan::RunCell;
use crate::prepare::fixture::Fixture;
use crate::run::runner::Runner;
use crate::trial::Failure;
use crate::trial::standstill::{Monitor, counts};
use kurabe_core::experiment::{Checked, OperationInfo};
use kurabe_core::job::{Ended, Job, JobContext, JobDone, Side};
use kurabe_core::metric;
use kurabe_core::observation::Observation;
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::Measurement;
use kurabe_core::{Error, Result};
use kurabe_stats::Histogram;
use std::thread;
use std::time::{Duration, Instant};

/// The measurements of a job's thread.
struct Ran {
    done: JobDone,
    elapsed: Duration,
    cpu: Duration,
    observed: Option<Observation>,
}

impl Runner<'_> {
    /// Executes one trial of a job.
    pub(crate) fn job(
        &self,
        run_cell: &RunCell,
        cell: &PlannedCell,
        operation: &OperationInfo,
        job: &dyn Job,
        fixture: &mut Fixture,
    ) -> Result<Measurement, Failure> {
        let around = Instant::now();
        let Conditions { cancel, progress, observer, cpu_partition: partition, .. } = self.conditions;
        fixture.before(cell, operation.name, cancel, |trial| job.before(trial))?;
        let (state, session) = fixture.lend(cell)?;
        let driver = self.targets[run_cell.record.target].driver_of(&run_cell.record);
        let options = cell.connect_options(driver);
        let run = || -> Result<Ran> {
            cpu_partition::pin_thread(partition.map_or(&[], |cpu_partition| &cpu_partition.clients))?;
            let mut context = JobContext::new(driver, &options, cancel, progress);
            let guard = observer.map(|observer| observer.begin(&driver.endpoint(), None));
            let (began, cpu) = (Instant::now(), process_cpu());
            job.run(operation.name, state, &mut context)?;
            let (elapsed, cpu) = (began.elapsed(), process_cpu().saturating_sub(cpu));
            let observed = guard.map(kurabe_core::observation::MonitorGuard::end);
            let (done, sessions) = context.end();
            sessions.into_iter().try_for_each(crate::clients::pool::close_and_check)?;
            Ok(Ran { done, elapsed, cpu, observed })
        };
        let monitor = Monitor::start();
        // A separate thread, so that the checks do not run on its processors.
        let ran = thread::scope(|scope| {
            let thread = thread::Builder::new().name("job".to_owned()).spawn_scoped(scope, run);
            let thread = thread.map_err(|why| Error::no_thread("the job", why))?;
            thread.join().unwrap_or_else(|panic| Err(crate::trial::panicked("the job", &*panic)))
        });
        let stood_still = monitor.end();
        let Ran { done, elapsed, cpu, observed } =
            ran.map_err(|error| Failure { stood_still: Some(stood_still), ..Failure::from(error) })?;
        let pin = |side| {
            let cpus = partition.map(|partition| match side {
                Side::Clients => &partition.clients,
                Side::Servers => &partition.servers,
            });
            // Without permission to change the affinity, the scheduler decides.
            let _ = cpus.map(|cpus| cpu_partition::pin_thread(cpus));
        };
        let ended = Ended {
            operation: operation.name,
            state,
            session: &mut crate::cancellable(session, cancel),
            endpoint: &driver.endpoint(),
            elapsed,
            observed: observed.as_ref(),
            pin: &pin,
        };
        let Checked { verification, metrics, plans } = job.verify(ended)?;
        // A job that counts nothing is one unit of work.
        let completed = done.rows.max(1);
        let mut service = Histogram::new();
        service.record(elapsed.as_nanos() as u64);
        let bytes = metric::of_bytes(done.bytes, elapsed, cpu, observed.as_ref());
        let tiers = observed.as_ref().map(|observed| metric::of_tiers(observed, completed));
        let elapsed_ns = elapsed.as_nanos() as u64;
        Ok(Measurement {
            clients: 1,
            offered: completed,
            completed,
            elapsed_ns,
            client_cpu_ns: cpu.as_nanos() as u64,
            service,
            verified: Some(verification),
            overhead_ns: (around.elapsed().as_nanos() as u64).saturating_sub(elapsed_ns),
            observed: observed.map(Box::new),
            metrics: [done.metrics, bytes, metrics, tiers.unwrap_or_default()].concat(),
            points: done.points,
            plans,
            stood_still_ns: if counts(stood_still, elapsed) { stood_still.as_nanos() as u64 } else { 0 },
            ..Measurement::default()
        })
    }
}
