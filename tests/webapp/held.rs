//! What a process holds: files, threads, memory, and connections to a server.

use crate::servers::common::cells;
use crate::support::{Place, eventually};
use kurabe_testbed::{Server, testing};
use std::collections::BTreeSet;
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

/// A port, in the format of the kernel's table.
fn port(number: u16) -> String {
    format!("{number:04X}")
}

/// The number of a process's connections to a server.
pub(crate) fn connections_to(pid: u32, server: &Server) -> usize {
    of_process(pid, &port(server.port())).len()
}

/// Established connections in the kernel's table: the ports of both ends, and the number of the socket.
fn connections() -> Vec<(String, String, u64)> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let read = |line: &str| {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let port = |at: usize| Some(parts.get(at)?.split_once(':')?.1.to_owned());
        // The state 01 is ESTABLISHED.
        (*parts.get(3)? == "01").then_some((port(1)?, port(2)?, parts.get(9)?.parse().ok()?))
    };
    table.lines().filter_map(read).collect()
}

/// The ports of a process's connections to a server: other tests may use the same server.
fn of_process(pid: u32, server: &str) -> BTreeSet<String> {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return BTreeSet::new() };
    let sockets: Vec<u64> = files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect();
    let ours = |(_, to, socket): &(String, String, u64)| to == server && sockets.contains(socket);
    // The kernel's table is read in pieces, and shows a line twice if others are added or removed meanwhile.
    connections().into_iter().filter(ours).map(|(from, ..)| from).collect()
}

/// Checks that nothing leaks: after many requests of this many clients there are as many open files, connections and threads
/// as after the first ones.
pub(crate) fn leaves_nothing_behind(engine: &str, connection: &str, clients: usize, rest: &[&str]) {
    let Some(server) = testing::server(engine) else { return };
    let place = Place::new();
    let number = clients.to_string();
    let args =
        ["run", "webapp", server.url(), "--records", "500", "--clients", &number, "--connection", connection];
    let args = [&args[..], &["--no-html", "--quiet", "--interleave=off"], rest].concat();
    let port = port(server.port());
    let mut child = place.spawn(&args);
    // What the start holds is not compared.
    place.wait_for_trials(1);
    let mut seen: Vec<(Held, usize)> = Vec::new();
    let mut last = BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        if let Some(held) = held(child.id()) {
            let open = of_process(child.id(), &port);
            seen.push((held, open.len()));
            if !open.is_empty() {
                last = open;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = crate::support::Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{engine} {connection}: {answer:?}");
    // One cell and its A/A control.
    assert_eq!(cells(&place.report()).len(), 2);
    // A busy machine allows few samples, but enough in each third to show the open connections.
    let (third, all) = (seen.len() / 3, seen.len());
    assert!(all >= 6, "{all} looks");
    let most = |of: &dyn Fn(&(Held, usize)) -> usize, from: usize, to: usize| {
        seen[from..to].iter().map(of).max().unwrap_or(0)
    };
    // What is held for a moment only, as while a busy machine opens and closes connections, is no leak.
    let median = |of: &dyn Fn(&(Held, usize)) -> usize, from: usize, to: usize| {
        let mut all: Vec<usize> = seen[from..to].iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let held =
        |from, to| (median(&|(held, _)| held.files, from, to), median(&|(held, _)| held.threads, from, to));
    let (first, last_third) = (held(0, third), held(2 * third, all));
    // Each client has a thread and, while the server closes the previous connection, up to two connections. A trial
    // has thousands of requests: a leak per request, or per trial, would be far larger than this.
    for (files, threads) in [first, last_third] {
        assert!(
            files <= 2 * clients + 40 && threads <= clients + 20,
            "{engine} {connection}: {files} files, {threads} threads"
        );
    }
    // The first third may show the files of the program and the store only, without the up to two connections of each client.
    let at_first = most(&|(held, _)| held.files, 0, third);
    assert!(
        last_third.0 <= at_first + 2 * clients,
        "{engine} {connection}: {at_first} files, then {}",
        last_third.0
    );
    if connection == "kept" {
        // The connections of the store in addition to those of clients, and as many for the A/A control.
        let at_once = most(&|(_, connections)| *connections, 0, all);
        assert!((clients..=clients + 8).contains(&at_once), "{engine}: {at_once} connections at once");
    }
    // Later trials use no more memory than earlier ones, apart from histograms and the like.
    let memory =
        |from: usize, to: usize| seen[from..to].iter().map(|(held, _)| held.memory).max().unwrap_or(0);
    let (early, late) = (memory(0, 2 * third), memory(2 * third, all));
    assert!(late <= early + (32 << 20), "{engine} {connection}: {early} bytes, and {late} later");
    // On the server's side too.
    let left =
        || connections().into_iter().filter(|(at, from, _)| *at == port && last.contains(from)).count();
    let none = eventually(60, || (left() == 0).then_some(()));
    assert!(none.is_some(), "{engine} {connection}: {} connections are left", left());
}
