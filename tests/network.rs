//! Network namespaces of tests.

use crate::servers::common::tell;
use crate::support::{Answer, eventually};
use kurabe_testbed::testing;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The shell commands that prepare a namespace's loopback device, for [`run_alone`].
pub(crate) const LOOPBACK: &str = "ip link set dev lo up";

/// Does the work of a test in a network namespace of its own, after these shell commands. Only says why if there can be none.
pub(crate) fn run_alone(test: &str, prepare: &str, work: fn()) {
    if testing::rerun_input().is_some() {
        return work();
    }
    let within = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &format!("{prepare} && exec \"$0\" \"$@\"")]).arg(program);
        command.stdin(Stdio::null());
        command
    };
    if !within(Path::new("true")).output().is_ok_and(|output| output.status.success()) {
        tell("a network namespace cannot be created here: that takes root, unshare and a recent ip");
        return;
    }
    let mut command = within(&std::env::current_exe().unwrap());
    let output = testing::rerun(&mut command, test, "").output().unwrap();
    assert!(output.status.success(), "{:?}", Answer::of(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{:?}", Answer::of(&output));
}

/// Runs `ip`.
pub(crate) fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {:?}", Answer::of(&output));
}

/// Waits until a process has a network namespace of its own, to which a virtual cable can be connected.
pub(crate) fn wait_until_apart(child: &Child) {
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let theirs = format!("/proc/{}/ns/net", child.id());
    let apart = || fs::read_link(&theirs).is_ok_and(|network| network != own).then_some(());
    eventually(60, apart).expect("no network of its own");
}
