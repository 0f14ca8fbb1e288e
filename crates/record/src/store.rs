//! The folder of all runs: making a run in it, and going on with one.

use crate::format::header_line;
use crate::path::{RUN_FILE, RunPath, io_error};
use crate::reader::{Recorded, read_file};
use crate::writer::Writer;
use kurabe_core::run::{Run, RunHeader};
use kurabe_core::{Error, ErrorKind, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Folders that are being made start with this; nobody lists them.
const UNBORN: &str = ".new-";
/// After so long a folder that is still being made belongs to a process that died.
const UNBORN_LIFE: Duration = Duration::from_secs(3_600);

/// The folder of all runs.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) dir: PathBuf,
}

/// A run to go on with: what it holds, and the writer that appends to it.
#[derive(Debug)]
pub struct Resumed {
    /// What was recorded.
    pub run: Run,
    /// What happened to its file, one sentence each.
    pub notes: Vec<String>,
    /// Appends to it.
    pub writer: Writer,
}

impl Store {
    /// Opens the folder of all runs; it is made with its first run, not before.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) where something that is no folder is in its place.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        if dir.exists() && !dir.is_dir() {
            let message = format!("runs cannot be kept in {}: it is no folder", dir.display());
            return Err(Error::usage(message));
        }
        Ok(Self { dir })
    }

    /// The folder of all runs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes a run. Its folder appears with the whole header in it, locked, or not at all. Where there is a run of
    /// this name, a number goes behind it ([`Writer::name`], and the header's `run` in the file).
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) or [`NotPermitted`](ErrorKind::NotPermitted) where the folder cannot
    /// be made or written, [`Internal`](ErrorKind::Internal) where the name is no plain file name.
    pub fn create(&self, header: &RunHeader) -> Result<Writer> {
        if !is_plain(&header.run) {
            return Err(Error::new(ErrorKind::Internal, format!("'{}' is no name for a run", header.run)));
        }
        fs::create_dir_all(&self.dir).map_err(|error| io_error("make the folder", &self.dir, &error))?;
        self.clear_unborn();
        let unborn = self.dir.join(unborn_name());
        let made = self.give_birth(&unborn, header);
        if made.is_err() {
            // Nothing can be done where this fails too; it is cleared with the next run.
            let _ = fs::remove_dir_all(&unborn);
        }
        made
    }

    fn give_birth(&self, unborn: &Path, header: &RunHeader) -> Result<Writer> {
        let file_path = unborn.join(RUN_FILE);
        let failed = |error: &std::io::Error| io_error("write", &file_path, error);
        fs::create_dir(unborn).map_err(|error| io_error("make the folder", unborn, &error))?;
        let mut file =
            File::options().append(true).create_new(true).open(&file_path).map_err(|e| failed(&e))?;
        lock(&file, &file_path)?;
        let mut header = header.clone();
        let base = header.run.clone();
        for attempt in 1_u32.. {
            if attempt > 1 {
                header.run = format!("{base}-{attempt}");
            }
            let folder = self.dir.join(&header.run);
            if folder.exists() {
                continue;
            }
            let line = header_line(&header)?;
            file.set_len(0)
                .and_then(|()| file.write_all(&line))
                .and_then(|()| file.sync_all())
                .map_err(|e| failed(&e))?;
            // A folder that came into being meanwhile holds a run, is not empty, and makes the rename fail.
            match fs::rename(unborn, &folder) {
                Ok(()) => {
                    sync_folder(&self.dir);
                    return Ok(Writer::new(Box::new(file), RunPath::in_folder(folder), line.len() as u64, 0));
                }
                Err(error) if matches!(error.kind(), Io::AlreadyExists | Io::DirectoryNotEmpty) => {}
                Err(error) => return Err(io_error("make the folder", &folder, &error)),
            }
        }
        Err(Error::new(ErrorKind::Limit, format!("there are too many runs named {base}")))
    }

    /// Opens a run to go on with it: locks it, reads it, and cuts off a torn last line.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) where another process is writing it; else as for [`read`](crate::read).
    pub fn resume(&self, path: &RunPath) -> Result<Resumed> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path.file)
            .map_err(|error| io_error("write", &path.file, &error))?;
        lock(&file, &path.file)?;
        let Recorded { run, notes, whole_bytes } = read_file(&file, &path.file)?;
        if !notes.is_empty() {
            file.set_len(whole_bytes)
                .and_then(|()| file.sync_data())
                .map_err(|error| io_error("cut the torn line off", &path.file, &error))?;
        }
        let writer = Writer::new(Box::new(file), path.clone(), whole_bytes, run.trials.len() as u64);
        Ok(Resumed { run, notes, writer })
    }

    /// Removes what processes left behind that died between making a folder and giving it its name.
    fn clear_unborn(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let old = || entry.metadata().and_then(|m| m.modified()).is_ok_and(|at| age(at) > UNBORN_LIFE);
            if entry.file_name().to_string_lossy().starts_with(UNBORN) && old() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn age(at: SystemTime) -> Duration {
    at.elapsed().unwrap_or_default()
}

/// Unlike any other's, in this process and among those that share the folder.
fn unborn_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{UNBORN}{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a name is one plain component of a path, visible, and the same on every file system.
fn is_plain(name: &str) -> bool {
    (1..=120).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

/// Locks a run file for its one writer. Whoever lists runs holds each lock for a moment, so one refusal is none.
fn lock(file: &File, path: &Path) -> Result<()> {
    let mut tries = 10;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if tries > 0 => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is writing {}", path.display());
                return Err(Error::new(ErrorKind::InUse, message).hint("wait for it to end, or stop it"));
            }
            Err(TryLockError::Error(error)) => return Err(io_error("lock", path, &error)),
        }
        tries -= 1;
    }
}

/// Makes a new name durable. Some file systems cannot; then the name is as safe as they make it.
fn sync_folder(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}
