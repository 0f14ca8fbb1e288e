//! Dumps and restores by `sqlite3`, the program of SQLite, which opens the same file.

use super::error::explain;
use crate::prelude::*;
use crate::program::{self, Dump};
use kurabe_core::dump::{DumpTool, RowOrder};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a whole dump ends; after an error it ends with a rollback.
const END: &str = "COMMIT;";

pub(super) struct SqliteDump {
    connection: Connection,
    path: PathBuf,
    program: PathBuf,
    programs: String,
    last: Option<Dump>,
}

impl SqliteDump {
    pub(super) fn new(connection: Connection, path: &Path) -> Result<Self> {
        let program = program::find(&["sqlite3"], "apt-get install sqlite3")?;
        let programs = format!("sqlite3 {}", program::version(&program));
        Ok(Self { connection, path: path.to_owned(), program, programs, last: None })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Without the user's own settings; it waits for locks, and stops at the first error.
        command.args(["-init", "/dev/null", "-batch", "-bail", "-cmd", ".timeout 30000"]);
        command.arg(&self.path).stdin(Stdio::null());
        command
    }
}

impl DumpTool for SqliteDump {
    fn programs(&self) -> &str {
        &self.programs
    }

    /// Rows are dumped in the order of their numbers (rowid), in which they were inserted.
    fn dump(
        &mut self,
        table: &Collection,
        _order: RowOrder,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        self.last = None;
        let mut command = self.command();
        command.arg(format!(".dump '{}'", table.name));
        let mut dump = Dump::beginning_with(&format!("DROP TABLE IF EXISTS \"{}\";\n", table.name))?;
        let length = dump.write(&mut command, END, progress)?;
        self.last = Some(dump);
        Ok(length)
    }

    fn restore(&mut self, _table: &Collection, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let mut command = self.command();
        let none = || Error::new(ErrorKind::Internal, "nothing was dumped that could be restored");
        self.last.as_mut().ok_or_else(none)?.read(&mut command, progress)
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        let sql = "SELECT SUM(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = ?1)";
        let bytes = self.connection.query_row(sql, [&table.name], |row| row.get::<_, Option<i64>>(0));
        bytes.map(|bytes| bytes.map(i64::unsigned_abs)).map_err(|error| explain(&error))
    }
}
