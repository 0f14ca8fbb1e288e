//! Does the work of a trial: a job, or that of its clients. All of them connect, warm up, wait at a gate, work, and wait again
//! at its end.

use crate::clients::client::{ClientOutcome, ClientsShared, Warmup};
use crate::clients::clock::process_cpu;
use crate::clients::pool::Pool;
use crate::clients::schedule::Schedule;
use crate::clients::semaphore::Semaphore;
use crate::clients::slices::Lane;
use crate::fleet::{self, CellOrder, FleetClients, Order, ShareResult};
use crate::prepare::server_memory::MemoryReading;
use crate::trial::gate::Gate;
use crate::trial::recorded::{Executed, ExecutedClients, Recorded};
use crate::trial::server_stats::Watch;
use crate::trial::standstill::Monitor;
use crate::trial::warmup_detector::WarmupDetector;
use crate::trial::{Clients, Failure, LoadModel, Trial};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{ClientSummary, DatasetState, Workload};
use kurabe_core::observation::Endpoint;
use kurabe_core::planned::{Connections, Need, TrialWork};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// In an open loop clients start this long after the gate opens, …
const LEAD: Duration = Duration::from_millis(2);
/// … and this much more per client, so that all are awake.
const LEAD_EACH: Duration = Duration::from_micros(20);
/// The maximum number of clients that connect at a time: servers' queues of new connections are short.
const CONNECTING: usize = 64;
/// Separates the seed of the warm-up's arrivals from others.
const WARM_UP_ARRIVALS: u64 = 0x3A2_37A15;

