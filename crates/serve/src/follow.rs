//! Runs that are watched while they go on. All viewers of a run share one reader, which reads what was appended.

use crate::trials;
use kurabe_core::Result;
use kurabe_record::{Follower, RunPath};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The interval at which a run file is looked at, however many watch it.
pub(crate) const LOOK: Duration = Duration::from_millis(400);
/// The most trials that are kept for viewers, the newest ones. A page shows fewer.
const KEPT: usize = 400;

/// The runs that somebody watches.
#[derive(Default)]
pub(crate) struct Followed(Mutex<HashMap<String, Weak<Mutex<Follow>>>>);

/// A run that somebody watches.
pub(crate) struct Follow {
    follower: Follower,
    looked: Instant,
    /// The newest trials, as JSON.
    trials: VecDeque<Arc<str>>,
    running: bool,
}

impl Followed {
    /// The run at a path; it is read as far as it goes.
    pub(crate) fn run(&self, path: &RunPath) -> Result<Arc<Mutex<Follow>>> {
        let mut all = lock(&self.0);
        if let Some(follow) = all.get(&path.name).and_then(Weak::upgrade) {
            return Ok(follow);
        }
        all.retain(|_, follow| follow.strong_count() > 0);
        let follow = Arc::new(Mutex::new(Follow::open(path)?));
        all.insert(path.name.clone(), Arc::downgrade(&follow));
        Ok(follow)
    }
}

pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Follow {
    fn open(path: &RunPath) -> Result<Self> {
        let follower = Follower::open(path)?;
        let running = follower.is_written();
        let mut follow = Self { follower, looked: Instant::now(), trials: VecDeque::new(), running };
        follow.take();
        Ok(follow)
    }

    /// Reads what was appended, unless another viewer just did.
    pub(crate) fn look(&mut self) {
        // A little less, so that a single viewer never waits for two intervals.
        if self.looked.elapsed() < LOOK / 2 {
            return;
        }
        self.looked = Instant::now();
        // Before the file, so that nothing that was written before the end is missed.
        let running = self.follower.is_written();
        let looked = self.follower.look();
        self.take();
        // Nothing more is known of a damaged file.
        self.running = running && looked.is_ok();
    }

    /// Keeps the new trials as JSON.
    fn take(&mut self) {
        let run = self.follower.run();
        let new = run.trials.iter().skip(run.trials.len().saturating_sub(KEPT));
        self.trials.extend(new.map(|record| Arc::from(trials::json(run, record).to_string())));
        self.follower.forget();
        let more = self.trials.len().saturating_sub(KEPT);
        self.trials.drain(..more);
    }

    /// Whether a process writes the run.
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// The number of trials so far.
    pub(crate) fn count(&self) -> usize {
        self.follower.trials()
    }

    /// The trials from this one on, as far as they are kept.
    pub(crate) fn since(&self, first: usize) -> impl DoubleEndedIterator<Item = &Arc<str>> {
        let before = self.count() - self.trials.len();
        self.trials.iter().skip(first.saturating_sub(before))
    }

    /// The run's path.
    pub(crate) fn path(&self) -> &RunPath {
        self.follower.path()
    }
}
