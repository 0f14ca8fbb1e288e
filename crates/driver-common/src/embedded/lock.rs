//! A run's claim on an embedded database: a lock that ends with the process.

use crate::lease::holder;
use kurabe_core::{Error, ErrorKind, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The locks that this process holds.
static HELD: Mutex<Vec<Weak<FileLock>>> = Mutex::new(Vec::new());

/// A run's claim on an embedded database, once taken.
#[derive(Default)]
pub struct Claim(Option<Arc<FileLock>>);

impl Claim {
    /// Locks a file beside the database (`flock`). The lock ends with the process, even after a crash.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) if another run holds it.
    pub fn take(&mut self, engine: &str, path: &Path, run: &str) -> Result<()> {
        if self.0.is_none() {
            self.0 = Some(FileLock::take(engine, path, run)?);
        }
        Ok(())
    }
}

/// A run's lock on a database, shared by all of the run's targets that use the file.
struct FileLock {
    path: PathBuf,
    holder: String,
    /// The device and inode of the locked file.
    identity: (u64, u64),
    _file: File,
}

/// Removes the file before the lock is released.
impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl FileLock {
    fn take(engine: &str, path: &Path, run: &str) -> Result<Arc<Self>> {
        let failed = |error: &std::io::Error| {
            Error::new(ErrorKind::NotPermitted, format!("{engine}: cannot lock {}: {error}", path.display()))
        };
        let us = holder(run);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|lock| lock.strong_count() > 0);
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                // A link that another account put there leads to another file.
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
                .map_err(|e| failed(&e))?;
            let ours = file.metadata().map_err(|e| failed(&e))?;
            let identity = (ours.dev(), ours.ino());
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    // The same run may use the file through another target.
                    let same = |lock: &Arc<FileLock>| lock.identity == identity && lock.holder == us;
                    if let Some(lock) = held.iter().filter_map(Weak::upgrade).find(same) {
                        return Ok(lock);
                    }
                    let mut holder = String::new();
                    let _ = file.read_to_string(&mut holder);
                    let by = if holder.is_empty() { "another run" } else { holder.trim() };
                    let message = format!("{engine}: the database is in use by {by}");
                    return Err(Error::new(ErrorKind::InUse, message)
                        .hint("wait for it to end, or name another file"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
            // The previous holder may have removed the file between the open and the lock; then this lock is on an
            // unlinked file.
            if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == identity) {
                file.set_len(0).and_then(|()| writeln!(file, "{us}")).map_err(|e| failed(&e))?;
                let lock = Arc::new(FileLock { path: path.to_owned(), holder: us, identity, _file: file });
                held.push(Arc::downgrade(&lock));
                return Ok(lock);
            }
        }
    }
}
