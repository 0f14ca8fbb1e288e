//! The ownership rules, once for all engines: what Kurabe may make, empty and remove.
//!
//! A marker holds the names of the collections that Kurabe made. A collection that exists without standing in it was made by
//! someone else, whatever its name, and is left alone.

use crate::prelude::*;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The marker's own name; no collection may have it.
pub const MARKER: &str = "kurabe_marker";

/// Who made an entry of the marker.
pub const MADE_BY: &str = concat!("kurabe ", env!("CARGO_PKG_VERSION"));

/// How an engine's users speak of what is made.
#[derive(Clone, Copy)]
pub struct Words {
    /// The engine's name.
    pub engine: &'static str,
    /// What a collection is there: a table.
    pub thing: &'static str,
    /// What to do where somebody else's is in the way.
    pub instead: &'static str,
    /// Names beside the marker's that no collection may have.
    pub kept: &'static [&'static str],
}

impl Words {
    /// The error of something that is left alone.
    pub fn not_ours(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotOurs, message).hint(format!("it is left alone; {}", self.instead))
    }

    /// The error of a marker that is somebody else's; `why` says how that is seen.
    pub fn foreign_marker(&self, why: &str) -> Error {
        self.not_ours(format!("{} {MARKER} is not the one that Kurabe makes{why}", self.thing))
    }
}

/// What the ownership rules need of an engine: a connection of its own.
pub trait NamespaceOps: Send {
    /// How its users speak of what is made.
    fn words(&self) -> Words;

    /// Takes the lock that keeps a second run out, by a means that ends with the connection, the process, or soon after.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// The names that the marker holds; none where there is no marker. An error where the marker is not ours.
    fn entries(&mut self) -> Result<Vec<String>>;

    /// What stands in the way of a collection that the marker does not know, where that can be told.
    fn in_the_way(&mut self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Enters a name in the marker, which is made where there is none. Nothing to do where collections are their own marker.
    fn enter(&mut self, _collection: &Collection) -> Result<()> {
        Ok(())
    }

    /// Takes a name out of the marker.
    fn strike(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Makes the collection, empty; `known`: in the place of one that was made before, or may have been.
    fn make(&mut self, collection: &Collection, known: bool) -> Result<()>;

    /// Empties the collection.
    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.make(collection, true)
    }

    /// Removes the collection, where it is, before its name is struck out.
    fn destroy(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Removes the marker, which is empty.
    fn remove_marker(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether there is anything to analyse.
    fn analyses(&self) -> bool {
        false
    }

    /// As [`Namespace::analyse`], of a collection that is ours.
    fn analyse(&mut self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// As [`Namespace::unanalysed`].
    fn unanalysed(&mut self, _table: &str) -> Result<Option<String>> {
        Ok(None)
    }
}

/// The [`Namespace`] that keeps the rules.
pub struct Owned<H>(pub H);

impl<H: NamespaceOps> Owned<H> {
    /// Whether the marker knows the name; and that nothing of somebody else's is in its way.
    fn known(&mut self, name: &str) -> Result<bool> {
        let words = self.0.words();
        check_name(name, words.kept)?;
        if self.0.entries()?.iter().any(|entry| entry == name) {
            return Ok(true);
        }
        let Some(what) = self.0.in_the_way(name)? else { return Ok(false) };
        let message = format!("{}: {what} exists and was not made by Kurabe", words.engine);
        Err(words
            .not_ours(message)
            .hint(format!("it is left alone; {} (no entry for {name} in {MARKER})", words.instead)))
    }

    /// As [`Self::known`], for what makes no sense on a collection that is not there.
    fn must_be_ours(&mut self, name: &str) -> Result<()> {
        if self.known(name)? {
            return Ok(());
        }
        let Words { engine, thing, .. } = self.0.words();
        Err(Error::new(ErrorKind::NotFound, format!("{engine}: there is no {thing} {name}")))
    }
}

impl<H: NamespaceOps> Namespace for Owned<H> {
    fn claim(&mut self, run: &str) -> Result<()> {
        self.0.claim(run)
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        let name = &collection.name;
        let known = self.known(name)?;
        // The marker first: whoever dies in between leaves an entry without a collection, which the next run clears
        // away, and not a collection without an entry, which no run would dare to touch.
        if !known {
            self.0.enter(collection)?;
        }
        self.0.make(collection, known).map_err(|error| {
            // Best effort: an entry that stays behind is harmless.
            if !known && self.0.in_the_way(name) == Ok(None) {
                let _ = self.0.strike(name);
            }
            error.context(format!("cannot make {} {name}", self.0.words().thing))
        })
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.must_be_ours(&collection.name)?;
        self.0.clear(collection)
    }

    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        if !self.0.analyses() {
            return Ok(());
        }
        self.must_be_ours(&collection.name)?;
        self.0.analyse(&collection.name)
    }

    fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        self.0.unanalysed(table)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        if !self.known(name)? {
            return Ok(());
        }
        self.0.destroy(name)?;
        self.0.strike(name)
    }

    fn list(&mut self) -> Result<Vec<String>> {
        self.0.entries()
    }

    fn finish(&mut self) -> Result<()> {
        let left = self.0.entries()?;
        if left.is_empty() {
            return self.0.remove_marker();
        }
        Err(Error::new(ErrorKind::Internal, format!("{MARKER} still holds {}", left.join(", "))))
    }
}

/// Refuses what is no name for a collection of ours: the marker's, and those `kept` for something else.
fn check_name(name: &str, kept: &[&str]) -> Result<()> {
    if Collection::name_is_ours(name) && name != MARKER && !kept.contains(&name) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotOurs, format!("'{name}' is not a name for a collection of Kurabe's"))
        .hint("such names start with kurabe_ and hold lower case letters, digits and underscores"))
}

