//! What an acknowledged write survives, by the write concern and by what the server says of its storage.
//!
//! Sources: <https://www.mongodb.com/docs/manual/reference/write-concern/>,
//! <https://www.mongodb.com/docs/manual/core/journaling/>.

use super::config::{W, Writes};
use super::facts::Deployment;
use kurabe_core::durability::DurabilityClass;

/// What is known.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) deployment: &'a Deployment,
    /// `None`: this user may not ask.
    pub(super) storage_engine: Option<String>,
    /// Whether there is a journal; `None` where the options do not say, which means that there is one.
    pub(super) journal: Option<bool>,
    /// The server's default write concern, where it says.
    pub(super) default: Option<Writes>,
    /// The sessions' write concern.
    pub(super) asked: &'a Writes,
}

/// The class, and what is to be said about it.
pub(super) fn durability(evidence: &Evidence<'_>, notes: &mut Vec<String>) -> DurabilityClass {
    let Evidence { deployment, storage_engine, journal, default, asked } = evidence;
    if deployment.engine == "FerretDB" {
        notes.push(
            "FerretDB hands each write to its backend before it acknowledges it, takes no notice of w and journal, \
             and does not say what its backend is or how that syncs, so the class is the least that holds. \
             (Its SQLite backend, left as it comes, uses journal_mode=wal and SQLite's default synchronous=full, \
             which syncs each commit: internal/backends/sqlite/metadata/pool/uri.go in its source.)"
                .to_owned(),
        );
        notes.push(
            "With that backend a document is found by its _id through an index where the _id is text; where it is a whole \
             number, each request reads the whole collection."
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
    // With one member a majority is that member, and waits for its journal (writeConcernMajorityJournalDefault).
    let majority = matches!(w, Some(W::Majority)) && deployment.replica_set.is_some();
    let another = match w {
        Some(W::Majority) => deployment.members >= 2,
        Some(W::Nodes(n)) => *n >= 2,
        _ => false,
    };
    if another && (deployment.replica_set.is_some() || deployment.mongos) {
        return DurabilityClass::Replicated;
    }
    if *journal == Some(false) {
        notes.push(
            "Without a journal a crash loses what was written since the last checkpoint, a minute ago."
                .into(),
        );
        return DurabilityClass::Memory;
    }
    if let Some(W::Tagged(name)) = w {
        notes.push(format!("What w={name} waits for is the replica set's own rule; taken for one member."));
    }
    if deployment.mongos {
        notes.push(
            "A mongos does not say how the shards behind it store; taken for WiredTiger with a journal."
                .into(),
        );
    } else if engine.is_none() {
        notes.push(
            "The server does not tell this user its storage engine (serverStatus needs the role clusterMonitor), \
             so the class is the least that holds."
                .to_owned(),
        );
        return DurabilityClass::OsCache;
    }
    if synced || majority { DurabilityClass::Synced } else { DurabilityClass::PeriodicSync }
}

/// The write concern that asks for a class, where one does.
pub(super) fn writes_for(class: DurabilityClass, asked: &Writes) -> Option<Writes> {
    let (w, journal) = match class {
        DurabilityClass::PeriodicSync => (W::Nodes(1), false),
        DurabilityClass::Synced => (W::Nodes(1), true),
        DurabilityClass::Replicated => (W::Majority, true),
        DurabilityClass::Memory | DurabilityClass::OsCache => return None,
    };
    Some(Writes { w: Some(w), journal: Some(journal), timeout: asked.timeout })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(
        deployment: &Deployment,
        engine: Option<&str>,
        asked: &Writes,
        default: Option<Writes>,
    ) -> DurabilityClass {
        let storage_engine = engine.map(ToOwned::to_owned);
        let evidence = Evidence { deployment, storage_engine, journal: None, default, asked };
        durability(&evidence, &mut Vec::new())
    }

    fn writes(w: Option<W>, journal: Option<bool>) -> Writes {
        Writes { w, journal, timeout: None }
    }

    fn alone() -> Deployment {
        Deployment { engine: "MongoDB", ..Deployment::default() }
    }

    #[test]
    fn alone_the_journal_decides() {
        let tiger = Some("wiredTiger");
        let nothing = Writes::default();
        assert_eq!(class(&alone(), tiger, &nothing, None), DurabilityClass::PeriodicSync);
        assert_eq!(
            class(&alone(), tiger, &writes(Some(W::Nodes(1)), Some(true)), None),
            DurabilityClass::Synced
        );
        // A majority of one server alone is no more than that server.
        assert_eq!(
            class(&alone(), tiger, &writes(Some(W::Majority), None), None),
            DurabilityClass::PeriodicSync
        );
        let default = writes(Some(W::Nodes(1)), Some(true));
        assert_eq!(class(&alone(), tiger, &nothing, Some(default)), DurabilityClass::Synced);
        assert_eq!(
            class(&alone(), Some("inMemory"), &writes(None, Some(true)), None),
            DurabilityClass::Memory
        );
    }

    #[test]
    fn what_the_server_does_not_say_is_not_assumed() {
        let asked = writes(None, Some(true));
        let evidence = Evidence {
            deployment: &alone(),
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
    fn in_a_replica_set_the_majority_decides() {
        let set = |members| Deployment { replica_set: Some("rs".to_owned()), members, ..alone() };
        let tiger = Some("wiredTiger");
        let majority = writes(Some(W::Majority), None);
        assert_eq!(class(&set(3), tiger, &majority, None), DurabilityClass::Replicated);
        assert_eq!(class(&set(1), tiger, &majority, None), DurabilityClass::Synced);
        // The default since version 5.
        assert_eq!(class(&set(3), tiger, &Writes::default(), Some(majority)), DurabilityClass::Replicated);
        assert_eq!(
            class(&set(3), tiger, &writes(Some(W::Nodes(1)), None), None),
            DurabilityClass::PeriodicSync
        );
        assert_eq!(
            class(&set(3), tiger, &writes(Some(W::Nodes(1)), Some(true)), None),
            DurabilityClass::Synced
        );
        assert_eq!(
            class(&set(3), tiger, &writes(Some(W::Nodes(2)), None), None),
            DurabilityClass::Replicated
        );
    }

    #[test]
    fn each_class_that_a_session_may_ask_for_is_what_asking_for_it_gives() {
        let set = Deployment { replica_set: Some("rs".to_owned()), members: 3, ..alone() };
        for wanted in [DurabilityClass::PeriodicSync, DurabilityClass::Synced, DurabilityClass::Replicated] {
            let asked = writes_for(wanted, &Writes::default()).unwrap();
            assert_eq!(class(&set, Some("wiredTiger"), &asked, None), wanted);
        }
        assert_eq!(writes_for(DurabilityClass::Memory, &Writes::default()), None);
    }
}
