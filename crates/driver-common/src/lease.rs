//! Claims of a run on engines without locks that end with a connection.

use crate::ownership::Words;
use crate::prelude::*;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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

    const WORDS: Words = Words { engine: "mine", thing: "table", instead: "leave it", kept: &[] };

    /// What fails on a connection.
    #[derive(Clone, Copy, Default, PartialEq)]
    enum Fault {
        #[default]
        None,
        /// The answer to an addition is lost.
        Answer,
        /// The server has closed it.
        Closed,
    }

    /// A connection to an entry, and the number of its renewals.
    #[derive(Clone, Default)]
    struct Entry(Arc<Mutex<(Option<String>, u32)>>, Fault);

    impl Entry {
        fn ask<T>(&self, fault: Fault, work: impl FnOnce(&mut (Option<String>, u32)) -> T) -> Result<T> {
            let done = (self.1 != Fault::Closed).then(|| work(&mut self.0.lock().unwrap()));
            let lost = || Error::new(ErrorKind::ConnectionLost, "closed");
            done.filter(|_| self.1 != fault || fault == Fault::None).ok_or_else(lost)
        }

        fn with(&self, fault: Fault) -> Self {
            Self(Arc::clone(&self.0), fault)
        }

        fn held(&self) -> Option<String> {
            self.0.lock().unwrap().0.clone()
        }

        fn take(&self, claim: &mut Claim, run: &str) -> Result<()> {
            let again = self.clone();
            claim.take(&WORDS, &mut self.clone(), run, move |_| Ok(again.clone()))
        }
    }

    impl ClaimStore for Entry {
        const LASTS: Duration = Duration::from_millis(3);

        fn add(&mut self, holder: &str) -> Result<bool> {
            self.ask(Fault::Answer, |entry| {
                let free = entry.0.is_none();
                entry.0.get_or_insert_with(|| holder.to_owned());
                free
            })
        }

        fn holder(&mut self) -> Result<Option<String>> {
            self.ask(Fault::None, |entry| entry.0.clone())
        }

        fn renew(&mut self, holder: &str) -> Result<()> {
            self.ask(Fault::None, |entry| entry.1 += u32::from(entry.0.as_deref() == Some(holder)))
        }

        fn release(&mut self, holder: &str) -> Result<()> {
            self.ask(Fault::None, |entry| drop(entry.0.take_if(|by| by == holder)))
        }
    }

    #[test]
    fn claim_excludes_other_runs_until_it_is_released() {
        let (store, mut one, mut same, mut other) =
            (Entry::default(), Claim::default(), Claim::default(), Claim::default());
        store.take(&mut one, "first").unwrap();
        store.take(&mut one, "first").unwrap();
        store.take(&mut same, "first").unwrap();
        assert!(one.holder().is_some() && same.holder().is_none());
        let error = store.take(&mut other, "second").unwrap_err();
        assert!(error.kind() == ErrorKind::InUse && error.to_string().contains("run first"), "{error}");
        while store.0.lock().unwrap().1 < 3 {
            std::thread::yield_now();
        }
        same.give_back(&mut store.clone());
        assert!(store.take(&mut other, "second").is_err(), "another holder gave it back");
        one.give_back(&mut store.clone());
        // The thread has ended.
        assert_eq!(Arc::strong_count(&store.0), 1);
        store.take(&mut other, "second").unwrap();
    }

    #[test]
    fn entry_is_removed_whose_addition_was_answered_by_an_error() {
        let store = Entry::default();
        assert!(store.with(Fault::Answer).take(&mut Claim::default(), "lost").is_err());
        assert_eq!(store.held(), None);
    }

    #[test]
    fn claim_is_released_over_a_new_connection_if_the_first_is_closed() {
        let (store, mut claim) = (Entry::default(), Claim::default());
        store.take(&mut claim, "first").unwrap();
        claim.give_back(&mut store.with(Fault::Closed));
        assert_eq!(store.held(), None);
    }

    #[test]
    fn claim_of_an_ended_run_of_this_process_does_not_exclude_the_next() {
        let (store, mut claim) = (Entry::default(), Claim::default());
        // As after the restart of a server from an older snapshot.
        store.0.lock().unwrap().0 = Some(holder("ended"));
        store.take(&mut claim, "next").unwrap();
        assert_eq!(store.held(), Some(holder("next")));
        claim.give_back(&mut store.clone());
        // Another process may still run.
        store.0.lock().unwrap().0 = Some("run ended (process 1-00000000)".to_owned());
        assert!(store.take(&mut claim, "next").is_err());
    }
}
