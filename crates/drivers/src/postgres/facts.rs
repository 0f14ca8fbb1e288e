//! Facts about a PostgreSQL server.

use super::dialect::dialect;
use super::durability::Durability;
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows, value};

/// Settings other than the durability class that affect results.
const OTHERS: &[&str] = &[
    "shared_buffers",
    "effective_cache_size",
    "work_mem",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_level",
    "wal_compression",
    "wal_buffers",
    "commit_delay",
    "huge_pages",
    "io_method",
    "max_connections",
    "superuser_reserved_connections",
    "reserved_connections",
    "server_encoding",
    "block_size",
    "data_checksums",
    "default_toast_compression",
    "default_transaction_isolation",
    "plan_cache_mode",
    "jit",
    "autovacuum",
    "statement_timeout",
    "log_statement",
    "shared_preload_libraries",
    "debug_assertions",
];

/// Reads settings as the session has them.
pub(super) fn settings(link: &mut dyn Query, names: &[&str]) -> Result<Reported> {
    let sql = format!(
        "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE name IN ({})",
        listed(names)
    );
    rows(link, &sql).map(Reported::of)
}

pub(crate) fn read(link: &mut dyn Query, client: &str) -> Result<ServerFacts> {
    let reported = settings(link, OTHERS)?;
    let durability = Durability::read(link)?;
    let (class, notes) = durability.class();
    let version = value(link, "SHOW server_version")?.unwrap_or_default();
    let (connections, in_use) = connections(link, &reported)?;
    let one_gb = |set_by| Some(Limit::new(1_073_741_000, set_by));
    Ok(ServerFacts {
        engine: "PostgreSQL".to_owned(),
        version,
        client: client.to_owned(),
        transport: link.transport(),
        durability: Some(class),
        durability_settings: durability.settings(),
        settings: reported.pick(OTHERS).into_iter().chain(dialect().statistics()).collect(),
        limits: Limits {
            connections,
            connections_in_use: in_use,
            value_bytes: one_gb("the engine (1 GB per field)"),
            request_bytes: one_gb("the engine (1 GB per message)"),
            parameters: Some(Limit::new(65_535, "the protocol (16-bit count)")),
        },
        notes,
    })
}

/// The number of connections that this user may open, which is the lowest limit of the server, the database and the
/// role; and the number of other connections.
fn connections(link: &mut dyn Query, reported: &Reported) -> Result<(Option<Limit>, Option<u64>)> {
    let number = |name: &str| reported.number(name).unwrap_or(0);
    let sql = "SELECT r.rolsuper, r.rolconnlimit, d.datconnlimit, \
               (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database) \
               FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
               WHERE r.rolname = current_user AND d.datname = pg_catalog.current_database()";
    let row = rows(link, sql)?.into_iter().next().unwrap_or_default();
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let mut limits = Vec::new();
    let all = number("max_connections");
    if all > 0 && field(0) == "t" {
        limits.push(Limit::new(all, "max_connections"));
    } else if all > 0 {
        let kept = number("superuser_reserved_connections") + number("reserved_connections");
        let set_by = "max_connections - superuser_reserved_connections";
        limits.push(Limit::new(all.saturating_sub(kept), set_by));
    }
    // -1 means no limit.
    for (at, set_by) in [(1, "the role's CONNECTION LIMIT"), (2, "the database's CONNECTION LIMIT")] {
        limits.extend(field(at).parse().ok().map(|most| Limit::new(most, set_by)));
    }
    // The count includes our connection.
    let in_use = field(3).parse::<u64>().ok().map(|n| n.saturating_sub(1));
    Ok((limits.into_iter().min_by_key(|limit| limit.most), in_use))
}
