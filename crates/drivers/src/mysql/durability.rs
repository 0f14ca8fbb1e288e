//! Durability class of MySQL and MariaDB. It depends on the storage engine and its settings.

use super::config::Config;
use super::engine::{self, StorageEngine};
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{Query, rows};
use kurabe_core::durability::ABOUT_A_SECOND;
use std::time::Duration;

/// Settings that decide the class of InnoDB, MyISAM and Aria. No product or version has all of them.
const INNODB: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "log_bin",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_redo_log_enabled",
];
const MYISAM: &[&str] = &["flush", "delay_key_write", "myisam_recover_options"];
const ARIA: &[&str] = &["aria_group_commit", "aria_group_commit_interval", "aria_sync_log_dir"];

/// Semisynchronous replication, for all engines: current MySQL's names, then those of MariaDB and older MySQL.
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

pub(crate) struct Durability {
    pub(crate) engine: StorageEngine,
    engines: Vec<StorageEngine>,
    found: Reported,
}

/// Reads the session's settings, which include global ones without a session value.
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
    let reported = |name: &str| found.get(name).filter(|value| !value.is_empty());
    let name = config
        .engine
        .as_deref()
        .or_else(|| reported("enforce_storage_engine"))
        .or_else(|| reported("default_storage_engine"))
        .ok_or_else(|| {
            Error::unsupported("the server does not report default_storage_engine").hint("add engine=")
        })?;
    let engine = engine::find(&engines, name)?;
    Ok(Durability { engine, engines, found })
}

impl Durability {
    /// The class of the tables' storage engine; `None`, with a note, if it is unknown.
    pub(crate) fn class(&self) -> (Option<DurabilityClass>, Vec<String>) {
        let mut notes = Vec::new();
        (self.of(&self.engine.name, &mut notes), notes)
    }

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

