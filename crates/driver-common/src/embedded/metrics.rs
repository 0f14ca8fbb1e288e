//! Bytes written by an embedded database. It has no statistics that another connection could read. But it runs in this
//! process, whose written bytes the kernel counts (`wchar` in `proc_pid_io(5)`): pages written to the WAL or the
//! journal, and back to the database. During a measurement Kurabe itself writes only its progress to a terminal.

use crate::prelude::*;
use std::fs;

/// Reads the process's own counters.
pub struct ProcessStatsProbe;

impl StatsProbe for ProcessStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            return Ok(reading);
        }
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")?.trim().parse().ok());
        let why = "this kernel does not count the bytes that a process writes";
        reading.count(Counter::FileBytes, written, "wchar of this process", CounterScope::Process, why);
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        Err(Error::unsupported("it works within the client: it has no server sessions"))
    }

    fn background(&self) -> Vec<String> {
        Vec::new()
    }

    fn port(&self) -> Option<u16> {
        None
    }
}
