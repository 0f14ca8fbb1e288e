//! The files of ended runs, in the object store.

use super::broker::{Broker, answer};
use super::{Entry, Queue};
use kurabe_core::name::{FileName, Name, RelativePath};
use kurabe_core::{Error, ErrorKind, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;

/// The file with what a run printed.
pub(super) const OUTPUT: &str = "output.txt";
/// The folder with its runs.
pub(super) const RUNS: &str = "runs";

impl Broker {
    /// Stores all files of a folder under a run's name. Returns those in its folder of runs, by their paths from there.
    pub(super) async fn store(&self, id: &Name, folder: &Path) -> Result<Vec<RelativePath>, String> {
        let mut stored = Vec::new();
        for path in files(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let Ok(name) = path.strip_prefix(folder) else { continue };
            let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let object = format!("{id}/{}", name.display());
            self.results.put(object.as_str(), &mut &content[..]).await.map_err(|error| error.to_string())?;
            let of_run = name.strip_prefix(RUNS).ok().and_then(Path::to_str);
            stored.extend(of_run.and_then(|file| RelativePath::parse(file).ok()));
        }
        stored.sort();
        Ok(stored)
    }

    async fn read(&self, object: &str) -> Result<Vec<u8>, String> {
        let mut found = answer(self.results.get(object)).await?;
        let mut content = Vec::new();
        while answer(found.read_buf(&mut content)).await? > 0 {}
        Ok(content)
    }
}

/// All files of a folder and of those below it.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            all.extend(files(&entry.path())?);
        } else if kind.is_file() {
            all.push(entry.path());
        }
    }
    Ok(all)
}

/// The run and the file that a path from the folder of runs names; `None` if it names anything else.
fn of_run(path: &RelativePath) -> Option<(FileName, FileName)> {
    let (run, file) = path.split_once('/')?;
    Some((FileName::parse(run).ok()?, FileName::parse(file).ok()?))
}

impl Queue {
    /// Writes these files of an ended run into a folder of runs. Returns their paths. Those that are there already are left
    /// as they are.
    ///
    /// # Errors
    /// If the broker does not answer, or a file cannot be written.
    pub fn fetch(&self, entry: &Entry, files: &[RelativePath], folder: &Path) -> Result<Vec<PathBuf>> {
        let failed = |why: String| self.error(&format!("the files of {} cannot be read", entry.id), &why);
        let mut written = Vec::new();
        for (run, file) in files.iter().filter_map(of_run) {
            let path = folder.join(&run).join(&file);
            if !path.exists() {
                let object = format!("{}/{RUNS}/{run}/{file}", entry.id);
                let content = self.runtime.block_on(self.broker.read(&object)).map_err(failed)?;
                let made = fs::create_dir_all(folder.join(&run)).and_then(|()| File::create_new(&path));
                let is_new = made.is_ok();
                made.and_then(|mut made| made.write_all(&content)).map_err(|error| {
                    // A part would be taken for the whole file the next time.
                    let _ = is_new.then(|| fs::remove_file(&path));
                    Error::new(
                        ErrorKind::Environment,
                        format!("{} cannot be written: {error}", path.display()),
                    )
                })?;
            }
            written.push(path);
        }
        Ok(written)
    }

    /// What an ended run printed.
    ///
    /// # Errors
    /// If the broker does not answer, or does not have it any more.
    pub fn output(&self, entry: &Entry) -> Result<String> {
        let object = format!("{}/{OUTPUT}", entry.id);
        let read = self.runtime.block_on(self.broker.read(&object));
        let read =
            read.map_err(|why| self.error(&format!("the output of {} cannot be read", entry.id), &why))?;
        Ok(String::from_utf8_lossy(&read).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_in_folders_of_runs_are_written() {
        let found = |file: &str| RelativePath::parse(file).ok().as_ref().and_then(of_run);
        let (run, file) = found("20261126-r_1.2/run.jsonl").unwrap();
        assert_eq!((run.as_str(), file.as_str()), ("20261126-r_1.2", "run.jsonl"));
        for file in [
            "../f",
            "/etc/x",
            "f",
            "r/s/f",
            "r/../f",
            "",
            "r/..",
            ".jobs/job.json",
            ".new-1/run.jsonl",
            "r/.note",
            "-r/f",
        ] {
            assert_eq!(found(file), None, "{file}");
        }
    }
}
