//! The request of a site: read a session, change it, and write it back. One in ten begins a session, and one in twenty finds
//! one that has expired, and deletes it; or it is the session's last, after which the database removes it at its time.

use super::store::{Layout, Store, split};
use super::transaction::{Returned, data};
use crate::codec::Codec;
use crate::custom::zipf;
use crate::fill::prepare_if_supported;
use crate::ident::{Ident, own};
use crate::prelude::*;
use crate::statement::recycle;
use std::iter::StepBy;
use std::ops::RangeFrom;
use std::time::{SystemTime, UNIX_EPOCH};

/// Of a hundred requests, those that begin a session.
const NEW: u64 = 10;
/// Of a hundred requests, those that find a session expired.
const EXPIRED: u64 = 5;
/// How long the database keeps a session after its last request, in microseconds.
const LIFE: i64 = 1_000_000;
/// One in so many requests removes all sessions that have expired, as PHP's `session.gc_divisor`, where the database does not
/// remove them by itself.
const PURGE: u64 = 100;

/// What a request does with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    /// It has this version.
    Change(u64),
    /// Likewise.
    Expire(u64),
}

/// The sessions of one client, and what its requests do with them. They are a function of the client alone: the number of
/// requests says what the store must hold. No other client has these sessions.
pub(super) struct Sessions {
    rng: Rng,
    exponent: f64,
    /// Those that are in the store, the most popular first, with their versions.
    pub(super) alive: Vec<(u64, u64)>,
    pub(super) expired: Vec<u64>,
    new: StepBy<RangeFrom<u64>>,
    /// The number of all clients' loaded sessions.
    records: u64,
}

impl Sessions {
    /// A client's part of the sessions that were loaded.
    pub(super) fn new(seed: u64, client: Client, records: u64, exponent: f64) -> Self {
        let loaded = own(0, client).take_while(|key| *key < records);
        let mut alive: Vec<(u64, u64)> = loaded.map(|key| (key, 0)).collect();
        // In every trial the same sessions are popular, wherever they are in the store.
        Rng::new(mix(seed, client.index as u64)).shuffle(&mut alive);
        let new = own(records, client);
        Self { rng: Rng::new(client.seed), exponent, alive, expired: Vec::new(), new, records }
    }

    /// The next request: its session, and what it does with it.
    pub(super) fn draw(&mut self) -> (u64, Step) {
        let draw = self.rng.below(100);
        let len = self.alive.len() as u64;
        if draw < NEW || len == 0 {
            let key = self.new.next().unwrap_or_default();
            self.alive.push((key, 0));
            // A new session is as popular as any.
            let at = self.rng.below(len + 1) as usize;
            self.alive.swap(at, len as usize);
            (key, Step::Begin)
        } else if draw < NEW + EXPIRED {
            let (key, version) = self.alive.swap_remove(self.rng.below(len) as usize);
            self.expired.push(key);
            (key, Step::Expire(version))
        } else {
            let at = zipf(&mut self.rng, len, self.exponent);
            let (key, version) = self.alive[at as usize];
            self.alive[at as usize].1 = version + 1;
            (key, Step::Change(version))
        }
    }

    /// What the requests so far began, changed or deleted: the version of each session; `None`: it is gone. Loaded sessions are
    /// those with a version above 0.
    pub(super) fn changed(&self) -> impl Iterator<Item = (u64, Option<u64>)> {
        let records = self.records;
        let alive = self.alive.iter().filter(move |(key, version)| *version > 0 || *key >= records);
        let expired = self.expired.iter().map(|key| (*key, None));
        alive.map(|(key, version)| (*key, Some(*version))).chain(expired)
    }

    /// Makes this number of requests.
    pub(super) fn after(mut self, requests: u64) -> Self {
        for _ in 0..requests {
            self.draw();
        }
        self
    }
}

/// Adds, replaces and removes sessions.
pub(super) struct Writer {
    store: Arc<Store>,
    codec: Codec,
    payload: Vec<u8>,
    /// The time of the next write, if it is not the session's own.
    time: Option<i64>,
    parameters: Vec<Value<'static>>,
    pub(super) reply: Reply,
    /// One row of a new session, and of one that exists; of sessions of several rows they are one operation.
    insert: Statement,
    update: Statement,
    delete: Statement,
    /// Around the rows of a session that has several.
    transaction: Option<[Statement; 2]>,
    /// Rows that the server acknowledged of the last request, and those that it had to.
    acknowledged: [u64; 2],
}

