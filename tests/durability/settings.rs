//! The class that is read from real servers as their settings change, and the effect of `--durability`.

use crate::servers::common::{SERVERS, cells, has, sql};
use crate::support::{Place, eventually, with};
use kurabe_core::ErrorKind;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{Driver, Support};
use kurabe_core::durability::DurabilityClass::{self, Memory, OsCache, PeriodicSync, Replicated, Synced};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_testbed::{Server, testing};
use std::sync::Arc;

fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

fn class(url: &str) -> DurabilityClass {
    open(url).describe().unwrap().durability.unwrap()
}

/// Changes settings of a server, one set after the other, and reads the class after each.
fn follows(server: &Server, steps: &[(&str, &str, DurabilityClass)]) {
    for (statement, options, expected) in steps {
        if !statement.is_empty() && sql(server, "", statement).is_none() {
            return;
        }
        assert_eq!(class(&with(server.url(), options)), *expected, "after {statement}: {options}");
    }
}

#[test]
fn class_follows_settings_of_running_mysql() {
    let Some(server) = testing::server("mysql") else { return };
    follows(
        &server,
        &[
            ("", "", Synced),
            // By default it does not repair such tables.
            ("", "engine=myisam", Memory),
            ("", "engine=memory", Memory),
            ("", "engine=ARCHIVE", Memory),
            ("SET GLOBAL flush = ON", "engine=MyISAM", Memory),
            ("SET GLOBAL sync_binlog = 0", "", PeriodicSync),
            ("SET GLOBAL innodb_flush_log_at_timeout = 60", "", OsCache),
            ("SET GLOBAL sync_binlog = 1", "", Synced),
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 2", "", OsCache),
            ("SET GLOBAL innodb_flush_log_at_timeout = 1", "", PeriodicSync),
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 0", "", PeriodicSync),
            ("SET GLOBAL default_storage_engine = 'MEMORY'", "", Memory),
            ("SET GLOBAL default_storage_engine = 'InnoDB'", "", PeriodicSync),
            ("ALTER INSTANCE DISABLE INNODB REDO_LOG", "", Memory),
        ],
    );
}

#[test]
fn class_follows_settings_of_running_mariadb() {
    let Some(server) = testing::server("mariadb") else { return };
    follows(
        &server,
        &[
            ("", "", Synced),
            ("", "engine=Aria", Synced),
            // By default it repairs such tables without checking their rows.
            ("", "engine=MyISAM", Memory),
            ("SET GLOBAL flush = ON", "engine=MyISAM", Memory),
            ("SET GLOBAL aria_group_commit = 'soft'", "engine=Aria", OsCache),
            ("SET GLOBAL aria_group_commit_interval = 1000000", "engine=Aria", PeriodicSync),
            ("SET GLOBAL enforce_storage_engine = 'Aria'", "", PeriodicSync),
            ("SET GLOBAL enforce_storage_engine = NULL", "", Synced),
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 3", "", Synced),
            ("SET GLOBAL innodb_flush_log_at_trx_commit = 2", "", PeriodicSync),
        ],
    );
}

#[test]
fn commit_that_waits_for_replica_is_replicated_while_there_is_one() {
    let start = |server_id: u32, role: &str| {
        testing::server_with("mariadb", |options| {
            options.set("log_bin", "binlog").set("server_id", server_id).set(role, "ON").set("sync_binlog", 1)
        })
    };
    let Some(source) = start(1, "rpl_semi_sync_master_enabled") else { return };
    let Some(replica) = start(2, "rpl_semi_sync_slave_enabled") else { return };
    assert_eq!(class(source.url()), Synced, "there is no replica");
    let user = "CREATE USER r@'127.0.0.1' IDENTIFIED BY 'x'; GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'";
    let follow = format!(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, master_user = 'r', master_password = 'x', \
         master_use_gtid = slave_pos; START SLAVE",
        source.port()
    );
    if sql(&source, "", user).is_none() || sql(&replica, "", &follow).is_none() {
        return;
    }
    let becomes = |wanted| eventually(60, || (class(source.url()) == wanted).then_some(()));
    assert!(becomes(Replicated).is_some(), "{:?}", open(source.url()).describe());
    sql(&replica, "", "STOP SLAVE");
    assert!(becomes(Synced).is_some(), "{:?}", open(source.url()).describe());
}

