//! What an operation becomes: which command, where the key's and the value's fields stand among the parameters, and
//! those parts of the request that are always the same.

use super::protocol::{push_count, push_word};
use super::value::Form;
use crate::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is done, in Redis's kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Ping,
    /// One value.
    Read,
    /// One or several rows that must not be there.
    Add,
    /// One row, there or not.
    Put,
    /// One row that must be there.
    Change,
    Remove,
    /// All rows of a hash.
    Group,
}

/// Where a field of a row of a hash comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The name within the hash: the key's last field.
    Name,
    /// A field that is not in the key, by its number among those.
    Rest(usize),
}

/// A prepared operation.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) verb: Verb,
    pub(super) operation: &'static str,
    pub(super) collection: String,
    /// Set once the collection is no more.
    pub(super) gone: Arc<AtomicBool>,
    /// Parameters of one row, and how many rows there are.
    pub(super) width: usize,
    pub(super) rows: usize,
    /// Where among a row's parameters the fields of the Redis key stand, …
    pub(super) key: Vec<usize>,
    /// … the field that names it within a hash, …
    pub(super) name: Option<usize>,
    /// … and those of its value.
    pub(super) rest: Vec<usize>,
    pub(super) form: Form,
    /// For [`Verb::Read`]: which fields of the value come back.
    pub(super) wanted: Vec<usize>,
    /// For [`Verb::Group`]: what comes back, and the type of the names.
    pub(super) columns: Vec<Column>,
    pub(super) name_kind: FieldType,
    /// What the request begins and ends with.
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    /// Whether it is done by the script: see [`super::script`].
    pub(super) scripted: bool,
}

/// Why Redis has not an operation; `None` where it has it.
pub(super) fn unsupported(operation: &Operation, ttl: Option<u32>) -> Option<&'static str> {
    match operation {
        Operation::Ping | Operation::Insert { .. } | Operation::Put { .. } | Operation::Delete { .. } => None,
        Operation::Get { collection, fields } => not_stored(collection, fields),
        Operation::FindEqual { collection, by, fields } => {
            let key = &collection.key;
            if by == key {
                return not_stored(collection, fields);
            }
            let Some((name, first)) = key.split_last() else { return Some("the collection has no key") };
            if first.is_empty() || by != first {
                return Some(
                    "Redis finds rows by their whole key, or all rows of one hash by all of the key but its last field",
                );
            }
            fields
                .iter()
                .any(|field| key.contains(field) && field != name)
                .then_some("a row of a hash comes back without the hash's own key")
        }
        Operation::FindRange { .. } => {
            Some("Redis keeps its keys in no order: there is no range of them to search")
        }
        Operation::Update { collection, fields } => (*fields != collection.rest()).then_some(
            "a row is one value, which is replaced as a whole: some of its fields cannot be changed",
        ),
        Operation::InsertMany { collection, .. } => (collection.key.len() == 1 && ttl.is_some())
            .then_some("MSETNX, which stores several values, all or none, cannot let them expire (ttl=)"),
        Operation::InsertEach { .. } => Some(
            "Redis has no request that stores several values each on its own, and needs none: it takes requests sent together",
        ),
        Operation::Page { .. } => Some("Redis has no pages"),
        Operation::Raw { .. } => Some("Redis has no SQL for the statements of a workload"),
        Operation::Count { .. } => Some("Redis counts all keys of a database, not those of one collection"),
        Operation::Begin | Operation::Commit | Operation::Rollback => Some(
            "MULTI only queues commands until EXEC: nothing can be read within it, and nothing rolled back",
        ),
    }
}

fn not_stored(collection: &Collection, fields: &[usize]) -> Option<&'static str> {
    (!collection.in_rest(fields)).then_some("Redis gives a value back as it was stored, without its key")
}

impl Plan {
    /// Plans an operation that is supported.
    pub(super) fn new(operation: &Operation, ttl: Option<u32>, gone: Arc<AtomicBool>) -> Self {
        let mut plan = Self {
            verb: Verb::Ping,
            operation: operation.name(),
            collection: String::new(),
            gone,
            width: operation.parameters(),
            rows: 0,
            key: Vec::new(),
            name: None,
            rest: Vec::new(),
            form: Form::Packed(0),
            wanted: Vec::new(),
            columns: Vec::new(),
            name_kind: FieldType::Int,
            head: Vec::new(),
            tail: Vec::new(),
            scripted: false,
        };
        match operation.collection() {
            Some(collection) => plan.on(collection, operation, ttl),
            None => plan.say(&["PING"], 0, &[]),
        }
        plan
    }

