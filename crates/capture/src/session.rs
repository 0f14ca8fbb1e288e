//! Settings of a server's new sessions that decide what a statement means, or what its answer looks like. A capture has those that
//! are not the usual ones: a replay sends statements under the same.

use std::collections::BTreeMap;

/// Settings by their names, with the values that the server reports.
pub type Settings = BTreeMap<String, String>;

/// A setting, and its usual values as servers report them.
type Setting = (&'static str, &'static [&'static str]);

const POSTGRES: &[Setting] = &[
    ("standard_conforming_strings", &["on"]),
    ("backslash_quote", &["safe_encoding"]),
    ("DateStyle", &["ISO, MDY"]),
    ("IntervalStyle", &["postgres"]),
    ("bytea_output", &["hex"]),
    ("extra_float_digits", &["1"]),
    ("search_path", &["\"$user\", public"]),
    // What each server has depends on where it is.
    ("TimeZone", &[]),
    ("default_transaction_read_only", &["off"]),
];

const MYSQL: &[Setting] = &[
    ("autocommit", &["ON"]),
    ("completion_type", &["NO_CHAIN"]),
    ("sql_select_limit", &["18446744073709551615"]),
    // MySQL's and MariaDB's.
    (
        "sql_mode",
        &[
            "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
        ],
    ),
];

fn settings(protocol: &str) -> &'static [Setting] {
    match protocol {
        "postgres" | "postgresql" => POSTGRES,
        "mysql" | "mariadb" => MYSQL,
        _ => &[],
    }
}

/// The names of the settings of a protocol's servers.
pub fn names(protocol: &str) -> impl Iterator<Item = &'static str> {
    settings(protocol).iter().map(|(name, _)| *name)
}

/// Those of a new session's settings that are not the usual ones.
pub fn unusual(protocol: &str, all: impl IntoIterator<Item = (String, String)>) -> Settings {
    let is_usual = |name: &str, value: &str| {
        let known = settings(protocol).iter().find(|(known, _)| *known == name);
        known.is_none_or(|(_, usual)| usual.contains(&value))
    };
    all.into_iter().filter(|(name, value)| !is_usual(name, value)).collect()
}
