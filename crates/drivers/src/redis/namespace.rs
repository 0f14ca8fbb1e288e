//! The ownership rules on Redis.
//!
//! **Collections.** The hash `kurabe_marker` has one field for each collection. A row's key begins with the
//! collection's name and a colon; Kurabe does not touch such keys without an entry in `kurabe_marker`. Clearing a
//! collection scans the keys of the database by `SCAN` and unlinks the collection's keys. It uses neither `KEYS`, which
//! would block all other clients, nor `FLUSHDB`.
//!
//! **Claim.** `SET kurabe_claim … NX PX` fails if the key exists. The key expires after 30 s unless a thread of this
//! process renews it on a separate connection, so after a crash the claim ends within that time. The claim is renewed
//! and released only while this run holds it (`WATCH`).

use super::config::Config;
use super::connect;
use super::protocol::{Client, Node};
use crate::ownership::{self, Claim, ClaimStore, MADE_BY, MARKER, NamespaceOps, Words};
use crate::prelude::*;
use crate::wire::{Peer, Stream};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const CLAIM: &str = "kurabe_claim";

const WORDS: Words = Words {
    engine: "redis",
    thing: "collection",
    instead: "rename it, or use another database",
    kept: &[CLAIM],
};

/// The field of the ownership table that identifies it as Kurabe's, and its value.
const TITLE: (&str, &str) = ("title", "collections of Kurabe");

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

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        foreign_key(&mut self.client, name)
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

    fn renew(&mut self, holder: &str) -> Result<()> {
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
    let mut fields: BTreeMap<String, String> = marker.pairs().collect();
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let ours = fields.remove(TITLE.0).as_deref() == Some(TITLE.1)
        && fields.keys().all(|name| Collection::name_is_ours(name));
    if ours { Ok(fields.into_keys().collect()) } else { Err(foreign()) }
}

/// Describes a key that begins with the name of a collection, if there is one.
fn foreign_key<S: Peer>(client: &mut Client<S>, name: &str) -> Result<Option<String>> {
    let mut found = None;
    each_key(client, name, |_, keys| {
        let key = keys.first().map(Node::text).unwrap_or_default();
        found.get_or_insert_with(|| format!("the key '{}'", shown(&key)));
        Ok(())
    })?;
    Ok(found)
}

/// Shortens foreign text for a message: no control characters, at most 100 characters.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// Scans the database and calls `work` with batches of a collection's keys. A key that exists during the whole scan is
/// returned at least once.
fn each_key<S: Peer>(
    client: &mut Client<S>,
    name: &str,
    mut work: impl FnMut(&mut Client<S>, &[Node]) -> Result<()>,
) -> Result<()> {
    // Names contain no special characters of patterns.
    let pattern = format!("{name}:*");
    let mut cursor = "0".to_owned();
    loop {
        let found = client.ask_text(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", STEP])?;
        let [next, keys] = found.items() else {
            return Err(crate::wire::malformed("the server's answer to SCAN does not have two parts"));
        };
        if !keys.items().is_empty() {
            work(client, keys.items())?;
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
