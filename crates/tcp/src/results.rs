//! The results of streams that have ended, until they are asked for.

use crate::protocol::Received;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of results. Those that nobody asks for are forgotten, the oldest first.
const MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Results {
    ended: Mutex<VecDeque<(u64, Received)>>,
    more: Condvar,
}

impl Results {
    /// Keeps the result of a stream.
    pub(crate) fn keep(&self, token: u64, received: Received) {
        let mut ended = self.lock();
        if ended.len() == MAX {
            ended.pop_front();
        }
        ended.push_back((token, received));
        drop(ended);
        self.more.notify_all();
    }

    /// The result of a stream, once it has ended; `None` if it does not end within `patience`.
    pub(crate) fn take(&self, token: u64, patience: Duration) -> Option<Received> {
        let position =
            |ended: &VecDeque<(u64, Received)>| ended.iter().position(|(known, _)| *known == token);
        let (mut ended, _) = self
            .more
            .wait_timeout_while(self.lock(), patience, |ended| position(ended).is_none())
            .unwrap_or_else(PoisonError::into_inner);
        let at = position(&ended)?;
        ended.remove(at).map(|(_, received)| received)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Received)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_waited_for_and_given_once() {
        let results = Results::default();
        let of = |bytes| Received { bytes, ..Received::default() };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| results.take(2, Duration::from_secs(60)));
            results.keep(1, of(10));
            results.keep(2, of(20));
            assert_eq!(waiting.join().unwrap(), Some(of(20)));
        });
        assert_eq!(results.take(2, Duration::ZERO), None);
        assert_eq!(results.take(1, Duration::ZERO), Some(of(10)));
    }

    #[test]
    fn oldest_result_is_forgotten_when_there_are_too_many() {
        let results = Results::default();
        for token in 0..=MAX as u64 {
            results.keep(token, Received::default());
        }
        assert_eq!(results.take(0, Duration::ZERO), None);
        assert!(results.take(1, Duration::ZERO).is_some());
    }
}
