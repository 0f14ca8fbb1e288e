//! A CouchDB session: one connection, with one or two requests for each operation.

use super::document::{AllDocs, Found, Json, Object, parse, push_text, push_value};
use super::http::Client;
use super::table::Table;
use crate::prelude::*;
use crate::slots::{Slots, check_parameters, check_supported};
use std::sync::Arc;

/// Row limit of `_find`, larger than any answer. Its default is 25; this value is CouchDB's maximum limit of views.
const LIMIT: &str = "268435456";

/// Why a whole database is not read by one request.
pub(super) const ANSWERS_ARE_WHOLE: &str = "the client holds a JSON answer whole, so that one request for all rows would need memory for all of them; give --fetch \
     a number";

/// Why CouchDB does not support an operation; `None` if it does.
pub(super) fn unsupported(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::Begin | Operation::Commit | Operation::Rollback => {
            Some("CouchDB has no transactions: each document is written separately")
        }
        Operation::InsertMany { .. } => {
            Some("CouchDB stores each document of a request (_bulk_docs) separately, not atomically")
        }
        Operation::Update { collection, fields } => fields
            .iter()
            .any(|field| collection.key.contains(field))
            .then_some("a document's id cannot be changed"),
        Operation::FindEqual { collection, by, .. } => {
            if collection.key.starts_with(by) {
                None
            } else if by.iter().any(|field| collection.key.contains(field)) {
                Some(
                    "the fields of the key are in the document's id, which no index combines with other fields",
                )
            } else if collection.indexes.iter().any(|index| index.starts_with(by)) {
                None
            } else {
                Some("there is no index that begins with these fields")
            }
        }
        Operation::FindRange { collection, by, .. } => (collection.key.first() != Some(by)).then_some(
            "a CouchDB index orders text by language rules, not by bytes: ranges need the key's first field",
        ),
        Operation::Purge { .. } => Some("CouchDB does not remove documents by their time"),
        Operation::Page { .. } => Some("CouchDB has no application pages"),
        Operation::Raw { .. } => Some("CouchDB has no SQL for the statements of a workload"),
        Operation::Flow(_) => Some(NO_FLOW),
        Operation::Ping
        | Operation::Get { .. }
        | Operation::Insert { .. }
        | Operation::InsertEach { .. }
        | Operation::Put { .. }
        | Operation::Delete { .. }
        | Operation::Count { .. } => None,
    }
}

pub(super) struct CouchSession {
    client: Client,
    slots: Slots<Slot>,
    /// The body of a request.
    json: Vec<u8>,
}

struct Slot {
    operation: Operation,
    parameters: usize,
    /// `None` for `Ping`.
    table: Option<Table>,
}

impl CouchSession {
    pub(super) fn new(client: Client) -> Self {
        Self { client, slots: Slots::default(), json: Vec::new() }
    }
}

impl Session for CouchSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        check_supported(operation, unsupported(operation))?;
        let table = operation.collection().map(|collection| Table::new(collection, self.client.config()));
        let slot = Slot { operation: operation.clone(), parameters: operation.parameters(), table };
        Ok(self.slots.insert(slot))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let slot = self.slots.get(prepared)?;
        check_parameters(slot.operation.name(), slot.parameters, parameters.len())?;
        let Some(table) = &slot.table else {
            let status = self.client.get("/")?;
            return self.client.accept(status);
        };
        let mut work = Work { client: &mut self.client, table, json: &mut self.json };
        let done = match &slot.operation {
            Operation::Get { fields, .. } => work.get(parameters, fields, out),
            Operation::Insert { .. } => work.insert(parameters, out),
            Operation::InsertEach { rows, .. } => work.insert_each(*rows, parameters, out),
            Operation::Put { .. } => work.put(parameters, out),
            Operation::Update { fields, .. } => work.update(fields, parameters, out),
            Operation::Delete { .. } => work.delete(parameters, out),
            Operation::FindEqual { by, fields, collection } if collection.key.starts_with(by) => {
                work.range(by, parameters, fields, out)
            }
            Operation::FindRange { fields, .. } => work.between(parameters, fields, out),
            Operation::FindEqual { by, fields, .. } => work.find(by, parameters, fields, out),
            Operation::Count { .. } => work.count(out),
            // Never prepared.
            _ => Ok(()),
        };
        done.inspect_err(|_| out.clear())
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.client.check_rest()
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(&mut self.client)
    }

    without!(planner, cache, transactions);
}

