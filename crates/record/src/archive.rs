//! Runs in one file, to keep them elsewhere: a tar archive with a folder for each run, compressed if its name ends with
//! `.gz` or `.tgz`. It contains run files and notes. Reports are made again from run files.
//!
//! An archive may come from anybody. Only regular files of the two known names, in a folder with a plain name, are read,
//! and each run is checked line by line before it appears in the store.

use crate::path::{IMPORTED_FILE, NOTE_FILE, RUN_FILE, RunPath, cannot};
use crate::reader::{read, read_header};
use crate::store::{Store, is_plain, temporary_name};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::private;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path};

/// The largest total of what is unpacked from one archive, in bytes.
const LARGEST: u64 = 16 << 30;
/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A run that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its path in the store.
    pub path: RunPath,
    /// Whether it was there already, with the same content.
    pub known: bool,
}

/// Writes runs into an archive, which appears when it is complete.
///
/// # Errors
/// As for [`read`] if a run cannot be read whole; [`Environment`](ErrorKind::Environment) and the like if the archive
/// cannot be written.
pub fn export(runs: &[RunPath], archive: &Path) -> Result<()> {
    for run in runs {
        read(run)?;
    }
    if private::is_special(archive) {
        let what = format!("an archive is a file, and {} is none", archive.display());
        return Err(Error::new(ErrorKind::Environment, what).hint("name a file with --output"));
    }
    if private::is_in_use(archive) {
        let what =
            format!("{} is a database, or is open here: what is in it would be lost", archive.display());
        return Err(Error::usage(what).hint("name another file with --output"));
    }
    let folder = archive.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = cannot("write", archive);
    let temporary = folder.join(temporary_name());
    let file = File::create_new(&temporary).map_err(failed)?;
    let name = archive.to_string_lossy();
    let packed = if name.ends_with(".gz") || name.ends_with(".tgz") {
        pack(runs, GzEncoder::new(file, Compression::default())).and_then(GzEncoder::finish)
    } else {
        pack(runs, file)
    };
    packed.and_then(|file| file.sync_all()).and_then(|()| fs::rename(&temporary, archive)).map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

fn pack<W: Write>(runs: &[RunPath], out: W) -> io::Result<W> {
    let mut archive = tar::Builder::new(out);
    for run in runs {
        let folder = Path::new(&run.name);
        archive.append_path_with_name(&run.file, folder.join(RUN_FILE))?;
        let note = run.folder.join(NOTE_FILE);
        if note.is_file() {
            archive.append_path_with_name(&note, folder.join(NOTE_FILE))?;
        }
    }
    archive.into_inner()
}

/// Reads runs into the store: from an archive, from a run's directory, or from a run file. All runs of an archive are
/// checked before the first of them appears. A run that is there already with the same content is left alone; another one
/// of the same name gets a number.
///
/// # Errors
/// [`Damaged`](ErrorKind::Damaged) if it is neither, or a run in it is damaged; else as for [`read`] and
/// [`create`](Store::create).
pub fn import(store: &Store, from: &Path) -> Result<Vec<Imported>> {
    store.make_dir()?;
    let temporary = store.dir().join(temporary_name());
    private::create_dir(&temporary).map_err(cannot("create the directory", &temporary))?;
    let imported = unpack(from, &temporary).and_then(|runs| publish(store, &runs));
    // What was published has been moved away.
    let _ = fs::remove_dir_all(&temporary);
    imported
}

/// Copies the runs into folders of `into`, and checks them.
fn unpack(from: &Path, into: &Path) -> Result<Vec<RunPath>> {
    let failed = cannot("read", from);
    let mut runs = BTreeMap::new();
    let mut first = Vec::new();
    if from.is_file() {
        let file = File::open(from).map_err(failed)?;
        file.take(GZIP.len() as u64).read_to_end(&mut first).map_err(failed)?;
    }
    // A run file begins with an object.
    if first.first().is_some_and(|byte| *byte != b'{') {
        let file = File::open(from).map_err(failed)?;
        if first == GZIP {
            entries(GzDecoder::new(file).take(LARGEST), from, into, &mut runs)?;
        } else {
            entries(file.take(LARGEST), from, into, &mut runs)?;
        }
    } else {
        let run = RunPath::at(from)?;
        // A run file of another name is in no folder of its own.
        let name = read_header(&run)?.run;
        let name = if is_plain(&name) { name } else { "imported".to_owned() };
        let made = RunPath::in_folder(into.join(&name));
        let copy = |from: &Path, to: &Path| {
            io::copy(&mut File::open(from)?, &mut private::create_new(to)?).map(drop)
        };
        let note = run.folder.join(NOTE_FILE);
        private::create_dir(&made.folder)
            .and_then(|()| copy(&run.file, &made.file))
            .and_then(|()| {
                let has_note = note.is_file() && run.file.file_name() == made.file.file_name();
                if has_note { copy(&note, &made.folder.join(NOTE_FILE)) } else { Ok(()) }
            })
            .map_err(failed)?;
        runs.insert(name, made);
    }
    let runs: Vec<RunPath> = runs.into_values().collect();
    if runs.is_empty() {
        let message = format!("{} contains no run", from.display());
        return Err(Error::new(ErrorKind::Damaged, message).hint("import what 'kurabe runs export' made"));
    }
    for run in &runs {
        read(run).map_err(|error| error.context(from.display()))?;
        let mark = run.folder.join(IMPORTED_FILE);
        private::create_new(&mark).map_err(cannot("write", &mark))?;
    }
    Ok(runs)
}

/// Unpacks the run files and notes of an archive.
fn entries(archive: impl Read, from: &Path, into: &Path, runs: &mut BTreeMap<String, RunPath>) -> Result<()> {
    let damaged = |why: &str| {
        Error::new(ErrorKind::Damaged, format!("{} is no archive of runs: {why}", from.display()))
            .hint("import what 'kurabe runs export' made")
    };
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(|error| damaged(&error.to_string()))? {
        let mut entry = entry.map_err(|error| damaged(&error.to_string()))?;
        let path = entry.path().map_err(|error| damaged(&error.to_string()))?.into_owned();
        let parts: Vec<Component<'_>> = path.components().collect();
        let [Component::Normal(folder), Component::Normal(file)] = parts.as_slice() else {
            // Folders have entries of their own.
            if entry.header().entry_type().is_dir() {
                continue;
            }
            return Err(damaged(&format!("'{}' is not NAME/{RUN_FILE}", path.display())));
        };
        let (folder, file) = (folder.to_string_lossy(), file.to_string_lossy());
        if !is_plain(&folder)
            || ![RUN_FILE, NOTE_FILE].contains(&&*file)
            || !entry.header().entry_type().is_file()
        {
            return Err(damaged(&format!("'{}' is not NAME/{RUN_FILE}", path.display())));
        }
        let run = RunPath::in_folder(into.join(&*folder));
        let written = private::create_dir_all(&run.folder)
            .and_then(|()| private::create_new(run.folder.join(&*file)))
            .and_then(|mut made| io::copy(&mut entry, &mut made));
        written.map_err(cannot("unpack", from))?;
        runs.insert(folder.into_owned(), run);
    }
    if let Some(without) = runs.values().find(|run| !run.file.is_file()) {
        return Err(damaged(&format!("'{}' has no {RUN_FILE}", without.name)));
    }
    Ok(())
}

/// Moves checked runs into the store.
fn publish(store: &Store, runs: &[RunPath]) -> Result<Vec<Imported>> {
    let mut imported = Vec::new();
    for run in runs {
        let content = |path: &RunPath| fs::read(&path.file).map_err(cannot("read", &path.file));
        let new = content(run)?;
        for attempt in 1_u32.. {
            let name = if attempt == 1 { run.name.clone() } else { format!("{}-{attempt}", run.name) };
            let place = RunPath::in_folder(store.dir().join(name));
            if place.file.is_file() && content(&place)? == new {
                imported.push(Imported { path: place, known: true });
                break;
            }
            if place.folder.exists() {
                continue;
            }
            fs::rename(&run.folder, &place.folder).map_err(cannot("create the directory", &place.folder))?;
            imported.push(Imported { path: place, known: false });
            break;
        }
    }
    (store.sync)(store.dir());
    Ok(imported)
}
