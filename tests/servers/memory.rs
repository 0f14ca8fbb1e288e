//! The program's memory.

use super::common::{assert_all_verified, has, session};
use crate::support::{Answer, Place, eventually};

/// The maximum memory of the program, in kilobytes.
const MAX: u64 = 300_000;

/// The peak memory of a process so far, in kilobytes; `None` once it has ended.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn fifty_clients_with_megabyte_payloads_fit_into_300_megabytes() {
    let rest = "--payload 1m --compress none --clients 50 --requests 50 --records 8 --rounds 1 --layout";
    for (engine, layout) in [("postgres", "blob"), ("mysql", "rows"), ("redis", "blob,rows")] {
        if !has(engine) {
            continue;
        }
        let rest: Vec<&str> = rest.split(' ').chain([layout]).collect();
        let place = Place::new();
        // The log of a server of the tests is too small for payloads of this size: this is the usual one.
        let usual = if engine == "mysql" { "?innodb_redo_log_capacity=100M" } else { "" };
        let mut child = place.spawn(&session(&[&format!("up:{engine}{usual}")], &rest));
        let mut most = 0;
        let _ = eventually(120, || {
            most = peak(child.id()).unwrap_or(0).max(most);
            child.try_wait().unwrap()
        });
        let answer = Answer::at_end_of(child);
        assert_all_verified(&place, &answer);
        println!("{engine}: at most {} MB", most / 1_000);
        assert!(most > 50_000, "the largest process was not seen: {most} kB");
        assert!(most <= MAX, "{engine}: {most} kB");
    }
}
