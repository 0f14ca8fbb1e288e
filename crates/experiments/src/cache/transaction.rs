//! The work of one client: it reads a record through the cache, or changes one of its own records.

use super::info::{AFTER_CHANGE, CHANGE, HIT, MISS};
use super::popularity::Popularity;
use super::store::{self, Store, Versions, parts};
use crate::fill::acknowledged;
use crate::ident::Ident;
use crate::prelude::*;
use std::time::Instant;

/// The effect of a write on the copy in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterWrite {
    Invalidate,
    Replace,
    Nothing,
}

/// What requests did. Their times are spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) stale: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) changes: u64,
    /// Copies that the cache refused to store.
    pub(super) refused: u64,
}

/// Whether the cache stored a copy. A cache without free memory may refuse it, and an application continues without
/// the copy.
///
/// # Errors
/// Any other error.
pub(super) fn taken(done: Result<()>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Server | ErrorKind::Limit) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Tally {
    pub(super) fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.stale += other.stale;
        self.hits += other.hits;
        self.misses += other.misses;
        self.changes += other.changes;
        self.refused += other.refused;
    }
}

/// The counts of a client during warm-up, and afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) warmup: Tally,
    pub(super) measured: Tally,
}

impl Counts {
    /// What a client counts now.
    fn tally(recorder: &mut Recorder) -> &mut Tally {
        let measures = recorder.measures();
        let counts = recorder.notes(Self::default);
        if measures { &mut counts.measured } else { &mut counts.warmup }
    }
}

/// State that all clients of a cell share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) popularity: Arc<Popularity>,
    pub(super) after_write: AfterWrite,
    /// Writes per hundred requests.
    pub(super) writes: u64,
}

struct Copies {
    get: Statement,
    put: Statement,
    delete: Statement,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    /// A read: the version that was acknowledged when it began, and whether the store or the cache answered it.
    Read {
        floor: u64,
        by_store: bool,
    },
    Write {
        version: u64,
    },
}

pub(super) struct CacheClient {
    shared: Arc<Shared>,
    versions: Arc<Versions>,
    /// The records that this client changes; `None` if the workload has no writes.
    own: Option<Popularity>,
    get: Statement,
    update: Statement,
    copies: Option<Copies>,
    rng: Rng,
    request: Request,
    record: usize,
    id: Ident,
    data: Vec<u8>,
    reply: Reply,
    /// Replies whose content is not compared.
    aside: Reply,
}

impl CacheClient {
    pub(super) fn new(shared: &Arc<Shared>, versions: &Arc<Versions>, client: Client) -> Self {
        let once = |operation| Statement::new(operation, Bind::Once);
        let store = &shared.store;
        let copies = store.cached.as_ref().map(|cached| Copies {
            get: once(store::get(cached)),
            put: once(store::put(cached)),
            delete: once(store::delete(cached)),
        });
        Self {
            shared: Arc::clone(shared),
            versions: Arc::clone(versions),
            own: (shared.writes > 0).then(|| shared.popularity.owned(client.index, client.count)),
            get: once(store::get(&store.stored)),
            update: once(store::update(&store.stored)),
            copies,
            rng: Rng::new(client.seed),
            request: Request::Read { floor: 0, by_store: false },
            record: 0,
            id: store.ident(0),
            data: Vec::new(),
            reply: Reply::new(),
            aside: Reply::new(),
        }
    }

    fn read(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        let key = [Value::Text(self.id.as_str())];
        let began = Instant::now();
        let floor = self.versions.acknowledged(self.record);
        self.request = Request::Read { floor, by_store: false };
        if let Some(copies) = &self.copies {
            copies.get.execute(session, &key, &mut self.reply)?;
            if self.reply.rows() > 0 {
                recorder.span(HIT.name, 1, began.elapsed());
                Counts::tally(recorder).hits += 1;
                return Ok(());
            }
        }
        self.get.execute(session, &key, &mut self.reply)?;
        self.request = Request::Read { floor, by_store: true };
        // `check` reports a record that is missing.
        if let (Some(copies), Some((version, data))) = (&self.copies, parts(&self.reply)) {
            let row = [key[0], Value::Int(version), Value::Bytes(data)];
            let taken = taken(copies.put.execute(session, &row, &mut self.aside))?;
            Counts::tally(recorder).refused += u64::from(!taken);
        }
        recorder.span(MISS.name, 1, began.elapsed());
        Counts::tally(recorder).misses += 1;
        Ok(())
    }

    fn write(&mut self, session: &mut dyn Session, version: u64, recorder: &mut Recorder) -> Result<()> {
        let key = Value::Text(self.id.as_str());
        let (number, data) = (Value::Int(version as i64), Value::Bytes(&self.data));
        let began = Instant::now();
        self.update.execute(session, &[number, data, key], &mut self.reply)?;
        recorder.span(CHANGE.name, 1, began.elapsed());
        Counts::tally(recorder).changes += 1;
        let Some(copies) = &self.copies else { return Ok(()) };
        let began = Instant::now();
        match self.shared.after_write {
            AfterWrite::Invalidate => copies.delete.execute(session, &[key], &mut self.aside)?,
            AfterWrite::Replace => {
                let done = copies.put.execute(session, &[key, number, data], &mut self.aside);
                Counts::tally(recorder).refused += u64::from(!taken(done)?);
            }
            AfterWrite::Nothing => return Ok(()),
        }
        recorder.span(AFTER_CHANGE.name, 1, began.elapsed());
        Ok(())
    }
}

impl Transaction for CacheClient {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let copies =
            self.copies.iter_mut().flat_map(|copies| [&mut copies.get, &mut copies.put, &mut copies.delete]);
        copies.chain([&mut self.get, &mut self.update]).try_for_each(|statement| statement.attach(session))
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

    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        let Request::Write { version } = self.request else { return self.read(session, recorder) };
        self.write(session, version, recorder)?;
        if self.reply.affected() == 1 {
            // A read that begins from now on must see this version.
            self.versions.acknowledge(self.record, version);
        }
        Ok(())
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        match self.request {
            Request::Read { floor, by_store } => {
                let version = self.shared.store.version_of(self.record, &self.reply)?;
                let stale = self.versions.is_stale(self.record, floor, version)?;
                if stale && by_store {
                    let record = self.record;
                    return Err(Error::mismatch(format!(
                        "the store returned version {version} of record {record} after it had acknowledged \
                         version {floor}"
                    )));
                }
                let tally = Counts::tally(recorder);
                tally.reads += 1;
                tally.stale += u64::from(stale);
                Ok(())
            }
            Request::Write { version } => {
                acknowledged(&self.reply, format_args!("version {version} of record {}", self.record))
            }
        }
    }
}
