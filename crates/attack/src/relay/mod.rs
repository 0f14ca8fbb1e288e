//! A relay on loopback between a client and a real server. It tells one lie in each trial, and counts them.
//!
//! It reads whole requests and answers ([`protocol::Protocol`]), one exchange after the other on each connection. So
//! it can drop a message, change it, or answer a request itself with the server's answer to an earlier equal one.

pub mod hostile;
pub mod lie;
mod peer;
pub mod protocol;
mod protocols;
mod trials;

use crate::random::Random;
use kurabe_relay::{Hook, LOOPBACK, Server, Socket};
use lie::Lie;
use peer::Peer;
use protocol::{Kind, Protocol, Request};
use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use trials::TrialCount;

/// The maximum number of requests of one class in a trial before a lie.
const MAX_BEFORE: usize = 20;
/// The maximum delay of a late write.
const LATEST: Duration = Duration::from_secs(3);
/// The number of first answers that are kept, for older versions.
const REMEMBERED: usize = 20_000;

/// The parameters of a relay.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The protocol, by the scheme of the server's URL.
    pub scheme: String,
    /// The server's port on loopback.
    pub port: u16,
    /// The lie; `None` for a control.
    pub lie: Option<Lie>,
    /// Whether the first request of a class is lied about already, as for the load, which has few requests.
    pub at_once: bool,
    /// The random seed.
    pub seed: u64,
    /// Answers of an earlier relay ([`Relay::known`]), to acknowledge requests of classes that were not seen yet.
    pub known: Known,
}

/// The newest exchange of each class of requests.
pub type Known = HashMap<String, (Request, Vec<u8>)>;

/// A lie that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The trial, counted from 0 in the order of the run file.
    pub trial: usize,
    /// The request.
    pub what: String,
}

/// A relay that listens until it is dropped.
pub struct Relay {
    shared: Arc<Shared>,
    relay: kurabe_relay::Relay,
}

struct Shared {
    plan: Plan,
    state: Mutex<State>,
}

struct State {
    random: Random,
    trials: TrialCount,
    /// The number of requests of the class, in its trial, before the next lie.
    before: usize,
    told: Vec<Told>,
    /// The newest exchange of each class.
    newest: Known,
    /// The first answer of each request.
    first: HashMap<Vec<u8>, Vec<u8>>,
    /// The number of requests of each class.
    seen: HashMap<String, u64>,
    /// The trial, and requests of each class in it.
    counts: (usize, HashMap<String, usize>),
}

impl Relay {
    /// Listens on a free port for clients of the server; counts trials by the only run that is recorded below `runs`.
    ///
    /// # Errors
    /// If there is no port or thread, or the protocol is not supported.
    pub fn start(plan: Plan, runs: &Path) -> io::Result<Self> {
        if protocols::of_scheme(&plan.scheme).is_none() {
            return Err(io::Error::other(format!("the relay does not speak {}", plan.scheme)));
        }
        let mut random = Random::new(plan.seed);
        let before = if plan.at_once { 0 } else { random.below(MAX_BEFORE) };
        let state = State {
            random,
            trials: TrialCount::new(runs),
            before,
            told: Vec::new(),
            newest: plan.known.clone(),
            first: HashMap::new(),
            seen: HashMap::new(),
            counts: (0, HashMap::new()),
        };
        let shared = Arc::new(Shared { plan, state: Mutex::new(state) });
        let hook = Arc::clone(&shared);
        let server = Server::local(shared.plan.port);
        let relay = kurabe_relay::Relay::start(LOOPBACK, server, move |_| Arc::clone(&hook) as _)?;
        Ok(Self { shared, relay })
    }

