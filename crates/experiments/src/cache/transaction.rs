//! What one client does: read a record through the cache, or change one of its own.

use super::popularity::Popularity;
use super::store::{self, Store, parts};
use super::versions::Versions;
use crate::defect::no_session;
use crate::ident::Ident;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::experiment::{Client, Notes, Transaction};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a write does to the copy in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterWrite {
    Invalidate,
    Replace,
    Nothing,
}

/// So many, and how long they took together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) times: u64,
    took: Duration,
}

impl Sum {
    fn add(&mut self, took: Duration) {
        self.times += 1;
        self.took += took;
    }

    fn merge(&mut self, other: &Self) {
        self.times += other.times;
        self.took += other.took;
    }

    /// The mean in nanoseconds; none of none.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.times > 0).then(|| self.took.as_nanos() as f64 / self.times as f64)
    }
}

/// What clients met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) stale: u64,
    pub(super) hit: Sum,
    pub(super) miss: Sum,
    pub(super) change: Sum,
    pub(super) after: Sum,
    /// Copies that the cache refused to take.
    pub(super) refused: u64,
}

/// Whether a cache took a copy: one that has no memory for it just now may say so, and an application goes on without.
///
/// # Errors
/// Any other.
pub(super) fn taken(done: Result<()>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Server | ErrorKind::Limit) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Tally {
    /// Adds what others met.
    fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.stale += other.stale;
        self.hit.merge(&other.hit);
        self.miss.merge(&other.miss);
        self.change.merge(&other.change);
        self.after.merge(&other.after);
        self.refused += other.refused;
    }
}

/// What a client met while it warmed up, and afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) warmup: Tally,
    pub(super) measured: Tally,
}

impl Met {
    pub(super) fn merge(&mut self, other: &Self) {
        self.warmup.merge(&other.warmup);
        self.measured.merge(&other.measured);
    }
}

/// What all clients of a cell share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) popularity: Arc<Popularity>,
    pub(super) after_write: AfterWrite,
    /// Of a hundred requests, so many are writes.
    pub(super) writes: u64,
}

/// The statements of a connection.
struct Statements {
    get: Prepared,
    update: Prepared,
    /// On the cache.
    cached: Option<Copies>,
}

struct Copies {
    get: Prepared,
    put: Prepared,
    delete: Prepared,
}

/// What the present request is.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// A read that began when this version had been acknowledged, and was answered by the store or by the cache.
    Read {
        floor: u64,
        by_store: bool,
    },
    Write {
        version: u64,
    },
}

pub(super) struct Visitor {
    shared: Arc<Shared>,
    versions: Arc<Versions>,
    /// The records that this client changes; `None` where nobody changes any.
    own: Option<Popularity>,
    statements: Option<Statements>,
    rng: Rng,
    request: Request,
    record: usize,
    id: Ident,
    data: Vec<u8>,
    reply: Reply,
    /// Of requests whose answer says nothing that is compared.
    aside: Reply,
    met: Met,
}

impl Visitor {
    pub(super) fn new(shared: &Arc<Shared>, versions: &Arc<Versions>, client: Client) -> Self {
        Self {
            shared: Arc::clone(shared),
            versions: Arc::clone(versions),
            own: (shared.writes > 0).then(|| shared.popularity.owned(client.index, client.count)),
            statements: None,
            rng: Rng::new(client.seed),
            request: Request::Read { floor: 0, by_store: false },
            record: 0,
            id: shared.store.ident(0),
            data: Vec::new(),
            reply: Reply::new(),
            aside: Reply::new(),
            met: Met::default(),
        }
    }

    fn read(&mut self, session: &mut dyn Session, statements: &Statements) -> Result<()> {
        let key = [Value::Text(self.id.as_str())];
        let began = Instant::now();
        let floor = self.versions.acknowledged(self.record);
        self.request = Request::Read { floor, by_store: false };
        if let Some(copies) = &statements.cached {
            session.execute(&copies.get, &key, &mut self.reply)?;
            if self.reply.rows() > 0 {
                self.met.measured.hit.add(began.elapsed());
                return Ok(());
            }
        }
        session.execute(&statements.get, &key, &mut self.reply)?;
        self.request = Request::Read { floor, by_store: true };
        if let Some(copies) = &statements.cached {
            // A record that is not there is for `check` to report.
            if let Some((version, data)) = parts(&self.reply) {
                let row = [key[0], Value::Int(version), Value::Bytes(data)];
                let taken = taken(session.execute(&copies.put, &row, &mut self.aside))?;
                self.met.measured.refused += u64::from(!taken);
            }
        }
        self.met.measured.miss.add(began.elapsed());
        Ok(())
    }

