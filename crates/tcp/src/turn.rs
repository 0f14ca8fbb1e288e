//! A resource that one connection after the other uses.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether it is taken.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Holds a turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Turn);

impl Turn {
    /// Waits until it is free, and takes it; `None` if it is not free within `patience`.
    pub(crate) fn take(&self, patience: Duration) -> Option<Held<'_>> {
        let (mut taken, _) = self
            .free
            .wait_timeout_while(self.lock(), patience, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(Held(self))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_it_and_the_next_gets_it_afterwards() {
        let turn = Turn::default();
        let held = turn.take(Duration::ZERO).unwrap();
        assert!(turn.take(Duration::from_millis(5)).is_none());
        std::thread::scope(|scope| {
            let next = scope.spawn(|| turn.take(Duration::from_secs(60)).is_some());
            drop(held);
            assert!(next.join().unwrap());
        });
    }
}
