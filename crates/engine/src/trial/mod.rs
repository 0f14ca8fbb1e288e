//! One trial: one operation of one cell, from preparation to verification on the server.

pub(crate) mod gate;
pub(crate) mod job;
pub(crate) mod rate_search;
pub(crate) mod recorded;
pub(crate) mod server_stats;
pub(crate) mod spans;
pub(crate) mod standstill;
pub(crate) mod tail;
pub(crate) mod throughput;
pub(crate) mod timeline;
pub(crate) mod totals;
pub(crate) mod warmup_detector;

use crate::clients::client::Shared;
use crate::clients::clock::process_cpu;
use crate::clients::cpu_partition::CpuPartition;
use crate::clients::open::{OpenTimes, Warmup};
use crate::clients::pool::Pool;
use crate::clients::schedule::{self, Schedule};
use crate::clients::semaphore::Semaphore;
use crate::fleet::{self, FleetClients, Part, PartOfTrial};
use crate::interleave::slices::{Lane, SliceStats};
use crate::prepare::server_memory::MemoryReading;
use crate::trial::gate::Gate;
use crate::trial::recorded::{Recorded, Times};
use crate::trial::server_stats::Watch;
use crate::trial::standstill::Monitor;
use crate::trial::totals::Totals;
use crate::trial::warmup_detector::WarmupDetector;
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::experiment::{After, Checked, DatasetState, OperationInfo, Stop, Workload};
use kurabe_core::fleet::FleetUse;
use kurabe_core::load::Arrivals;
use kurabe_core::metric::{self, MetricValue};
use kurabe_core::observation::{Endpoint, Observation, Observer};
use kurabe_core::planned::{Capacity, Connections, Need, PlannedCell};
use kurabe_core::run::{Measurement, OpenLoop};
use kurabe_core::text::of_panic;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// In an open loop clients start this long after the gate opens, …
const LEAD: Duration = Duration::from_millis(2);
/// The maximum number of clients that connect at a time: servers' queues of new connections are short.
const CONNECTING: usize = 64;
/// … and this much more per client, so that all are awake.
const LEAD_EACH: Duration = Duration::from_micros(20);
/// Separates the seed of arrivals from the clients' own, …
const ARRIVALS: u64 = 0xA221_7A15;
/// … and that of the warm-up's arrivals from both.
const WARM_UP_ARRIVALS: u64 = 0x3A2_37A15;

/// The parameters of a trial.
pub struct Trial<'a> {
    /// The driver of the clients' connections.
    pub driver: &'a dyn Driver,
    /// The options of these connections.
    pub options: &'a ConnectOptions,
    pub cell: &'a PlannedCell,
    /// The cell's work.
    pub workload: &'a dyn Workload,
    /// The operation to measure.
    pub operation: &'a OperationInfo,
    /// Its number among the trials on this data, from 1.
    pub number: u64,
    /// When the measured phase ends.
    pub stop: Stop,
    pub load_model: LoadModel,
    /// Seed of the clients' random inputs. Trials that differ only in their targets have the same seed; no others do.
    pub seed: u64,
    /// Set by the user's Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// Completed transactions, for the progress display.
    pub progress: &'a AtomicU64,
    /// Observes machine, client and server.
    pub observer: Option<&'a dyn Observer>,
    /// Separate processors for clients and servers; `None`: no pinning.
    pub cpu_partition: Option<&'a CpuPartition>,
    /// Called when all clients are connected and wait for the start, to pin the server's threads.
    pub connected: Option<&'a (dyn Fn() -> Result<()> + Sync)>,
    /// The threads of the clients; `None`: as [`ClientThreads::shared`] decides.
    pub threads: Option<ClientThreads>,
    /// The processes that run the clients.
    pub clients: Clients<'a>,
}

/// The processes that run the clients of a trial.
pub struct Clients<'a>(Where<'a>);

