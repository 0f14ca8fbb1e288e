//! Facts about a MySQL or MariaDB server.

use super::dialect;
use super::durability::Durability;
use super::version::is_mariadb;
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows, value};
use kurabe_core::text::is_like;

/// Settings other than the durability class that affect results.
const OTHERS: &[&str] = &[
    "version_comment", "log_bin", "sync_binlog", "innodb_buffer_pool_size", "innodb_log_file_size",
    "innodb_redo_log_capacity", "innodb_log_buffer_size", "innodb_page_size", "innodb_io_capacity",
    "innodb_adaptive_hash_index", "innodb_checksum_algorithm", "key_buffer_size", "concurrent_insert",
    "aria_pagecache_buffer_size", "max_heap_table_size", "query_cache_type", "query_cache_size",
    "max_allowed_packet", "max_connections", "max_prepared_stmt_count", "performance_schema",
    "slow_query_log", "general_log", "table_open_cache", "thread_cache_size", "thread_handling",
    "transaction_isolation", "tx_isolation", "character_set_server", "collation_server", "sql_mode",
    "sql_require_primary_key", "innodb_force_primary_key", "wait_timeout",
];

/// Settings by which a server refuses writes of users without further privileges, the strictest first.
const READ_ONLY: [&str; 3] = ["super_read_only", "innodb_read_only", "read_only"];

/// Privileges on its database that a run needs for its tables.
const NEEDED: [&str; 7] = ["CREATE", "DROP", "INDEX", "SELECT", "INSERT", "UPDATE", "DELETE"];

/// Privileges with which a user writes in spite of `read_only`.
const WRITES_ANYWAY: [&str; 4] = ["ALL PRIVILEGES", "SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN"];

/// How settings begin that somebody made and that say where a server is or in what words it answers, not how it works.
const OF_PLACE: [&str; 26] = [
    "port", "socket", "datadir", "basedir", "tmpdir", "slave_load_tmpdir", "replica_load_tmpdir", "pid_file",
    "bind_address", "init_file", "log_error", "general_log_file", "slow_query_log_file", "plugin_dir", "lc_",
    "server_id", "report_", "ssl_", "hostname", "secure_file_priv", "character_sets_dir",
    "innodb_data_home_dir", "innodb_tmpdir", "mysqlx_", "log_bin_", "relay_log",
];

/// The settings that somebody made at the server's start or later, and that are not among others already.
fn changed(link: &mut dyn Query, mariadb: bool, known: &[Setting]) -> Result<Vec<Setting>> {
    let sql = if mariadb {
        "SELECT variable_name, global_value FROM information_schema.system_variables WHERE global_value_origin IN \
         ('CONFIG', 'SQL') ORDER BY 1"
    } else {
        "SELECT g.variable_name, g.variable_value FROM performance_schema.variables_info i JOIN \
         performance_schema.global_variables g USING (variable_name) WHERE i.variable_source <> 'COMPILED' ORDER BY 1"
    };
    let found = match rows(link, sql) {
        // A server without these tables.
        Err(error) if error.server_code().is_some() => return Ok(Vec::new()),
        found => Reported::of(found?),
    };
    let is_of_place = |name: &str| OF_PLACE.iter().any(|place| name.starts_with(place));
    let is_new = |name: &str| !known.iter().any(|known| known.name == name) && !is_of_place(name);
    let new = found.iter().filter(|(name, value)| is_new(name) && value.len() <= 100);
    Ok(new.map(|(name, value)| Setting::new(name, value)).collect())
}

