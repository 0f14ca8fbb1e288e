//! Server facts: version, durability, settings and limits.

use super::bson::{Document, Element, Raw};
use super::client::Link;
use super::concerns::{Acknowledged, WriteConcern};
use super::config::Config;
use super::deployment::Deployment;
use super::durability::{Evidence, durability};
use super::writer::Writer;
use crate::prelude::*;
use crate::wire::Peer as _;
use kurabe_core::ErrorKind::{ConnectionLost, Protocol, Timeout, Unreachable};

const CLIENT: &str = "Kurabe's lean client";

/// Bytes of a document reserved for its names and its other fields.
const AROUND: u64 = 4_096;

/// Queries the server. Facts that this user may not read are omitted, and the durability class is then the lower one.
pub(super) fn read(link: &mut Link, config: &Config, deployment: &Deployment) -> Result<ServerFacts> {
    let mut ask = |command: &dyn Fn(&mut Writer)| match link.ask(command) {
        // After a lost connection the next command would fail too.
        Err(error) if matches!(error.kind(), ConnectionLost | Protocol | Timeout | Unreachable) => Err(error),
        answer => Ok(answer.unwrap_or_default()),
    };
    let status: Document = ask(&|out| {
        out.int("serverStatus", 1);
    })?;
    let options: Document = ask(&|out| {
        out.int("getCmdLineOpts", 1);
    })?;
    let defaults: Document = ask(&|out| {
        out.int("getDefaultRWConcern", 1);
    })?;
    let interval: Document = ask(&|out| {
        out.int("getParameter", 1).int("journalCommitInterval", 1);
    })?;
    let connection: Document = ask(&|out| {
        out.int("connectionStatus", 1).bool("showPrivileges", true);
    })?;
    let status = status.raw();
    let parsed = options.raw().document("parsed");
    let journal = parsed.and_then(|parsed| parsed.document("storage")?.document("journal"));
    let engine = status.document("storageEngine").and_then(|engine| engine.text("name"));
    let evidence = Evidence {
        deployment,
        storage_engine: engine.map(ToOwned::to_owned),
        journal: journal.and_then(|journal| journal.bool("enabled")),
        default: default_concern(defaults.raw()),
        asked: &config.writes,
    };
    let mut notes = Vec::new();
    let class = durability(&evidence, &mut notes);
    let commit_interval = interval.raw().number("journalCommitInterval");
    let commit_interval = commit_interval.or_else(|| journal?.number("commitIntervalMs"));
    let (w, journal) = concern_settings(&config.writes, evidence.default.as_ref());
    let durability_settings = known([
        ("w", Some(w)),
        ("j", journal),
        ("storageEngine", evidence.storage_engine.clone()),
        ("storage.journal.enabled", evidence.journal.map(|on| on.to_string())),
        ("journalCommitInterval", commit_interval.map(|ms| format!("{ms} ms"))),
        ("replicaSet", deployment.hello.set.clone()),
    ]);

    notes.push(
        "Timestamps are stored as whole numbers of microseconds: BSON dates have milliseconds.".to_owned(),
    );
    if let Some(preference) = &config.preference {
        let word = preference.name();
        notes.push(format!(
            "Reads use readPreference={word}, in a replica set over a second connection of each client. A stale read \
             from a secondary fails its trial."
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
        transport: transport(link),
        durability: Some(class),
        durability_settings,
        settings: settings(config, deployment, status)
            .into_iter()
            .chain(link.times.map(|times| times.login()))
            .collect(),
        limits: limits(deployment, status),
        identity: deployment.hello.process.as_ref().map(|process| ServerIdentity {
            server: format!("process {process:02x?}"),
            database: config.database.clone(),
        }),
        no_tables: missing_actions(connection.raw(), &config.database),
        notes,
        ..ServerFacts::default()
    })
}

/// What a run does in the database besides reading.
const ACTIONS: [&str; 6] =
    ["insert", "update", "remove", "createCollection", "createIndex", "dropCollection"];

/// Why a run can make no collections: what the user may not do in the database. Servers that do not say it are not asked further.
fn missing_actions(connection: Raw<'_>, database: &str) -> Option<String> {
    let info = connection.document("authInfo")?;
    let privileges = info.array("authenticatedUserPrivileges")?;
    let user = info.array("authenticatedUsers")?.values().find_map(|user| match user {
        Element::Document(user) => user.text("user").map(ToOwned::to_owned),
        _ => None,
    })?;
    let mut allowed: Vec<String> = Vec::new();
    for privilege in privileges.values() {
        let Element::Document(privilege) = privilege else { continue };
        let Some(resource) = privilege.document("resource") else { continue };
        let is_of =
            |name: &str, wanted: &str| resource.text(name).is_some_and(|of| of.is_empty() || of == wanted);
        if resource.bool("anyResource") == Some(true) || is_of("db", database) && is_of("collection", "") {
            allowed.extend(privilege.texts("actions"));
        }
    }
    let missing: Vec<&str> =
        ACTIONS.into_iter().filter(|action| !allowed.iter().any(|known| known == action)).collect();
    (!missing.is_empty())
        .then(|| format!("user {user} may not {} in database {database}", missing.join(", ")))
}

/// The transport, and the compression of what is sent.
fn transport(link: &Link) -> String {
    let transport = link.wire.stream().transport();
    match &link.compressor {
        None => transport,
        Some(compressor) => format!("{transport}, compressed by {}", compressor.method().name()),
    }
}

/// The cluster's default write concern (since 4.4).
fn default_concern(defaults: Raw<'_>) -> Option<WriteConcern> {
    let concern = defaults.document("defaultWriteConcern")?;
    let w = match concern.get("w").ok()?? {
        Element::Text(text) => Some(Acknowledged::of(std::str::from_utf8(text).ok()?)),
        other => other.number().and_then(|n| u32::try_from(n).ok()).map(Acknowledged::By),
    };
    Some(WriteConcern { w, journal: concern.bool("j"), timeout: None })
}

/// `w` and `j`, as shown, with their origin.
fn concern_settings(asked: &WriteConcern, default: Option<&WriteConcern>) -> (String, Option<String>) {
    let origin = |asked: bool| if asked { "" } else { " (the server's default)" };
    let w = asked.w.as_ref().or(default.and_then(|default| default.w.as_ref()));
    let journal = asked.journal.or(default.and_then(|default| default.journal));
    let w = match w {
        None => "1".to_owned(),
        Some(Acknowledged::By(n)) => n.to_string(),
        Some(Acknowledged::As(name)) => name.clone(),
        Some(Acknowledged::Majority) => "majority".to_owned(),
    };
    let journal = journal.map(|journal| format!("{journal}{}", origin(asked.journal.is_some())));
    (w + origin(asked.w.is_some()), journal)
}

/// The settings that have a value.
fn known<const N: usize>(settings: [(&str, Option<String>); N]) -> Vec<Setting> {
    settings.into_iter().filter_map(|(name, value)| Some(Setting::new(name, value?))).collect()
}

/// Other settings that affect results.
fn settings(config: &Config, deployment: &Deployment, status: Raw<'_>) -> Vec<Setting> {
    let cache = status.at(&["wiredTiger", "cache", "maximum bytes configured"]);
    let cache = cache.and_then(|cache| cache.number());
    let retries = match (config.retries_writes, deployment.no_transactions.is_none()) {
        (false, _) => "false (each request is sent once)",
        (true, true) => "true (a write is sent again once if the primary is lost)",
        (true, false) => "true, but this server knows no retryable writes: each request is sent once",
    };
    known([
        ("MongoDB version it is like", deployment.like.clone()),
        ("kind", deployment.hello.is_router.then(|| "mongos".to_owned())),
        ("wiredTiger cache", cache.map(|bytes| format!("{bytes} B"))),
        ("readConcernLevel", config.reads.clone()),
        ("readPreference", config.preference.as_ref().map(|preference| preference.name().to_owned())),
        ("compressors", config.compressor_names()),
        ("retryWrites", Some(retries.to_owned())),
    ])
}

fn limits(deployment: &Deployment, status: Raw<'_>) -> Limits {
    let connection = |name: &str| status.document("connections")?.size(name);
    let (current, available) = (connection("current"), connection("available"));
    let document = deployment.hello.document_bytes;
    Limits {
        connections: current.zip(available).map(|(current, available)| {
            Limit::new(current + available, "net.maxIncomingConnections".to_owned())
        }),
        // The count includes this connection.
        connections_in_use: current.map(|open| open.saturating_sub(1)),
        value_bytes: document.map(|most| {
            let set_by = format!("maxBsonObjectSize, less {AROUND} bytes for the rest of a document");
            Limit::new(most.saturating_sub(AROUND), set_by)
        }),
        // A command is a document too; the larger maxMessageSizeBytes applies to several documents in one message.
        request_bytes: document
            .min(deployment.hello.message_bytes.or(document))
            .map(|most| Limit::new(most, "maxBsonObjectSize (a command is a document)")),
        parameters: None,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::Hello;
    use super::*;

    #[test]
    fn privileges_say_what_a_run_may_not_do() {
        let status = |db: &str, collection: &str, actions: &[&str]| {
            let document = Document::of(|out| {
                out.begin("authInfo").begin_array("authenticatedUsers");
                out.begin("0").text("user", "ann").end().end();
                out.begin_array("authenticatedUserPrivileges").begin("0");
                out.begin("resource").text("db", db).text("collection", collection).end();
                out.texts("actions", actions.iter().copied()).end().end().end();
            });
            missing_actions(document.raw(), "shop")
        };
        let why =
            "user ann may not update, remove, createCollection, createIndex, dropCollection in database shop";
        for (db, collection, actions, expected) in [
            ("shop", "", &ACTIONS[..], None),
            ("", "", &ACTIONS[..], None),
            ("shop", "", &["find", "insert"][..], Some(why)),
        ] {
            assert_eq!(status(db, collection, actions).as_deref(), expected, "{db} {collection}");
        }
        for (db, collection) in [("other", ""), ("shop", "system.js")] {
            assert!(status(db, collection, &ACTIONS).is_some(), "{db} {collection}");
        }
        // Of a server without users, or one that does not say.
        assert_eq!(missing_actions(Document::of(|_| {}).raw(), "shop"), None);
    }

    #[test]
    fn limits_are_the_servers_own() {
        let (document_bytes, message_bytes) = (Some(16_777_216), Some(48_000_000));
        let hello = Hello { document_bytes, message_bytes, ..Hello::default() };
        let deployment = Deployment { hello, ..Deployment::default() };
        let status = Document::of(|out| {
            out.begin("connections").int("current", 5).int("available", 95).end();
        });
        let limits = limits(&deployment, status.raw());
        assert_eq!(limits.connections.map(|limit| limit.most), Some(100));
        assert_eq!(limits.connections_in_use, Some(4));
        assert_eq!(limits.value_bytes.map(|limit| limit.most), Some(16_777_216 - AROUND));
        assert_eq!(limits.request_bytes.map(|limit| limit.most), Some(16_777_216));
    }
}
