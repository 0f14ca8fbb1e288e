//! What a MySQL or MariaDB server says of itself.

use super::config::Config;
use super::dialect;
use crate::wire::link::{Query, rows, value};
use kurabe_core::Result;
use kurabe_core::driver::{DurabilityClass, Limit, Limits, ServerFacts, Setting};
use std::collections::BTreeMap;

/// What makes the durability class. Engines and versions have some of them.
const DURABILITY: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "log_bin",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_flush_method",
    "default_storage_engine",
];

/// What else decides figures.
const OTHERS: &[&str] = &[
    "version_comment",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_log_buffer_size",
    "innodb_page_size",
    "innodb_io_capacity",
    "innodb_adaptive_hash_index",
    "innodb_checksum_algorithm",
    "key_buffer_size",
    "query_cache_type",
    "query_cache_size",
    "max_allowed_packet",
    "max_connections",
    "max_prepared_stmt_count",
    "performance_schema",
    "slow_query_log",
    "general_log",
    "table_open_cache",
    "thread_cache_size",
    "thread_handling",
    "transaction_isolation",
    "tx_isolation",
    "character_set_server",
    "collation_server",
    "sql_mode",
];

/// Asks the server.
pub(crate) fn read(link: &mut dyn Query, config: &Config, client: &str) -> Result<ServerFacts> {
    let version = value(link, "SELECT VERSION()")?.unwrap_or_default();
    let names = DURABILITY.iter().chain(OTHERS).chain(&["max_user_connections"]);
    let list: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", list.join(", "));
    let found: BTreeMap<String, String> = rows(link, &sql)?
        .into_iter()
        .filter_map(|row| <[String; 2]>::try_from(row).ok())
        .map(|[name, value]| (name.to_ascii_lowercase(), value))
        .collect();
    let get = |name: &str| found.get(name).map_or("", String::as_str);
    let settings = |names: &[&str]| -> Vec<Setting> {
        names.iter().filter_map(|name| Some(Setting::new(*name, found.get(*name)?))).collect()
    };
    let mut durability_settings = settings(DURABILITY);
    let engine = config.engine.clone().unwrap_or_else(|| get("default_storage_engine").to_owned());
    if config.engine.is_some() {
        durability_settings.push(Setting::new("engine (of our tables)", &engine));
    }
    let mut notes = Vec::new();
    let durability = durability(&engine, &get, &mut notes);
    if dialect::collation(link)?.is_none() {
        notes.push("To this server, texts that differ by spaces at their end are the same.".to_owned());
    }
    // Ours is among them.
    let in_use = rows(link, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")?
        .first()
        .and_then(|row| row.get(1)?.parse::<u64>().ok())
        .map(|n| n.saturating_sub(1));
    let number = |name: &str| get(name).parse::<u64>().ok().filter(|n| *n > 0);
    let limit = |name: &str| number(name).map(|most| Limit { most, set_by: name.to_owned() });
    let connections = [limit("max_connections"), limit("max_user_connections")];
    Ok(ServerFacts {
        engine: if version.to_ascii_lowercase().contains("mariadb") { "MariaDB" } else { "MySQL" }.to_owned(),
        version,
        client: client.to_owned(),
        transport: link.transport(),
        durability: Some(durability),
        durability_settings,
        settings: settings(OTHERS),
        limits: Limits {
            connections: connections.into_iter().flatten().min_by_key(|limit| limit.most),
            connections_in_use: in_use,
            value_bytes: limit("max_allowed_packet"),
            request_bytes: limit("max_allowed_packet"),
            parameters: Some(Limit { most: 65_535, set_by: "the protocol (16-bit count)".to_owned() }),
        },
        notes,
    })
}

/// The class that the settings make (MySQL manual, "InnoDB Startup Options and System Variables" and
/// "Binary Logging Options and Variables").
fn durability<'a>(engine: &str, get: &impl Fn(&str) -> &'a str, notes: &mut Vec<String>) -> DurabilityClass {
    match engine.to_ascii_lowercase().as_str() {
        "innodb" => {}
        "memory" | "blackhole" => return DurabilityClass::Memory,
        other => {
            notes.push(format!("Tables of {other} are never synced by the server; a crash may damage them."));
            return DurabilityClass::OsCache;
        }
    }
    let on = |name: &str| matches!(get(name).to_ascii_uppercase().as_str(), "ON" | "1");
    let mut class = match get("innodb_flush_log_at_trx_commit") {
        // MariaDB's 3 syncs even more often.
        "1" | "3" => DurabilityClass::Synced,
        // Written at each commit and synced once a second.
        "2" => DurabilityClass::PeriodicSync,
        _ => {
            notes.push(
                "The redo log is written once a second: a crash of the server alone loses as much.".into(),
            );
            DurabilityClass::PeriodicSync
        }
    };
    let mut at_most_os_cache = |why: &str| {
        class = class.min(DurabilityClass::OsCache);
        notes.push(why.to_owned());
    };
    // After a crash, recovery takes back every transaction that the binary log lacks.
    if on("log_bin") && get("sync_binlog") != "1" {
        at_most_os_cache("The binary log decides what recovery keeps, and it is not synced at each commit.");
    }
    if get("innodb_doublewrite").eq_ignore_ascii_case("OFF") || get("innodb_doublewrite") == "0" {
        at_most_os_cache("Without the doublewrite buffer a page torn by a power failure is lost.");
    }
    if get("innodb_flush_method").eq_ignore_ascii_case("nosync") {
        at_most_os_cache("innodb_flush_method=nosync leaves syncing to the operating system.");
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(engine: &str, settings: &[(&str, &'static str)]) -> DurabilityClass {
        let get = |name: &str| settings.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| *value);
        durability(engine, &get, &mut Vec::new())
    }

    #[test]
    fn the_class_follows_the_settings() {
        let flush = "innodb_flush_log_at_trx_commit";
        assert_eq!(class("InnoDB", &[(flush, "1")]), DurabilityClass::Synced);
        assert_eq!(class("InnoDB", &[(flush, "2")]), DurabilityClass::PeriodicSync);
        assert_eq!(class("InnoDB", &[(flush, "0")]), DurabilityClass::PeriodicSync);
        let with_log = [(flush, "1"), ("log_bin", "ON"), ("sync_binlog", "1")];
        assert_eq!(class("InnoDB", &with_log), DurabilityClass::Synced);
        let lazy_log = [(flush, "1"), ("log_bin", "ON"), ("sync_binlog", "0")];
        assert_eq!(class("InnoDB", &lazy_log), DurabilityClass::OsCache);
        assert_eq!(class("InnoDB", &[(flush, "1"), ("innodb_doublewrite", "OFF")]), DurabilityClass::OsCache);
        assert_eq!(class("MyISAM", &[]), DurabilityClass::OsCache);
        assert_eq!(class("MEMORY", &[]), DurabilityClass::Memory);
    }
}
