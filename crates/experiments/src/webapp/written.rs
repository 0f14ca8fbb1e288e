//! What requests wrote, and the application or the database must have stored.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Written {
    /// Each line of the log: its number, its user, and what its address and time are made of.
    pub(super) lines: Vec<(u64, u64, u64)>,
    /// Each changed user with its last version: the highest one, since a user's versions increase in order.
    pub(super) versions: BTreeMap<u64, u64>,
    pub(super) changes: u64,
}

impl Written {
    /// Enters what one request wrote: a line of the log, and the user's new version if it changed the user.
    pub(super) fn request(&mut self, line: u64, user: u64, origin: u64, version: Option<u64>) {
        self.lines.push((line, user, origin));
        if let Some(version) = version {
            self.changes += 1;
            self.version(user, version);
        }
    }

    fn version(&mut self, user: u64, version: u64) {
        let last = self.versions.entry(user).or_default();
        *last = (*last).max(version);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.lines.extend(&other.lines);
        self.changes += other.changes;
        other.versions.iter().for_each(|(user, version)| self.version(*user, *version));
    }

    /// The number of lines and users that were written.
    pub(super) fn records(&self) -> u64 {
        (self.lines.len() + self.versions.len()) as u64
    }
}
