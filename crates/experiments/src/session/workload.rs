//! A cell as the engine sees it: loads the sessions, and checks what reads, writes and requests left.

use super::info::{INFO, READ, REQUEST, WRITE};
use super::request::{Purge, Request, Sessions, Writer};
use super::store::{Layout, Store};
use super::transaction::{Read, Returned, Write};
use crate::axes::no_operation;
use crate::fill::{self, BATCH, check_count};
use crate::ident::{Ident, own};
use crate::prelude::*;
use crate::readback;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait after a trial until its last sessions have expired: their time, and what a server's clock is late.
const EXPIRY: Duration = Duration::from_secs(5);

/// What the sessions of reads and of requests are like before a trial.
#[derive(Default)]
struct Loaded {
    is_read: bool,
    is_requested: bool,
    /// What the clients of the last trial left of the sessions of requests; `None`: unknown.
    left: Mutex<Option<Vec<Sessions>>>,
}

pub(super) struct SessionWorkload {
    pub(super) store: Arc<Store>,
    pub(super) read_from: Arc<Collection>,
    pub(super) write_to: Arc<Collection>,
    /// The sessions of requests.
    pub(super) requested: Arc<Collection>,
    pub(super) records: u64,
    /// Of Zipf's law.
    pub(super) exponent: f64,
    pub(super) bind: Bind,
    pub(super) stored_bytes: u64,
}

impl SessionWorkload {
    fn writer(&self, collection: &Arc<Collection>, client: Client) -> Result<Write> {
        Write::new(&self.store, collection, self.bind, client)
    }