pub(crate) fn read(link: &mut dyn Query, durability: &Durability, client: &str) -> Result<ServerFacts> {
    let version = value(link, "SELECT VERSION()")?.unwrap_or_default();
    let names = listed(OTHERS.iter().chain(&["max_user_connections", "aurora_version"]).chain(&READ_ONLY));
    let mut reported =
        Reported::of(rows(link, &format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"))?);
    let (mut class, mut notes) = durability.class();
    let engine = product(&version, &reported);
    if !OWN.contains(&engine) {
        class = None;
        notes = vec![format!(
            "{engine} speaks MySQL's protocol: what an acknowledged write survives there does not follow from settings of \
             MySQL, and is unknown"
        )];
    }
    let decisive = durability.settings();
    let (read_only, no_tables) = access(link, &reported)?;
    // Every server has one; a table without a key is refused only with it.
    for name in ["sql_require_primary_key", "innodb_force_primary_key"] {
        if !is_on(reported.text(name)) {
            reported.remove(name);
        }
    }
    if dialect::collation(link)?.is_none() {
        notes.push("This server ignores trailing spaces when it compares text.".to_owned());
    }
    let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Prepared_stmt_count')";
    let status = Reported::of(rows(link, status)?);
    let (connections, in_use) = connections(link, &reported, &status)?;
    let prepared = reported.limit("max_prepared_stmt_count").map(|Limit { most, set_by }| {
        Limit::new(most.saturating_sub(status.number("prepared_stmt_count").unwrap_or(0)), set_by)
    });
    let is_other = |setting: &Setting| !decisive.iter().any(|decisive| decisive.name == setting.name);
    let others = reported.pick(OTHERS).into_iter().filter(is_other);
    let mut others: Vec<Setting> = others.chain(dialect::dialect(None, None).statistics()).collect();
    let known: Vec<Setting> = others.iter().chain(&decisive).cloned().collect();
    others.extend(changed(link, is_mariadb(&version), &known)?);
    others.extend(link.connect_times().map(|times| times.login()));
    Ok(ServerFacts {
        engine: engine.to_owned(),
        version,
        client: client.to_owned(),
        transport: link.transport(),
        durability: class,
        settings: others,
        durability_settings: decisive,
        limits: Limits {
            connections,
            connections_in_use: in_use,
            prepared_statements: prepared,
            value_bytes: reported.limit("max_allowed_packet"),
            request_bytes: reported.limit("max_allowed_packet"),
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

/// What tells the server from others: its host, its port and its folder, of which copies of its data have others.
fn identity(link: &mut dyn Query) -> Result<Option<ServerIdentity>> {
    let sql = "SELECT CONCAT(@@hostname, ', port ', @@port, ', ', @@datadir, ', server_id ', @@server_id), DATABASE()";
    let row = match rows(link, sql) {
        // A server that speaks the protocol, without these variables.
        Err(error) if error.server_code().is_some() => return Ok(None),
        found => found?.into_iter().next().unwrap_or_default(),
    };
    let mut row = row.into_iter();
    Ok(row.next().map(|server| ServerIdentity { server, database: row.next().unwrap_or_default() }))
}

/// The products whose settings mean what the manuals of MySQL and MariaDB say.
const OWN: [&str; 2] = ["MySQL", "MariaDB"];

/// The product that answers: many speak MySQL's protocol and report a version of MySQL.
fn product(version: &str, reported: &Reported) -> &'static str {
    const BY_TEXT: [(&str, &str); 9] = [
        ("tidb", "TiDB"),
        ("vitess", "Vitess"),
        ("oceanbase", "OceanBase"),
        ("singlestore", "SingleStore"),
        ("memsql", "SingleStore"),
        ("doris", "Apache Doris"),
        ("starrocks", "StarRocks"),
        ("clickhouse", "ClickHouse"),
        ("dolt", "Dolt"),
    ];
    let text = format!("{version} {}", reported.text("version_comment")).to_ascii_lowercase();
    if let Some((_, engine)) = BY_TEXT.iter().find(|(part, _)| text.contains(part)) {
        return engine;
    }
    match (reported.get("aurora_version"), is_mariadb(version)) {
        (Some(_), _) => "Amazon Aurora MySQL",
        (None, true) => "MariaDB",
        (None, false) => "MySQL",
    }
}

fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_uppercase().as_str(), "ON" | "1" | "YES")
}

/// Why nothing can be written, and why no table can be created.
fn access(link: &mut dyn Query, reported: &Reported) -> Result<(Option<String>, Option<String>)> {
    let grants: Vec<String> = match rows(link, "SHOW GRANTS") {
        Err(error) if error.server_code().is_some() => Vec::new(),
        found => found?.into_iter().flatten().collect(),
    };
    let database = value(link, "SELECT DATABASE()")?.unwrap_or_default();
    let strictest = READ_ONLY.into_iter().find(|name| {
        is_on(reported.text(name))
            && (*name != "read_only" || !grants.iter().any(|grant| writes_anyway(grant)))
    });
    let read_only = strictest.map(|name| format!("{name} = ON"));
    let missing = if grants.is_empty() { Vec::new() } else { missing(&grants, &database) };
    let no_tables = (!missing.is_empty()).then(|| {
        let privileges = if missing.len() == 1 { "privilege" } else { "privileges" };
        format!("the user has no {privileges} {} on database {database}", missing.join(", "))
    });
    Ok((read_only, no_tables))
}

/// The privileges and the object of a line of `SHOW GRANTS`; `None` for a role, whose privileges it does not say.
fn privileges(grant: &str) -> Option<(&str, &str)> {
    let (privileges, rest) = grant.strip_prefix("GRANT ")?.split_once(" ON ")?;
    Some((privileges, rest.split_once(" TO ")?.0))
}

fn writes_anyway(grant: &str) -> bool {
    // A role may have any.
    privileges(grant).is_none_or(|(all, object)| {
        object == "*.*" && all.split(',').any(|one| WRITES_ANYWAY.contains(&one.trim()))
    })
}

/// The privileges on a database that a run needs for its tables, and no line of `SHOW GRANTS` has.
fn missing(grants: &[String], database: &str) -> Vec<&'static str> {
    let has = |grant: &String, wanted: &str| {
        privileges(grant).is_none_or(|(all, object)| {
            let Some(of) = object.strip_suffix(".*") else { return false };
            // With ANSI_QUOTES names are in other quotes.
            let is_here = of == "*" || is_like(database, of.trim_matches(['`', '"']), ['%', '_', '\\']);
            is_here && all.split(',').any(|one| ["ALL PRIVILEGES", wanted].contains(&one.trim()))
        })
    };
    NEEDED.into_iter().filter(|wanted| !grants.iter().any(|grant| has(grant, wanted))).collect()
}

/// The limit of connections that leaves the least to this user, and the number of other connections that it counts: the
/// server counts all of them, a user's limit those of the user.
fn connections(
    link: &mut dyn Query,
    reported: &Reported,
    status: &Reported,
) -> Result<(Option<Limit>, Option<u64>)> {
    // The counts include our connection.
    let all = status.number("threads_connected").map(|n| n.saturating_sub(1));
    let mut limits = vec![(reported.limit("max_connections"), all)];
    let of_user = reported.limit("max_user_connections");
    if of_user.is_some() {
        let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = SUBSTRING_INDEX(USER(), '@', 1)";
        let count = value(link, sql)?.and_then(|n| n.parse::<u64>().ok());
        limits.push((of_user, count.map(|n| n.saturating_sub(1))));
    }
    let set = limits.into_iter().filter_map(|(limit, used)| Some((limit?, used)));
    let least = set.min_by_key(|(limit, used)| limit.most.saturating_sub(used.unwrap_or(0)));
    Ok(least.map_or((None, all), |(limit, used)| (Some(limit), used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_named_as_themselves() {
        // As the servers report them.
        for (version, settings, engine) in [
            ("9.7.4", &[("version_comment", "MySQL Community Server - GPL")][..], "MySQL"),
            ("8.0.36-28", &[("version_comment", "Percona Server (GPL), Release 28")], "MySQL"),
            ("10.11.14-MariaDB-0+deb12u2", &[], "MariaDB"),
            ("8.0.11-TiDB-v7.5.1", &[("version_comment", "TiDB Server (Apache License 2.0)")], "TiDB"),
            ("8.0.30-Vitess", &[], "Vitess"),
            (
                "5.7.32",
                &[("version_comment", "SingleStoreDB source distribution (compatible)")],
                "SingleStore",
            ),
            ("8.0.28", &[("aurora_version", "3.04.0")], "Amazon Aurora MySQL"),
        ] {
            assert_eq!(product(version, &settings.into()), engine, "{version}");
        }
    }

    #[test]
    fn grants_say_what_is_missing_and_who_writes_in_spite_of_read_only() {
        let all = "CREATE DROP INDEX SELECT INSERT UPDATE DELETE";
        for (grant, lacks, writes) in [
            ("GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION", "", true),
            ("GRANT SELECT, INSERT, CREATE, DROP ON *.* TO `a`@`%`", "INDEX UPDATE DELETE", false),
            ("GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*x'", all, false),
            ("GRANT SELECT ON `shop`.* TO `a`@`%`", "CREATE DROP INDEX INSERT UPDATE DELETE", false),
            ("GRANT ALL PRIVILEGES ON `shop`.* TO `a`@`%`", "", false),
            ("GRANT ALL PRIVILEGES ON \"shop\".* TO \"a\"@\"%\"", "", false),
            ("GRANT ALL PRIVILEGES ON `other`.* TO `a`@`%`", all, false),
            ("GRANT CREATE ON `sh%`.* TO `a`@`%`", "DROP INDEX SELECT INSERT UPDATE DELETE", false),
            ("GRANT CREATE ON `shop`.`one` TO `a`@`%`", all, false),
            ("GRANT CONNECTION_ADMIN,BACKUP_ADMIN ON *.* TO `a`@`%`", all, true),
            ("GRANT `role`@`%` TO `a`@`%`", "", true),
        ] {
            let found = missing(&[grant.to_owned()], "shop").join(" ");
            assert_eq!((found.as_str(), writes_anyway(grant)), (lacks, writes), "{grant}");
        }
        let two = [
            "GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.* TO `a`@`%`",
            "GRANT CREATE, DROP, INDEX ON *.* TO `a`@`%`",
        ];
        assert_eq!(missing(&two.map(str::to_owned), "shop"), [""; 0]);
    }
}
