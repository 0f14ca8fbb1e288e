//! The ownership rules for all engines: which collections Kurabe may create, clear and remove.
//!
//! An ownership table (`kurabe_marker`) has the names of the collections that Kurabe created. Kurabe does not touch a
//! collection without an entry, whatever its name.

use crate::prelude::*;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the ownership table; no collection may have it.
pub const MARKER: &str = "kurabe_marker";

/// The creator that an entry of the ownership table names.
pub const MADE_BY: &str = concat!("kurabe ", env!("CARGO_PKG_VERSION"));

/// An engine's terms, for messages.
#[derive(Clone, Copy)]
pub struct Words {
    /// The engine's name.
    pub engine: &'static str,
    /// The engine's term for a collection, such as table.
    pub thing: &'static str,
    /// Advice if a foreign object has the name.
    pub instead: &'static str,
    /// Reserved names besides [`MARKER`].
    pub kept: &'static [&'static str],
}

impl Words {
    /// The error of an object that Kurabe does not own.
    pub fn not_ours(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotOurs, message).hint(format!("it is left alone; {}", self.instead))
    }

    /// The error of a foreign object named [`MARKER`]; `why` is appended as the reason.
    pub fn foreign_marker(&self, why: &str) -> Error {
        self.not_ours(format!("{} {MARKER} was not created by Kurabe{why}", self.thing))
    }
}

/// The operations of an engine that the ownership rules use, on a separate connection.
pub trait NamespaceOps: Send {
    /// The engine's terms.
    fn words(&self) -> Words;

    /// Takes a lock against other runs, which ends with the connection or the process, or soon after.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// The names in the ownership table; empty if it does not exist. An error if it is foreign.
    fn entries(&mut self) -> Result<Vec<String>>;

    /// Whether a collection without an entry is recognisable as Kurabe's by itself. The server may have forgotten the
    /// entry, as a cache does that evicts values.
    fn recognises(&mut self, _name: &str) -> Result<bool> {
        Ok(false)
    }

    /// The collections that are recognisable as Kurabe's by themselves, with or without an entry.
    fn without_entry(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// An existing object with the name of a collection without an entry, if the engine can detect it.
    fn in_the_way(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Adds an entry to the ownership table, which is created if needed. Does nothing if the engine needs no table.
    fn enter(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    /// The text before the keys of a collection's rows, if the server has one name space for the keys of all.
    fn key_prefix(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Removes an entry from the ownership table.
    fn strike(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Creates the collection, empty; `known`: it may exist already, and is then replaced.
    fn make(&mut self, collection: &Collection, known: bool) -> Result<()>;

    /// Removes all rows of the collection.
    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.make(collection, true)
    }

    /// Removes the collection, if it exists, before its entry is removed.
    fn destroy(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Removes the empty ownership table.
    fn remove_marker(&mut self) -> Result<()> {
        Ok(())
    }

    /// Like [`Namespace::keeps_insertion_order`].
    fn keeps_insertion_order(&self) -> bool {
        true
    }

    /// Whether the planner has statistics, which the next three are about.
    fn has_statistics(&self) -> bool {
        false
    }

    /// Like [`TableStatistics::analyse`].
    fn analyse(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Like [`TableStatistics::hold`].
    fn hold_statistics(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Like [`TableStatistics::missing`].
    fn missing_statistics(&mut self, _table: &str) -> Result<Option<String>> {
        Ok(None)
    }
}

/// A [`Namespace`] that enforces the ownership rules.
pub struct Owned(Box<dyn NamespaceOps>);

impl Owned {
    /// That of these operations.
    pub fn boxed(operations: impl NamespaceOps + 'static) -> Box<dyn Namespace> {
        Box::new(Self(Box::new(operations)))
    }

    /// Whether the name has an entry; an error if a foreign object has the name.
    fn known(&mut self, name: &str) -> Result<bool> {
        let words = self.0.words();
        check_name(name, words.kept)?;
        if self.0.entries()?.iter().any(|entry| entry == name) {
            return Ok(true);
        }
        if self.0.recognises(name)? {
            return Ok(true);
        }
        let Some(what) = self.0.in_the_way(name)? else { return Ok(false) };
        let message = format!("{}: {what} exists and was not made by Kurabe", words.engine);
        Err(words
            .not_ours(message)
            .hint(format!("it is left alone; {} (no entry for {name} in {MARKER})", words.instead)))
    }

    /// Returns an error if the collection has no entry.
    fn must_be_ours(&mut self, name: &str) -> Result<()> {
        if self.known(name)? {
            return Ok(());
        }
        let Words { engine, thing, .. } = self.0.words();
        Err(Error::new(ErrorKind::NotFound, format!("{engine}: there is no {thing} {name}")))
    }
}

impl Namespace for Owned {
    fn keeps_insertion_order(&self) -> bool {
        self.0.keeps_insertion_order()
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        self.0.claim(run)
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        let name = &collection.name;
        let known = self.known(name)?;
        // The entry is added first, and again if the server has forgotten it. A crash in between leaves an entry without a collection, which the next run
        // removes, and not a collection without an entry, which no run would touch.
        if !known || !self.0.entries()?.contains(name) {
            self.0.enter(collection)?;
        }
        self.0.make(collection, known).map_err(|error| {
            // Best effort: a remaining entry is harmless.
            if !known && self.0.in_the_way(name) == Ok(None) {
                let _ = self.0.strike(name);
            }
            error.context(format!("cannot create {} {name}", self.0.words().thing))
        })
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.0.clear(collection)
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        if self.0.has_statistics() { Some(self) } else { None }
    }

    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>> {
        self.0.key_prefix(&collection.name)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        if !self.known(name)? {
            return Ok(());
        }
        self.0.destroy(name)?;
        self.0.strike(name)
    }

    fn list(&mut self) -> Result<Vec<String>> {
        let mut names = self.0.entries()?;
        for name in self.0.without_entry()? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn finish(&mut self) -> Result<()> {
        let left = self.0.entries()?;
        if left.is_empty() {
            return self.0.remove_marker();
        }
        Err(Error::new(ErrorKind::Internal, format!("{MARKER} still has entries: {}", left.join(", "))))
    }
}

impl TableStatistics for Owned {
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.0.analyse(&collection.name)
    }

    fn hold(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.0.hold_statistics(&collection.name)
    }

    fn missing(&mut self, table: &str) -> Result<Option<String>> {
        self.0.missing_statistics(table)
    }
}

/// Refuses names that a collection of Kurabe's cannot have: [`MARKER`], and the reserved names in `kept`.
fn check_name(name: &str, kept: &[&str]) -> Result<()> {
    if Collection::name_is_ours(name) && name != MARKER && !kept.contains(&name) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotOurs, format!("'{name}' is not a name for a collection of Kurabe's"))
        .hint("such names start with kurabe_ and contain lower case letters, digits and underscores"))
}

/// The time since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_foreign_names_are_refused() {
        for name in ["users", MARKER, "kurabe_claim", "kurabe_A", ""] {
            assert_eq!(check_name(name, &["kurabe_claim"]).unwrap_err().kind(), ErrorKind::NotOurs, "{name}");
        }
        assert!(check_name("kurabe_a", &["kurabe_claim"]).is_ok());
    }
}
