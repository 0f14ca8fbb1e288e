//! What SQLite writes. It counts nothing that another connection may read, but it works within this process, and the kernel
//! counts the bytes that a process hands to files (`wchar` in `proc_pid_io(5)`): pages written to the WAL or the journal,
//! and back to the database. While clients are measured the tool itself writes nothing but its progress to a terminal.

use kurabe_core::witness::{Clients, Meter, Moment, Reach, Reading, Sighting, Witness};
use kurabe_core::{Error, Result};
use std::fs;

/// Reads the process's own counters.
pub(super) struct SqliteWitness;

impl Witness for SqliteWitness {
    fn read(&mut self, moment: Moment, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(moment, Moment::Before | Moment::After) {
            return Ok(reading);
        }
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")?.trim().parse().ok());
        let why = "this kernel does not count what a process writes";
        reading.count(Meter::FileBytes, written, "wchar of this process", Reach::Process, why);
        Ok(reading)
    }

    fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
        Err(Error::unsupported("it works within the client: it has no sessions that could be asked"))
    }
}
