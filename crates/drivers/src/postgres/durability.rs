//! Durability class of PostgreSQL, and the part that a session may choose (manual, "Write Ahead Log", "Asynchronous
//! Commit", "Synchronous Replication"). Kurabe's tables are never unlogged.

use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows};
use kurabe_core::durability::{ABOUT_A_SECOND, DurabilityClass};
use kurabe_core::facts::Setting;
use kurabe_core::{Error, Result, units};

const SETTINGS: &[&str] = &[
    "fsync", "synchronous_commit", "synchronous_standby_names", "full_page_writes", "wal_sync_method",
    "wal_writer_delay",
];

/// Settings without which the class is unknown.
const DECISIVE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// Values of `synchronous_commit` that a session may choose, the strongest first.
const CHOICES: [&str; 3] = ["on", "local", "off"];

/// Reads settings as the session has them.
pub(super) fn settings(link: &mut dyn Query, names: &[&str]) -> Result<Reported> {
    let sql = format!(
        "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings WHERE name IN ({})",
        listed(names)
    );
    rows(link, &sql).map(Reported::of)
}

pub(super) struct Durability {
    found: Reported,
}

impl Durability {
    /// Reads the settings in a session like the measured ones.
    pub(super) fn read(link: &mut dyn Query) -> Result<Self> {
        Ok(Self { found: settings(link, SETTINGS)? })
    }

    pub(super) fn settings(&self) -> Vec<Setting> {
        self.found.pick(SETTINGS)
    }

    /// The class of the session; `None`, with a note, if the server does not report what decides it.
    pub(super) fn class(&self) -> (Option<DurabilityClass>, Vec<String>) {
        let missing: Vec<&str> = DECISIVE.into_iter().filter(|name| self.get(name).is_empty()).collect();
        if !missing.is_empty() {
            let note = format!(
                "the server does not report {}: the durability of an acknowledged write is unknown",
                missing.join(" and ")
            );
            return (None, vec![note]);
        }
        let (class, notes) = self.with(self.get("synchronous_commit"));
        (Some(class), notes)
    }

    /// The `synchronous_commit` that gives a session the class; `None` if the session already has the class.
    pub(super) fn require(&self, class: DurabilityClass) -> Result<Option<&'static str>> {
        let (found, _) = self.class();
        let Some(found) = found else {
            let what = format!("the server does not report whether its durability class is '{class}'");
            return Err(Error::unsupported(what).hint("omit --durability"));
        };
        if found == class {
            return Ok(None);
        }
        if let Some(choice) = CHOICES.into_iter().find(|choice| self.with(choice).0 == class) {
            return Ok(Some(choice));
        }
        let required = match class {
            DurabilityClass::Memory => "unlogged tables, which Kurabe does not use",
            DurabilityClass::OsCache => "fsync = off, a server setting",
            DurabilityClass::PeriodicSync => {
                "fsync and full_page_writes = on and a short wal_writer_delay, which are server settings"
            }
            DurabilityClass::Synced => "fsync and full_page_writes = on, which are server settings",
            DurabilityClass::Replicated => "synchronous_standby_names, a server setting, and a standby",
        };
        Err(Error::unsupported(format!(
            "the durability class of PostgreSQL is '{found}' here ({}), and a session cannot change it to '{class}': that \
             requires {required}",
            Setting::list(&self.settings())
        ))
        .hint("ask the server's administrator, or omit --durability"))
    }

    fn get(&self, name: &str) -> &str {
        self.found.text(name)
    }

    fn with(&self, synchronous_commit: &str) -> (DurabilityClass, Vec<String>) {
        let mut notes = Vec::new();
        let at_once = synchronous_commit != "off";
        let replicated = !self.get("synchronous_standby_names").is_empty() && synchronous_commit != "local";
        let mut class = match (at_once, replicated) {
            (true, true) => DurabilityClass::Replicated,
            (true, false) => DurabilityClass::Synced,
            (false, _) => {
                // The maximum delay until a commit is written and synced.
                let most = units::parse_duration(self.get("wal_writer_delay")).map(|delay| delay * 3);
                let shown = most.as_ref().map_or_else(|_| "some time".to_owned(), |most| units::time(*most));
                notes.push(format!(
                    "Commits are acknowledged up to {shown} before they are written: a crash of the server alone \
                     loses as much."
                ));
                let soon = most.is_ok_and(|most| most <= ABOUT_A_SECOND);
                if soon { DurabilityClass::PeriodicSync } else { DurabilityClass::Memory }
            }
        };
        let mut unsafe_pages = |why: &str| {
            // With asynchronous commit too, an acknowledged write may not even be in the system's cache.
            let most = if at_once { DurabilityClass::OsCache } else { DurabilityClass::Memory };
            class = class.min(most);
            notes.push(why.to_owned());
        };
        if self.get("fsync") == "off" {
            unsafe_pages("fsync is off: a power failure may damage the whole database.");
        }
        if self.get("full_page_writes") == "off" {
            unsafe_pages("Without full_page_writes, a power failure may tear a page, which is then lost.");
        }
        (class, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DurabilityClass::{Memory, OsCache, PeriodicSync, Replicated, Synced};

    fn server(settings: &[(&str, &str)]) -> Durability {
        let usual = [
            ("synchronous_commit", "on"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("wal_writer_delay", "200ms"),
        ];
        let all = usual.iter().chain(settings);
        Durability { found: all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect() }
    }

    #[test]
    fn class_depends_on_settings() {
        let (off, standby) = (("synchronous_commit", "off"), ("synchronous_standby_names", "a"));
        for (settings, expected) in [
            (vec![], Synced),
            (vec![off], PeriodicSync),
            (vec![off, ("wal_writer_delay", "10s")], Memory),
            (vec![("fsync", "off")], OsCache),
            (vec![off, ("fsync", "off")], Memory),
            (vec![standby], Replicated),
            (vec![standby, ("synchronous_commit", "local")], Synced),
            (vec![standby, off], PeriodicSync),
            (vec![("full_page_writes", "off")], OsCache),
        ] {
            assert_eq!(server(&settings).class().0, Some(expected), "{settings:?}");
        }
    }

    #[test]
    fn class_is_unknown_if_a_decisive_setting_is_not_reported() {
        for name in DECISIVE {
            let (class, notes) = server(&[(name, "")]).class();
            assert!(class.is_none() && notes[0].contains(name), "{notes:?}");
            assert!(server(&[(name, "")]).require(Synced).is_err(), "{name}");
        }
    }

    #[test]
    fn session_chooses_its_commit_and_refusal_names_server_settings() {
        let standby = ("synchronous_standby_names", "a");
        for (settings, class, choice) in [
            (vec![], Synced, None),
            (vec![], PeriodicSync, Some("off")),
            (vec![("synchronous_commit", "off")], Synced, Some("on")),
            (vec![standby], Synced, Some("local")),
            (vec![standby, ("synchronous_commit", "off")], Replicated, Some("on")),
            (vec![("fsync", "off"), ("synchronous_commit", "off")], OsCache, Some("on")),
        ] {
            assert_eq!(server(&settings).require(class), Ok(choice), "{settings:?} {class}");
        }
        for (settings, class, part) in [
            (vec![], OsCache, "requires fsync = off"),
            (vec![("fsync", "off")], Synced, "requires fsync and full_page_writes"),
            (vec![], Replicated, "requires synchronous_standby_names"),
            (vec![], Memory, "unlogged"),
        ] {
            let error = server(&settings).require(class).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("synchronous_commit = "), "{error}");
        }
    }
}