    fn on(&mut self, collection: &Collection, operation: &Operation, ttl: Option<u32>) {
        let stored = collection.rest();
        self.collection.clone_from(&collection.name);
        self.rows = 1;
        self.form = match stored.as_slice() {
            [one] => Form::One(collection.fields[*one].kind),
            many => Form::Packed(many.len()),
        };
        let number = |fields: &[usize]| {
            fields.iter().filter_map(|f| stored.iter().position(|stored| stored == f)).collect::<Vec<_>>()
        };
        // By their parameters: all fields in their order, the key's fields alone, or new values and then the key.
        let alone: Vec<usize> = (0..collection.key.len()).collect();
        let mut key = alone.clone();
        let mut many = false;
        match operation {
            Operation::Insert { .. } | Operation::Put { .. } => {
                self.verb = if matches!(operation, Operation::Put { .. }) { Verb::Put } else { Verb::Add };
                (key, self.rest) = (collection.key.clone(), stored);
            }
            Operation::InsertMany { rows, .. } => {
                (self.verb, self.rows, self.width, many) = (Verb::Add, *rows, collection.fields.len(), true);
                (key, self.rest) = (collection.key.clone(), stored);
            }
            Operation::Update { fields, .. } => {
                self.verb = Verb::Change;
                key = alone.iter().map(|position| position + fields.len()).collect();
                self.rest = (0..fields.len()).collect();
            }
            Operation::Delete { .. } => self.verb = Verb::Remove,
            Operation::Get { fields, .. } => (self.verb, self.wanted) = (Verb::Read, number(fields)),
            Operation::FindEqual { by, fields, .. } if *by == collection.key => {
                (self.verb, self.wanted) = (Verb::Read, number(fields));
            }
            Operation::FindEqual { fields, .. } => {
                self.verb = Verb::Group;
                key.pop();
                let place = |field: &usize| stored.iter().position(|stored| stored == field);
                self.columns = fields.iter().map(|f| place(f).map_or(Column::Name, Column::Rest)).collect();
                if let Some(name) = collection.key.last() {
                    self.name_kind = collection.fields[*name].kind;
                }
            }
            _ => {}
        }
        let grouped = collection.key.len() > 1;
        if grouped && self.verb != Verb::Group {
            self.name = key.pop();
        }
        self.key = key;
        self.command(grouped, many, ttl);
    }

    fn command(&mut self, grouped: bool, many: bool, ttl: Option<u32>) {
        let life = ttl.map(|seconds| seconds.to_string());
        let expires: Vec<&str> = life.as_deref().map_or_else(Vec::new, |seconds| vec!["EX", seconds]);
        match (self.verb, grouped) {
            (Verb::Ping, _) => {}
            (Verb::Group, _) => self.say(&["HGETALL"], 1, &[]),
            (Verb::Read, true) => self.say(&["HGET"], 2, &[]),
            (Verb::Read, false) => self.say(&["GET"], 1, &[]),
            (Verb::Remove, true) => self.say(&["HDEL"], 2, &[]),
            (Verb::Remove, false) => self.say(&["DEL"], 1, &[]),
            (Verb::Add, false) if many => self.say(&["MSETNX"], 2 * self.rows, &[]),
            (Verb::Add, false) => self.say(&["SET"], 2, &[&["NX"], &expires[..]].concat()),
            (Verb::Change, false) => self.say(&["SET"], 2, &[&["XX"], &expires[..]].concat()),
            (Verb::Put, false) => self.say(&["SET"], 2, &expires),
            (Verb::Add, true) if !many && ttl.is_none() => self.say(&["HSETNX"], 3, &[]),
            (Verb::Put, true) if ttl.is_none() => self.say(&["HSET"], 3, &[]),
            (Verb::Add | Verb::Put | Verb::Change, true) => {
                self.scripted = true;
                let mode = match self.verb {
                    Verb::Add => "NX",
                    Verb::Change => "XX",
                    _ => "",
                };
                // What follows the keys of the hashes.
                push_word(&mut self.tail, mode.as_bytes());
                push_word(&mut self.tail, life.as_deref().unwrap_or("0").as_bytes());
            }
        }
    }

    /// The request's constant parts: `words`, then so many words of the row's, then `last`.
    fn say(&mut self, words: &[&str], between: usize, last: &[&str]) {
        push_count(&mut self.head, words.len() + between + last.len());
        for word in words {
            push_word(&mut self.head, word.as_bytes());
        }
        for word in last {
            push_word(&mut self.tail, word.as_bytes());
        }
    }
}
