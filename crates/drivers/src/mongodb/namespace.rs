//! The ownership rules on MongoDB.
//!
//! **Collections.** The collection `kurabe_marker` has a document for each collection that Kurabe created, and one that
//! distinguishes it from a foreign collection of that name. Each has the number that the server gave to the collection: one
//! with another number is not Kurabe's, whatever the document says, and is left alone unless it is empty.
//!
//! **Claim.** MongoDB has no lock that ends with a connection. The claim is a document in `kurabe_marker` that its
//! holder renews three times a minute. A claim that was not renewed for a minute has expired; another run takes it over
//! by a conditional update.

use super::bson::{Document, Element, Raw};
use super::client::Link;
use super::errors::written;
use super::plan::name;
use super::session::exists;
use super::shared::Shared;
use super::writer::Writer;
use crate::lease::{self, Claim, ClaimStore};
use crate::ownership::{self, MADE_BY, MARKER, NamespaceOps, Words};
use crate::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Ids in `kurabe_marker` that are not names of Kurabe's collections.
const TITLE: &str = "Kurabe's own collections";
const CLAIM: &str = "the run that uses them";

pub(super) struct MongoNamespace {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    pub(super) claim: Claim,
    /// The holder of this run's claim, once requested.
    pub(super) holder: Option<String>,
}

impl MongoNamespace {
    /// All documents of the ownership table; empty if it does not exist.
    fn marker(&mut self) -> Result<Vec<Document>> {
        let found = documents(&mut self.link, |out| {
            out.text("find", MARKER).begin("sort").int("_id", 1).end().int("batchSize", 10_000);
        })?;
        if found.is_empty() && !exists(&mut self.link, MARKER)? {
            return Ok(found);
        }
        let ours = |document: &Document| {
            let document = document.raw();
            document.text("_id").is_some()
                && document.text("made_by").is_some_and(|by| by.starts_with("kurabe "))
                && document.number("made_at").is_some_and(|at| at > 0)
        };
        if found.iter().any(|document| document.raw().text("_id") == Some(TITLE)) && found.iter().all(ours) {
            return Ok(found);
        }
        Err(self.words().foreign_marker(""))
    }

