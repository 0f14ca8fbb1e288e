//! One part of a trial, in threads of its own beside the one that reads messages.

use super::allowed::{Allowed, refused};
use super::outbox::Outbox;
use crate::message::{CLIENTS, Fault, FromAgent, Load};
use kurabe_core::axis::AxisInfo;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::DatasetState;
use kurabe_core::secret::Secret;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::Conditions;
use kurabe_engine::fleet::{ShareOfTrial, ShareResult};
use kurabe_engine::trial::{Clients, Failure, Trial};
use kurabe_experiments::registry;
use kurabe_observe::Monitor;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time limit of connecting and of each reply, as for a run.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What the coordinator says to the clients that wait.
enum Command {
    /// They start.
    Go(Instant),
    /// They close their connections.
    Close,
}

/// What the threads of a trial and the thread of messages share.
#[derive(Default)]
struct Flags {
    cancel: AtomicBool,
    stop: AtomicBool,
    completed: AtomicU64,
    /// Set before its last message is sent: the next trial may follow that at once.
    over: AtomicBool,
}

/// A part of a trial that runs.
pub(super) struct Running {
    flags: Arc<Flags>,
    /// `None` after it was aborted.
    commands: Option<Sender<Command>>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Starts it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(load: Load, allowed: Arc<Allowed>, out: Arc<Outbox>) -> io::Result<Self> {
        let flags = Arc::new(Flags::default());
        let (to, commands) = channel();
        let shared = Arc::clone(&flags);
        let thread = thread::Builder::new().name("trial".to_owned()).spawn(move || {
            let ran = catch_unwind(AssertUnwindSafe(|| run(&load, &allowed, &shared, commands, &out)));
            let ran =
                ran.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the trial panicked").into()));
            shared.over.store(true, Ordering::SeqCst);
            // If nobody reads it, the process ends.
            let _ = match ran {
                Ok(part) => send(part, &out),
                Err(failure) => out.send(FromAgent::Failed(fault(failure))),
            };
        })?;
        Ok(Self { flags, commands: Some(to), thread })
    }

    /// Whether its last message was not sent yet.
    pub(super) fn is_running(&self) -> bool {
        !self.flags.over.load(Ordering::SeqCst)
    }

    /// Transactions completed so far.
    pub(super) fn completed(&self) -> u64 {
        self.flags.completed.load(Ordering::Relaxed)
    }

    /// Starts the clients at this instant.
    pub(super) fn go(&self, at: Instant) {
        self.say(Command::Go(at));
    }

    /// Has the clients close their connections.
    pub(super) fn close(&self) {
        self.say(Command::Close);
    }

    fn say(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A part that has failed does not listen.
            let _ = commands.send(command);
        }
    }

    /// Ends the measured phase.
    pub(super) fn stop(&self) {
        self.flags.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it without results.
    pub(super) fn abort(&mut self) {
        self.flags.cancel.store(true, Ordering::Relaxed);
        self.commands = None;
    }

    /// Ends it without results, and waits for its end, but not longer than this.
    pub(super) fn end_within(mut self, most: Duration) {
        self.abort();
        let until = Instant::now() + most;
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn send(mut part: ShareResult, out: &Outbox) -> io::Result<()> {
    let mut clients = std::mem::take(&mut part.recorded.clients);
    while !clients.is_empty() {
        let rest = clients.split_off(clients.len().min(CLIENTS));
        out.send(FromAgent::Clients(clients))?;
        clients = rest;
    }
    out.send(FromAgent::Done(Box::new(part)))
}

fn fault(failure: Failure) -> Fault {
    let Failure { error, mismatches, stood_still } = failure;
    let error = match error.kind() {
        ErrorKind::Denied => error.hint(
            "passwords are not sent to agents: give this one the password in its own environment or files, as for a run",
        ),
        _ => error,
    };
    let stood_still_ns = stood_still.unwrap_or_default().as_nanos() as u64;
    Fault { kind: error.kind(), message: error.to_string(), mismatches, stood_still_ns }
}

fn run(
    load: &Load,
    allowed: &Allowed,
    flags: &Flags,
    commands: Receiver<Command>,
    out: &Outbox,
) -> Result<ShareResult, Failure> {
    let order = &load.order;
    let experiment = registry::find(&order.cell.experiment)?;
    let names_file =
        |axis: &AxisInfo| order.cell.axes.get(axis.name).is_some_and(|value| axis.names_file(value));
    if experiment.info.axes.iter().any(names_file) {
        return Err(refused("it names a file of the agent's host").into());
    }
    let cell = order.cell.planned(experiment)?;
    if cell.policy.clients as u64 != order.clients {
        let why = format!("it plans {} clients instead of {}", cell.policy.clients, order.clients);
        return Err(Error::new(ErrorKind::Protocol, why).into());
    }
    let operations = experiment.info.operations;
    let operation = operations.iter().find(|operation| operation.name == order.operation);
    let operation = operation.ok_or_else(|| Error::new(ErrorKind::Protocol, "it knows no such operation"))?;
    let timeout = order.cell.timeout_ns.map_or(TIMEOUT, Duration::from_nanos);
    ConnectOptions { largest_answer: order.cell.largest_answer, ..ConnectOptions::within(timeout) }
        .make_default();
    let mut url = TargetUrl::parse(&load.url)?;
    url.password = load.password.as_deref().map(Secret::new).or(url.password);
    // Nobody else's files: a coordinator names servers only.
    if let Some(file) = kurabe_drivers::registry::named_file(&url) {
        return Err(refused(&format!("the URL names a file of the agent's host: {file}")).into());
    }
    let mut driver = allowed.open(&url)?;
    if let Some(class) = order.cell.durability {
        driver.require_durability(class)?;
    }
    let (options, work, observer) =
        (cell.connect_options(&*driver), cell.trial_work(), Monitor::of_clients());
    let commands = Mutex::new(commands);
    let next = || commands.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let lost = || Error::new(ErrorKind::Interrupted, "the coordinator ended the trial");
    let written = |sent: io::Result<()>| sent.map_err(|_| lost());
    let ready = || {
        written(out.send(FromAgent::Ready))?;
        match next() {
            Some(Command::Go(at)) => Ok(at),
            Some(Command::Close) | None => Err(lost()),
        }
    };
    let ended = |stopped| {
        if written(out.send(FromAgent::Ended { stopped })).is_ok() {
            // Closed, or aborted.
            let _ = next();
        }
    };
    let part = ShareOfTrial { part: load.part, ready: &ready, ended: &ended, stop: &flags.stop };
    let trial = Trial {
        number: order.number,
        stop: order.stop,
        load_model: order.load_model,
        seed: order.seed,
        conditions: Conditions {
            cancel: &flags.cancel,
            progress: &flags.completed,
            observer: Some(&observer),
            ..Conditions::default()
        },
        threads: order.cell.threads,
        clients: Clients::Share(&part),
        ..Trial::new(&*driver, &options, &cell, &work, operation)
    };
    trial.run_part(&DatasetState::default())
}
