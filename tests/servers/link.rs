//! One database reads another's table: `link` on real servers.

mod elsewhere;

use super::common::{assert_verified, by, cells, has, left, skip, sql, tell};
use crate::support::{Answer, Place, eventually, metric, no_device, own_hosts, signal, words};
use kurabe_testbed::testing::{self, Lease};
use kurabe_testbed::{Server, StartOptions};
use serde_json::Value;

const SMALL: [&str; 11] = [
    "--records", "600", "--batch", "200", "--row-bytes", "100", "--requests", "6", "--rounds", "1",
    "--no-html",
];

fn run(place: &Place, targets: &[&str], rest: &[&str]) -> Answer {
    let place_of_table: &[&str] = if rest.contains(&"--where") { &[] } else { &["--where", "same,second"] };
    place.run(&[&["run", "link"], targets, rest, place_of_table, &SMALL].concat())
}

/// The verified cells of a run without A/A controls: way and place of each.
fn verified(place: &Place, answer: &Answer) -> Vec<(String, String)> {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    let all =
        cells(&report).iter().filter(|cell| cell["aa_control"] == false && cell["status"] != "unavailable");
    let mut found: Vec<(String, String)> = all
        .inspect(|cell| assert_verified(cell))
        .map(|cell| {
            let word = |axis: &str| cell["axes"][axis].as_str().unwrap().to_owned();
            (word("way"), word("where"))
        })
        .collect();
    found.sort();
    found
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = text
        .split_whitespace()
        .map(|pair| pair.split_once('/').map(|(way, place)| (way.to_owned(), place.to_owned())).unwrap())
        .collect();
    all.sort();
    all
}

/// The number of server definitions, and of extensions for links.
fn definitions(server: &Server, password: &str) -> String {
    let text = if server.url().starts_with("postgres") {
        "SELECT (SELECT count(*) FROM pg_foreign_server) + (SELECT count(*) FROM pg_user_mapping), \
         (SELECT count(*) FROM pg_extension WHERE extname IN ('postgres_fdw', 'dblink'))"
    } else {
        "SELECT COUNT(*) FROM mysql.servers"
    };
    sql(server, password, text).unwrap_or_default().replace('\t', "|").trim_end().to_owned()
}

#[test]
fn every_way_of_each_engine_reads_verified_rows() {
    for (engine, ways) in [
        ("sqlite", "local/same local/second direct/second attach/same attach/second"),
        ("postgres", "local/same local/second direct/second fdw/same fdw/second dblink/same dblink/second"),
        ("mysql", "local/same local/second direct/second federated/same federated/second"),
        ("mariadb", "local/same local/second direct/second federated/same federated/second"),
    ] {
        if engine != "sqlite" && !has(engine) {
            continue;
        }
        let place = Place::new();
        let target = if engine == "sqlite" { "sqlite:".to_owned() } else { format!("up:{engine}") };
        let answer = run(
            &place,
            &[&target],
            &["--way", "local,direct,fdw,dblink,attach,federated,connect,spider,database-link"],
        );
        let mut expected = vec![ways.to_owned()];
        if engine == "mariadb" {
            for way in ["connect", "spider"] {
                let plugin = format!("/usr/lib/mysql/plugin/ha_{way}.so");
                if std::path::Path::new(&plugin).exists() || skip(&format!("{plugin} is not installed")) {
                    expected.push(format!("{way}/same {way}/second"));
                }
            }
        }
        assert_eq!(verified(&place, &answer), pairs(&expected.join(" ")), "{engine}: {answer:?}");
        // What no engine can do has a reason before anything is measured.
        assert!(answer.err.contains("not available"), "{answer:?}");
        let report = place.report();
        let lacking = cells(&report).iter().filter(|cell| cell["axes"]["way"] == "database-link");
        let reasons: Vec<&str> = lacking.map(|cell| cell["reason"].as_str().unwrap()).collect();
        assert!(reasons.len() == 2 && reasons[0].contains("another"), "{reasons:?}");
        if engine == "postgres" {
            let cell = cells(&report).iter().find(|cell| cell["axes"]["way"] == "fdw").unwrap();
            for name in ["time per row", "database CPU", "remote CPU"] {
                assert!(metric(cell, name).is_some_and(|value| value >= 0.0), "{name}: {cell:#}");
            }
        }
    }
}

