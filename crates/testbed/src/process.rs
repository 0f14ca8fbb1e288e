//! Processes by number, safe against reused numbers.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use kurabe_os::process::{Stat, descendants};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// The identity of a process: its number and start time, which no later process shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub pid: u32,
    /// Clock ticks since boot, field 22 of proc(5)'s `stat`.
    start: u64,
    /// The boot id.
    boot: String,
}

impl Identity {
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start: Stat::of(pid)?.began, boot: boot()? })
    }

    /// Whether that process still exists with a working directory in `folder`. The testbed created the folder, so
    /// this cannot be true of a foreign process.
    pub fn lives_in(&self, folder: &Path) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
            && fs::read_link(format!("/proc/{}/cwd", self.pid)).is_ok_and(|cwd| inside(&cwd, folder))
    }
}

/// Whether a path is in `folder`. The kernel appends ` (deleted)` to removed folders.
fn inside(cwd: &Path, folder: &Path) -> bool {
    cwd.starts_with(folder) || cwd == Path::new(&format!("{} (deleted)", folder.display()))
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Whether a process with that number exists and is not a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.lives())
}

/// Sends a signal; ignores processes that have ended.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // The remaining errors are "has ended" and "not permitted"; both are ignored.
    let _ = kill_process(pid, signal);
}

/// Kills a process with its descendants, and waits for the latter. They are stopped first, so that no new ones are
/// started. The caller must be sure of `root`'s identity, and reaps it if it is its child.
pub(crate) fn kill_tree(root: u32) {
    signal(root, Signal::STOP);
    let below = descendants(root);
    for pid in std::iter::once(&root).chain(&below) {
        signal(*pid, Signal::KILL);
    }
    let until = Instant::now() + Duration::from_secs(5);
    while below.iter().any(|pid| alive(*pid)) || alive(root) {
        if Instant::now() > until {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_depends_on_folder_and_start_time() {
        let me = Identity::of(std::process::id()).unwrap();
        let cwd = std::env::current_dir().unwrap();
        assert!(me.lives_in(&cwd));
        assert!(!me.lives_in(Path::new("/nonexistent")));
        assert!(!Identity { start: me.start + 1, ..me }.lives_in(&cwd));
    }
}
