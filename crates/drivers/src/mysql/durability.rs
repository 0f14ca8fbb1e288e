//! What an acknowledged write survives on MySQL and MariaDB: the storage engine decides, then its settings.

use super::config::Config;
use super::engine::{self, StorageEngine};
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows};
use kurabe_core::durability::ABOUT_A_SECOND;
use std::time::Duration;

/// What makes InnoDB's class. Of these lists, products and versions have some each.
const INNODB: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "log_bin",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_redo_log_enabled",
];

/// What makes MyISAM's.
const MYISAM: &[&str] = &["flush", "delay_key_write", "myisam_recover_options"];

/// What makes Aria's.
const ARIA: &[&str] = &["aria_group_commit", "aria_group_commit_interval", "aria_sync_log_dir"];

/// What makes any engine's writes replicated, by MySQL's names of today and by MariaDB's and older MySQL's.
const SEMI_SYNC: [[&str; 5]; 2] = [
    [
        "rpl_semi_sync_source_enabled",
        "rpl_semi_sync_source_status",
        "rpl_semi_sync_source_clients",
        "rpl_semi_sync_source_wait_for_replica_count",
        "rpl_semi_sync_source_timeout",
    ],
    [
        "rpl_semi_sync_master_enabled",
        "rpl_semi_sync_master_status",
        "rpl_semi_sync_master_clients",
        "rpl_semi_sync_master_wait_for_slave_count",
        "rpl_semi_sync_master_timeout",
    ],
];

/// What a server said that decides the class of each of its engines.
pub(crate) struct Durability {
    pub(crate) engine: StorageEngine,
    engines: Vec<StorageEngine>,
    found: Reported,
}

/// Asks the server: the session's settings, which are the server's where a session has none of its own.
pub(crate) fn read(link: &mut dyn Query, config: &Config) -> Result<Durability> {
    let chosen = ["default_storage_engine", "enforce_storage_engine", "sql_log_bin"];
    let names = [INNODB, MYISAM, ARIA, &chosen, &SEMI_SYNC[0], &SEMI_SYNC[1]].concat();
    let list = listed(&names);
    let mut found = Vec::new();
    for kind in ["SESSION VARIABLES", "GLOBAL STATUS"] {
        found.extend(rows(link, &format!("SHOW {kind} WHERE Variable_name IN ({list})"))?);
    }
    let found = Reported::of(found);
    let engines = engine::all(link)?;
    let told = |name: &str| found.get(name).filter(|value| !value.is_empty());
    let name = config
        .engine
        .as_deref()
        .or_else(|| told("enforce_storage_engine"))
        .or_else(|| told("default_storage_engine"))
        .ok_or_else(|| {
            Error::unsupported("the server names no default_storage_engine").hint("add engine=")
        })?;
    let engine = engine::find(&engines, name)?;
    Ok(Durability { engine, engines, found })
}

impl Durability {
    /// The class of our tables, and what else must be said about it.
    pub(crate) fn class(&self) -> (DurabilityClass, Vec<String>) {
        let mut notes = Vec::new();
        (self.of(&self.engine.name, &mut notes), notes)
    }