#[test]
fn text_is_converted_between_latin_1_and_unicode_in_both_directions() {
    let place = Place::new();
    let wrong = ["--charset", "to-latin1", "--where", "second", "--way", "federated"];
    if has("mariadb") {
        // FederatedX of MariaDB 10.11 does not convert in this direction: its text is not returned as it was written.
        let answer = run(&place, &["up:mariadb"], &wrong);
        let report = place.report();
        for cell in cells(&report) {
            let told = cell["reason"].as_str().is_some_and(|why| why.contains("bytes instead of 100"));
            assert!(cell["status"] == "ok" || (answer.code == Some(4) && told), "{cell:#}");
        }
    }
    for (engine, charsets) in [("mysql", "utf8,latin1,to-latin1"), ("mariadb", "utf8,latin1")] {
        if !has(engine) {
            continue;
        }
        let place = Place::new();
        let rest = ["--charset", charsets, "--where", "second", "--way", "local,direct,federated"];
        let answer = run(&place, &[&format!("up:{engine}")], &rest);
        let each = "local/second direct/second federated/second";
        let mut expected = format!("{each} {each}");
        if engine == "mysql" {
            // Without a link there is no second table, which could have another character set.
            expected += " federated/second";
            assert!(answer.err.contains("one character set"), "{answer:?}");
        }
        assert_eq!(verified(&place, &answer), pairs(&expected), "{engine}");
    }
    let place = Place::new();
    let answer =
        run(&place, &["sqlite:"], &["--charset", "utf8,latin1", "--where", "same", "--way", "local"]);
    assert_eq!(verified(&place, &answer), pairs("local/same"));
    assert!(answer.err.contains("the character set of its database"), "{answer:?}");
}

#[test]
fn postgres_reads_a_table_of_mariadb_by_mysql_fdw() {
    if !["postgres", "mariadb"].iter().all(|engine| has(engine)) {
        return;
    }
    let place = Place::new();
    let rest = ["--remote", "up:mariadb", "--where", "remote,second", "--way", "local,direct,fdw,mysql-fdw"];
    let answer = run(&place, &["up:postgres"], &rest);
    assert!(answer.err.contains("mysql_fdw reads MySQL and MariaDB; name such a server"), "{answer:?}");
    let mut expected = "local/remote direct/remote local/second direct/second fdw/second".to_owned();
    if answer.err.contains("the server has no extension mysql_fdw") {
        tell("the extension mysql_fdw is not installed");
    } else {
        expected += " mysql-fdw/remote";
    }
    assert_eq!(verified(&place, &answer), pairs(&expected));
    assert!(answer.err.contains("the remote is MySQL or MariaDB; use mysql-fdw"), "{answer:?}");
}

#[test]
fn statements_of_both_servers_have_their_cpu_time_where_mysql_accounts_it() {
    if !has("mysql") {
        return;
    }
    let place = Place::new();
    let target = "up:mysql?performance_schema_consumer_events_statements_cpu=ON";
    let answer = run(&place, &[target], &["--where", "second", "--way", "federated"]);
    assert_eq!(verified(&place, &answer), pairs("federated/second"));
    let report = place.report();
    let statements = cells(&report)[0]["observed"][0]["engine"]["statements"].as_array().unwrap().clone();
    let of = |remote: bool| {
        let mut of_side = statements
            .iter()
            .filter(|statement| statement["text"].as_str().unwrap().starts_with("second: ") == remote);
        of_side.any(|statement| statement["cpu_ns"].as_u64().is_some_and(|cpu| cpu > 0))
    };
    assert!(of(false) && of(true), "{statements:#?}");
    assert!(place.run(&["report", "--format", "md"]).out.contains("CPU/call"));
}

/// A server with `pg_stat_statements`, and that extension in its database.
fn with_statements(password: &'static str) -> Option<Lease> {
    let server = testing::server_with("postgres", |options| {
        options.with_password(password).set("shared_preload_libraries", "pg_stat_statements")
    })?;
    sql(&server, password, "CREATE EXTENSION pg_stat_statements")?;
    Some(server)
}