impl Trial<'_> {
    /// Does the work; with a lane, interleaved with other trials.
    pub(crate) fn execute(&self, state: &DatasetState, lane: Option<Lane<'_>>) -> Result<Executed, Failure> {
        let executed = match (self.work, &self.clients) {
            (TrialWork::Loop(workload), Clients::Here | Clients::Share(_)) => {
                return Ok(Executed::Clients(Box::new(self.execute_clients(&**workload, state, lane)?)));
            }
            _ if lane.is_some() => return Err(not_interleaved().into()),
            (TrialWork::Job(job), _) => Executed::Job(Box::new(self.execute_job(&**job, state)?)),
            (TrialWork::Loop(_), Clients::Fleet(on)) => Executed::Clients(Box::new(self.execute_on(on)?)),
        };
        Ok(executed)
    }

    /// Runs the clients of this process.
    pub(super) fn execute_clients(
        &self,
        workload: &dyn Workload,
        state: &DatasetState,
        lane: Option<Lane<'_>>,
    ) -> Result<ExecutedClients, Failure> {
        let policy = &self.cell.policy;
        let clients = policy.clients;
        let endpoint = self.driver.endpoint();
        // Several clients with an embedded database use all processors. A single one uses one at a time.
        let cpu_partition = self.conditions.cpu_partition;
        let cpu_partition = cpu_partition.filter(|_| endpoint != Endpoint::InProcess || clients == 1);
        let mut watch = Watch::open(self);
        let plan = self.schedule()?;
        let warmup = plan.map(|plan| plan.warm_up(clients, mix(self.seed, WARM_UP_ARRIVALS)));
        let pool = match policy.connections {
            Connections::Pool(size) => Some(Pool::open(self.driver, self.options, size)?),
            Connections::Kept | Connections::PerRequest => None,
        };
        let own_stop = AtomicBool::new(false);
        let shared = ClientsShared {
            trial: self,
            pool,
            pipeline: policy.pipeline,
            schedule: plan.map(|plan| Schedule::new(&plan)),
            warmup: warmup.map(|plan| Warmup { schedule: Schedule::new(&plan), gate: Gate::new() }),
            warmup_detector: self
                .stop
                .duration
                .filter(|_| self.load_model == LoadModel::Closed)
                .and_then(WarmupDetector::for_duration),
            lane,
            cpus: cpu_partition.map_or(&[], |cpu_partition| &cpu_partition.clients),
            connecting: Semaphore::new(CONNECTING),
            gate: Gate::new(),
            finish: Gate::new(),
            stop: self.part_of_trial().map_or(&own_stop, |part| part.stop),
        };
        let ran = self.run_clients(workload, &shared, state, &mut watch);
        let closed = shared.pool.map_or(Ok(()), Pool::close);
        let mut executed = ran?;
        closed?;
        watch.finish(&mut executed.part.observed);
        Ok(executed)
    }

    fn run_clients(
        &self,
        workload: &dyn Workload,
        shared: &ClientsShared<'_>,
        state: &DatasetState,
        watch: &mut Watch<'_>,
    ) -> Result<ExecutedClients, Failure> {
        let clients = self.cell.policy.clients;
        let threads = self.shared_threads(shared.cpus);
        let reads_memory = self.cell.needs.contains(&Need::ServerMemory);
        let reads_idle = reads_memory && self.cell.idle_connections() > 0;
        let reading = || MemoryReading::begin(self.driver, self.conditions.observer);
        let mut memory = if reads_memory && !reads_idle { reading()? } else { None };
        let mut idle = Vec::new();
        // Interleaved trials are watched together.
        let monitor = shared.lane.is_none().then(Monitor::start);
        let has_stopped = || shared.stop.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let mut started = self.start(scope, workload, shared, state, threads);
            let (running, refused) = (started.clients, started.refused.take());
            let lead = LEAD + LEAD_EACH * clients as u32;
            if let Some(warmup) = &shared.warmup {
                warmup.gate.wait_for_reports(running);
                if refused.is_some() || has_stopped() {
                    warmup.gate.abandon();
                } else {
                    warmup.gate.open(lead);
                }
            }
            shared.gate.wait_for_reports(running);
            if let Some(lane) = shared.lane.filter(|_| refused.is_none()) {
                lane.ready(running);
            }
            // How late the clients start, and how long they have waited for that; `None` if one has failed.
            let begun = refused.map_or(Ok(()), Err).and_then(|()| {
                if has_stopped() {
                    return Ok(None);
                }
                if reads_idle {
                    memory = reading()?;
                }
                self.open_idle(&mut idle)?;
                self.connected.map_or(Ok(()), |connected| connected())?;
                if has_stopped() {
                    return Ok(None);
                }
                watch.begin();
                let waits = Instant::now();
                let late = self.wait_for_start()?;
                Ok(Some((late, waits.elapsed())))
            });
            let start = begun.as_ref().ok().copied().flatten();
            let before = monitor.as_ref().map_or(Duration::ZERO, Monitor::so_far);
            let cpu = process_cpu();
            if start.is_none() {
                shared.gate.abandon();
            } else {
                shared.gate.open(if shared.schedule.is_some() { lead } else { Duration::ZERO });
            }
            shared.finish.wait_for_reports(running);
            let cpu = process_cpu().saturating_sub(cpu);
            let stall_total = monitor.map_or(Duration::ZERO, Monitor::end);
            let stood_still = stall_total.saturating_sub(before);
            let (late, waited) = start.unwrap_or_default();
            let mut observed = watch.end();
            if let (Some(seen), Some(_)) = (&mut observed, self.part_of_trial()) {
                fleet::without_wait(seen, waited.as_nanos() as u64);
            }
            let connections = if reads_idle { idle.len() } else { clients };
            let memory =
                memory.filter(|_| start.is_some()).map_or(Ok(Vec::new()), |memory| memory.end(connections));
            for session in idle {
                // The observation is complete.
                let _ = session.close();
            }
            if let Some(part) = self.part_of_trial().filter(|_| start.is_some()) {
                (part.ended)(has_stopped());
            }
            shared.finish.open(Duration::ZERO);
            let outcomes = started.join();
            begun?;
            let (recorded, summaries) = sum(outcomes?, stall_total)?;
            let nanos = |time: Duration| time.as_nanos() as u64;
            let part = ShareResult {
                recorded,
                threads,
                cpu_ns: nanos(cpu),
                observed: observed.map(Box::new),
                stood_still_ns: nanos(stood_still),
                stall_total_ns: nanos(stall_total),
                late_ns: nanos(late),
            };
            // A client's error matters more than a failed observation.
            Ok(ExecutedClients { part, summaries, memory: memory?, fleet: None })
        })
    }

    fn order(&self, cell: &CellOrder) -> Result<Order> {
        // An agent would refuse what has no schedule.
        self.schedule()?;
        Ok(Order {
            cell: cell.clone(),
            operation: self.operation.name.to_owned(),
            number: self.number,
            stop: self.stop,
            load_model: self.load_model,
            seed: self.seed,
            clients: self.cell.policy.clients as u64,
        })
    }

    /// Runs all clients on a fleet.
    fn execute_on(&self, on: &FleetClients<'_>) -> Result<ExecutedClients, Failure> {
        let mut watch = Watch::open(self);
        let mut started = on.fleet.begin(&self.order(on.cell)?, self.conditions.cancel)?;
        self.connected.map_or(Ok(()), |connected| connected())?;
        watch.begin();
        let ran = started.run(self.conditions.cancel, self.conditions.progress);
        let observed = watch.end();
        ran?;
        let results = started.end()?;
        let observed = observed.map(|own| Box::new(fleet::combined(own, &results)));
        let fleet = Some(Box::new(fleet::used(&results)));
        let (part, summaries) = fleet::sum(results, self.cell.policy.clients, self.seed, self.number)?;
        // The load is what agents make. That the coordinator stood still matters only if they lost it.
        let mut part = ShareResult { observed, ..part };
        watch.finish(&mut part.observed);
        Ok(ExecutedClients { part, summaries, memory: Vec::new(), fleet })
    }

    /// Opens the idle connections beside the clients' own.
    fn open_idle(&self, idle: &mut Vec<Box<dyn Session>>) -> Result<()> {
        let count = self.cell.idle_connections();
        for n in 1..=count {
            let session = self.driver.connect(self.options);
            idle.push(session.map_err(|error| error.context(format!("opening connection {n} of {count}")))?);
        }
        Ok(())
    }

    /// Waits until the clients of a part start: another process says when. Returns how late it is then.
    fn wait_for_start(&self) -> Result<Duration> {
        let Some(part) = self.part_of_trial() else { return Ok(Duration::ZERO) };
        let start = (part.ready)()?;
        fleet::wait_until(start);
        Ok(start.elapsed())
    }
}

