//! Starts the clients of a trial: each in its own thread, or as tasks that share threads.

use crate::clients::client::{ClientOutcome, ClientsShared, Limits, Worker};
use crate::clients::cpu_partition;
use crate::trial::recorded::Times;
use crate::trial::{Trial, panicked};
use kurabe_core::experiment::{Client, DatasetState, Transaction, Workload};
use kurabe_core::planned::share;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result, sort};
use kurabe_reactor::{Condition, Lock, Reactor};
use kurabe_stats::rng::mix;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The stack size of a client. Drivers that parse certificates need the most.
const STACK: usize = 512 * 1024;

/// The clients that were started.
pub(crate) struct Started<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Vec<Result<Box<ClientOutcome>>>>>,
    /// Their number.
    pub(crate) clients: usize,
    /// Why there are no more; `None` if all were started.
    pub(crate) refused: Option<Error>,
}

impl Started<'_> {
    /// Waits for the end of all clients, even if one has failed, and returns their results in the order of the clients.
    pub(crate) fn join(self) -> Result<Vec<ClientOutcome>> {
        let panicked = |_| vec![Err(Error::new(ErrorKind::Internal, "a client thread panicked"))];
        let ended: Vec<Result<Box<ClientOutcome>>> =
            self.threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        let unboxed = ended.into_iter().map(|one| one.map(|outcome| *outcome));
        let mut outcomes = unboxed.collect::<Result<Vec<_>>>()?;
        sort::by_key(&mut outcomes, |outcome| outcome.done.client.index);
        Ok(outcomes)
    }
}

/// A client that is ready to be started.
struct Ready {
    client: Client,
    limits: Limits,
    transaction: Box<dyn Transaction>,
}

impl Trial<'_> {
    /// The number of threads that share the clients; `None`: each client has its own.
    pub(crate) fn shared_threads(&self, cpus: &[u32]) -> Option<usize> {
        let clients = self.part().clients(self.cell.policy.clients);
        let cpus = if cpus.is_empty() { cpu_partition::usable() } else { cpus.len() };
        let can_share = self.driver.capabilities().shared_threads.refusal().is_none();
        ClientThreads::shared(self.threads, clients, cpus, can_share)
    }

    /// Makes a client.
    fn client(&self, index: usize, workload: &dyn Workload, state: &DatasetState) -> Result<Ready> {
        let count = self.cell.policy.clients;
        let client = Client { index, count, seed: mix(self.seed, index as u64), trial: self.number };
        let limits = Limits {
            requests: self.stop.requests.map(|requests| share(requests, index, count)),
            capacity: self.capacity().map_or(u64::MAX, |capacity| capacity.of_client(index, count)),
        };
        let transaction = workload.transaction(self.operation.name, state, client)?;
        Ok(Ready { client, limits, transaction })
    }

    /// Starts the clients. With `threads`, that many share them in turn.
    pub(crate) fn start<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        workload: &dyn Workload,
        shared: &'env ClientsShared<'env>,
        state: &DatasetState,
        threads: Option<usize>,
    ) -> Started<'scope> {
        let (count, part) = (self.cell.policy.clients, self.part());
        let mut own = (0..count).filter(|index| part.has(*index));
        let mut started = Started { threads: Vec::new(), clients: 0, refused: None };
        let result = match threads {
            None => own.try_for_each(|index| -> Result<()> {
                let ready = self.client(index, workload, state)?;
                let name = format!("client-{index}");
                let thread = thread::Builder::new()
                    .name(name)
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        let times = RefCell::default();
                        with_times(vec![guarded(shared, ready, &times)], times)
                    })
                    .map_err(|why| no_thread(&format!("client {index} of {count}"), why))?;
                started.threads.push(thread);
                started.clients += 1;
                Ok(())
            }),
            Some(threads) => {
                // Thousands of clients take as much memory as earlier work has freed.
                kurabe_reactor::trim_heap();
                let mut groups: Vec<Vec<Ready>> = (0..threads).map(|_| Vec::new()).collect();
                let made = own.enumerate().try_for_each(|(nth, index)| -> Result<()> {
                    groups[nth % threads].push(self.client(index, workload, state)?);
                    Ok(())
                });
                made.and_then(|()| {
                    groups.into_iter().enumerate().try_for_each(|(number, group)| -> Result<()> {
                        let clients = group.len();
                        started.threads.push(start_group(scope, shared, number, group)?);
                        started.clients += clients;
                        Ok(())
                    })
                })
            }
        };
        started.refused = result.err();
        started
    }
}