    /// The port on which it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.relay.address().port()
    }

    /// The lies so far.
    pub fn told(&self) -> Vec<Told> {
        self.shared.lock().told.clone()
    }

    /// The newest exchange of each class.
    pub fn known(&self) -> Known {
        self.shared.lock().newest.clone()
    }

    /// The number of requests of each class.
    pub fn seen(&self) -> Vec<(String, u64)> {
        let mut seen: Vec<_> = self.shared.lock().seen.iter().map(|(class, n)| (class.clone(), *n)).collect();
        seen.sort();
        seen
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records a lie, and chooses the request for the next trial's lie.
    fn tell(&mut self, trial: usize, request: &Request, at_once: bool) {
        if self.told.iter().any(|told| told.trial == trial) {
            return;
        }
        let what: String = request.class.chars().take(80).collect();
        self.told.push(Told { trial, what });
        self.before = if at_once { 0 } else { self.random.below(MAX_BEFORE) };
    }

    /// The trial whose lie is due now, if any.
    fn due(&mut self, class: &str) -> Option<usize> {
        let trial = self.trials.now();
        if self.counts.0 != trial {
            self.counts = (trial, HashMap::new());
        }
        let count = self.counts.1.entry(class.to_owned()).or_default();
        *count += 1;
        let told = self.told.iter().any(|told| told.trial == trial);
        (*count > self.before && !told).then_some(trial)
    }

    /// Flips the lowest bit of a byte of the value in a message, if there is a long enough value.
    fn flip(&mut self, protocol: &dyn Protocol, message: &mut [u8]) -> bool {
        let value = protocol.value(message);
        if value.len() < 4 {
            return false;
        }
        let at = value.start + value.len() / 4 + self.random.below(value.len() / 2);
        message[at] ^= 1;
        true
    }
}

impl Hook for Shared {
    fn serve(&self, client: Socket, server: Socket) {
        if let Some(protocol) = protocols::of_scheme(&self.plan.scheme) {
            let exchange = Exchange {
                shared: self,
                protocol,
                client: Peer::new(client.handle()),
                server: Peer::new(server.handle()),
                repeat: None,
                burst: false,
                doubled: None,
                late: Vec::new(),
            };
            exchange.run();
        }
        client.shutdown(Shutdown::Both);
        server.shutdown(Shutdown::Both);
    }
}

/// One relayed connection.
struct Exchange<'a> {
    shared: &'a Shared,
    protocol: Box<dyn Protocol>,
    client: Peer,
    server: Peer,
    /// The request that replaces the next one of its class, and its trial.
    repeat: Option<(usize, Request)>,
    /// Whether a lie was told about requests that were sent together: their client may have ended before the others are
    /// read, and its trial too.
    burst: bool,
    /// The trial of an answer that was delivered twice. It counts as a lie at the next request.
    doubled: Option<(usize, Request)>,
    /// Delayed writes, and their trials.
    late: Vec<(usize, Request)>,
}

