//! Commands of MongoDB: <https://www.mongodb.com/docs/manual/reference/command/>.

use super::commands;
use super::commands::Sent;
use super::metrics::Varies;
use kurabe_capture::record::Request;
use kurabe_core::{Error, Result};
use kurabe_wire::mongodb::{self, QUIET, cursor};
use kurabe_wire::view::{COMPLETE, Exchange};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Its name in the table of commands.
const PROTOCOL: &str = "mongodb";
/// Fields of answers that depend on time, chance or the server.
const VOLATILE_FIELDS: [&str; 5] = ["$collStats", "$currentDate", "$indexStats", "$rand", "$sample"];
/// Fields that name another collection than the command.
const COLLECTIONS: [&str; 5] = ["$out", "$unionWith", "coll", "from", "into"];
/// The flag of a message that no answer follows, and its place.
const NO_ANSWER: (usize, u8) = (16, 2);
/// The codes of a collection that is not there, and of a name that no collection can have.
const MISSING: [&str; 2] = ["26", "73"];

/// The cursors of a replay, by the numbers that were recorded.
#[derive(Debug, Default)]
pub(super) struct Cursors(Mutex<HashMap<i64, i64>>);

impl Cursors {
    /// Notes the cursor that an answer opened, in place of the recorded one.
    pub(super) fn opened(&self, sent: &Sent, answer: &Exchange) {
        if let (Some(recorded), Some(own)) = (cursor(&sent.request.parameters), cursor(&answer.parameters)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(recorded, own);
        }
    }

    fn get(&self, recorded: i64) -> i64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&recorded).copied().unwrap_or(recorded)
    }
}

/// The cursors that were recorded.
#[derive(Default)]
pub(super) struct Recorded(HashMap<i64, Opened>);

/// By which connection a cursor was opened, and when; and whether another one went on with it.
struct Opened {
    place: usize,
    at: u64,
    is_shared: bool,
}

impl Recorded {
    /// Notes the cursor that a request opened.
    pub(super) fn opened(&mut self, request: &Request, place: usize) {
        let opened = Opened { place, at: request.at, is_shared: false };
        self.0.extend(cursor(&request.parameters).map(|cursor| (cursor, opened)));
    }

    /// Whether a request goes on with what another connection opened, and when that was; `None` if no request opened it.
    pub(super) fn used(
        &mut self,
        text: &str,
        request: &mut Request,
        place: usize,
    ) -> Option<(bool, Option<u64>)> {
        let (mut goes_on, mut since) = (false, None);
        for cursor in mongodb::cursors(text, &request.parameters) {
            let opened = self.0.get_mut(&cursor)?;
            goes_on |= opened.place != place;
            opened.is_shared |= opened.place != place;
            since = Some(opened.at);
            if opened.is_shared && request.digest as u32 == COMPLETE {
                // This connection has not seen all of its documents.
                request.digest -= u64::from(COMPLETE);
            }
        }
        Some((goes_on, since))
    }
}

/// Fields that store what a command reads, or have the server execute a program.
const STORES: [&str; 5] = ["$out", "$merge", "$function", "$accumulator", "$where"];
/// Types of values that have fields themselves, or are a program: documents, lists, JavaScript, and that with variables.
const HIDING: [u32; 4] = [3, 4, 13, 15];

/// Why a command may change something.
pub(super) fn writes(text: &str) -> Option<String> {
    let (command, _, fields) = mongodb::fields(text);
    let stores = fields.iter().any(|field| STORES.contains(&field.name.as_ref()));
    (!commands::is(PROTOCOL, "reads", command) || stores).then(|| format!("{command} may change documents"))
}

/// Why a request may change something, by its values: those of a recorder have no fields, which are in the text.
pub(super) fn hides(request: &Request) -> Option<String> {
    let found = request.parameters.iter().any(|one| HIDING.contains(&one.kind));
    found.then(|| "a value of it is a document or a program".to_owned())
}

/// Whether a command is not sent again. Of a transaction no request is: on the server it belongs to a session, whose requests may
/// have come over several connections. Of what waits for changes, or writes into another database, neither.
pub(super) fn is_left_out(text: &str) -> bool {
    let (command, collection, fields) = mongodb::fields(text);
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    let is_own = |name: &str| ["autocommit", "awaitData", "tailable"].contains(&name);
    !["reads", "writes"].iter().any(|what| commands::is(PROTOCOL, what, command))
        || collection.is_some_and(|name| name.starts_with("system."))
        || fields.iter().any(|field| field.depth == 1 && is_own(&field.name))
        || has("$changeStream")
        || has("db") && (has("$out") || has("$merge"))
}

/// Whether a request has no answer.
pub(super) fn is_quiet(text: &str) -> bool {
    text.ends_with(QUIET)
}

/// The collection of a command.
pub(super) fn tables(text: &str) -> Vec<String> {
    mongodb::fields(text).1.map(std::borrow::Cow::into_owned).into_iter().collect()
}