    /// The settings that make it so.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let names = match self.engine.name.to_ascii_lowercase().as_str() {
            "innodb" => INNODB,
            "myisam" => MYISAM,
            "aria" => ARIA,
            _ => &[],
        };
        let mut settings = vec![Setting::new("storage engine", &self.engine.name)];
        settings.extend(self.found.pick(names));
        for names in SEMI_SYNC.iter().filter(|names| self.on(names[0])) {
            settings.extend(self.found.pick(names));
        }
        settings
    }

    /// Why the class cannot be had: its settings are global, and so the server's owner's.
    pub(crate) fn refusal(&self, class: DurabilityClass) -> Error {
        let (found, _) = self.class();
        let others: Vec<&str> = self
            .engines
            .iter()
            .map(|engine| engine.name.as_str())
            .filter(|name| ["InnoDB", "Aria", "MyISAM", "MEMORY"].contains(name))
            .filter(|name| self.of(name, &mut Vec::new()) == class)
            .collect();
        let hint = match others.first() {
            Some(other) => {
                format!("tables of {other} would be '{class}' here: add engine={other} to the target")
            }
            None => "ask the server's owner, or leave --durability out".to_owned(),
        };
        Error::unsupported(format!(
            "the durability class of {} tables is '{found}' here ({}) and not '{class}', and no session can change \
             that",
            self.engine.name,
            Setting::list(&self.settings())
        ))
        .hint(hint)
    }

    fn get(&self, name: &str) -> &str {
        self.found.text(name)
    }

    fn on(&self, name: &str) -> bool {
        matches!(self.get(name).to_ascii_uppercase().as_str(), "ON" | "1" | "YES")
    }

    fn of(&self, engine: &str, notes: &mut Vec<String>) -> DurabilityClass {
        if self.is_replicated(notes) {
            return DurabilityClass::Replicated;
        }
        match engine.to_ascii_lowercase().as_str() {
            "innodb" => self.innodb(notes),
            "myisam" => self.myisam(notes),
            "aria" => self.aria(notes),
            "memory" | "blackhole" => DurabilityClass::Memory,
            _ => {
                notes
                    .push(format!("What tables of {engine} keep is not known here, and nothing is assumed."));
                DurabilityClass::Memory
            }
        }
    }

    /// Whether a replica has the write before it is acknowledged (MySQL manual, "Semisynchronous Replication"; MariaDB
    /// Knowledge Base, same title).
    fn is_replicated(&self, notes: &mut Vec<String>) -> bool {
        for [enabled, status, clients, wait_for, timeout] in SEMI_SYNC {
            let number = |name: &str| self.get(name).parse::<u64>().ok();
            let enough = number(clients).unwrap_or(0) >= number(wait_for).unwrap_or(1).max(1);
            let logged = self.on("log_bin") && !self.get("sql_log_bin").eq_ignore_ascii_case("OFF");
            if self.on(enabled) && self.on(status) && enough && logged {
                let patience = number(timeout).unwrap_or(10_000);
                notes.push(format!(
                    "A commit waits {patience} ms for a replica ({timeout}); after that the server goes on without one."
                ));
                return true;
            }
        }
        false
    }

    /// MySQL manual, "InnoDB Startup Options and System Variables" and "Binary Logging Options and Variables".
    fn innodb(&self, notes: &mut Vec<String>) -> DurabilityClass {
        if self.get("innodb_redo_log_enabled").eq_ignore_ascii_case("OFF") {
            notes.push(
                "Redo logging is disabled: a crash of the server may cost the whole instance.".to_owned(),
            );
            return DurabilityClass::Memory;
        }
        let seconds = self.get("innodb_flush_log_at_timeout").parse().unwrap_or(1);
        let periodic = if Duration::from_secs(seconds) <= ABOUT_A_SECOND {
            DurabilityClass::PeriodicSync
        } else {
            notes.push(format!("The redo log is synced every {seconds} s only."));
            DurabilityClass::OsCache
        };
        let at_commit = self.get("innodb_flush_log_at_trx_commit");
        // MariaDB's 3 syncs even more often.
        let mut class = if matches!(at_commit, "1" | "3") { DurabilityClass::Synced } else { periodic };
        // A commit's own record is synced with the next one or by the timer; until then the binary log decides.
        if self.on("log_bin") && self.get("sync_binlog") != "1" && class == DurabilityClass::Synced {
            class = periodic;
            notes.push(
                "The binary log decides whether recovery keeps the last commits, and it is not synced at each.".into(),
            );
        }
        let doublewrite = self.get("innodb_doublewrite").to_ascii_uppercase();
        let method = self.get("innodb_flush_method").to_ascii_lowercase();
        let unsafe_pages = if matches!(doublewrite.as_str(), "OFF" | "0" | "DETECT_ONLY") {
            Some("Without the doublewrite buffer a page torn by a power failure is lost.".to_owned())
        } else if matches!(method.as_str(), "nosync" | "littlesync") {
            Some(format!("innodb_flush_method={method} leaves syncing to the operating system."))
        } else {
            None
        };
        if let Some(why) = unsafe_pages {
            class = class.min(DurabilityClass::OsCache);
            notes.push(why);
        }
        if !matches!(at_commit, "1" | "2" | "3") {
            notes.push(format!(
                "The redo log is written every {seconds} s: a crash of the server alone takes as much."
            ));
            if class != DurabilityClass::PeriodicSync {
                // Neither does it survive the server's crash, nor is what a power failure takes bounded.
                return DurabilityClass::Memory;
            }
        }
        class
    }

    /// A row is in the table's data file when its statement ends. The index and the number of rows are written only once
    /// no other statement writes to the table, nor waits to (`mi_lock_database` in `storage/myisam`, where `flush` syncs
    /// the files too): after a crash the rows are there for those who have the table repaired, and for nobody else.
    /// MySQL manual, "MyISAM Startup Options".
    fn myisam(&self, notes: &mut Vec<String>) -> DurabilityClass {
        if matches!(self.get("myisam_recover_options").to_ascii_uppercase().as_str(), "" | "OFF") {
            notes.push(
                "A crash of the server leaves a MyISAM table whose acknowledged rows are not all found until REPAIR TABLE; \
                 the server repairs it by itself with myisam_recover_options = BACKUP,FORCE."
                    .into(),
            );
            return DurabilityClass::Memory;
        }
        notes.push(
            "A crash in the middle of a write leaves a MyISAM table that the server repairs when it opens it.".into(),
        );
        if self.on("flush") {
            notes.push(
                "flush = ON syncs a table's files when no other statement waits to write to it.".into(),
            );
        }
        DurabilityClass::OsCache
    }

    /// MariaDB Knowledge Base, "Aria System Variables" and "Aria Group Commit": each statement ends with a commit in
    /// Aria's log.
    fn aria(&self, notes: &mut Vec<String>) -> DurabilityClass {
        let class = if self.get("aria_group_commit").eq_ignore_ascii_case("soft") {
            // In microseconds; 0 is never.
            let interval = Duration::from_micros(self.get("aria_group_commit_interval").parse().unwrap_or(0));
            if interval.is_zero() || interval > ABOUT_A_SECOND {
                notes.push("Aria's log is written at each statement and hardly ever synced.".to_owned());
                DurabilityClass::OsCache
            } else {
                DurabilityClass::PeriodicSync
            }
        } else {
            DurabilityClass::Synced
        };
        if self.get("aria_sync_log_dir").eq_ignore_ascii_case("NEVER") {
            notes.push(
                "A new file of Aria's log may be gone after a power failure (aria_sync_log_dir).".to_owned(),
            );
            return class.min(DurabilityClass::OsCache);
        }
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DurabilityClass::{Memory, OsCache, PeriodicSync, Replicated, Synced};

    fn server(settings: &[(&str, &str)]) -> Durability {
        let engines: Vec<_> = ["InnoDB", "MyISAM", "MEMORY"].map(StorageEngine::named).into();
        Durability { engine: engines[0].clone(), engines, found: settings.into() }
    }

    fn class(engine: &str, settings: &[(&str, &str)]) -> DurabilityClass {
        server(settings).of(engine, &mut Vec::new())
    }

    #[test]
    fn innodb_follows_its_redo_log_the_binary_log_and_the_doublewrite_buffer() {
        let at_commit = |value| ("innodb_flush_log_at_trx_commit", value);
        let off = ("innodb_doublewrite", "OFF");
        for (settings, expected) in [
            (vec![at_commit("1")], Synced),
            (vec![at_commit("3")], Synced),
            (vec![at_commit("2")], PeriodicSync),
            (vec![at_commit("0")], PeriodicSync),
            (vec![at_commit("2"), ("innodb_flush_log_at_timeout", "60")], OsCache),
            (vec![at_commit("0"), ("innodb_flush_log_at_timeout", "60")], Memory),
            (vec![at_commit("1"), ("log_bin", "ON"), ("sync_binlog", "1")], Synced),
            (vec![at_commit("1"), ("log_bin", "ON"), ("sync_binlog", "0")], PeriodicSync),
            (vec![at_commit("1"), ("log_bin", "OFF"), ("sync_binlog", "0")], Synced),
            (vec![at_commit("1"), off], OsCache),
            (vec![at_commit("1"), ("innodb_doublewrite", "DETECT_ONLY")], OsCache),
            (vec![at_commit("0"), off], Memory),
            (vec![at_commit("1"), ("innodb_flush_method", "nosync")], OsCache),
            (vec![at_commit("1"), ("innodb_redo_log_enabled", "OFF")], Memory),
        ] {
            assert_eq!(class("InnoDB", &settings), expected, "{settings:?}");
        }
    }

    #[test]
    fn the_other_engines_have_settings_of_their_own() {
        let late = ("delay_key_write", "ALL");
        let soft = ("aria_group_commit", "soft");
        for (engine, settings, expected) in [
            ("MyISAM", vec![("flush", "ON")], Memory),
            ("MyISAM", vec![("myisam_recover_options", "OFF")], Memory),
            ("MyISAM", vec![("myisam_recover_options", "BACKUP,QUICK")], OsCache),
            ("MyISAM", vec![("flush", "ON"), ("myisam_recover_options", "BACKUP,FORCE")], OsCache),
            ("MyISAM", vec![late, ("myisam_recover_options", "BACKUP,QUICK")], OsCache),
            ("Aria", vec![("aria_group_commit", "none")], Synced),
            ("Aria", vec![("aria_group_commit", "hard")], Synced),
            ("Aria", vec![soft, ("aria_group_commit_interval", "1000000")], PeriodicSync),
            ("Aria", vec![soft, ("aria_group_commit_interval", "0")], OsCache),
            ("Aria", vec![("aria_sync_log_dir", "NEVER")], OsCache),
            ("MEMORY", vec![("innodb_flush_log_at_trx_commit", "1")], Memory),
            ("ROCKSDB", vec![], Memory),
        ] {
            assert_eq!(class(engine, &settings), expected, "{engine} {settings:?}");
        }
    }

    #[test]
    fn only_a_replica_that_is_there_makes_a_write_replicated() {
        let with = |status, clients| {
            let settings = [
                ("innodb_flush_log_at_trx_commit", "1"),
                ("log_bin", "ON"),
                ("sync_binlog", "1"),
                ("rpl_semi_sync_source_enabled", "ON"),
                ("rpl_semi_sync_source_status", status),
                ("rpl_semi_sync_source_clients", clients),
            ];
            class("InnoDB", &settings)
        };
        assert_eq!([with("ON", "1"), with("ON", "0"), with("OFF", "1")], [Replicated, Synced, Synced]);
    }

    #[test]
    fn a_refusal_names_the_settings_and_the_engine_that_would_do() {
        let server = server(&[("innodb_flush_log_at_trx_commit", "1"), ("myisam_recover_options", "FORCE")]);
        let error = server.refusal(OsCache).to_string();
        assert!(error.contains("innodb_flush_log_at_trx_commit = 1"), "{error}");
        assert!(error.contains("add engine=MyISAM"), "{error}");
        assert!(server.refusal(Replicated).to_string().contains("ask the server's owner"));
    }
}
