//! The ownership rules on CouchDB: what Kurabe may make, empty and remove.
//!
//! **Collections.** Each is a database. The database `kurabe_marker` holds a document for each that Kurabe made, in the
//! form that the SQL engines' marker has. A database that is not in it was made by someone else, whatever its name, and is left
//! alone. To empty a collection is to remove its database and make it again: CouchDB keeps a stub of every document that
//! was deleted.
//!
//! **Claim.** The document `claim` of the marker says who holds the namespace and until when; a thread of this process
//! moves that on, on a connection of its own. CouchDB takes each change only on top of the revision that it replaces, so
//! that of two runs one gets it. Whoever dies lets go within a minute, by the clock of this machine: the clocks of two
//! machines that share a server must agree to within half of that.

use super::document::{AllDocs, Json, Object, Writer, parse, push_text};
use super::errors;
use super::http::Client;
use super::session::{Buffers, Work};
use super::table::Table;
use crate::ownership::{self, Lease, MADE_BY, NamespaceOps, Words};
use crate::prelude::*;
use crate::sql::marker;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a claim lasts without being renewed, and after what time it is.
const CLAIM: Duration = Duration::from_secs(60);
const RENEW: Duration = Duration::from_secs(20);
/// How often a database is made where the server says that it is still there: a cluster forgets one bit by bit.
const ATTEMPTS: usize = 20;

pub(super) struct CouchNamespace {
    client: Client,
    marker: Table,
    /// With its present revision, as long as it is ours.
    claim: Option<Lease<Option<String>>>,
}

impl CouchNamespace {
    /// Refuses a user who may not make databases: only server administrators may. Asked of the server first, since
    /// PouchDB Server 4.2.0 ends where another user tries.
    pub(super) fn new(mut client: Client) -> Result<Self> {
        let session: serde_json::Value = client.read("/_session")?;
        let roles = session.pointer("/userCtx/roles").and_then(serde_json::Value::as_array);
        if !roles.is_some_and(|roles| roles.iter().any(|role| role == "_admin")) {
            return Err(errors::no_administrator(client.config()));
        }
        let marker = Table::new(&Arc::new(marker()), client.config());
        Ok(Self { client, marker, claim: None })
    }

    /// Removes the database, if it is there.
    fn drop_database(&mut self, path: &str) -> Result<()> {
        let status = self.client.delete(path)?;
        match status {
            200 | 202 => Ok(()),
            _ if self.client.is_absent(status) => Ok(()),
            _ => Err(self.client.refused(status)),
        }
    }

    /// Makes the database, and gives whether it was not there.
    fn make_database(&mut self, path: &str) -> Result<bool> {
        let status = self.client.put(path, None)?;
        match status {
            201 | 202 => Ok(true),
            412 => Ok(false),
            _ => Err(self.client.refused(status)),
        }
    }

    fn work<'a>(&'a mut self, buffers: &'a mut Buffers) -> Work<'a> {
        Work { client: &mut self.client, table: &self.marker, buffers }
    }

    /// The path of the claim.
    fn claim_path(&self) -> String {
        format!("{}/claim", self.marker.path)
    }
}

