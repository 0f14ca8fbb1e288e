//! Commands of MongoDB: <https://www.mongodb.com/docs/manual/reference/command/>.

use super::commands::{self, Sent};
use super::compare::Varies;
use kurabe_capture::record::{Parameter, Request};
use kurabe_protocol::call::{Language, cursor};
use kurabe_protocol::mongodb::bson::{ARRAY, CODE, CODE_WITH_SCOPE, DOCUMENT, Element, element};
use kurabe_protocol::mongodb::command::Command;
use kurabe_wire::view::{COMPLETE, Exchange};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Fields of answers that depend on time, chance or the server.
const VOLATILE_FIELDS: [&str; 5] = ["$collStats", "$currentDate", "$indexStats", "$rand", "$sample"];
/// Fields that name another collection than the command.
const COLLECTIONS: [&str; 6] = ["$merge", "$out", "$unionWith", "coll", "from", "into"];
/// Fields of what waits for changes, or is part of a transaction.
const GOES_ON: [&str; 3] = ["autocommit", "awaitData", "tailable"];
/// The codes of a collection that is not there, and of a name that no collection can have.
pub(super) const MISSING: [&str; 2] = ["26", "73"];

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

    pub(super) fn get(&self, recorded: i64) -> i64 {
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
        command: &Command<'_>,
        place: usize,
        digest: &mut u64,
    ) -> Option<(bool, Option<u64>)> {
        let (mut goes_on, mut since) = (false, None);
        for cursor in command.cursors() {
            let opened = self.0.get_mut(&cursor)?;
            goes_on |= opened.place != place;
            opened.is_shared |= opened.place != place;
            since = Some(opened.at);
            if opened.is_shared && *digest as u32 == COMPLETE {
                // This connection has not seen all of its documents.
                *digest -= u64::from(COMPLETE);
            }
        }
        Some((goes_on, since))
    }
}

/// Fields that store what a command reads, or have the server execute a program.
const STORES: [&str; 5] = ["$out", "$merge", "$function", "$accumulator", "$where"];

/// Whether a field of a command has one of these names, at any depth.
fn has(command: &Command<'_>, names: &[&str]) -> bool {
    command.any(&mut |field| names.iter().any(|name| field.name == name.as_bytes()))
}

fn is(what: &str, command: &Command<'_>) -> bool {
    commands::is(Language::Documents, what, &command.name())
}

/// Why a command may change something.
pub(super) fn writes(command: &Command<'_>) -> Option<String> {
    let mut is_program = |field: &Element<'_>| [CODE, CODE_WITH_SCOPE].contains(&field.kind);
    let stores = has(command, &STORES) || command.any(&mut is_program);
    (!is("reads", command) || stores).then(|| format!("{} may change documents", command.name()))
}

/// Whether a command is not sent again. Of a transaction none is: on the server it belongs to a session, whose requests may
/// have come over several connections. Of what waits for changes, or writes into another database, neither.
pub(super) fn is_left_out(command: &Command<'_>) -> bool {
    !is("reads", command) && !is("writes", command)
        || command.collection().is_some_and(|name| name.starts_with("system."))
        || GOES_ON.iter().any(|name| command.field(name).is_some())
        || has(command, &["$changeStream"])
        || has(command, &["db"]) && has(command, &["$out", "$merge"])
}

/// Facts about a command for a replay, read once before.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) database: Option<String>,
    /// The collection of it, and others that an `aggregate` names.
    pub(super) collections: Vec<String>,
    /// Whether its answer depends on time, chance or the server.
    is_volatile: bool,
    /// Whether it asks for one document by its key, or for some of several.
    is_one: bool,
    is_part: bool,
}

impl Asked {
    /// About its memory.
    pub(super) fn size(&self) -> usize {
        let texts = self.collections.iter().chain(&self.database);
        size_of::<Self>() + texts.map(|text| size_of::<String>() + text.len()).sum::<usize>()
    }

    pub(super) fn read(command: &Command<'_>, parts: &[Parameter]) -> Self {
        let mut collections: Vec<String> = command.collection().into_iter().collect();
        if command.name() == "aggregate" {
            command.any(&mut |field| {
                let names = COLLECTIONS.iter().any(|name| field.name == name.as_bytes());
                collections.extend(field.text().filter(|_| names));
                false
            });
        }
        // At most one document has a key.
        let key = command.field("filter").and_then(|filter| element(filter.document()?, "_id"));
        Self {
            database: command.database(),
            collections,
            is_volatile: is("volatile", command) || has(command, &VOLATILE_FIELDS),
            is_one: key.is_some_and(|key| ![DOCUMENT, ARRAY].contains(&key.kind)),
            // Part of the documents, which have no order: those that a cursor gives at a time too.
            is_part: has(command, &["limit", "$limit", "skip", "$skip"])
                || command.name() == "getMore"
                || cursor(parts).is_some(),
        }
    }

