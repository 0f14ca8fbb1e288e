//! A condition variable for threads and tasks.

use crate::lock::Guard;
use crate::scheduler;
use crate::state::Shared;
use crate::timers::TaskId;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A condition variable for threads and tasks. Whoever changes what others wait for holds the [`Lock`](crate::Lock) meanwhile, and
/// notifies after.
#[derive(Default)]
pub struct Condition {
    threads: Condvar,
    tasks: Mutex<VecDeque<Waiter>>,
    /// How many tasks wait. It changes while the caller's lock is held, so that a notifier sees it.
    waiting: AtomicUsize,
}

/// A task that waits.
struct Waiter {
    shared: Arc<Shared>,
    task: TaskId,
    wait: u64,
}

impl Condition {
    /// A condition that nobody waits for.
    pub const fn new() -> Self {
        Self { threads: Condvar::new(), tasks: Mutex::new(VecDeque::new()), waiting: AtomicUsize::new(0) }
    }

    fn tasks(&self) -> MutexGuard<'_, VecDeque<Waiter>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unlocks, waits for a notification, and locks again. It may return without one.
    pub fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Guard<'a, T> {
        if let Some(wait) = scheduler::begin_wait(None) {
            return self.suspend(guard, wait).0;
        }
        let Guard { lock, inner, counted } = guard;
        let inner = self.threads.wait(inner).unwrap_or_else(PoisonError::into_inner);
        Guard { lock, inner, counted }
    }

    /// As [`Condition::wait`], for at most this long. Returns whether the time was over.
    pub fn wait_for<'a, T>(&self, guard: Guard<'a, T>, time: Duration) -> (Guard<'a, T>, bool) {
        if let Some(wait) = scheduler::begin_wait(Some(time)) {
            return self.suspend(guard, wait);
        }
        let Guard { lock, inner, counted } = guard;
        let (inner, waited) = self.threads.wait_timeout(inner, time).unwrap_or_else(PoisonError::into_inner);
        (Guard { lock, inner, counted }, waited.timed_out())
    }

    /// Suspends the running task, which has begun this wait.
    fn suspend<'a, T>(&self, guard: Guard<'a, T>, (task, wait): (TaskId, u64)) -> (Guard<'a, T>, bool) {
        let lock = guard.lock;
        let Some(shared) = scheduler::shared() else { return (guard, false) };
        let id = shared.id;
        self.tasks().push_back(Waiter { shared, task, wait });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(guard);
        let mut over = !scheduler::end_wait();
        if over {
            let mut tasks = self.tasks();
            let own = |waiter: &Waiter| waiter.shared.id == id && waiter.task == task && waiter.wait == wait;
            let at = tasks.iter().position(own);
            // One that is not there any more was notified in the meantime.
            over = at.is_some_and(|at| tasks.remove(at).is_some());
            if over {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
            }
        }
        (lock.lock(), over)
    }

    /// Wakes one that waits, tasks first.
    #[inline]
    pub fn notify_one(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0
            && let Some(waiter) = self.next()
        {
            waiter.shared.wake(waiter.task, waiter.wait);
        } else {
            self.threads.notify_one();
        }
    }

    fn next(&self) -> Option<Waiter> {
        let waiter = self.tasks().pop_front()?;
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Some(waiter)
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.threads.notify_all();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let all = std::mem::take(&mut *self.tasks());
            self.waiting.fetch_sub(all.len(), Ordering::SeqCst);
            for waiter in all {
                waiter.shared.wake(waiter.task, waiter.wait);
            }
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").finish_non_exhaustive()
    }
}
