//! Appends to a run file: one write per line, made durable before the next.

use crate::format::{Chain, Content, content_line};
use crate::path::RunPath;
use kurabe_core::run::{Replanned, Resumption, RunEnd, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::limits::advice_on_writing;
use std::fs::File;
use std::io::{self, Write};

/// The operations of a writer on its file. Tests replace it to simulate a full disk.
pub(crate) trait Sink: Send {
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
    fn make_durable(&mut self) -> io::Result<()>;
    fn cut_to(&mut self, bytes: u64) -> io::Result<()>;
}

impl Sink for File {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line)
    }

    fn make_durable(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut_to(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

/// Appends to one run. It holds the run's lock until it is dropped or its process ends.
pub struct Writer {
    sink: Box<dyn Sink>,
    path: RunPath,
    /// The end of the lines in the file.
    chain: Chain,
    trials: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .field("trials", &self.trials)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(sink: Box<dyn Sink>, path: RunPath, chain: Chain, trials: u64) -> Self {
        Self { sink, path, chain, trials }
    }

    pub fn path(&self) -> &RunPath {
        &self.path
    }

    /// The run's name: that of the header it was created with, with a number appended if such a run existed.
    pub fn name(&self) -> &str {
        &self.path.name
    }

    /// Records a trial; durable when this returns.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if the line cannot be written: earlier records are kept, and the file
    /// contains complete lines only.
    pub fn trial(&mut self, trial: &TrialRecord) -> Result<()> {
        self.append(Content::Trial(trial))?;
        self.trials += 1;
        Ok(())
    }

    /// Records how the run ended; durable when this returns.
    pub fn end(&mut self, end: &RunEnd) -> Result<()> {
        self.append(Content::End(end))
    }

    /// Records that the run makes fewer rounds; durable when this returns.
    pub fn replanned(&mut self, plan: &Replanned) -> Result<()> {
        self.append(Content::Replanned(plan))
    }

    /// Records that the run is resumed; durable when this returns.
    pub fn resumed(&mut self, resumption: &Resumption) -> Result<()> {
        self.append(Content::Resumed(resumption))
    }

    fn append(&mut self, content: Content<'_>) -> Result<()> {
        let line = content_line(content, self.chain)?;
        let written = self.sink.append(&line).and_then(|()| self.sink.make_durable());
        if let Err(error) = written {
            // Readers ignore an incomplete line anyway. Without it, a later line follows a complete one.
            let cut = self.sink.cut_to(self.chain.bytes);
            return Err(self.refused(error, cut.is_ok()));
        }
        self.chain.advance(&line[..line.len() - 1]);
        Ok(())
    }

    fn refused(&self, error: io::Error, clean: bool) -> Error {
        let trials = match self.trials {
            1 => "the trial recorded before it is kept".to_owned(),
            n => format!("the {n} trials recorded before it are kept"),
        };
        let torn = if clean { "" } else { ", and an incomplete last line is ignored when the run is read" };
        let message =
            format!("cannot record a trial in {}: {error}; {trials}{torn}", self.path.file.display());
        Error::new(ErrorKind::Environment, message)
            .hint(format!("{}, and resume the run", advice_on_writing(&error, "free disk space there")))
            .caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::run::{Measurement, Outcome};
    use std::sync::{Arc, Mutex};

    /// A disk with this many free bytes, which writes what fits and then reports that it is full.
    #[derive(Clone)]
    struct SmallDisk {
        room: usize,
        bytes: Arc<Mutex<Vec<u8>>>,
    }

    impl Sink for SmallDisk {
        fn append(&mut self, line: &[u8]) -> io::Result<()> {
            let mut bytes = self.bytes.lock().unwrap();
            let fits = line.len().min(self.room - bytes.len());
            bytes.extend_from_slice(&line[..fits]);
            if fits == line.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn make_durable(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn cut_to(&mut self, bytes: u64) -> io::Result<()> {
            self.bytes.lock().unwrap().truncate(bytes as usize);
            Ok(())
        }
    }

    fn failed(round: u32) -> TrialRecord {
        let outcome = Outcome::Failed { kind: ErrorKind::Server, reason: "no".into(), mismatches: 0 };
        TrialRecord { round, cell: 0, operation: "read".into(), at_ms: 0, outcome, rerun_reason: None }
    }

    #[test]
    fn full_disk_is_an_error_and_keeps_recorded_trials() {
        let disk = SmallDisk { room: 600, bytes: Arc::default() };
        let path = RunPath::in_folder("runs/full");
        let mut writer = Writer::new(Box::new(disk.clone()), path, Chain::default(), 0);
        let mut kept = 0;
        let error = loop {
            match writer.trial(&failed(kept)) {
                Ok(()) => kept += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Environment);
        let text = error.to_string();
        assert!(
            text.contains("runs/full/run.jsonl") && text.contains(&format!("the {kept} trials")),
            "{text}"
        );
        let bytes = disk.bytes.lock().unwrap();
        assert!(bytes.ends_with(b"}\n"));
        assert_eq!(bytes.split(|b| *b == b'\n').count(), kept as usize + 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn full_device_is_an_environment_error() {
        let full = File::options().append(true).open("/dev/full").unwrap();
        let mut writer = Writer::new(Box::new(full), RunPath::in_folder("runs/full"), Chain::default(), 0);
        let error = writer.end(&RunEnd { at_ms: 1, complete: true }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Environment);
        assert!(error.to_string().contains("free disk space"), "{error}");
    }

    #[test]
    fn number_that_json_cannot_represent_is_rejected_on_write() {
        let disk = SmallDisk { room: 10_000, bytes: Arc::default() };
        let mut writer =
            Writer::new(Box::new(disk.clone()), RunPath::in_folder("runs/nan"), Chain::default(), 0);
        let measurement = Measurement { clients: 1, verify_ns_per_op: f64::NAN, ..Measurement::default() };
        let trial = TrialRecord { outcome: Outcome::Measured(Box::new(measurement)), ..failed(0) };
        assert_eq!(writer.trial(&trial).unwrap_err().kind(), ErrorKind::Internal);
        assert!(disk.bytes.lock().unwrap().is_empty());
    }
}
