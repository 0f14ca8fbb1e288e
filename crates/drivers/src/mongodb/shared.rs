//! What all sessions of a driver share: which servers they use, their sessions on the server, and what is known of it.
//!
//! Each connection says hello, so that a server which is no primary any more is noticed at once. Then all known members
//! are asked until one is the primary, as long as `serverSelectionTimeoutMS` allows.

use super::bson::{Element, Raw};
use super::client::Link;
use super::config::Config;
use super::connect::{log_in, reach};
use super::deployment::Deployment;
use super::hello::Hello;
use super::tail::Lsid;
use crate::prelude::*;
use crate::scram::Kept;
use crate::wire::Place;
use kurabe_core::statements::Running;
use kurabe_reactor::Lock;
use ring::rand::{SystemRandom, generate};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a request to kill an operation may take.
const REACHES: Duration = Duration::from_secs(2);
/// The pause before all members are asked again, while they may elect a primary.
const AGAIN: Duration = Duration::from_millis(100);

/// A primary, and the members that it knows.
#[derive(Clone)]
struct Found {
    primary: Place,
    members: Vec<Place>,
}

/// The members that the preference allows, once they were asked; sessions take them in turn.
#[derive(Default)]
pub(super) struct Readers {
    pub(super) allowed: Lock<Option<Arc<[Place]>>>,
    pub(super) next: AtomicUsize,
}

/// State shared by all sessions of a driver.
pub(super) struct Shared {
    pub(super) config: Config,
    found: Lock<Option<Found>>,
    pub(super) readers: Readers,
    /// Sessions on the server that no connection uses: a server holds a limited number of them, for half an hour.
    sessions: Lock<Vec<Lsid>>,
    kept: Kept,
    deployment: OnceLock<Arc<Deployment>>,
    /// Collections known to exist, so that each is checked once.
    seen: Mutex<HashSet<String>>,
}

