//! What the server says of itself.
//!
//! Durability. CouchDB 3 writes each change through to the disk before it answers 201; before that the setting
//! `delayed_commits` decided, by which a change was written through within a second (its default from 1.0 on; off since
//! 2.0). See "Base Configuration" of the manual of 2.1 and the release notes of 3.0. A cluster answers 201 when more than
//! half of the copies have the change.
//!
//! PouchDB Server is a program of Node.js on one of several stores, and names it in its greeting. On LevelDB nothing asks
//! for `sync`: `pouchdb-adapter-leveldb-core` 7 gives its batches no options, and `leveldown` takes `sync` as false then
//! (`BooleanProperty(env, options, "sync", false)` in its `binding.cc`). LevelDB hands each change to the system before
//! it answers, so that it survives the server's crash and not the machine's ("Synchronous Writes" of LevelDB's
//! `doc/index.md`).

use super::document::{Object, parse};
use super::http::Client;
use crate::prelude::*;

/// Room in a document for all but its largest value: names, numbers, the id.
const AROUND: u64 = 1_024;

/// What a server is, by its greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    CouchDb {
        version: String,
    },
    /// With the names of its stores: `leveldb`.
    PouchServer {
        version: String,
        stores: Vec<String>,
    },
}

impl Kind {
    /// Reads `GET /`.
    pub(super) fn ask(client: &mut Client) -> Result<Self> {
        let status = client.get("/")?;
        client.accept(status)?;
        Self::of(client.answer()).ok_or_else(|| {
            Error::new(
                ErrorKind::Protocol,
                format!("what answers at {} is not CouchDB but another HTTP server", client.config().place),
            )
            .hint("are host and port right?")
        })
    }

    fn of(greeting: &[u8]) -> Option<Self> {
        let object: Object<'_> = parse(greeting).ok()?;
        let version = object.text("version")?.to_owned();
        if object.get("couchdb").is_some() {
            return Some(Self::CouchDb { version });
        }
        object.get("express-pouchdb")?;
        // The one member that is a list.
        let greeting: serde_json::Value = serde_json::from_slice(greeting).ok()?;
        let stores = greeting.get("pouchdb-adapters").and_then(serde_json::Value::as_array);
        let stores = stores.into_iter().flatten().filter_map(|store| store.as_str().map(ToOwned::to_owned));
        Some(Self::PouchServer { version, stores: stores.collect() })
    }
}

/// Asks for all that decides figures.
pub(super) fn describe(client: &mut Client, kind: &Kind) -> Result<ServerFacts> {
    let transport = if client.config().tls.is_some() { "TCP with TLS" } else { "TCP" };
    let mut facts = ServerFacts {
        engine: "CouchDB".to_owned(),
        client: "ureq 3.5.1".to_owned(),
        transport: transport.to_owned(),
        notes: vec![
            "a change, a replacement and a removal are two requests each: the document is read for its revision first"
                .to_owned(),
            "bytes are stored as base64 within JSON, a third more than they are".to_owned(),
        ],
        ..ServerFacts::default()
    };
    match kind {
        Kind::CouchDb { version } => {
            facts.version.clone_from(version);
            couchdb(client, major(version), &mut facts)?;
        }
        Kind::PouchServer { version, stores } => {
            "PouchDB Server".clone_into(&mut facts.engine);
            facts.version.clone_from(version);
            pouchdb(client, stores, &mut facts)?;
        }
    }
    Ok(facts)
}

fn couchdb(client: &mut Client, major: u64, facts: &mut ServerFacts) -> Result<()> {
    let root = if major < 2 { "/_config" } else { "/_node/_local/_config" };
    let couch = section(client, root, "couchdb")?;
    let cluster = section(client, root, "cluster")?;
    let http = section(client, root, if major < 2 { "httpd" } else { "chttpd" })?;
    if couch.is_none() {
        facts.notes.push("its settings could not be read: that takes a server administrator".to_owned());
    }
    let known = couch.is_some();
    let [couch, cluster, http] = [couch, cluster, http].map(Option::unwrap_or_default);
    let delayed = couch.value("delayed_commits");
    let nodes = if major < 2 { 1 } else { nodes(client)? };
    facts.durability = match (major, delayed, known) {
        (3.., ..) => Some(DurabilityClass::Synced),
        (_, Some("true"), _) => Some(DurabilityClass::PeriodicSync),
        (_, Some(_), _) | (2, None, true) => Some(DurabilityClass::Synced),
        (_, None, true) => Some(DurabilityClass::PeriodicSync),
        (_, None, false) => {
            facts
                .notes
                .push("without its settings nothing is known of when it writes to the disk".to_owned());
            None
        }
    };
    if let Some(delayed) = delayed.filter(|_| major < 3) {
        facts.durability_settings.push(Setting::new("delayed_commits", delayed));
    }
    // Three copies are CouchDB's default, and there are no more than nodes.
    let copies = cluster.value("n").and_then(|n| n.parse().ok()).unwrap_or(3).min(nodes);
    if copies / 2 + 1 > 1 && facts.durability == Some(DurabilityClass::Synced) {
        facts.durability = Some(DurabilityClass::Replicated);
    }
    facts.durability_settings.push(Setting::new("copies of each document", copies.to_string()));
    facts.settings.push(Setting::new("nodes", nodes.to_string()));
    for (name, section) in
        [("q", &cluster), ("n", &cluster), ("max_dbs_open", &couch), ("file_compression", &couch)]
    {
        facts.settings.extend(section.value(name).map(|value| Setting::new(name, value)));
    }
    // 8 MB since 3.0 and 4 GB before, where nobody set it (release notes of 3.0).
    let (most, by) = match couch.value("max_document_size").and_then(|size| size.parse().ok()) {
        Some(most) => (most, "max_document_size"),
        None if major < 3 => (4_294_967_296, "max_document_size, its default"),
        None => (8_000_000, "max_document_size, its default"),
    };
    limit_documents(facts, most, by);
    facts.limits.request_bytes = http
        .value("max_http_request_size")
        .and_then(|size| size.parse().ok())
        .map(|most| Limit::new(most, "max_http_request_size"));
    // 2048 is the default of MochiWeb, its HTTP server ("Performance" of the manual).
    let (most, set_by) = match (http.value("max_connections"), http.value("server_options").and_then(most_of))
    {
        (_, Some(most)) => (most, "server_options, max".to_owned()),
        (Some(most), None) if most.parse::<u64>().is_ok() => {
            (most.parse().unwrap_or(2_048), "max_connections".to_owned())
        }
        _ => (2_048, "server_options, max: its default".to_owned()),
    };
    facts.limits.connections = Some(Limit::new(most.max(1), set_by));
    Ok(())
}

