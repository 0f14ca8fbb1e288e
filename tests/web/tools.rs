//! ab and curl without changes.

use super::common::{App, tool};
use kurabe_core::units;
use kurabe_testbed::testing;

/// The number after a name in ab's output.
fn line(text: &str, name: &str) -> u64 {
    let value =
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    value.trim().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn ab_sees_no_failed_request_with_and_without_keep_alive() {
    let Some(server) = testing::server("postgres") else { return };
    for (connection, requests) in
        [(&["--connection", "kept"][..], 1_000), (&["--connection", "pool", "--pool", "4"], 500)]
    {
        let app = App::start(server.url(), &[connection, &["--allow-get-writes"]].concat());
        let number = requests.to_string();
        for (page, keep) in
            [("/kv/read", true), ("/kv/read", false), ("/kv/write", true), ("/kv/write", false)]
        {
            let url = app.url(page);
            let mut args = vec!["-q", "-c", "100", "-n", &number, &url];
            if keep {
                // ab sends POST with the bytes of a file.
                args.splice(
                    0..0,
                    if page == "/kv/write" { &["-k", "-p", "/dev/null"][..] } else { &["-k"] }
                        .iter()
                        .copied(),
                );
            }
            let Some(text) = tool("ab", &args) else { return };
            assert_eq!(line(&text, "Complete requests:"), requests, "{text}");
            assert_eq!(line(&text, "Failed requests:"), 0, "{text}");
            assert!(!text.contains("Non-2xx"), "{text}");
            if keep {
                assert_eq!(line(&text, "Keep-Alive requests:"), requests, "{text}");
            }
        }
        assert_eq!(app.get("/kv/count").body.trim().parse::<u64>().unwrap(), 2 * requests);
        let answer = app.stop().success();
        let written = units::count(2 * requests);
        assert!(
            answer.err.contains(&format!("kv write: {written} writes, the record of each read back")),
            "{answer:?}"
        );
        let all = units::count(4 * requests + 1);
        assert!(answer.err.contains(&format!("{all} requests answered;")), "something failed: {answer:?}");
    }
}

#[test]
fn ab_works_with_connection_per_request() {
    let Some(server) = testing::server("mariadb") else { return };
    let app =
        App::start(server.url(), &["--connection", "per-request", "--workers", "8", "--allow-get-writes"]);
    for page in ["/kv/read", "/kv/write"] {
        let Some(text) = tool("ab", &["-q", "-c", "50", "-n", "1000", &app.url(page)]) else { return };
        assert_eq!(line(&text, "Failed requests:"), 0, "{text}");
        assert!(!text.contains("Non-2xx"), "{text}");
    }
    let answer = app.stop();
    assert!(answer.err.contains("kv write: 1,000 writes, the record of each read back"), "{answer:?}");
}

#[test]
fn curl_reads_loaded_and_added_records() {
    let app = App::start("sqlite:", &["--seed", "7"]);
    let curl = |page: &str| tool("curl", &["-s", "-S", "--fail", &app.url(page)]);
    let Some(list) = curl("/") else { return };
    assert!(list.contains("/kv/read\n/kv/write\n/kv/count"), "{list}");
    assert_eq!(curl("/health").unwrap(), "ok\n");
    let about: serde_json::Value = serde_json::from_str(&curl("/kv").unwrap()).unwrap();
    assert_eq!((&about["seed"], &about["records"]), (&7.into(), &500.into()), "{about:#}");
    assert_eq!(about["durability"], "synced", "{about:#}");
    // The formula of the contract: printf 7:12:1 | md5sum, and so on.
    let golden = include_str!("../../crates/experiments/golden/kv_record_seed7_key12.txt").trim();
    assert_eq!(curl("/kv/read?key=12").unwrap(), format!("{:020}\n{golden}", 12));
    let written = tool("curl", &["-s", "-S", "--fail", "-X", "POST", &app.url("/kv/write")]).unwrap();
    let key = written.split('\n').next().unwrap().parse::<u64>().unwrap();
    assert!(key > 500, "{written}");
    assert_eq!(curl(&format!("/kv/read?key={key}")).unwrap(), written);
    assert_eq!(curl("/kv/count").unwrap(), format!("{:020}\n", 1));
}
