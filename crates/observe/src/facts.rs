//! Facts about the client's machine.

use kurabe_core::run::MachineFacts;
use std::fs;

/// Reads facts about this machine; what cannot be read is left empty.
pub fn machine_facts() -> MachineFacts {
    let value = |text: &str, name: &str| {
        text.lines()
            .find_map(|line| Some(line.strip_prefix(name)?.trim_start_matches([' ', '\t', ':']).to_owned()))
    };
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = value(&meminfo, "MemTotal").and_then(|v| v.split(' ').next()?.parse::<u64>().ok());
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = value(&release, "PRETTY_NAME=").map(|v| v.trim_matches('"').to_owned());
    let uname = rustix::system::uname();
    let kernel = format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
    MachineFacts {
        cpu: value(&cpuinfo, "model name").unwrap_or_else(|| uname.machine().to_string_lossy().into_owned()),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        memory_bytes: kilobytes.unwrap_or(0) * 1024,
        system: name.map_or_else(|| kernel.clone(), |name| format!("{name}, {kernel}")),
    }
}