impl Writer {
    pub(super) fn new(store: &Arc<Store>, to: &Arc<Collection>, bind: Bind) -> Result<Self> {
        let [insert, update, delete] = operations(store.layout, to);
        let several = store.layout == Layout::Rows;
        Ok(Self {
            store: Arc::clone(store),
            codec: store.codec()?,
            payload: Vec::new(),
            time: None,
            parameters: Vec::new(),
            reply: Reply::new(),
            insert: Statement::new(insert, bind),
            update: Statement::new(update, bind),
            delete: Statement::new(delete, bind),
            transaction: several
                .then(|| [Operation::Begin, Operation::Commit].map(|one| Statement::new(one, bind))),
            acknowledged: [0; 2],
        })
    }

    pub(super) fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let all = [&mut self.insert, &mut self.update, &mut self.delete];
        all.into_iter().chain(self.transaction.iter_mut().flatten()).try_for_each(|one| one.attach(session))
    }

    /// Has the database remove the session of the next `write` soon.
    pub(super) fn expire_soon(&mut self) {
        self.time = Some(now() + LIFE);
    }

    /// Generates the content of a version of a session.
    pub(super) fn set(&mut self, key: u64, version: u64) {
        self.store.write(key, version, &mut self.payload);
    }

    fn begin(&mut self, session: &mut dyn Session) -> Result<()> {
        self.acknowledged = [0; 2];
        let Some([begin, _]) = &mut self.transaction else { return Ok(()) };
        begin.execute(session, &[], &mut self.reply)
    }

    fn commit(&mut self, session: &mut dyn Session) -> Result<()> {
        let Some([_, commit]) = &mut self.transaction else { return Ok(()) };
        commit.execute(session, &[], &mut self.reply)
    }

    /// Writes the content that was set: of a new session, or of one that has `before` rows.
    pub(super) fn write(
        &mut self,
        session: &mut dyn Session,
        id: Ident,
        key: u64,
        before: Option<usize>,
    ) -> Result<()> {
        self.begin(session)?;
        let stored = self.codec.encode(&self.payload)?;
        let updated = Value::Time(self.time.take().unwrap_or_else(|| self.store.time(key)));
        let mut parameters: Vec<Value<'_>> = std::mem::take(&mut self.parameters);
        let written = if self.store.layout == Layout::Blob {
            let data = data(self.store.encoding, stored)?;
            let statement = if before.is_some() { &mut self.update } else { &mut self.insert };
            let id = Value::Text(id.as_str());
            parameters.extend(if before.is_some() { [data, updated, id] } else { [id, data, updated] });
            let done = statement.execute(session, &parameters, &mut self.reply);
            self.acknowledged = [self.reply.affected(), 1];
            done
        } else {
            let mut rows = 0;
            let done = split(stored).try_for_each(|(n, piece)| {
                rows = n + 1;
                parameters.clear();
                let piece = data(self.store.encoding, piece)?;
                parameters.extend([Value::Text(id.as_str()), Value::Int(n as i64), piece, updated]);
                self.insert.execute(session, &parameters, &mut self.reply)
            });
            // A version that compresses better has fewer rows.
            done.and_then(|()| {
                (rows..before.unwrap_or(0)).try_for_each(|n| {
                    parameters.clear();
                    parameters.extend([Value::Text(id.as_str()), Value::Int(n as i64)]);
                    self.delete.execute(session, &parameters, &mut self.reply)?;
                    self.acknowledged[0] += self.reply.affected();
                    self.acknowledged[1] += 1;
                    Ok(())
                })
            })
        };
        self.parameters = recycle(parameters);
        written?;
        self.commit(session)
    }

    /// Removes a session of so many rows.
    pub(super) fn delete(&mut self, session: &mut dyn Session, id: Ident, rows: usize) -> Result<()> {
        self.begin(session)?;
        for n in 0..rows {
            let key = [Value::Text(id.as_str()), Value::Int(n as i64)];
            let key = if self.store.layout == Layout::Blob { &key[..1] } else { &key[..] };
            self.delete.execute(session, key, &mut self.reply)?;
            self.acknowledged[0] += self.reply.affected();
            self.acknowledged[1] += 1;
        }
        self.commit(session)
    }

    /// Checks that the server acknowledged the last request as what it was.
    pub(super) fn check(&self, key: u64) -> Result<()> {
        let [found, expected] = self.acknowledged;
        if found == expected {
            return Ok(());
        }
        Err(Error::mismatch(format!(
            "the server acknowledged {found} of {expected} changed rows of session {key}"
        )))
    }
}

