//! Operations as commands. A row is a document with the fields' names; a key of one field is `_id` itself. A key of
//! several fields consists of ordinary fields with a unique index, beside an `_id` that the client generates, as
//! applications do. The same index then finds rows by a part of the key, which an embedded document as `_id` would not
//! allow.
//!
//! Commands: <https://www.mongodb.com/docs/manual/reference/command/>.

use super::bson::{Element, Raw};
use super::concerns::{Acknowledged, WriteConcern};
use super::config::Config;
use super::frame::HEAD;
use super::writer::Writer;
use crate::prelude::*;
use ring::rand::{SystemRandom, generate};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Batch size of an answer, in documents. The default is 101, and each further batch is a round trip.
pub(super) const BATCH: i32 = 100_000;

/// A prepared operation: its command without the parameters.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) operation: Operation,
    /// The names of the collection's fields in a document.
    names: Vec<&'static str>,
    /// The command up to its parameters.
    pub(super) start: Writer,
    /// The concern of a request outside a transaction; those of a transaction are set when it starts.
    pub(super) concern: Vec<u8>,
    pub(super) is_read: bool,
}

/// The name of a field in a document.
pub(super) fn name(collection: &Collection, field: usize) -> &'static str {
    if collection.key == [field] {
        "_id"
    } else {
        collection.fields.get(field).map_or("", |field| field.name)
    }
}

impl Plan {
    pub(super) fn new(operation: &Operation, config: &Config) -> Self {
        let names = operation
            .collection()
            .map(|c| (0..c.fields.len()).map(|field| name(c, field)).collect())
            .unwrap_or_default();
        let is_read = matches!(
            operation,
            Operation::Get { .. }
                | Operation::FindEqual { .. }
                | Operation::FindRange { .. }
                | Operation::Count { .. }
        );
        let concern = Writer::fields(|out| match &config.reads {
            Some(level) if is_read => drop(out.begin("readConcern").text("level", level).end()),
            None if is_read => {}
            _ => write_concern(out, &config.writes),
        });
        Self { operation: operation.clone(), names, start: begin(operation), concern, is_read }
    }