/// Other collections, which are among the values of an `aggregate`.
pub(super) fn others(text: &str, sent: &Sent) -> Vec<String> {
    let (command, _, fields) = mongodb::fields(text);
    let values = fields
        .iter()
        .filter(|_| command == "aggregate")
        .filter(|field| COLLECTIONS.contains(&field.name.as_ref()));
    values
        .filter_map(|field| sent.request.parameters.get(field.value?)?.bytes())
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect()
}

/// Why another answer may be right.
pub(super) fn varies(text: &str, recorded: &Request, answer: &Exchange) -> Option<Varies> {
    let (command, _, fields) = mongodb::fields(text);
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    if commands::is(PROTOCOL, "volatile", command) || VOLATILE_FIELDS.iter().any(|name| has(name)) {
        return Some(Varies::Volatile);
    }
    // At most one document has a key.
    let mut parents = fields.iter().scan("", |parent, field| {
        if field.depth == 1 {
            *parent = &field.name;
        }
        Some((*parent, field))
    });
    let is_one = parents.any(|(parent, field)| {
        parent == "filter" && field.depth == 2 && field.name == "_id" && field.value.is_some()
    });
    // Part of the documents, which have no order: those that a cursor gives at a time too.
    let is_part = ["limit", "$limit", "skip", "$skip"].iter().any(|name| has(name))
        || command == "getMore"
        || cursor(&recorded.parameters).is_some();
    // The last answer of a cursor has the checksum of all documents: the server may not know yet that it is the last.
    let is_last = recorded.digest as u32 == COMPLETE && answer.digest as u32 == COMPLETE;
    let has_order = ![0, COMPLETE].contains(&(recorded.digest as u32)) || is_last;
    let same_rows = recorded.rows == answer.rows && recorded.digest >> 32 == answer.digest >> 32;
    let may_differ = same_rows || is_part && !is_one && !has_order && recorded.rows == answer.rows;
    let varies = if same_rows { Varies::Order } else { Varies::Part };
    (recorded.affected == answer.affected && may_differ).then_some(varies)
}

/// Appends a request with this number.
pub(super) fn push(
    out: &mut Vec<u8>,
    text: &str,
    sent: &Sent,
    number: u32,
    database: &str,
    cursors: &Cursors,
) -> Result<()> {
    let own = text.strip_suffix(QUIET).unwrap_or(text);
    let message =
        mongodb::message(own, &sent.request.parameters, number, database, &|cursor| cursors.get(cursor));
    let mut message = message.ok_or_else(|| {
        Error::usage(format!("the values of a request do not fit its text in the capture: {text}"))
    })?;
    if is_quiet(text)
        && let Some(flags) = message.get_mut(NO_ANSWER.0)
    {
        *flags |= NO_ANSWER.1;
    }
    out.extend(message);
    Ok(())
}

/// Appends a command without values.
pub(super) fn push_plain(out: &mut Vec<u8>, text: &str, number: u32, database: &str) {
    out.extend(mongodb::message(text, &[], number, database, &|cursor| cursor).unwrap_or_default());
}

/// Whether the error of a removal is that there was nothing.
pub(super) fn is_missing(code: &str) -> bool {
    MISSING.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_write_and_those_of_the_server_are_known() {
        for (text, writes, left_out) in [
            (r#"find items {"filter": {"autocommit": ?}}"#, false, false),
            (r#"find items {"filter": {}, "tailable": ?}"#, false, true),
            (r#"find system.users {"filter": {}}"#, false, true),
            (r#"aggregate items {"pipeline": [{"$match": {"$out2": ?}}], "cursor": {}}"#, false, false),
            (r#"aggregate items {"pipeline": [{"$match": {}}, {"$out": ?}], "cursor": {}}"#, true, false),
            (r#"aggregate items {"pipeline": [{"$out": {"db": ?, "coll": ?}}]}"#, true, true),
            (r#"aggregate {"pipeline": [{"$changeStream": {}}]}"#, false, true),
            (r#"insert items {"documents": [{"_id": ?}]} noreply"#, true, false),
            (
                r#"insert items {"documents": [{"_id": ?}], "startTransaction": ?, "autocommit": ?}"#,
                true,
                true,
            ),
            ("drop items", true, false),
            (r#"aggregate items {"pipeline": [{"$facet": {"a": [{"$merge": {"into": ?}}]}}]}"#, true, false),
            (r#"aggregate items {"pipeline": [{"$set": {"a": {"$function": {"body": ?}}}}]}"#, true, false),
            (r#"find items {"filter": {"$where": ?}}"#, true, false),
            (r#"findAndModify items {"query": {}, "remove": ?}"#, true, false),
            (r#"mapReduce items {"map": ?, "reduce": ?, "out": ?}"#, true, false),
            (r#"explain of {"aggregate": ?, "pipeline": [{"$out": ?}]}"#, true, false),
            (r#"distinct items {"key": ?}"#, false, false),
            ("dropDatabase", true, true),
            ("createUser", true, true),
            ("ping", true, true),
            ("getMore items ?", false, false),
        ] {
            assert_eq!((super::writes(text).is_some(), is_left_out(text)), (writes, left_out), "{text}");
        }
    }
}
