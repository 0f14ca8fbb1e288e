//! The ownership rules on memcached, which can neither list its keys nor lock.
//!
//! **Collections.** The key `kurabe_marker` has one line for each collection: its name and its *generation*, a number
//! that is part of every key. Clearing a collection gives it a new generation. The values of the old one are never read
//! again. A generation is the time in microseconds, so that none is reused after memcached evicted `kurabe_marker`.
//!
//! Values of old generations would fill the memory, for which memcached would evict those of others. So their keys are
//! listed by its crawler (`lru_crawler metadump`) and removed, unless that would take long ([`MAX_LISTED`]). By the
//! generation a key is recognised as Kurabe's without an entry in `kurabe_marker`.
//!
//! **Claim.** Adding the key `kurabe_claim` fails if it exists. It expires after a minute unless a thread of this
//! process renews it on a separate connection, so after a crash the claim ends within that minute. The claim is renewed
//! and released only while this run holds it, by its CAS number. A claim that memcached evicted is added again.

use super::address::Address;
use super::protocol::{Client, Listing};
use crate::lease::{Claim, ClaimStore};
use crate::ownership::{self, NamespaceOps, Words};
use crate::prelude::*;
use crate::wire::{Peer, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) const MARKER: &[u8] = ownership::MARKER.as_bytes();
pub(super) const CLAIM: &str = "kurabe_claim";

const WORDS: Words = Words {
    engine: "memcached",
    thing: "collection",
    instead: "delete it, or use another server",
    kept: &[CLAIM],
};

/// The first line of the ownership table, which identifies it as Kurabe's.
const TITLE: &str = "kurabe collections";

/// The most items of a server whose keys are listed. It lists over a million a second.
const MAX_LISTED: u64 = 5_000_000;

/// How often keys are listed at most if fewer were listed than the server has.
const LISTINGS: u32 = 4;

/// How often, and how long each time, a listing waits for another walk of the server's crawler.
const WAITS: u32 = 100;
const WAIT: Duration = Duration::from_millis(20);