fn not_interleaved() -> Error {
    Error::new(ErrorKind::Internal, "jobs and trials on a fleet are not interleaved")
}

/// The sum of what the clients recorded, and what each did.
///
/// # Errors
/// The first error of a client. A mismatch takes precedence over others, since later connection errors only follow from
/// it.
fn sum(
    outcomes: Vec<ClientOutcome>,
    stood_still: Duration,
) -> Result<(Recorded, Vec<ClientSummary>), Failure> {
    let (mut recorded, mut summaries) = (Recorded::default(), Vec::with_capacity(outcomes.len()));
    let (mut mismatches, mut first) = (0, None::<Error>);
    for outcome in outcomes {
        summaries.push(outcome.done);
        recorded.merge(outcome.recorded);
        if let Some(error) = outcome.error {
            mismatches += u64::from(error.kind() == ErrorKind::Mismatch);
            // Statements of others are ended when one client has failed.
            let follows = error.kind() == ErrorKind::Interrupted && first.is_some();
            if !follows && first.as_ref().is_none_or(|first| first.kind() != ErrorKind::Mismatch) {
                first = Some(error);
            }
        }
    }
    first.map_or(Ok((recorded, summaries)), |error| {
        Err(Failure { error, mismatches, stood_still: Some(stood_still) })
    })
}
