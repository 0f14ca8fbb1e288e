//! A collection as a CouchDB database, and the paths of its documents.

use super::config::{Config, escape};
use super::id;
use crate::prelude::*;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) collection: Arc<Collection>,
    /// `/kurabe_a`
    pub(super) path: String,
    /// The fields that are not in the key.
    pub(super) rest: Vec<usize>,
}

impl Table {
    pub(super) fn new(collection: &Arc<Collection>, config: &Config) -> Self {
        Self {
            path: config.path(&collection.name),
            rest: collection.rest(),
            collection: Arc::clone(collection),
        }
    }

    /// The id of the document with this key, or the prefix of ids with these first fields.
    fn id<'r, 'v: 'r>(&self, key: impl IntoIterator<Item = &'r Value<'v>>) -> Result<String> {
        let mut id = String::new();
        key.into_iter().try_for_each(|value| id::push(&mut id, &self.collection.name, value))?;
        Ok(id)
    }

    /// The id of the document with this row.
    pub(super) fn id_of(&self, row: &[Value<'_>]) -> Result<String> {
        self.id(self.collection.key.iter().map(|field| &row[*field]))
    }

    /// The path of the document with this id.
    pub(super) fn with_id(&self, id: &str) -> String {
        let mut path = format!("{}/", self.path);
        escape(&mut path, id);
        path
    }

    /// The path of the document with this key.
    pub(super) fn with_key(&self, key: &[Value<'_>]) -> Result<String> {
        Ok(self.with_id(&self.id(key)?))
    }

    /// The path of all documents whose key begins with these fields, or of the one with this `whole` key.
    pub(super) fn range(&self, key: &[Value<'_>], whole: bool) -> Result<String> {
        let id = self.id(key)?;
        if whole {
            return Ok(self.list(&[("key", id)]));
        }
        Ok(self.list_between(format!("{id}{}", id::MARK), format!("{id}{}", id::AFTER_MARK)))
    }

    /// The path of all documents whose first key field is at least the first value and less than the second.
    pub(super) fn between(&self, values: &[Value<'_>]) -> Result<String> {
        Ok(self.list_between(self.id(&values[..1])?, self.id(&values[1..])?))
    }

    /// The path of at most so many documents in the order of their ids, after the one with this id.
    pub(super) fn page(&self, after: Option<&str>, limit: u64) -> String {
        let start = after.map(|id| ("startkey", id.to_owned()));
        let skipped = if after.is_some() { "&skip=1" } else { "" };
        format!("{}&limit={limit}{skipped}", self.list(start.as_slice()))
    }

    fn list_between(&self, start: String, end: String) -> String {
        self.list(&[("startkey", start), ("endkey", end)]) + "&inclusive_end=false"
    }

    /// The path that lists documents, with these ids as parameters.
    fn list(&self, parameters: &[(&str, String)]) -> String {
        let mut path = format!("{}/_all_docs?include_docs=true", self.path);
        for (name, id) in parameters {
            path.extend(["&", *name, "="]);
            escape(&mut path, &serde_json::Value::from(id.as_str()).to_string());
        }
        path
    }
}