#[test]
fn class_follows_settings_of_running_postgres() {
    let Some(server) = testing::server("postgres") else { return };
    follows(
        &server,
        &[("", "", Synced), ("ALTER ROLE kurabe SET synchronous_commit = off", "", PeriodicSync)],
    );
    // The settings of a session override the role's.
    let mut driver = open(server.url());
    for wanted in [Synced, PeriodicSync, Synced] {
        driver.require_durability(wanted).unwrap();
        assert_eq!(driver.describe().unwrap().durability, Some(wanted));
    }
    let error = driver.require_durability(OsCache).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("fsync = on"), "{error}");
    assert_eq!(driver.describe().unwrap().durability, Some(Synced), "a refusal changes nothing");
    let reloaded = |set: &str| {
        // ALTER SYSTEM cannot be combined with other statements.
        let done = sql(&server, "", &format!("ALTER SYSTEM SET {set}")).is_some();
        done && sql(&server, "", "SELECT pg_reload_conf()").is_some()
    };
    let mut driver = open(server.url());
    driver.require_durability(Synced).unwrap();
    for (set, expected) in [
        ("synchronous_standby_names = 'far'", Replicated),
        ("synchronous_standby_names = ''", Synced),
        ("full_page_writes = off", OsCache),
        ("fsync = off", OsCache),
    ] {
        if reloaded(set) {
            // It reloads its files some time after the request.
            let durability = || driver.describe().unwrap().durability;
            let known = eventually(60, || (durability() == Some(expected)).then_some(()));
            assert!(known.is_some(), "{set}: {:?}", durability());
        }
    }
    let memory = eventually(60, || (class(server.url()) == Memory).then_some(()));
    assert!(
        memory.is_some(),
        "the role's synchronous_commit = off with fsync = off: {:?}",
        class(server.url())
    );
}

fn plain(name: &str) -> Arc<Collection> {
    let fields = vec![Field { name: "id", kind: FieldType::Int }, Field { name: "n", kind: FieldType::Int }];
    Arc::new(Collection::new(name, fields, vec![0]))
}

#[test]
fn substituted_storage_engine_is_detected_and_its_table_removed() {
    let collection = plain("kurabe_0_substituted");
    let refused = |server: &Server, options: &str, part: &str| {
        let mut namespace = open(&with(server.url(), options)).namespace().unwrap();
        let error = namespace.create(&collection).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(namespace.list().unwrap(), [""; 0]);
    };
    if let Some(server) = testing::server_with("mysql", |options| {
        options.set("disabled_storage_engines", "MyISAM").set("sql_mode", "STRICT_TRANS_TABLES")
    }) {
        refused(&server, "engine=MyISAM", "the server created a table with InnoDB instead of MyISAM");
        let error = open(&with(server.url(), "engine=Falcon")).describe().unwrap_err();
        assert!(error.to_string().contains("no storage engine Falcon; it has: "), "{error}");
    }
    if let Some(server) = testing::server_with("mariadb", |options| {
        options.set("enforce_storage_engine", "Aria").set("sql_mode", "STRICT_TRANS_TABLES")
    }) {
        refused(&server, "engine=InnoDB", "the server created a table with Aria instead of InnoDB");
        let facts = open(server.url()).describe().unwrap();
        assert_eq!(facts.durability_settings[0].value, "Aria");
    }
}

