//! The ownership rules on MongoDB.
//!
//! **Collections.** The collection `kurabe_marker` has a document for each collection that Kurabe created, and one that
//! distinguishes it from a foreign collection of that name.
//!
//! **Claim.** MongoDB has no lock that ends with a connection. The claim is a document in `kurabe_marker` that its
//! holder renews three times a minute. A claim that was not renewed for a minute has expired; another run takes it over
//! by a conditional update.

use super::link::Link;
use super::plan::name;
use super::session::{exists, number};
use crate::ownership::{self, Claim, ClaimStore, MADE_BY, MARKER, NamespaceOps, Words};
use crate::prelude::*;
use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use std::sync::Arc;
use std::time::Duration;

/// Ids in `kurabe_marker` that are not names of Kurabe's collections.
const TITLE: &str = "Kurabe's own collections";
const CLAIM: &str = "the run that uses them";

pub(super) struct MongoNamespace {
    pub(super) link: Link,
    pub(super) claim: Claim,
    /// The holder of this run's claim, once requested.
    pub(super) holder: Option<String>,
}

impl MongoNamespace {
    /// All documents of the ownership table; empty if it does not exist.
    fn marker(&mut self) -> Result<Vec<Document>> {
        let found =
            documents(&mut self.link, rawdoc! { "find": MARKER, "sort": { "_id": 1 }, "batchSize": 10_000 })?;
        if found.is_empty() && !exists(&mut self.link, MARKER)? {
            return Ok(found);
        }
        let ours = |document: &Document| {
            document.get_str("_id").is_ok()
                && document.get_str("made_by").is_ok_and(|by| by.starts_with("kurabe "))
                && number(document, "made_at").is_some_and(|at| at > 0)
        };
        if found.iter().any(|document| document.get_str("_id").is_ok_and(|id| id == TITLE))
            && found.iter().all(ours)
        {
            return Ok(found);
        }
        Err(self.words().foreign_marker(""))
    }

    /// Creates the ownership table if it does not exist.
    fn begin_marker(&mut self) -> Result<()> {
        if !self.marker()?.is_empty() {
            return Ok(());
        }
        match write(&mut self.link, insert(&entry(TITLE))) {
            // Another run may have created it first.
            Err(error) if error.server_code() != Some(DUPLICATE) => {
                Err(error.context(format!("cannot create collection {MARKER}")))
            }
            _ => Ok(()),
        }
    }

    fn drop_collection(&mut self, name: &str) -> Result<()> {
        match self.link.run(rawdoc! { "drop": name }) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl NamespaceOps for MongoNamespace {
    fn words(&self) -> Words {
        let instead = "rename it, or use another database";
        Words { engine: "mongodb", thing: "collection", instead, kept: &[] }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        self.begin_marker()?;
        self.holder = Some(ownership::holder(run));
        let (words, shared) = (self.words(), Arc::clone(&self.link.shared));
        self.claim.take(&words, &mut self.link, run, move |options| {
            Link::open(Arc::clone(&shared), options.timeout)
        })
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        let names =
            self.marker()?.into_iter().filter_map(|document| document.get_str("_id").ok().map(str::to_owned));
        Ok(names.filter(|name| Collection::name_is_ours(name)).collect())
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        Ok(exists(&mut self.link, name)?.then(|| format!("collection {name}")))
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        self.begin_marker()?;
        write(&mut self.link, insert(&entry(&collection.name))).map(drop)
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        write(&mut self.link, delete(&rawdoc! { "_id": name })).map(drop)
    }

    /// Creates the collection with its indexes. Clearing does the same: MongoDB deletes documents one by one, but drops
    /// a collection at once.
    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        self.drop_collection(&collection.name)?;
        self.link.run(rawdoc! { "create": collection.name.as_str() })?;
        let mut indexes = RawArrayBuf::new();
        // A key of one field is `_id`, which always has an index.
        let whole_key = (collection.key.len() > 1).then_some((&collection.key, true));
        let all = whole_key.into_iter().chain(collection.indexes.iter().map(|fields| (fields, false)));
        for (number, (fields, unique)) in all.enumerate() {
            let mut keys = RawDocumentBuf::new();
            for field in fields {
                keys.append(cstring(name(collection, *field))?, 1);
            }
            indexes.push(rawdoc! { "key": keys, "name": format!("kurabe_{number}"), "unique": unique });
        }
        if !indexes.is_empty() {
            let name = collection.name.as_str();
            self.link.run(rawdoc! { "createIndexes": name, "indexes": indexes })?;
        }
        Ok(())
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        self.link.shared.seen().remove(name);
        self.drop_collection(name)
    }

    fn remove_marker(&mut self) -> Result<()> {
        let ours = self.holder.as_deref();
        // Another run's claim is left in place.
        let claimed = documents(&mut self.link, rawdoc! { "find": MARKER, "filter": { "_id": CLAIM } })?;
        if claimed.iter().any(|claim| claim.get_str("holder").ok() != ours) {
            return Ok(());
        }
        self.drop_collection(MARKER)
    }
}

impl Drop for MongoNamespace {
    fn drop(&mut self) {
        self.claim.give_back(&mut self.link);
    }
}

const DUPLICATE: &str = "11000";

impl ClaimStore for Link {
    const LASTS: Duration = Duration::from_secs(60);

