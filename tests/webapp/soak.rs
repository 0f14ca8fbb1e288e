//! Nothing leaks: as many open files, connections and threads at the end of many requests as after the first ones.

use crate::servers::common::cells;
use crate::support::{Place, eventually};
use kurabe_testbed::{Server, testing};
use std::path::Path;
use std::time::Duration;

/// Open files and threads of a process, and its resident memory in bytes.
#[derive(Clone, Copy, Debug)]
struct Held {
    files: usize,
    threads: usize,
    memory: u64,
}

fn held(pid: u32) -> Option<Held> {
    let count = |what: &str| {
        Some(std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join(what)).ok()?.count())
    };
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(Held { files: count("fd")?, threads: count("task")?, memory: pages * 4_096 })
}

/// Connections that stand at the server, by the kernel's table.
fn connections(server: &Server) -> usize {
    let port = server.url().rsplit_once(':').unwrap().1;
    let port: u16 = port.split(['/', '?']).next().unwrap().parse().unwrap();
    let wanted = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // The state 01 is ESTABLISHED.
    let stands = |line: &&str| {
        let mut parts = line.split_whitespace().skip(1);
        parts.next().is_some_and(|local| local.ends_with(&wanted)) && parts.nth(1) == Some("01")
    };
    table.lines().filter(stands).count()
}

fn soak(engine: &str, connection: &str) {
    const CLIENTS: usize = 50;
    let Some(server) = testing::server(engine) else { return };
    let place = Place::new();
    let args = [
        "run",
        "webapp",
        server.url(),
        "--records",
        "500",
        "--clients",
        "50",
        "--connection",
        connection,
        "--duration",
        "1s",
        "--rounds",
        "4",
        "--no-html",
        "--quiet",
    ];
    let before = connections(&server);
    let mut child = place.spawn(&args);
    let mut seen: Vec<(Held, usize)> = Vec::new();
    while child.try_wait().unwrap().is_none() {
        if let Some(held) = held(child.id()) {
            seen.push((held, connections(&server)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = crate::support::Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{engine} {connection}: {answer:?}");
    // One cell and its repeat.
    assert_eq!(cells(&place.report()).len(), 2);
    // House, check and one connection of each client; the files of a few pipes, the run and the libraries beside them.
    let most = |of: &dyn Fn(&(Held, usize)) -> usize, from: usize, to: usize| {
        seen[from..to].iter().map(of).max().unwrap_or(0)
    };
    let (third, all) = (seen.len() / 3, seen.len());
    assert!(all > 20, "{all} looks");
    for (from, to) in [(0, third), (2 * third, all)] {
        let (files, threads) =
            (most(&|(held, _)| held.files, from, to), most(&|(held, _)| held.threads, from, to));
        assert!(
            files <= CLIENTS + 40 && threads <= CLIENTS + 20,
            "{engine} {connection}: {files} files, {threads} threads"
        );
    }
    if connection == "kept" {
        let at_once = most(&|(_, connections)| *connections, 0, all);
        assert!(at_once <= before + CLIENTS + 4, "{engine}: {at_once} connections at once");
    }
    // Later trials hold no more memory than earlier ones did, histograms and the like aside.
    let memory =
        |from: usize, to: usize| seen[from..to].iter().map(|(held, _)| held.memory).max().unwrap_or(0);
    let (early, late) = (memory(0, 2 * third), memory(2 * third, all));
    assert!(late <= early + (32 << 20), "{engine} {connection}: {early} bytes, and {late} later");
    assert!(
        eventually(10, || (connections(&server) <= before).then_some(())).is_some(),
        "{engine} {connection}: {} connections are left",
        connections(&server)
    );
}

#[test]
fn fifty_clients_leave_nothing_behind() {
    for engine in ["postgres", "mysql"] {
        for connection in ["kept", "per-request"] {
            soak(engine, connection);
        }
    }
}
