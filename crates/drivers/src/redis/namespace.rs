//! The ownership rules on Redis.
//!
//! **Collections.** The hash `kurabe_marker` has one field for each collection. The server may evict it, like any other
//! key. So a row's key says itself that it is Kurabe's: it begins with the collection's name and [`SIGN`]. A collection
//! that has such rows is Kurabe's even without an entry in `kurabe_marker`. Keys that only begin with the name of a
//! collection are never touched. Clearing a collection scans the keys of the database by `SCAN` and unlinks the
//! collection's keys. It uses neither `KEYS`, which would block all other clients, nor `FLUSHDB`.
//!
//! **Claim.** `SET kurabe_claim … NX PX` fails if the key exists. The key expires after 30 s unless a thread of this
//! process renews it on a separate connection, so after a crash the claim ends within that time. The claim is renewed
//! and released only while this run holds it (`WATCH`).

use super::config::Config;
use super::connect;
use super::protocol::{Client, Node};
use crate::lease::{Claim, ClaimStore};
use crate::ownership::{self, MADE_BY, MARKER, NamespaceOps, Words};
use crate::prelude::*;
use crate::wire::{Peer, Stream};
use kurabe_core::collection::NAMESPACE_PREFIX;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) const CLAIM: &str = "kurabe_claim";

const WORDS: Words = Words {
    engine: "redis",
    thing: "collection",
    instead: "rename it, or use another database",
    kept: &[CLAIM],
};

/// The field of the ownership table that identifies it as Kurabe's, and its value.
const TITLE: (&str, &str) = ("title", "collections of Kurabe");

/// What follows a collection's name in the keys of its rows. No name contains it.
const SIGN: &str = "~kurabe:";

/// The text before the key of each row of a collection.
pub(super) fn prefix(name: &str) -> String {
    format!("{name}{SIGN}")
}

/// How long a claim lasts without being renewed, in milliseconds.
const LASTS: &str = "30000";

/// `COUNT` of a `SCAN` step, in keys: a step takes well under a millisecond.
const STEP: &str = "1000";

/// The collections that are known to exist, shared by all sessions of a driver. Each has a flag for its prepared
/// operations, which is set when the collection is removed.
#[derive(Debug, Default)]
pub(super) struct Collections(Mutex<BTreeMap<String, Arc<AtomicBool>>>);

impl Collections {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AtomicBool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A collection's flag; the first call checks on the server that the collection exists.
    pub(super) fn get<S: Peer>(&self, name: &str, client: &mut Client<S>) -> Result<Arc<AtomicBool>> {
        if let Some(gone) = self.known().get(name) {
            return Ok(Arc::clone(gone));
        }
        if Collection::name_is_ours(name) && read_marker(client)?.iter().any(|known| known == name) {
            return Ok(self.enter(name));
        }
        Err(Error::new(ErrorKind::Server, format!("there is no collection {name}")).code("NO_COLLECTION"))
    }

    fn enter(&self, name: &str) -> Arc<AtomicBool> {
        Arc::clone(self.known().entry(name.to_owned()).or_default())
    }

    fn forget(&self, name: &str) {
        if let Some(gone) = self.known().remove(name) {
            gone.store(true, Ordering::Relaxed);
        }
    }
}

pub(super) struct RedisNamespace {
    pub(super) client: Client<Stream>,
    pub(super) config: Config,
    pub(super) collections: Arc<Collections>,
    pub(super) claim: Claim,
    /// The last collection that was searched for, and the foreign key in its way, if any: the search reads all keys of
    /// the database.
    pub(super) searched: Option<(String, Option<String>)>,
}

impl NamespaceOps for RedisNamespace {
    fn words(&self) -> Words {
        WORDS
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        let config = self.config.clone();
        self.claim.take(&WORDS, &mut self.client, run, move |options| {
            connect::connect(&config, options).map(|(client, _)| client)
        })
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        read_marker(&mut self.client)
    }

    fn recognises(&mut self, name: &str) -> Result<bool> {
        let (ours, foreign) = search(&mut self.client, name)?;
        self.searched = (!ours).then(|| (name.to_owned(), foreign));
        Ok(ours)
    }

    /// The collections of rows whose entries the server evicted.
    fn without_entry(&mut self) -> Result<Vec<String>> {
        signed(&mut self.client)
    }

    fn key_prefix(&mut self, name: &str) -> Result<Option<String>> {
        Ok(Some(prefix(name)))
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        match self.searched.take() {
            Some((searched, foreign)) if searched == name => Ok(foreign),
            _ => search(&mut self.client, name).map(|(_, foreign)| foreign),
        }
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        let entry = format!("{MADE_BY} {}", ownership::now().as_secs());
        self.client.ask_text(&["HSET", MARKER, TITLE.0, TITLE.1, &collection.name, &entry]).map(drop)
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        self.client.ask_text(&["HDEL", MARKER, name]).map(drop)
    }

    fn make(&mut self, collection: &Collection, known: bool) -> Result<()> {
        if known {
            each_key(&mut self.client, &collection.name, unlink)?;
        }
        self.collections.enter(&collection.name);
        Ok(())
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        each_key(&mut self.client, &collection.name, unlink)
    }

    /// Stops writes of prepared operations, then removes the keys; the caller removes the entry afterwards.
    fn destroy(&mut self, name: &str) -> Result<()> {
        self.collections.forget(name);
        each_key(&mut self.client, name, unlink)
    }

    fn remove_marker(&mut self) -> Result<()> {
        self.client.ask_text(&["DEL", MARKER]).map(drop)
    }
}

