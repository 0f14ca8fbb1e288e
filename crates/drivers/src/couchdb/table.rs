//! A collection as a CouchDB database, and the paths of its documents.

use super::config::{Config, escape};
use super::document::push_text;
use super::id;
use super::session::Buffers;
use crate::prelude::*;
use std::sync::Arc;

/// Path suffix that lists all documents.
const ALL: &str = "/_all_docs?include_docs=true";
/// Parameter that excludes the end of a range.
const BEFORE_END: &str = "&inclusive_end=false";

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

    /// Writes the id of the document with this key, or the prefix of ids with these first fields.
    fn id<'v>(&self, key: impl IntoIterator<Item = &'v Value<'v>>, id: &mut String) -> Result<()> {
        id.clear();
        key.into_iter().try_for_each(|value| id::push(id, &self.collection.name, value))
    }

    /// Writes the id and the path of the document with this key.
    pub(super) fn document_path<'v>(
        &self,
        key: impl Iterator<Item = &'v Value<'v>>,
        Buffers { id, path, .. }: &mut Buffers,
    ) -> Result<()> {
        self.id(key, id)?;
        self.begin(path, "/");
        escape(path, id);
        Ok(())
    }

    fn begin(&self, path: &mut String, rest: &str) {
        path.clear();
        path.push_str(&self.path);
        path.push_str(rest);
    }

    /// Writes the path of all documents whose key begins with these fields, or of the one with this `whole` key.
    pub(super) fn range_path(
        &self,
        key: &[Value<'_>],
        whole: bool,
        Buffers { id, path, json }: &mut Buffers,
    ) -> Result<()> {
        self.id(key, id)?;
        self.begin(path, ALL);
        if whole {
            push_id(path, "&key=", id, json);
            return Ok(());
        }
        id.push(char::from(id::MARK));
        push_id(path, "&startkey=", id, json);
        id.pop();
        id.push(char::from(id::AFTER_MARK));
        push_id(path, "&endkey=", id, json);
        path.push_str(BEFORE_END);
        Ok(())
    }

    /// Writes the path of all documents whose first key field is at least the first value and less than the second.
    pub(super) fn between_path(
        &self,
        values: &[Value<'_>],
        Buffers { id, path, json }: &mut Buffers,
    ) -> Result<()> {
        self.begin(path, ALL);
        for (name, value) in ["&startkey=", "&endkey="].into_iter().zip(values) {
            self.id([value], id)?;
            push_id(path, name, id, json);
        }
        path.push_str(BEFORE_END);
        Ok(())
    }
}

/// Appends a parameter with this name and an id as JSON to a path.
fn push_id(path: &mut String, name: &str, id: &str, json: &mut Vec<u8>) {
    json.clear();
    push_text(json, id);
    path.push_str(name);
    escape(path, &String::from_utf8_lossy(json));
}
