//! Resolves the user's reference to a run.

use crate::list::Entry;
use crate::path::{RunPath, is_shown, no_name};
use crate::store::Store;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::path::Path;

impl Store {
    /// The run that a user names by `last`, a name, an unambiguous prefix of a name, or a path to a run's directory
    /// or file.
    ///
    /// `last` is the newest run with a readable first line. A name takes precedence over a path with the same text.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) with the nearest names, [`Usage`](ErrorKind::Usage) if several runs have
    /// this prefix.
    pub fn find(&self, wanted: &str) -> Result<RunPath> {
        let entries = self.list()?;
        if wanted == "last" {
            return self.last(&entries);
        }
        let named = |entry: &&Entry| entry.path().name == wanted;
        if let Some(entry) = entries.iter().find(named) {
            return Ok(entry.path().clone());
        }
        if wanted.contains(['/', '\\']) || Path::new(wanted).exists() {
            return RunPath::at(Path::new(wanted));
        }
        let starting: Vec<&RunPath> = entries
            .iter()
            .map(Entry::path)
            .filter(|path| !wanted.is_empty() && path.name.starts_with(wanted))
            .collect();
        match starting.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(self.not_found(wanted, &entries)),
            [newest, .., oldest] => {
                let (count, oldest, newest) = (starting.len(), &oldest.name, &newest.name);
                let message =
                    format!("'{wanted}' is ambiguous: {count} runs begin with it, from {oldest} to {newest}");
                Err(Error::usage(message).hint("give more of the name"))
            }
        }
    }

    fn last(&self, entries: &[Entry]) -> Result<RunPath> {
        let readable = entries.iter().find(|entry| matches!(entry, Entry::Run(_)));
        readable.map(|entry| entry.path().clone()).ok_or_else(|| match entries.first() {
            Some(Entry::Unreadable { error, .. }) => error.clone(),
            _ => self.empty(),
        })
    }

    fn not_found(&self, wanted: &str, entries: &[Entry]) -> Error {
        let names: Vec<&str> = entries.iter().map(|entry| entry.path().name.as_str()).collect();
        let Some(newest) = names.first() else { return self.empty() };
        if !is_shown(wanted) {
            return no_name();
        }
        let error =
            Error::new(ErrorKind::NotFound, format!("run '{wanted}' not found in {}", self.dir.display()));
        match units::nearest(wanted, &names) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint(format!("the newest is '{newest}'")),
        }
    }

    fn empty(&self) -> Error {
        let message = format!("{} contains no runs yet", self.dir.display());
        Error::new(ErrorKind::NotFound, message).hint("make one with `kurabe run`")
    }
}