/// Starts a thread that these clients share.
fn start_group<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env ClientsShared<'env>,
    number: usize,
    group: Vec<Ready>,
) -> Result<ScopedJoinHandle<'scope, Vec<Result<Box<ClientOutcome>>>>> {
    let clients = group.len();
    let who = format!("{clients} clients");
    let reactor = Reactor::new(group, STACK).map_err(|why| no_thread(&who, why))?;
    let run = move || {
        let times = RefCell::new(Times { queue: Some(Box::default()), ..Times::default() });
        let ended = reactor.run_with(|ready| guarded(shared, ready, &times)).into_iter();
        let ended = ended.map(|one| one.unwrap_or_else(|panic| Err(panicked("a client", &*panic))));
        with_times(ended.collect(), times)
    };
    thread::Builder::new()
        .name(format!("clients-{number}"))
        .spawn_scoped(scope, run)
        .map_err(|why| no_thread(&who, why))
}

/// Gives the times of a thread to its first client that has results.
fn with_times(
    mut ended: Vec<Result<Box<ClientOutcome>>>,
    times: RefCell<Times>,
) -> Vec<Result<Box<ClientOutcome>>> {
    if let Some(first) = ended.iter_mut().find_map(|one| one.as_mut().ok()) {
        first.recorded.times = Some(Box::new(times.into_inner().of_counted_slices()));
    }
    ended
}

fn no_thread(whose: &str, why: std::io::Error) -> Error {
    Error::no_thread(whose, why)
        .hint("raise the limits of processes and memory (ulimit -u, -v), or use fewer clients")
}

/// Runs a client. A panic (some drivers panic) fails the trial and nothing else, in builds that unwind: tests and what is
/// published (`--profile dist`).
fn guarded(
    shared: &ClientsShared<'_>,
    Ready { client, limits, transaction }: Ready,
    times: &RefCell<Times>,
) -> Result<Box<ClientOutcome>> {
    catch_unwind(AssertUnwindSafe(|| Worker::new(shared, client, transaction, limits, times).run())).map_err(
        |panic| {
            shared.stop.store(true, Ordering::Relaxed);
            // It is unknown whether the client had reported. A surplus report only opens the gate for clients that
            // stop; a surplus end lets them close early.
            if let Some(warmup) = &shared.warmup {
                warmup.gate.report();
            }
            shared.gate.report();
            shared.finish.report();
            panicked(&format!("client {}", client.index), &*panic)
        },
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GateState {
    Closed,
    Open(Instant),
    Abandoned,
}

/// A gate at which clients wait until all of them are ready.
///
/// With a barrier, a client that ends early would block the others. Here each client reports, ready or not, and the
/// coordinator opens the gate or abandons the trial.
pub(crate) struct Gate {
    state: Lock<(usize, GateState)>,
    /// For the clients.
    changed: Condition,
    /// For the coordinator. A report must not wake the clients that wait already.
    reported: Condition,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: Lock::new((0, GateState::Closed)),
            changed: Condition::new(),
            reported: Condition::new(),
        }
    }

    /// Reports that a client is ready or has failed.
    pub(crate) fn report(&self) {
        self.state.lock().0 += 1;
        self.reported.notify_one();
    }

    /// Waits until that many clients have reported.
    pub(crate) fn wait_for_reports(&self, clients: usize) {
        let mut state = self.state.lock();
        while state.0 < clients {
            state = self.reported.wait(state);
        }
    }

    /// Opens the gate. Clients start together, `lead` from now, so that all of them are awake when a schedule begins.
    pub(crate) fn open(&self, lead: Duration) {
        let start = Instant::now() + lead;
        self.state.lock().1 = GateState::Open(start);
        self.changed.notify_all();
    }

    /// Abandons the trial: all waiting clients end.
    pub(crate) fn abandon(&self) {
        self.state.lock().1 = GateState::Abandoned;
        self.changed.notify_all();
    }

    /// Waits for the gate. Returns the common start time, or `None` if the trial was abandoned.
    pub(crate) fn pass(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        loop {
            match state.1 {
                GateState::Closed => state = self.changed.wait(state),
                GateState::Open(start) => return Some(start),
                GateState::Abandoned => return None,
            }
        }
    }
}