impl Drop for RedisNamespace {
    fn drop(&mut self) {
        self.claim.give_back(&mut self.client);
    }
}

/// The key `kurabe_claim`, which expires.
impl<S: Peer> ClaimStore for Client<S> {
    const LASTS: Duration = Duration::from_secs(30);

    fn add(&mut self, holder: &str) -> Result<bool> {
        let added = self.ask_text(&["SET", CLAIM, holder, "NX", "PX", LASTS])?;
        Ok(!matches!(added, Node::Null))
    }

    fn holder(&mut self) -> Result<Option<String>> {
        let by = shown(&self.ask_text(&["GET", CLAIM])?.text());
        Ok((!by.is_empty()).then_some(by))
    }

    /// Renews the claim, or adds it again if the server evicted it. The ownership table counts as used then, so that the
    /// server evicts others first.
    fn renew(&mut self, holder: &str) -> Result<()> {
        self.ask_text(&["TOUCH", MARKER])?;
        if self.holder()?.is_none() {
            return self.add(holder).map(drop);
        }
        while_ours(self, holder, &["PEXPIRE", CLAIM, LASTS])
    }

    fn release(&mut self, holder: &str) -> Result<()> {
        while_ours(self, holder, &["DEL", CLAIM])
    }
}

/// Runs a command on the claim atomically, unless another run holds it.
fn while_ours<S: Peer>(client: &mut Client<S>, holder: &str, command: &[&str]) -> Result<()> {
    client.ask_text(&["WATCH", CLAIM])?;
    if client.ask_text(&["GET", CLAIM])?.text() != holder {
        return client.ask_text(&["UNWATCH"]).map(drop);
    }
    client.ask_text(&["MULTI"])?;
    client.ask_text(command)?;
    client.ask_text(&["EXEC"]).map(drop)
}

fn read_marker<S: Peer>(client: &mut Client<S>) -> Result<Vec<String>> {
    let foreign =
        || WORDS.not_ours(format!("redis: the key {MARKER} holds something that Kurabe did not write"));
    let marker = match client.ask_text(&["HGETALL", MARKER]) {
        Err(error) if error.server_code() == Some("WRONGTYPE") => return Err(foreign()),
        marker => marker?,
    };
    let mut fields: BTreeMap<String, String> = kurabe_core::sort::btree_map(marker.pairs());
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let ours = fields.remove(TITLE.0).as_deref() == Some(TITLE.1)
        && fields.keys().all(|name| Collection::name_is_ours(name));
    if ours { Ok(fields.into_keys().collect()) } else { Err(foreign()) }
}

/// Whether a collection has rows of Kurabe's; and if not, the description of another key that begins with its name.
fn search<S: Peer>(client: &mut Client<S>, name: &str) -> Result<(bool, Option<String>)> {
    let (mut ours, mut foreign, prefix) = (false, None, prefix(name));
    // Names contain no special characters of patterns.
    scan(client, &format!("{name}[:~]*"), |_, keys| {
        for key in keys.iter().map(Node::text) {
            if key.starts_with(&prefix) {
                ours = true;
            } else if key.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')) {
                foreign.get_or_insert_with(|| format!("the key '{}'", shown(&key)));
            }
        }
        Ok(!ours)
    })?;
    Ok((ours, foreign.filter(|_| !ours)))
}

/// The collections that have rows of Kurabe's.
fn signed<S: Peer>(client: &mut Client<S>) -> Result<Vec<String>> {
    let mut names = BTreeSet::new();
    scan(client, &format!("{NAMESPACE_PREFIX}*{SIGN}*"), |_, keys| {
        for key in keys.iter().map(Node::text) {
            let name =
                key.split_once(SIGN).map(|(name, _)| name).filter(|name| Collection::name_is_ours(name));
            names.extend(name.map(ToOwned::to_owned));
        }
        Ok(true)
    })?;
    Ok(names.into_iter().collect())
}

/// Shortens foreign text for a message: no control characters, at most 100 characters.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Calls `work` with batches of the keys of a collection's rows.
fn each_key<S: Peer>(
    client: &mut Client<S>,
    name: &str,
    mut work: impl FnMut(&mut Client<S>, &[Node]) -> Result<()>,
) -> Result<()> {
    scan(client, &format!("{}*", prefix(name)), |client, keys| work(client, keys).map(|()| true))
}

/// Scans the database for keys of a pattern and calls `work` with batches of them until it returns `false`. A key that
/// exists during the whole scan is returned at least once.
fn scan<S: Peer>(
    client: &mut Client<S>,
    pattern: &str,
    mut work: impl FnMut(&mut Client<S>, &[Node]) -> Result<bool>,
) -> Result<()> {
    let mut cursor = "0".to_owned();
    loop {
        let found = client.ask_text(&["SCAN", &cursor, "MATCH", pattern, "COUNT", STEP])?;
        let [next, keys] = found.items() else {
            return Err(crate::wire::malformed("the server's answer to SCAN does not have two parts"));
        };
        if !keys.items().is_empty() && !work(client, keys.items())? {
            return Ok(());
        }
        cursor = next.text();
        if cursor == "0" {
            return Ok(());
        }
    }
}

fn unlink<S: Peer>(client: &mut Client<S>, keys: &[Node]) -> Result<()> {
    let keys = keys.iter().filter_map(|key| match key {
        Node::Text(key) => Some(key.as_slice()),
        _ => None,
    });
    let words: Vec<&[u8]> = std::iter::once(&b"UNLINK"[..]).chain(keys).collect();
    client.ask(&words).map(drop)
}

#[cfg(test)]
mod tests;