    fn add(&mut self, holder: &str) -> Result<bool> {
        let mut claim = entry(CLAIM);
        claim.append(mongodb::bson::cstr!("holder"), holder);
        claim.append(mongodb::bson::cstr!("renewed"), now());
        match write(self, insert(&claim)) {
            Err(error) if error.server_code() == Some(DUPLICATE) => {}
            result => return result.map(|_| true),
        }
        let ended = now() - Self::LASTS.as_millis() as i64;
        let query = rawdoc! { "_id": CLAIM, "renewed": { "$lte": ended } };
        Ok(write(self, update(&query, rawdoc! { "holder": holder, "renewed": now() }))? == 1)
    }

    fn holder(&mut self) -> Result<Option<String>> {
        let found = documents(self, rawdoc! { "find": MARKER, "filter": { "_id": CLAIM } })?;
        Ok(found.first().map(|claim| claim.get_str("holder").unwrap_or("another run").to_owned()))
    }

    fn renew(&mut self, holder: &str) -> Result<()> {
        let query = rawdoc! { "_id": CLAIM, "holder": holder };
        write(self, update(&query, rawdoc! { "renewed": now() })).map(drop)
    }

    fn release(&mut self, holder: &str) -> Result<()> {
        write(self, delete(&rawdoc! { "_id": CLAIM, "holder": holder })).map(drop)
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    ownership::now().as_millis() as i64
}

/// A document of the ownership table.
fn entry(name: &str) -> RawDocumentBuf {
    rawdoc! { "_id": name, "made_by": MADE_BY, "made_at": now() / 1_000 }
}

fn insert(document: &RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "insert": MARKER, "documents": [document.clone()] }
}

fn update(query: &RawDocumentBuf, set: RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "update": MARKER, "updates": [{ "q": query.clone(), "u": { "$set": set } }] }
}

fn delete(query: &RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "delete": MARKER, "deletes": [{ "q": query.clone(), "limit": 1 }] }
}

fn write(link: &mut Link, command: RawDocumentBuf) -> Result<u64> {
    super::session::written(&link.run(command)?)
}

/// The documents of a `find` whose answer fits into its first batch.
fn documents(link: &mut Link, find: RawDocumentBuf) -> Result<Vec<Document>> {
    let answer = link.run(find)?;
    let batch = answer.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    Ok(batch.into_iter().flatten().filter_map(|value| value.as_document().cloned()).collect())
}

fn cstring(name: &str) -> Result<&mongodb::bson::raw::CStr> {
    name.try_into().map_err(|_| Error::new(ErrorKind::Internal, format!("'{name}' cannot be a field's name")))
}
