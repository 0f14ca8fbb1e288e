//! One trial on the agents.

use super::agents::Address;
use super::member::Member;
use super::shared::{Shared, State, lost};
use crate::clock::Offset;
use crate::message::{Fault, FromAgent, Load, ToAgent};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::fleet::{AgentResult, ClientResult, ClientShare, Order, ShareResult, Started};
use kurabe_engine::trial::Failure;
use kurabe_observe::boot;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the user's request to stop is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// The clients start this long after the order to start was sent, …
const LEAD: Duration = Duration::from_millis(15);
/// … and this many of the longest round trips later: the order travels for half of one.
const ROUND_TRIPS: u32 = 2;
/// The time for the clients of an aborted trial to end.
const ABORT: Duration = Duration::from_secs(5);

/// The state of one agent's part.
struct PartState {
    /// The agent, by its position among the run's.
    agent: usize,
    ready: bool,
    ended: bool,
    stopped: bool,
    clients: Vec<ClientResult>,
    result: Option<Box<ShareResult>>,
    fault: Option<Fault>,
}

impl PartState {
    fn of(agent: usize) -> Self {
        let (clients, result, fault) = (Vec::new(), None, None);
        Self { agent, ready: false, ended: false, stopped: false, clients, result, fault }
    }

    fn member<'s>(&self, state: &'s State) -> &'s Member {
        &state.members[self.agent]
    }

    /// Whether its last message has arrived.
    fn is_over(&self) -> bool {
        self.result.is_some() || self.fault.is_some()
    }
}

/// A trial that some agents of a run make.
pub(super) struct TrialOfAgents<'a> {
    shared: &'a Shared,
    parts: Vec<PartState>,
    /// When the clients were to start.
    start: Instant,
    /// Whether all parts have ended.
    over: bool,
}

impl<'a> TrialOfAgents<'a> {
    /// A trial on these agents, by their positions among the run's.
    pub(super) fn new(shared: &'a Shared, on: Vec<usize>) -> Self {
        let parts = on.into_iter().map(PartState::of).collect();
        Self { shared, parts, start: Instant::now(), over: true }
    }

    /// Gives each agent its part, with the address of the server, and waits until all are ready.
    pub(super) fn prepare(
        &mut self,
        order: &Order,
        server: &Address,
        cancel: &AtomicBool,
    ) -> Result<(), Failure> {
        let of = self.parts.len();
        self.check_lost()?;
        {
            let mut state = self.shared.lock();
            for (number, part) in self.parts.iter().enumerate() {
                let member = &mut state.members[part.agent];
                member.inbox.clear();
                member.completed = 0;
                let (order, part) = (order.clone(), ClientShare { number, of });
                let password = server.password.as_ref().map(|password| password.expose().to_owned());
                let load = Load { order, part, url: server.url.clone(), password };
                member.send(ToAgent::Load(Box::new(load)));
            }
        }
        self.over = false;
        self.wait_for(|part| part.ready, cancel, None)
    }

    /// Fails if an agent is lost, before anything was sent to the others.
    fn check_lost(&self) -> Result<(), Failure> {
        let state = self.shared.lock();
        self.lost_agent(&state).map_or(Ok(()), |error| Err(error.into()))
    }

    /// The error of the first agent that is lost.
    fn lost_agent(&self, state: &State) -> Option<Error> {
        let mut members = self.parts.iter().map(|part| part.member(state));
        members.find_map(|member| Some(lost(&member.name, member.lost.as_ref()?)))
    }

    /// Waits until each part `is_there`. If one fails, all end.
    fn wait_for(
        &mut self,
        is_there: fn(&PartState) -> bool,
        cancel: &AtomicBool,
        progress: Option<&AtomicU64>,
    ) -> Result<(), Failure> {
        loop {
            let parts = &mut self.parts;
            let done = self.shared.wait(Instant::now() + LOOK, |state| {
                take(state, parts);
                let stop = parts.iter().any(|part| part.stopped) && !parts.iter().all(|part| part.ended);
                let failed =
                    parts.iter().any(|part| part.fault.is_some() || part.member(state).lost.is_some());
                if failed {
                    return Some(false);
                }
                (stop || parts.iter().all(is_there)).then_some(true)
            });
            if let Some(progress) = progress {
                let state = self.shared.lock();
                let completed = self.parts.iter().map(|part| part.member(&state).completed);
                progress.store(completed.sum(), Ordering::Relaxed);
            }
            if cancel.load(Ordering::Relaxed) {
                self.abort();
                return Err(Error::new(ErrorKind::Interrupted, "stopped by the user").into());
            }
            match done {
                Some(false) => {
                    self.abort();
                    return Err(self.failure());
                }
                Some(true) if self.parts.iter().all(is_there) => return Ok(()),
                Some(true) => {
                    for part in &mut self.parts {
                        part.stopped = false;
                    }
                    self.send(|part| !part.ended, &ToAgent::Stop);
                }
                None => {}
            }
        }
    }

