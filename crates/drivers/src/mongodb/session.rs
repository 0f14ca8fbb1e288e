//! A session, which keeps prepared operations as commands without parameters.

use super::errors;
use super::facts::{Deployment, size};
use super::link::{Link, Shared};
use super::plan::Plan;
use super::transfer;
use crate::prelude::*;
use crate::slots::{Slots, check_parameters};
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, RawDocumentBuf, rawdoc};
use mongodb::options::SelectionCriteria;
use std::sync::Arc;
use std::time::Duration;

/// Bytes by which a command may exceed the largest document: `BSONObjMaxInternalSize` in MongoDB's source.
const COMMAND_ROOM: u64 = 16 * 1_024;

/// Whether MongoDB supports an operation in a deployment of this kind.
pub(super) fn supports(operation: &Operation, deployment: &Deployment) -> Support {
    match (operation, &deployment.no_transactions) {
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

pub(super) struct MongoSession {
    // Dropped before the link, whose runtime ends it.
    transaction: Option<ClientSession>,
    link: Link,
    slots: Slots<Plan>,
    deployment: Arc<Deployment>,
}

impl MongoSession {
    pub(super) fn open(shared: Arc<Shared>, timeout: Duration, deployment: Arc<Deployment>) -> Result<Self> {
        let link = Link::open(shared, timeout)?;
        Ok(Self { transaction: None, link, slots: Slots::default(), deployment })
    }

    /// Checks that the collection exists: MongoDB finds nothing in a missing one, and creates it at the first write.
    fn must_exist(&mut self, name: &str) -> Result<()> {
        if self.link.shared.seen().contains(name) {
            return Ok(());
        }
        if !exists(&mut self.link, name)? {
            return Err(Error::new(ErrorKind::NotFound, format!("mongodb: there is no collection {name}")));
        }
        self.link.shared.seen().insert(name.to_owned());
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        if self.transaction.is_some() {
            return Err(errors::server(0, "Transaction", "a transaction is already in progress"));
        }
        let client = self.link.shared.client.clone();
        let options = super::facts::transaction_options(&self.link.shared.config);
        let session = self.link.wait(async move {
            let mut session = client.start_session().await?;
            session.start_transaction().with_options(options).await?;
            Ok(session)
        })?;
        self.transaction = Some(session);
        Ok(())
    }

    fn end(&mut self, commit: bool) -> Result<()> {
        let Some(mut session) = self.transaction.take() else {
            return Err(errors::server(0, "Transaction", "no transaction is in progress"));
        };
        let result = self.link.wait(async {
            if commit { session.commit_transaction().await } else { session.abort_transaction().await }
        });
        self.link.shared.within(|| drop(session));
        result
    }

    /// Writes, and returns the number of matching documents.
    fn write(&mut self, command: RawDocumentBuf) -> Result<u64> {
        let database = self.link.shared.database.clone();
        let action = database.run_raw_command(command);
        let answer = match &mut self.transaction {
            None => self.link.wait(action.into_future()),
            Some(session) => self.link.wait(action.session(session).into_future()),
        }?;
        written(&answer)
    }

    /// Inserts several documents in the current transaction, or in a new one.
    fn insert_many(&mut self, command: RawDocumentBuf) -> Result<u64> {
        if self.transaction.is_some() {
            return self.write(command);
        }
        self.begin()?;
        match self.write(command) {
            Ok(count) => self.end(true).map(|()| count),
            Err(error) => {
                // The server aborts the transaction too; the first error is returned.
                let _ = self.end(false);
                Err(error)
            }
        }
    }

    fn read(&mut self, slot: &Prepared, command: RawDocumentBuf, out: &mut Reply) -> Result<()> {
        let Self { transaction, link, slots, .. } = self;
        let plan = slots.get(slot)?;
        let shared = Arc::clone(&link.shared);
        let action = shared.database.run_raw_cursor_command(command);
        // Kurabe's own error, which the crate's future cannot return.
        let mut wrong = None;
        let mut row = |document: &mongodb::bson::RawDocument| {
            wrong = plan.row(document, out).err();
            wrong.is_none()
        };
        match transaction {
            None => link.wait(async {
                // Reads in a transaction use the primary.
                let action = match &shared.config.preference {
                    None => action,
                    Some((_, preference)) => {
                        action.selection_criteria(SelectionCriteria::ReadPreference(preference.clone()))
                    }
                };
                let mut cursor = action.await?;
                while cursor.advance().await? && row(cursor.current()) {}
                Ok(())
            }),
            Some(session) => link.wait(async {
                let mut cursor = action.session(&mut *session).await?;
                while cursor.advance(session).await? && row(cursor.current()) {}
                Ok(())
            }),
        }?;
        wrong.map_or(Ok(()), Err)
    }
}

impl Session for MongoSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Support::No(reason) = supports(operation, &self.deployment) {
            return Err(Error::unsupported(format!("{}: {reason}", operation.name())));
        }
        if let Some(collection) = operation.collection() {
            self.must_exist(&collection.name)?;
        }
        Ok(self.slots.insert(Plan::new(operation, &self.link.shared.config)))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let plan = self.slots.get(prepared)?;
        check_parameters(plan.operation.name(), plan.operation.parameters(), parameters.len())?;
        let most = self.deployment.document_bytes.map(|most| most + COMMAND_ROOM);
        let in_transaction = self.transaction.is_some();
        let command = |in_transaction: bool| {
            let command = plan.command(parameters, in_transaction)?;
            let bytes = command.as_bytes().len();
            if most.is_none_or(|most| bytes as u64 <= most) {
                return Ok(command);
            }
            let message = format!("mongodb: a request of {bytes} bytes exceeds the server's limit");
            Err(Error::new(ErrorKind::Limit, message)
                .hint("a document holds at most 16 MB: use a smaller payload"))
        };
        let counts = matches!(plan.operation, Operation::Count { .. });
        match plan.operation {
            Operation::Begin => return self.begin(),
            Operation::Commit => return self.end(true),
            Operation::Rollback => return self.end(false),
            Operation::Ping => return self.link.run(rawdoc! { "ping": 1 }).map(drop),
            Operation::Get { .. }
            | Operation::FindEqual { .. }
            | Operation::FindRange { .. }
            | Operation::Count { .. } => {
                let command = command(in_transaction)?;
                self.read(prepared, command, out).inspect_err(|_| out.clear())?;
                if counts && out.rows() == 0 {
                    // `$group` returns no row for an empty collection.
                    out.push_int(0);
                    out.end_row();
                }
            }
            Operation::InsertMany { .. } => {
                let command = command(true)?;
                out.set_affected(self.insert_many(command)?);
            }
            _ => {
                let command = command(in_transaction)?;
                out.set_affected(self.write(command)?);
            }
        }
        Ok(())
    }

    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        self.must_exist(&collection.name)?;
        transfer::read(&mut self.link, collection, fields, fetch, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.must_exist(&collection.name)?;
        transfer::write(&mut self.link, collection, rows)
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        // The link closes its connection when it is dropped.
        self.link.close_checked()
    }
}

