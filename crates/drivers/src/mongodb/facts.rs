//! Server facts: version, durability, settings and limits.

use super::config::Config;
use super::durability::{Evidence, durability};
use super::link::Link;
use super::session::{number, whole};
use crate::clients::MONGODB as CLIENT;
use crate::prelude::*;
use kurabe_core::ErrorKind::{ConnectionLost, Protocol, Timeout, Unreachable};
use mongodb::bson::{Bson, Document, RawDocumentBuf, rawdoc};
use mongodb::options::{Acknowledgment, ReadConcern, ReadConcernLevel, TransactionOptions, WriteConcern};

/// Bytes of a document reserved for its names and its other fields.
const AROUND: u64 = 4_096;

/// The kind of server, queried once per driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deployment {
    pub(super) engine: &'static str,
    pub(super) version: String,
    /// The MongoDB version that another server claims compatibility with.
    pub(super) like: Option<String>,
    pub(super) replica_set: Option<String>,
    /// Data-bearing members, as far as the server reports them.
    pub(super) members: usize,
    pub(super) mongos: bool,
    /// Why it has no transactions; `None` if it has them.
    pub(super) no_transactions: Option<String>,
    pub(super) document_bytes: Option<u64>,
    pub(super) message_bytes: Option<u64>,
}

impl Deployment {
    pub(super) fn ask(link: &mut Link) -> Result<Self> {
        let hello = link.administer(rawdoc! { "hello": 1 })?;
        let build = link.administer(rawdoc! { "buildInfo": 1 })?;
        Ok(Self::from(&hello, &build))
    }

    fn from(hello: &Document, build: &Document) -> Self {
        let text = |document: &Document, name: &str| document.get_str(name).ok().map(ToOwned::to_owned);
        let version = text(build, "version").unwrap_or_else(|| "0 (not said)".to_owned());
        // FerretDB 1 reports its version in a field, FerretDB 2 in a nested document.
        let ferret = text(build, "ferretdbVersion")
            .or_else(|| build.get_document("ferretdb").ok().and_then(|document| text(document, "version")));
        let replica_set = text(hello, "setName");
        let mongos = hello.get_str("msg").is_ok_and(|kind| kind == "isdbgrid");
        let sessions = hello.contains_key("logicalSessionTimeoutMinutes");
        let no_transactions = match (&ferret, replica_set.is_some() || mongos) {
            (Some(_), _) => Some("FerretDB has no transactions of several requests".to_owned()),
            (None, true) if sessions => None,
            (None, _) => {
                Some("MongoDB has transactions on replica sets only, and this server is in none".to_owned())
            }
        };
        let members = hello.get_array("hosts").map_or(0, Vec::len);
        let (engine, version, like) = match ferret {
            Some(ferret) => ("FerretDB", ferret.trim_start_matches('v').to_owned(), Some(version)),
            None => ("MongoDB", version, None),
        };
        Self {
            engine,
            version,
            like,
            replica_set,
            members,
            mongos,
            no_transactions,
            document_bytes: size(hello, "maxBsonObjectSize"),
            message_bytes: size(hello, "maxMessageSizeBytes"),
        }
    }
}

