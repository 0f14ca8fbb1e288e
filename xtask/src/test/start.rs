//! Starts test programs: as a terminal would, wherever this program was started.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::shell;
use kurabe_os::process::{Stat, descendants};

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// A command that starts with default reactions to all signals. `nohup` and shells without job control ignore some, and
/// every process below would inherit that. The standard library empties the signal mask itself.
pub fn command(program: &Path) -> Command {
    let mut command = if resets_signals() {
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(program);
        command
    } else {
        Command::new(program)
    };
    shell::without_package(&mut command);
    // Then a closed terminal or Ctrl-C at it must not end the tests either: signals of a terminal go to a group.
    if ignores_terminal() {
        command.process_group(0);
    }
    command.stdin(Stdio::null());
    command
}

/// Whether `env` can do that (GNU coreutils 8.31 and newer).
fn resets_signals() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let mut trial = Command::new("env");
        trial.args(["--default-signal", "true"]).stdin(Stdio::null());
        trial.stdout(Stdio::null()).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    })
}

/// Whether this process ignores the signals of a closed terminal or of Ctrl-C.
fn ignores_terminal() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored(&status) & 0b11 != 0)
}

/// The set of ignored signals in a process's status: bit 0 is SIGHUP, bit 1 SIGINT.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Ends a program at once, and then what it started: supervisors stop their servers when they are asked to.
pub fn end(program: u32) {
    let started = descendants(program);
    signal("KILL", &[program]);
    signal("TERM", &started);
    let until = Instant::now() + GRACE;
    while started.iter().any(|pid| runs(*pid)) {
        if Instant::now() > until {
            let left: Vec<u32> = started.iter().copied().filter(|pid| runs(*pid)).collect();
            signal("KILL", &left);
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn signal(name: &str, processes: &[u32]) {
    if processes.is_empty() {
        return;
    }
    let mut kill = Command::new("kill");
    kill.args(["-s", name]).args(processes.iter().map(u32::to_string));
    // Some may have ended meanwhile.
    let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn runs(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.lives())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert_eq!(ignored("Name:\tcat\nSigIgn:\t0000000000000003\nSigCgt:\t0000000000000001\n"), 3);
        assert_eq!(ignored("SigIgn:\t0000000000001000\n") & 0b11, 0);
    }

    #[test]
    fn program_below_nohup_and_a_background_job_reacts_to_signals() {
        // The shell ignores them as nohup does, and what it starts resets them.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP INT QUIT TERM; exec \"$@\"", "sh"]);
        let made = command(Path::new("cat"));
        shell.arg(made.get_program()).args(made.get_args()).arg("/proc/self/status");
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(status.contains("SigIgn:"), "{status}");
        // The C library keeps signals from 32 on for itself.
        assert_eq!(ignored(&status) & 0x7fff_ffff, 0, "{status}");
    }

    #[test]
    fn ended_program_takes_its_descendants_along() {
        let mut child = Command::new("sh")
            .args(["-c", "sh -c 'sleep 60 & echo $!; wait' & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let sleep: u32 = line.trim().parse().unwrap();
        assert!(runs(sleep) && descendants(child.id()).contains(&sleep));
        end(child.id());
        child.wait().unwrap();
        assert!(!runs(sleep));
    }
}