impl Shared {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            found: Lock::new(None),
            readers: Readers::default(),
            sessions: Lock::new(Vec::new()),
            kept: Kept::default(),
            deployment: OnceLock::new(),
            seen: Mutex::default(),
        }
    }

    /// Opens a connection to the primary.
    pub(super) fn connect(self: &Arc<Self>, options: &ConnectOptions) -> Result<Link> {
        let hosts = &self.config.hosts;
        let mut found = self.found.lock().clone();
        if let ([only], None) = (&**hosts, &found) {
            found = Some(Found { primary: only.clone(), members: Vec::new() });
        }
        let mut members = Vec::new();
        if let Some(found) = found {
            match self.open(&found.primary, options) {
                Ok(Opened::Primary(link)) => return Ok(self.ready(*link, &found.primary, options)),
                Ok(Opened::Other(hello, _)) => members = places(&hello),
                // Another one may be the primary now.
                Err(error) if is_gone(&error) && found.members.len() + hosts.len() > 2 => {}
                Err(error) => return Err(error),
            }
            members.extend(found.members);
        }
        let (link, place) = self.search(&members, options)?;
        Ok(self.ready(link, &place, options))
    }

    /// Opens a connection to a server. Only to a primary it is made ready.
    fn open(&self, place: &Place, options: &ConnectOptions) -> Result<Opened> {
        let reached = reach(&self.config, place, options)?;
        let hello = &reached.client.hello;
        if let Some(why) = hello.unsuitable(&self.config) {
            return Ok(Opened::Other(Box::new(hello.clone()), why));
        }
        log_in(reached, &self.config, &self.kept).map(|link| Opened::Primary(Box::new(link)))
    }

    /// Opens a connection to a member that answers reads, whatever it is.
    pub(super) fn open_reader(self: &Arc<Self>, place: &Place, options: &ConnectOptions) -> Result<Link> {
        let link = log_in(reach(&self.config, place, options)?, &self.config, &self.kept)?;
        Ok(self.equip(link, place, options))
    }

    /// Asks all members until one is the primary.
    fn search(&self, members: &[Place], options: &ConnectOptions) -> Result<(Link, Place)> {
        let until = Instant::now() + self.config.selection_timeout.min(options.timeout);
        loop {
            let mut queue: VecDeque<Place> = self.config.hosts.iter().chain(members).cloned().collect();
            let mut reasons = BTreeMap::new();
            let mut may_elect = false;
            while let Some(place) = queue.pop_front() {
                if reasons.contains_key(&place.to_string()) {
                    continue;
                }
                let why = match self.open(&place, options) {
                    Ok(Opened::Primary(link)) => return Ok((*link, place)),
                    Ok(Opened::Other(hello, why)) => {
                        may_elect |= hello.set.is_some();
                        queue.extend(places(&hello));
                        why
                    }
                    Err(error) if is_gone(&error) => error.to_string(),
                    Err(error) => return Err(error.context(&place)),
                };
                reasons.insert(place.to_string(), why);
            }
            if !may_elect || Instant::now() >= until {
                let message = format!("no primary was found at {}", self.config.place());
                let reasons: Vec<_> = reasons.iter().map(|(place, why)| format!("{place}: {why}")).collect();
                return Err(Error::new(ErrorKind::Unreachable, message)
                    .hint("is the replica set's name right, and has it elected a primary?")
                    .log(reasons.iter().map(String::as_str)));
            }
            kurabe_reactor::sleep(AGAIN);
        }
    }

    /// Makes the connection to a primary ready, and remembers where it is.
    fn ready(self: &Arc<Self>, link: Link, place: &Place, options: &ConnectOptions) -> Link {
        let mut found = self.found.lock();
        if found.as_ref().is_none_or(|found| found.primary != *place) {
            *found = Some(Found { primary: place.clone(), members: places(&link.hello) });
            // Has the members asked again.
            *self.readers.allowed.lock() = None;
        }
        drop(found);
        self.equip(link, place, options)
    }

    /// Gives a connection its session on the server, and has its operations killed when nobody waits for them any more.
    fn equip(self: &Arc<Self>, mut link: Link, place: &Place, options: &ConnectOptions) -> Link {
        if link.hello.has_sessions {
            let kept = self.sessions.lock().pop();
            link.session = kept.or_else(|| random().map(|id| Lsid { id, last: 0 }));
        }
        link.set_tails(&self.config);
        if let Some(Lsid { id, .. }) = link.session {
            let (shared, place, timeout) = (Arc::clone(self), place.clone(), options.timeout.min(REACHES));
            let has_killed = Arc::clone(&link.has_killed);
            let running = Running::new(options.trial, move || {
                // A server that cannot be reached any more executes nothing for this client that could be killed.
                if shared.kill(&place, &ConnectOptions::within(timeout), id) == Ok(true) {
                    has_killed.store(true, Ordering::SeqCst);
                }
            });
            link.exchanges.watch(running);
        }
        link
    }

    /// Kills what a session executes on a server; whether there was something
    /// (<https://www.mongodb.com/docs/manual/reference/command/currentOp/>, …`/killOp/`).
    fn kill(&self, place: &Place, options: &ConnectOptions, session: [u8; 16]) -> Result<bool> {
        let mut link = log_in(reach(&self.config, place, options)?, &self.config, &self.kept)?;
        let found = link.ask(|out| {
            out.int("currentOp", 1).bool("$ownOps", true).uuid("lsid.id", session);
        })?;
        let mut has_killed = false;
        for operation in found.raw().array("inprog").into_iter().flat_map(Raw::values) {
            if let Element::Document(operation) = operation
                && let Some(number) = operation.get("opid")?
            {
                link.administer(|out| number.write("op", out.int("killOp", 1)))?;
                has_killed = true;
            }
        }
        Ok(has_killed)
    }

    /// Keeps the session of a connection that is closed, for another one.
    pub(super) fn keep_session(&self, link: &mut Link) {
        // One of a connection that failed may still execute something.
        if let Some(session) = link.session.take().filter(|_| !link.is_broken()) {
            self.sessions.lock().push(session);
        }
    }

    /// The kind of server; queried the first time, over this connection.
    pub(super) fn deployment(&self, link: &mut Link) -> Result<Arc<Deployment>> {
        if let Some(known) = self.deployment.get() {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(Deployment::ask(link)?);
        Ok(Arc::clone(self.deployment.get_or_init(|| found)))
    }

    /// The kind of server, if it was asked.
    pub(super) fn known_deployment(&self) -> Option<&Deployment> {
        self.deployment.get().map(Arc::as_ref)
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, HashSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to a primary, or what another server says of itself, and why it is not used.
enum Opened {
    Primary(Box<Link>),
    Other(Box<Hello>, String),
}

/// Whether a server cannot be reached.
fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::ConnectionLost)
}

/// The members of a replica set, the primary first.
pub(super) fn places(hello: &Hello) -> Vec<Place> {
    let all = hello
        .primary
        .iter()
        .chain(hello.members.iter().filter(|member| Some(*member) != hello.primary.as_ref()));
    all.filter_map(|address| super::config::host(address)).collect()
}

fn random() -> Option<[u8; 16]> {
    let mut id: [u8; 16] = generate(&SystemRandom::new()).ok()?.expose();
    // A random UUID (RFC 9562, section 5.4).
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    Some(id)
}
