//! Waits until the files of a folder are on disk.

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::entries::OpenFolder;

/// How long syncing the whole file system may take before the folder's files are synced one by one.
const WHOLE: Duration = Duration::from_secs(3);

/// Waits until the files of a folder are on disk. Otherwise the system would write them during a measurement.
///
/// One sync of the file system takes milliseconds; syncing PostgreSQL's thousand files one by one takes seconds. But the
/// first may take any time while other programs write to the same file system.
///
/// # Errors
/// [`TimedOut`](io::ErrorKind::TimedOut) at the deadline, or the system's error.
pub(super) fn sync_folder(dir: &Path, deadline: Instant) -> io::Result<()> {
    let file = OpenFolder::open(dir)?.into_file();
    let (sender, done) = mpsc::channel();
    thread::spawn(move || sender.send(rustix::fs::syncfs(file)));
    let limit = WHOLE.min(deadline.saturating_duration_since(Instant::now()));
    match done.recv_timeout(limit) {
        Ok(result) => Ok(result?),
        Err(_) => sync_files(OpenFolder::open(dir)?, deadline),
    }
}

fn sync_files(dir: OpenFolder, deadline: Instant) -> io::Result<()> {
    for (name, kind) in dir.entries()? {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if kind == FileType::Directory {
            sync_files(dir.folder(&name)?, deadline)?;
        } else if kind == FileType::RegularFile {
            dir.read(&name)?.sync_all()?;
        }
    }
    dir.into_file().sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folder_is_synced_within_its_deadline_only() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/file"), "text").unwrap();
        let later = Instant::now() + Duration::from_secs(120);
        sync_folder(folder.path(), later).unwrap();
        sync_files(OpenFolder::open(folder.path()).unwrap(), later).unwrap();
        let late = sync_files(OpenFolder::open(folder.path()).unwrap(), Instant::now()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
