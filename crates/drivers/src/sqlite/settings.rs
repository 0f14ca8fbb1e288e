//! PRAGMAs that affect results: read from the URL, set, and read back from SQLite.

use super::error::explain;
use crate::prelude::*;
use kurabe_core::units;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use std::time::Duration;

const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];

/// Takes effect only before the first page is written.
const PAGE_SIZE: &str = "page_size";

type Parse = fn(&str) -> Option<i64>;

/// Numeric PRAGMAs in the order in which they are set: name, parser of the option, and hint.
const NUMBERS: [(&str, Parse, &str); 4] = [
    (PAGE_SIZE, page_size, "a power of two from 512 to 65536"),
    ("cache_size", cache_size, "use a size such as 64m, or pages such as 2000"),
    ("mmap_size", size, "use a size such as 1g"),
    ("wal_autocheckpoint", |text| text.parse().ok(), "use a number of pages"),
];

/// The requested settings, with Kurabe's defaults, which differ from SQLite's where those would not suit a comparison.
#[derive(Debug)]
pub(super) struct Settings {
    journal_mode: &'static str,
    /// SQLite's number, an index into [`SYNCHRONOUS`].
    synchronous: usize,
    /// Whether the target sets `journal_mode` and `synchronous`.
    named: [bool; 2],
    busy_timeout: Duration,
    /// Whether the file is opened for reading only, as it is.
    pub(super) read_only: bool,
    /// Those of [`NUMBERS`] that the target sets, in SQLite's own form.
    numbers: Vec<(&'static str, i64)>,
}

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
            read_only: url.choice("access", &[("write", false), ("read", true)])?,
            numbers: numbers.collect::<Result<_>>()?,
        })
    }

    /// Whether no setting is asked for that SQLite refuses to connections that defend the file.
    pub(super) fn allows_defence(&self) -> bool {
        self.journal_mode != "off"
    }

    /// Applies the settings of a connection that only reads: none that the file keeps.
    pub(super) fn apply_to_reader(&self, connection: &Connection) -> Result<()> {
        connection.busy_timeout(self.busy_timeout).map_err(|e| explain(&e))?;
        let of_reader = self.numbers.iter().filter(|(name, _)| matches!(*name, "cache_size" | "mmap_size"));
        of_reader.into_iter().try_for_each(|(name, wanted)| set(connection, name, *wanted))
    }

    /// Applies the settings to the file, once, and checks them.
    pub(super) fn set_up(&self, connection: &Connection) -> Result<()> {
        connection.busy_timeout(self.busy_timeout).map_err(|e| explain(&e))?;
        // Before the first page is written; the check below detects that it had no effect.
        for (name, bytes) in self.numbers.iter().filter(|(name, _)| *name == PAGE_SIZE) {
            set(connection, name, *bytes)?;
        }
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", self.journal_mode, |row| row.get(0))
            .map_err(|e| explain(&e))?;
        if mode != self.journal_mode {
            let hint = format!("SQLite keeps journal_mode={mode} here");
            return Err(bad_value("journal_mode", self.journal_mode, &hint));
        }
        self.apply(connection)?;
        for (name, wanted) in &self.numbers {
            let found = read(connection, name)?;
            if wanted.to_string() != found {
                return Err(match *name {
                    PAGE_SIZE => other_pages(&wanted.to_string(), &found),
                    _ => bad_value(name, &wanted.to_string(), &format!("SQLite allows {found} here")),
                });
            }
        }
        Ok(())
    }

    /// Applies the settings that are per connection, and no others, because connecting is measured.
    pub(super) fn apply(&self, connection: &Connection) -> Result<()> {
        connection.busy_timeout(self.busy_timeout).map_err(|e| explain(&e))?;
        // WAL is a property of the file; the other modes are per connection.
        if self.journal_mode != "wal" {
            connection
                .pragma_update_and_check(None, "journal_mode", self.journal_mode, |_| Ok(()))
                .map_err(|e| explain(&e))?;
        }
        // Full is the default of the SQLite library compiled in.
        if self.synchronous != 2 {
            set(connection, "synchronous", self.synchronous as i64)?;
        }
        for (name, wanted) in self.numbers.iter().filter(|(name, _)| *name != PAGE_SIZE) {
            set(connection, name, *wanted)?;
        }
        Ok(())
    }

    /// Chooses the settings that the target does not set, so that commits have this durability class.
    pub(super) fn require(&mut self, class: DurabilityClass, in_memory: bool) -> Result<()> {
        let modes = if self.named[0] { vec![self.journal_mode] } else { vec!["wal", "memory"] };
        let levels = match (self.named[1], class) {
            (true, _) => vec![self.synchronous],
            // Syncing would only cost time.
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
                ("SQLite syncs at each commit or at checkpoints, not periodically", "omit --durability")
            }
            DurabilityClass::Replicated => ("SQLite has no replicas", "omit --durability"),
            DurabilityClass::Synced if in_memory => {
                ("the file is on an in-memory file system", "use a file on a disk")
            }
            _ => (
                "the target's settings give another class",
                "remove journal_mode and synchronous from the target",
            ),
        };
        Err(Error::unsupported(format!("sqlite: durability class '{class}' is not available: {because}"))
            .hint(hint))
    }

    /// The settings with which a run writes, where these were found; and what a reader should know, if the run changes the
    /// file's journal mode.
    pub(super) fn when_written(
        &self,
        mut found: InForce,
        is_empty: bool,
    ) -> Result<(InForce, Option<String>)> {
        let page_size =
            |found: &InForce| found.others.iter().find(|setting| setting.name == PAGE_SIZE).cloned();
        for (name, wanted) in &self.numbers {
            let wanted = wanted.to_string();
            if let Some(Setting { value, .. }) = page_size(&found).filter(|_| *name == PAGE_SIZE && !is_empty)
                && value != wanted
            {
                return Err(other_pages(&wanted, &value));
            }
            found.others.iter_mut().filter(|of| of.name == *name).for_each(|of| of.value.clone_from(&wanted));
        }
        let change = (found.journal_mode != self.journal_mode && !is_empty && self.journal_mode == "wal").then(|| {
            let now = &found.journal_mode;
            format!(
                "the file's journal_mode is {now}: a run that writes changes it to wal, for good; ?journal_mode={now} keeps it"
            )
        });
        self.journal_mode.clone_into(&mut found.journal_mode);
        found.synchronous = self.synchronous as i64;
        found.durability = vec![
            Setting::new("journal_mode", self.journal_mode),
            Setting::new("synchronous", SYNCHRONOUS.get(self.synchronous).copied().unwrap_or("unknown")),
        ];
        Ok((found, change))
    }

    /// Reads the settings in force on this connection.
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

