//! A job as the work of a trial: timed from its start to its end in one thread, then verified.

use crate::clients::clock::process_cpu;
use crate::clients::cpu_partition;
use crate::clients::pool::close_and_check;
use crate::conditions::Conditions;
use crate::trial::recorded::ExecutedJob;
use crate::trial::standstill::{Monitor, counts};
use crate::trial::{Failure, Trial, panicked};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Checked, DatasetState};
use kurabe_core::job::{Ended, Job, JobContext, Side};
use kurabe_core::metric;
use kurabe_core::observation::MonitorGuard;
use kurabe_core::planned::TrialWork;
use kurabe_core::run::Measurement;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::Histogram;
use std::thread;
use std::time::{Duration, Instant};

impl Trial<'_> {
    /// Does the work of a job.
    pub(super) fn execute_job(&self, job: &dyn Job, state: &DatasetState) -> Result<ExecutedJob, Failure> {
        let Conditions { cancel, progress, observer, cpu_partition: partition, .. } = self.conditions;
        let run = || -> Result<ExecutedJob> {
            cpu_partition::pin_thread(partition.map_or(&[], |cpu_partition| &cpu_partition.clients))?;
            let mut context = JobContext::new(self.driver, self.options, cancel, progress);
            let guard = observer.map(|observer| observer.begin(&self.driver.endpoint(), None));
            let (began, cpu) = (Instant::now(), process_cpu());
            job.run(self.operation.name, state, &mut context)?;
            let (elapsed, cpu) = (began.elapsed(), process_cpu().saturating_sub(cpu));
            let observed = guard.map(MonitorGuard::end);
            let (done, sessions) = context.end();
            sessions.into_iter().try_for_each(close_and_check)?;
            Ok(ExecutedJob { done, elapsed, cpu, observed, stood_still: Duration::ZERO })
        };
        let monitor = Monitor::start();
        // A separate thread, so that the checks do not run on its processors.
        let ran = thread::scope(|scope| {
            let thread = thread::Builder::new().name("job".to_owned()).spawn_scoped(scope, run);
            let thread = thread.map_err(|why| Error::no_thread("the job", why))?;
            thread.join().unwrap_or_else(|panic| Err(panicked("the job", &*panic)))
        });
        let stood_still = monitor.end();
        match ran {
            Ok(executed) => Ok(ExecutedJob { stood_still, ..executed }),
            Err(error) => Err(Failure { stood_still: Some(stood_still), ..Failure::from(error) }),
        }
    }

    /// Verifies the results of a job.
    pub(super) fn judge_job(
        &self,
        executed: ExecutedJob,
        state: &DatasetState,
        session: &mut dyn Session,
    ) -> Result<Measurement> {
        let TrialWork::Job(job) = self.work else {
            return Err(Error::new(ErrorKind::Internal, "the work of a trial is no job"));
        };
        let ExecutedJob { done, elapsed, cpu, observed, stood_still } = executed;
        let pin = |side| {
            let cpus = self.conditions.cpu_partition.map(|partition| match side {
                Side::Clients => &partition.clients,
                Side::Servers => &partition.servers,
            });
            // Without permission to change the affinity, the scheduler decides.
            let _ = cpus.map(|cpus| cpu_partition::pin_thread(cpus));
        };
        let ended = Ended {
            operation: self.operation.name,
            state,
            session,
            endpoint: &self.driver.endpoint(),
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
        Ok(Measurement {
            clients: 1,
            offered: completed,
            completed,
            elapsed_ns: elapsed.as_nanos() as u64,
            client_cpu_ns: cpu.as_nanos() as u64,
            service,
            verified: Some(verification),
            observed: observed.map(Box::new),
            metrics: [done.metrics, bytes, metrics, tiers.unwrap_or_default()].concat(),
            points: done.points,
            plans,
            stood_still_ns: if counts(stood_still, elapsed) { stood_still.as_nanos() as u64 } else { 0 },
            ..Measurement::default()
        })
    }
}
