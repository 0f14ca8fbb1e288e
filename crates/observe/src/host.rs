//! The machine's own counters.

use crate::process::tick_ns;
use kurabe_core::observation::{CpuUse, DiskUse, HostUse, InterfaceUse};
use std::fs;

/// Bytes of a sector in `/proc/diskstats`, which does not depend on the disk's sector size.
const SECTOR: u64 = 512;

/// The counters at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    cpus: Vec<CpuUse>,
    disks: Vec<DiskUse>,
    interfaces: Vec<InterfaceUse>,
    io_stall_ns: Option<u64>,
}

impl Counters {
    /// Reads the counters; those that cannot be read are empty.
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpus: cpus(&read("/proc/stat"), tick_ns()),
            disks: disks(&read("/proc/diskstats")),
            interfaces: interfaces(&read("/proc/net/dev")),
            io_stall_ns: stall(&read("/proc/pressure/io")),
        }
    }

    /// The difference to the counters now.
    pub fn since(&self, before: &Self) -> HostUse {
        let cpus = self.cpus.iter().filter_map(|now| {
            let then = before.cpus.iter().find(|then| then.cpu == now.cpu)?;
            Some(CpuUse {
                cpu: now.cpu,
                busy_ns: now.busy_ns.saturating_sub(then.busy_ns),
                steal_ns: now.steal_ns.saturating_sub(then.steal_ns),
            })
        });
        let disks = self.disks.iter().filter_map(|now| {
            let then = before.disks.iter().find(|then| then.name == now.name)?;
            let past = |of: fn(&DiskUse) -> u64| of(now).saturating_sub(of(then));
            let used = DiskUse {
                name: now.name.clone(),
                busy_ns: past(|disk| disk.busy_ns),
                reads: past(|disk| disk.reads),
                writes: past(|disk| disk.writes),
                read_bytes: past(|disk| disk.read_bytes),
                written_bytes: past(|disk| disk.written_bytes),
                flushes: past(|disk| disk.flushes),
                flush_ns: past(|disk| disk.flush_ns),
            };
            (used.reads + used.writes + used.flushes > 0).then_some(used)
        });
        let interfaces = self.interfaces.iter().filter_map(|now| {
            let then = before.interfaces.iter().find(|then| then.name == now.name)?;
            let used = InterfaceUse {
                name: now.name.clone(),
                received_bytes: now.received_bytes.saturating_sub(then.received_bytes),
                sent_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
                speed: speed(&now.name),
            };
            (used.received_bytes + used.sent_bytes > 0).then_some(used)
        });
        HostUse {
            cpus: cpus.collect(),
            disks: disks.collect(),
            interfaces: interfaces.collect(),
            io_stall_ns: self.io_stall_ns.zip(before.io_stall_ns).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// The counters of each processor.
pub(crate) fn cpus_now() -> Vec<CpuUse> {
    cpus(&fs::read_to_string("/proc/stat").unwrap_or_default(), tick_ns())
}

/// Busy time of all processors together, for the samples.
pub(crate) fn busy_ns() -> u64 {
    cpus_now().iter().map(|cpu| cpu.busy_ns).sum()
}

/// Counters of disks and network interfaces, for the samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    disks: Vec<DiskUse>,
    interfaces: Vec<InterfaceUse>,
}

impl Devices {
    /// Reads the counters; those that cannot be read are empty.
    pub fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self { disks: disks(&read("/proc/diskstats")), interfaces: interfaces(&read("/proc/net/dev")) }
    }

    /// The busy time of the busiest disk since then, in nanoseconds; `None` without a disk.
    pub fn disk_busy_since(&self, before: &Self) -> Option<u64> {
        let busy = self.disks.iter().filter_map(|now| {
            let then = before.disks.iter().find(|then| then.name == now.name)?;
            Some(now.busy_ns.saturating_sub(then.busy_ns))
        });
        busy.max()
    }

    /// The bytes of the busiest interface since then, in its busier direction; `None` without an interface.
    pub fn network_since(&self, before: &Self) -> Option<u64> {
        let bytes = self.interfaces.iter().filter_map(|now| {
            let then = before.interfaces.iter().find(|then| then.name == now.name)?;
            let (sent, received) = (now.sent_bytes, now.received_bytes);
            Some(sent.saturating_sub(then.sent_bytes).max(received.saturating_sub(then.received_bytes)))
        });
        bytes.max()
    }
}

