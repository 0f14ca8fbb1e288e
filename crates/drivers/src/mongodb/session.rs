//! A session, which keeps prepared operations as commands without parameters.

use super::bson::Raw;
use super::client::Link;
use super::config::Config;
use super::deployment::Deployment;
use super::errors::{self, written};
use super::plan::{BATCH, Plan, write_concern};
use super::shared::Shared;
use super::tail::Tail;
use super::transfer;
use crate::prelude::*;
use crate::slots::Slots;
use crate::wire::{Peer as _, too_much};
use std::sync::Arc;

/// Bytes by which a command may exceed the largest document: `BSONObjMaxInternalSize` in MongoDB's source.
const COMMAND_ROOM: u64 = 16 * 1_024;

/// Whether MongoDB supports an operation in a deployment of this kind.
pub(super) fn supports(operation: &Operation, deployment: &Deployment) -> Support {
    match (operation, &deployment.no_transactions) {
        (Operation::Purge { .. }, _) => Support::no("MongoDB removes expired documents by a TTL index"),
        (Operation::Page { .. }, _) => Support::no("MongoDB has no pages"),
        (Operation::Flow(_), _) => Support::no(NO_FLOW),
        (Operation::Raw { .. }, _) => {
            Support::No("MongoDB has no SQL for the statements of a workload".to_owned())
        }
        (Operation::Begin | Operation::Commit | Operation::Rollback, Some(reason)) => {
            Support::No(reason.clone())
        }
        (Operation::InsertMany { .. }, Some(reason)) => Support::No(format!(
            "several documents are inserted atomically only within a transaction, and {reason}"
        )),
        _ => Support::Native,
    }
}

/// A transaction. The server learns of it with its first command.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    number: i64,
    has_begun: bool,
}

impl Transaction {
    /// What its next command ends with.
    fn tail(self) -> Tail {
        if self.has_begun { Tail::Transaction(self.number) } else { Tail::Begin(self.number) }
    }
}

pub(super) struct MongoSession {
    shared: Arc<Shared>,
    options: ConnectOptions,
    /// The connection to the primary.
    link: Link,
    /// The one for reads, where the URL's read preference is for other members.
    reader: Option<Link>,
    transaction: Option<Transaction>,
    slots: Slots<Plan>,
    deployment: Arc<Deployment>,
}

impl MongoSession {
    pub(super) fn open(shared: &Arc<Shared>, options: &ConnectOptions) -> Result<Self> {
        let mut link = shared.connect(options)?;
        let deployment = shared.deployment(&mut link)?;
        let reader = shared.connect_reader(&link, options)?;
        Ok(Self {
            shared: Arc::clone(shared),
            options: *options,
            link,
            reader,
            transaction: None,
            slots: Slots::default(),
            deployment,
        })
    }

    /// Checks that the collection exists: MongoDB finds nothing in a missing one, and creates it at the first write.
    fn must_exist(&mut self, name: &str) -> Result<()> {
        if self.shared.seen().contains(name) {
            return Ok(());
        }
        if !exists(&mut self.link, name)? {
            return Err(Error::new(ErrorKind::NotFound, format!("mongodb: there is no collection {name}")));
        }
        self.shared.seen().insert(name.to_owned());
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        if self.transaction.is_some() {
            return Err(errors::server(0, "Transaction", "a transaction is already in progress"));
        }
        let Some(session) = &mut self.link.session else {
            return Err(Error::unsupported("mongodb: the server has no sessions, and so no transactions"));
        };
        session.last += 1;
        self.transaction = Some(Transaction { number: session.last, has_begun: false });
        Ok(())
    }

    fn end(&mut self, commit: bool) -> Result<()> {
        let Some(Transaction { number, has_begun }) = self.transaction.take() else {
            return Err(errors::server(0, "Transaction", "no transaction is in progress"));
        };
        if !has_begun {
            return Ok(());
        }
        let writes = &self.shared.config.writes;
        let ended = self.link.administer(|out| {
            out.int(if commit { "commitTransaction" } else { "abortTransaction" }, 1);
            out.long("txnNumber", number).bool("autocommit", false);
            write_concern(out, writes);
        });
        let ended = ended.and_then(errors::concern);
        // An error of the server means that it has undone the transaction already.
        if commit || self.link.is_broken() { ended } else { Ok(()) }
    }