/// Has SQLite treat what a file defines as somebody else's text: its views, triggers, checks, defaults and generated columns
/// use no function with side effects and no virtual table that could be misused, and with `defends` no statement changes the file
/// other than by its tables. Sources: <https://sqlite.org/security.html>, `sqlite3_db_config`.
pub(super) fn distrust(connection: &Connection, defends: bool) -> Result<()> {
    let set = |config, on| connection.set_db_config(config, on).map(drop).map_err(|e| explain(&e));
    set(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    set(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, defends)
}

/// The error of a file with pages of another size.
fn other_pages(wanted: &str, found: &str) -> Error {
    bad_value(PAGE_SIZE, wanted, &format!("the file already has pages of {found} bytes"))
}

/// The error for an invalid value of an option.
fn bad_value(option: &str, value: &str, hint: &str) -> Error {
    Error::usage(format!("sqlite: {option}={value} is not valid")).hint(hint)
}

/// The durability class of the settings in force, and notes about it. `in_memory`: whether the file system has no
/// storage to sync to.
pub(super) fn durability(found: &InForce, in_memory: bool) -> (DurabilityClass, Vec<String>) {
    class(&found.journal_mode, found.synchronous, in_memory)
}

/// Sources: <https://sqlite.org/pragma.html>, `synchronous` and `journal_mode`; for the end of a transaction in each
/// mode, `pager_end_transaction` in SQLite's source.
fn class(journal_mode: &str, synchronous: i64, in_memory: bool) -> (DurabilityClass, Vec<String>) {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(text);
    let class = match (journal_mode, synchronous) {
        ("memory" | "off", _) => {
            note(format!(
                "journal_mode={journal_mode}: a process that crashes during a write leaves a damaged file"
            ));
            DurabilityClass::Memory
        }
        // The WAL is synced only at checkpoints, which may be minutes apart.
        ("wal", 1) => {
            note(
                "journal_mode=wal with synchronous=normal syncs only at checkpoints: a power failure may lose the \
                 commits since the last one, but does not damage the file"
                    .to_owned(),
            );
            DurabilityClass::OsCache
        }
        // `delete` ends a transaction by removing the journal, and only `extra` syncs the folder. `truncate` syncs the
        // journal's new length with `full` and `extra`.
        ("delete", 1 | 2) | ("truncate", 1) => {
            note(format!(
                "journal_mode={journal_mode} with synchronous={}: a power failure right after a commit may restore the \
                 journal, which then rolls that commit back",
                SYNCHRONOUS[synchronous as usize]
            ));
            DurabilityClass::OsCache
        }
        // Before it returns, each commit syncs the WAL, or the file and then the end of its journal.
        (_, 1..=3) => DurabilityClass::Synced,
        _ => DurabilityClass::OsCache,
    };
    if in_memory {
        note("the file is on an in-memory file system: syncing it adds no safety".to_owned());
        return (class.min(DurabilityClass::OsCache), notes);
    }
    (class, notes)
}

fn cache_size(text: &str) -> Option<i64> {
    // A plain number is SQLite's own form; anything else is a size, which SQLite expects as a negative number of KiB.
    text.parse().ok().or_else(|| Some(-(i64::try_from(units::parse_size(text).ok()?.div_ceil(1024)).ok()?)))
}

fn size(text: &str) -> Option<i64> {
    i64::try_from(units::parse_size(text).ok()?).ok()
}

fn page_size(text: &str) -> Option<i64> {
    size(text).filter(|bytes| (512..=65_536).contains(bytes) && (*bytes as u64).is_power_of_two())
}

fn set(connection: &Connection, name: &str, value: i64) -> Result<()> {
    // Some of these PRAGMAs return the new value, some nothing.
    connection.pragma_update(None, name, value).map_err(|e| explain(&e))
}

fn read(connection: &Connection, name: &str) -> Result<String> {
    let value = connection.pragma_query_value(None, name, |row| row.get(0)).optional();
    // A database without a file has no `mmap_size`.
    Ok(match value.map_err(|e| explain(&e))?.unwrap_or(Value::Integer(0)) {
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
    fn durability_class_depends_on_both_settings() {
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
    fn required_class_sets_only_what_target_does_not() {
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
            ("sqlite:", PeriodicSync, false, "not periodically"),
            ("sqlite:", Replicated, false, "no replicas"),
            ("sqlite:", Synced, true, "in-memory"),
            ("sqlite:?synchronous=off", Synced, false, "target's settings"),
            ("sqlite:?journal_mode=off", OsCache, false, "target's settings"),
        ] {
            let error = required(url, class, in_memory).unwrap_err().to_string();
            assert!(error.contains(part), "{url} {class}: {error}");
        }
    }

    #[test]
    fn invalid_value_is_rejected_with_hint() {
        for (url, part) in [
            ("sqlite:?journal_mode=wall", "one of: delete"),
            ("sqlite:?synchronous=2", "one of: off"),
            ("sqlite:?page_size=1000", "power of two"),
            ("sqlite:?mmap_size=much", "use a size"),
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
