//! The ownership rules for all engines: which collections Kurabe may create, clear and remove.
//!
//! An ownership table (`kurabe_marker`) has the names of the collections that Kurabe created. Kurabe does not touch a
//! collection without an entry, whatever its name.

use crate::prelude::*;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the ownership table; no collection may have it.
pub const MARKER: &str = "kurabe_marker";

/// The creator that an entry of the ownership table names.
pub const MADE_BY: &str = concat!("kurabe ", env!("CARGO_PKG_VERSION"));

/// An engine's terms, for messages.
#[derive(Clone, Copy)]
pub struct Words {
    /// The engine's name.
    pub engine: &'static str,
    /// The engine's term for a collection, such as table.
    pub thing: &'static str,
    /// Advice if a foreign object has the name.
    pub instead: &'static str,
    /// Reserved names besides [`MARKER`].
    pub kept: &'static [&'static str],
}

impl Words {
    /// The error of an object that Kurabe does not own.
    pub fn not_ours(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotOurs, message).hint(format!("it is left alone; {}", self.instead))
    }

    /// The error of a foreign object named [`MARKER`]; `why` is appended as the reason.
    pub fn foreign_marker(&self, why: &str) -> Error {
        self.not_ours(format!("{} {MARKER} was not created by Kurabe{why}", self.thing))
    }
}

/// The operations of an engine that the ownership rules use, on a separate connection.
pub trait NamespaceOps: Send {
    /// The engine's terms.
    fn words(&self) -> Words;

    /// Takes a lock against other runs, which ends with the connection or the process, or soon after.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// The names in the ownership table; empty if it does not exist. An error if it is foreign.
    fn entries(&mut self) -> Result<Vec<String>>;

    /// Whether a collection without an entry is recognisable as Kurabe's by itself. The server may have forgotten the
    /// entry, as a cache does that evicts values.
    fn recognises(&mut self, _name: &str) -> Result<bool> {
        Ok(false)
    }