/// Whom a claim is said to belong to: a run and this process. A run that reaches a database by two targets knows its own
/// claim by it. A number of this process's own stands beside the system's, which is the same in many containers.
pub fn holder(run: &str) -> String {
    static OWN: LazyLock<u32> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()) as u32);
    format!("run {run} (process {}-{:08x})", std::process::id(), *OWN)
}

/// The time since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::from_secs(1))
}

/// What a claim is made of on an engine that has no lock which ends with a connection: an entry that names its holder and ends
/// by itself unless it is renewed.
pub trait ClaimStore {
    /// How long an entry lasts that is not renewed.
    const LASTS: Duration;

    /// Makes the entry, where there is none or one that has ended; `false` where another's is there.
    fn add(&mut self, holder: &str) -> Result<bool>;

    /// Whom the entry belongs to; `None` where there is none.
    fn holder(&mut self) -> Result<Option<String>>;

    /// Has the entry last longer, as long as it is the holder's.
    fn renew(&mut self, holder: &str) -> Result<()>;

    /// Removes the entry, as long as it is the holder's.
    fn release(&mut self, holder: &str) -> Result<()>;
}

/// The claim of a run: a thread renews it until it is given back.
#[derive(Default)]
pub struct Claim(Option<Lease>);

struct Lease {
    holder: String,
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Claim {
    /// Takes it, and renews it by connections of their own, which `connect` opens.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) where another run has it. A run that has it by another target does not take it again.
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
        if !take(words, store, &holder)? {
            return Ok(());
        }
        let (stop, stopped) = channel();
        let ours = holder.clone();
        let work = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // A server that does not answer now may do so the next time: a claim lasts for three of them.
                let _ = connect(&ConnectOptions::within(every)).and_then(|mut store| store.renew(&ours));
            }
        };
        // Without the thread the claim ends after its time, which is better than no run at all.
        let thread = std::thread::Builder::new().name("claim".to_owned()).spawn(work).ok();
        self.0 = Some(Lease { holder, stop, thread });
        Ok(())
    }

    /// Whose it is, where it was taken.
    pub fn holder(&self) -> Option<&str> {
        self.0.as_ref().map(|lease| lease.holder.as_str())
    }

    /// Renews it no more.
    fn stop(&mut self) -> Option<String> {
        let Lease { holder, stop, thread } = self.0.take()?;
        drop(stop);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        Some(holder)
    }

    /// Gives it back. Best effort: it ends by itself.
    pub fn give_back(&mut self, store: &mut impl ClaimStore) {
        if let Some(holder) = self.stop() {
            let _ = store.release(&holder);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Takes a claim; `false` where its holder has it already.
fn take<S: ClaimStore>(words: &Words, store: &mut S, holder: &str) -> Result<bool> {
    let mut by = "another run, just now".to_owned();
    // More than once: another may let go, or come, between the two requests.
    for _ in 0..3 {
        if store.add(holder)? {
            return Ok(true);
        }
        match store.holder()? {
            Some(other) if other == holder => return Ok(false),
            Some(other) => {
                by = other;
                break;
            }
            None => {}
        }
    }
    let (engine, lasts) = (words.engine, S::LASTS.as_secs());
    Err(Error::new(ErrorKind::InUse, format!("{engine}: is in use by {by}"))
        .hint(format!("wait for it to end; if it was killed, its claim ends within {lasts} s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// An entry, how often it was renewed, and a holder who comes once the entry was seen.
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
    fn claim_is_renewed_until_it_is_given_back_and_keeps_other_runs_out() {
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

    #[test]
    fn names_that_are_kept_and_those_of_others_are_refused() {
        for name in ["users", MARKER, "kurabe_claim", "kurabe_A", ""] {
            assert_eq!(check_name(name, &["kurabe_claim"]).unwrap_err().kind(), ErrorKind::NotOurs, "{name}");
        }
        assert!(check_name("kurabe_a", &["kurabe_claim"]).is_ok());
    }
}
