//! The promises of durability classes, checked on servers that are killed while clients write.
//!
//! Several clients add rows and record which were acknowledged, and when. The server is killed (`SIGKILL`, with all
//! its processes), restarted on the same data, and queried for each of those rows. A class that promises to survive
//! the server's crash must have all of them; `periodic-sync` all but those of about the last second; and `memory`
//! must have lost them.

mod embedded;
mod load;
mod settings;

use crate::support::beside_each_other;
use kurabe_core::durability::DurabilityClass::{self, Memory, OsCache, PeriodicSync, Synced};
use kurabe_testbed::testing;
use load::{Load, PROVE, Target};
use std::time::Duration;

/// The time of writing before the server is killed: longer than what `periodic-sync` may lose.
const LOADED: Duration = Duration::from_millis(3_500);

/// A kind of server, its settings, and its targets: the options of each, the required class, and the expected class.
/// Each server is one line.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [Promise]);

/// URL options, the class passed to `require_durability` if any, the expected class.
type Promise = (&'static str, Option<DurabilityClass>, DurabilityClass);

#[rustfmt::skip]
static CASES: &[Case] = &[
    // Without it, acknowledged rows are in the files of MyISAM, but some are only found after REPAIR TABLE.
    ("mysql", &[("myisam_recover_options", "BACKUP,FORCE")], &[("", None, Synced), ("engine=MyISAM", None, OsCache), ("engine=MEMORY", None, Memory)]),
    ("mysql", &[("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0")], &[("", None, PeriodicSync)]),
    ("mysql", &[("innodb_flush_log_at_trx_commit", "0"), ("sync_binlog", "0")], &[("", None, PeriodicSync)]),
    ("mariadb", &[], &[("", None, Synced), ("engine=Aria", None, Synced)]),
    // MariaDB's default, BACKUP,QUICK, does not check the rows: a few are missing after some crashes.
    ("mariadb", &[("myisam_recover_options", "BACKUP,FORCE")], &[("engine=MyISAM", None, OsCache)]),
    ("postgres", &[], &[("", None, Synced), ("", Some(PeriodicSync), PeriodicSync)]),
    ("postgres", &[("fsync", "off")], &[("", None, OsCache)]),
    ("memcached", &[], &[("", None, Memory)]),
    ("redis", &[], &[("", None, Memory)]),
    ("redis", &[("appendonly", "yes"), ("appendfsync", "always")], &[("", None, Synced)]),
    ("redis", &[("appendonly", "yes"), ("appendfsync", "everysec")], &[("", None, PeriodicSync)]),
    ("redis", &[("appendonly", "yes"), ("appendfsync", "no")], &[("", None, OsCache)]),
    ("valkey", &[("appendonly", "yes"), ("appendfsync", "always")], &[("", None, Synced)]),
    ("valkey", &[("appendonly", "yes"), ("appendfsync", "no")], &[("", None, OsCache)]),
    ("mongodb", &[], &[("", None, PeriodicSync), ("journal=true", None, Synced)]),
    ("couchdb", &[], &[("", None, Synced)]),
];

/// Kills every server of a kind and checks the class of each of its targets.
fn holds(engine: &str) {
    beside_each_other(CASES.iter().filter(|(name, _, _)| *name == engine), |(_, settings, promises)| {
        let Some(server) = testing::server_with(engine, |options| {
            settings.iter().fold(options, |options, (name, value)| options.set(*name, value))
        }) else {
            return;
        };
        let targets: Vec<Target> = promises
            .iter()
            .enumerate()
            .map(|(number, (options, required, class))| {
                let target = Target::open(&crate::support::with(server.url(), options), number, *required);
                // For a substitute, only its identity is checked; its notes state it.
                let class = if target.stands_in() { OsCache } else { *class };
                assert_eq!(target.class(), class, "{engine} {settings:?} {options}");
                target
            })
            .collect();
        let loads: Vec<Load> = targets.iter().map(Target::load).collect();
        // Enough rows, and the first rows of each, so that some are old at the time of the kill.
        for load in &loads {
            load.wait_for(1);
        }
        if promises.iter().any(|(_, _, class)| *class == PeriodicSync) {
            std::thread::sleep(LOADED);
        }
        for load in &loads {
            load.wait_for(PROVE);
        }
        server.kill_hard().unwrap();
        let acknowledged: Vec<_> = loads.into_iter().map(Load::end).collect();
        server.restart().unwrap();
        for (target, acknowledged) in targets.iter().zip(&acknowledged) {
            target.judge(acknowledged);
        }
    });
}

#[test]
fn mysql_keeps_its_promises_when_killed() {
    holds("mysql");
}

/// Without recovery MyISAM loses the tables that a statement was using: how many is random. One row would violate a
/// class above `memory`.
#[test]
fn myisam_without_recovery_promises_nothing_and_loses_rows_when_killed() {
    let Some(server) = testing::server("mysql") else { return };
    let lost = (0..8).any(|number| {
        let target = Target::open(&crate::support::with(server.url(), "engine=MyISAM"), number, None);
        assert_eq!(target.class(), Memory);
        let load = target.load_hard();
        std::thread::sleep(Duration::from_millis(700));
        server.kill_hard().unwrap();
        let acknowledged = load.end();
        server.restart().unwrap();
        target.lost(&acknowledged) > 0
    });
    assert!(lost, "eight crashes lost nothing: the class is too low");
}

#[test]
fn mariadb_keeps_its_promises_when_killed() {
    holds("mariadb");
}

#[test]
fn postgres_keeps_its_promises_when_killed() {
    holds("postgres");
}

#[test]
fn memcached_promises_and_keeps_nothing_when_killed() {
    holds("memcached");
}

#[test]
fn redis_keeps_its_promises_when_killed() {
    holds("redis");
}

#[test]
fn valkey_keeps_its_promises_when_killed() {
    holds("valkey");
}

#[test]
fn mongodb_or_its_substitute_keeps_its_promises_when_killed() {
    holds("mongodb");
}

#[test]
fn couchdb_or_its_substitute_keeps_its_promises_when_killed() {
    holds("couchdb");
}