fn pouchdb(client: &mut Client, stores: &[String], facts: &mut ServerFacts) -> Result<()> {
    let store = stores.first().map_or("", String::as_str);
    let adapter = if store.is_empty() { "unknown" } else { store };
    facts.settings.push(Setting::new("pouchdb-adapters", adapter));
    facts.notes.push("it stands in for CouchDB: its figures are not those of Apache CouchDB".to_owned());
    facts.durability = match store {
        "leveldb" => {
            facts
                .durability_settings
                .push(Setting::new("LevelDB's sync", "false (leveldown's default; PouchDB does not set it)"));
            Some(DurabilityClass::OsCache)
        }
        "memory" => Some(DurabilityClass::Memory),
        other => {
            facts.notes.push(format!("nothing is known of when its store ({other}) writes to the disk"));
            None
        }
    };
    let couch = section(client, "/_config", "couchdb")?.unwrap_or_default();
    if let Some(most) = couch.value("max_document_size").and_then(|size| size.parse().ok()) {
        limit_documents(facts, most, "max_document_size");
    }
    Ok(())
}

/// The largest value of bytes in a document of at most so many.
fn limit_documents(facts: &mut ServerFacts, most: u64, by: &str) {
    let set_by = format!("{by} ({most}), in base64 and with {AROUND} bytes around it");
    facts.limits.value_bytes = Some(Limit::new((most.saturating_sub(AROUND) / 4 * 3).max(1), set_by));
}

/// One section of the settings; none where this user may not read it or the server has none. One by one, since others
/// hold passwords.
fn section(client: &mut Client, root: &str, name: &str) -> Result<Option<Section>> {
    let status = client.get(&format!("{root}/{name}"))?;
    if status != 200 {
        return Ok(None);
    }
    Ok(serde_json::from_slice(client.answer()).ok().map(Section))
}

#[derive(Debug, Default)]
struct Section(serde_json::Map<String, serde_json::Value>);

impl Section {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(serde_json::Value::as_str)
    }
}

/// How many nodes the cluster has.
fn nodes(client: &mut Client) -> Result<usize> {
    let status = client.get("/_membership")?;
    if status != 200 {
        return Ok(1);
    }
    let answer: serde_json::Value = parse(client.answer())?;
    Ok(answer.get("cluster_nodes").and_then(serde_json::Value::as_array).map_or(1, Vec::len).max(1))
}

/// The number of `{max, N}` among Erlang's options.
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
    fn a_greeting_says_what_the_server_is() {
        let couch = br#"{"couchdb":"Welcome","version":"3.3.3","git_sha":"x","features":["a","b"],"vendor":{"name":"v"}}"#;
        assert_eq!(Kind::of(couch), Some(Kind::CouchDb { version: "3.3.3".to_owned() }));
        let pouch = br#"{"express-pouchdb":"Welcome!","version":"4.2.0","pouchdb-adapters":["leveldb"]}"#;
        let expected = Kind::PouchServer { version: "4.2.0".to_owned(), stores: vec!["leveldb".to_owned()] };
        assert_eq!(Kind::of(pouch), Some(expected));
        for other in [&b"<html>"[..], b"{}", br#"{"version":"8.1","cluster_name":"elasticsearch"}"#, b"[1]"] {
            assert_eq!(Kind::of(other), None);
        }
    }

    #[test]
    fn erlangs_options_hold_a_number() {
        assert_eq!(most_of("[{backlog, 128}, {acceptor_pool_size, 16}, {max, 4096}]"), Some(4_096));
        assert_eq!(most_of("[{backlog, 128}]"), None);
        assert_eq!((major("3.3.3"), major("2.1.0-abc"), major("x")), (3, 2, 0));
    }
}
