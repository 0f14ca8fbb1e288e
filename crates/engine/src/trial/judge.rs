//! Adds up and verifies what a trial did.

use crate::clients::slices::SliceStats;
use crate::fleet::ShareResult;
use crate::trial::course::Course;
use crate::trial::recorded::{Executed, ExecutedClients, OpenTimes, Recorded, Times};
use crate::trial::standstill;
use crate::trial::throughput::Throughput;
use crate::trial::{Failure, LoadModel, Trial};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{After, Checked, DatasetState};
use kurabe_core::metric;
use kurabe_core::observation::Observation;
use kurabe_core::run::{Measurement, OpenLoop};
use kurabe_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// The slices of an interleaved trial, and what was observed of all trials of its group.
pub(crate) struct Interleaved {
    pub(crate) slices: SliceStats,
    pub(crate) observed: Option<Observation>,
}

impl Trial<'_> {
    /// Adds up and verifies the results. `interleaved`: how they were made, if in slices.
    pub(crate) fn judge(
        &self,
        executed: Executed,
        interleaved: Option<Interleaved>,
        state: &DatasetState,
        session: &mut dyn Session,
    ) -> Result<Measurement, Failure> {
        match executed {
            Executed::Clients(clients) => self.judge_clients(*clients, interleaved, state, session),
            Executed::Job(job) => Ok(self.judge_job(*job, state, session)?),
        }
    }

    fn judge_clients(
        &self,
        executed: ExecutedClients,
        interleaved: Option<Interleaved>,
        state: &DatasetState,
        session: &mut dyn Session,
    ) -> Result<Measurement, Failure> {
        let ExecutedClients { part, summaries, memory, fleet } = executed;
        let ShareResult { recorded, threads, mut cpu_ns, observed, .. } = part;
        let (mut stood_still_ns, mut stall_total_ns) = (part.stood_still_ns, part.stall_total_ns);
        let (slices, observed_group) =
            interleaved.map_or((None, None), |group| (Some(group.slices), group.observed));
        if let Some(slices) = slices {
            cpu_ns = slices.cpu.as_nanos() as u64;
            stall_total_ns = slices.stood_still.as_nanos() as u64;
            stood_still_ns = if slices.is_void { stall_total_ns } else { 0 };
        }
        let Recorded { offered, completed, failed, retries, warmup, exhausted, .. } = recorded;
        let Times { service, checks, queue, course, open_loop, .. } =
            recorded.times.map_or_else(Times::default, |times| *times);
        let is_open = open_loop.is_some();
        let OpenTimes { response, lag, backlog, dropped, last_end } =
            open_loop.map_or_else(Default::default, |open_loop| *open_loop);
        let sum = completed + failed + dropped;
        if offered != sum {
            let why = format!("{offered} transactions were offered and {sum} accounted for");
            return Err(Error::new(ErrorKind::Internal, why).into());
        }
        if completed == 0 {
            let error = Error::new(ErrorKind::Limit, "no transaction ended during the trial");
            let stood_still = Duration::from_nanos(stall_total_ns);
            return Err(Failure { error, mismatches: 0, stood_still: Some(stood_still) });
        }
        let checked = self.workload()?.after(After {
            operation: self.operation.name,
            state,
            session,
            clients: &summaries,
        })?;
        let Checked { verification: mut verified, metrics, plans } = checked;
        if !self.operation.writes && self.cell.policy.verifies_reads {
            verified.answers += completed + warmup;
        }
        let throughput = course.as_ref().filter(|_| !is_open);
        let throughput = throughput.and_then(|course| Throughput::new(&recorded.clients, course));
        let mut elapsed_ns = throughput.as_ref().map_or(0, Throughput::elapsed_ns);
        let mut open = None;
        let plan = self.schedule()?;
        if let (LoadModel::Open { rate, .. }, Some(plan)) = (self.load_model, &plan) {
            let due_ns = plan.due_until();
            elapsed_ns = due_ns.max(last_end);
            open = Some(OpenLoop { rate, response, lag, due_ns, backlog, probes: 0 });
        }
        if !standstill::counts(Duration::from_nanos(stood_still_ns), Duration::from_nanos(elapsed_ns)) {
            stood_still_ns = 0;
        }
        let exhausted = exhausted || plan.is_some_and(|plan| plan.is_cut);
        // Slices have gaps between them, so that equal parts of them are not equal parts of time.
        let continuous = throughput.as_ref().filter(|_| slices.is_none());
        let (windows, windows_ns) = continuous.map_or_else(Default::default, Throughput::windows);
        let tiers = observed.as_ref().map(|observed| metric::of_tiers(observed, completed));
        Ok(Measurement {
            clients: self.cell.policy.clients as u64,
            offered,
            completed,
            failed,
            dropped,
            retries,
            warmup,
            elapsed_ns,
            client_cpu_ns: cpu_ns,
            service,
            open,
            verify_ns_per_op: checks.quantile(0.5).unwrap_or_default() as f64,
            verified: Some(verified),
            exhausted: self.capacity().filter(|_| exhausted).map(|capacity| capacity.records),
            observed,
            observed_group: observed_group.map(Box::new),
            windows,
            windows_ns,
            tail: course.as_ref().and_then(Course::tail),
            slices: slices.map_or(0, |slices| slices.slices),
            void_slices: slices.map_or(0, |slices| slices.void),
            stood_still_ns,
            threads: threads.unwrap_or_default() as u64,
            fleet,
            metrics: [
                throughput.and_then(|throughput| throughput.metric()).into_iter().collect(),
                queue.as_deref().map_or(Vec::new(), metric::of_queue),
                recorded.connections.metrics(),
                recorded.spans.metrics(),
                tiers.unwrap_or_default(),
                memory,
                metrics,
            ]
            .concat(),
            plans,
            ..Measurement::default()
        })
    }
}