    /// The collections that are recognisable as Kurabe's by themselves, with or without an entry.
    fn without_entry(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// An existing object with the name of a collection without an entry, if the engine can detect it.
    fn in_the_way(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Adds an entry to the ownership table, which is created if needed. Does nothing if the engine needs no table.
    fn enter(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    /// The text before the keys of a collection's rows, if the server has one name space for the keys of all.
    fn key_prefix(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Removes an entry from the ownership table.
    fn strike(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Creates the collection, empty; `known`: it may exist already, and is then replaced.
    fn make(&mut self, collection: &Collection, known: bool) -> Result<()>;

    /// Removes all rows of the collection.
    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.make(collection, true)
    }

    /// Removes the collection, if it exists, before its entry is removed.
    fn destroy(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Removes the empty ownership table.
    fn remove_marker(&mut self) -> Result<()> {
        Ok(())
    }

    /// Like [`Namespace::keeps_insertion_order`].
    fn keeps_insertion_order(&self) -> bool {
        true
    }

    /// The statistics of the planner, if it has some.
    fn statistics(&mut self) -> Option<&mut dyn StatisticsOps> {
        None
    }
}

/// Like [`TableStatistics`], for collections of Kurabe's.
pub trait StatisticsOps {
    /// Like [`TableStatistics::analyse`].
    fn analyse(&mut self, name: &str) -> Result<()>;

    /// Like [`TableStatistics::hold`].
    fn hold(&mut self, name: &str) -> Result<()>;

    /// Like [`TableStatistics::missing`].
    fn missing(&mut self, table: &str) -> Result<Option<String>>;
}

/// A [`Namespace`] that enforces the ownership rules.
pub struct Owned(Box<dyn NamespaceOps>);

impl Owned {
    /// That of these operations.
    pub fn boxed(operations: impl NamespaceOps + 'static) -> Box<dyn Namespace> {
        Box::new(Self(Box::new(operations)))
    }

    /// Whether the name has an entry; an error if a foreign object has the name.
    fn known(&mut self, name: &str) -> Result<bool> {
        let words = self.0.words();
        check_name(name, words.kept)?;
        if self.0.entries()?.iter().any(|entry| entry == name) {
            return Ok(true);
        }
        if self.0.recognises(name)? {
            return Ok(true);
        }
        let Some(what) = self.0.in_the_way(name)? else { return Ok(false) };
        let message = format!("{}: {what} exists and was not made by Kurabe", words.engine);
        Err(words
            .not_ours(message)
            .hint(format!("it is left alone; {} (no entry for {name} in {MARKER})", words.instead)))
    }

    /// Returns an error if the collection has no entry.
    fn must_be_ours(&mut self, name: &str) -> Result<()> {
        if self.known(name)? {
            return Ok(());
        }
        let Words { engine, thing, .. } = self.0.words();
        Err(Error::new(ErrorKind::NotFound, format!("{engine}: there is no {thing} {name}")))
    }
}

impl Namespace for Owned {
    fn keeps_insertion_order(&self) -> bool {
        self.0.keeps_insertion_order()
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        self.0.claim(run)
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        let name = &collection.name;
        let known = self.known(name)?;
        // The entry is added first, and again if the server has forgotten it. A crash in between leaves an entry without a collection, which the next run
        // removes, and not a collection without an entry, which no run would touch.
        if !known || !self.0.entries()?.contains(name) {
            self.0.enter(collection)?;
        }
        self.0.make(collection, known).map_err(|error| {
            // Best effort: a remaining entry is harmless.
            if !known && self.0.in_the_way(name) == Ok(None) {
                let _ = self.0.strike(name);
            }
            error.context(format!("cannot create {} {name}", self.0.words().thing))
        })
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.0.clear(collection)
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        self.0.statistics()?;
        Some(self)
    }

    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>> {
        self.0.key_prefix(&collection.name)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        if !self.known(name)? {
            return Ok(());
        }
        self.0.destroy(name)?;
        self.0.strike(name)
    }

    fn list(&mut self) -> Result<Vec<String>> {
        let mut names = self.0.entries()?;
        for name in self.0.without_entry()? {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn finish(&mut self) -> Result<()> {
        let left = self.0.entries()?;
        if left.is_empty() {
            return self.0.remove_marker();
        }
        Err(Error::new(ErrorKind::Internal, format!("{MARKER} still has entries: {}", left.join(", "))))
    }
}

impl Owned {
    /// Does something with the statistics, if there are any.
    fn with_statistics<T: Default>(
        &mut self,
        work: impl FnOnce(&mut dyn StatisticsOps) -> Result<T>,
    ) -> Result<T> {
        self.0.statistics().map_or_else(|| Ok(T::default()), work)
    }
}

impl TableStatistics for Owned {
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.with_statistics(|statistics| statistics.analyse(&collection.name))
    }

    fn hold(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.with_statistics(|statistics| statistics.hold(&collection.name))
    }

    fn missing(&mut self, table: &str) -> Result<Option<String>> {
        self.with_statistics(|statistics| statistics.missing(table))
    }
}

/// Refuses names that a collection of Kurabe's cannot have: [`MARKER`], and the reserved names in `kept`.
fn check_name(name: &str, kept: &[&str]) -> Result<()> {
    if Collection::name_is_ours(name) && name != MARKER && !kept.contains(&name) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotOurs, format!("'{name}' is not a name for a collection of Kurabe's"))
        .hint("such names start with kurabe_ and contain lower case letters, digits and underscores"))
}

/// The holder of a claim: a run and this process. By it, a run that uses a database through two targets recognizes its
/// own claim. It includes a random number, since containers often have the same process id.
pub fn holder(run: &str) -> String {
    format!("run {run}{}", *PROCESS)
}

/// The end of every holder's name of this process.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(std::process::id()) as u32;
    format!(" (process {}-{random:08x})", std::process::id())
});

/// The holders of this process whose claims were not released yet, once for each claim.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a holder is a run of this process that has ended. A server that was killed and started again may have its
/// claim still: its last snapshot is older than the release.
fn has_ended(holder: &str) -> bool {
    holder.ends_with(PROCESS.as_str()) && !held().iter().any(|held| held == holder)
}

/// The time since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::from_secs(1))
}

/// A claim on an engine without locks that end with a connection: an entry that names its holder and expires unless it
/// is renewed.
pub trait ClaimStore {
    /// Time after which an entry expires unless it is renewed.
    const LASTS: Duration;

    /// Adds the entry if there is none or it has expired; `false` if another holder's entry exists.
    fn add(&mut self, holder: &str) -> Result<bool>;

    /// The entry's holder; `None` without an entry.
    fn holder(&mut self) -> Result<Option<String>>;

    /// Renews the entry if it is the holder's.
    fn renew(&mut self, holder: &str) -> Result<()>;

