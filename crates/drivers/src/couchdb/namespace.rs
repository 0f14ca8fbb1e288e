//! The ownership rules on CouchDB: which databases Kurabe may create, clear and remove.
//!
//! **Collections.** Each is a database. The database `kurabe_marker` has a document for each one that Kurabe created,
//! with the fields of the SQL engines' ownership table. Each of these has a local document of Kurabe's, which only who may
//! write to that database can make: one without it is left alone unless it is empty, whatever the ownership table says.
//! Clearing a collection removes its database and creates it again: CouchDB keeps a stub of every deleted document.
//!
//! **Claim.** The document `claim` in `kurabe_marker` has the holder of the namespace and the time at which the claim
//! expires. A thread of this process renews it on a separate connection. A change must name the revision that it
//! replaces, so only one of two runs gets the claim. After a crash the claim expires within a minute, by this machine's
//! clock: the clocks of two machines that share a server must agree to within 30 s.

use super::document::{AllDocs, Object, parse};
use super::errors;
use super::http::Client;
use super::session::Work;
use super::table::Table;
use crate::lease::{Claim, ClaimStore};
use crate::ownership::{self, MADE_BY, MARKER, NamespaceOps, Words};
use crate::prelude::*;
use crate::sql::marker;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Attempts to create a database that was just removed: a cluster removes it shard by shard.
const ATTEMPTS: usize = 20;

pub(super) struct CouchNamespace {
    client: Client,
    marker: Table,
    claim: Claim,
}

impl CouchNamespace {
    /// Refuses a user who is not a server administrator.
    pub(super) fn new(mut client: Client) -> Result<Self> {
        if !super::facts::is_administrator(&mut client)? {
            return Err(errors::no_administrator(client.config()));
        }
        let marker = Table::new(&Arc::new(marker()), client.config());
        Ok(Self { client, marker, claim: Claim::default() })
    }

    fn work<'a>(&'a mut self, json: &'a mut Vec<u8>) -> Work<'a> {
        Work { client: &mut self.client, table: &self.marker, json }
    }

    /// Refuses to remove a database that has no record of Kurabe's.
    fn must_be_made(&mut self, name: &str) -> Result<()> {
        let path = self.client.config().path(name);
        let status = self.client.get(&record(&path))?;
        if !self.client.is_no_document(status) {
            let is_gone = status == 200 || self.client.is_absent(status);
            return if is_gone { Ok(()) } else { Err(self.client.refused(status)) };
        }
        // Between making a database and its record a run may have been killed.
        let database: serde_json::Value = self.client.read(&path)?;
        if database.get("doc_count").and_then(serde_json::Value::as_u64) == Some(0) {
            return Ok(());
        }
        let what = format!("CouchDB: database {name} is listed in {MARKER}, but was not made by Kurabe");
        Err(self.words().not_ours(what))
    }

    fn claim_path(&self) -> String {
        format!("{}/claim", self.marker.path)
    }
}

/// The path of the local document in a database of Kurabe's. Local documents are in no count, view and list of changes.
fn record(path: &str) -> String {
    format!("{path}/_local/kurabe")
}

/// Removes a database, if it exists.
fn drop_database(client: &mut Client, path: &str) -> Result<()> {
    let status = client.delete(path)?;
    match status {
        200 | 202 => Ok(()),
        _ if client.is_absent(status) => Ok(()),
        _ => Err(client.refused(status)),
    }
}

/// Creates a database; `false` if it existed already.
fn make_database(client: &mut Client, path: &str) -> Result<bool> {
    let status = client.put(path, None)?;
    match status {
        201 | 202 => Ok(true),
        412 => Ok(false),
        _ => Err(client.refused(status)),
    }
}

