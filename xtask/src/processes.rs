//! Processes, as the kernel shows them (`proc_pid_stat(5)`).

use std::fs;

/// The part of a line of `/proc/PID/stat` after the program's name, which may contain any character.
pub struct Stat {
    pub state: char,
    pub parent: u32,
    /// Clock ticks of CPU.
    pub own: u64,
    pub of_ended_children: u64,
}

pub fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = line.rsplit_once(") ")?.1.split(' ').collect();
    let number = |n: usize| fields.get(n)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        of_ended_children: number(13)? + number(14)?,
    })
}

/// All descendants of a process.
pub fn descendants(of: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}
