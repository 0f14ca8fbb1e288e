//! Statements that run on servers. They are ended there when nobody waits for them any more, since a server goes on with
//! a statement although its client has left, and its work would disturb what is measured next.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How long a statement may still run when its trial has failed. Most end by themselves until then.
const GRACE: Duration = Duration::from_millis(500);
/// How often statements of a failed trial are looked for.
const LOOKS: u32 = 4;

/// How often the end of a statement is asked for, and how long each request has. A server may ignore one that arrives between
/// the messages of a statement: PostgreSQL manual, "Canceling Requests in Progress".
const TRIES: u32 = 5;
const TRY: Duration = Duration::from_millis(200);

/// The connections of sessions whose driver can end statements.
static ALL: Mutex<BTreeMap<u64, Weak<Running>>> = Mutex::new(BTreeMap::new());

/// How many calls are ending statements.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// The numbers of connections and of trials.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn all() -> MutexGuard<'static, BTreeMap<u64, Weak<Running>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open connections. The list is locked when one is dropped, so that this returns none under its lock.
fn connections() -> Vec<Arc<Running>> {
    all().values().filter_map(Weak::upgrade).collect()
}

/// A number that no other trial has.
pub fn new_trial() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A connection, and whether it executes a statement.
pub struct Running {
    number: u64,
    trial: u64,
    /// The number of begun and completed exchanges: odd during one.
    exchanges: AtomicU64,
    was_ended: AtomicBool,
    end: Box<dyn Fn() + Send + Sync>,
}

impl Running {
    /// Registers a connection of a trial. `end` ends its statement on the server, over another connection; it may be
    /// called on any thread, and must return soon.
    pub fn new(trial: u64, end: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let new = Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            trial,
            exchanges: AtomicU64::new(0),
            was_ended: AtomicBool::new(false),
            end: Box::new(end),
        });
        all().insert(new.number, Arc::downgrade(&new));
        new
    }

    /// Notes that an exchange begins or is complete.
    #[inline]
    pub fn turn(&self) {
        // Only the connection's own thread writes it.
        self.exchanges.store(self.exchanges.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Ends the statement on the server.
    pub fn end(&self) {
        self.was_ended.store(true, Ordering::SeqCst);
        (self.end)();
    }

    /// Ends the statement on the server, unless it ends by itself first.
    fn end_surely(&self) {
        let exchange = self.exchange();
        for _ in 0..TRIES {
            self.end();
            let until = Instant::now() + TRY;
            while Instant::now() < until {
                if self.exchange() != exchange {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Whether a statement of the connection was ended, so that its error is no error of the server.
    pub fn was_ended(&self) -> bool {
        self.was_ended.load(Ordering::SeqCst)
    }

    /// The number of the exchange that goes on, if any.
    fn exchange(&self) -> Option<u64> {
        Some(self.exchanges.load(Ordering::Relaxed)).filter(|count| count % 2 == 1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        all().remove(&self.number);
    }
}

/// Ends the statements that sessions still execute, of one trial or of all, all at a time. Returns whether there were any.
pub fn end(trial: Option<u64>) -> bool {
    end_if(trial, |running| running.exchange().is_some())
}

fn end_if(trial: Option<u64>, is_due: impl Fn(&Running) -> bool) -> bool {
    let due = connections().into_iter().filter(|running| trial.is_none_or(|trial| running.trial == trial));
    let due: Vec<_> = due.filter(|running| is_due(running)).collect();
    ENDING.fetch_add(1, Ordering::SeqCst);
    thread::scope(|scope| {
        for running in &due {
            // Without a thread it takes longer.
            if thread::Builder::new().spawn_scoped(scope, || running.end_surely()).is_err() {
                running.end_surely();
            }
        }
    });
    ENDING.fetch_sub(1, Ordering::SeqCst);
    !due.is_empty()
}

/// Waits up to this time until no statements are being ended. A client may hear that its statement was ended before the server
/// has ended it, so that the program waits before it exits.
pub fn wait_until_ended(most: Duration) {
    let until = Instant::now() + most;
    while ENDING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Ends the statements of a failed trial that do not end by themselves within a short time. Does not wait for that.
pub fn end_of_failed(trial: u64) {
    let begun = move || -> BTreeMap<u64, u64> {
        let of_trial = connections().into_iter().filter(|running| running.trial == trial);
        of_trial.filter_map(|running| Some((running.number, running.exchange()?))).collect()
    };
    let first = begun();
    let end = move || {
        let mut begun_before = first;
        // A client that has not yet heard of the failure may begin a statement after the first look.
        for _ in 0..LOOKS {
            thread::sleep(GRACE);
            end_if(Some(trial), |running| {
                running
                    .exchange()
                    .is_some_and(|exchange| begun_before.get(&running.number) == Some(&exchange))
            });
            begun_before = begun();
        }
    };
    // Without a thread the trial waits until the statements end.
    let _ = thread::Builder::new().name("statements".to_owned()).spawn(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn program_waits_until_the_server_has_ended_a_statement() {
        let (sender, begun) = channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (ended, trial) = (Arc::clone(&has_ended), new_trial());
        let session = Running::new(trial, move || {
            sender.send(()).unwrap();
            thread::sleep(Duration::from_millis(100));
            ended.store(true, Ordering::SeqCst);
        });
        session.turn();
        let ending = thread::spawn(move || end(Some(trial)));
        begun.recv().unwrap();
        wait_until_ended(Duration::from_secs(60));
        assert!(has_ended.load(Ordering::SeqCst));
        assert!(ending.join().unwrap());
    }

    #[test]
    fn request_that_the_server_ignores_is_repeated() {
        let (sender, asked) = channel();
        let trial = new_trial();
        let session = Running::new(trial, move || sender.send(()).unwrap());
        session.turn();
        let ending = thread::spawn(move || end(Some(trial)));
        asked.recv().unwrap();
        asked.recv().unwrap();
        session.turn();
        assert!(ending.join().unwrap());
        assert!(asked.try_iter().count() < TRIES as usize);
    }

    #[test]
    fn only_running_statements_of_the_trial_are_ended() {
        let (sender, ended) = channel();
        let open = |trial, name: &'static str| {
            let sender = sender.clone();
            Running::new(trial, move || sender.send(name).unwrap())
        };
        let (failed, other) = (new_trial(), new_trial());
        let sessions = [
            open(failed, "long"),
            open(failed, "idle"),
            open(other, "other"),
            open(failed, "short"),
            open(failed, "late"),
        ];
        let [long, idle, elsewhere, short, late] = &sessions;
        for busy in [long, elsewhere, short] {
            busy.turn();
        }
        end_of_failed(failed);
        // This one ends by itself, and the next one is another.
        short.turn();
        short.turn();
        assert_eq!(ended.recv(), Ok("long"));
        long.turn();
        short.turn();
        // Its client had not yet heard of the failure.
        late.turn();
        // The first one may have been asked for again until then.
        assert_eq!(ended.iter().find(|name| *name != "long"), Some("late"));
        late.turn();
        assert!(long.was_ended() && !elsewhere.was_ended() && !idle.was_ended());
        assert!(end(Some(other)) && !end(Some(new_trial())));
        assert_eq!(ended.recv(), Ok("other"));
        drop(sessions);
        // The thread that ended a statement holds its connection for a moment.
        while connections().iter().any(|running| running.trial == failed) {
            thread::yield_now();
        }
        assert!(!end(Some(failed)) && ended.try_iter().all(|name| name == "other"));
    }
}