    /// Writes the command with its parameters, without its concern and what all commands end with.
    #[inline]
    pub(super) fn write(&self, out: &mut Writer, parameters: &[Value<'_>]) -> Result<()> {
        out.clone_from(&self.start);
        if let Some(collection) = self.operation.collection() {
            self.fill(out, collection, parameters)?;
        }
        out.close_nested();
        Ok(())
    }

    fn fill(&self, out: &mut Writer, collection: &Collection, parameters: &[Value<'_>]) -> Result<()> {
        // MongoDB would accept a null, but a key must have a value.
        let key = |fields: &[Value<'_>]| {
            if !collection.key.iter().any(|at| fields.get(*at) == Some(&Value::Null)) {
                return Ok(());
            }
            let message = format!("{}: null in the key", collection.name);
            Err(Error::new(ErrorKind::Server, message).code("NULL_KEY"))
        };
        match &self.operation {
            Operation::Get { .. } | Operation::Delete { .. } => self.query(out, &collection.key, parameters),
            Operation::FindEqual { by, .. } => self.query(out, by, parameters),
            Operation::FindRange { by, .. } => {
                out.begin(self.names[*by]);
                for (sign, value) in ["$gte", "$lt"].into_iter().zip(parameters) {
                    out.value(sign, value);
                }
                out.end();
            }
            Operation::Insert { .. } | Operation::InsertMany { .. } | Operation::InsertEach { .. } => {
                for (row, fields) in parameters.chunks(self.names.len().max(1)).enumerate() {
                    key(fields)?;
                    self.document(out, &row.to_string(), fields, true);
                }
            }
            Operation::Put { .. } => {
                key(parameters)?;
                out.bool("upsert", true).begin("q");
                for at in &collection.key {
                    out.value(self.names[*at], &parameters[*at]);
                }
                out.end();
                self.document(out, "u", parameters, false);
            }
            Operation::Update { fields, .. } => {
                let (values, key) = parameters.split_at(fields.len());
                out.begin("q");
                self.query(out, &collection.key, key);
                out.end().begin("u").begin("$set");
                self.query(out, fields, values);
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes fields and values into the open document.
    fn query(&self, out: &mut Writer, fields: &[usize], values: &[Value<'_>]) {
        for (field, value) in fields.iter().zip(values) {
            out.value(self.names[*field], value);
        }
    }

    fn document(&self, out: &mut Writer, place: &str, values: &[Value<'_>], fresh: bool) {
        out.begin(place);
        // A replacement document keeps the `_id` of the original.
        if fresh && !self.names.contains(&"_id") {
            out.object_id("_id", object_id());
        }
        for (name, value) in self.names.iter().zip(values) {
            out.value(name, value);
        }
        out.end();
    }

    /// Adds a row to an insert, which has so many already. Returns the length of the command so far, in bytes.
    pub(super) fn add_row(&self, out: &mut Writer, rows: u64, values: &[Value<'_>]) -> usize {
        self.document(out, &rows.to_string(), values, true);
        out.length()
    }

    /// Appends a document of the answer to the reply as a row.
    pub(super) fn row(&self, document: Raw<'_>, out: &mut Reply) -> Result<()> {
        let (Operation::Get { collection, fields }
        | Operation::FindEqual { collection, fields, .. }
        | Operation::FindRange { collection, fields, .. }) = &self.operation
        else {
            // The result of a count.
            let count = document.get("n")?.and_then(|count| count.whole());
            out.push_int(count.ok_or_else(|| foreign("n"))?);
            out.end_row();
            return Ok(());
        };
        for field in fields {
            let name = self.names[*field];
            match (document.get(name)?, collection.fields[*field].kind) {
                (None | Some(Element::Null), _) => out.push_null(),
                (Some(Element::Binary(bytes) | Element::Text(bytes)), _) => out.push_bytes(bytes),
                (Some(Element::DateTime(at)), _) => out.push_time(at.saturating_mul(1_000)),
                (Some(value), kind) => {
                    let number = value.whole().ok_or_else(|| foreign(name))?;
                    if kind == FieldType::Timestamp { out.push_time(number) } else { out.push_int(number) }
                }
            }
        }
        out.end_row();
        Ok(())
    }
}

pub(super) fn foreign(name: &str) -> Error {
    Error::mismatch(format!("mongodb: field '{name}' holds a value of a type that Kurabe never wrote"))
}

/// A new identifier: seconds since 1970, five random bytes of this process, and a count
/// (<https://www.mongodb.com/docs/manual/reference/bson-types/#objectid>).
fn object_id() -> [u8; 12] {
    static PROCESS: OnceLock<[u8; 5]> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let random = || generate(&SystemRandom::new()).map_or([0; 5], ring::rand::Random::expose);
    let mut id = [0; 12];
    id[..4].copy_from_slice(&(crate::ownership::now().as_secs() as u32).to_be_bytes());
    id[4..9].copy_from_slice(PROCESS.get_or_init(random));
    id[9..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes()[1..]);
    id
}

/// Writes which fields are read.
pub(super) fn projection(out: &mut Writer, collection: &Collection, fields: &[usize]) {
    out.begin("projection");
    for field in fields {
        out.int(name(collection, *field), 1);
    }
    if !fields.iter().any(|field| name(collection, *field) == "_id") {
        out.int("_id", 0);
    }
    out.end();
}

/// The command up to its parameters, with the document or array that holds them open.
fn begin(operation: &Operation) -> Writer {
    let mut out = Writer::default();
    out.restart(HEAD);
    // Writes the projection and the sort order, and opens the filter.
    let find = |out: &mut Writer, collection: &Collection, fields: &[usize], order: &[usize]| {
        projection(out, collection, fields);
        if !order.is_empty() {
            out.begin("sort");
            for field in order {
                out.int(name(collection, *field), 1);
            }
            out.end();
        }
        out.begin("filter");
    };
    match operation {
        // The last three are never prepared.
        Operation::Ping
        | Operation::Begin
        | Operation::Commit
        | Operation::Rollback
        | Operation::Purge { .. }
        | Operation::Page { .. }
        | Operation::Raw { .. }
        | Operation::Flow(_) => {
            out.int("ping", 1);
        }
        Operation::Get { collection, fields } => {
            out.text("find", &collection.name).int("limit", 1).bool("singleBatch", true);
            find(&mut out, collection, fields, &[]);
        }
        Operation::FindEqual { collection, fields, .. } => {
            out.text("find", &collection.name).int("batchSize", BATCH);
            find(&mut out, collection, fields, &collection.key);
        }
        Operation::FindRange { collection, by, fields } => {
            out.text("find", &collection.name).int("batchSize", BATCH);
            let order = [by].into_iter().chain(collection.key.iter().filter(|field| *field != by));
            find(&mut out, collection, fields, &order.copied().collect::<Vec<_>>());
        }
        Operation::Insert { collection }
        | Operation::InsertMany { collection, .. }
        | Operation::InsertEach { collection, .. } => {
            out.text("insert", &collection.name).bool("ordered", true).begin_array("documents");
        }
        Operation::Put { collection } | Operation::Update { collection, .. } => {
            out.text("update", &collection.name).begin_array("updates").begin("0");
        }
        Operation::Delete { collection } => {
            out.text("delete", &collection.name).begin_array("deletes").begin("0").int("limit", 1).begin("q");
        }
        Operation::Count { collection } => {
            // Counts the documents: `count` uses metadata that may be wrong after a crash.
            out.text("aggregate", &collection.name).begin("cursor").end();
            out.begin_array("pipeline").begin("0").begin("$group").null("_id").begin("n").int("$sum", 1);
            out.end().end().end().end();
        }
    }
    out
}

pub(super) fn write_concern(out: &mut Writer, writes: &WriteConcern) {
    if *writes == WriteConcern::default() {
        return;
    }
    out.begin("writeConcern");
    match &writes.w {
        None => {}
        Some(Acknowledged::By(n)) => drop(out.int("w", *n as i32)),
        Some(Acknowledged::As(name)) => drop(out.text("w", name)),
        Some(Acknowledged::Majority) => drop(out.text("w", "majority")),
    }
    if let Some(journal) = writes.journal {
        out.bool("j", journal);
    }
    if let Some(timeout) = writes.timeout {
        out.long("wtimeout", timeout as i64);
    }
    out.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};
    use kurabe_core::collection::Field;
    use kurabe_core::target::TargetUrl;
    use std::sync::Arc;

    fn config(options: &str) -> Config {
        Config::from_url(&TargetUrl::parse(&format!("mongodb://h/db{options}")).unwrap()).unwrap()
    }

    fn collection(key: Vec<usize>) -> Arc<Collection> {
        let field = |name, kind| Field { name, kind };
        let fields = vec![
            field("id", FieldType::Text { max: 9 }),
            field("sub", FieldType::Int),
            field("data", FieldType::LongText),
        ];
        Arc::new(Collection::new("kurabe_a", fields, key))
    }

    fn command(
        operation: &Operation,
        options: &str,
        parameters: &[Value<'_>],
        transaction: bool,
    ) -> Document {
        let plan = Plan::new(operation, &config(options));
        let mut out = Writer::default();
        plan.write(&mut out, parameters).unwrap();
        if !transaction {
            out.append(&plan.concern);
        }
        Document::from_reader(&out.finish().unwrap()[HEAD..]).unwrap()
    }

    const ROW: [Value<'static>; 3] = [Value::Text("a"), Value::Int(1), Value::Text("x")];

    #[test]
    fn key_of_one_field_is_the_document_id() {
        let c = collection(vec![0]);
        let get = Operation::Get { collection: c.clone(), fields: vec![2] };
        let expected = doc! {
            "find": "kurabe_a", "limit": 1, "singleBatch": true, "projection": {"data": 1, "_id": 0},
            "filter": {"_id": "a"},
        };
        assert_eq!(command(&get, "", &ROW[..1], false), expected);
        let put = Operation::Put { collection: c };
        let expected = doc! {
            "update": "kurabe_a",
            "updates": [{"upsert": true, "q": {"_id": "a"}, "u": {"_id": "a", "sub": 1_i64, "data": "x"}}],
        };
        assert_eq!(command(&put, "", &ROW, false), expected);
    }

    #[test]
    fn key_of_several_fields_has_a_separate_id() {
        let c = collection(vec![0, 1]);
        let find = Operation::FindEqual { collection: c.clone(), by: vec![0], fields: vec![1, 2] };
        let expected = doc! {
            "find": "kurabe_a", "batchSize": BATCH, "projection": {"sub": 1, "data": 1, "_id": 0},
            "sort": {"id": 1, "sub": 1}, "filter": {"id": "a"},
        };
        assert_eq!(command(&find, "", &ROW[..1], false), expected);
        let range = Operation::FindRange { collection: c.clone(), by: 0, fields: vec![0, 2] };
        let expected = doc! {
            "find": "kurabe_a", "batchSize": BATCH, "projection": {"id": 1, "data": 1, "_id": 0},
            "sort": {"id": 1, "sub": 1}, "filter": {"id": {"$gte": "a", "$lt": "b"}},
        };
        assert_eq!(command(&range, "", &[Value::Text("a"), Value::Text("b")], false), expected);
        let insert = command(&Operation::Insert { collection: c.clone() }, "", &ROW, false);
        let document = insert.get_array("documents").unwrap()[0].as_document().unwrap();
        assert!(
            document.get_object_id("_id").is_ok() && document.get_str("id").unwrap() == "a",
            "{document}"
        );
        let update = Operation::Update { collection: c, fields: vec![2] };
        let parameters = [Value::Text("y"), Value::Text("a"), Value::Int(1)];
        let expected = doc! {
            "update": "kurabe_a", "updates": [{"q": {"id": "a", "sub": 1_i64}, "u": {"$set": {"data": "y"}}}],
        };
        assert_eq!(command(&update, "", &parameters, false), expected);
    }

    #[test]
    fn requests_outside_transactions_contain_the_concerns_of_the_url() {
        let options = "?w=majority&journal=true&wTimeoutMS=500&readConcernLevel=local";
        let delete = Operation::Delete { collection: collection(vec![0]) };
        let concern = doc! { "w": "majority", "j": true, "wtimeout": 500_i64 };
        assert_eq!(
            command(&delete, options, &ROW[..1], false).get_document("writeConcern").unwrap(),
            &concern
        );
        assert!(!command(&delete, options, &ROW[..1], true).contains_key("writeConcern"));
        assert!(!command(&delete, "", &ROW[..1], false).contains_key("writeConcern"));
        let count = Operation::Count { collection: collection(vec![0]) };
        let command = command(&count, options, &[], false);
        assert_eq!(command.get_document("readConcern").unwrap(), &doc! { "level": "local" });
        assert_eq!(command.get_array("pipeline").unwrap().len(), 1);
    }
}
