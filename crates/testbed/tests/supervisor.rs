//! The tool leaves nothing behind, however it ends.

use std::time::Duration;

use crate::common::{Tool, alive, base, eventually, installed, send};
use rustix::process::{Pid, Signal, kill_process_group};

/// PostgreSQL has several processes and another user; memcached starts immediately.
const ENGINES: [&str; 2] = ["postgres", "memcached"];

#[test]
fn tool_killed_during_server_start_leaves_nothing() {
    for (delay, engine) in
        [(0, "mariadb"), (20, "postgres"), (150, "postgres"), (400, "mariadb"), (700, "mysql")]
    {
        if !installed(engine) {
            continue;
        }
        let base = base();
        let mut child = Tool::command(engine, base.path()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        // The supervisor may not have created its folder yet: an empty folder proves nothing.
        std::thread::sleep(Duration::from_millis(500));
        eventually("nothing is left", || std::fs::read_dir(base.path()).unwrap().count() == 0);
    }
}

#[test]
fn ctrl_c_at_the_terminal_leaves_nothing() {
    for engine in ENGINES.into_iter().filter(|engine| installed(engine)) {
        let base = base();
        let mut tool = Tool::start(engine, base.path());
        kill_process_group(Pid::from_child(&tool.child), Signal::INT).unwrap();
        tool.child.wait().unwrap();
        tool.assert_gone();
    }
}

#[test]
fn terminated_supervisor_cleans_up() {
    if !installed("postgres") {
        return;
    }
    let base = base();
    let mut tool = Tool::start("postgres", base.path());
    send(tool.supervisor, Signal::TERM);
    eventually("the server is gone", || !alive(tool.server));
    eventually("the folder is gone", || !tool.dir.exists());
    drop(tool.input.take());
    tool.child.wait().unwrap();
}

#[test]
fn files_of_killed_supervisor_are_removed_at_next_start() {
    for engine in ENGINES.into_iter().filter(|engine| installed(engine)) {
        let base = base();
        let mut tool = Tool::start(engine, base.path());
        send(tool.supervisor, Signal::KILL);
        // The system kills the server with its supervisor; the folder remains.
        eventually("the server is gone", || !alive(tool.server));
        assert!(tool.dir.exists());
        // The tool is killed too, so that it cannot clean up after its supervisor.
        tool.child.kill().unwrap();
        tool.child.wait().unwrap();

        let mut next = Tool::start(engine, base.path());
        assert!(!tool.dir.exists() && next.dir.exists());
        drop(next.input.take());
        assert!(next.child.wait().unwrap().success());
        next.assert_gone();
    }
}