    /// Writes, and returns the number of matching documents.
    fn write(&mut self, prepared: &Prepared, parameters: &[Value<'_>]) -> Result<u64> {
        let Self { shared, link, transaction, slots, deployment, options, .. } = self;
        let retries = shared.config.retries_writes && deployment.no_transactions.is_none();
        let tail = match (&*transaction, &mut link.session) {
            (Some(transaction), _) => transaction.tail(),
            (None, Some(session)) if retries => {
                session.last += 1;
                Tail::Retryable(session.last)
            }
            _ => Tail::Plain,
        };
        let plan = slots.get(prepared)?;
        fill(link, plan, parameters, tail, &shared.config, deployment)?;
        begun(transaction);
        let done = link.exchange().and_then(written);
        let (Err(error), Tail::Retryable(_)) = (&done, tail) else { return done };
        if error.kind() != ErrorKind::ConnectionLost && !link.may_be_retried() {
            return done;
        }
        // Once more, to the server that is the primary now, which knows the write by the session's number and its own.
        let Ok(mut again) = shared.connect(options) else { return done };
        std::mem::swap(&mut again.session, &mut link.session);
        again.set_tails(&shared.config);
        // The other session is not used any more, and that of the new connection was never used.
        *link = again;
        fill(link, plan, parameters, tail, &shared.config, deployment)?;
        link.exchange().and_then(written)
    }

    /// Inserts several documents in the current transaction, or in a new one.
    fn insert_many(&mut self, prepared: &Prepared, parameters: &[Value<'_>]) -> Result<u64> {
        if self.transaction.is_some() {
            return self.write(prepared, parameters);
        }
        self.begin()?;
        match self.write(prepared, parameters) {
            Ok(count) => self.end(true).map(|()| count),
            Err(error) => {
                // The server aborts the transaction too; the first error is returned.
                let _ = self.end(false);
                Err(error)
            }
        }
    }

    #[inline]
    fn read(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let Self { shared, link, reader, transaction, slots, deployment, .. } = self;
        let plan = slots.get(prepared)?;
        // Reads in a transaction use the primary.
        let (link, tail, next) = match transaction {
            Some(transaction) => (link, transaction.tail(), Tail::Transaction(transaction.number)),
            None => (reader.as_mut().unwrap_or(link), Tail::Read, Tail::Read),
        };
        fill(link, plan, parameters, tail, &shared.config, deployment)?;
        begun(transaction);
        let collection = plan.operation.collection().map_or("", |collection| collection.name.as_str());
        let most = link.wire.stream().most();
        link.read(collection, BATCH, next, |document| row(plan, document, out, most))?;
        end_count(plan, out);
        Ok(())
    }
}

/// Notes that a command of the transaction is sent.
#[inline]
fn begun(transaction: &mut Option<Transaction>) {
    if let Some(transaction) = transaction {
        transaction.has_begun = true;
    }
}

/// Appends a document to the reply.
#[inline]
fn row(plan: &Plan, document: Raw<'_>, out: &mut Reply, most: u64) -> Result<()> {
    plan.row(document, out)?;
    if out.held() as u64 > most { Err(too_much(most)) } else { Ok(()) }
}

/// `$group` returns no row for an empty collection.
fn end_count(plan: &Plan, out: &mut Reply) {
    if out.rows() == 0 && matches!(plan.operation, Operation::Count { .. }) {
        out.push_int(0);
        out.end_row();
    }
}

/// Writes the command of a plan.
#[inline]
fn fill(
    link: &mut Link,
    plan: &Plan,
    parameters: &[Value<'_>],
    tail: Tail,
    config: &Config,
    deployment: &Deployment,
) -> Result<()> {
    plan.write(&mut link.out, parameters)?;
    match (tail, &config.reads) {
        (Tail::Transaction(_), _) | (Tail::Begin(_), None) => {}
        (Tail::Begin(_), Some(level)) => drop(link.out.begin("readConcern").text("level", level).end()),
        _ => drop(link.out.append(&plan.concern)),
    }
    link.complete(tail);
    let bytes = link.out.length() as u64;
    if deployment.hello.document_bytes.is_none_or(|most| bytes <= most + COMMAND_ROOM) {
        return Ok(());
    }
    let message = format!("mongodb: a request of {bytes} bytes exceeds the server's limit");
    Err(Error::new(ErrorKind::Limit, message).hint("a document holds at most 16 MB: use a smaller payload"))
}

impl Session for MongoSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Support::No(reason) = supports(operation, &self.deployment) {
            return Err(Error::unsupported(format!("{}: {reason}", operation.name())));
        }
        if let Some(collection) = operation.collection() {
            self.must_exist(&collection.name)?;
        }
        Ok(self.slots.insert(Plan::new(operation, &self.shared.config)))
    }

    #[inline]
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let plan = self.slots.get(prepared)?;
        check_parameters(plan.operation.name(), plan.operation.parameters(), parameters.len())?;
        match plan.operation {
            Operation::Begin => self.begin(),
            Operation::Commit => self.end(true),
            Operation::Rollback => self.end(false),
            Operation::Ping => self
                .link
                .run(|out| {
                    out.int("ping", 1);
                })
                .map(drop),
            Operation::InsertMany { .. } => {
                self.insert_many(prepared, parameters).map(|count| out.set_affected(count))
            }
            _ if plan.is_read => self.read(prepared, parameters, out).inspect_err(|_| out.clear()),
            _ => self.write(prepared, parameters).map(|count| out.set_affected(count)),
        }
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.link.times
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        let read = self.reader.as_mut().map_or(Ok(()), Link::close_checked);
        self.link.close_checked().and(read)
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(self.transaction.is_some())
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(self)
    }

    without!(planner, cache);
}

impl RawMessages for MongoSession {
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        self.link.exchange_raw(messages, receive)
    }

    fn flags(&mut self) -> u32 {
        0
    }

    fn database(&mut self) -> Option<&str> {
        Some(&self.shared.config.database)
    }
}

impl Bulk for MongoSession {
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        self.must_exist(&collection.name)?;
        let link = self.reader.as_mut().unwrap_or(&mut self.link);
        transfer::read(link, &self.shared.config, collection, fields, fetch, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.must_exist(&collection.name)?;
        transfer::write(&mut self.link, &self.shared.config, collection, rows)
    }

    without!(text, pages);
}

impl Drop for MongoSession {
    fn drop(&mut self) {
        if self.transaction.is_some() {
            let _ = self.end(false);
        }
        for link in [Some(&mut self.link), self.reader.as_mut()].into_iter().flatten() {
            self.shared.keep_session(link);
        }
    }
}

/// Whether a collection or a view of that name exists.
pub(super) fn exists(link: &mut Link, name: &str) -> Result<bool> {
    let answer = link.run(|out| {
        out.int("listCollections", 1).bool("nameOnly", true).begin("filter").text("name", name).end();
    })?;
    let found = answer.document("cursor").and_then(|cursor| cursor.array("firstBatch"));
    Ok(found.is_some_and(|batch| batch.values().next().is_some()))
}