/// Queries the server. Facts that this user may not read are omitted, and the durability class is then the lower one.
pub(super) fn read(link: &mut Link, deployment: &Deployment) -> Result<ServerFacts> {
    let config = link.shared.config.clone();
    let mut ask = |command: RawDocumentBuf| match link.administer(command) {
        // After a lost connection the next command would fail too.
        Err(error) if matches!(error.kind(), ConnectionLost | Protocol | Timeout | Unreachable) => Err(error),
        answer => Ok(answer.unwrap_or_default()),
    };
    let status = ask(rawdoc! { "serverStatus": 1 })?;
    let options = ask(rawdoc! { "getCmdLineOpts": 1 })?;
    let defaults = ask(rawdoc! { "getDefaultRWConcern": 1 })?;
    let interval = ask(rawdoc! { "getParameter": 1, "journalCommitInterval": 1 })?;
    let storage =
        at(&options, &["parsed", "storage"]).and_then(Bson::as_document).cloned().unwrap_or_default();
    let evidence = Evidence {
        deployment,
        storage_engine: at(&status, &["storageEngine", "name"]).and_then(Bson::as_str).map(ToOwned::to_owned),
        journal: at(&storage, &["journal", "enabled"]).and_then(Bson::as_bool),
        default: default_concern(&defaults),
        asked: &config.writes,
    };
    let mut notes = Vec::new();
    let class = durability(&evidence, &mut notes);
    let commit_interval = number(&interval, "journalCommitInterval")
        .or_else(|| number(storage.get_document("journal").unwrap_or(&Document::new()), "commitIntervalMs"));
    let (w, journal) = concern_settings(&config.writes, evidence.default.as_ref());
    let durability_settings = known([
        ("w", Some(w)),
        ("j", journal),
        ("storageEngine", evidence.storage_engine.clone()),
        ("storage.journal.enabled", evidence.journal.map(|on| on.to_string())),
        ("journalCommitInterval", commit_interval.map(|ms| format!("{ms} ms"))),
        ("replicaSet", deployment.replica_set.clone()),
    ]);

    notes.push(
        "Timestamps are stored as whole numbers of microseconds: BSON dates have milliseconds.".to_owned(),
    );
    if let Some((word, _)) = &config.preference {
        notes.push(format!(
            "Reads use readPreference={word}, over connections that the mongodb crate opens for them and keeps. A \
             stale read from a secondary fails its trial."
        ));
    }
    if let Some(size) = config.pool_size {
        notes.push(format!("maxPoolSize={size} is not used: each client has its own connection."));
    }
    if let Some(reason) = &deployment.no_transactions {
        notes.push(format!("Several documents cannot be inserted atomically: {reason}."));
    }
    Ok(ServerFacts {
        engine: deployment.engine.to_owned(),
        version: deployment.version.clone(),
        client: CLIENT.to_owned(),
        transport: config.transport.to_owned(),
        durability: Some(class),
        durability_settings,
        settings: settings(&config, deployment, &status),
        limits: limits(deployment, &status),
        notes,
        ..ServerFacts::default()
    })
}

/// A non-negative number of an answer: a size or a count.
pub(super) fn size(document: &Document, name: &str) -> Option<u64> {
    number(document, name).and_then(|n| u64::try_from(n).ok())
}

/// The value at a path of nested documents.
pub(super) fn at<'d>(document: &'d Document, path: &[&str]) -> Option<&'d Bson> {
    let (last, path) = path.split_last()?;
    path.iter().try_fold(document, |document, name| document.get_document(name).ok())?.get(last)
}

/// The cluster's default write concern (since 4.4).
fn default_concern(defaults: &Document) -> Option<WriteConcern> {
    let concern = defaults.get_document("defaultWriteConcern").ok()?;
    let w = match concern.get("w") {
        Some(Bson::String(text)) => Some(Acknowledgment::from(text.as_str())),
        _ => number(concern, "w").and_then(|n| u32::try_from(n).ok()).map(Acknowledgment::Nodes),
    };
    Some(WriteConcern::builder().w(w).journal(concern.get_bool("j").ok()).build())
}

/// `w` and `j`, as shown, with their origin.
fn concern_settings(asked: &WriteConcern, default: Option<&WriteConcern>) -> (String, Option<String>) {
    let origin = |asked: bool| if asked { "" } else { " (the server's default)" };
    let w = asked.w.as_ref().or(default.and_then(|default| default.w.as_ref()));
    let journal = asked.journal.or(default.and_then(|default| default.journal));
    let w = match w {
        None => "1".to_owned(),
        Some(Acknowledgment::Nodes(n)) => n.to_string(),
        Some(Acknowledgment::Custom(name)) => name.clone(),
        Some(_) => "majority".to_owned(),
    };
    let journal = journal.map(|journal| format!("{journal}{}", origin(asked.journal.is_some())));
    (w + origin(asked.w.is_some()), journal)
}

/// The settings that have a value.
fn known<const N: usize>(settings: [(&str, Option<String>); N]) -> Vec<Setting> {
    settings.into_iter().filter_map(|(name, value)| Some(Setting::new(name, value?))).collect()
}

