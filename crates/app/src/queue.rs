//! Requests that wait for a worker: so many and no more.

use crate::answer::Answer;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A request that asks the database.
#[derive(Debug)]
pub(crate) struct Job {
    /// Which page.
    pub page: usize,
    /// The record that the client names.
    pub key: Option<u64>,
    /// Who waits for the answer.
    pub reply: oneshot::Sender<Answer>,
}

/// The queue. Workers block on it, the thread of the connections never does.
#[derive(Debug)]
pub(crate) struct Queue {
    most: usize,
    inner: Mutex<Inner>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl Queue {
    /// A queue of at most `most` requests beside those that a worker stands ready for.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default(), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in the queue; gives it back where the queue is full.
    pub(crate) fn offer(&self, job: Job) -> Result<(), Job> {
        let mut inner = self.lock();
        if inner.closed || inner.waiting.len() >= self.most + inner.idle {
            return Err(job);
        }
        inner.waiting.push_back(job);
        let idle = inner.idle > 0;
        drop(inner);
        if idle {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// The request that has waited longest; nothing once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut inner = self.lock();
        loop {
            if let Some(job) = inner.waiting.pop_front() {
                return Some(job);
            }
            if inner.closed {
                return None;
            }
            inner.idle += 1;
            inner = self.filled.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.idle -= 1;
        }
    }

    /// Lets workers end once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(page: usize) -> Job {
        Job { page, key: None, reply: oneshot::channel().0 }
    }

    #[test]
    fn a_full_queue_gives_back_what_it_cannot_take_and_keeps_the_order() {
        let queue = Queue::new(2);
        assert!(queue.offer(job(1)).is_ok() && queue.offer(job(2)).is_ok());
        assert_eq!(queue.offer(job(3)).unwrap_err().page, 3);
        assert_eq!(queue.take().unwrap().page, 1);
        assert!(queue.offer(job(4)).is_ok());
        queue.close();
        assert!(queue.offer(job(5)).is_err());
        assert_eq!([queue.take().unwrap().page, queue.take().unwrap().page], [2, 4]);
        assert!(queue.take().is_none());
    }

    #[test]
    fn a_closed_queue_wakes_all_who_wait() {
        let queue = Queue::new(1);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| queue.take().is_none())).collect();
            queue.close();
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
    }
}