    /// The error if another class is required: its settings are global, so only an administrator can change them.
    pub(crate) fn refusal(&self, class: DurabilityClass) -> Error {
        let found = self.class().0.map_or_else(|| "unknown".to_owned(), |found| format!("'{found}'"));
        let has_class = |name: &&str| {
            let known = ["InnoDB", "Aria", "MyISAM", "MEMORY"].contains(name);
            known && self.of(name, &mut Vec::new()) == Some(class)
        };
        let hint = match self.engines.iter().map(|engine| engine.name.as_str()).find(has_class) {
            Some(other) => {
                format!("{other} tables have class '{class}' here: add engine={other} to the target")
            }
            None => "ask the server's administrator, or omit --durability".to_owned(),
        };
        Error::unsupported(format!(
            "the durability class of {} tables is {found} here ({}), not '{class}', and a session cannot change it",
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

    fn of(&self, engine: &str, notes: &mut Vec<String>) -> Option<DurabilityClass> {
        let engine = engine.to_ascii_lowercase();
        let decisive = match engine.as_str() {
            "innodb" => "innodb_flush_log_at_trx_commit",
            "myisam" => "myisam_recover_options",
            "aria" => "aria_group_commit",
            // ARCHIVE compresses rows in a buffer of the process (MySQL manual, "The ARCHIVE Storage Engine").
            "memory" | "blackhole" | "archive" => return Some(DurabilityClass::Memory),
            _ => {
                notes.push(format!("The durability of {engine} tables is unknown."));
                return None;
            }
        };
        if self.found.get(decisive).is_none() {
            notes.push(format!(
                "The server does not report {decisive}: the durability of an acknowledged write is unknown."
            ));
            return None;
        }
        let class = match engine.as_str() {
            "innodb" => self.innodb(notes),
            "myisam" => self.myisam(notes),
            _ => self.aria(notes),
        };
        if !self.is_replicated(notes) {
            return Some(class);
        }
        if class < DurabilityClass::Synced {
            notes.push(
                "Semisynchronous replication does not count: this server does not flush what a replica acknowledges."
                    .to_owned(),
            );
            return Some(class);
        }
        Some(DurabilityClass::Replicated)
    }

    /// Whether a replica receives a write before the client's acknowledgement (MySQL manual and MariaDB Knowledge Base,
    /// "Semisynchronous Replication").
    fn is_replicated(&self, notes: &mut Vec<String>) -> bool {
        for [enabled, status, clients, wait_for, timeout] in SEMI_SYNC {
            let number = |name: &str| self.get(name).parse::<u64>().ok();
            let enough = number(clients).unwrap_or(0) >= number(wait_for).unwrap_or(1).max(1);
            let logged = self.on("log_bin") && !self.get("sql_log_bin").eq_ignore_ascii_case("OFF");
            if self.on(enabled) && self.on(status) && enough && logged {
                let timeout_ms = number(timeout).unwrap_or(10_000);
                notes.push(format!(
                    "A commit waits at most {timeout_ms} ms for a replica ({timeout}); then the server continues without one."
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
                "Redo logging is disabled: a crash of the server may lose the whole instance.".to_owned(),
            );
            return DurabilityClass::Memory;
        }
        let seconds = self.get("innodb_flush_log_at_timeout").parse().unwrap_or(1);
        let periodic = if Duration::from_secs(seconds) <= ABOUT_A_SECOND {
            DurabilityClass::PeriodicSync
        } else {
            notes.push(format!("The redo log is synced only every {seconds} s."));
            DurabilityClass::OsCache
        };
        let at_commit = self.get("innodb_flush_log_at_trx_commit");
        // MariaDB's value 3 syncs more often.
        let mut class = if matches!(at_commit, "1" | "3") { DurabilityClass::Synced } else { periodic };
        // InnoDB's commit record is synced with the next one or by the timer; until then the binary log decides.
        if self.on("log_bin") && self.get("sync_binlog") != "1" && class == DurabilityClass::Synced {
            class = periodic;
            notes.push(
                "Recovery keeps the last commits only if the binary log has them, and it is not synced at each commit."
                    .into(),
            );
        }
        let doublewrite = self.get("innodb_doublewrite").to_ascii_uppercase();
        let method = self.get("innodb_flush_method").to_ascii_lowercase();
        let unsafe_pages = if matches!(doublewrite.as_str(), "OFF" | "0" | "DETECT_ONLY") {
            Some(
                "Without the doublewrite buffer, a power failure may tear a page, which is then lost."
                    .to_owned(),
            )
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
                "The redo log is written every {seconds} s: a crash of the server alone loses as much."
            ));
            if class != DurabilityClass::PeriodicSync {
                // A crash of the server loses writes, and the loss at a power failure is unbounded.
                return DurabilityClass::Memory;
            }
        }
        class
    }

    /// A row is in the table's data file when its statement ends. The index and the row count are written only when no
    /// other statement writes to the table or waits to (`mi_lock_database` in `storage/myisam`, where `flush` also
    /// syncs the files). After a crash, the rows can be read only once the table is repaired. MySQL manual, "MyISAM
    /// Startup Options": with `QUICK`, rows are not checked; without `FORCE`, a repair that would lose more than one row
    /// is not made. With MariaDB's default, `BACKUP,QUICK`, a killed server lost one of thousands of acknowledged rows.
    fn myisam(&self, notes: &mut Vec<String>) -> DurabilityClass {
        let options = self.get("myisam_recover_options").to_ascii_uppercase();
        let has = |option: &str| options.split(',').any(|set| set == option);
        if !has("FORCE") || has("QUICK") {
            notes.push(
                "After a crash of the server, a MyISAM table may miss acknowledged rows until REPAIR TABLE. The server \
                 repairs it automatically with myisam_recover_options = BACKUP,FORCE."
                    .into(),
            );
            return DurabilityClass::Memory;
        }
        notes.push(
            "After a crash during a write, the server repairs the MyISAM table when it opens it.".into(),
        );
        if self.on("flush") {
            notes.push(
                "flush = ON syncs a table's files only if no other statement waits to write to it.".into(),
            );
        }
        DurabilityClass::OsCache
    }

    /// Each statement ends with a commit in Aria's log. MariaDB Knowledge Base, "Aria System Variables" and "Aria Group
    /// Commit".
    fn aria(&self, notes: &mut Vec<String>) -> DurabilityClass {
        let class = if self.get("aria_group_commit").eq_ignore_ascii_case("soft") {
            // In microseconds; 0 disables it.
            let interval = Duration::from_micros(self.get("aria_group_commit_interval").parse().unwrap_or(0));
            if interval.is_zero() || interval > ABOUT_A_SECOND {
                notes.push("Aria's log is written at each statement but rarely synced.".to_owned());
                DurabilityClass::OsCache
            } else {
                DurabilityClass::PeriodicSync
            }
        } else {
            DurabilityClass::Synced
        };
        if self.get("aria_sync_log_dir").eq_ignore_ascii_case("NEVER") {
            notes.push("A power failure may lose a new file of Aria's log (aria_sync_log_dir).".to_owned());
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
        server(settings).of(engine, &mut Vec::new()).unwrap()
    }

    #[test]
    fn innodb_class_depends_on_redo_log_binary_log_and_doublewrite_buffer() {
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
    fn class_of_other_engines_depends_on_their_settings() {
        let late = ("delay_key_write", "ALL");
        let soft = ("aria_group_commit", "soft");
        for (engine, settings, expected) in [
            ("MyISAM", vec![("myisam_recover_options", "OFF")], Memory),
            ("MyISAM", vec![("myisam_recover_options", "BACKUP,QUICK")], Memory),
            ("MyISAM", vec![("myisam_recover_options", "FORCE,QUICK")], Memory),
            ("MyISAM", vec![("flush", "ON"), ("myisam_recover_options", "BACKUP,FORCE")], OsCache),
            ("MyISAM", vec![late, ("myisam_recover_options", "BACKUP,FORCE")], OsCache),
            ("Aria", vec![("aria_group_commit", "none")], Synced),
            ("Aria", vec![("aria_group_commit", "hard")], Synced),
            ("Aria", vec![soft, ("aria_group_commit_interval", "1000000")], PeriodicSync),
            ("Aria", vec![soft, ("aria_group_commit_interval", "0")], OsCache),
            ("Aria", vec![("aria_group_commit", "none"), ("aria_sync_log_dir", "NEVER")], OsCache),
            ("MEMORY", vec![("innodb_flush_log_at_trx_commit", "1")], Memory),
        ] {
            assert_eq!(class(engine, &settings), expected, "{engine} {settings:?}");
        }
    }

    #[test]
    fn class_is_unknown_if_its_setting_is_not_reported() {
        for engine in ["InnoDB", "MyISAM", "Aria", "ROCKSDB"] {
            let mut notes = Vec::new();
            assert_eq!(server(&[("flush", "ON")]).of(engine, &mut notes), None, "{engine}");
            assert!(notes[0].contains("unknown"), "{notes:?}");
        }
    }

    #[test]
    fn only_connected_replica_makes_writes_replicated() {
        let with = |flush, status, clients| {
            let settings = [
                ("innodb_flush_log_at_trx_commit", flush),
                ("log_bin", "ON"),
                ("sync_binlog", "1"),
                ("rpl_semi_sync_source_enabled", "ON"),
                ("rpl_semi_sync_source_status", status),
                ("rpl_semi_sync_source_clients", clients),
            ];
            class("InnoDB", &settings)
        };
        assert_eq!(
            [with("1", "ON", "1"), with("1", "ON", "0"), with("1", "OFF", "1"), with("2", "ON", "1")],
            [Replicated, Synced, Synced, PeriodicSync]
        );
    }

    #[test]
    fn refusal_names_settings_and_suitable_engine() {
        let server = server(&[("innodb_flush_log_at_trx_commit", "1"), ("myisam_recover_options", "FORCE")]);
        let error = server.refusal(OsCache).to_string();
        assert!(error.contains("innodb_flush_log_at_trx_commit = 1"), "{error}");
        assert!(error.contains("add engine=MyISAM"), "{error}");
        assert!(server.refusal(Replicated).to_string().contains("ask the server's administrator"));
    }
}
