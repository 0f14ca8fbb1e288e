//! Facts about a PostgreSQL server.

use super::dialect::dialect;
use super::durability::{Durability, settings};
use super::product;
use crate::prelude::*;
use crate::reported::Reported;
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
    "idle_session_timeout",
    "log_statement",
    "shared_preload_libraries",
    "debug_assertions",
];

/// Settings that somebody made and that say where a server is or in what words it answers, not how it works.
const OF_PLACE: &str = "^(port|listen_addresses|unix_socket_.*|data_directory|config_file|hba_file|ident_file|external_pid_file|\
                        cluster_name|ssl_.*_file|log_.*|logging_.*|lc_.*|timezone.*|datestyle|default_text_search_config|\
                        dynamic_shared_memory_type|primary_.*|archive_.*|restore_.*|recovery_.*)$";

/// The settings that have another value than PostgreSQL's own because somebody set them, but not for this session, and that
/// are not among others already.
fn changed(link: &mut dyn Query, known: &[Setting]) -> Result<Vec<Setting>> {
    let sql = format!(
        "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE setting IS DISTINCT FROM boot_val AND \
         source NOT IN ('default', 'override', 'client', 'session', 'interactive') AND lower(name) !~ '{OF_PLACE}' ORDER BY name"
    );
    let rows = match rows(link, &sql) {
        // A server that speaks the protocol, without these columns.
        Err(error) if error.server_code().is_some() => return Ok(Vec::new()),
        found => found?,
    };
    let setting = |row: &Vec<String>| Some(Setting::new(row.first()?, row.get(1)?));
    let is_new = |setting: &Setting| !known.iter().any(|known| known.name == setting.name);
    Ok(rows.iter().filter_map(setting).filter(is_new).collect())
}

/// Reads them in a session that searches `pg_catalog` alone; what may be written was read before, by [`access`].
pub(super) fn read(
    link: &mut dyn Query,
    client: &str,
    (read_only, no_tables): (Option<String>, Option<String>),
) -> Result<ServerFacts> {
    let reported = settings(link, OTHERS)?;
    let durability = Durability::read(link)?;
    let (mut class, mut notes) = durability.class();
    let version = value(link, "SHOW server_version")?.unwrap_or_default();
    let product = product::read(link, version)?;
    if let Some(note) = product.note() {
        class = None;
        notes = vec![note];
    }
    let (connections, in_use) = connections(link, &reported)?;
    let decisive = durability.settings();
    let mut others: Vec<Setting> = reported.pick(OTHERS).into_iter().chain(dialect().statistics()).collect();
    let known: Vec<Setting> = others.iter().chain(&decisive).cloned().collect();
    others.extend(changed(link, &known)?);
    others.extend(link.connect_times().map(|times| times.login()));
    let one_gb = |set_by| Some(Limit::new(1_073_741_000, set_by));
    Ok(ServerFacts {
        engine: product.engine.to_owned(),
        version: product.version,
        client: client.to_owned(),
        transport: link.transport(),
        durability: class,
        durability_settings: decisive,
        settings: others,
        limits: Limits {
            connections,
            connections_in_use: in_use,
            value_bytes: one_gb("the engine (1 GB per field)"),
            request_bytes: one_gb("the engine (1 GB per message)"),
            parameters: Some(Limit::new(65_535, "the protocol (16-bit count)")),
            ..Limits::default()
        },
        identity: identity(link)?,
        read_only,
        no_tables,
        notes,
        ..ServerFacts::default()
    })
}

/// What tells the server from others: its data's identifier, which a standby has too, and when it was started.
fn identity(link: &mut dyn Query) -> Result<Option<ServerIdentity>> {
    let sql = "SELECT system_identifier, pg_catalog.pg_postmaster_start_time()::text, (SELECT oid FROM \
               pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) FROM pg_catalog.pg_control_system()";
    let row = match rows(link, sql) {
        // A server that speaks the protocol, without these functions, or a user who may not call them.
        Err(error) if error.server_code().is_some() => return Ok(None),
        found => found?.into_iter().next().unwrap_or_default(),
    };
    let [identifier, started, database] = row.try_into().map_err(|_| malformed("facts of the server"))?;
    let server = format!("system identifier {identifier}, started {started}");
    Ok(Some(ServerIdentity { server, database }))
}

/// Why nothing can be written, and why no table can be created: of a session with the user's own search path.
pub(super) fn access(link: &mut dyn Query) -> Result<(Option<String>, Option<String>)> {
    let sql = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only'), \
               pg_catalog.current_schema(), pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE'), current_user";
    let row = match rows(link, sql) {
        // A server that speaks the protocol, without these functions.
        Err(error) if error.server_code().is_some() => return Ok((None, None)),
        found => found?.into_iter().next().unwrap_or_default(),
    };
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let read_only = match (field(0), field(1)) {
        ("t", _) => Some("it is a standby (in recovery)".to_owned()),
        (_, "on") => Some("its transactions only read (default_transaction_read_only = on)".to_owned()),
        _ => None,
    };
    let no_tables = match (field(2), field(3)) {
        ("", _) => Some("no schema of the search path exists, or may be used".to_owned()),
        (schema, "f") => Some(format!("user {} may not create tables in schema {schema}", field(4))),
        _ => None,
    };
    Ok((read_only, no_tables))
}

/// The limit of connections that leaves the least to this user, and the number of other connections that it counts. The
/// server, the database and the role count their own connections each; the last two do not limit a superuser.
fn connections(link: &mut dyn Query, reported: &Reported) -> Result<(Option<Limit>, Option<u64>)> {
    let number = |name: &str| reported.number(name).unwrap_or(0);
    let sql = "SELECT r.rolsuper, r.rolconnlimit, d.datconnlimit, \
               (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database), \
               (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = r.oid), \
               (SELECT numbackends FROM pg_catalog.pg_stat_database s WHERE s.datid = d.oid) \
               FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
               WHERE r.rolname = current_user AND d.datname = pg_catalog.current_database()";
    let row = rows(link, sql)?.into_iter().next().unwrap_or_default();
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let is_superuser = field(0) == "t";
    // The counts include our connection.
    let in_use = |at: usize| field(at).parse::<u64>().ok().map(|n| n.saturating_sub(1));
    let mut limits = Vec::new();
    let all = number("max_connections");
    if all > 0 && is_superuser {
        limits.push((Limit::new(all, "max_connections"), in_use(3)));
    } else if all > 0 {
        let kept = number("superuser_reserved_connections") + number("reserved_connections");
        let set_by = "max_connections - superuser_reserved_connections";
        limits.push((Limit::new(all.saturating_sub(kept), set_by), in_use(3)));
    }
    for (at, used, set_by) in
        [(1, 4, "the role's CONNECTION LIMIT"), (2, 5, "the database's CONNECTION LIMIT")]
    {
        // -1 means no limit.
        let most = field(at).parse().ok().filter(|_| !is_superuser);
        limits.extend(most.map(|most| (Limit::new(most, set_by), in_use(used))));
    }
    let free = |(limit, used): &(Limit, Option<u64>)| limit.most.saturating_sub(used.unwrap_or(0));
    let least = limits.into_iter().min_by_key(free);
    Ok(least.map_or((None, in_use(3)), |(limit, used)| (Some(limit), used)))
}