/// The current generation of each collection, shared by all sessions of a driver.
#[derive(Debug, Default)]
pub(super) struct Generations(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Generations {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AtomicU64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A collection's generation; the first call queries the server.
    pub(super) fn get<S: Peer>(&self, name: &str, client: &mut Client<S>) -> Result<Arc<AtomicU64>> {
        if let Some(generation) = self.known().get(name) {
            return Ok(Arc::clone(generation));
        }
        let generation = read_marker(client)?.get(name).copied().ok_or_else(|| {
            Error::new(ErrorKind::Server, format!("memcached: there is no collection {name}"))
                .code("NO_COLLECTION")
        })?;
        self.set(name, generation);
        Ok(self.known().entry(name.to_owned()).or_default().clone())
    }

    fn set(&self, name: &str, generation: u64) {
        self.known().entry(name.to_owned()).or_default().store(generation, Ordering::Relaxed);
    }

    /// Prepared operations get a generation that no one else uses.
    fn forget(&self, name: &str) {
        if let Some(generation) = self.known().remove(name) {
            generation.store(new_generation(0), Ordering::Relaxed);
        }
    }
}

pub(super) struct MemcachedNamespace {
    pub(super) client: Client<Stream>,
    pub(super) address: Arc<Address>,
    pub(super) generations: Arc<Generations>,
    pub(super) claim: Claim,
    /// Collections with values but without an entry, which memcached evicted.
    pub(super) orphans: Vec<String>,
}

/// The collection of a row's key; `None` if the key is not Kurabe's.
fn collection_of(key: &str) -> Option<&str> {
    let (name, rest) = key.split_once(':')?;
    let generation = rest.split_once(':').map(|(generation, _)| generation)?;
    let is_ours = Collection::name_is_ours(name)
        && generation.len() == 16
        // Microseconds of the years 2005 to 2041.
        && ["0004", "0005", "0006", "0007"].iter().any(|century| generation.starts_with(century))
        && generation.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
    is_ours.then_some(name)
}

impl MemcachedNamespace {
    /// Lists the keys of Kurabe's rows, each with its collection; a key possibly several times.
    fn each_row(&mut self, mut work: impl FnMut(&str, &str)) -> Result<()> {
        // A walk of the lists misses items that the server moves meanwhile to a list that was walked before. A walk of the
        // hash table misses none, but old servers have no such walk.
        let (mut walk, mut passes, mut waits) = ("hash", 0, 0);
        while passes < LISTINGS && waits < WAITS {
            let items = self.client.stats("stats")?.number("curr_items").unwrap_or(0);
            if items == 0 || items > MAX_LISTED {
                break;
            }
            let mut listed = 0;
            let end = self.client.each_key(walk, |key| {
                listed += 1;
                if let Some(name) = collection_of(key) {
                    work(name, key);
                }
            })?;
            match end {
                // Items that have expired are counted and not listed.
                Listing::Ended if listed >= items || (walk == "hash" && listed > 0) => break,
                Listing::Ended => (walk, passes) = ("all", passes + 1),
                Listing::Refused if walk == "all" => break,
                Listing::Refused => walk = "all",
                Listing::Busy => {
                    waits += 1;
                    std::thread::sleep(WAIT);
                }
            }
        }
        Ok(())
    }

    /// Removes all values of a collection.
    fn sweep(&mut self, collection: &str) -> Result<()> {
        let mut keys = Vec::new();
        self.each_row(|name, key| keys.extend((name == collection).then(|| key.to_owned())))?;
        self.client.delete_all(&keys)
    }

    /// Sets a new generation for the collection.
    fn renew(&mut self, name: &str) -> Result<()> {
        let mut marker = read_marker(&mut self.client)?;
        let generation = new_generation(marker.get(name).copied().unwrap_or(0));
        marker.insert(name.to_owned(), generation);
        write_marker(&mut self.client, &marker)?;
        self.generations.set(name, generation);
        Ok(())
    }
}

impl NamespaceOps for MemcachedNamespace {
    fn words(&self) -> Words {
        WORDS
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        let address = Arc::clone(&self.address);
        self.claim.take(&WORDS, &mut self.client, run, move |options| address.connect(options))
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        Ok(read_marker(&mut self.client)?.into_keys().collect())
    }

    fn recognises(&mut self, name: &str) -> Result<bool> {
        Ok(self.orphans.iter().any(|orphan| orphan == name))
    }

    fn without_entry(&mut self) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        self.each_row(|name, _| {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        })?;
        self.orphans = names.into_iter().collect();
        Ok(self.orphans.clone())
    }

    /// Keys of others never have a generation. An unknown collection may have been in an evicted ownership table.
    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        self.generations.forget(name);
        Ok(None)
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        self.renew(&collection.name)
    }

    fn key_prefix(&mut self, name: &str) -> Result<Option<String>> {
        let generation = self.generations.get(name, &mut self.client)?.load(Ordering::Relaxed);
        let mut prefix = Vec::new();
        super::key::write(&mut prefix, name, generation, std::iter::empty())?;
        prefix.push(b':');
        Ok(Some(String::from_utf8_lossy(&prefix).into_owned()))
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        let mut marker = read_marker(&mut self.client)?;
        marker.remove(name);
        write_marker(&mut self.client, &marker)?;
        self.generations.forget(name);
        Ok(())
    }

    fn make(&mut self, collection: &Collection, known: bool) -> Result<()> {
        if !known {
            return Ok(());
        }
        self.renew(&collection.name)?;
        self.sweep(&collection.name)
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        self.generations.forget(name);
        self.orphans.retain(|orphan| orphan != name);
        self.sweep(name)
    }

    fn remove_marker(&mut self) -> Result<()> {
        self.client.delete(MARKER, "").map(drop)
    }
}

impl Drop for MemcachedNamespace {
    fn drop(&mut self) {
        self.claim.give_back(&mut self.client);
        self.client.quit();
    }
}

/// The key `kurabe_claim`, which expires.
impl<S: Peer> ClaimStore for Client<S> {
    const LASTS: Duration = Duration::from_secs(60);

    fn add(&mut self, holder: &str) -> Result<bool> {
        self.set(CLAIM.as_bytes(), " ME T60", [holder.as_bytes(), b"", b""])
    }

    fn holder(&mut self) -> Result<Option<String>> {
        let found = self.get_with_cas(CLAIM.as_bytes())?;
        Ok(found.map(|(by, _)| String::from_utf8_lossy(&by).into_owned()))
    }

    /// Renews the claim, or adds it again if memcached evicted it.
    fn renew(&mut self, holder: &str) -> Result<()> {
        match self.get_with_cas(CLAIM.as_bytes())? {
            Some((by, cas)) if by == holder.as_bytes() => {
                let flags = format!(" C{cas} T60");
                self.set(CLAIM.as_bytes(), &flags, [holder.as_bytes(), b"", b""]).map(drop)
            }
            Some(_) => Ok(()),
            None => self.add(holder).map(drop),
        }
    }

    fn release(&mut self, holder: &str) -> Result<()> {
        match self.get_with_cas(CLAIM.as_bytes())? {
            Some((by, cas)) if by == holder.as_bytes() => {
                self.delete(CLAIM.as_bytes(), &format!(" C{cas}")).map(drop)
            }
            _ => Ok(()),
        }
    }
}

fn new_generation(before: u64) -> u64 {
    (ownership::now().as_micros() as u64).max(before + 1)
}