    /// Why another answer may be right.
    pub(super) fn varies(&self, recorded: &Request, answer: &Exchange) -> Option<Varies> {
        if self.is_volatile {
            return Some(Varies::Volatile);
        }
        // The last answer of a cursor has the checksum of all documents: the server may not know yet that it is the last.
        let is_last = recorded.digest as u32 == COMPLETE && answer.digest as u32 == COMPLETE;
        let has_order = ![0, COMPLETE].contains(&(recorded.digest as u32)) || is_last;
        let same_rows = recorded.rows == answer.rows && recorded.digest >> 32 == answer.digest >> 32;
        let is_part = self.is_part && !self.is_one && !has_order && recorded.rows == answer.rows;
        let varies = if same_rows { Varies::Order } else { Varies::Part };
        (recorded.affected == answer.affected && (same_rows || is_part)).then_some(varies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::mongodb::command::plain;

    use kurabe_protocol::mongodb::bson::{BOOL, begin, end, push, push_text};

    /// The document of these fields: `{` or `[` after a name begins one within, `}` ends it, `$where` has a program, all others `true`.
    fn document(command: &str, collection: Option<&str>, fields: &str) -> Vec<u8> {
        let mut out = plain(command.as_bytes(), collection);
        out.pop();
        let mut open = vec![0];
        for word in fields.split_whitespace() {
            let (name, sign) = word.split_at(word.len() - 1);
            match sign {
                "{" => open.push(begin(&mut out, DOCUMENT, name.as_bytes())),
                "[" => open.push(begin(&mut out, ARRAY, name.as_bytes())),
                "}" => end(&mut out, open.pop().unwrap()),
                _ if word == "program" => push(&mut out, CODE, b"f", b"\x01\0\0\0\0"),
                _ => match word.split_once('=') {
                    Some((name, text)) => push_text(&mut out, name.as_bytes(), text.as_bytes()),
                    None => push(&mut out, BOOL, word.as_bytes(), &[1]),
                },
            }
        }
        end(&mut out, 0);
        out
    }

    #[test]
    fn commands_that_write_and_those_of_the_server_are_known() {
        for (command, collection, fields, writes, left_out) in [
            ("find", "items", "filter{ autocommit }", false, false),
            ("find", "items", "filter{ } tailable", false, true),
            ("find", "system.users", "filter{ }", false, true),
            ("aggregate", "items", "pipeline[ 0{ $match{ $out2 } } } cursor{ }", false, false),
            ("aggregate", "items", "pipeline[ 0{ $match{ } } 1{ $out } }", true, false),
            ("aggregate", "items", "pipeline[ 0{ $out{ db coll } } }", true, true),
            ("aggregate", "", "pipeline[ 0{ $changeStream{ } } }", false, true),
            ("insert", "items", "documents[ 0{ _id } }", true, false),
            ("insert", "items", "documents[ 0{ _id } } startTransaction autocommit", true, true),
            ("drop", "items", "", true, false),
            ("aggregate", "items", "pipeline[ 0{ $facet{ a[ 0{ $merge{ into } } } } } }", true, false),
            ("aggregate", "items", "pipeline[ 0{ $set{ a{ $function{ body } } } } }", true, false),
            ("find", "items", "filter{ $where }", true, false),
            ("find", "items", "filter{ a{ program } }", true, false),
            ("findAndModify", "items", "query{ } remove", true, false),
            ("mapReduce", "items", "map reduce out", true, false),
            ("explain", "", "aggregate pipeline[ 0{ $out } }", true, false),
            ("distinct", "items", "key", false, false),
            ("dropDatabase", "", "", true, true),
            ("createUser", "", "", true, true),
            ("ping", "", "", true, true),
            ("getMore", "items", "", false, false),
        ] {
            let collection = Some(collection).filter(|name| !name.is_empty());
            let document = document(command, collection, fields);
            let read = Command::read(&document).unwrap();
            let found = (super::writes(&read).is_some(), is_left_out(&read));
            assert_eq!(found, (writes, left_out), "{command} {fields}");
        }
    }

    #[test]
    fn collections_of_an_aggregate_are_those_that_its_stages_name() {
        let of = |command: &str, merge: &str| {
            let document = document(command, Some("items"), &format!("pipeline[ 0{{ $merge{merge} }} }}"));
            Asked::read(&Command::read(&document).unwrap(), &[]).collections
        };
        for (command, merge, expected) in [
            ("aggregate", "{ into{ coll=sums } }", &["items", "sums"][..]),
            ("aggregate", "=sums", &["items", "sums"]),
            ("find", "{ into=sums }", &["items"]),
        ] {
            assert_eq!(of(command, merge), expected, "{command} {merge}");
        }
    }
}
