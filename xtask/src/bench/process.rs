//! The CPU time of processes from the kernel, to a hundredth of a second.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kurabe_os::process::{Stat, descendants};

/// Clock ticks per second, on every present Linux (`getconf CLK_TCK`).
const TICKS: f64 = 100.0;

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Seconds of CPU that all descendants of a process have used, including those that have ended.
pub fn cpu_below(pid: u32) -> f64 {
    let used = descendants(pid).into_iter().filter_map(Stat::of).map(|stat| stat.ticks + stat.children_ticks);
    used.sum::<u64>() as f64 / TICKS
}

/// Seconds of CPU of the children of this process that have ended, and of their children.
pub fn cpu_of_ended_children() -> f64 {
    Stat::of(std::process::id()).map_or(0, |stat| stat.children_ticks) as f64 / TICKS
}

/// Pins all threads of all descendants of a process to these processors.
pub fn pin_below(pid: u32, processors: &str) -> Result<(), String> {
    for pid in descendants(pid) {
        crate::shell::run(
            Command::new("taskset").args(["-a", "-c", "-p", processors, &pid.to_string()]),
            "taskset",
        )?;
    }
    Ok(())
}

/// Runs a program. Returns its output, the seconds of CPU that it used, and the part of them in user space. Its CPU time is
/// read after it has ended and before it is reaped, while the kernel still has it.
pub fn run(command: &mut Command, scratch: &Path, longest: Duration) -> Result<(String, f64, f64), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let path = scratch.join("output");
    let output = File::create(&path).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    let mut child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().map_err(failed)?;
    let began = Instant::now();
    let spent = loop {
        match Stat::of(child.id()) {
            // The first thread may end before the others: then the process is not yet finished.
            Some(stat) if stat.state == b'Z' && threads(child.id()) <= 1 => {
                break [stat.ticks + stat.children_ticks, stat.user_ticks];
            }
            Some(_) if began.elapsed() < longest => sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} was stuck"));
            }
        }
    };
    let status = child.wait().map_err(failed)?;
    let said = fs::read_to_string(&path).map_err(failed)?;
    if !status.success() {
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        return Err(format!("{name} ended with {status}: {}", last.join(" / ")));
    }
    let [whole, user] = spent.map(|ticks| ticks as f64 / TICKS);
    Ok((said, whole, user))
}
