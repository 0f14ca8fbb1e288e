//! The files that a command writes besides what it prints.

use crate::options::options;
use crate::output::Output;
use crate::words::percentage;
use anyhow::Result;
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_core::{Error, ErrorKind};
use kurabe_os::private;
use kurabe_report::compare::Criteria;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

options! {
    /// The files that are written, and what a gate judges.
    FileOptions {
        fail_on: Option<String>,
        against: Option<String>,
        export_markdown: Option<PathBuf>,
        export_junit: Option<PathBuf>,
        export_json: Option<PathBuf>,
        export_html: Option<PathBuf>,
    }
}

/// What is written besides tables, and the gate's criteria.
pub(super) struct Files {
    pub(super) criteria: Option<Criteria>,
    pub(super) options: FileOptions,
}

/// A result in each format; each is made if it is asked for.
pub(super) struct Formats<'a> {
    pub(super) markdown: &'a dyn Fn() -> String,
    pub(super) json: &'a dyn Fn() -> String,
    pub(super) junit: &'a dyn Fn() -> String,
    pub(super) html: &'a dyn Fn() -> String,
}

impl Files {
    /// Checks the options.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if the criterion is invalid, or missing for `JUnit` XML.
    pub(super) fn new(options: FileOptions) -> kurabe_core::Result<Self> {
        let criterion = options.fail_on.as_deref().or(options.against.as_ref().map(|_| "slower"));
        let criteria = criterion.map(|text| Criteria::parse(text, DEFAULT_MARGIN, percentage)).transpose();
        let criteria = criteria.map_err(|error| error.context("--fail-on"))?;
        let files = Self { criteria, options };
        if files.options.export_junit.is_some() && criteria.is_none() {
            return Err(Error::usage("--export-junit requires --fail-on").hint("add --fail-on slower:5%"));
        }
        if files.printed() > 1 {
            return Err(Error::usage(
                "only one of --export-markdown, --export-junit, --export-json and --export-html can be '-'",
            ));
        }
        Ok(files)
    }

    /// Whether standard output is for one of them alone.
    pub(super) fn prints(&self) -> bool {
        self.printed() > 0
    }

    fn printed(&self) -> usize {
        let FileOptions { export_markdown, export_junit, export_json, export_html, .. } = &self.options;
        let all = [export_markdown, export_junit, export_json, export_html];
        all.into_iter().flatten().filter(|file| is_output(file)).count()
    }

    /// Writes a result in the formats that were asked for.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(&self, formats: &Formats<'_>, output: &Output) -> Result<()> {
        for (file, text) in [
            (&self.options.export_markdown, formats.markdown),
            (&self.options.export_json, formats.json),
            (&self.options.export_junit, formats.junit),
            (&self.options.export_html, formats.html),
        ] {
            let Some(file) = file else { continue };
            if is_output(file) {
                output.result(&text())?;
            } else {
                write(file, text().as_bytes())?;
            }
        }
        if let Some(page) = self.options.export_html.as_ref().filter(|file| !is_output(file)) {
            output.note(&format!("page: {}", page.display()));
        }
        Ok(())
    }
}

pub(super) fn is_output(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Writes a report atomically: an existing one stays until the new one is complete. The umask decides who can read it: reports are made
/// to be shown.
pub(super) fn write(file: &Path, text: &[u8]) -> Result<()> {
    replace(file, text, 0o666)
}

/// As [`write()`], for what has values of the user's databases, or is in a folder of ours: only its owner can read it.
pub(super) fn write_private(file: &Path, text: &[u8]) -> Result<()> {
    replace(file, text, 0o600)
}

/// Refuses a file that holds a database.
pub(super) fn refuse_database(file: &Path) -> Result<()> {
    if private::is_in_use(file) {
        let what = format!("{} is a database, or is open here: what is in it would be lost", file.display());
        return Err(Error::usage(what).hint("name another file").into());
    }
    Ok(())
}

fn replace(file: &Path, text: &[u8], mode: u32) -> Result<()> {
    refuse_database(file)?;
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::Environment, format!("the report cannot be written to {}: {e}", file.display()))
    };
    // Pipes and devices are written to, not replaced.
    if private::is_special(file) {
        return Ok(private::open_special(file).and_then(|mut out| out.write_all(text)).map_err(failed)?);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let message = format!(
            "the report cannot be written to {}: no such folder: {}",
            file.display(),
            folder.display()
        );
        return Err(Error::new(ErrorKind::Environment, message).hint("create it, or choose another").into());
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    let mut new = tempfile::Builder::new().permissions(mode).tempfile_in(folder).map_err(failed)?;
    new.write_all(text).map_err(failed)?;
    new.persist(file).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Refuses one file for two things that are written.
pub(super) fn refuse_one_for_two(files: &[&Path]) -> kurabe_core::Result<()> {
    let mut places = HashSet::new();
    for file in files {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = file.file_name().unwrap_or_default();
        let place =
            fs::canonicalize(file).or_else(|_| fs::canonicalize(folder).map(|folder| folder.join(name)));
        if !private::is_special(file) && place.is_ok_and(|place| !places.insert(place)) {
            let what = format!("{} is named for two things that are written", file.display());
            return Err(Error::usage(what).hint("name a file for each"));
        }
    }
    Ok(())
}
