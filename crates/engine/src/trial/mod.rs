//! One trial: one operation of one cell, from preparation to verification on the server.

pub(crate) mod course;
pub(crate) mod rate_search;
pub(crate) mod recorded;
pub(crate) mod server_stats;
pub(crate) mod standstill;
mod throughput;
pub(crate) mod warmup_detector;

use crate::clients::client::{ClientOutcome, ClientsShared, Warmup};
use crate::clients::connections::{Pool, Semaphore, close_and_check};
use crate::clients::cpu_partition;
use crate::clients::launch::Gate;
pub use crate::clients::schedule::LoadModel;
use crate::clients::schedule::{self, Schedule, process_cpu};
use crate::clients::slices::{Lane, SliceStats};
use crate::fleet::{self, CellOrder, ClientShare, FleetClients, Order, ShareOfTrial, ShareResult};
use crate::prepare::server_memory::MemoryReading;
use crate::run::Conditions;
use crate::trial::course::Course;
use crate::trial::recorded::{Executed, ExecutedClients, ExecutedJob, OpenTimes, Recorded, Times};
use crate::trial::server_stats::Watch;
use crate::trial::standstill::{Monitor, counts};
use crate::trial::throughput::Throughput;
use crate::trial::warmup_detector::WarmupDetector;
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::experiment::{After, Checked, ClientSummary, DatasetState, OperationInfo, Stop, Workload};
use kurabe_core::job::{Ended, Job, JobContext, Side};
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation};
use kurabe_core::planned::{Capacity, Connections, Need, PlannedCell, TrialWork};
use kurabe_core::run::{Measurement, OpenLoop};
use kurabe_core::text::of_panic;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result, metric};
use kurabe_stats::Histogram;
use kurabe_stats::rng::mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Separates the seed of arrivals from the clients' own.
const ARRIVALS: u64 = 0xA221_7A15;

/// The parameters of a trial.
pub struct Trial<'a> {
    /// The driver of the clients' connections.
    pub driver: &'a dyn Driver,
    /// The options of these connections.
    pub options: &'a ConnectOptions,
    pub cell: &'a PlannedCell,
    /// The cell's work.
    pub work: &'a TrialWork,
    /// The operation to measure.
    pub operation: &'a OperationInfo,
    /// Its number among the trials on this data, from 1.
    pub number: u64,
    /// When the measured phase ends.
    pub stop: Stop,
    pub load_model: LoadModel,
    /// Seed of the clients' random inputs. Trials that differ only in their targets have the same seed; no others do.
    pub seed: u64,
    /// The conditions of its run.
    pub conditions: Conditions<'a>,
    /// Called when all clients are connected and wait for the start, to pin the server's threads.
    pub connected: Option<&'a (dyn Fn() -> Result<()> + Sync)>,
    /// The threads of the clients; `None`: as [`ClientThreads::shared`] decides.
    pub threads: Option<ClientThreads>,
    /// The processes that run the clients.
    pub clients: Clients<'a>,
}

/// The processes that run the clients of a trial.
pub enum Clients<'a> {
    /// This one.
    Here,
    /// This one runs a part of them.
    Share(&'a ShareOfTrial<'a>),
    /// The agents of a fleet.
    Fleet(FleetClients<'a>),
}

impl<'a> Trial<'a> {
    /// The first trial on the cell's data, in a closed loop without an end, in this process, with a thread for each
    /// client or as few as [`ClientThreads::shared`] decides, under the default conditions. Use a struct update to change
    /// some.
    pub fn new(
        driver: &'a dyn Driver,
        options: &'a ConnectOptions,
        cell: &'a PlannedCell,
        work: &'a TrialWork,
        operation: &'a OperationInfo,
    ) -> Self {
        Self {
            driver,
            options,
            cell,
            work,
            operation,
            number: 1,
            stop: Stop::default(),
            load_model: LoadModel::Closed,
            seed: 0,
            conditions: Conditions::default(),
            connected: None,
            threads: None,
            clients: Clients::Here,
        }
    }
}

