//! Server facts, as reported by the server.

use super::config::Config;
use super::connect::lines;
use super::protocol::Client;
use crate::packed::PACKING;
use crate::prelude::*;
use crate::reported::Reported;
use crate::ttl;
use crate::wire::{Peer, Stream};

/// What a run asks of a server for its collections, by a key that is Kurabe's.
const NEEDED: [&str; 17] = [
    "GET kurabe:none", "SET kurabe:none 1", "DEL kurabe:none", "UNLINK kurabe:none", "TOUCH kurabe:none",
    "EXISTS kurabe:none", "PEXPIRE kurabe:none 1", "HSET kurabe:none 1 1", "HSETNX kurabe:none 1 1",
    "HGET kurabe:none 1", "HGETALL kurabe:none", "HDEL kurabe:none 1", "MSETNX kurabe:none 1", "SCAN 0",
    "DBSIZE", "EVAL 1 1 kurabe:none", "EVALSHA 1 1 kurabe:none",
];

/// Settings that determine durability, and other settings that affect results.
const DURABILITY: [&str; 4] = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save"];
const OTHERS: [&str; 4] = ["maxmemory", "maxmemory-policy", "io-threads", "databases"];
const LIMITS: [&str; 2] = ["proto-max-bulk-len", "timeout"];

pub(super) fn read(client: &mut Client<Stream>, greeting: &Reported, of_url: &Config) -> Result<ServerFacts> {
    let ttl = of_url.ttl;
    let mut notes = Vec::new();
    let info = match client.ask_text(&["INFO"]) {
        Ok(node) => lines(&node),
        Err(error) if error.server_code().is_some() => {
            notes.push(format!("INFO may not be read ({error}): much of this server is unknown"));
            Reported::default()
        }
        Err(error) => return Err(error),
    };
    match info.get("redis_mode").or(greeting.get("mode")) {
        Some("cluster") => {
            return Err(Error::unsupported(
                "the server is a node of a cluster, and clusters are not supported",
            )
            .hint("name a standalone server"));
        }
        Some("sentinel") => {
            return Err(Error::unsupported("the server is a Sentinel, which holds no data").hint(
                "name the server that it watches: SENTINEL GET-MASTER-ADDR-BY-NAME says which one that is",
            ));
        }
        _ => {}
    }
    let mut config = Reported::default();
    let mut forbidden = None;
    for name in DURABILITY.iter().chain(&OTHERS).chain(&LIMITS).chain(&["replica-read-only"]) {
        // One by one: Redis accepts several names only since version 7.
        match client.ask_text(&["CONFIG", "GET", name]) {
            Ok(node) => config.extend(node.pairs()),
            Err(error) if error.server_code().is_some() => forbidden = Some(error),
            Err(error) => return Err(error),
        }
    }
    let is_replica = greeting.get("role").is_some_and(|role| role == "replica" || role == "slave");
    let read_only = is_replica && config.get("replica-read-only") == Some("yes");
    if is_replica && !read_only {
        notes.push("the server is a replica, which usually accepts no writes".to_owned());
    }
    let may_write = client.refused(&NEEDED.map(|words| words.split(' ').collect::<Vec<_>>()))?;
    let durability = durability(&config);
    if let Some(error) = forbidden {
        notes.push(format!(
            "settings may not be read ({error}): the durability of an acknowledged write is unknown"
        ));
    } else if durability.is_none() {
        notes.push("the server does not report appendonly and appendfsync: the durability of an acknowledged write is unknown".to_owned());
    }
    notes.extend(remarks(&config, durability, ttl));
    let mut settings = config.pick(&OTHERS);
    settings.extend(client.times.map(|times| times.login()));
    settings.extend(ttl.map(|seconds| Setting::new("ttl (of the URL)", format!("{seconds} s"))));
    let (engine, version) = engine(&info, greeting);
    Ok(ServerFacts {
        engine,
        version,
        client: concat!("kurabe ", env!("CARGO_PKG_VERSION"), ", RESP3").to_owned(),
        transport: client.wire.stream().transport(),
        durability,
        durability_settings: config.pick(&DURABILITY),
        settings,
        limits: limits(&info, &config),
        identity: info.get("run_id").map(|run_id| ServerIdentity {
            server: format!("run_id {run_id}"),
            database: of_url.database.to_string(),
        }),
        read_only: read_only
            .then(|| "it is a replica (replica-read-only = yes)".to_owned())
            .or_else(|| may_write.map(|why| format!("the user may not write there ({why})"))),
        notes,
        ..ServerFacts::default()
    })
}

/// The engine's name and version. Valkey reports its own version and the Redis version that it is compatible with.
fn engine(info: &Reported, greeting: &Reported) -> (String, String) {
    if let Some(version) = info.get("valkey_version") {
        return ("Valkey".to_owned(), version.to_owned());
    }
    let version = info.get("redis_version").or(greeting.get("version")).unwrap_or("?").to_owned();
    let engine = match info.get("server_name").or(greeting.get("server")).unwrap_or_default() {
        "redis" | "" => "Redis".to_owned(),
        "valkey" => "Valkey".to_owned(),
        // Other servers use the protocol under their own names.
        other => other.chars().filter(|c| !c.is_control()).take(40).collect(),
    };
    (engine, version)
}

