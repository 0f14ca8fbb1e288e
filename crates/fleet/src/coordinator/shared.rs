//! What the thread that looks after the agents shares with the trials.

use super::link::Event;
use super::member::Member;
use crate::silence::Stillness;
use crate::{BEAT, SILENCE};
use kurabe_core::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the agents are looked after while no message arrives.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) ended: AtomicBool,
    pings: AtomicU32,
    /// Where the coordinator's clock begins.
    pub(super) epoch: Instant,
}

pub(super) struct State {
    /// First those that run clients, then those that only observe.
    pub(super) members: Vec<Member>,
}

impl State {
    /// Those that run clients.
    pub(super) fn loaders(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.runs_clients())
    }
}

impl Shared {
    pub(super) fn new(members: Vec<Member>) -> Self {
        Self {
            state: Mutex::new(State { members }),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
            pings: AtomicU32::new(0),
            epoch: Instant::now(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next_ping(&self) -> u32 {
        self.pings.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until `found` returns something, or for this long.
    pub(super) fn wait<T>(
        &self,
        until: Instant,
        mut found: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = found(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Receives messages and sends signs of life, until the run has ended.
    pub(super) fn look_after(&self, events: &Receiver<Event>) {
        let (mut beat, mut looked, mut stillness) = (Instant::now(), Instant::now(), Stillness::new());
        while !self.ended.load(Ordering::Relaxed) {
            // What was received before this time has been handled.
            let mut handled = Instant::now();
            let event = events.recv_timeout(TICK);
            let mut state = self.lock();
            match event {
                Ok(Event::Line { agent, at, line }) => {
                    handled = at;
                    if let Some(member) = state.members.get_mut(agent) {
                        member.receive(&line, at, self.epoch);
                    }
                }
                Ok(Event::Gone { agent, why }) => {
                    handled = looked;
                    if let Some(member) = state.members.get_mut(agent) {
                        member.lose(&why);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // All agents have ended.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(TICK),
            }
            let stood_still = stillness.look(Instant::now());
            if !stood_still.is_zero() {
                state.members.iter_mut().for_each(|member| member.heard += stood_still);
            }
            if handled.saturating_duration_since(looked) >= TICK {
                looked = handled;
                state.members.iter_mut().for_each(|member| silent(member, handled));
            }
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                state.members.iter_mut().for_each(Member::beat);
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// Loses an agent that is silent. `now` is the time until which all messages were handled.
fn silent(member: &mut Member, now: Instant) {
    if member.about.is_some() && now.saturating_duration_since(member.heard) >= SILENCE {
        member.lose(&format!("it gave no sign of life for {:.1} s", SILENCE.as_secs_f64()));
    }
}

/// The error of a lost agent.
pub(super) fn lost(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::ConnectionLost, format!("agent {name}: {why}"))
}