#[test]
fn named_servers_are_linked_and_left_as_they_were_without_any_password_on_record() {
    let (near, far) = ("ne-ar-secret", "fa'r\\secret");
    let (Some(first), Some(second)) = (with_statements(near), with_statements(far)) else { return };
    let encoded = "fa%27r%5Csecret";
    let place = Place::new();
    let url = by(&first, &format!("kurabe:{near}"), "kurabe");
    let remote = by(&second, &format!("kurabe:{encoded}"), "kurabe");
    let before = [definitions(&first, near), definitions(&second, far)];
    let rest = [
        "--remote", &remote, "--where", "remote", "--way", "local,direct,fdw,dblink", "--fetch", "default,50",
    ];
    let answer = run(&place, &[&url], &rest);
    let expected = "local/remote direct/remote fdw/remote fdw/remote dblink/remote";
    assert_eq!(verified(&place, &answer), pairs(expected));
    let report = place.run(&["report", "--format", "md"]).out;
    // The remote's side of a foreign table is a cursor.
    assert!(report.contains("remote: DECLARE") || report.contains("remote: FETCH"), "{report}");
    assert_eq!([definitions(&first, near), definitions(&second, far)], before);
    for (server, password) in [(&first, near), (&second, far)] {
        let text = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'kurabe%'";
        assert_eq!(sql(server, password, text).unwrap(), "");
    }
    let texts = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path().join("run.jsonl")).unwrap());
    for text in texts.chain([answer.out, answer.err, report]) {
        for secret in [near, far, encoded] {
            assert!(!text.contains(secret), "{secret} is on record");
        }
    }
}

#[test]
fn foreign_table_of_others_is_refused_by_name_and_left() {
    let Some(server) = testing::server("postgres") else { return };
    let made = "CREATE EXTENSION postgres_fdw; \
                CREATE SERVER kurabe_0_link_100_fdw FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'h'); \
                CREATE FOREIGN TABLE kurabe_0_link_100_fdw (id bigint) SERVER kurabe_0_link_100_fdw";
    if sql(&server, "", made).is_none() {
        return;
    }
    let place = Place::new();
    let answer = run(&place, &[server.url()], &["--way", "fdw", "--where", "same"]).exit_code(3);
    let part = "kurabe_0_link_100_fdw exists and was not made by Kurabe";
    assert!(answer.err.contains(part), "{answer:?}");
    assert_eq!(left("postgres", &server), "kurabe_0_link_100_fdw\n");
    // An extension of others stays too.
    assert_eq!(definitions(&server, ""), "1|1");
}

fn with_links(options: StartOptions) -> StartOptions {
    StartOptions { links: true, ..options }
}

/// Starts a long run from one server to the other, and waits until it reads through the link.
fn reading(place: &Place, near: &Server, far: &Server, way: &str) -> std::process::Child {
    let line = format!(
        "run link {} --remote {} --where remote --way {way} --records 600 --batch 200 --row-bytes 100 \
         --duration 300ms --rounds 200 --interleave=off --no-html",
        near.url(),
        far.url()
    );
    let (child, _) = place.spawn_to_trial(&words(&line), 2);
    place.go_on(2);
    child
}

#[test]
fn killed_remote_fails_trial_with_reason_and_target_is_left_clean() {
    for (engine, way) in
        [("postgres", "fdw"), ("postgres", "dblink"), ("mariadb", "federated"), ("mysql", "federated")]
    {
        let near = testing::server_with(engine, with_links);
        let (Some(near), Some(far)) = (near, testing::server(engine)) else { continue };
        let place = Place::new();
        let child = reading(&place, &near, &far, way);
        far.kill_hard().unwrap();
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(4), "{engine} {way}: {answer:?}");
        let report = place.report();
        let failed: Vec<&Value> = cells(&report).iter().filter(|cell| cell["status"] == "failed").collect();
        assert!(!failed.is_empty(), "{report:#}");
        for cell in failed {
            let reason = cell["reason"].as_str().unwrap();
            assert!(reason.contains("the remote server"), "{engine} {way}: {reason}");
        }
        assert_eq!(left(engine, &near), "", "{engine} {way}");
        let none = if engine == "postgres" { "0|0" } else { "0" };
        assert_eq!(definitions(&near, ""), none, "{engine} {way}");
    }
}