/// Other settings that affect results.
fn settings(config: &Config, deployment: &Deployment, status: &Document) -> Vec<Setting> {
    let cache = at(status, &["wiredTiger", "cache", "maximum bytes configured"]).and_then(whole);
    known([
        ("MongoDB version it is like", deployment.like.clone()),
        ("kind", deployment.mongos.then(|| "mongos".to_owned())),
        ("wiredTiger cache", cache.map(|bytes| format!("{bytes} B"))),
        ("readConcernLevel", config.reads.clone()),
        ("readPreference", config.preference.as_ref().map(|(word, _)| word.clone())),
        ("compressors", config.compressors.clone()),
        ("retryWrites", Some("false (each request is sent once)".to_owned())),
    ])
}

fn limits(deployment: &Deployment, status: &Document) -> Limits {
    let connection = |name: &str| size(status.get_document("connections").ok()?, name);
    let (current, available) = (connection("current"), connection("available"));
    let document = deployment.document_bytes;
    Limits {
        connections: current.zip(available).map(|(current, available)| Limit {
            // The crate's monitor uses one connection.
            most: (current + available).saturating_sub(1).max(1),
            set_by: "net.maxIncomingConnections, less one for the crate's monitor".to_owned(),
        }),
        // The count includes this connection and the monitor's.
        connections_in_use: current.map(|open| open.saturating_sub(2)),
        value_bytes: document.map(|most| {
            let set_by = format!("maxBsonObjectSize, less {AROUND} bytes for the rest of a document");
            Limit::new(most.saturating_sub(AROUND), set_by)
        }),
        // A command is a document too; the larger maxMessageSizeBytes applies to several documents in one message.
        request_bytes: document
            .min(deployment.message_bytes.or(document))
            .map(|most| Limit::new(most, "maxBsonObjectSize (a command is a document)")),
        parameters: None,
        ..Limits::default()
    }
}

/// The URL's read and write concerns as transaction options.
pub(super) fn transaction_options(config: &Config) -> TransactionOptions {
    let level = config.reads.as_deref().map(|level| match level {
        "majority" => ReadConcernLevel::Majority,
        "snapshot" => ReadConcernLevel::Snapshot,
        other => ReadConcernLevel::Custom(other.to_owned()),
    });
    TransactionOptions::builder()
        .write_concern((config.writes != WriteConcern::default()).then(|| config.writes.clone()))
        .read_concern(level.map(ReadConcern::from))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn deployment_is_read_from_hello_and_build_info() {
        let sizes = doc! { "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000 };
        let ferret = Deployment::from(&sizes, &doc! { "version": "7.0.42", "ferretdbVersion": "v1.24.0" });
        assert_eq!((ferret.engine, ferret.version.as_str()), ("FerretDB", "1.24.0"));
        assert_eq!(ferret.like.as_deref(), Some("7.0.42"));
        assert!(ferret.no_transactions.is_some());
        let build = doc! { "version": "8.0.4" };
        let alone = Deployment::from(&doc! { "logicalSessionTimeoutMinutes": 30 }, &build);
        assert_eq!((alone.engine, alone.version.as_str()), ("MongoDB", "8.0.4"));
        assert!(alone.no_transactions.is_some_and(|reason| reason.contains("replica sets only")));
        let member = doc! {
            "logicalSessionTimeoutMinutes": 30, "setName": "rs", "hosts": ["a:1", "b:1", "c:1"],
        };
        let member = Deployment::from(&member, &build);
        assert_eq!((member.no_transactions, member.members), (None, 3));
        let router =
            Deployment::from(&doc! { "logicalSessionTimeoutMinutes": 30, "msg": "isdbgrid" }, &build);
        assert!(router.mongos && router.no_transactions.is_none());
    }

    #[test]
    fn limits_are_the_servers_own() {
        let hello = doc! { "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000 };
        let deployment = Deployment::from(&hello, &doc! { "version": "8.0.4" });
        let status = doc! { "connections": { "current": 5, "available": 95 } };
        let limits = limits(&deployment, &status);
        assert_eq!(limits.connections.map(|limit| limit.most), Some(99));
        assert_eq!(limits.connections_in_use, Some(3));
        assert_eq!(limits.value_bytes.map(|limit| limit.most), Some(16_777_216 - AROUND));
        assert_eq!(limits.request_bytes.map(|limit| limit.most), Some(16_777_216));
    }
}