impl Drop for MongoSession {
    fn drop(&mut self) {
        if self.transaction.is_some() {
            let _ = self.end(false);
        }
    }
}

/// The number of documents that a write matched. Errors of single documents and of the write concern are in an answer
/// whose status is success.
pub(super) fn written(answer: &Document) -> Result<u64> {
    let first = answer.get_array("writeErrors").ok().and_then(|errors| errors.first()?.as_document());
    if let Some(error) = first.or_else(|| answer.get_document("writeConcernError").ok()) {
        let code = number(error, "code").unwrap_or(0) as i32;
        let message = error.get_str("errmsg").unwrap_or_default();
        return Err(errors::server(code, error.get_str("codeName").unwrap_or("Write"), message));
    }
    size(answer, "n")
        .ok_or_else(|| Error::new(ErrorKind::Protocol, "mongodb: the answer to a write has no count"))
}

/// Whether a collection or a view of that name exists.
pub(super) fn exists(link: &mut Link, name: &str) -> Result<bool> {
    let filter = rawdoc! { "listCollections": 1, "nameOnly": true, "filter": { "name": name } };
    let answer = link.run(filter)?;
    let found = answer.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    Ok(found.is_ok_and(|batch| !batch.is_empty()))
}

/// A whole number of any numeric type.
pub(super) fn number(document: &Document, name: &str) -> Option<i64> {
    document.get(name).and_then(whole)
}

/// As [`number`], of a value.
pub(super) fn whole(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        Bson::Double(n) => Some(*n as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn write_errors_in_an_answer_are_errors() {
        assert_eq!(written(&doc! { "n": 1, "nModified": 0, "ok": 1.0 }), Ok(1));
        let twice =
            doc! { "n": 0, "writeErrors": [{"index": 0, "code": 11_000, "errmsg": "E11000 duplicate key"}] };
        let error = written(&twice).unwrap_err();
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("11000")));
        let alone =
            doc! { "n": 1, "writeConcernError": {"code": 100, "codeName": "UnsatisfiableWriteConcern"} };
        assert!(written(&alone).unwrap_err().to_string().contains("members that w= requires"));
        assert!(written(&doc! { "ok": 1 }).is_err());
    }
}