    fn write(&mut self, session: &mut dyn Session, statements: &Statements, version: u64) -> Result<()> {
        let key = Value::Text(self.id.as_str());
        let (number, data) = (Value::Int(version as i64), Value::Bytes(&self.data));
        let began = Instant::now();
        session.execute(&statements.update, &[number, data, key], &mut self.reply)?;
        self.met.measured.change.add(began.elapsed());
        let Some(copies) = &statements.cached else { return Ok(()) };
        let began = Instant::now();
        match self.shared.after_write {
            AfterWrite::Invalidate => session.execute(&copies.delete, &[key], &mut self.aside)?,
            AfterWrite::Replace => {
                let done = session.execute(&copies.put, &[key, number, data], &mut self.aside);
                self.met.measured.refused += u64::from(!taken(done)?);
            }
            AfterWrite::Nothing => return Ok(()),
        }
        self.met.measured.after.add(began.elapsed());
        Ok(())
    }
}

impl Transaction for Visitor {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let store = &self.shared.store;
        let cached = match &store.cached {
            None => None,
            Some(cached) => Some(Copies {
                get: session.prepare(&store::get(cached))?,
                put: session.prepare(&store::put(cached))?,
                delete: session.prepare(&store::delete(cached))?,
            }),
        };
        let get = session.prepare(&store::get(&store.stored))?;
        let update = session.prepare(&store::update(&store.stored))?;
        self.statements = Some(Statements { get, update, cached });
        Ok(())
    }

    fn warmed_up(&mut self) {
        self.met.warmup = std::mem::take(&mut self.met.measured);
    }

    fn prepare_input(&mut self) {
        let shared = &self.shared;
        let writes = self.rng.below(100) < shared.writes;
        if let Some(own) = self.own.as_ref().filter(|_| writes) {
            self.record = own.draw(&mut self.rng);
            let version = self.versions.next(self.record);
            shared.store.content.write(self.record as u64, version, &mut self.data);
            self.request = Request::Write { version };
        } else {
            self.record = shared.popularity.draw(&mut self.rng);
            self.request = Request::Read { floor: 0, by_store: false };
        }
        self.id = shared.store.ident(self.record);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let Some(statements) = self.statements.take() else {
            return Err(no_session());
        };
        let done = match self.request {
            Request::Read { .. } => self.read(session, &statements),
            Request::Write { version } => {
                let done = self.write(session, &statements, version);
                if done.is_ok() && self.reply.affected() == 1 {
                    // Whoever begins to read from now on could know of it.
                    self.versions.acknowledge(self.record, version);
                }
                done
            }
        };
        self.statements = Some(statements);
        done
    }

    fn check(&mut self) -> Result<()> {
        match self.request {
            Request::Read { floor, by_store } => {
                let version = self.shared.store.version_of(self.record, &self.reply)?;
                let stale = self.versions.is_stale(self.record, floor, version)?;
                if stale && by_store {
                    let record = self.record;
                    return Err(Error::mismatch(format!(
                        "the store gave version {version} of record {record} after it had acknowledged {floor}"
                    )));
                }
                self.met.measured.reads += 1;
                self.met.measured.stale += u64::from(stale);
                Ok(())
            }
            Request::Write { version } if self.reply.affected() != 1 => {
                let (record, said) = (self.record, self.reply.affected());
                Err(Error::mismatch(format!(
                    "version {version} of record {record} was written and the server acknowledged {said} rows"
                )))
            }
            Request::Write { .. } => Ok(()),
        }
    }

    fn rows_written(&self) -> u64 {
        self.met.warmup.change.times + self.met.measured.change.times
    }

    fn notes(&mut self) -> Option<Notes> {
        Some(Box::new(self.met))
    }
}
