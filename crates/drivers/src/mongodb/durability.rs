//! The durability class of acknowledged writes, from the write concern and the server's storage settings.
//!
//! Sources: <https://www.mongodb.com/docs/manual/reference/write-concern/>,
//! <https://www.mongodb.com/docs/manual/core/journaling/>.

use super::concerns::{Acknowledged, WriteConcern};
use super::deployment::Deployment;
use kurabe_core::durability::DurabilityClass;

/// The facts that determine the durability class.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) deployment: &'a Deployment,
    /// `None` if this user may not read it.
    pub(super) storage_engine: Option<String>,
    /// Whether journaling is on; `None` if the options do not mention it, which means on.
    pub(super) journal: Option<bool>,
    /// The server's default write concern, if it reports one.
    pub(super) default: Option<WriteConcern>,
    pub(super) asked: &'a WriteConcern,
}

/// Returns the durability class, and adds explanations to `notes`.
pub(super) fn durability(evidence: &Evidence<'_>, notes: &mut Vec<String>) -> DurabilityClass {
    let Evidence { deployment, storage_engine, journal, default, asked } = evidence;
    let hello = &deployment.hello;
    if deployment.engine == "FerretDB" {
        notes.push(
            "FerretDB passes each write to its backend before it acknowledges it, and ignores w and journal. It does \
             not report its backend or how the backend syncs, so the class is the lowest possible one. \
             (By default its SQLite backend uses journal_mode=wal and SQLite's default synchronous=full, \
             which syncs each commit: internal/backends/sqlite/metadata/pool/uri.go in its source.)"
                .to_owned(),
        );
        notes.push(
            "That backend finds a document by an index only if its _id is text. If the _id is a whole number, each \
             request scans the collection."
                .to_owned(),
        );
        return DurabilityClass::OsCache;
    }
    let default = default.as_ref();
    let w = asked.w.as_ref().or_else(|| default.and_then(|default| default.w.as_ref()));
    let synced = asked.journal.or_else(|| default.and_then(|default| default.journal)) == Some(true);
    let engine = storage_engine.as_deref();
    if engine == Some("inMemory") || engine == Some("ephemeralForTest") {
        return DurabilityClass::Memory;
    }
    // In a set of one member a majority write waits for that member's journal (writeConcernMajorityJournalDefault).
    let majority = matches!(w, Some(Acknowledged::Majority)) && hello.set.is_some();
    let another = match w {
        Some(Acknowledged::Majority) => hello.members.len() >= 2,
        Some(Acknowledged::By(n)) => *n >= 2,
        _ => false,
    };
    // A second member counts only if it, and this one, have the write in their journals: a majority has by default.
    let flushed = *journal != Some(false) && (synced || matches!(w, Some(Acknowledged::Majority)));
    if another && (hello.set.is_some() || hello.is_router) {
        if flushed {
            return DurabilityClass::Replicated;
        }
        notes.push(
            "Other members do not count: they acknowledge a write before it is in their journals (add journal=true)."
                .to_owned(),
        );
    }
    if *journal == Some(false) {
        notes.push(
            "Without a journal a crash loses the writes since the last checkpoint, up to one minute.".into(),
        );
        return DurabilityClass::Memory;
    }
    if let Some(Acknowledged::As(name)) = w {
        notes.push(format!("w={name} is defined by the replica set; Kurabe assumes one member."));
    }
    if hello.is_router {
        notes.push(
            "A mongos does not report the storage of its shards; Kurabe assumes WiredTiger with a journal."
                .into(),
        );
    } else if engine.is_none() {
        notes.push(
            "This user may not read the storage engine (serverStatus needs the role clusterMonitor), \
             so the class is the lowest possible one."
                .to_owned(),
        );
        return DurabilityClass::OsCache;
    }
    if synced || majority { DurabilityClass::Synced } else { DurabilityClass::PeriodicSync }
}

/// The write concern that requests a class, if there is one.
pub(super) fn writes_for(class: DurabilityClass, asked: &WriteConcern) -> Option<WriteConcern> {
    let (w, journal) = match class {
        DurabilityClass::PeriodicSync => (Acknowledged::By(1), false),
        DurabilityClass::Synced => (Acknowledged::By(1), true),
        DurabilityClass::Replicated => (Acknowledged::Majority, true),
        DurabilityClass::Memory | DurabilityClass::OsCache => return None,
    };
    Some(WriteConcern { w: Some(w), journal: Some(journal), timeout: asked.timeout })
}

