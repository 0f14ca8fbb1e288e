//! Checks this machine for conditions that would disturb a measurement. Each warning includes a remedy.

use crate::host;
use crate::process::value;
use kurabe_core::observation::CpuUse;
use rustix::fs::statvfs;
use rustix::thread::sched_getaffinity;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The time for which the work of other processes is measured.
const LOOK: Duration = Duration::from_millis(150);
/// CPU use before a measurement, as a share, above which a warning is given.
const BUSY: f64 = 0.1;
/// Clocks that take a microsecond or more to read.
const SLOW_CLOCKS: [&str; 3] = ["hpet", "acpi_pm", "jiffies"];
/// The share of available memory below which a warning is given.
const MEMORY: f64 = 0.1;
/// Free disk space in bytes below which a warning is given.
const SPACE: u64 = 1 << 30;
/// Swapped-out megabytes above which a warning is given.
const SWAPPED: u64 = 64;
/// The number of test syncs.
const SYNCS: usize = 40;
/// The maximum time for test syncs.
const SYNC_TIME: Duration = Duration::from_millis(50);
/// The fastest durable devices need about 10 µs and a system call per sync.
const FASTEST_SYNCS: f64 = 60_000.0;

/// Conditions that would disturb a measurement, as sentences; empty if there are none. It takes a sixth of a second,
/// in which this process must be idle. Databases of this machine probably write to `folder`.
pub fn disturbances(folder: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut all = Vec::new();
    all.extend(busy(load(LOOK)));
    all.extend(governor(&read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
    all.extend(clock(&read("/sys/devices/system/clocksource/clocksource0/current_clocksource")));
    let meminfo = read("/proc/meminfo");
    all.extend(memory(&meminfo));
    all.extend(swap(&meminfo));
    if let Ok(space) = statvfs(folder) {
        all.extend(disk(folder, space.f_bavail.saturating_mul(space.f_frsize)));
    }
    all
}

/// A warning if writes to this directory are acknowledged sooner than any device can make them durable. `None` if
/// they are not, or the directory is not writable. It takes up to a twentieth of a second. Call it before
/// measurements that sync files there.
pub fn dishonest_sync(folder: &Path) -> Option<String> {
    syncs_per_second(folder).and_then(|rate| unlikely_syncs(folder, rate))
}

/// Syncs of a block per second, one after the other: the inverse of the median.
fn syncs_per_second(folder: &Path) -> Option<f64> {
    let path = folder.join(format!("kurabe-sync-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
    // Unlinked at once, so that no file is left behind.
    let _ = fs::remove_file(&path);
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.len() < SYNCS && began.elapsed() < SYNC_TIME {
        let then = Instant::now();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&[0x6b; 4096])).ok()?;
        file.sync_data().ok()?;
        times.push(then.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2)?;
    Some(1.0 / median.as_secs_f64().max(1e-9))
}

fn unlikely_syncs(folder: &Path, per_second: f64) -> Option<String> {
    (per_second > FASTEST_SYNCS).then(|| {
        format!(
            "{} completes {:.0} syncs a second, more than any durable device: it is in memory, or \
             acknowledges writes before they are durable. Results of synced writes there do not apply to a \
             disk. TMPDIR moves throwaway servers elsewhere",
            folder.display(),
            per_second
        )
    })
}

/// Whether other processes use a tenth or more of this machine's CPU. It takes this time, in which this process must be
/// idle.
pub fn is_busy(time: Duration) -> bool {
    load(time) >= BUSY
}

/// The share of time in which the processors that this process may use are busy. What runs on others does not disturb it.
fn load(time: Duration) -> f64 {
    let allowed = sched_getaffinity(None).ok();
    let may_use = |cpu: u32| allowed.as_ref().is_none_or(|set| set.is_set(cpu as usize));
    let (then, began) = (host::cpus_now(), Instant::now());
    thread::sleep(time);
    busy_share(&then, &host::cpus_now(), began.elapsed(), may_use)
}

/// The share of a time in which some of the processors were busy, from their counters at its begin and at its end.
fn busy_share(then: &[CpuUse], now: &[CpuUse], time: Duration, may_use: impl Fn(u32) -> bool) -> f64 {
    let sum = |of: &[CpuUse]| -> (u64, usize) {
        let these = of.iter().filter(|cpu| may_use(cpu.cpu));
        these.fold((0, 0), |(busy, count), cpu| (busy + cpu.busy_ns, count + 1))
    };
    let ((then, _), (now, count)) = (sum(then), sum(now));
    now.saturating_sub(then) as f64 / time.as_nanos().max(1) as f64 / count.max(1) as f64
}

fn busy(share: f64) -> Option<String> {
    (share >= BUSY).then(|| {
        format!(
            "other processes use {:.0} % of this machine's CPU: results will be lower and less certain; \
             measure when it is idle",
            share.min(1.0) * 100.0
        )
    })
}

fn governor(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty() && name != "performance").then(|| {
        format!(
            "the processors' frequency governor is '{name}': a short trial may end before they reach full \
             speed; 'performance' keeps them there"
        )
    })
}

fn clock(text: &str) -> Option<String> {
    let name = text.trim();
    SLOW_CLOCKS.contains(&name).then(|| {
        format!(
            "the kernel's clock source is '{name}', which is slow to read: each time includes this; 'tsc' is fast"
        )
    })
}

fn memory(text: &str) -> Option<String> {
    let (total, available) = (value(text, "MemTotal:")? as f64, value(text, "MemAvailable:")? as f64);
    (available < total * MEMORY).then(|| {
        format!(
            "only {:.0} % of this machine's memory is available: the measured processes may swap; end \
             unneeded processes",
            available / total * 100.0
        )
    })
}

fn swap(text: &str) -> Option<String> {
    let used = value(text, "SwapTotal:")?.saturating_sub(value(text, "SwapFree:")?) >> 10;
    (used >= SWAPPED).then(|| {
        format!(
            "{used} MB of this machine's memory are swapped out: the measured processes may have to read \
             them back; end unneeded processes, or turn swap off"
        )
    })
}

fn disk(folder: &Path, free: u64) -> Option<String> {
    (free < SPACE).then(|| {
        format!(
            "only {} MB are free in {}: the disk may become full during a run",
            free >> 20,
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_are_reported_with_remedy() {
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
        assert_eq!(swap("SwapTotal: 0 kB\nSwapFree: 0 kB\n"), None);
        assert_eq!(swap("SwapTotal: 1048576 kB\nSwapFree: 1048000 kB\n"), None);
        assert!(swap("SwapTotal: 1048576 kB\nSwapFree: 524288 kB\n").unwrap().contains("512 MB"));
        assert_eq!(unlikely_syncs(Path::new("/x"), 9_000.0), None);
        assert!(unlikely_syncs(Path::new("/x"), 400_000.0).unwrap().contains("TMPDIR"));
        assert_eq!(disk(Path::new("/x"), 1 << 40), None);
        assert!(disk(Path::new("/x"), 5 << 20).unwrap().contains("only 5 MB are free in /x"));
    }

    #[test]
    fn memory_folder_syncs_faster_than_disk_and_stays_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert!(syncs_per_second(folder.path()).unwrap() > 0.0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(syncs_per_second(Path::new("/nowhere/at/all")), None);
        // Shared memory, if the machine has it and it is writable.
        if syncs_per_second(Path::new("/dev/shm")).is_some() {
            // Each takes only milliseconds, in which other processes may delay either; the temporary directory may be
            // in memory too.
            let best = |folder| (0..5).filter_map(|_| syncs_per_second(folder)).fold(0.0, f64::max);
            let (memory, disk) = (best(Path::new("/dev/shm")), best(folder.path()));
            assert!(memory > disk * 0.3, "{memory} {disk}");
        }
    }

    #[test]
    fn only_processors_that_may_be_used_count_as_busy() {
        let at = |busy: [u64; 3]| -> Vec<CpuUse> {
            let one = |(cpu, ms): (u32, u64)| CpuUse { cpu, busy_ns: ms * 1_000_000, steal_ns: 0 };
            (0..).zip(busy).map(one).collect()
        };
        let (then, now) = (at([500, 900, 70]), at([510, 1_000, 120]));
        let share = |of: &[u32]| busy_share(&then, &now, Duration::from_millis(100), |cpu| of.contains(&cpu));
        // As under 'taskset -c 0' beside a busy processor, and under a quota of one processor.
        for (allowed, wanted) in [(&[0][..], 0.1), (&[1], 1.0), (&[0, 2], 0.3), (&[0, 1, 2], 1.6 / 3.0)] {
            assert!((share(allowed) - wanted).abs() < 1e-9, "{allowed:?}: {}", share(allowed));
        }
    }

    #[test]
    fn busy_machine_is_detected() {
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
