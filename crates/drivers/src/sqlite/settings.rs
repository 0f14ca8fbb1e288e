//! The PRAGMAs that decide figures: read from the URL, set, and read back from SQLite.

use super::bad_value;
use super::error::explain;
use crate::prelude::*;
use kurabe_core::units;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::time::Duration;

const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];

/// Takes effect before the first page is written only.
const PAGE_SIZE: &str = "page_size";

type Parse = fn(&str) -> Option<i64>;

/// PRAGMAs that are numbers, in the order in which they are set: how an option is read, and what to write.
const NUMBERS: [(&str, Parse, &str); 4] = [
    (PAGE_SIZE, page_size, "a power of two from 512 to 65536"),
    ("cache_size", cache_size, "write a size such as 64m, or pages such as 2000"),
    ("mmap_size", size, "write a size such as 1g"),
    ("wal_autocheckpoint", |text| text.parse().ok(), "write a number of pages"),
];

/// What the user asked for, or Kurabe's own choice where SQLite's default would not suit a comparison.
#[derive(Debug)]
pub(super) struct Settings {
    journal_mode: &'static str,
    /// By SQLite's number: a place in [`SYNCHRONOUS`].
    synchronous: usize,
    /// Whether the target names the journal mode and `synchronous`.
    named: [bool; 2],
    busy_timeout: Duration,
    /// Those of [`NUMBERS`] that the target names, in SQLite's own form.
    numbers: Vec<(&'static str, i64)>,
}

/// The settings in force on a connection.
pub(super) struct InForce {
    pub(super) durability: Vec<Setting>,
    pub(super) others: Vec<Setting>,
    journal_mode: String,
    synchronous: i64,
}

impl Settings {
    pub(super) fn parse(url: &TargetUrl) -> Result<Self> {
        let word = |name: &'static str, words: &[&'static str], default: usize| match url.option(name) {
            None => Ok(default),
            Some(text) => words
                .iter()
                .position(|word| word.eq_ignore_ascii_case(text))
                .ok_or_else(|| bad_value(name, text, &format!("one of: {}", words.join(", ")))),
        };
        let numbers = NUMBERS.into_iter().filter_map(|(name, parse, hint)| {
            let text = url.option(name)?;
            Some(parse(text).map(|number| (name, number)).ok_or_else(|| bad_value(name, text, hint)))
        });
        let busy_timeout = match url.option("busy_timeout") {
            None => Duration::from_secs(5),
            Some(text) => units::parse_duration(text).map_err(|e| e.context("sqlite: busy_timeout"))?,
        };
        Ok(Self {
            journal_mode: JOURNAL_MODES[word("journal_mode", &JOURNAL_MODES, 4)?],
            synchronous: word("synchronous", &SYNCHRONOUS, 2)?,
            named: ["journal_mode", "synchronous"].map(|name| url.option(name).is_some()),
            busy_timeout: busy_timeout.min(Duration::from_secs(3_600)),
            numbers: numbers.collect::<Result<_>>()?,
        })
    }

    /// Makes the file what was asked for, once, and sees to it that it is.
    pub(super) fn set_up(&self, connection: &Connection) -> Result<()> {
        connection.busy_timeout(self.busy_timeout).map_err(|e| explain(&e))?;
        // Before the first page is written; no effect afterwards, which is seen below.
        for (name, bytes) in self.numbers.iter().filter(|(name, _)| *name == PAGE_SIZE) {
            set(connection, name, *bytes)?;
        }
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", self.journal_mode, |row| row.get(0))
            .map_err(|e| explain(&e))?;
        if mode != self.journal_mode {
            let hint = format!("SQLite keeps it at {mode} here");
            return Err(bad_value("journal_mode", self.journal_mode, &hint));
        }
        self.apply(connection)?;
        for (name, wanted) in &self.numbers {
            let found = read(connection, name)?;
            if wanted.to_string() != found {
                let hint = match *name {
                    PAGE_SIZE => format!("the file has pages of {found} bytes already"),
                    _ => format!("SQLite allows {found} here"),
                };
                return Err(bad_value(name, &wanted.to_string(), &hint));
            }
        }
        Ok(())
    }

    /// Sets what SQLite forgets with each connection, and nothing else, since connecting is itself measured.
    pub(super) fn apply(&self, connection: &Connection) -> Result<()> {
        connection.busy_timeout(self.busy_timeout).map_err(|e| explain(&e))?;
        // WAL is a property of the file; the other modes are forgotten.
        if self.journal_mode != "wal" {
            connection
                .pragma_update_and_check(None, "journal_mode", self.journal_mode, |_| Ok(()))
                .map_err(|e| explain(&e))?;
        }
        // SQLite as compiled in syncs fully unless told otherwise.
        if self.synchronous != 2 {
            set(connection, "synchronous", self.synchronous as i64)?;
        }
        for (name, wanted) in self.numbers.iter().filter(|(name, _)| *name != PAGE_SIZE) {
            set(connection, name, *wanted)?;
        }
        Ok(())
    }