impl Bulk for CouchSession {
    /// Reads pages of `_all_docs`, each from the last id on.
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        let Fetch::Rows(most) = fetch else { return Err(Error::unsupported(ANSWERS_ARE_WHOLE)) };
        let table = Table::new(collection, self.client.config());
        let (mut rows, mut round_trips, mut last) = (0, 0, None::<String>);
        let mut reply = Reply::new();
        loop {
            let found: AllDocs<'_> = self.client.read(&table.page(last.as_deref(), most))?;
            round_trips += 1;
            let listed = found.rows.len() as u64;
            // Indexes are documents too.
            for document in found.rows.iter().filter(|row| !row.id.starts_with("_design/")) {
                reply.clear();
                let Some(content) = &document.doc else { continue };
                content.reply(collection, fields, &mut reply)?;
                with_fields(fields.len(), |values| {
                    for (at, value) in values.iter_mut().enumerate() {
                        *value = reply.field(0, at).unwrap_or(Value::Null);
                    }
                    row(values)
                })?;
                rows += 1;
            }
            let Some(end) = found.rows.last().filter(|_| listed == most) else {
                return Ok(Moved { rows, round_trips: Some(round_trips) });
            };
            last = Some(end.id.clone().into_owned());
        }
    }

    without!(text, writes, pages);
}

/// An operation in progress.
pub(super) struct Work<'a> {
    pub(super) client: &'a mut Client,
    pub(super) table: &'a Table,
    pub(super) json: &'a mut Vec<u8>,
}

impl Work<'_> {
    fn get(&mut self, key: &[Value<'_>], fields: &[usize], out: &mut Reply) -> Result<()> {
        if self.read(&self.table.with_key(key)?)? {
            parse::<Object<'_>>(self.client.answer())?.reply(&self.table.collection, fields, out)?;
        }
        Ok(())
    }

    /// All documents whose ids begin with these fields, in order: a range of `_all_docs`.
    fn range(&mut self, by: &[usize], key: &[Value<'_>], fields: &[usize], out: &mut Reply) -> Result<()> {
        if key.contains(&Value::Null) {
            return Ok(());
        }
        let whole = by.len() == self.table.collection.key.len();
        self.listed(&self.table.range(key, whole)?, fields, out)
    }

    /// All documents whose ids are at least the first value and less than the second: a range of `_all_docs`.
    fn between(&mut self, values: &[Value<'_>], fields: &[usize], out: &mut Reply) -> Result<()> {
        if values.contains(&Value::Null) {
            return Ok(());
        }
        self.listed(&self.table.between(values)?, fields, out)
    }

    /// Reads the documents that `_all_docs` lists.
    fn listed(&mut self, path: &str, fields: &[usize], out: &mut Reply) -> Result<()> {
        let found: AllDocs<'_> = self.client.read(path)?;
        let documents = found.rows.iter().filter_map(|row| row.doc.as_ref());
        documents.into_iter().try_for_each(|document| document.reply(&self.table.collection, fields, out))
    }

    /// All documents that `_find` returns through an index. A CouchDB index compares text by language rules; documents
    /// that are not byte-for-byte equal are filtered out here.
    fn find(&mut self, by: &[usize], wanted: &[Value<'_>], fields: &[usize], out: &mut Reply) -> Result<()> {
        if wanted.contains(&Value::Null) {
            return Ok(());
        }
        let all = &self.table.collection.fields;
        let json = &mut *self.json;
        json.clear();
        json.extend_from_slice(b"{\"selector\":{");
        let mut compared = Vec::with_capacity(by.len());
        for (n, (field, value)) in by.iter().zip(wanted).enumerate() {
            if n > 0 {
                json.push(b',');
            }
            push_text(json, all[*field].name);
            json.extend_from_slice(b":{\"$eq\":");
            let start = json.len();
            push_value(json, all[*field].kind, value)?;
            compared.push((all[*field].name, start..json.len()));
            json.push(b'}');
        }
        json.extend_from_slice(b"},\"limit\":");
        json.extend_from_slice(LIMIT.as_bytes());
        json.push(b'}');
        let status = self.client.post(&format!("{}/_find", self.table.path), self.json)?;
        self.client.accept(status)?;
        let mut found: Found<'_> = parse(self.client.answer())?;
        // `_find` returns the order of the whole index, whose other fields come before the id.
        found.docs.sort_by(|a, b| a.text("_id").cmp(&b.text("_id")));
        let compared = compared.into_iter().map(|(name, value)| Ok((name, parse(&self.json[value])?)));
        let compared: Vec<(&str, Json<'_>)> = compared.collect::<Result<_>>()?;
        for document in &found.docs {
            if compared.iter().all(|(name, value)| document.get(name) == Some(value)) {
                document.reply(&self.table.collection, fields, out)?;
            }
        }
        Ok(())
    }

    /// The server's count of documents, without the design documents of its indexes.
    fn count(&mut self, out: &mut Reply) -> Result<()> {
        let all = self.client.read::<Object<'_>>(&self.table.path)?.number("doc_count");
        let all = all.ok_or_else(|| Error::mismatch("the server's count is not a number"))?;
        let designs = if self.table.collection.indexes.is_empty() { 0 } else { self.designs()? };
        out.push_int(all - designs);
        out.end_row();
        Ok(())
    }

    fn designs(&mut self) -> Result<i64> {
        let path = format!("{}/_all_docs?startkey=%22_design%2F%22&endkey=%22_design0%22", self.table.path);
        let designs: AllDocs<'_> = self.client.read(&path)?;
        Ok(designs.rows.iter().filter(|row| row.id.starts_with("_design/")).count() as i64)
    }
}
