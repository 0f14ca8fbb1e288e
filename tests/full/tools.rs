//! Load generators of others before `kurabe up app`, for longer than in the default tier.

use crate::web::common::{App, tool};
use kurabe_testbed::testing;

#[test]
fn wrk_sees_no_error() {
    let app = App::start("sqlite:", &[]);
    let Some(text) =
        tool("wrk", &["-t", "1", "-c", "64", "-d", "1s", "--timeout", "30s", &app.url("/kv/read")])
    else {
        return;
    };
    assert!(text.contains("Requests/sec:"), "{text}");
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
}

#[test]
fn ab_sees_no_failed_request_among_ten_thousand() {
    let Some(server) = testing::server("postgres") else { return };
    let app = App::start(server.url(), &["--connection", "kept"]);
    for (keep, page) in
        [(&["-k"][..], "/kv/read"), (&[], "/kv/read"), (&["-k", "-p", "/dev/null"], "/kv/write")]
    {
        let url = app.url(page);
        let Some(text) = tool("ab", &[keep, &["-q", "-c", "100", "-n", "10000", &url]].concat()) else {
            return;
        };
        let failed = text.lines().find_map(|line| line.strip_prefix("Failed requests:")).unwrap();
        assert!(failed.trim() == "0" && !text.contains("Non-2xx"), "{text}");
    }
    let answer = app.stop();
    assert!(answer.err.contains("kv write: 10,000 writes, the record of each read back"), "{answer:?}");
}
