//! Server facts: version, durability, settings and limits.
//!
//! Durability. CouchDB 3 syncs each change to the disk before it answers 201. Before version 3 the setting
//! `delayed_commits` decided: if on, a change was synced within a second (on by default since 1.0, off since 2.0). See
//! "Base Configuration" of the manual of 2.1 and the release notes of 3.0. A cluster answers 201 when more than half of
//! the copies have the change.
//!
//! PouchDB Server is a Node.js program on one of several stores, and names it in its greeting. On LevelDB it does not
//! use `sync`: `pouchdb-adapter-leveldb-core` 7 sets no options on its batches, and `leveldown`'s default is false
//! (`BooleanProperty(env, options, "sync", false)` in its `binding.cc`). LevelDB passes each change to the operating
//! system before it answers, so a change survives a crash of the server but not of the machine ("Synchronous Writes" of
//! LevelDB's `doc/index.md`).

use super::document::{Object, parse};
use super::errors;
use super::http::Client;
use crate::prelude::*;
use crate::reported::Reported;
use serde_json::{Map, Value};

const CLIENT: &str = "Kurabe's lean client";

/// Bytes of a document reserved for names, numbers and the id.
const AROUND: u64 = 1_024;

/// The kind of server, from its greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    version: String,
    /// What it calls itself, unlike all others.
    uuid: Option<String>,
    /// The names of its stores (`leveldb`), if it is PouchDB Server.
    stores: Option<Vec<String>>,
}

impl Kind {
    /// Queries the kind with `GET /`.
    pub(super) fn ask(client: &mut Client) -> Result<Self> {
        let status = client.get("/")?;
        client.accept(status)?;
        Self::of(client.answer()).ok_or_else(|| {
            Error::new(
                ErrorKind::Protocol,
                format!(
                    "the server at {} is not CouchDB but another HTTP server",
                    client.config().server.place
                ),
            )
            .hint("are host and port right?")
        })
    }

    fn of(greeting: &[u8]) -> Option<Self> {
        let object: Object<'_> = parse(greeting).ok()?;
        let version = object.text("version")?.to_owned();
        let uuid = object.text("uuid").map(ToOwned::to_owned);
        if object.get("couchdb").is_some() {
            return Some(Self { version, uuid, stores: None });
        }
        object.get("express-pouchdb")?;
        // `Object` does not keep lists.
        let greeting: Value = serde_json::from_slice(greeting).ok()?;
        let stores = greeting.get("pouchdb-adapters").and_then(Value::as_array);
        let stores = stores.into_iter().flatten().filter_map(|store| store.as_str().map(ToOwned::to_owned));
        Some(Self { version, uuid, stores: Some(stores.collect()) })
    }
}

/// Queries version, durability, settings and limits.
pub(super) fn describe(client: &mut Client, kind: &Kind) -> Result<ServerFacts> {
    let mut facts = ServerFacts {
        engine: if kind.stores.is_some() { "PouchDB Server" } else { "CouchDB" }.to_owned(),
        version: kind.version.clone(),
        client: CLIENT.to_owned(),
        transport: client.config().server.transport().to_owned(),
        identity: kind.uuid.as_ref().map(|uuid| ServerIdentity {
            server: format!("uuid {uuid}"),
            database: client.config().prefix.clone(),
        }),
        notes: vec![
            "updates, replacements and deletions are two requests each: one reads the document's revision"
                .to_owned(),
            "bytes are stored as base64 within JSON, which takes a third more space".to_owned(),
        ],
        ..ServerFacts::default()
    };
    let login = if client.config().user.is_some() { "Basic, with each request" } else { "none" };
    facts.settings.push(Setting::new(kurabe_core::facts::LOGIN, login));
    let may_create = is_administrator(client)?;
    facts.no_tables = (!may_create).then(|| errors::no_administrator(client.config()).to_string());
    match &kind.stores {
        None => couchdb(client, major(&kind.version), &mut facts)?,
        Some(stores) => pouchdb(client, stores, &mut facts)?,
    }
    Ok(facts)
}

/// Whether the user is a server administrator: only those may create databases. PouchDB Server 4.2.0 exits if another user tries.
pub(super) fn is_administrator(client: &mut Client) -> Result<bool> {
    let session: Value = client.read("/_session")?;
    let roles = session.pointer("/userCtx/roles").and_then(Value::as_array);
    Ok(roles.is_some_and(|roles| roles.iter().any(|role| role == "_admin")))
}

