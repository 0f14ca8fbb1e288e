//! Reads a run file in any state.

use crate::format::{Chain, Line, Refusal, is_whole, parse_header, parse_line};
use crate::path::{RunPath, cannot};
use kurabe_core::run::{Run, RunHeader};
use kurabe_core::{Error, ErrorKind, Result, units};
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The maximum length of a line: a header of ten thousand cells has 4 MB. It bounds the memory for a foreign file.
const LONGEST_LINE: u64 = 64 << 20;

/// A run as it was read.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub run: Run,
    /// A note that the last line was torn and is ignored; `None` if every line is complete.
    pub torn: Option<String>,
    /// The end of the intact lines, after which a torn line may follow.
    pub(crate) chain: Chain,
}

/// Reads a run, whether it ended, was killed or is still being written. Every line is checked.
///
/// # Errors
/// [`Damaged`](ErrorKind::Damaged) with file, line and the part that can still be used, if the file is not a run or a
/// line was changed; [`Unsupported`](ErrorKind::Unsupported) if another version of Kurabe made it;
/// [`NotFound`](ErrorKind::NotFound) and the like if it cannot be opened.
pub fn read(path: &RunPath) -> Result<Recorded> {
    let file = File::open(&path.file).map_err(cannot("read", &path.file))?;
    read_file(&file, &path.file)
}

/// Reads the header of a run: its first line only. The other lines may be damaged.
pub fn read_header(path: &RunPath) -> Result<RunHeader> {
    let file = File::open(&path.file).map_err(cannot("read", &path.file))?;
    header_of(&file, &path.file)
}

/// Reads the run in an open file, from its beginning.
pub(crate) fn read_file(file: &File, path: &Path) -> Result<Recorded> {
    let mut lines = Lines::new(file, path);
    let (header, minor) = lines.header()?;
    let mut run = Run::new(header);
    let torn = lines.rest(&mut run, minor)?;
    Ok(Recorded { run, torn, chain: lines.chain })
}

/// Reads the first line of an open file.
pub(crate) fn header_of(file: &File, path: &Path) -> Result<RunHeader> {
    Ok(Lines::new(file, path).header()?.0)
}

/// A run file that is read while a process writes it: each look reads what was appended.
#[derive(Debug)]
pub struct Follower {
    path: RunPath,
    file: File,
    run: Run,
    minor: u64,
    /// The lines that were read.
    chain: Chain,
    /// Trials that were read and are not in `run` any more.
    forgotten: usize,
}

impl Follower {
    /// Reads what is there so far.
    pub fn open(path: &RunPath) -> Result<Self> {
        let file = File::open(&path.file).map_err(cannot("read", &path.file))?;
        let mut lines = Lines::new(&file, &path.file);
        let (header, minor) = lines.header()?;
        let mut run = Run::new(header);
        lines.rest(&mut run, minor)?;
        let chain = lines.chain;
        Ok(Self { path: path.clone(), file, run, minor, chain, forgotten: 0 })
    }

    /// Reads what was appended. A line that is not complete yet is read again by the next look.
    pub fn look(&mut self) -> Result<()> {
        let failed = cannot("read", &self.path.file);
        if self.file.metadata().map_err(failed)?.len() <= self.chain.bytes {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.chain.bytes)).map_err(failed)?;
        let mut lines = Lines::after(&self.file, &self.path.file, self.chain);
        let looked = lines.rest(&mut self.run, self.minor);
        self.chain = lines.chain;
        looked.map(drop)
    }

    /// The run's path.
    pub fn path(&self) -> &RunPath {
        &self.path
    }

    /// What was read, without the trials that were forgotten.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The number of trials that were read.
    pub fn trials(&self) -> usize {
        self.forgotten + self.run.trials.len()
    }

    /// Frees the memory of the trials that were read.
    pub fn forget(&mut self) {
        self.forgotten += self.run.trials.len();
        self.run.trials.clear();
    }

    /// Whether a process writes the file.
    pub fn is_written(&self) -> bool {
        is_locked(&self.file)
    }

    /// The bytes that were read so far.
    pub fn bytes(&self) -> u64 {
        self.chain.bytes
    }
}

/// Whether another process has the lock of a run file's writer.
pub(crate) fn is_locked(file: &File) -> bool {
    // A shared lock, so that two readers do not take each other for a writer.
    let locked = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let _ = file.unlock();
    locked
}