/// The durability class; `None` if a setting is unknown. With `always` the log is synced before the answer is sent.
/// Source: `flushAppendOnlyFile` in `src/aof.c`.
fn durability(config: &Reported) -> Option<DurabilityClass> {
    let set = |name: &str| config.get(name);
    let synced = match (set("appendonly")?, set("appendfsync")) {
        ("no", _) => return Some(DurabilityClass::Memory),
        ("yes", Some("no")) => return Some(DurabilityClass::OsCache),
        ("yes", Some("always")) => DurabilityClass::Synced,
        ("yes", Some("everysec")) => DurabilityClass::PeriodicSync,
        _ => return None,
    };
    match (set("no-appendfsync-on-rewrite")?, synced) {
        ("no", _) => Some(synced),
        // Nothing is synced while a child process of the server saves, and the server starts such children by itself.
        ("yes", DurabilityClass::Synced) => Some(DurabilityClass::OsCache),
        // Besides, unsynced data may be in the server's memory, which a crash of the server loses.
        ("yes", _) => Some(DurabilityClass::Memory),
        _ => None,
    }
}

fn remarks(config: &Reported, durability: Option<DurabilityClass>, ttl: Option<u32>) -> Vec<String> {
    let set = |name: &str| config.text(name);
    let (save, policy) = (set("save"), set("maxmemory-policy"));
    let logged = set("appendonly") == "yes" && matches!(set("appendfsync"), "always" | "everysec");
    let mut notes = Vec::new();
    let mut note = |holds: bool, text: String| notes.extend(holds.then_some(text));
    note(
        durability == Some(DurabilityClass::Memory) && !save.is_empty(),
        format!(
            "snapshots are taken at intervals (save = {save}): a crash of the server loses the writes since the last \
             one"
        ),
    );
    note(
        logged && set("no-appendfsync-on-rewrite") == "yes",
        "while the server saves a snapshot or rewrites its log, the log is not synced (no-appendfsync-on-rewrite = \
         yes)"
            .to_owned(),
    );
    note(
        logged && set("appendfsync") == "everysec",
        "while the log is being synced, acknowledged writes stay in the server's memory for up to two seconds: a crash \
         of the server loses them"
            .to_owned(),
    );
    note(
        !matches!(policy, "" | "noeviction") && !matches!(set("maxmemory"), "" | "0"),
        format!(
            "the server evicts values when its memory is full (maxmemory-policy = {policy}): a read that misses one \
             fails its trial"
        ),
    );
    notes.extend(ttl.map(ttl::note));
    notes.push(
        "rows with a key of several fields are in hashes, one for each first part of the key: a script inserts several \
         atomically, and the client sorts them"
            .to_owned(),
    );
    notes.push("a collection is cleared by scanning all keys of the database (SCAN)".to_owned());
    notes
}

fn limits(info: &Reported, config: &Reported) -> Limits {
    Limits {
        connections: info.limit("maxclients"),
        // The count includes this connection.
        connections_in_use: info.number("connected_clients").map(|open| open.saturating_sub(1)),
        value_bytes: config.number("proto-max-bulk-len").map(|most| {
            let set_by = "proto-max-bulk-len, less the overhead of a packed row";
            Limit::new(most.saturating_sub(64 * PACKING), set_by)
        }),
        idle_seconds: config.limit("timeout"),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Reported {
        pairs.into()
    }

    #[test]
    fn class_follows_from_the_settings() {
        for (appendonly, appendfsync, on_rewrite, class) in [
            ("no", "always", "no", Some(DurabilityClass::Memory)),
            ("yes", "always", "no", Some(DurabilityClass::Synced)),
            ("yes", "everysec", "no", Some(DurabilityClass::PeriodicSync)),
            ("yes", "no", "no", Some(DurabilityClass::OsCache)),
            ("yes", "always", "yes", Some(DurabilityClass::OsCache)),
            ("yes", "everysec", "yes", Some(DurabilityClass::Memory)),
            ("yes", "no", "yes", Some(DurabilityClass::OsCache)),
            ("yes", "sometimes", "no", None),
            ("yes", "always", "perhaps", None),
            ("perhaps", "always", "no", None),
        ] {
            let config = config(&[
                ("appendonly", appendonly),
                ("appendfsync", appendfsync),
                ("no-appendfsync-on-rewrite", on_rewrite),
            ]);
            assert_eq!(durability(&config), class, "{appendonly} {appendfsync} {on_rewrite}");
        }
        assert_eq!(durability(&config(&[("appendfsync", "always")])), None);
        assert_eq!(durability(&config(&[("appendonly", "yes")])), None);
        assert_eq!(durability(&config(&[("appendonly", "yes"), ("appendfsync", "always")])), None);
    }

    #[test]
    fn notes_name_settings_that_may_lose_rows() {
        let evicts = config(&[("maxmemory", "100"), ("maxmemory-policy", "allkeys-lru")]);
        assert!(remarks(&evicts, None, None).iter().any(|note| note.contains("evicts")));
        let unlimited = config(&[("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")]);
        assert!(!remarks(&unlimited, None, None).iter().any(|note| note.contains("evicts")));
        assert!(remarks(&Reported::default(), None, Some(60)).iter().any(|note| note.contains("60 s")));
        let saves = config(&[("save", "3600 1")]);
        assert!(
            remarks(&saves, Some(DurabilityClass::Memory), None).iter().any(|note| note.contains("3600 1"))
        );
    }

    #[test]
    fn engine_and_version_are_the_reported_ones() {
        let named =
            |pairs: &[(&str, &str)], server: &str| engine(&config(pairs), &config(&[("server", server)]));
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(named(&[("redis_version", "7.0.15")], "redis"), pair("Redis", "7.0.15"));
        let valkey = [("redis_version", "7.2.4"), ("valkey_version", "8.1.0"), ("server_name", "valkey")];
        assert_eq!(named(&valkey, "redis"), pair("Valkey", "8.1.0"));
        assert_eq!(named(&[], "valkey").0, "Valkey");
        assert_eq!(named(&[], "other").0, "other");
    }
}