#[cfg(test)]
mod tests {
    use super::super::hello::Hello;
    use super::*;

    fn class(
        deployment: &Deployment,
        engine: Option<&str>,
        asked: &WriteConcern,
        default: Option<WriteConcern>,
    ) -> DurabilityClass {
        let storage_engine = engine.map(ToOwned::to_owned);
        let evidence = Evidence { deployment, storage_engine, journal: None, default, asked };
        durability(&evidence, &mut Vec::new())
    }

    fn writes(w: Option<Acknowledged>, journal: Option<bool>) -> WriteConcern {
        WriteConcern { w, journal, timeout: None }
    }

    /// A server of a replica set with so many members, or alone.
    fn server(members: usize) -> Deployment {
        let hello = Hello {
            set: (members > 0).then(|| "rs".to_owned()),
            members: vec![String::new(); members],
            ..Hello::default()
        };
        Deployment { engine: "MongoDB", hello, ..Deployment::default() }
    }

    #[test]
    fn class_depends_on_write_concern_members_and_storage() {
        use Acknowledged::{By, Majority};
        use DurabilityClass::{Memory, PeriodicSync, Replicated, Synced};
        let nothing = WriteConcern::default();
        let majority = || writes(Some(Majority), None);
        for (members, engine, asked, default, expected) in [
            (0, "wiredTiger", nothing.clone(), None, PeriodicSync),
            (0, "wiredTiger", writes(Some(By(1)), Some(true)), None, Synced),
            // The majority of a standalone server is that server.
            (0, "wiredTiger", majority(), None, PeriodicSync),
            (0, "wiredTiger", nothing.clone(), Some(writes(Some(By(1)), Some(true))), Synced),
            (0, "inMemory", writes(None, Some(true)), None, Memory),
            (3, "wiredTiger", majority(), None, Replicated),
            (1, "wiredTiger", majority(), None, Synced),
            // The default since version 5.
            (3, "wiredTiger", nothing, Some(majority()), Replicated),
            (3, "wiredTiger", writes(Some(By(1)), None), None, PeriodicSync),
            (3, "wiredTiger", writes(Some(By(1)), Some(true)), None, Synced),
            (3, "wiredTiger", writes(Some(By(2)), Some(true)), None, Replicated),
            (3, "wiredTiger", writes(Some(By(2)), None), None, PeriodicSync),
        ] {
            let found = class(&server(members), Some(engine), &asked, default);
            assert_eq!(found, expected, "{members} {engine} {asked:?}");
        }
        let (deployment, asked) = (&server(3), &majority());
        let storage_engine = Some("wiredTiger".to_owned());
        let evidence = Evidence { deployment, storage_engine, journal: Some(false), default: None, asked };
        assert_eq!(durability(&evidence, &mut Vec::new()), Memory);
    }

    #[test]
    fn unreported_storage_gets_the_lowest_class() {
        let asked = writes(None, Some(true));
        let evidence = Evidence {
            deployment: &server(0),
            storage_engine: None,
            journal: None,
            default: None,
            asked: &asked,
        };
        let mut notes = Vec::new();
        assert_eq!(durability(&evidence, &mut notes), DurabilityClass::OsCache);
        assert!(notes[0].contains("clusterMonitor"), "{notes:?}");
        let ferret = Deployment { engine: "FerretDB", ..Deployment::default() };
        assert_eq!(class(&ferret, None, &asked, None), DurabilityClass::OsCache);
    }

    #[test]
    fn requested_class_is_the_reported_class() {
        for wanted in [DurabilityClass::PeriodicSync, DurabilityClass::Synced, DurabilityClass::Replicated] {
            let asked = writes_for(wanted, &WriteConcern::default()).unwrap();
            assert_eq!(class(&server(3), Some("wiredTiger"), &asked, None), wanted);
        }
        assert_eq!(writes_for(DurabilityClass::Memory, &WriteConcern::default()), None);
    }
}