/// Adds the record of a line.
fn accept(run: &mut Run, line: Line) -> Result<(), String> {
    match line {
        // Readers never index out of bounds.
        Line::Trial(trial) if trial.cell >= run.header.cells.len() => {
            return Err(format!("it names cell {} of {}", trial.cell, run.header.cells.len()));
        }
        Line::Trial(trial) => {
            run.end = None;
            run.trials.push(*trial);
        }
        Line::Replanned(plan) if plan.rounds == 0 || plan.rounds > run.header.spec.rounds => {
            return Err(format!("it plans {} rounds instead of {}", plan.rounds, run.header.spec.rounds));
        }
        Line::Replanned(plan) => run.replan(plan),
        Line::Resumed(resumption) => {
            if resumption.targets.len() != run.header.targets.len() {
                return Err("it was resumed with other targets".to_owned());
            }
            run.end = None;
            run.resumptions.push(resumption);
        }
        Line::End(end) => run.end = Some(end),
    }
    Ok(())
}

enum Next {
    Line,
    Torn,
    End,
}

struct Lines<'a> {
    reader: BufReader<&'a File>,
    path: &'a Path,
    buffer: Vec<u8>,
    chain: Chain,
}

impl<'a> Lines<'a> {
    fn new(file: &'a File, path: &'a Path) -> Self {
        Self::after(file, path, Chain::default())
    }

    /// The lines after these, at whose end the file is.
    fn after(file: &'a File, path: &'a Path, chain: Chain) -> Self {
        Self { reader: BufReader::new(file), path, buffer: Vec::new(), chain }
    }

    /// Reads the next line into `buffer`, without its newline.
    fn next(&mut self) -> Result<Next> {
        self.buffer.clear();
        let read = (&mut self.reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.buffer)
            .map_err(cannot("read", self.path))?;
        if read == 0 {
            return Ok(Next::End);
        }
        if self.buffer.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Next::Line);
        }
        if read as u64 == LONGEST_LINE {
            return Err(self.damaged("it is longer than any line of a run", None));
        }
        Ok(Next::Torn)
    }

    /// Reads all further lines into a run; returns the note about a torn last line.
    fn rest(&mut self, run: &mut Run, minor: u64) -> Result<Option<String>> {
        loop {
            let bytes = match self.next()? {
                Next::End => return Ok(None),
                Next::Torn => return Ok(Some(self.torn())),
                Next::Line => &self.buffer,
            };
            let found = match parse_line(bytes, self.chain, minor) {
                Ok(line) => accept(run, line).map_err(Refusal::Damaged),
                Err(refusal) => Err(refusal),
            };
            match found {
                Ok(()) => self.chain.advance(&self.buffer),
                // After a power failure the file may have been extended for the line, but not completely written.
                Err(Refusal::Damaged(_))
                    if !is_whole(bytes)
                        && self.reader.fill_buf().map_err(cannot("read", self.path))?.is_empty() =>
                {
                    return Ok(Some(self.torn()));
                }
                Err(refusal) => return Err(self.refuse(&refusal, Some(run.trials.len()))),
            }
        }
    }

    fn header(&mut self) -> Result<(RunHeader, u64)> {
        let (header, minor) = match self.next()? {
            Next::End => return Err(self.damaged("the file is empty", None)),
            // A directory appears with a complete first line, so this one lost its end later.
            Next::Torn => return Err(self.damaged("its first line is incomplete", None)),
            Next::Line => parse_header(&self.buffer).map_err(|refusal| self.refuse(&refusal, None))?,
        };
        if let Some(cell) = header.cells.iter().position(|cell| cell.target >= header.targets.len()) {
            return Err(self.damaged(&format!("its cell {cell} names a target that is not listed"), None));
        }
        self.chain.advance(&self.buffer);
        Ok((header, minor))
    }

    /// The note that the line in `buffer` is ignored.
    fn torn(&self) -> String {
        let (line, file, bytes) = (self.chain.next(), self.path.display(), self.buffer.len());
        format!("line {line} of {file}, the last one, is incomplete ({bytes} bytes) and is ignored")
    }

    /// The error for the line in `buffer`; the lines before it contain `trials`.
    fn refuse(&self, refusal: &Refusal, trials: Option<usize>) -> Error {
        match refusal {
            Refusal::Damaged(why) => self.damaged(why, trials),
            Refusal::OtherVersion(which) => {
                let message = format!("the run file {} was made by {which}", self.path.display());
                Error::new(ErrorKind::Unsupported, message).hint("read it with that version")
            }
        }
    }

    fn damaged(&self, why: &str, trials: Option<usize>) -> Error {
        let file = self.path.display();
        let message = format!("the run file {file} is damaged at line {}: {why}", self.chain.next());
        let hint = match trials {
            None => "other runs are not affected; restore this file from a copy, or remove its directory"
                .to_owned(),
            Some(trials) => format!(
                "the {} before it {} intact ({}), and 'head -n {} {file} > COPY.jsonl' makes a run of them; other runs are \
                 not affected",
                units::counted(self.chain.lines, "line"),
                if self.chain.lines == 1 { "is" } else { "are" },
                units::counted(trials as u64, "trial"),
                self.chain.lines,
            ),
        };
        Error::new(ErrorKind::Damaged, message).hint(hint)
    }
}
