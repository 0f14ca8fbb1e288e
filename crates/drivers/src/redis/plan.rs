//! A prepared operation: its command, the positions of the key's and the value's fields among the parameters, and the
//! constant parts of the request.

use super::protocol::{push_count, push_word};
use super::value::Form;
use crate::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Kinds of operations, by their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verb {
    #[default]
    Ping,
    /// Reads one value.
    Read,
    /// Adds one or several rows that must not exist.
    Add,
    /// Writes one row, whether or not it exists.
    Put,
    /// Changes one row that must exist.
    Change,
    Remove,
    /// Reads all rows of a hash.
    Group,
}

/// The source of a field, in a row of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// The name within the hash: the key's last field.
    Name,
    /// A field outside the key, by its index among those.
    Rest(usize),
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) verb: Verb,
    pub(super) operation: &'static str,
    pub(super) collection: String,
    /// The text before each key.
    pub(super) prefix: String,
    /// Set when the collection is removed.
    pub(super) gone: Arc<AtomicBool>,
    /// Number of parameters of one row, and number of rows.
    pub(super) width: usize,
    pub(super) rows: usize,
    /// Positions among a row's parameters: of the fields of the Redis key, …
    pub(super) key: Vec<usize>,
    /// … of the field that names the row within a hash, …
    pub(super) name: Option<usize>,
    /// … and of the fields of its value.
    pub(super) rest: Vec<usize>,
    pub(super) form: Form,
    /// For [`Verb::Read`]: the fields of the value to return.
    pub(super) wanted: Vec<usize>,
    /// For [`Verb::Group`]: the fields to return, and the type of the names.
    pub(super) columns: Vec<Column>,
    pub(super) name_kind: Option<FieldType>,
    /// Constant start and end of the request.
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    /// Position among the parameters of the time when the row expires.
    pub(super) expires: Option<usize>,
    /// Whether the script executes it: see [`super::script`].
    pub(super) scripted: bool,
}

/// Why Redis does not support an operation; `None` if it does.
pub(super) fn unsupported(operation: &Operation, ttl: Option<u32>) -> Option<&'static str> {
    match operation {
        Operation::Insert { collection } | Operation::Put { collection }
            if collection.expires.is_some() && collection.key.len() > 1 =>
        {
            Some("the fields of a hash expire together")
        }
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
                    "Redis finds rows by the whole key, or all rows of one hash by all fields of the key but the last",
                );
            }
            fields
                .iter()
                .any(|field| key.contains(field) && field != name)
                .then_some("Redis returns a row of a hash without the hash's key")
        }
        Operation::FindRange { .. } => Some("Redis keys are unordered: ranges cannot be searched"),
        Operation::Update { collection, fields } => (*fields != collection.rest())
            .then_some("a row is one value, which can only be replaced as a whole"),
        Operation::InsertMany { collection, .. } => (collection.expires.is_some()
            || collection.key.len() == 1 && ttl.is_some())
        .then_some("MSETNX, which stores several values atomically, cannot set an expiry (ttl=)"),
        Operation::InsertEach { .. } => {
            Some("Redis has no request that stores several values independently; it has pipelining instead")
        }
        Operation::Purge { .. } => Some("Redis removes expired keys by itself"),
        Operation::Page { .. } => Some("Redis has no pages"),
        Operation::Raw { .. } => Some("Redis has no SQL for the statements of a workload"),
        Operation::Flow(_) => Some(NO_FLOW),
        Operation::Count { .. } => Some("Redis counts all keys of a database, not those of one collection"),
        Operation::Begin | Operation::Commit | Operation::Rollback => {
            Some("MULTI only queues commands until EXEC: it allows neither reads nor a rollback")
        }
    }
}

fn not_stored(collection: &Collection, fields: &[usize]) -> Option<&'static str> {
    (!collection.in_rest(fields)).then_some("Redis returns a value without its key")
}

impl Plan {
    /// Plans an operation that is supported.
    pub(super) fn new(operation: &Operation, ttl: Option<u32>, gone: Arc<AtomicBool>) -> Self {
        let (name, width) = (operation.name(), operation.parameters());
        let mut plan = Self { operation: name, gone, width, ..Self::default() };
        match operation.collection() {
            Some(collection) => plan.on(collection, operation, ttl),
            None => plan.say(&["PING"], 0, &[]),
        }
        plan
    }

    fn on(&mut self, collection: &Collection, operation: &Operation, ttl: Option<u32>) {
        let stored = collection.rest();
        self.collection.clone_from(&collection.name);
        self.prefix = super::namespace::prefix(&collection.name);
        self.rows = if let Operation::InsertMany { rows, .. } = operation { *rows } else { 1 };
        self.form = match stored.as_slice() {
            [one] => Form::One(collection.fields[*one].kind),
            many => Form::Packed(many.len()),
        };
        let number = |fields: &[usize]| {
            fields.iter().filter_map(|f| stored.iter().position(|stored| stored == f)).collect::<Vec<_>>()
        };
        // Parameters are all fields in order, the key's fields alone, or new values followed by the key.
        let mut key: Vec<usize> = (0..collection.key.len()).collect();
        match operation {
            Operation::Insert { .. } | Operation::Put { .. } | Operation::InsertMany { .. } => {
                self.verb = if matches!(operation, Operation::Put { .. }) { Verb::Put } else { Verb::Add };
                (key, self.rest, self.width) = (collection.key.clone(), stored, collection.fields.len());
                self.expires = collection.expires;
            }
            Operation::Update { fields, .. } => {
                self.verb = Verb::Change;
                key = (fields.len()..fields.len() + key.len()).collect();
                self.rest = (0..fields.len()).collect();
                self.expires = fields.iter().position(|field| Some(*field) == collection.expires);
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
                self.name_kind = collection.key.last().map(|name| collection.fields[*name].kind);
            }
            _ => {}
        }
        let grouped = collection.key.len() > 1;
        if grouped && self.verb != Verb::Group {
            self.name = key.pop();
        }
        self.key = key;
        self.command(grouped, matches!(operation, Operation::InsertMany { .. }), ttl);
    }

    fn command(&mut self, grouped: bool, many: bool, ttl: Option<u32>) {
        // Without the time of the row, which is two words more.
        let ttl = ttl.filter(|_| self.expires.is_none());
        let value = if self.expires.is_some() { 4 } else { 2 };
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
            (Verb::Add, false) => self.say(&["SET"], value, &[&["NX"], &expires[..]].concat()),
            (Verb::Change, false) => self.say(&["SET"], value, &[&["XX"], &expires[..]].concat()),
            (Verb::Put, false) => self.say(&["SET"], value, &expires),
            (Verb::Add, true) if !many && ttl.is_none() => self.say(&["HSETNX"], 3, &[]),
            (Verb::Put, true) if ttl.is_none() => self.say(&["HSET"], 3, &[]),
            (Verb::Add | Verb::Put | Verb::Change, true) => {
                self.scripted = true;
                let mode = match self.verb {
                    Verb::Add => "NX",
                    Verb::Change => "XX",
                    _ => "",
                };
                // The arguments after the keys of the hashes.
                push_word(&mut self.tail, mode.as_bytes());
                push_word(&mut self.tail, life.as_deref().unwrap_or("0").as_bytes());
            }
        }
    }

    /// Sets the constant parts of the request: `words`, then `between` words of the row, then `last`.
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