    /// Chooses what the target leaves open so that commits have this durability class.
    pub(super) fn require(&mut self, class: DurabilityClass, in_memory: bool) -> Result<()> {
        let modes = if self.named[0] { vec![self.journal_mode] } else { vec!["wal", "memory"] };
        let levels = match (self.named[1], class) {
            (true, _) => vec![self.synchronous],
            // Syncing would only cost.
            (false, DurabilityClass::Memory) => vec![0],
            (false, _) => vec![2, 3, 1, 0],
        };
        let pairs = modes.iter().flat_map(|mode| levels.iter().map(move |level| (*mode, *level)));
        for (mode, level) in pairs {
            if self::class(mode, level as i64, in_memory).0 == class {
                (self.journal_mode, self.synchronous) = (mode, level);
                return Ok(());
            }
        }
        let (because, hint) = match class {
            DurabilityClass::PeriodicSync => {
                ("SQLite syncs at each commit or at checkpoints, and by no clock", "leave --durability out")
            }
            DurabilityClass::Replicated => ("SQLite has no replicas", "leave --durability out"),
            DurabilityClass::Synced if in_memory => {
                ("the file lies on a file system in memory", "name a file on a disk")
            }
            _ => (
                "the settings that stand in the target make another",
                "leave journal_mode and synchronous out of the target",
            ),
        };
        Err(Error::unsupported(format!("sqlite: cannot be of durability class '{class}': {because}"))
            .hint(hint))
    }

    /// What is in force on this connection, as SQLite says it.
    pub(super) fn read_back(connection: &Connection) -> Result<InForce> {
        let setting = |name: &str| Ok::<_, Error>(Setting::new(name, read(connection, name)?));
        let journal_mode = read(connection, "journal_mode")?;
        let synchronous = read(connection, "synchronous")?.parse().unwrap_or(-1);
        let word =
            usize::try_from(synchronous).ok().and_then(|n| SYNCHRONOUS.get(n)).copied().unwrap_or("unknown");
        let others = NUMBERS.iter().map(|(name, ..)| *name).chain(["busy_timeout", "locking_mode"]);
        Ok(InForce {
            durability: vec![
                Setting::new("journal_mode", journal_mode.clone()),
                Setting::new("synchronous", word),
            ],
            others: others.map(setting).collect::<Result<_>>()?,
            journal_mode,
            synchronous,
        })
    }
}

/// What an acknowledged write survives with the settings in force, and what else must be said about it; `in_memory` says
/// that the file system has no storage to sync to.
pub(super) fn durability(found: &InForce, in_memory: bool) -> (DurabilityClass, Vec<String>) {
    class(&found.journal_mode, found.synchronous, in_memory)
}

/// Sources: <https://sqlite.org/pragma.html>, `synchronous` and `journal_mode`; for what ends a transaction in each mode,
/// SQLite's own `pager_end_transaction`.
fn class(journal_mode: &str, synchronous: i64, in_memory: bool) -> (DurabilityClass, Vec<String>) {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(text);
    let class = match (journal_mode, synchronous) {
        ("memory" | "off", _) => {
            note(format!(
                "journal_mode={journal_mode}: a process that dies in the middle of a write leaves a damaged file"
            ));
            DurabilityClass::Memory
        }
        // The WAL is synced only when it is written back, which may be minutes later: no promise in seconds.
        ("wal", 1) => {
            note(
                "journal_mode=wal with synchronous=normal syncs at checkpoints only: power failure may take the \
                 commits since the last one, but does not damage the file"
                    .to_owned(),
            );
            DurabilityClass::OsCache
        }
        // `delete` ends a transaction by removing the journal, and `extra` alone syncs the folder; `truncate` syncs the
        // journal's new length from `full` on.
        ("delete", 1 | 2) | ("truncate", 1) => {
            note(format!(
                "journal_mode={journal_mode} with synchronous={}: power failure right after a commit may bring the \
                 journal back and with it undo that commit",
                SYNCHRONOUS[synchronous as usize]
            ));
            DurabilityClass::OsCache
        }
        // Each commit syncs the WAL, or the file and then the end of its journal, before it returns.
        (_, 1..=3) => DurabilityClass::Synced,
        _ => DurabilityClass::OsCache,
    };
    if in_memory {
        note("the file lies on a file system in memory: syncing it makes nothing safer".to_owned());
        return (class.min(DurabilityClass::OsCache), notes);
    }
    (class, notes)
}