#[test]
fn memory_tables_report_their_limits_and_the_ownership_table_survives_them() {
    let Some(server) = testing::server("mysql") else { return };
    let driver = open(&with(server.url(), "engine=MEMORY"));
    let blob = Field { name: "data", kind: FieldType::LongBytes };
    let id = Field { name: "id", kind: FieldType::Int };
    let long = Arc::new(Collection::new("kurabe_0_long", vec![id, blob], vec![0]));
    for operation in [Operation::Put { collection: long }, Operation::Begin] {
        assert!(matches!(driver.supports(&operation), Support::No(_)), "{operation:?}");
    }
    let collection = plain("kurabe_0_memory");
    driver.namespace().unwrap().create(&collection).unwrap();
    server.kill_hard().unwrap();
    server.restart().unwrap();
    let mut namespace = driver.namespace().unwrap();
    assert_eq!(namespace.list().unwrap(), [collection.name.as_str()]);
    namespace.remove(&collection.name).unwrap();
    namespace.finish().unwrap();
}

/// Options for the shortest run of `point-write`.
const BRIEF: [&str; 8] = ["--records", "50", "--requests", "40", "--rounds", "1", "--operation", "write"];

fn point_write(place: &Place, targets: &[&str], rest: &[&str]) -> crate::support::Answer {
    place.run(&[&["run", "point-write"], targets, &BRIEF, rest].concat())
}

#[test]
fn durability_option_sets_one_class_and_names_engines_without_it() {
    let servers = SERVERS.into_iter().filter(|engine| has(engine)).map(|engine| format!("up:{engine}"));
    let servers: Vec<String> = servers.collect();
    let targets: Vec<&str> = ["sqlite:"].into_iter().chain(servers.iter().map(|target| &**target)).collect();
    for class in ["os-cache", "periodic-sync"] {
        let place = Place::new();
        let answer = point_write(&place, &targets, &["--durability", class]);
        let report = place.report();
        let without = |target: &&str| {
            let name = target.trim_start_matches("up:").trim_end_matches(':');
            !cells(&report).iter().any(|cell| cell["target"] == name && cell["status"] == "ok")
        };
        let code = if targets.iter().any(without) { 4 } else { 0 };
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_eq!(report["spec"]["durability"], class);
        for cell in cells(&report) {
            let target = cell["target"].as_str().unwrap();
            // A substitute may support it or not.
            if ["mongodb", "couchdb"].contains(&target) && cell["status"] != "ok" {
                assert!(cell["reason"].as_str().unwrap().contains("durability class"), "{cell:#}");
            } else if target == "memcached" || target == "sqlite" && class == "periodic-sync" {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                assert!(cell["reason"].as_str().unwrap().contains("durability class"), "{cell:#}");
                assert!(answer.err.contains(&format!("not available: {target}")), "{answer:?}");
            } else {
                assert_eq!((&cell["status"], &cell["durability"]), (&"ok".into(), &class.into()), "{cell:#}");
            }
        }
    }
}

#[test]
fn rerun_has_the_class_of_the_first_run() {
    let place = Place::new();
    assert_eq!(point_write(&place, &["sqlite:"], &["--durability", "memory"]).code, Some(0));
    let first = place.report();
    assert_eq!(place.run(&["run", "--again", "last"]).code, Some(0));
    let again = place.report();
    assert_ne!(first["run"], again["run"]);
    for report in [first, again] {
        assert_eq!(report["spec"]["durability"], "memory");
        assert_eq!(report["targets"][0]["durability_settings"]["journal_mode"], "memory");
    }
}

#[test]
fn storage_engines_have_different_classes_in_one_run() {
    if !has("mysql") {
        return;
    }
    let place = Place::new();
    point_write(&place, &["up:mysql", "up:mysql?engine=MyISAM"], &[]).success();
    let report = place.report();
    let classes: Vec<_> = cells(&report).iter().map(|cell| cell["durability"].as_str().unwrap()).collect();
    assert!(classes.contains(&"synced") && classes.contains(&"memory"), "{classes:?}");
    assert_eq!(report["targets"][1]["durability_settings"]["storage engine"], "MyISAM");
}
