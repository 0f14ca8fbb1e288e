//! Dumps and restores by `sqlite3`, the program of SQLite, which opens the same file.

use super::error::explain;
use super::file::SqliteFile;
use crate::dump::Programs;
use crate::prelude::*;
use crate::program;
use kurabe_core::dump::RowOrder;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

pub(super) struct SqliteDump {
    file: Arc<SqliteFile>,
    program: PathBuf,
    names: String,
}

impl SqliteDump {
    /// Finds the program. The file is not opened before it is needed.
    pub(super) fn new(file: Arc<SqliteFile>) -> Result<Self> {
        let program = program::find(&["sqlite3"], "apt-get install sqlite3")?;
        let names = format!("sqlite3 {}", program::version(&program));
        Ok(Self { file, program, names })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Without the user's own settings; it waits for locks, and stops at the first error.
        command.args(["-init", "/dev/null", "-batch", "-bail", "-cmd", ".timeout 30000"]);
        command.args(["-cmd", "PRAGMA trusted_schema=OFF"]);
        command.arg(self.file.place().path()).stdin(Stdio::null());
        command
    }
}

impl Programs for SqliteDump {
    /// After an error it ends with a rollback.
    const END: &'static str = "COMMIT;";

    fn names(&self) -> &str {
        &self.names
    }

    /// Rows are dumped in the order of their numbers (rowid), in which they were inserted.
    fn dump(&self, table: &Collection, _order: RowOrder) -> Command {
        let mut command = self.command();
        command.arg(format!(".dump '{}'", table.name));
        command
    }

    fn beginning(&self, table: &Collection) -> String {
        format!("DROP TABLE IF EXISTS \"{}\";\n", table.name)
    }

    fn restore(&self) -> Command {
        self.command()
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        let sql = "SELECT SUM(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = ?1)";
        let bytes = self.file.reader()?.query_row(sql, [&table.name], |row| row.get::<_, Option<i64>>(0));
        bytes.map(|bytes| bytes.map(i64::unsigned_abs)).map_err(|error| explain(&error))
    }
}