enum Where<'a> {
    /// This one.
    Here,
    /// This one runs a part of them.
    Part(&'a PartOfTrial<'a>),
    /// The agents of a fleet.
    Fleet(FleetClients<'a>),
}

impl<'a> Clients<'a> {
    /// This process runs all clients.
    pub const HERE: Self = Self(Where::Here);

    /// This process runs a part of the clients.
    pub fn part(part: &'a PartOfTrial<'a>) -> Self {
        Self(Where::Part(part))
    }

    /// The agents of a fleet run them.
    pub(crate) fn on_fleet(fleet: FleetClients<'a>) -> Self {
        Self(Where::Fleet(fleet))
    }
}

/// How load is offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadModel {
    /// Closed loop: each client starts its next transaction when its last one has ended.
    Closed,
    /// Open loop: transactions are due at a rate, whether or not earlier ones have ended.
    Open {
        /// Transactions per second.
        rate: f64,
        /// The distribution of arrivals.
        arrivals: Arrivals,
    },
}

/// Why a trial has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The first error of the first client that failed, or of the verification.
    pub error: Error,
    /// Wrong replies.
    pub mismatches: u64,
    /// How long this process stood still. Errors of the server during that time are not its fault.
    pub stood_still: Duration,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mismatches = u64::from(error.kind() == ErrorKind::Mismatch);
        Self { error, mismatches, stood_still: Duration::ZERO }
    }
}