#[test]
fn links_of_killed_run_are_removed_by_the_next_one() {
    for (engine, way) in [("postgres", "fdw"), ("mysql", "federated")] {
        let near = testing::server_with(engine, with_links);
        let (Some(near), Some(far)) = (near, testing::server(engine)) else { continue };
        let place = Place::new();
        let mut child = reading(&place, &near, &far, way);
        signal(&child, "-KILL");
        child.wait().unwrap();
        let none = if engine == "postgres" { "0|0" } else { "0" };
        assert_ne!(definitions(&near, ""), none, "{engine}: the killed run had no link");
        // Another experiment on the same database.
        let rest = ["--records", "50", "--requests", "10", "--rounds", "1", "--no-html"];
        let answer = eventually(20, || {
            let answer = place.run(&[&["run", "point-read", near.url()], &rest[..]].concat());
            (answer.code == Some(0)).then_some(answer)
        });
        assert!(answer.is_some(), "{engine}");
        assert_eq!(
            (left(engine, &near), definitions(&near, "")),
            (String::new(), none.to_owned()),
            "{engine}"
        );
    }
}

#[test]
fn second_host_is_observed_and_leaves_no_device() {
    let _alone = own_hosts();
    let place = Place::new();
    let wrong = place.run(&["run", "point-read", "up:redis?mtu=1500", "--rounds", "1"]).exit_code(2);
    assert!(wrong.err.contains("this one is started on this host only"), "{wrong:?}");
    for (engine, ways) in [("postgres", "local,direct,fdw"), ("mariadb", "local,direct,federated")] {
        if !has(engine) {
            continue;
        }
        let rest = ["--way", ways, "--where", "host,host-9000"];
        let answer = run(&place, &[&format!("up:{engine}")], &rest);
        if answer.err.contains("takes root") || answer.err.contains("unshare") {
            tell("a host of its own cannot be made here: that takes root, unshare, nsenter and ip");
            return;
        }
        let link = ways.rsplit(',').next().unwrap();
        let expected: Vec<String> = ["local", "direct", link]
            .iter()
            .flat_map(|way| ["host", "host-9000"].map(|place| format!("{way}/{place}")))
            .collect();
        assert_eq!(verified(&place, &answer), pairs(&expected.join(" ")));
        for cell in cells(&place.report()).iter().filter(|cell| cell["axes"]["way"] == link) {
            assert!(metric(cell, "remote CPU").unwrap() > 0.0, "{engine}: {cell:#}");
        }
    }
    assert!(eventually(30, || no_device().then_some(())).is_some(), "a device was left");
}

#[test]
fn missing_remotes_have_reasons_before_anything_is_measured() {
    let place = Place::new();
    let answer = run(&place, &["sqlite:"], &["--where", "second,remote", "--way", "local,attach"]);
    assert_eq!(verified(&place, &answer), pairs("local/second local/remote attach/second"));
    assert!(answer.err.contains("no remote server is named: --remote TARGET"), "{answer:?}");
    let answer = run(&place, &["sqlite:"], &["--remote", "sqlite:x", "--way", "attach"]).exit_code(2);
    assert!(answer.err.contains("no cell uses the server that it names"), "{answer:?}");
    place.run(&["run", "-f", "/dev/null", "--remote", "sqlite:x"]).exit_code(2);
    let answer = run(&place, &["sqlite:"], &["--dry-run"]).success();
    assert!(answer.out.contains("attach") && answer.err.is_empty(), "{answer:?}");
    if !has("postgres") {
        return;
    }
    let answer = run(
        &place,
        &["sqlite:"],
        &["--remote", "up:postgres", "--where", "remote", "--way", "direct,attach"],
    );
    assert_eq!(verified(&place, &answer), pairs("direct/remote"));
    assert!(answer.err.contains("SQLite attaches files of SQLite only, not postgres:"), "{answer:?}");
}