impl Trial<'_> {
    /// Does its work on data in this state, and verifies the results over a session if all of it succeeded.
    ///
    /// # Errors
    /// Any error of any client, and any mismatch: the trial has no result then.
    pub fn run(&self, state: &DatasetState, session: &mut dyn Session) -> Result<Measurement, Failure> {
        self.judge(self.execute(state, None)?, None, state, session)
    }

    /// Runs a part of the clients, on data in this state.
    ///
    /// # Errors
    /// Any error of any of these clients.
    pub fn run_part(&self, state: &DatasetState) -> Result<ShareResult, Failure> {
        Ok(self.execute_clients(self.workload()?, state, None)?.part)
    }

    /// The work of its clients.
    fn workload(&self) -> Result<&dyn Workload> {
        match self.work {
            TrialWork::Loop(workload) => Ok(&**workload),
            TrialWork::Job(_) => Err(Error::new(ErrorKind::Internal, "a job has no clients")),
        }
    }

    /// The schedule of an open loop.
    pub(crate) fn schedule(&self) -> Result<Option<schedule::ArrivalPlan>> {
        let LoadModel::Open { rate, arrivals } = self.load_model else { return Ok(None) };
        if self.cell.policy.pipeline > 1 {
            let why = "an open loop has one request per arrival, so requests cannot be pipelined";
            return Err(Error::unsupported(why));
        }
        let min = self.stop.min.map_or(0.0, |min| min.as_secs_f64() * rate).ceil() as u64;
        let (time, max) = match (self.stop.duration, self.stop.requests.map(|requests| requests.max(min))) {
            (Some(time), max) => (time, max.unwrap_or(u64::MAX)),
            (None, Some(max)) => (Duration::from_secs_f64(max as f64 / rate), max),
            (None, None) => return Err(Error::new(ErrorKind::Internal, "an open loop has no end")),
        };
        let capacity =
            self.capacity().map(|capacity| schedule::capacity(&capacity, self.cell.policy.clients));
        let due = (rate * time.as_secs_f64()).min(max as f64);
        let cut = capacity.filter(|capacity| (*capacity as f64) < due);
        let (max, is_cut) = (cut.unwrap_or(max), cut.is_some());
        let (seed, part, clients) = (mix(self.seed, ARRIVALS), self.part(), self.cell.policy.clients);
        Ok(Some(schedule::ArrivalPlan { rate, arrivals, time, max, is_cut, seed, part, clients }))
    }

    fn part_of_trial(&self) -> Option<&ShareOfTrial<'_>> {
        match &self.clients {
            Clients::Share(part) => Some(part),
            Clients::Here | Clients::Fleet(_) => None,
        }
    }

    /// The part of the clients that this process runs.
    pub(crate) fn part(&self) -> ClientShare {
        self.part_of_trial().map_or(ClientShare::WHOLE, |part| part.part)
    }

    pub(crate) fn capacity(&self) -> Option<Capacity> {
        self.cell.policy.capacity.filter(|_| self.operation.writes)
    }
}

/// Why a trial has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The first error of the first client that failed, or of the verification.
    pub error: Error,
    /// Wrong replies.
    pub mismatches: u64,
    /// How long this process stood still while clients worked; `None` if none did. Errors of the server during that time are not
    /// its fault.
    pub stood_still: Option<Duration>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mismatches = u64::from(error.kind() == ErrorKind::Mismatch);
        Self { error, mismatches, stood_still: None }
    }
}

/// Does something, and converts a panic into an error.
pub(crate) fn caught<T, E: From<Error>>(who: &str, what: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|panic| Err(panicked(who, &*panic).into()))
}

/// Converts a panic into an error.
pub(crate) fn panicked(who: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let what = of_panic(panic);
    Error::new(ErrorKind::Internal, format!("{who} panicked: {what}"))
}

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
    fn execute_clients(
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
                let count = self.cell.idle_connections();
                for n in 1..=count {
                    let session = self.driver.connect(self.options);
                    let opening = || format!("opening connection {n} of {count}");
                    idle.push(session.map_err(|error| error.context(opening()))?);
                }
                self.connected.map_or(Ok(()), |connected| connected())?;
                if has_stopped() {
                    return Ok(None);
                }
                watch.begin();
                let waits = Instant::now();
                // Another process says when the clients of a part start.
                let late = if let Some(part) = self.part_of_trial() {
                    let start = (part.ready)()?;
                    fleet::wait_until(start);
                    start.elapsed()
                } else {
                    Duration::ZERO
                };
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

impl Trial<'_> {
    /// Does the work of a job.
    fn execute_job(&self, job: &dyn Job, state: &DatasetState) -> Result<ExecutedJob, Failure> {
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
    fn judge_job(
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
        let clients = match executed {
            Executed::Clients(clients) => clients,
            Executed::Job(job) => return Ok(self.judge_job(*job, state, session)?),
        };
        let ExecutedClients { part, summaries, memory, fleet } = *clients;
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
        if !counts(Duration::from_nanos(stood_still_ns), Duration::from_nanos(elapsed_ns)) {
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
            memory_full: exhausted && self.capacity().is_some_and(|capacity| capacity.of_memory),
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
