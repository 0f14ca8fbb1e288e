//! The files of ended runs, in the object store.

use super::broker::Broker;
use super::{Entry, Queue};
use futures_util::StreamExt;
use kurabe_core::{Error, ErrorKind, Result};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use tokio::io::AsyncReadExt;

/// The file with what a run printed.
pub(super) const OUTPUT: &str = "output.txt";
/// The folder with its runs.
pub(super) const RUNS: &str = "runs";

impl Broker {
    /// Stores all files of a folder under a run's name.
    pub(super) async fn store(&self, id: &str, folder: &Path) -> Result<(), String> {
        for path in files(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let Ok(name) = path.strip_prefix(folder) else { continue };
            let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let object = format!("{id}/{}", name.display());
            self.results.put(object.as_str(), &mut &content[..]).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn read(&self, object: &str) -> Result<Vec<u8>, String> {
        let mut found = self.results.get(object).await.map_err(|error| error.to_string())?;
        let mut content = Vec::new();
        found.read_to_end(&mut content).await.map_err(|error| error.to_string())?;
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

/// The path of an object's file within the folder of runs; `None` for anything that does not belong there.
fn place(object: &str, id: &str) -> Option<PathBuf> {
    let name = object.strip_prefix(id)?.strip_prefix('/')?.strip_prefix(RUNS)?.strip_prefix('/')?;
    let path = Path::new(name);
    let parts: Vec<Component<'_>> = path.components().collect();
    let plain = parts.len() == 2 && parts.iter().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| path.to_owned())
}

impl Queue {
    /// Writes the recorded runs of an ended run, with their pages, into a folder of runs. Returns the files. Those of a run
    /// that is there already are left as they are.
    ///
    /// # Errors
    /// If the broker does not answer, or a file cannot be written.
    pub fn fetch(&self, entry: &Entry, folder: &Path) -> Result<Vec<PathBuf>> {
        let failed = |why: String| self.error(&format!("the files of {} cannot be read", entry.id), &why);
        let objects = async {
            let mut list = self.broker.results.list().await.map_err(|error| error.to_string())?;
            let mut names = Vec::new();
            while let Some(object) = list.next().await {
                names.push(object.map_err(|error| error.to_string())?.name);
            }
            Ok(names)
        };
        let mut objects: Vec<(PathBuf, String)> = self
            .runtime
            .block_on(objects)
            .map_err(failed)?
            .into_iter()
            .filter_map(|object| Some((place(&object, &entry.id)?, object)))
            .collect();
        objects.sort();
        let mut written = Vec::new();
        for (name, object) in objects {
            let path = folder.join(&name);
            if !path.exists() {
                let content = self.runtime.block_on(self.broker.read(&object)).map_err(failed)?;
                let made = path.parent().map_or(Ok(()), fs::create_dir_all);
                made.and_then(|()| fs::write(&path, content)).map_err(|error| {
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
    fn objects_are_written_only_into_folders_of_runs() {
        assert_eq!(place("a/runs/r/run.jsonl", "a"), Some(PathBuf::from("r/run.jsonl")));
        for object in
            ["a/output.txt", "ab/runs/r/f", "a/runs/../f", "a/runs//etc/x", "a/runs/f", "a/runs/r/s/f"]
        {
            assert_eq!(place(object, "a"), None, "{object}");
        }
    }
}
