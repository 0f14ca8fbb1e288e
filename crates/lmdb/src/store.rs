//! The open file, and the conversion of LMDB's errors.

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError, RwTxn};
use kurabe_driver_common::prelude::*;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::ops::Bound;
use std::path::Path;

pub(crate) struct Store {
    pub(crate) env: Env,
    pub(crate) rows: Database<'static, Bytes, Bytes>,
}

impl Store {
    pub(crate) fn open(path: &Path, sync: EnvFlags, map_size: usize) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        // A reading thread keeps a reader slot until it ends.
        options.map_size(map_size).max_readers(16_384);
        // SAFETY: only LMDB changes the mapped file, under its locks; writes by another program would damage it.
        #[allow(unsafe_code)]
        let env = unsafe { options.flags(EnvFlags::NO_SUB_DIR | sync).open(path) }.map_err(explain)?;
        let opened = env.create_databases_and_commit(env.write_txn().map_err(explain)?, |opener, txn| {
            opener.create_database(txn, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let rows = opened.map_err(explain)?.unwrap_commit();
        Ok(Self { env, rows })
    }

    /// Calls `each` with the keys from `start` to before `end` and their rows, in order.
    pub(crate) fn scan(&self, start: &[u8], end: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let txn = self.env.read_txn().map_err(explain)?;
        let range = (Bound::Included(start), Bound::Excluded(end));
        let mut found = self.rows.range(&txn, &range).map_err(explain)?;
        found.try_for_each(|found| found.map(|(key, row)| each(key, row))).map_err(explain)
    }

    /// Changes rows in one transaction, which is rolled back on failure.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut RwTxn<'_>) -> Result<T>) -> Result<T> {
        let mut txn = self.env.write_txn().map_err(explain)?;
        let done = change(&mut txn)?;
        txn.commit().map_err(explain)?;
        Ok(done)
    }
}

/// A key after all keys with this prefix: a key has at most 511 bytes.
pub(crate) fn after(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[u8::MAX; 512]].concat()
}

/// Converts an error, with LMDB's error name as the code and a hint.
pub(crate) fn explain(error: heed::Error) -> Error {
    use heed::Error::{EnvAlreadyOpened, Io, Mdb};
    let message = format!("lmdb: {error}");
    let (kind, code, hint) = match error {
        Mdb(MdbError::KeyExist) => (ErrorKind::Server, "MDB_KEYEXIST", ""),
        Mdb(MdbError::BadValSize) => (ErrorKind::Limit, "MDB_BAD_VALSIZE", "use shorter keys"),
        Mdb(MdbError::MapFull) => (ErrorKind::Limit, "MDB_MAP_FULL", "use a larger ?map_size="),
        Mdb(MdbError::Invalid | MdbError::VersionMismatch) => {
            (ErrorKind::Usage, "MDB_INVALID", "use an LMDB file, or a new one")
        }
        EnvAlreadyOpened => {
            (ErrorKind::Usage, "EBUSY", "LMDB can open a file only once in a process: use it in one target")
        }
        Io(io) if matches!(io.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            (ErrorKind::NotPermitted, "EACCES", "check that this user may write the file and its folder")
        }
        _ => (
            ErrorKind::Environment,
            "EIO",
            "check the free space, that the disk is local, ulimit -v and ulimit -f",
        ),
    };
    Error::new(kind, message).code(code).hint(hint)
}