    /// Creates the ownership table if it does not exist.
    fn begin_marker(&mut self) -> Result<()> {
        if !self.marker()?.is_empty() {
            return Ok(());
        }
        match insert(&mut self.link, entry(TITLE)) {
            // Another run may have created it first.
            Err(error) if error.server_code() != Some(DUPLICATE) => {
                Err(error.context(format!("cannot create collection {MARKER}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to drop a collection that is not the one that was recorded when Kurabe made it.
    fn must_be_made(&mut self, name: &str) -> Result<()> {
        let Some(number) = number(&mut self.link, name)? else { return Ok(()) };
        let recorded = documents(&mut self.link, |out| {
            out.text("find", MARKER).begin("filter").text("_id", name).end();
        })?;
        let recorded = recorded.first().and_then(|entry| binary(entry.raw(), NUMBER));
        // Between making a collection and recording its number a run may have been killed.
        let is_empty = |link: &mut Link| {
            documents(link, |out| {
                out.text("find", name).int("limit", 1);
            })
            .map(|found| found.is_empty())
        };
        if recorded == number || is_empty(&mut self.link)? {
            return Ok(());
        }
        let what = format!("mongodb: collection {name} is listed in {MARKER}, but was not made by Kurabe");
        Err(self.words().not_ours(what))
    }

    fn drop_collection(&mut self, name: &str) -> Result<()> {
        match self.link.run(|out| {
            out.text("drop", name);
        }) {
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
        self.holder = Some(lease::holder(run));
        let (words, shared) = (self.words(), Arc::clone(&self.shared));
        self.claim.take(&words, &mut self.link, run, move |options| shared.connect(options))
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        let found = self.marker()?;
        let names = found.iter().filter_map(|document| document.raw().text("_id"));
        Ok(names.filter(|name| Collection::name_is_ours(name)).map(ToOwned::to_owned).collect())
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        Ok(exists(&mut self.link, name)?.then(|| format!("collection {name}")))
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        self.begin_marker()?;
        insert(&mut self.link, entry(&collection.name))
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        delete(&mut self.link, name, None)
    }

    /// Creates the collection with its indexes. Clearing does the same: MongoDB deletes documents one by one, but drops
    /// a collection at once.
    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        self.must_be_made(&collection.name)?;
        self.drop_collection(&collection.name)?;
        let own = collection.name.as_str();
        self.link.run(|out| {
            out.text("create", own);
        })?;
        if let Some(Some(number)) = number(&mut self.link, own)? {
            record(&mut self.link, own, number)?;
        }
        // A key of one field is `_id`, which always has an index.
        let whole_key = (collection.key.len() > 1).then_some((&collection.key, true));
        let all = whole_key.into_iter().chain(collection.indexes.iter().map(|fields| (fields, false)));
        let all: Vec<_> = all.enumerate().collect();
        if all.is_empty() {
            return Ok(());
        }
        let create = |out: &mut Writer| {
            out.text("createIndexes", own).begin_array("indexes");
            for (number, (fields, unique)) in all {
                out.begin(&number.to_string()).begin("key");
                for field in fields {
                    out.int(name(collection, *field), 1);
                }
                out.end().text("name", &format!("kurabe_{number}")).bool("unique", unique).end();
            }
            out.end();
        };
        self.link.run(create).map(drop)
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        self.must_be_made(name)?;
        self.shared.seen().remove(name);
        self.drop_collection(name)
    }

    fn remove_marker(&mut self) -> Result<()> {
        let ours = self.holder.as_deref();
        // Another run's claim is left in place.
        let claimed = documents(&mut self.link, claim)?;
        if claimed.iter().any(|claim| claim.raw().text("holder") != ours) {
            return Ok(());
        }
        self.drop_collection(MARKER)
    }
}

impl Drop for MongoNamespace {
    fn drop(&mut self) {
        self.claim.give_back(&mut self.link);
        self.shared.keep_session(&mut self.link);
    }
}

const DUPLICATE: &str = "11000";

impl ClaimStore for Link {
    const LASTS: Duration = Duration::from_secs(60);

    fn add(&mut self, holder: &str) -> Result<bool> {
        let claim = |out: &mut Writer| {
            entry(CLAIM)(out);
            out.text("holder", holder).long("renewed", now());
        };
        match insert(self, claim) {
            Err(error) if error.server_code() == Some(DUPLICATE) => {}
            result => return result.map(|()| true),
        }
        Ok(update_claim(self, holder, true)? == 1)
    }

    fn holder(&mut self) -> Result<Option<String>> {
        let found = documents(self, claim)?;
        Ok(found.first().map(|claim| claim.raw().text("holder").unwrap_or("another run").to_owned()))
    }

    fn renew(&mut self, holder: &str) -> Result<()> {
        update_claim(self, holder, false).map(drop)
    }

    fn release(&mut self, holder: &str) -> Result<()> {
        delete(self, CLAIM, Some(holder))
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    ownership::now().as_millis() as i64
}

/// The fields of a document of the ownership table.
fn entry(name: &str) -> impl Fn(&mut Writer) {
    move |out| {
        out.text("_id", name).text("made_by", MADE_BY).long("made_at", now() / 1_000);
    }
}

/// The field of an entry with the number of its collection.
const NUMBER: &str = "uuid";

/// The number that the server gave to a collection, if it gives any; `None` if there is no such collection.
fn number(link: &mut Link, name: &str) -> Result<Option<Option<[u8; 16]>>> {
    let answer = link.run(|out| {
        out.int("listCollections", 1).begin("filter").text("name", name).end();
    })?;
    let batch = answer.document("cursor").and_then(|cursor| cursor.array("firstBatch"));
    let found = batch.into_iter().flat_map(Raw::values).find_map(|value| match value {
        Element::Document(collection) => Some(collection),
        _ => None,
    });
    Ok(found.map(|collection| collection.document("info").and_then(|info| binary(info, "uuid"))))
}

/// The 16 bytes in a field.
fn binary(document: Raw<'_>, field: &str) -> Option<[u8; 16]> {
    match document.get(field) {
        Ok(Some(Element::Binary(bytes))) => bytes.try_into().ok(),
        _ => None,
    }
}

/// Writes the number of a collection into its entry.
fn record(link: &mut Link, name: &str, number: [u8; 16]) -> Result<()> {
    written(link.run(|out| {
        out.text("update", MARKER).begin_array("updates").begin("0").begin("q").text("_id", name);
        out.end().begin("u").begin("$set").uuid(NUMBER, number).end().end().end().end();
    })?)
    .map(drop)
}

/// The command that finds the claim.
fn claim(out: &mut Writer) {
    out.text("find", MARKER).begin("filter").text("_id", CLAIM).end();
}

fn insert(link: &mut Link, document: impl FnOnce(&mut Writer)) -> Result<()> {
    written(link.run(|out| {
        out.text("insert", MARKER).begin_array("documents").begin("0");
        document(out);
        out.end().end();
    })?)
    .map(drop)
}

/// Makes the claim the holder's from now on, if it has it, or if the claim has expired. Returns the number of documents
/// that were changed.
fn update_claim(link: &mut Link, holder: &str, has_expired: bool) -> Result<u64> {
    written(link.run(|out| {
        out.text("update", MARKER).begin_array("updates").begin("0").begin("q").text("_id", CLAIM);
        if has_expired {
            out.begin("renewed").long("$lte", now() - Link::LASTS.as_millis() as i64).end();
        } else {
            out.text("holder", holder);
        }
        out.end().begin("u").begin("$set").text("holder", holder).long("renewed", now());
        out.end().end().end().end();
    })?)
}

/// Removes the document with this id; of a claim that of this holder.
fn delete(link: &mut Link, id: &str, holder: Option<&str>) -> Result<()> {
    written(link.run(|out| {
        out.text("delete", MARKER).begin_array("deletes").begin("0").begin("q").text("_id", id);
        if let Some(holder) = holder {
            out.text("holder", holder);
        }
        out.end().int("limit", 1).end().end();
    })?)
    .map(drop)
}

/// The documents of a `find` whose answer fits into its first batch.
fn documents(link: &mut Link, find: impl Fn(&mut Writer)) -> Result<Vec<Document>> {
    let batch = link.run(find)?.document("cursor").and_then(|cursor| cursor.array("firstBatch"));
    let document = |value| match value {
        Element::Document(document) => Some(document.to_owned()),
        _ => None,
    };
    Ok(batch.into_iter().flat_map(Raw::values).filter_map(document).collect())
}
