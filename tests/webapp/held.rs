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

/// Checks that nothing leaks: between two late trials the process has as many open files, threads and connections as
/// between two early ones, when it waits and no client is at work.
pub(crate) fn leaves_nothing_behind(
    engine: &str,
    connection: &str,
    clients: usize,
    duration: &str,
    rounds: usize,
) {
    let Some(server) = testing::server(engine) else { return };
    let place = Place::new();
    let [number, rounds_number] = [clients, rounds].map(|number| number.to_string());
    let args =
        ["run", "webapp", server.url(), "--records", "500", "--clients", &number, "--connection", connection];
    let args = [&args[..], &["--no-html", "--quiet", "--interleave=off", "--duration", duration]].concat();
    let args = [&args[..], &["--rounds", &rounds_number]].concat();
    let port = port(server.port());
    // A cell and its A/A control have a trial in each round. What the first round makes, stays.
    let (early, late) = (2, 2 * rounds);
    let child = crate::support::piped(&mut place.pausing(&args, &[early, late]));
    let looked_at = |trials: usize| {
        place.wait_for_pause(trials);
        // The server's end of a connection that is being closed is not ours, and a thread that ends is there for a moment.
        let look = || {
            let once = || Some((held(child.id())?, of_process(child.id(), &port)));
            let (held, open) = once()?;
            std::thread::sleep(Duration::from_millis(100));
            let (again, still_open) = once()?;
            ((held.files, held.threads, &open) == (again.files, again.threads, &still_open))
                .then_some((again, open))
        };
        let looked =
            eventually(60, look).unwrap_or_else(|| panic!("{engine} {connection}: it does not rest"));
        place.go_on(trials);
        looked
    };
    let (before, _) = looked_at(early);
    let (after, open) = looked_at(late);
    let answer = crate::support::Answer::at_end_of(child);
    assert_eq!(answer.code, Some(0), "{engine} {connection}: {answer:?}");
    assert_eq!(cells(&place.report()).len(), 2);
    assert_eq!((before.files, before.threads), (after.files, after.threads), "{engine} {connection}");
    // Those of the store and of the observers; clients have none between trials.
    assert!(open.len() <= 8, "{engine} {connection}: {} connections", open.len());
    // Histograms and the like.
    assert!(after.memory <= before.memory + (32 << 20), "{engine} {connection}: {before:?}, {after:?} later");
    // On the server's side too.
    let left =
        || connections().into_iter().filter(|(at, from, _)| *at == port && open.contains(from)).count();
    let none = eventually(60, || (left() == 0).then_some(()));
    assert!(none.is_some(), "{engine} {connection}: {} connections are left", left());
}
