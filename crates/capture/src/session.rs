//! Settings of a server's new sessions that decide what a statement means, or what its answer looks like. A replay sends statements
//! under the recorded ones.

use std::collections::BTreeMap;

/// Settings by their names, with the values that the server reports.
pub type Settings = BTreeMap<String, String>;

const POSTGRES: &[&str] = &[
    "standard_conforming_strings",
    "backslash_quote",
    "DateStyle",
    "IntervalStyle",
    "bytea_output",
    "extra_float_digits",
    "search_path",
    "TimeZone",
    "default_transaction_read_only",
];

const MYSQL: &[&str] = &["autocommit", "completion_type", "sql_select_limit", "sql_mode"];

/// The names of the settings of a protocol's servers.
pub fn names(protocol: &str) -> &'static [&'static str] {
    match protocol {
        "postgres" | "postgresql" => POSTGRES,
        "mysql" | "mariadb" => MYSQL,
        _ => &[],
    }
}
