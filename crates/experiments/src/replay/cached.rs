//! A cache in front of the database, as an application would use it: a read outside of transactions looks there first, and stores
//! what the database answered. A committed change of a table makes all cached reads of that table worthless at once.
//!
//! What is cached is the answer as the server sent it. It is compared with the recorded one as any other answer, so that a change
//! that the cache does not notice, such as one by a trigger, is a wrong answer.

use super::client::Client;
use super::compare::{CACHED, HITS};
use super::traffic::{Connection, Traffic, Unit, names};
use crate::prelude::*;
use kurabe_capture::record::Value as Recorded;
use kurabe_core::driver::Prepared;
use kurabe_protocol::sql;
use kurabe_wire::view::{Exchange, Step, Transaction};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The cache of a running server, and that of a throwaway one, which holds so many answers of that size in bytes.
pub(super) const RUNNING: &str = "as_is";
const THROWAWAY: (u64, u64) = (64 << 10, 1 << 10);
/// The largest answer that is cached, in bytes: memcached takes values of up to 1 MB.
const LARGEST: usize = 900_000;

pub(super) fn need(is_throwaway: bool) -> CacheNeed {
    let capacity = is_throwaway.then_some(THROWAWAY);
    CacheNeed { name: if is_throwaway { "answers" } else { RUNNING }.to_owned(), capacity }
}

/// What is cached: the answer of a key. The name has the target's slot, so that the run removes it.
pub(super) fn collection(cache: &str, slot: usize) -> Arc<Collection> {
    let id = Field { name: "id", kind: FieldType::Text { max: 32 } };
    let answer = Field { name: "answer", kind: FieldType::LongBytes };
    let collection = Collection::new(format!("kurabe_{slot}_answers"), vec![id, answer], vec![0]);
    Arc::new(Collection { cache: Some(cache.to_owned()), ..collection })
}

/// The operations that a cell with a cache needs.
pub(super) fn operations(collection: &Arc<Collection>) -> [Operation; 2] {
    let collection = || Arc::clone(collection);
    [
        Operation::Get { collection: collection(), fields: vec![1] },
        Operation::Put { collection: collection() },
    ]
}

/// How often each table was changed in this replay.
pub(super) struct Versions(HashMap<String, AtomicU64>);

impl Versions {
    /// Of the tables that commits of the capture change.
    pub(super) fn new(traffic: &Traffic) -> Self {
        Self(
            traffic
                .commits
                .iter()
                .flat_map(|commit| &commit.tables)
                .map(|table| (table.clone(), AtomicU64::new(0)))
                .collect(),
        )
    }