fn read_marker<S: Peer>(client: &mut Client<S>) -> Result<BTreeMap<String, u64>> {
    let Some(bytes) = client.get(MARKER, " v")? else { return Ok(BTreeMap::new()) };
    let text = client.whole_value(bytes)?;
    parse_marker(&String::from_utf8_lossy(&text)).ok_or_else(|| {
        WORDS.not_ours("memcached: the key kurabe_marker holds something that Kurabe did not write")
    })
}

fn parse_marker(text: &str) -> Option<BTreeMap<String, u64>> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    lines
        .map(|line| {
            let (name, generation) = line.split_once(' ')?;
            Some((name.to_owned(), generation.parse().ok()?))
                .filter(|(name, _)| Collection::name_is_ours(name))
        })
        .collect()
}

fn write_marker<S: Peer>(client: &mut Client<S>, marker: &BTreeMap<String, u64>) -> Result<()> {
    let lines = marker.iter().map(|(name, generation)| format!("{name} {generation}\n"));
    let text: String = std::iter::once(format!("{TITLE}\n")).chain(lines).collect();
    if client.set(MARKER, "", [text.as_bytes(), b"", b""])? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Server, "memcached did not store the ownership table (kurabe_marker)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::script::Script;

    #[test]
    fn ownership_table_round_trips() {
        let marker = BTreeMap::from([("kurabe_a".to_owned(), 7), ("kurabe_b".to_owned(), u64::MAX)]);
        let mut client = Client::new(Script::new(b"HD\r\n".to_vec()));
        write_marker(&mut client, &marker).unwrap();
        let sent = String::from_utf8(client.wire.stream().sent.clone()).unwrap();
        let text = sent.split_once("\r\n").unwrap().1.trim_end_matches("\r\n");
        assert_eq!(parse_marker(text), Some(marker));
    }

    #[test]
    fn foreign_ownership_table_is_refused() {
        for text in ["", "hello", "kurabe collections\nusers 7", "kurabe collections\nkurabe_a x"] {
            assert_eq!(parse_marker(text), None, "{text}");
        }
        let mut client = Client::new(Script::new(b"VA 5\r\nhello\r\n".to_vec()));
        assert_eq!(read_marker(&mut client).unwrap_err().kind(), ErrorKind::NotOurs);
    }

    #[test]
    fn only_the_holder_renews_and_releases_the_claim() {
        type Change = fn(&mut Client<Script>, &str) -> Result<()>;
        let get = "mg kurabe_claim v c\r\n";
        for (change, answers, sent) in [
            (
                Client::renew as Change,
                "VA 5 c18446744073709551615\r\nrun x\r\nHD\r\n",
                "ms kurabe_claim 5 C18446744073709551615 T60\r\nrun x\r\n",
            ),
            // Another run wrote it between the two requests.
            (Client::renew, "VA 5 c7\r\nrun x\r\nEX\r\n", "ms kurabe_claim 5 C7 T60\r\nrun x\r\n"),
            (Client::renew, "VA 5 c7\r\nrun y\r\n", ""),
            (Client::renew, "EN\r\nHD\r\n", "ms kurabe_claim 5 ME T60\r\nrun x\r\n"),
            (Client::release, "VA 5 c7\r\nrun x\r\nHD\r\n", "md kurabe_claim C7\r\n"),
            (Client::release, "VA 5 c7\r\nrun x\r\nEX\r\n", "md kurabe_claim C7\r\n"),
            (Client::release, "VA 5 c7\r\nrun y\r\n", ""),
            (Client::release, "EN\r\n", ""),
        ] {
            let mut client = Client::new(Script::new(answers.as_bytes().to_vec()));
            change(&mut client, "run x").unwrap();
            let said = String::from_utf8(client.wire.stream().sent.clone()).unwrap();
            assert_eq!(said, format!("{get}{sent}"), "{answers}");
        }
    }

    #[test]
    fn key_with_a_generation_is_recognised() {
        let mut key = Vec::new();
        super::super::key::write(&mut key, "kurabe_0_a", new_generation(0), [Value::Int(7)].into_iter())
            .unwrap();
        assert_eq!(collection_of(&String::from_utf8(key).unwrap()), Some("kurabe_0_a"));
        for other in [
            "kurabe_notes", "kurabe_a:7", "kurabe_a:notes:7", "kurabe_a:00064F0A1B2C3D4:7",
            "kurabe_a:00064f0a1b2c3d4e:7", "kurabe_A:00064F0A1B2C3D4E:7", "users:00064F0A1B2C3D4E:7",
            "kurabe_marker",
        ] {
            assert_eq!(collection_of(other), None, "{other}");
        }
    }

    #[test]
    fn generations_only_rise() {
        let first = new_generation(0);
        assert!(new_generation(first) > first);
        assert_eq!(new_generation(u64::MAX - 1), u64::MAX);
    }
}
