//! The file of rows that the target refused: a JSON document a line.
//!
//! A line is written before the transaction that records it. The next process removes lines that no transaction recorded, so
//! that each row is there once.

use crate::page::Page;
use crate::plan::TablePlan;
use crate::pool::Work;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::private;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::NamedTempFile;

/// The file of rows that the target refused.
pub struct Rejects {
    path: PathBuf,
    /// The file, and the digest of the plan by which the lines of a copy are known.
    to: Mutex<(File, String)>,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::new(ErrorKind::Environment, format!("{}: {error}", path.display()))
}

impl Rejects {
    /// Opens the file, or makes it.
    pub fn open(path: &Path) -> Result<Self> {
        // What follows reads the file, and replaces it.
        if private::is_special(path) {
            let what = format!("rejected rows are kept in a file, and {} is none", path.display());
            return Err(Error::new(ErrorKind::Environment, what).hint("name a file with --reject"));
        }
        let file = private::append(path).map_err(failed(path))?;
        Ok(Self { path: path.to_owned(), to: Mutex::new((file, String::new())) })
    }

    /// Removes the lines of this copy that no transaction recorded, and a line that is not whole. Those of other copies stay.
    pub(crate) fn keep(&self, copy: &str, works: &[Work<'_>]) -> Result<()> {
        let failed = failed(&self.path);
        let mut recorded: HashMap<_, _> = works.iter().flat_map(Work::rejected).collect();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Its name is no one's guess, and only its owner reads it.
        let new = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(&failed)?;
        let mut lines = BufReader::new(File::open(&self.path).map_err(&failed)?);
        let mut out = BufWriter::new(new);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(&failed)? > 0 {
            let read = serde_json::from_slice::<serde_json::Value>(&line).unwrap_or_default();
            let is_kept = match (read["copy"].as_str(), read["table"].as_str(), read["range"].as_u64()) {
                (Some(of), Some(table), Some(range)) if of == copy => {
                    let left = recorded.entry((table.to_owned(), range as usize)).or_default();
                    let is_recorded = *left > 0;
                    *left = left.saturating_sub(1);
                    is_recorded
                }
                _ => line.ends_with(b"\n"),
            };
            if is_kept {
                out.write_all(&line).map_err(&failed)?;
            }
            line.clear();
        }
        let new = out.into_inner().map_err(|error| failed(error.into_error()))?;
        new.as_file().sync_all().map_err(&failed)?;
        let missing: u64 = recorded.values().sum();
        if missing > 0 {
            let what =
                format!("{}: {missing} rows are missing that this copy wrote before", self.path.display());
            return Err(Error::new(ErrorKind::Damaged, what)
                .hint("name the file with which the copy began, or begin again with --no-resume"));
        }
        new.persist(&self.path).map_err(|error| failed(error.error))?;
        let file = private::append(&self.path).map_err(&failed)?;
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = (file, copy.to_owned());
        Ok(())
    }

    /// Waits until the disk has all rows.
    pub(crate) fn flush(&self) -> Result<()> {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.0.sync_all().map_err(failed(&self.path))
    }

    /// Appends rows of a page with the reasons.
    pub(crate) fn write(
        &self,
        table: &TablePlan,
        range: usize,
        page: &Page,
        rows: &[(usize, Error)],
    ) -> Result<()> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = String::new();
        for (row, reason) in rows {
            let values = table.columns.iter().enumerate();
            let values = values.map(|(at, column)| (column.name.clone(), page.cell(*row, at).json()));
            let values: serde_json::Map<String, serde_json::Value> = values.collect();
            let line = serde_json::json!({
                "copy": to.1, "table": table.name, "range": range, "row": values, "reason": reason.to_string(),
            });
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "{line}");
        }
        to.0.write_all(lines.as_bytes()).map_err(failed(&self.path))
    }
}