fn couchdb(client: &mut Client, major: u64, facts: &mut ServerFacts) -> Result<()> {
    let root = if major < 2 { "/_config" } else { "/_node/_local/_config" };
    let couch = section(client, root, "couchdb")?;
    let cluster = section(client, root, "cluster")?;
    let http = section(client, root, if major < 2 { "httpd" } else { "chttpd" })?;
    if couch.is_none() {
        facts.notes.push("its settings could not be read: this needs a server administrator".to_owned());
    }
    let known = couch.is_some();
    let [couch, cluster, http] = [couch, cluster, http].map(Option::unwrap_or_default);
    let delayed = couch.get("delayed_commits");
    let nodes = if major < 2 { 1 } else { nodes(client)? };
    facts.durability = match (major, delayed, known) {
        (3.., ..) => Some(DurabilityClass::Synced),
        (_, Some("true"), _) => Some(DurabilityClass::PeriodicSync),
        (_, Some(_), _) | (2, None, true) => Some(DurabilityClass::Synced),
        (_, None, true) => Some(DurabilityClass::PeriodicSync),
        (_, None, false) => {
            facts.notes.push("without its settings it is unknown when it syncs to the disk".to_owned());
            None
        }
    };
    if let Some(delayed) = delayed.filter(|_| major < 3) {
        facts.durability_settings.push(Setting::new("delayed_commits", delayed));
    }
    // CouchDB's default is three copies, but at most one for each node.
    let copies = cluster.number("n").unwrap_or(3).min(nodes);
    if copies / 2 + 1 > 1 && facts.durability == Some(DurabilityClass::Synced) {
        facts.durability = Some(DurabilityClass::Replicated);
    }
    facts.durability_settings.push(Setting::new("copies of each document", copies.to_string()));
    facts.settings.push(Setting::new("nodes", nodes.to_string()));
    facts.settings.extend(cluster.pick(&["q", "n"]));
    facts.settings.extend(couch.pick(&["max_dbs_open", "file_compression"]));
    // The default is 8 MB since 3.0, and was 4 GB before (release notes of 3.0).
    let (most, by) = match couch.number("max_document_size") {
        Some(most) => (most, "max_document_size"),
        None if major < 3 => (4_294_967_296, "max_document_size, its default"),
        None => (8_000_000, "max_document_size, its default"),
    };
    limit_documents(facts, most, by);
    let set_by = "max_http_request_size";
    facts.limits.request_bytes = http.number(set_by).map(|most| Limit::new(most, set_by));
    // The default of MochiWeb, CouchDB's HTTP server, is 2048 ("Performance" of the manual).
    let (most, set_by) = match (http.get("server_options").and_then(most_of), http.number("max_connections"))
    {
        (Some(most), _) => (most, "server_options, max"),
        (None, Some(most)) => (most, "max_connections"),
        (None, None) => (2_048, "server_options, max: its default"),
    };
    facts.limits.connections = Some(Limit::new(most.max(1), set_by));
    Ok(())
}

fn pouchdb(client: &mut Client, stores: &[String], facts: &mut ServerFacts) -> Result<()> {
    let store = stores.first().map_or("", String::as_str);
    let adapter = if store.is_empty() { "unknown" } else { store };
    facts.settings.push(Setting::new("pouchdb-adapters", adapter));
    facts.notes.push("it replaces CouchDB: its results are not those of Apache CouchDB".to_owned());
    facts.durability = match store {
        "leveldb" => {
            facts
                .durability_settings
                .push(Setting::new("LevelDB's sync", "false (leveldown's default; PouchDB does not set it)"));
            Some(DurabilityClass::OsCache)
        }
        "memory" => Some(DurabilityClass::Memory),
        other => {
            facts.notes.push(format!("it is unknown when its store ({other}) syncs to the disk"));
            None
        }
    };
    let couch = section(client, "/_config", "couchdb")?.unwrap_or_default();
    if let Some(most) = couch.number("max_document_size") {
        limit_documents(facts, most, "max_document_size");
    }
    Ok(())
}

/// Sets the limit of a binary value, from the limit of a document.
fn limit_documents(facts: &mut ServerFacts, most: u64, by: &str) {
    let set_by = format!("{by} ({most}), in base64 and with {AROUND} bytes around it");
    facts.limits.value_bytes = Some(Limit::new((most.saturating_sub(AROUND) / 4 * 3).max(1), set_by));
}

/// Reads one section of the settings; `None` if this user may not read it or it does not exist. Other sections, which
/// contain passwords, are not read.
fn section(client: &mut Client, root: &str, name: &str) -> Result<Option<Reported>> {
    let status = client.get(&format!("{root}/{name}"))?;
    let values: Option<Map<String, Value>> = serde_json::from_slice(client.answer()).ok();
    let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
    Ok(values.filter(|_| status == 200).map(|values| values.into_iter().filter_map(text).collect()))
}

/// The number of nodes of the cluster.
fn nodes(client: &mut Client) -> Result<u64> {
    let status = client.get("/_membership")?;
    if status != 200 {
        return Ok(1);
    }
    let answer: Value = parse(client.answer())?;
    Ok(answer.get("cluster_nodes").and_then(Value::as_array).map_or(1, Vec::len).max(1) as u64)
}

/// The number `N` of `{max, N}` in a list of Erlang options.
fn most_of(options: &str) -> Option<u64> {
    let (_, rest) = options.split_once("{max,")?;
    rest.split('}').next()?.trim().parse().ok()
}

fn major(version: &str) -> u64 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_read_from_the_greeting() {
        let uuid = || Some("u1".to_owned());
        let couch = br#"{"couchdb":"Welcome","version":"3.3.3","uuid":"u1","git_sha":"x","features":["a","b"],"vendor":{"name":"v"}}"#;
        assert_eq!(Kind::of(couch), Some(Kind { version: "3.3.3".to_owned(), uuid: uuid(), stores: None }));
        let pouch =
            br#"{"express-pouchdb":"Welcome!","version":"4.2.0","uuid":"u1","pouchdb-adapters":["leveldb"]}"#;
        let expected =
            Kind { version: "4.2.0".to_owned(), uuid: uuid(), stores: Some(vec!["leveldb".to_owned()]) };
        assert_eq!(Kind::of(pouch), Some(expected));
        for other in [&b"<html>"[..], b"{}", br#"{"version":"8.1","cluster_name":"elasticsearch"}"#, b"[1]"] {
            assert_eq!(Kind::of(other), None);
        }
    }

    #[test]
    fn numbers_are_read_from_erlang_options_and_versions() {
        assert_eq!(most_of("[{backlog, 128}, {acceptor_pool_size, 16}, {max, 4096}]"), Some(4_096));
        assert_eq!(most_of("[{backlog, 128}]"), None);
        assert_eq!((major("3.3.3"), major("2.1.0-abc"), major("x")), (3, 2, 0));
    }
}