fn cache_size(text: &str) -> Option<i64> {
    // A plain number is SQLite's own form; anything else is a size, which SQLite takes in KiB, negative.
    text.parse().ok().or_else(|| Some(-(i64::try_from(units::parse_size(text).ok()?.div_ceil(1024)).ok()?)))
}

fn size(text: &str) -> Option<i64> {
    i64::try_from(units::parse_size(text).ok()?).ok()
}

fn page_size(text: &str) -> Option<i64> {
    size(text).filter(|bytes| (512..=65_536).contains(bytes) && (*bytes as u64).is_power_of_two())
}

fn set(connection: &Connection, name: &str, value: i64) -> Result<()> {
    // Some of these answer with the new value, some with nothing.
    connection.pragma_update(None, name, value).map_err(|e| explain(&e))
}

fn read(connection: &Connection, name: &str) -> Result<String> {
    let value: Value =
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|e| explain(&e))?;
    Ok(match value {
        Value::Integer(n) => n.to_string(),
        Value::Text(text) => text,
        other => format!("{other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(journal_mode: &str, synchronous: i64) -> InForce {
        InForce { durability: vec![], others: vec![], journal_mode: journal_mode.into(), synchronous }
    }

    #[test]
    fn the_durability_class_follows_from_both_settings() {
        use DurabilityClass::{Memory, OsCache, Synced};
        for (mode, synchronous, expected, notes) in [
            ("wal", 2, Synced, 0),
            ("wal", 3, Synced, 0),
            ("wal", 1, OsCache, 1),
            ("wal", 0, OsCache, 0),
            ("delete", 1, OsCache, 1),
            ("delete", 2, OsCache, 1),
            ("delete", 3, Synced, 0),
            ("delete", 0, OsCache, 0),
            ("truncate", 1, OsCache, 1),
            ("truncate", 2, Synced, 0),
            ("persist", 1, Synced, 0),
            ("off", 2, Memory, 1),
            ("memory", 0, Memory, 1),
        ] {
            let (found_class, found_notes) = durability(&found(mode, synchronous), false);
            assert_eq!((found_class, found_notes.len()), (expected, notes), "{mode} {synchronous}");
        }
        assert_eq!(durability(&found("wal", 2), true).0, OsCache);
    }

    #[test]
    fn a_class_is_made_of_what_the_target_leaves_open() {
        use DurabilityClass::{Memory, OsCache, PeriodicSync, Replicated, Synced};
        let required = |url: &str, class, in_memory| {
            let mut settings = Settings::parse(&TargetUrl::parse(url).unwrap()).unwrap();
            settings
                .require(class, in_memory)
                .map(|()| (settings.journal_mode, SYNCHRONOUS[settings.synchronous]))
        };
        for (url, class, made) in [
            ("sqlite:", Synced, ("wal", "full")),
            ("sqlite:", OsCache, ("wal", "normal")),
            ("sqlite:", Memory, ("memory", "off")),
            ("sqlite:?journal_mode=delete", Synced, ("delete", "extra")),
            ("sqlite:?journal_mode=truncate", OsCache, ("truncate", "normal")),
            ("sqlite:?synchronous=off", OsCache, ("wal", "off")),
            ("sqlite:?synchronous=extra", Synced, ("wal", "extra")),
        ] {
            assert_eq!(required(url, class, false), Ok(made), "{url} {class}");
        }
        for (url, class, in_memory, part) in [
            ("sqlite:", PeriodicSync, false, "by no clock"),
            ("sqlite:", Replicated, false, "no replicas"),
            ("sqlite:", Synced, true, "in memory"),
            ("sqlite:?synchronous=off", Synced, false, "stand in the target"),
            ("sqlite:?journal_mode=off", OsCache, false, "stand in the target"),
        ] {
            let error = required(url, class, in_memory).unwrap_err().to_string();
            assert!(error.contains(part), "{url} {class}: {error}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_is_right() {
        for (url, part) in [
            ("sqlite:?journal_mode=wall", "one of: delete"),
            ("sqlite:?synchronous=2", "one of: off"),
            ("sqlite:?page_size=1000", "power of two"),
            ("sqlite:?mmap_size=much", "write a size"),
            ("sqlite:?busy_timeout=soon", "busy_timeout"),
        ] {
            let error = Settings::parse(&TargetUrl::parse(url).unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let ours =
            Settings::parse(&TargetUrl::parse("sqlite:?cache_size=1m&synchronous=OFF").unwrap()).unwrap();
        assert_eq!((ours.numbers, ours.synchronous), (vec![("cache_size", -977)], 0));
    }
}