    /// Reads sessions back and compares them byte for byte with their version; without one they must be gone. Returns how
    /// many it read, and adds the rows that they have.
    fn read_back(
        &self,
        session: &mut dyn Session,
        from: &Arc<Collection>,
        keys: impl Iterator<Item = (u64, Option<u64>)>,
        rows: &mut u64,
    ) -> Result<u64> {
        let mut answer = Returned::new(&self.store)?;
        let keys = keys.map(|(key, version)| (key, version, Ident::of(self.store.seed, key)));
        readback::each(
            session,
            &self.store.select(from),
            self.stored_bytes,
            keys,
            |(_, _, id)| [Value::Text(id.as_str())],
            |(key, version, _), reply| {
                std::mem::swap(&mut answer.reply, reply);
                *rows += answer.reply.rows() as u64;
                let Some(version) = version else {
                    return match answer.reply.rows() {
                        0 => Ok(()),
                        _ => Err(Error::mismatch(format!("session {key} had expired, and is served"))),
                    };
                };
                answer.open(&self.store)?;
                answer.check(&self.store, *key, *version)
            },
        )
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.completed).sum();
        let rows: u64 = done.iter().map(|done| done.rows_written).sum();
        let counted = check_count(session, &self.write_to, rows, "rows of written sessions")?;
        let keys = done.iter().flat_map(|done| own(0, done.client).take(done.completed as usize));
        let read_back = self
            .read_back(session, &self.write_to, keys.map(|key| (key, Some(0))), &mut 0)
            .map_err(|error| error.context("read back after the trial"))?;
        let counted = counted.map_or(0, |_| writes);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }

    /// Loads a collection with the first version of all sessions, and counts them.
    fn fill(&self, to: &Arc<Collection>, session: &mut dyn Session) -> Result<()> {
        let client = Client { index: 0, count: 1, seed: 0, trial: 0 };
        let (mut writer, mut recorder) = (self.writer(to, client)?, Recorder::default());
        writer.attach(session)?;
        fill::in_batches(session, self.records, BATCH, &mut |session, _| {
            writer.prepare_input();
            writer.run(session, &mut recorder)?;
            writer.check(&mut recorder)
        })?;
        let rows = recorder.into_summary(client, self.records).rows_written;
        check_count(session, to, rows, "loaded rows").map(drop)
    }

    /// Has the collection of reads hold all sessions.
    fn load_reads(
        &self,
        state: &mut Loaded,
        namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        if state.is_read {
            return Ok(());
        }
        namespace.create(&self.read_from)?;
        self.fill(&self.read_from, session)?;
        namespace.analyse(&self.read_from)?;
        self.read_back(session, &self.read_from, (0..self.records).map(|key| (key, Some(0))), &mut 0)
            .map_err(|error| error.context("after loading"))?;
        state.is_read = true;
        Ok(())
    }

    fn sessions(&self, client: Client) -> Sessions {
        Sessions::new(self.store.seed, client, self.records, self.exponent)
    }

    /// Has the collection of requests hold the first version of all loaded sessions, and no other: by undoing what the last
    /// trial did, if that is less, or by loading it.
    fn renew(
        &self,
        state: &mut Loaded,
        namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        if !state.is_requested {
            namespace.create(&self.requested)?;
            state.is_requested = true;
            self.fill(&self.requested, session)?;
            return namespace.analyse(&self.requested);
        }
        let left = state.left.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let is_loaded = |key: u64| key < self.records;
        let undo: Vec<(u64, Option<u64>)> = left.iter().flatten().flat_map(Sessions::changed).collect();
        if left.is_none() || self.store.layout == Layout::Rows || undo.len() as u64 >= self.records {
            namespace.clear(&self.requested)?;
            return self.fill(&self.requested, session);
        }
        let mut writer = Writer::new(&self.store, &self.requested, Bind::Once)?;
        writer.attach(session)?;
        fill::in_batches(session, undo.len() as u64, BATCH, &mut |session, n| {
            let (key, version) = undo[n as usize];
            let id = Ident::of(self.store.seed, key);
            writer.set(key, 0);
            match version {
                Some(_) if is_loaded(key) => writer.write(session, id, key, Some(1))?,
                Some(_) => writer.delete(session, id, 1)?,
                None if is_loaded(key) => writer.write(session, id, key, None)?,
                None => return Ok(()),
            }
            writer.check(key)
        })?;
        let what = "sessions after the last trial was undone";
        check_count(session, &self.requested, self.records, what).map(drop)
    }

    /// Waits until the sessions that requests had expire last are not served, and with them all that were before.
    fn await_expiry(&self, session: &mut dyn Session, left: &[Sessions]) -> Result<()> {
        let purge = Purge::attach(session, &self.requested)?;
        let started = Instant::now();
        loop {
            purge.run(session)?;
            let last = left.iter().filter_map(|sessions| sessions.expired.last()).map(|key| (*key, None));
            match self.read_back(session, &self.requested, last, &mut 0) {
                Err(error) if error.kind() == ErrorKind::Mismatch && started.elapsed() < EXPIRY => {
                    thread::sleep(EXPIRY / 100);
                }
                done => return done.map(drop),
            }
        }
    }

    /// Checks what requests left: the number of sessions by the server's count, each session that they changed or began by
    /// its content, and that none that they deleted is there.
    fn check_requests(
        &self,
        state: &Loaded,
        session: &mut dyn Session,
        done: &[ClientSummary],
    ) -> Result<Verification> {
        let left: Vec<Sessions> =
            done.iter().map(|done| self.sessions(done.client).after(done.completed)).collect();
        if self.store.expires {
            self.await_expiry(session, &left).map_err(|error| error.context("after the trial"))?;
        }
        // How many rows a session has is known before it is read only if it has always as many.
        let rows = self.store.rows(self.store.payload) as u64;
        let is_known = self.store.layout == Layout::Blob
            || self.store.alike && self.stored_bytes == self.store.payload as u64;
        let mut read_rows = 0;
        let alive = left.iter().flat_map(|sessions| &sessions.alive);
        let unchanged =
            alive.clone().filter(|(key, version)| !is_known && *version == 0 && *key < self.records);
        let unchanged: Vec<(u64, Option<u64>)> = unchanged.map(|(key, _)| (*key, Some(0))).collect();
        let changed: Vec<(u64, Option<u64>)> = left.iter().flat_map(Sessions::changed).collect();
        // Sessions that no request changed are read for the number of their rows: they prove no write.
        let mut read = |sessions: Vec<(u64, Option<u64>)>| {
            let read = self.read_back(session, &self.requested, sessions.into_iter(), &mut read_rows);
            read.map_err(|error| error.context("read back after the trial"))
        };
        let records = changed.len() as u64;
        let read_back = read(changed)?;
        read(unchanged)?;
        let expected = if is_known { alive.count() as u64 * rows } else { read_rows };
        check_count(session, &self.requested, expected, "rows of sessions after the requests")?;
        *state.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
        let requests = done.iter().map(|done| done.completed).sum();
        Ok(Verification {
            writes: requests,
            answers: requests,
            records,
            read_back,
            ..Verification::default()
        })
    }
}

impl Workload for SessionWorkload {
    fn load(&self, namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.write_to)?;
        Ok(DatasetState::new(Loaded::default()))
    }

    fn before(&self, Before { operation, state, namespace, session }: Before<'_>) -> Result<()> {
        match operation {
            WRITE => namespace.clear(&self.write_to),
            REQUEST => self.renew(state.get_mut()?, namespace, session),
            _ => self.load_reads(state.get_mut()?, namespace, session),
        }
    }

    fn transaction(&self, name: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        Ok(match name {
            WRITE => Box::new(self.writer(&self.write_to, client)?),
            READ => Box::new(Read::new(&self.store, &self.read_from, self.bind, self.records, client)?),
            REQUEST => {
                Box::new(Request::new(&self.store, &self.requested, self.bind, self.sessions(client))?)
            }
            _ => return Err(no_operation(INFO.name, name)),
        })
    }

    fn after(&self, After { operation, state, session, clients }: After<'_>) -> Result<Checked> {
        Ok(match operation {
            WRITE => self.check_writes(session, clients)?.into(),
            REQUEST => self.check_requests(state.get()?, session, clients)?.into(),
            _ => Checked::default(),
        })
    }
}
