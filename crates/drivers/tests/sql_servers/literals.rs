//! Literals in statements, under all server settings that affect quotes and backslashes.

use super::common::open;
use kurabe_testbed::testing;

/// Engine, settings, and whether its text may contain zero characters.
type Mode = (&'static str, &'static [(&'static str, &'static str)], bool);

const MODES: [Mode; 6] = [
    ("mysql", &[], true),
    ("mysql", &[("sql_mode", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT")], true),
    ("mariadb", &[], true),
    ("mariadb", &[("sql_mode", "NO_BACKSLASH_ESCAPES")], true),
    ("postgres", &[], false),
    (
        "postgres",
        &[
            ("standard_conforming_strings", "off"),
            ("backslash_quote", "off"),
            ("bytea_output", "escape"),
            ("timezone", "Asia/Kathmandu"),
        ],
        false,
    ),
];

#[test]
fn literals_equal_their_values_under_all_server_settings() {
    for (engine, settings, zeros) in MODES {
        let Some(server) = testing::server_with(engine, |options| {
            settings.iter().fold(options, |options, (name, value)| options.set(*name, *value))
        }) else {
            continue;
        };
        let driver = open(server.url()).unwrap();
        crate::literals::check(&*driver, zeros, &format!("{engine} {settings:?}"));
    }
}