    /// A unit was answered: a commit makes others see what its transaction changed, of which `changed` has the tables so far.
    pub(super) fn answered(
        &self,
        traffic: &Traffic,
        unit: &Unit,
        answers: &[Exchange],
        changed: &mut Vec<String>,
    ) {
        for (sent, answer) in unit.requests.iter().zip(answers) {
            let template = &traffic.templates[sent.template];
            let text = &traffic.kinds[template.kind].text;
            let statement = sql::Statement::read(text, traffic.language.dialect());
            let is_none = changes_none(&statement) && answer.affected == 0 && answer.error.is_none();
            if template.judged.writes.is_some() && !is_none {
                changed.extend(names(template, sent, true));
            }
            if answer.error.is_none() && rolls_back(&statement) {
                changed.clear();
            }
        }
        if unit.commit.is_some() {
            for version in changed.drain(..).filter_map(|table| self.0.get(&table)) {
                version.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn of(&self, table: &str) -> u64 {
        self.0.get(table).map_or(0, |version| version.load(Ordering::SeqCst))
    }
}

/// What a connection asked of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) reads: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.reads += other.reads;
    }

    pub(super) fn metrics(self) -> impl Iterator<Item = MetricValue> {
        let share = (self.reads > 0).then(|| HITS.value(self.hits as f64 / self.reads as f64));
        share.into_iter().chain((self.reads > 0).then(|| CACHED.value(self.reads as f64)))
    }
}

/// A connection's use of the cache.
pub(super) struct Cached {
    get: Prepared,
    put: Prepared,
    reply: Reply,
    pub(super) counts: Counts,
}

impl Cached {
    pub(super) fn new(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<Self> {
        let [get, put] = operations(collection);
        let (get, put) = (session.prepare(&get)?, session.prepare(&put)?);
        Ok(Self { get, put, reply: Reply::new(), counts: Counts::default() })
    }

    /// Has the cache answer a unit, or else the database, whose answer is cached.
    pub(super) fn send(
        &mut self,
        session: &mut dyn Session,
        client: &mut Client<'_>,
        (traffic, connection): (&Traffic, &Connection),
        versions: &Versions,
        unit: &Unit,
    ) -> Result<Vec<Exchange>> {
        if !is_cached(traffic, unit) {
            return client.send(session.raw_messages()?, unit);
        }
        let began = Instant::now();
        let key = key(traffic, connection, versions, unit);
        let failed = |error: Error| error.context("the cache");
        session.execute(&self.get, &[Value::Text(&key)], &mut self.reply).map_err(failed)?;
        self.counts.reads += 1;
        let mut answers = if let Some(answer) = self.reply.field_bytes(0, 0) {
            self.counts.hits += 1;
            client.answered(unit, answer)?
        } else {
            let (answers, bytes) = client.send_and_keep(session.raw_messages()?, unit)?;
            if bytes.len() <= LARGEST && answers.iter().all(|answer| answer.error.is_none()) {
                let done =
                    session.execute(&self.put, &[Value::Text(&key), Value::Bytes(&bytes)], &mut Reply::new());
                match done {
                    // A cache without free memory.
                    Err(error) if matches!(error.kind(), ErrorKind::Server | ErrorKind::Limit) => {}
                    done => done.map_err(failed)?,
                }
            }
            answers
        };
        let ended = Instant::now();
        for answer in &mut answers {
            (answer.began, answer.ended) = (Some(began), Some(ended));
        }
        Ok(answers)
    }
}

/// Whether a statement that changes no rows changes nothing.
fn changes_none(statement: &sql::Statement<'_>) -> bool {
    let is_one = !statement.tokens().iter().any(|token| token.is_mark(';'));
    statement.begins(&["delete", "insert", "merge", "replace", "update"]) && is_one
}

/// Whether a statement undoes the whole transaction, and does nothing else.
fn rolls_back(statement: &sql::Statement<'_>) -> bool {
    let mut words = statement.tokens().iter().filter(|token| !token.is_mark(';'));
    words.next().is_some_and(|first| first.is_one_of(&["abort", "rollback"]))
        && words.all(|word| word.is_one_of(&["transaction", "work"]))
}

/// Whether a unit only reads, outside of transactions, and its answer depends on nothing but tables.
fn is_cached(traffic: &Traffic, unit: &Unit) -> bool {
    let reads = |sent: &super::commands::Sent| {
        let template = &traffic.templates[sent.template];
        let text = &traffic.kinds[template.kind].text;
        sent.request.step != Step::Prepare
            && !template.may_change()
            && !template.judged.is_setup
            && sent.request.limit == 0
            && !sent.request.goes_on
            && sent.data.is_empty()
            && sql::Statement::read(text, traffic.language.dialect()).varies().is_none()
    };
    is_outside(unit) && unit.commit.is_none() && unit.requests.iter().all(reads)
}

/// How many requests a cache could answer, if nothing were changed: reads that were asked before.
pub(super) fn repeated(traffic: &Traffic) -> u64 {
    let (versions, mut asked) = (Versions::new(traffic), HashSet::new());
    let mut found = 0;
    for connection in &traffic.connections {
        for unit in connection.units.iter().map(|unit| &traffic.units[*unit]) {
            let mut is_new = || asked.insert(key(traffic, connection, &versions, unit));
            if is_cached(traffic, unit) && !is_new() {
                found += unit.requests.len() as u64;
            }
        }
    }
    found
}

/// Why a cache would answer nothing of a capture: it has no read that could be cached.
pub(super) fn nothing_to_cache(traffic: &Traffic) -> Option<String> {
    let reads = |unit: &&Unit| {
        let changes = |sent: &super::commands::Sent| traffic.templates[sent.template].may_change();
        let is_setup = |sent: &super::commands::Sent| traffic.templates[sent.template].judged.is_setup;
        unit.commit.is_none() && !unit.requests.iter().any(changes) && !unit.requests.iter().all(is_setup)
    };
    if traffic.units.iter().any(|unit| is_cached(traffic, unit)) {
        return None;
    }
    let (outside, inside): (Vec<&Unit>, Vec<&Unit>) =
        traffic.units.iter().filter(reads).partition(|unit| is_outside(unit));
    let count = |units: &[&Unit]| units::count(units.len() as u64);
    Some(match (inside.len(), outside.len()) {
        (0, 0) => "there is none".to_owned(),
        (0, _) => format!("the answers of {} depend on more than tables", count(&outside)),
        (_, 0) => format!("{} are in transactions", count(&inside)),
        _ => format!(
            "{} are in transactions, and the answers of {} depend on more than tables",
            count(&inside),
            count(&outside)
        ),
    })
}

fn is_outside(unit: &Unit) -> bool {
    unit.requests.last().map(|sent| sent.request.transaction) == Some(Transaction::None)
}

/// The key of a unit's answer: what was asked, by whom, and how often the tables were changed.
fn key(traffic: &Traffic, connection: &Connection, versions: &Versions, unit: &Unit) -> String {
    let halves = [0_u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &connection.said).hash(&mut hasher);
        for sent in &unit.requests {
            let request = &sent.request;
            (traffic.text(sent), request.step as u8, &request.formats).hash(&mut hasher);
            for parameter in &request.parameters {
                (parameter.kind, parameter.binary).hash(&mut hasher);
                match &parameter.value {
                    Recorded::Bytes(bytes) => (1, bytes).hash(&mut hasher),
                    _ => 0.hash(&mut hasher),
                }
            }
            for table in names(&traffic.templates[sent.template], sent, false) {
                (versions.of(&table), table).hash(&mut hasher);
            }
        }
        hasher.finish()
    });
    format!("{:016x}{:016x}", halves[0], halves[1])
}
