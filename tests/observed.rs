//! The observation of servers by a run, and its bottlenecks.

use crate::support::Place;
use kurabe_testbed::testing;
use serde_json::Value;

/// The observations of a run's only operation, over all cells.
fn observed(report: &Value) -> Vec<Value> {
    let cells = report["cells"].as_array().unwrap().iter();
    cells.flat_map(|cell| cell["observed"].as_array().cloned().unwrap_or_default()).collect()
}

fn point_read(place: &Place, target: &str) -> Value {
    let args =
        ["run", "point-read", target, "--requests", "3000", "--rounds", "1", "--records", "900", "--no-html"];
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    place.report()
}

#[test]
fn server_processes_are_found_with_their_resource_use() {
    for (engine, program) in [("postgres", "postgres"), ("redis", "redis-server"), ("memcached", "memcached")]
    {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        for seen in observed(&point_read(&place, server.url())) {
            let server = &seen["server"]["seen"];
            assert_eq!(server["name"], program, "{seen}");
            assert!(server["cpu_ns"].as_u64().unwrap() > 0, "{seen}");
            assert!(server["memory_bytes"].as_u64().unwrap() > 1_000_000, "{seen}");
            // A server that forks for each connection is observed with its children.
            assert!(program != "postgres" || server["processes"].as_u64().unwrap() >= 3, "{seen}");
            assert_eq!(seen["client"]["name"], "kurabe", "{seen}");
        }
    }
}

#[test]
fn exactly_the_bytes_of_all_answers_are_counted() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let report = point_read(&place, server.url());
    let seen = observed(&report);
    // The cell, and its A/A control.
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let wire = &seen["wire"];
        assert_eq!((&wire["connections"], &wire["retransmits"]), (&1.into(), &0.into()), "{seen}");
        // Every row has 100 bytes, so that all 3,000 replies have the same length, protocol overhead included.
        let received = wire["received_bytes"].as_u64().unwrap();
        assert!(received % 3_000 == 0 && (100..400).contains(&(received / 3_000)), "{seen}");
        assert!(wire["segments_out"].as_u64().unwrap() >= 3_000, "{seen}");
        assert!(wire["sent_bytes"].as_u64().unwrap() > 3_000, "{seen}");
    }
}

#[test]
fn embedded_database_has_no_server_and_uses_client_cpu() {
    let place = Place::new();
    let report = point_read(&place, "sqlite:");
    for seen in observed(&report) {
        assert_eq!(seen["server"], "in-client", "{seen}");
        assert!(seen["client"]["cpu_ns"].as_u64().unwrap() > 0);
    }
    let found = &report["cells"][0]["attribution"];
    assert!(found["evidence"].as_str().unwrap().len() > 20, "{found}");
    assert_ne!(found["bottleneck"], "server-cpu", "{found}");
}

#[test]
fn selftest_names_planted_causes() {
    let place = Place::new();
    // On a busy machine a cause may be named wrongly, or not at all, but never wrongly with high
    // confidence.
    let answer = place
        .run(&["selftest", "redis", "--kind", "client-cpu,network", "--rounds", "1", "--duration", "1s"]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.out.contains("planted causes named correctly"), "{said}");
    assert!(answer.out.contains("0 causes were named wrongly with high confidence"), "{said}");
    assert_eq!(answer.out.matches("left out").count(), 0, "{said}");
    let all_right = ["2 of 2 planted", "1 of 1 planted"].iter().any(|line| answer.out.contains(line));
    assert_eq!(answer.code == Some(0), all_right, "{said}");
}