fn cpus(text: &str, tick: u64) -> Vec<CpuUse> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
            // The line of all processors together has no number.
            let cpu =
                line.as_bytes().get(3).filter(|b| b.is_ascii_digit()).and(words.next())?.parse().ok()?;
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            // user, nice, system, idle, iowait, irq, softirq, steal; user and nice include guests' time.
            let of = |at: usize| ticks.get(at).copied().unwrap_or(0);
            let busy = of(0) + of(1) + of(2) + of(5) + of(6);
            Some(CpuUse { cpu, busy_ns: busy * tick, steal_ns: of(7) * tick })
        })
        .collect()
}

fn disks(text: &str) -> Vec<DiskUse> {
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let name = (*words.get(2)?).to_owned();
            let of = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            Some(DiskUse {
                reads: of(3),
                read_bytes: of(5) * SECTOR,
                writes: of(7),
                written_bytes: of(9) * SECTOR,
                busy_ns: of(12) * 1_000_000,
                flushes: of(18),
                flush_ns: of(19) * 1_000_000,
                name,
            })
        })
        // The disk's line includes its partitions; loop devices and RAM disks lie on other devices.
        .filter(|disk| !["loop", "ram", "zram"].iter().any(|kind| disk.name.starts_with(kind)))
        .filter(|disk| !std::path::Path::new(&format!("/sys/class/block/{}/partition", disk.name)).exists())
        .collect()
}

fn interfaces(text: &str) -> Vec<InterfaceUse> {
    text.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let words: Vec<u64> = rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            Some(InterfaceUse {
                name: name.trim().to_owned(),
                received_bytes: *words.first()?,
                sent_bytes: *words.get(8)?,
                speed: None,
            })
        })
        .collect()
}

fn speed(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
    text.trim()
        .parse::<i64>()
        .ok()
        .filter(|megabits| *megabits > 0)
        .map(|megabits| megabits as u64 * 1_000_000)
}

/// The line `some avg10=… total=N`, N in microseconds.
fn stall(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split("total=").nth(1)?.trim().parse::<u64>().ok().map(|us| us * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_without_their_sum() {
        let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 100 50 4 5 6 0 0\ncpu11 1 0 0 1 0 0 0 0\nintr 7\n";
        let read = cpus(text, 10);
        assert_eq!(read[0], CpuUse { cpu: 0, busy_ns: 150, steal_ns: 60 });
        assert_eq!(read[1], CpuUse { cpu: 11, busy_ns: 10, steal_ns: 0 });
    }

    #[test]
    fn disks_interfaces_and_stalls_are_read_as_the_kernel_writes_them() {
        let text = " 254 0 xda 10 0 20 5 30 0 40 6 0 7 11 0 0 0 0 8 9\n";
        let disk = &disks(text)[0];
        assert_eq!((disk.reads, disk.read_bytes, disk.writes, disk.written_bytes), (10, 10_240, 30, 20_480));
        assert_eq!((disk.busy_ns, disk.flushes, disk.flush_ns), (7_000_000, 8, 9_000_000));
        let text = "Inter-| Receive\n face |bytes\n    lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n";
        assert_eq!(interfaces(text)[0].sent_bytes, 200);
        assert_eq!(stall("some avg10=0.27 avg60=0.77 avg300=1.43 total=116\nfull total=3\n"), Some(116_000));
        assert_eq!(stall(""), None);
    }

    #[test]
    fn busiest_device_counts_in_its_busier_direction() {
        let at = |busy: u64, sent: u64, received: u64| Devices {
            disks: disks(&format!(" 8 0 xda 1 0 1 1 1 0 1 1 0 {busy} 1\n 8 16 xdb 1 0 1 1 1 0 1 1 0 3 1\n")),
            interfaces: interfaces(&format!(
                " lo: {received} 1 0 0 0 0 0 0 {sent} 1\n eth9: 10 1 0 0 0 0 0 0 20 1\n"
            )),
        };
        let (before, now) = (at(10, 100, 100), at(15, 400, 250));
        assert_eq!(now.disk_busy_since(&before), Some(5_000_000));
        assert_eq!(now.network_since(&before), Some(300));
        assert_eq!(now.disk_busy_since(&Devices::default()), None);
    }

    #[test]
    fn busy_machine_shows_in_counters() {
        let before = Counters::now();
        // CPU time, which on a busy machine takes longer than elapsed time.
        let worked = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let began = worked();
        while (worked() - began).tv_nsec < 120_000_000 {
            std::hint::black_box(began);
        }
        let used = Counters::now().since(&before);
        assert!(!used.cpus.is_empty());
        assert!(used.cpus.iter().map(|cpu| cpu.busy_ns).sum::<u64>() >= 50_000_000, "{used:?}");
    }
}