impl NamespaceOps for CouchNamespace {
    fn words(&self) -> Words {
        let instead = "remove it, or name a prefix for databases";
        Words { engine: "CouchDB", thing: "database", instead, kept: &[] }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        if self.claim.is_some() {
            return Ok(());
        }
        let path = self.marker.path.clone();
        self.make_database(&path)?;
        let (holder, path) = (ownership::holder(run), self.claim_path());
        let Some(revision) = take_claim(&mut self.client, &path, &holder)? else { return Ok(()) };
        let config = Arc::clone(self.client.config());
        self.claim = Some(Lease::keep(RENEW, Some(revision), move |revision| {
            // Where another has taken it, it must not be taken from that one.
            let Some(ours) = revision.as_deref() else { return };
            let mut client = Client::new(&config, &ConnectOptions::within(RENEW));
            if let Ok(next) = write_claim(&mut client, &path, &holder, Some(ours)) {
                *revision = next;
            }
        }));
        Ok(())
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        // Entries begin with the mark of an id of ours, the claim does not.
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
        let path = self.marker.path.clone();
        self.make_database(&path)?;
        let row = [Value::Text(&collection.name), Value::Text(MADE_BY), Value::Int(now())];
        self.work(&mut Buffers::default()).put(&row, &mut Reply::new())
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        self.work(&mut Buffers::default()).delete(&[Value::Text(name)], &mut Reply::new())
    }

    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        let path = self.client.config().path(&collection.name);
        self.drop_database(&path)?;
        let mut attempts = 0;
        while !self.make_database(&path)? {
            attempts += 1;
            if attempts == ATTEMPTS {
                return Err(self.client.refused(412));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        for (number, index) in collection.indexes.iter().enumerate() {
            // One with fields of the key cannot be asked for by `FindEqual`; see there.
            if index.iter().any(|field| collection.key.contains(field)) {
                continue;
            }
            let mut json = b"{\"type\":\"json\",\"ddoc\":\"kurabe\",\"name\":".to_vec();
            push_text(&mut json, &format!("index_{number}"));
            json.extend_from_slice(b",\"index\":{\"fields\":[");
            for (n, field) in index.iter().enumerate() {
                json.extend_from_slice(if n > 0 { b"," } else { b"" });
                push_text(&mut json, collection.fields[*field].name);
            }
            json.extend_from_slice(b"]}}");
            let status = self.client.post(&format!("{path}/_index"), &json)?;
            if status != 200 && status != 201 {
                return Err(self.client.refused(status));
            }
        }
        Ok(())
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        let path = self.client.config().path(name);
        self.drop_database(&path)
    }

    fn remove_marker(&mut self) -> Result<()> {
        // The claim lies in it: no renewal may come between.
        self.claim.take().map(Lease::stop);
        let path = self.marker.path.clone();
        self.drop_database(&path)
    }
}

impl Drop for CouchNamespace {
    fn drop(&mut self) {
        if let Some(revision) = self.claim.take().and_then(Lease::stop) {
            let path = self.claim_path();
            let _ = self.client.delete(&format!("{path}?rev={revision}"));
        }
    }
}

/// Takes the claim and gives its revision; `None` where this run has it already, by another target on the same server.
fn take_claim(client: &mut Client, path: &str, holder: &str) -> Result<Option<String>> {
    let mut replaced: Option<String> = None;
    // Twice: another may let go, or come, between the two requests.
    for _ in 0..3 {
        if let Some(revision) = write_claim(client, path, holder, replaced.as_deref())? {
            return Ok(Some(revision));
        }
        let status = client.get(path)?;
        if client.is_no_document(status) {
            replaced = None;
            continue;
        }
        client.accept(status)?;
        let claim: Object<'_> = parse(client.answer())?;
        if claim.number("until").is_some_and(|until| until > now()) {
            let by = claim.text("holder").unwrap_or("another run").to_owned();
            return if by == holder { Ok(None) } else { Err(in_use(&by)) };
        }
        replaced = claim.get("_rev").and_then(Json::text).map(ToOwned::to_owned);
    }
    Err(in_use("another run, just now"))
}

fn in_use(by: &str) -> Error {
    Error::new(ErrorKind::InUse, format!("CouchDB: is in use by {by}"))
        .hint("wait for it to end; if it was killed, its claim ends within 60 s")
}

/// Writes the claim on top of a revision of it, or where there is none; gives the new one, or nothing where another
/// came first.
fn write_claim(client: &mut Client, path: &str, holder: &str, on: Option<&str>) -> Result<Option<String>> {
    let mut json = Vec::new();
    let mut writer = Writer::new(&mut json, on);
    push_text(writer.name("holder"), holder);
    let until = now() + CLAIM.as_secs() as i64;
    // Writing to a vector cannot fail.
    let _ = write!(writer.name("until"), "{until}");
    writer.end();
    let status = client.put(path, Some(&json))?;
    match status {
        201 | 202 => {
            let revision = parse::<Object<'_>>(client.answer())?.text("rev").map(ToOwned::to_owned);
            revision
                .map(Some)
                .ok_or_else(|| Error::mismatch("the server took a document and named no revision"))
        }
        409 => Ok(None),
        _ => Err(client.refused(status)),
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    ownership::now().as_secs() as i64
}