impl Exchange<'_> {
    fn run(mut self) {
        if self.protocol.handshake(&mut self.client, &mut self.server).is_ok() {
            while let Ok(Some(request)) = self.next() {
                if self.exchange(request).is_err() {
                    break;
                }
            }
        }
        // Its trial may not end before.
        self.client.close();
        self.send_late();
    }

    /// The client's next request.
    fn next(&mut self) -> io::Result<Option<Request>> {
        self.burst &= !self.client.is_idle();
        if self.client.await_turn(&self.server)? && self.client.peek(1)?.is_some() {
            self.protocol.request(&mut self.client)
        } else {
            Ok(None)
        }
    }

    /// Sends delayed writes once their trial has ended.
    fn send_late(&mut self) {
        let began = Instant::now();
        for (trial, request) in std::mem::take(&mut self.late) {
            while began.elapsed() < LATEST && self.shared.lock().trials.now() <= trial {
                thread::sleep(Duration::from_millis(2));
            }
            let mut state = self.shared.lock();
            if state.trials.now() <= trial {
                // The trial was slow, so this write is executed before it is read back: no lie.
                state.told.retain(|told| told.trial != trial);
            }
            drop(state);
            let _ = self.ask(&request);
        }
    }

    /// The server's answer to a request.
    fn ask(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        self.server.send(&request.bytes)?;
        self.protocol.answer(request, &mut self.client, &mut self.server)
    }

    fn exchange(&mut self, request: Request) -> io::Result<()> {
        if !request.answered {
            if self.late.is_empty() {
                return self.server.send(&request.bytes);
            }
            // The server's connection is needed for delayed writes still; its client waits for the end of its own.
            if matches!(request.bytes[..], [b'X', ..] | [_, _, _, _, 1]) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            return Ok(());
        }
        let shared = self.shared;
        *shared.lock().seen.entry(request.class.clone()).or_default() += 1;
        let at_once = shared.plan.at_once;
        if let Some((trial, first)) = self.repeat.take()
            && first.class == request.class
            && self.protocol.essence(&first.bytes) != self.protocol.essence(&request.bytes)
        {
            let answer = self.ask(&first)?;
            let answer = self.protocol.readdress(&answer, &first, &request);
            shared.lock().tell(trial, &request, at_once);
            return self.client.send(&answer);
        }
        if let Some((trial, doubled)) = self.doubled.take() {
            shared.lock().tell(trial, &doubled, at_once);
        }
        let lie = shared.plan.lie.filter(|lie| lie.concerns(request.kind) && !self.burst);
        let due = lie.and_then(|lie| shared.lock().due(&request.class).map(|trial| (lie, trial)));
        self.burst |= due.is_some();
        match due {
            Some((lie @ (Lie::Drop | Lie::Late), trial)) => {
                let known = shared.lock().newest.get(&request.class).cloned();
                if let Some((before, answer)) = known {
                    let answer = self.protocol.readdress(&answer, &before, &request);
                    shared.lock().tell(trial, &request, at_once);
                    if lie == Lie::Late {
                        self.late.push((trial, request));
                    }
                    return self.client.send(&answer);
                }
            }
            Some((Lie::FlipRequest, trial)) => {
                let mut flipped = request.clone();
                if shared.lock().flip(&*self.protocol, &mut flipped.bytes) {
                    let answer = self.ask(&flipped)?;
                    shared.lock().tell(trial, &request, at_once);
                    return self.client.send(&answer);
                }
            }
            _ => {}
        }
        let answer = self.ask(&request)?;
        let lied = due.and_then(|(lie, trial)| self.bend(lie, trial, &request, &answer));
        self.remember(request, &answer);
        self.client.send(lied.as_ref().unwrap_or(&answer))
    }

    fn bend(&mut self, lie: Lie, trial: usize, request: &Request, answer: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.shared.lock();
        let at_once = self.shared.plan.at_once;
        let lied = match lie {
            Lie::Twice => {
                self.repeat = Some((trial, request.clone()));
                return None;
            }
            Lie::AnswerTwice => {
                self.doubled = Some((trial, request.clone()));
                return Some([answer, answer].concat());
            }
            Lie::OtherKey => {
                let (other, known) = state.newest.get(&request.class)?;
                let same = |a, b| self.protocol.essence(a) == self.protocol.essence(b);
                if same(&other.bytes, &request.bytes) || same(known, answer) {
                    return None;
                }
                self.protocol.readdress(known, other, request)
            }
            Lie::Older => {
                let older = state.first.get(&self.identity(request))?;
                if self.protocol.essence(older) == self.protocol.essence(answer) {
                    return None;
                }
                self.protocol.readdress(older, request, request)
            }
            Lie::FlipAnswer => {
                let mut flipped = answer.to_vec();
                if !state.flip(&*self.protocol, &mut flipped) {
                    return None;
                }
                flipped
            }
            Lie::Drop | Lie::Late | Lie::FlipRequest => return None,
        };
        state.tell(trial, request, at_once);
        Some(lied)
    }

    fn remember(&self, request: Request, answer: &[u8]) {
        if request.kind == Kind::Other {
            return;
        }
        let mut state = self.shared.lock();
        if self.shared.plan.lie == Some(Lie::Older) && state.first.len() < REMEMBERED {
            state.first.entry(self.identity(&request)).or_insert_with(|| answer.to_vec());
        }
        state.newest.insert(request.class.clone(), (request, answer.to_vec()));
    }

    /// The part that equal requests have in common.
    fn identity(&self, request: &Request) -> Vec<u8> {
        [request.class.as_bytes(), self.protocol.essence(&request.bytes)].concat()
    }
}