/// What adds, changes and removes one row of a session.
pub(super) fn operations(layout: Layout, to: &Arc<Collection>) -> [Operation; 3] {
    let collection = || Arc::clone(to);
    let [insert, update] = match layout {
        Layout::Blob => [
            Operation::Insert { collection: collection() },
            Operation::Update { collection: collection(), fields: vec![1, 2] },
        ],
        Layout::Rows => {
            [Operation::Put { collection: collection() }, Operation::Put { collection: collection() }]
        }
    };
    [insert, update, Operation::Delete { collection: collection() }]
}

/// Microseconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64
}

/// Removes the sessions that have expired; `None` if the database removes them by itself, or never.
pub(super) struct Purge(Option<Prepared>);

impl Purge {
    pub(super) fn attach(session: &mut dyn Session, from: &Arc<Collection>) -> Result<Self> {
        if from.expires.is_none() {
            return Ok(Self(None));
        }
        prepare_if_supported(session, &Operation::Purge { collection: Arc::clone(from) }).map(Self)
    }

    pub(super) fn run(&self, session: &mut dyn Session) -> Result<()> {
        let Some(prepared) = &self.0 else { return Ok(()) };
        session.execute(prepared, &[Value::Time(now())], &mut Reply::new())
    }
}

/// The requests of one client.
pub(super) struct Request {
    store: Arc<Store>,
    select: Statement,
    answer: Returned,
    writer: Writer,
    sessions: Sessions,
    from: Arc<Collection>,
    purge: Purge,
    /// The number of requests so far.
    requests: u64,
    key: u64,
    id: Ident,
    step: Step,
}

impl Request {
    pub(super) fn new(
        store: &Arc<Store>,
        to: &Arc<Collection>,
        bind: Bind,
        sessions: Sessions,
    ) -> Result<Self> {
        Ok(Self {
            select: Statement::new(store.select(to), bind),
            answer: Returned::new(store)?,
            writer: Writer::new(store, to, bind)?,
            sessions,
            from: Arc::clone(to),
            purge: Purge(None),
            requests: 0,
            key: 0,
            id: Ident::of(store.seed, 0),
            step: Step::Begin,
            store: Arc::clone(store),
        })
    }
}

impl Transaction for Request {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.select.attach(session)?;
        self.purge = Purge::attach(session, &self.from)?;
        self.writer.attach(session)
    }

    fn prepare_input(&mut self) {
        (self.key, self.step) = self.sessions.draw();
        self.id = Ident::of(self.store.seed, self.key);
        match self.step {
            Step::Begin => self.writer.set(self.key, 0),
            Step::Change(version) => self.writer.set(self.key, version + 1),
            Step::Expire(version) if self.store.expires => {
                self.writer.set(self.key, version + 1);
                self.writer.expire_soon();
            }
            Step::Expire(_) => {}
        }
        self.requests += 1;
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        if self.requests.is_multiple_of(PURGE) {
            self.purge.run(session)?;
        }
        if self.step == Step::Begin {
            return self.writer.write(session, self.id, self.key, None);
        }
        self.select.execute(session, &[Value::Text(self.id.as_str())], &mut self.answer.reply)?;
        self.answer.open(&self.store)?;
        let rows = self.answer.reply.rows();
        match self.step {
            Step::Expire(_) if !self.store.expires => self.writer.delete(session, self.id, rows),
            _ => self.writer.write(session, self.id, self.key, Some(rows)),
        }
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        if let Step::Change(version) | Step::Expire(version) = self.step {
            self.answer.check(&self.store, self.key, version)?;
        }
        self.writer.check(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn clients_have_sessions_of_their_own_and_make_the_same_requests_again() {
        for (records, count) in [(100, 7), (5, 7), (64, 1), (1_000, 16)] {
            let mut of = HashMap::new();
            for index in 0..count {
                let client = Client { index, count, seed: index as u64 + 9, trial: 1 };
                let mut sessions = Sessions::new(3, client, records, 0.99);
                let (mut begun, mut expired) = (0, 0);
                for _ in 0..2_000 {
                    let (key, step) = sessions.draw();
                    assert_eq!(*of.entry(key).or_insert(index), index, "{key} of {records} and {count}");
                    begun += u32::from(step == Step::Begin);
                    expired += u32::from(matches!(step, Step::Expire(_)));
                }
                assert!((140..=300).contains(&begun) && (60..=150).contains(&expired), "{begun} {expired}");
                let again = Sessions::new(3, client, records, 0.99).after(2_000);
                assert_eq!((again.alive, again.expired), (sessions.alive, sessions.expired));
            }
        }
    }
}