    /// Removes the entry if it is the holder's.
    fn release(&mut self, holder: &str) -> Result<()>;
}

/// A run's claim, which a thread renews until it is released.
#[derive(Default)]
pub struct Claim(Option<Lease>);

struct Lease {
    holder: String,
    stop: Sender<()>,
    thread: Option<JoinHandle<Release>>,
}

/// The time allowed to remove an entry whose addition has failed. It expires anyway.
const RELEASE_AGAIN: Duration = Duration::from_secs(2);

/// Releases a claim over a new connection.
type Release = Box<dyn FnOnce() -> Result<()> + Send>;

impl Claim {
    /// Takes the claim, and renews it over separate connections, which `connect` opens. Does nothing if this run
    /// already has it through another target.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) if another run has it.
    pub fn take<S: ClaimStore>(
        &mut self,
        words: &Words,
        store: &mut S,
        run: &str,
        mut connect: impl FnMut(&ConnectOptions) -> Result<S> + Send + 'static,
    ) -> Result<()> {
        if self.0.is_some() {
            return Ok(());
        }
        let (holder, every) = (holder(run), S::LASTS / 3);
        match take(words, store, &holder) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                // The server may have added the entry and its answer was lost. Another target of this run may have
                // added the same entry before, which stays.
                let useless = [ErrorKind::InUse, ErrorKind::Timeout, ErrorKind::Interrupted];
                if !useless.contains(&error.kind()) && !held().contains(&holder) {
                    let options = ConnectOptions::within(every.min(RELEASE_AGAIN));
                    let _ = connect(&options).and_then(|mut store| store.release(&holder));
                }
                return Err(error);
            }
        }
        held().push(holder.clone());
        let (stop, stopped) = channel();
        let ours = holder.clone();
        let work = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // Errors are ignored: a claim lasts for three renewals.
                let _ = connect(&ConnectOptions::within(every)).and_then(|mut store| store.renew(&ours));
            }
            let release = move || connect(&ConnectOptions::within(every))?.release(&ours);
            Box::new(release) as Release
        };
        // Without the thread the claim expires, which is better than failing the run.
        let thread = std::thread::Builder::new().name("claim".to_owned()).spawn(work).ok();
        self.0 = Some(Lease { holder, stop, thread });
        Ok(())
    }

    /// The holder, once taken.
    pub fn holder(&self) -> Option<&str> {
        self.0.as_ref().map(|lease| lease.holder.as_str())
    }

    /// Stops the renewal; returns the holder, and how to release its claim over a new connection.
    fn stop(&mut self) -> Option<(String, Option<Release>)> {
        let Lease { holder, stop, thread } = self.0.take()?;
        let mut all = held();
        if let Some(at) = all.iter().position(|held| *held == holder) {
            all.swap_remove(at);
        }
        drop(all);
        drop(stop);
        Some((holder, thread.and_then(|thread| thread.join().ok())))
    }

    /// Releases the claim. Best effort: it expires anyway.
    pub fn give_back(&mut self, store: &mut impl ClaimStore) {
        let Some((holder, again)) = self.stop() else { return };
        // A server that was restarted has closed the connection, and may have kept the claim.
        if store.release(&holder).is_err()
            && let Some(again) = again
        {
            let _ = again();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Takes a claim; `false` if its holder has it already.
fn take<S: ClaimStore>(words: &Words, store: &mut S, holder: &str) -> Result<bool> {
    let mut by = "another run, just now".to_owned();
    // Repeated, because another run may release or take it between the two requests.
    for _ in 0..3 {
        if store.add(holder)? {
            return Ok(true);
        }
        match store.holder()? {
            Some(other) if other == holder => return Ok(false),
            Some(other) if has_ended(&other) => store.release(&other)?,
            Some(other) => {
                by = other;
                break;
            }
            None => {}
        }
    }
    let (engine, lasts) = (words.engine, S::LASTS.as_secs());
    Err(Error::new(ErrorKind::InUse, format!("{engine}: is in use by {by}"))
        .hint(format!("wait for it to end; if it was killed, its claim expires within {lasts} s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// An entry, and the number of its renewals.
    #[derive(Clone, Default)]
    struct Entry(Arc<Mutex<(Option<String>, u32)>>);

    impl ClaimStore for Entry {
        const LASTS: Duration = Duration::from_millis(3);

        fn add(&mut self, holder: &str) -> Result<bool> {
            let mut entry = self.0.lock().unwrap();
            let free = entry.0.is_none();
            entry.0.get_or_insert_with(|| holder.to_owned());
            Ok(free)
        }

        fn holder(&mut self) -> Result<Option<String>> {
            Ok(self.0.lock().unwrap().0.clone())
        }

        fn renew(&mut self, holder: &str) -> Result<()> {
            let mut entry = self.0.lock().unwrap();
            entry.1 += u32::from(entry.0.as_deref() == Some(holder));
            Ok(())
        }

        fn release(&mut self, holder: &str) -> Result<()> {
            self.0.lock().unwrap().0.take_if(|by| by == holder);
            Ok(())
        }
    }

    #[test]
    fn claim_excludes_other_runs_until_it_is_released() {
        let words = Words { engine: "mine", thing: "table", instead: "leave it", kept: &[] };
        let (store, mut one, mut same, mut other) =
            (Entry::default(), Claim::default(), Claim::default(), Claim::default());
        let take = |claim: &mut Claim, run: &str| {
            let again = store.clone();
            claim.take(&words, &mut store.clone(), run, move |_| Ok(again.clone()))
        };
        take(&mut one, "first").unwrap();
        take(&mut one, "first").unwrap();
        take(&mut same, "first").unwrap();
        assert!(one.holder().is_some() && same.holder().is_none());
        let error = take(&mut other, "second").unwrap_err();
        assert!(error.kind() == ErrorKind::InUse && error.to_string().contains("run first"), "{error}");
        while store.0.lock().unwrap().1 < 3 {
            std::thread::yield_now();
        }
        same.give_back(&mut store.clone());
        assert!(take(&mut other, "second").is_err(), "another holder gave it back");
        one.give_back(&mut store.clone());
        // The thread has ended.
        assert_eq!(Arc::strong_count(&store.0), 1);
        take(&mut other, "second").unwrap();
    }

    /// A connection that the server closed.
    struct Closed;

    impl ClaimStore for Closed {
        const LASTS: Duration = Entry::LASTS;

        fn add(&mut self, _: &str) -> Result<bool> {
            Err(Error::new(ErrorKind::ConnectionLost, "closed"))
        }

        fn holder(&mut self) -> Result<Option<String>> {
            Err(Error::new(ErrorKind::ConnectionLost, "closed"))
        }

        fn renew(&mut self, _: &str) -> Result<()> {
            Err(Error::new(ErrorKind::ConnectionLost, "closed"))
        }

        fn release(&mut self, _: &str) -> Result<()> {
            Err(Error::new(ErrorKind::ConnectionLost, "closed"))
        }
    }

    #[test]
    fn entry_is_removed_whose_addition_was_answered_by_an_error() {
        /// A server that adds entries and whose answers are lost.
        struct Unanswered(Entry);

        impl ClaimStore for Unanswered {
            const LASTS: Duration = Entry::LASTS;

            fn add(&mut self, holder: &str) -> Result<bool> {
                self.0.add(holder)?;
                Err(Error::new(ErrorKind::ConnectionLost, "closed"))
            }

            fn holder(&mut self) -> Result<Option<String>> {
                self.0.holder()
            }

            fn renew(&mut self, holder: &str) -> Result<()> {
                self.0.renew(holder)
            }

            fn release(&mut self, holder: &str) -> Result<()> {
                self.0.release(holder)
            }
        }

        let words = Words { engine: "mine", thing: "table", instead: "leave it", kept: &[] };
        let (store, mut claim) = (Entry::default(), Claim::default());
        let again = store.clone();
        let taken = claim
            .take(&words, &mut Unanswered(store.clone()), "lost", move |_| Ok(Unanswered(again.clone())));
        assert!(taken.is_err());
        assert_eq!(store.0.lock().unwrap().0, None);
    }

    #[test]
    fn claim_is_released_over_a_new_connection_if_the_first_is_closed() {
        let words = Words { engine: "mine", thing: "table", instead: "leave it", kept: &[] };
        let (store, mut claim) = (Entry::default(), Claim::default());
        let again = store.clone();
        claim.take(&words, &mut store.clone(), "first", move |_| Ok(again.clone())).unwrap();
        claim.give_back(&mut Closed);
        assert_eq!(store.0.lock().unwrap().0, None);
    }

    #[test]
    fn claim_of_an_ended_run_of_this_process_does_not_exclude_the_next() {
        let words = Words { engine: "mine", thing: "table", instead: "leave it", kept: &[] };
        let (store, mut claim) = (Entry::default(), Claim::default());
        // As after the restart of a server from an older snapshot.
        store.0.lock().unwrap().0 = Some(holder("ended"));
        let again = store.clone();
        claim.take(&words, &mut store.clone(), "next", move |_| Ok(again.clone())).unwrap();
        assert_eq!(store.0.lock().unwrap().0, Some(holder("next")));
        claim.give_back(&mut store.clone());
        // Another process may still run.
        store.0.lock().unwrap().0 = Some("run ended (process 1-00000000)".to_owned());
        let again = store.clone();
        assert!(claim.take(&words, &mut store.clone(), "next", move |_| Ok(again.clone())).is_err());
    }

    #[test]
    fn reserved_and_foreign_names_are_refused() {
        for name in ["users", MARKER, "kurabe_claim", "kurabe_A", ""] {
            assert_eq!(check_name(name, &["kurabe_claim"]).unwrap_err().kind(), ErrorKind::NotOurs, "{name}");
        }
        assert!(check_name("kurabe_a", &["kurabe_claim"]).is_ok());
    }
}
