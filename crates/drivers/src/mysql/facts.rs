//! Facts about a MySQL or MariaDB server.

use super::dialect;
use super::durability::Durability;
use super::version::is_mariadb;
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows, value};

/// Settings other than the durability class that affect results.
const OTHERS: &[&str] = &[
    "version_comment",
    "log_bin",
    "sync_binlog",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_log_buffer_size",
    "innodb_page_size",
    "innodb_io_capacity",
    "innodb_adaptive_hash_index",
    "innodb_checksum_algorithm",
    "key_buffer_size",
    "concurrent_insert",
    "aria_pagecache_buffer_size",
    "max_heap_table_size",
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

pub(crate) fn read(link: &mut dyn Query, durability: &Durability, client: &str) -> Result<ServerFacts> {
    let version = value(link, "SELECT VERSION()")?.unwrap_or_default();
    let names = listed(OTHERS.iter().chain(&["max_user_connections"]));
    let reported =
        Reported::of(rows(link, &format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"))?);
    let (class, mut notes) = durability.class();
    let decisive = durability.settings();
    if dialect::collation(link)?.is_none() {
        notes.push("This server ignores trailing spaces when it compares text.".to_owned());
    }
    // The count includes our connection.
    let connected = rows(link, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")?;
    let connected = connected.first().and_then(|row| row.get(1)?.parse::<u64>().ok());
    let connections = ["max_connections", "max_user_connections"].map(|name| reported.limit(name));
    let is_other = |setting: &Setting| !decisive.iter().any(|decisive| decisive.name == setting.name);
    let others = reported.pick(OTHERS).into_iter().filter(is_other);
    Ok(ServerFacts {
        engine: if is_mariadb(&version) { "MariaDB" } else { "MySQL" }.to_owned(),
        version,
        client: client.to_owned(),
        transport: link.transport(),
        durability: Some(class),
        settings: others.chain(dialect::dialect(None, None).statistics()).collect(),
        durability_settings: decisive,
        limits: Limits {
            connections: connections.into_iter().flatten().min_by_key(|limit| limit.most),
            connections_in_use: connected.map(|n| n.saturating_sub(1)),
            value_bytes: reported.limit("max_allowed_packet"),
            request_bytes: reported.limit("max_allowed_packet"),
            parameters: Some(Limit::new(65_535, "the protocol (16-bit count)")),
        },
        notes,
    })
}