    /// Sends a message to the agents of some parts.
    fn send(&self, which: impl Fn(&PartState) -> bool, message: &ToAgent) {
        let mut state = self.shared.lock();
        for part in self.parts.iter().filter(|part| which(part)) {
            state.members[part.agent].send(message.clone());
        }
    }

    /// Ends all parts, and waits for that. An agent that does not end its part is lost.
    fn abort(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.send(|part| !part.is_over(), &ToAgent::Abort);
        let parts = &mut self.parts;
        let ended = self.shared.wait(Instant::now() + ABORT, |state| {
            take(state, parts);
            let over = |part: &PartState| part.is_over() || part.member(state).lost.is_some();
            parts.iter().all(over).then_some(())
        });
        if ended.is_none() {
            let mut state = self.shared.lock();
            for part in self.parts.iter().filter(|part| !part.is_over()) {
                state.members[part.agent].lose("it did not end its part of a trial");
            }
        }
    }

    /// Why the trial failed: a wrong reply precedes lost agents, and these precede other errors.
    fn failure(&self) -> Failure {
        let state = self.shared.lock();
        let of_part = |part: &PartState| {
            let (fault, member) = (part.fault.as_ref()?, part.member(&state));
            let error = Error::new(fault.kind, format!("agent {}: {}", member.name, fault.message));
            let stood_still = Duration::from_nanos(fault.stood_still_ns);
            Some(Failure { error, mismatches: fault.mismatches, stood_still: Some(stood_still) })
        };
        let faults = || self.parts.iter().filter_map(of_part);
        let mismatches = faults().map(|failure| failure.mismatches).sum();
        let kind = |failure: &Failure| failure.error.kind();
        let wrong = faults().find(|failure| kind(failure) == ErrorKind::Mismatch);
        let gone = self.lost_agent(&state);
        // The other agents were interrupted because of the first.
        let first = || faults().find(|failure| kind(failure) != ErrorKind::Interrupted);
        let none = || Error::new(ErrorKind::Internal, "a part of a trial failed without a reason").into();
        let failure = wrong.or_else(|| gone.map(Failure::from)).or_else(first).unwrap_or_else(none);
        Failure { mismatches, ..failure }
    }
}

/// Takes the messages of all parts.
fn take(state: &mut State, parts: &mut [PartState]) {
    for part in parts {
        while let Some(message) = state.members[part.agent].inbox.pop_front() {
            match message {
                FromAgent::Ready => part.ready = true,
                FromAgent::Ended { stopped } => (part.ended, part.stopped) = (true, stopped),
                FromAgent::Clients(clients) => part.clients.extend(clients),
                FromAgent::Done(result) => part.result = Some(result),
                FromAgent::Failed(fault) => part.fault = Some(fault),
                FromAgent::Here(_)
                | FromAgent::Pong { .. }
                | FromAgent::Beat { .. }
                | FromAgent::Observed(_)
                | FromAgent::Gone { .. } => {}
            }
        }
    }
}

impl Started for TrialOfAgents<'_> {
    fn run(&mut self, cancel: &AtomicBool, progress: &AtomicU64) -> Result<(), Failure> {
        let unknown = |name: &str| lost(name, "it does not answer the comparison of clocks");
        {
            let mut state = self.shared.lock();
            let members = || self.parts.iter().map(|part| part.member(&state));
            if let Some(member) = members().find(|member| member.clock.is_none()) {
                return Err(unknown(&member.name).into());
            }
            let longest = members().filter_map(|member| member.clock).map(Offset::round_trip).max();
            self.start = Instant::now() + LEAD + longest.unwrap_or_default() * ROUND_TRIPS;
            let at_ns = self.start.saturating_duration_since(self.shared.epoch).as_nanos() as u64;
            for part in &self.parts {
                let member = &mut state.members[part.agent];
                if let Some(clock) = member.clock {
                    member.send(ToAgent::Go { at_ns: clock.of_agent(at_ns) });
                }
            }
        }
        self.wait_for(|part| part.ended, cancel, Some(progress))
    }

    fn end(mut self: Box<Self>) -> Result<Vec<AgentResult>, Failure> {
        self.send(|_| true, &ToAgent::Close);
        self.wait_for(PartState::is_over, &AtomicBool::new(false), None)?;
        self.over = true;
        let start_ns = self.start.saturating_duration_since(self.shared.epoch).as_nanos() as i64;
        let state = self.shared.lock();
        let here = boot().unwrap_or_default();
        let result = |part: &mut PartState| {
            let member = part.member(&state);
            let mut result = part.result.take().map(|result| *result).unwrap_or_default();
            result.recorded.clients = std::mem::take(&mut part.clients);
            let machine = member.about.as_ref().map(|about| about.boot.clone()).unwrap_or_default();
            AgentResult {
                name: member.name.clone(),
                here: machine == here,
                machine,
                start_ns: start_ns + result.late_ns as i64,
                clock_error_ns: member.clock.map_or(0, |clock| clock.error().as_nanos() as u64),
                part: result,
            }
        };
        Ok(self.parts.iter_mut().map(result).collect())
    }
}

impl Drop for TrialOfAgents<'_> {
    fn drop(&mut self) {
        self.abort();
    }
}
