//! `--cache`: what a cache in front of the database answers, and what depends on it.

use super::*;

#[test]
fn commit_that_changes_a_table_empties_the_cache_of_its_reads_alone() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::that_starts_servers();
    let tables = "CREATE TABLE a (k int PRIMARY KEY, v int); INSERT INTO a VALUES (1, 1); CREATE TABLE b (k int PRIMARY KEY, v int); \
                  INSERT INTO b VALUES (1, 1)";
    place.file("data.sql", tables);
    sql(&server, "", tables).unwrap();
    let reads = "SELECT v FROM a WHERE k = 1;\nSELECT v FROM b WHERE k = 1;\n".repeat(5);
    let change = "UPDATE public.a SET v = v + 1 WHERE k = 1;\n";
    // What changes no rows, or is rolled back, changes nothing.
    let none = "UPDATE a SET v = 0 WHERE k = 9;\nBEGIN;\nUPDATE b SET v = 5;\nROLLBACK;\n";
    // What is read in a transaction, and what differs each time, is not cached.
    let others = "BEGIN;\nSELECT v FROM b WHERE k = 1;\nCOMMIT;\nSELECT random() FROM b;\n";
    place.file("script.sql", [&reads, change, none, &reads, others].concat());
    let path = captured(&place, "reads", &server, "psql -qXf script.sql");
    let data = place.at("data.sql");
    let report = report(&place, &path, &["up:postgres", "--data", &data, "--cache", "up:memcached"]);
    let cached: Vec<&Json> =
        cells(&report).iter().filter(|cell| metric(cell, "cacheable reads").is_some()).collect();
    assert!(!cached.is_empty() && cached.len() < cells(&report).len(), "{report:#}");
    for cell in cached {
        assert_eq!(metric(cell, "cacheable reads").map(f64::round), Some(20.0), "{cell:#}");
        // Each table's first read misses, and that of the changed one a second time.
        let hits = metric(cell, "hit ratio").unwrap();
        assert!((hits - 0.85).abs() < 1e-9, "{cell:#}");
    }
}

#[test]
fn cache_that_dies_fails_the_trials_with_it_alone() {
    let (Some(server), Some(cache)) = (testing::server("postgres"), testing::own_server("redis")) else {
        return;
    };
    let place = Place::new();
    sql(&server, "", "CREATE TABLE a (k int PRIMARY KEY, v int); INSERT INTO a VALUES (1, 1)").unwrap();
    place.file("script.sql", "SELECT v FROM a WHERE k = 1;\n".repeat(100));
    let path = captured(&place, "reads", &server, "psql -qXf script.sql");
    let args = ["run", "replay", &path, server.url(), "--cache", cache.url(), "--rounds", "12", "--no-html"];
    let port = cache.port().to_string();
    let answer = std::thread::scope(|scope| {
        let run = scope.spawn(|| place.run(&args));
        place.wait_for_trials(3);
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port, "SHUTDOWN", "NOSAVE"]).env("REDISCLI_AUTH", cache.password().unwrap());
        command.output().unwrap();
        run.join().unwrap()
    });
    assert_ne!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    for cell in cells(&report) {
        let expected = if cell["axes"]["cached"] == "no" { "ok" } else { "failed" };
        assert_eq!(cell["status"], expected, "{cell:#}\n{answer:?}");
    }
}