impl Trial<'_> {
    /// Runs the clients on data in this state, and verifies the results over a session if all clients succeeded.
    ///
    /// # Errors
    /// Any error of any client, and any mismatch: the trial has no result then.
    pub fn run(&self, state: &DatasetState, session: &mut dyn Session) -> Result<Measurement, Failure> {
        self.judge(self.execute(state, None)?, None, state, session)
    }

    /// Runs the clients; with a lane, interleaved with other trials.
    pub(crate) fn execute(&self, state: &DatasetState, lane: Option<Lane<'_>>) -> Result<Executed, Failure> {
        if let Where::Fleet(on) = &self.clients.0 {
            return if lane.is_some() { Err(fleet::not_interleaved().into()) } else { self.execute_on(on) };
        }
        let policy = &self.cell.policy;
        let clients = policy.clients;
        let endpoint = self.driver.endpoint();
        // Several clients with an embedded database use all processors. A single one uses one at a time.
        let cpu_partition = self.cpu_partition.filter(|_| endpoint != Endpoint::InProcess || clients == 1);
        let mut watch = Watch::open(self);
        let plan = self.schedule()?;
        let warmup = plan.map(|plan| plan.warm_up(clients, mix(self.seed, WARM_UP_ARRIVALS)));
        let pool = match policy.connections {
            Connections::Pool(size) => Some(Pool::open(self.driver, self.options, size)?),
            Connections::Kept | Connections::PerRequest => None,
        };
        let own_stop = AtomicBool::new(false);
        let shared = Shared {
            trial: self,
            pool,
            pipeline: policy.pipeline,
            schedule: plan.map(|plan| Schedule::new(&plan)),
            warmup: warmup.map(|plan| Warmup { schedule: Schedule::new(&plan), gate: Gate::new() }),
            warmup_detector: self
                .stop
                .duration
                .filter(|_| self.load_model == LoadModel::Closed)
                .and_then(WarmupDetector::of),
            lane,
            cpus: cpu_partition.map_or(&[], |cpu_partition| &cpu_partition.clients),
            connecting: Semaphore::new(CONNECTING),
            gate: Gate::new(),
            finish: Gate::new(),
            stop: self.part_of_trial().map_or(&own_stop, |part| part.stop),
            cancel: self.cancel,
        };
        let ran = self.run_clients(&shared, state, &mut watch);
        let closed = shared.pool.map_or(Ok(()), Pool::close);
        let mut executed = ran?;
        closed?;
        watch.finish(&mut executed.observed);
        Ok(Executed { schedule: shared.schedule, ..executed })
    }

    /// Adds up and verifies the clients' results. `slices`: the slices in which they were made.
    pub(crate) fn judge(
        &self,
        executed: Executed,
        slices: Option<SliceStats>,
        state: &DatasetState,
        session: &mut dyn Session,
    ) -> Result<Measurement, Failure> {
        let Executed { totals, schedule, cpu, threads, observed, observed_group, memory, fleet, .. } =
            executed;
        let Executed { stood_still, stood_still_in_all, .. } = executed;
        let stood_still = slices
            .map_or(stood_still, |slices| if slices.is_void { slices.stood_still } else { Duration::ZERO });
        let stood_still_in_all = slices.map_or(stood_still_in_all, |slices| slices.stood_still);
        if let Some(error) = totals.error {
            let mismatches = totals.mismatches;
            return Err(Failure { error, mismatches, stood_still: stood_still_in_all });
        }
        let Recorded { offered, completed, failed, warmup, times, clients, .. } = totals.recorded;
        let Times { service, checks, queue, tail, open_loop, .. } =
            times.map_or_else(Times::default, |times| *times);
        // In an open loop clients have no timelines.
        let clients = if open_loop.is_some() { Vec::new() } else { clients };
        let OpenTimes { response, lag, backlog, dropped, last_end } =
            open_loop.map_or_else(Default::default, |open_loop| *open_loop);
        let sum = completed + failed + dropped;
        if offered != sum {
            let why = format!("{offered} transactions were offered and {sum} accounted for");
            return Err(Error::new(ErrorKind::Internal, why).into());
        }
        if completed == 0 {
            let error = Error::new(ErrorKind::Limit, "no transaction ended during the trial");
            return Err(Failure { error, mismatches: 0, stood_still: stood_still_in_all });
        }
        // A client's error matters more than a failed observation.
        let memory = memory?;
        let checked = self.workload.after(After {
            operation: self.operation.name,
            state,
            session,
            clients: &totals.clients_done,
        })?;
        let Checked { verification: mut verified, metrics } = checked;
        if !self.operation.writes && self.cell.policy.verifies_reads {
            verified.answers += completed + warmup;
        }
        let exhausted = totals.recorded.exhausted || schedule.as_ref().is_some_and(Schedule::is_cut);
        let tiers = observed.as_ref().map(|observed| metric::of_tiers(observed, completed));
        let mut elapsed = throughput::elapsed(&clients, completed);
        let mut open = None;
        if let (LoadModel::Open { rate, .. }, Some(schedule)) = (self.load_model, &schedule) {
            elapsed = Duration::from_nanos(schedule.due_until().max(last_end));
            let due_ns = schedule.due_until();
            open = Some(OpenLoop { rate, response, lag, due_ns, backlog, probes: 0 });
        }
        // Slices have gaps between them, so that equal parts of them are not equal parts of time.
        let (windows, windows_ns) =
            if slices.is_none() { timeline::windows(&clients) } else { (Vec::new(), 0) };
        Ok(Measurement {
            clients: self.cell.policy.clients as u64,
            offered,
            completed,
            failed,
            dropped,
            retries: totals.recorded.retries,
            warmup,
            elapsed_ns: elapsed.as_nanos() as u64,
            client_cpu_ns: slices.map_or(cpu, |slices| slices.cpu).as_nanos() as u64,
            service,
            open,
            verify_ns_per_op: checks.quantile(0.5).unwrap_or_default() as f64,
            verified: Some(verified),
            exhausted: self.capacity().filter(|_| exhausted).map(|capacity| capacity.records),
            observed: observed.map(Box::new),
            observed_group: observed_group.map(Box::new),
            windows,
            windows_ns,
            tail: tail.course(),
            slices: slices.map_or(0, |slices| slices.slices),
            void_slices: slices.map_or(0, |slices| slices.void),
            stood_still_ns: stood_still.as_nanos() as u64,
            threads: threads.unwrap_or_default() as u64,
            fleet,
            metrics: [
                throughput::metrics(&clients),
                queue.as_deref().map_or(Vec::new(), metric::of_queue),
                totals.recorded.connections.metrics(),
                totals.recorded.spans.metrics(),
                tiers.unwrap_or_default(),
                memory,
                metrics,
            ]
            .concat(),
            ..Measurement::default()
        })
    }

    /// The schedule of an open loop.
    pub(crate) fn schedule(&self) -> Result<Option<schedule::Plan>> {
        let LoadModel::Open { rate, arrivals } = self.load_model else { return Ok(None) };
        if self.cell.policy.pipeline > 1 {
            let why = "an open loop has one request per arrival, so requests cannot be pipelined";
            return Err(Error::unsupported(why));
        }
        let least = self.stop.least.map_or(0.0, |least| least.as_secs_f64() * rate).ceil() as u64;
        let (time, most) = match (self.stop.duration, self.stop.requests.map(|most| most.max(least))) {
            (Some(time), most) => (time, most.unwrap_or(u64::MAX)),
            (None, Some(most)) => (Duration::from_secs_f64(most as f64 / rate), most),
            (None, None) => return Err(Error::new(ErrorKind::Internal, "an open loop has no end")),
        };
        let capacity =
            self.capacity().map(|capacity| schedule::capacity(&capacity, self.cell.policy.clients));
        let due = (rate * time.as_secs_f64()).min(most as f64);
        let cut = capacity.filter(|capacity| (*capacity as f64) < due);
        let (most, is_cut) = (cut.unwrap_or(most), cut.is_some());
        let (seed, part, clients) = (mix(self.seed, ARRIVALS), self.part(), self.cell.policy.clients);
        Ok(Some(schedule::Plan { rate, arrivals, time, most, is_cut, seed, part, clients }))
    }

    fn part_of_trial(&self) -> Option<&PartOfTrial<'_>> {
        match &self.clients.0 {
            Where::Part(part) => Some(part),
            Where::Here | Where::Fleet(_) => None,
        }
    }

    /// The part of the clients that this process runs.
    pub(crate) fn part(&self) -> Part {
        self.part_of_trial().map_or(Part::WHOLE, |part| part.part)
    }

    pub(crate) fn capacity(&self) -> Option<Capacity> {
        self.cell.policy.capacity.filter(|_| self.operation.writes)
    }

    /// Waits until the clients of a part start: another process says when. Returns how late it is then.
    fn wait_for_start(&self) -> Result<Duration> {
        let Some(part) = self.part_of_trial() else { return Ok(Duration::ZERO) };
        let start = (part.ready)()?;
        fleet::wait_until(start);
        Ok(start.elapsed())
    }

    /// Takes the time out of an observation in which a part waited for its start.
    fn without_wait(&self, mut seen: Observation, waited: Duration) -> Observation {
        if self.part_of_trial().is_some() {
            fleet::without_wait(&mut seen, waited.as_nanos() as u64);
        }
        seen
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

    fn run_clients(
        &self,
        shared: &Shared<'_>,
        state: &DatasetState,
        watch: &mut Watch<'_>,
    ) -> Result<Executed> {
        let clients = self.cell.policy.clients;
        let reads_memory = self.cell.needs.contains(&Need::ServerMemory);
        let threads = self.shared_threads(shared.cpus);
        let reading = |wanted: bool| {
            if wanted { MemoryReading::begin(self.driver, self.observer) } else { Ok(None) }
        };
        let reads_idle = reads_memory && self.cell.idle_connections() > 0;
        let mut memory = reading(reads_memory && !reads_idle)?;
        let mut idle = Vec::new();
        // Interleaved trials are watched together.
        let monitor = shared.lane.is_none().then(Monitor::start);
        thread::scope(|scope| {
            let mut started = self.start(scope, shared, state, threads);
            let (running, mut refused) = (started.clients, started.refused.take());
            let lead = LEAD + LEAD_EACH * clients as u32;
            if let Some(warmup) = &shared.warmup {
                warmup.gate.wait_for_reports(running);
                if refused.is_some() || shared.stop.load(Ordering::Relaxed) {
                    warmup.gate.abandon();
                } else {
                    warmup.gate.open(lead);
                }
            }
            shared.gate.wait_for_reports(running);
            if let Some(lane) = shared.lane.filter(|_| refused.is_none()) {
                lane.ready(running);
            }
            if refused.is_none() && !shared.stop.load(Ordering::Relaxed) {
                refused = reading(reads_idle)
                    .and_then(|idle_memory| {
                        memory = memory.take().or(idle_memory);
                        self.open_idle(&mut idle)
                    })
                    .err();
            }
            if let Some(connected) = self.connected.filter(|_| refused.is_none()) {
                refused = connected().err();
            }
            let abandon = refused.is_some() || shared.stop.load(Ordering::Relaxed);
            if !abandon {
                watch.begin();
            }
            let waits = Instant::now();
            let late = if abandon { Ok(Duration::ZERO) } else { self.wait_for_start() };
            let waited = waits.elapsed();
            refused = refused.or(late.as_ref().err().cloned());
            let abandon = abandon || refused.is_some();
            let before = monitor.as_ref().map_or(Duration::ZERO, Monitor::so_far);
            let cpu = process_cpu();
            if abandon {
                shared.gate.abandon();
            } else {
                shared.gate.open(if shared.schedule.is_some() { lead } else { Duration::ZERO });
            }
            shared.finish.wait_for_reports(running);
            let cpu = process_cpu().saturating_sub(cpu);
            let stood_still_in_all = monitor.map_or(Duration::ZERO, Monitor::end);
            let stood_still = stood_still_in_all.saturating_sub(before);
            let observed = watch.end().map(|seen| self.without_wait(seen, waited));
            let connections = if reads_idle { idle.len() } else { clients };
            let memory = memory.filter(|_| !abandon).map_or(Ok(Vec::new()), |memory| memory.end(connections));
            for session in idle {
                // The observation is complete.
                let _ = session.close();
            }
            if let Some(part) = self.part_of_trial().filter(|_| !abandon) {
                (part.ended)(shared.stop.load(Ordering::Relaxed));
            }
            shared.finish.open(Duration::ZERO);
            let outcomes = started.join();
            refused.map_or(Ok(()), Err)?;
            Ok(Executed {
                totals: Totals::of(outcomes?),
                schedule: None,
                cpu,
                threads,
                observed,
                observed_group: None,
                memory,
                stood_still,
                stood_still_in_all,
                late: late.unwrap_or_default(),
                fleet: None,
            })
        })
    }
}

/// A trial whose clients have ended, not verified yet.
pub(crate) struct Executed {
    pub(crate) totals: Totals,
    /// The schedule of an open loop, once all clients have given it back.
    pub(crate) schedule: Option<Schedule>,
    /// CPU time of the whole process.
    pub(crate) cpu: Duration,
    /// The number of threads that shared the clients; `None`: each had its own.
    pub(crate) threads: Option<usize>,
    pub(crate) observed: Option<Observation>,
    /// Of an interleaved trial: what was observed of all trials of its group.
    pub(crate) observed_group: Option<Observation>,
    /// The memory cost of connections on the server, if requested.
    pub(crate) memory: Result<Vec<MetricValue>>,
    /// How long this process stood still in the measured phase, and since the first connection.
    pub(crate) stood_still: Duration,
    pub(crate) stood_still_in_all: Duration,
    /// How much later than another process had said the clients were started.
    pub(crate) late: Duration,
    /// What each agent of a fleet did.
    pub(crate) fleet: Option<Box<FleetUse>>,
}

/// Converts a panic into an error.
pub(crate) fn panicked(who: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let what = of_panic(panic);
    Error::new(ErrorKind::Internal, format!("{who} panicked: {what}"))
}
