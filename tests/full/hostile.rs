//! Ten thousand clients of `kurabe up app`.

use crate::servers::common::skip;
use crate::web::common::serve_beside_idle_connections;

#[test]
fn ten_thousand_idle_connections_do_not_block_others() {
    const IDLE: usize = 10_000;
    let limit = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limit.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft = files.split_whitespace().nth(3).and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    if soft < IDLE + 1_000 {
        skip(&format!("this process may open {soft} files"));
        return;
    }
    serve_beside_idle_connections(IDLE);
}
