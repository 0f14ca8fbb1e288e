//! kv with forty clients on every engine. The default tier's run of `suites/mission.toml` has two.

use crate::servers::common::cells;
use crate::support::Place;
use kurabe_testbed::testing;

#[test]
fn every_engine_reads_and_adds_records_with_forty_clients() {
    for engine in ["sqlite", "postgres", "mysql", "mariadb", "memcached", "redis", "mongodb", "couchdb"] {
        let server = if engine == "sqlite" { None } else { testing::server(engine) };
        if server.is_none() && engine != "sqlite" {
            continue;
        }
        let url = server.as_ref().map_or("sqlite:", |server| server.url());
        let place = Place::new();
        let rest = ["--clients", "40", "--requests", "400", "--records", "300", "--rounds", "1", "--no-html"];
        place.run(&[&["run", "kv", url, "--quiet"], &rest[..]].concat()).success();
        for cell in cells(&place.report()) {
            assert_eq!(cell["status"], "ok", "{engine}: {cell:#}");
            assert_eq!(cell["verified"]["mismatches"], 0, "{cell:#}");
            if cell["operation"] == "write" {
                assert!(cell["verified"]["writes"].as_u64() >= Some(400), "{engine}: {cell:#}");
            }
        }
    }
}
