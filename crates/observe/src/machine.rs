//! What of this machine would disturb a measurement, looked at before one: each a line with what to do.

use crate::host;
use rustix::fs::statvfs;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// For so long other processes' work is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// So much of the machine's CPU in use before anything is measured is worth a line.
const BUSY: f64 = 0.1;
/// Clocks that take a microsecond or more to read.
const SLOW_CLOCKS: [&str; 3] = ["hpet", "acpi_pm", "jiffies"];
/// Less memory available than this part of it.
const MEMORY: f64 = 0.1;
/// Less disk space than this many bytes.
const SPACE: u64 = 1 << 30;

/// Says what would disturb a measurement, as sentences; none where nothing would. It takes a sixth of a second, in which
/// this process must be idle. `folder` is where databases of this machine are likely to write.
pub fn disturbances(folder: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut all = Vec::new();
    all.extend(busy(load(LOOK)));
    all.extend(governor(&read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
    all.extend(clock(&read("/sys/devices/system/clocksource/clocksource0/current_clocksource")));
    all.extend(memory(&read("/proc/meminfo")));
    if let Ok(space) = statvfs(folder) {
        all.extend(disk(folder, space.f_bavail.saturating_mul(space.f_frsize)));
    }
    all
}

/// The share of all processors' time that is in use.
fn load(time: Duration) -> f64 {
    let (then, began) = (host::busy_ns(), Instant::now());
    thread::sleep(time);
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    host::busy_ns().saturating_sub(then) as f64 / began.elapsed().as_nanos() as f64 / cpus
}

fn busy(share: f64) -> Option<String> {
    (share >= BUSY).then(|| {
        format!(
            "other processes use {:.0} % of this machine's CPU: figures will be lower and less certain; measure when \
             it is quiet",
            share.min(1.0) * 100.0
        )
    })
}

fn governor(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty() && name != "performance").then(|| {
        format!(
            "the processors' frequency governor is '{name}': a short trial may end before they run at full speed; \
             'performance' keeps them there"
        )
    })
}

fn clock(text: &str) -> Option<String> {
    let name = text.trim();
    SLOW_CLOCKS.contains(&name).then(|| {
        format!("the kernel's clock source is '{name}', which is slow to read: each figure holds that time; 'tsc' is not")
    })
}

fn memory(text: &str) -> Option<String> {
    let of = |name: &str| -> Option<f64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    let (total, available) = (of("MemTotal:")?, of("MemAvailable:")?);
    (available < total * MEMORY).then(|| {
        format!(
            "only {:.0} % of this machine's memory is available: what is measured may be swapping; end what is not needed",
            available / total * 100.0
        )
    })
}

fn disk(folder: &Path, free: u64) -> Option<String> {
    (free < SPACE).then(|| {
        format!("only {} MB are free in {}: a run may end in its middle", free >> 20, folder.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_is_said_with_what_to_do_and_what_does_not_is_not() {
        assert_eq!(busy(0.03), None);
        assert!(busy(0.534).unwrap().contains("53 %"));
        assert_eq!(governor("performance\n"), None);
        assert_eq!(governor(""), None);
        assert!(governor("powersave\n").unwrap().contains("'powersave'"));
        assert_eq!(clock("tsc\n"), None);
        assert!(clock("hpet\n").unwrap().contains("slow to read"));
        assert_eq!(memory("MemTotal: 1000 kB\nMemAvailable: 500 kB\n"), None);
        assert!(memory("MemTotal: 1000 kB\nMemAvailable: 50 kB\n").unwrap().contains("5 %"));
        assert_eq!(memory("nonsense"), None);
        assert_eq!(disk(Path::new("/x"), 1 << 40), None);
        assert!(disk(Path::new("/x"), 5 << 20).unwrap().contains("only 5 MB are free in /x"));
    }

    #[test]
    fn a_machine_at_work_is_seen_to_be() {
        let over = std::sync::atomic::AtomicBool::new(false);
        let share = thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, std::num::NonZero::get) {
                scope.spawn(|| {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let share = load(Duration::from_millis(300));
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            share
        });
        assert!(busy(share).is_some(), "{share}");
    }
}
