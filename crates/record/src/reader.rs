//! Reading a run file, whatever happened to it.

use crate::format::{Line, parse_header, parse_line};
use crate::path::{RunPath, io_error};
use kurabe_core::run::{Run, RunHeader, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// No line of ours is as long: a header of ten thousand cells is 4 MB. It bounds the memory that a foreign file costs.
const LONGEST_LINE: u64 = 64 << 20;

/// A run as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The run.
    pub run: Run,
    /// What a reader of the run must know about its file, one sentence each: that its last line was torn.
    pub notes: Vec<String>,
    /// Bytes of the file that hold whole lines; what follows is a torn line.
    pub(crate) whole_bytes: u64,
}

/// Reads a run, whether it ended, was cut off or is still being written.
///
/// # Errors
/// [`Damaged`](ErrorKind::Damaged) with file and line where the file is no run, is of another version, or has a line
/// that cannot be read; [`NotFound`](ErrorKind::NotFound) and the like where it cannot be opened.
pub fn read(path: &RunPath) -> Result<Recorded> {
    let file = File::open(&path.file).map_err(|error| io_error("read", &path.file, &error))?;
    read_file(&file, &path.file)
}

/// Reads the run in an open file, from its beginning.
pub(crate) fn read_file(file: &File, path: &Path) -> Result<Recorded> {
    let mut lines = Lines::new(file, path);
    let header = lines.header()?;
    let mut run = Run { header, trials: Vec::new(), end: None };
    let mut notes = Vec::new();
    loop {
        match lines.next()? {
            Next::End => break,
            Next::Torn(bytes) => {
                notes.push(format!(
                    "The last line of {} was cut off while it was written ({bytes} bytes); that trial is left out.",
                    path.display()
                ));
                break;
            }
            Next::Line => match parse_line(&lines.buffer) {
                Ok(Line::Trial(trial)) => {
                    check(&run.header, &trial).map_err(|why| lines.damaged(&why))?;
                    run.end = None;
                    run.trials.push(*trial);
                }
                Ok(Line::End(end)) => run.end = Some(end),
                Err(why) => return Err(lines.damaged(&why)),
            },
        }
    }
    Ok(Recorded { run, notes, whole_bytes: lines.whole_bytes })
}

/// Reads the first line only.
pub(crate) fn read_header(file: &File, path: &Path) -> Result<RunHeader> {
    Lines::new(file, path).header()
}

/// That a trial is one of the header's, so that nobody who reads the run indexes out of it.
fn check(header: &RunHeader, trial: &TrialRecord) -> Result<(), String> {
    if trial.cell < header.cells.len() {
        return Ok(());
    }
    Err(format!("it names cell {} of {}", trial.cell, header.cells.len()))
}

enum Next {
    Line,
    Torn(u64),
    End,
}

struct Lines<'a> {
    reader: BufReader<&'a File>,
    path: &'a Path,
    buffer: Vec<u8>,
    number: u64,
    whole_bytes: u64,
}

impl<'a> Lines<'a> {
    fn new(file: &'a File, path: &'a Path) -> Self {
        Self { reader: BufReader::new(file), path, buffer: Vec::new(), number: 0, whole_bytes: 0 }
    }

    /// Reads the next line into `buffer`, without its newline.
    fn next(&mut self) -> Result<Next> {
        self.buffer.clear();
        self.number += 1;
        let read = (&mut self.reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| io_error("read", self.path, &error))?;
        if read == 0 {
            return Ok(Next::End);
        }
        if self.buffer.pop_if(|last| *last == b'\n').is_some() {
            self.whole_bytes += read as u64;
            return Ok(Next::Line);
        }
        if read as u64 == LONGEST_LINE {
            return Err(self.damaged("it is longer than any line of a run"));
        }
        Ok(Next::Torn(read as u64))
    }

    fn header(&mut self) -> Result<RunHeader> {
        match self.next()? {
            Next::End => Err(self.damaged("the file is empty")),
            Next::Torn(_) if parse_header(&self.buffer).is_err() => {
                Err(self.damaged("the file does not begin with a whole line of a run"))
            }
            // A folder appears with a whole first line, so that this one lost its end later.
            Next::Torn(_) => Err(self.damaged("its first line has lost its end")),
            Next::Line => {
                let header = parse_header(&self.buffer).map_err(|why| self.damaged(&why))?;
                match header.cells.iter().position(|cell| cell.target >= header.targets.len()) {
                    Some(cell) => {
                        Err(self.damaged(&format!("its cell {cell} names a target that it does not list")))
                    }
                    None => Ok(header),
                }
            }
        }
    }

    fn damaged(&self, why: &str) -> Error {
        let message =
            format!("the run file {} cannot be read at line {}: {why}", self.path.display(), self.number);
        Error::new(ErrorKind::Damaged, message)
            .hint("other runs are not affected; restore this file from a copy, or remove its folder")
    }
}