impl NamespaceOps for CouchNamespace {
    fn words(&self) -> Words {
        let instead = "remove it, or name a prefix for databases";
        Words { engine: "CouchDB", thing: "database", instead, kept: &[] }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        make_database(&mut self.client, &self.marker.path)?;
        let words = self.words();
        let (config, path) = (Arc::clone(self.client.config()), self.claim_path());
        let mut store =
            ClaimDocument { client: Client::new(&config, &ConnectOptions::default()), path: path.clone() };
        self.claim.take(&words, &mut store, run, move |options| {
            Ok(ClaimDocument { client: Client::new(&config, options), path: path.clone() })
        })
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        // Entries have an id with the prefix `!`, the claim does not.
        let path = format!("{}/_all_docs?include_docs=true", self.marker.path);
        let status = self.client.get(&path)?;
        if self.client.is_absent(status) {
            return Ok(Vec::new());
        }
        self.client.accept(status)?;
        let all: AllDocs<'_> = parse(self.client.answer())?;
        let mut names = Vec::new();
        for row in all.rows.iter().filter(|row| row.id != "claim") {
            let name = row.id.strip_prefix('!').filter(|name| Collection::name_is_ours(name));
            let ours = row
                .doc
                .as_ref()
                .is_some_and(|doc| doc.text("made_by").is_some() && doc.number("made_at").is_some());
            let Some(name) = name.filter(|_| ours) else {
                return Err(self.words().foreign_marker(&format!(" (document '{}')", row.id)));
            };
            names.push(name.to_owned());
        }
        Ok(names)
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        let status = self.client.get(&self.client.config().path(name))?;
        match status {
            200 => Ok(Some(format!("database {name}"))),
            _ if self.client.is_absent(status) => Ok(None),
            _ => Err(self.client.refused(status)),
        }
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        make_database(&mut self.client, &self.marker.path)?;
        let row = [Value::Text(&collection.name), Value::Text(MADE_BY), Value::Int(now())];
        self.work(&mut Vec::new()).put(&row, &mut Reply::new())
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        self.work(&mut Vec::new()).delete(&[Value::Text(name)], &mut Reply::new())
    }

    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        let path = self.client.config().path(&collection.name);
        self.must_be_made(&collection.name)?;
        drop_database(&mut self.client, &path)?;
        let mut attempts = 0;
        while !make_database(&mut self.client, &path)? {
            attempts += 1;
            if attempts == ATTEMPTS {
                return Err(self.client.refused(412));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let status =
            self.client.put(&record(&path), Some(json!({"made_by": MADE_BY}).to_string().as_bytes()))?;
        if status != 201 && status != 202 {
            return Err(self.client.refused(status));
        }
        for (number, index) in collection.indexes.iter().enumerate() {
            // `FindEqual` cannot use an index with fields of the key; see `unsupported`.
            if index.iter().any(|field| collection.key.contains(field)) {
                continue;
            }
            let fields: Vec<&str> = index.iter().map(|field| collection.fields[*field].name).collect();
            let name = format!("index_{number}");
            let json = json!({"type": "json", "ddoc": "kurabe", "name": name, "index": {"fields": fields}});
            let status = self.client.post(&format!("{path}/_index"), json.to_string().as_bytes())?;
            if status != 200 && status != 201 {
                return Err(self.client.refused(status));
            }
        }
        Ok(())
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        let path = self.client.config().path(name);
        self.must_be_made(name)?;
        drop_database(&mut self.client, &path)
    }

    fn remove_marker(&mut self) -> Result<()> {
        // The claim is in this database, so renewal must stop first.
        self.claim = Claim::default();
        drop_database(&mut self.client, &self.marker.path)
    }
}

impl Drop for CouchNamespace {
    fn drop(&mut self) {
        let client = Client::new(self.client.config(), &ConnectOptions::default());
        self.claim.give_back(&mut ClaimDocument { client, path: self.claim_path() });
    }
}

/// The document `claim`, with a connection.
struct ClaimDocument {
    client: Client,
    path: String,
}

struct Held {
    by: String,
    until: i64,
    revision: String,
}

impl ClaimDocument {
    fn read(&mut self) -> Result<Option<Held>> {
        let status = self.client.get(&self.path)?;
        if self.client.is_no_document(status) {
            return Ok(None);
        }
        self.client.accept(status)?;
        let claim: Object<'_> = parse(self.client.answer())?;
        let text = |name| claim.text(name).unwrap_or_default().to_owned();
        let until = claim.number("until").unwrap_or(0);
        Ok(Some(Held { by: text("holder"), until, revision: text("_rev") }))
    }

    /// Writes the claim, replacing revision `on` or none; `false` if another run wrote it first.
    fn write(&mut self, holder: &str, on: Option<&str>) -> Result<bool> {
        let mut claim = json!({"holder": holder, "until": now() + Self::LASTS.as_secs() as i64});
        if let Some(revision) = on {
            claim["_rev"] = revision.into();
        }
        let status = self.client.put(&self.path, Some(claim.to_string().as_bytes()))?;
        match status {
            201 | 202 => Ok(true),
            409 => Ok(false),
            _ => Err(self.client.refused(status)),
        }
    }
}

impl ClaimStore for ClaimDocument {
    const LASTS: Duration = Duration::from_secs(60);

    fn add(&mut self, holder: &str) -> Result<bool> {
        if self.write(holder, None)? {
            return Ok(true);
        }
        match self.read()? {
            Some(held) if held.until <= now() => self.write(holder, Some(&held.revision)),
            _ => Ok(false),
        }
    }

    fn holder(&mut self) -> Result<Option<String>> {
        Ok(self.read()?.map(|held| held.by))
    }

    fn renew(&mut self, holder: &str) -> Result<()> {
        match self.read()? {
            Some(held) if held.by == holder => self.write(holder, Some(&held.revision)).map(drop),
            _ => Ok(()),
        }
    }

    fn release(&mut self, holder: &str) -> Result<()> {
        match self.read()? {
            Some(held) if held.by == holder => {
                self.client.delete(&format!("{}?rev={}", self.path, held.revision)).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    ownership::now().as_secs() as i64
}
