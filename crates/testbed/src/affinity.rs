//! Restricts a running server to processors: all threads of all of its processes, and those that start later.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Maximum number of passes over the threads.
const PASSES: u32 = 50;

/// Restricts the process `root` and its descendants to these processors, not empty; `pinned`: each thread to one of them,
/// in turn.
///
/// A new thread or process inherits the processors of the thread that starts it. Passes are repeated until one finds
/// nothing to change: from then on, whatever starts is restricted too.
///
/// # Errors
/// If the system refuses, as for processes of another user, or if the server starts threads faster than these are found.
pub(crate) fn restrict(root: u32, cpus: &[u32], pinned: bool) -> io::Result<()> {
    let all = set_of(cpus);
    let mut next = 0;
    for _ in 0..PASSES {
        let mut changed = false;
        for thread in threads(root) {
            let Some(now) = read(thread)? else { continue };
            let wanted = if pinned {
                if now.count() == 1 && cpus.iter().any(|cpu| now.is_set(*cpu as usize)) {
                    continue;
                }
                next += 1;
                set_of(&cpus[(next - 1) % cpus.len()..][..1])
            } else if now == all {
                continue;
            } else {
                all
            };
            changed = true;
            match sched_setaffinity(Some(thread), &wanted) {
                // It has ended.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !changed {
            return Ok(());
        }
    }
    Err(io::Error::other("its threads start faster than they can be restricted"))
}

/// The processors of the calling thread; `None` if the system does not tell.
pub(crate) fn own() -> Option<Vec<u32>> {
    sched_getaffinity(None).ok().map(|set| list(&set))
}

/// The processors of a process's first thread.
pub(crate) fn of(process: u32) -> Option<Vec<u32>> {
    let set = read(Pid::from_raw(i32::try_from(process).ok()?)?).ok()??;
    Some(list(&set))
}

fn list(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU as u32).filter(|cpu| set.is_set(*cpu as usize)).collect()
}

fn set_of(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU) {
        set.set(*cpu as usize);
    }
    set
}

/// The processors of a thread; `None` if it has ended.
fn read(thread: Pid) -> io::Result<Option<CpuSet>> {
    match sched_getaffinity(Some(thread)) {
        Ok(set) => Ok(Some(set)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// All threads of a process and its descendants, in the order of their start, as far as numbers show it.
fn threads(root: u32) -> Vec<Pid> {
    let mut numbers: Vec<i32> = std::iter::once(root)
        .chain(kurabe_os::process::descendants(root))
        .filter_map(|process| fs::read_dir(format!("/proc/{process}/task")).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn processes_that_exist_and_that_start_later_are_restricted() {
        let cpus = own().unwrap();
        let one = &cpus[cpus.len() - 1..];
        let script = "sleep 60 & echo ready; read next; sleep 60 & echo again; read end; kill %1 %2";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut input = shell.stdin.take().unwrap();
        let mut output = io::BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        restrict(shell.id(), one, false).unwrap();
        io::Write::write_all(&mut input, b"\n").unwrap();
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        let found = threads(shell.id());
        assert_eq!(found.len(), 3, "the shell and both of its children");
        for thread in &found {
            assert_eq!(read(*thread).unwrap(), Some(set_of(one)));
        }
        // Back to all, then each to one.
        restrict(shell.id(), &cpus, false).unwrap();
        restrict(shell.id(), &cpus, true).unwrap();
        let mut used: Vec<u32> = Vec::new();
        for thread in &found {
            let set = read(*thread).unwrap().unwrap();
            assert_eq!(set.count(), 1);
            used.extend(cpus.iter().filter(|cpu| set.is_set(**cpu as usize)));
        }
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), cpus.len().min(3), "in turn: {used:?}");
        drop(input);
        shell.wait().unwrap();
    }
}
