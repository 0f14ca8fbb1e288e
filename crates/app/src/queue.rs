//! Requests that wait for a worker: so many and no more.

use crate::conversation::Conversation;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A request that asks the database.
#[derive(Debug)]
pub(crate) struct Job<C = Box<Conversation>> {
    /// Which page.
    pub page: usize,
    /// The record that the client names.
    pub key: Option<u64>,
    /// Who waits for the answer.
    pub conversation: C,
}

/// The queue, and how many workers wait, at the door, for something to do. Nobody blocks on it.
#[derive(Debug)]
pub(crate) struct Queue<C = Box<Conversation>> {
    most: usize,
    inner: Mutex<Inner<C>>,
}

#[derive(Debug)]
struct Inner<C> {
    waiting: VecDeque<Job<C>>,
    idle: usize,
    /// How often somebody went to the door.
    looks: u64,
    closed: bool,
}

/// What a worker does next.
#[derive(Debug)]
pub(crate) enum Turn<C = Box<Conversation>> {
    /// This, which has waited longest; `more` says whether another is to be woken for what is left.
    Job { job: Job<C>, more: bool },
    /// It goes to the door and waits, `alone` or beside others; then it says that it [woke](Queue::woke).
    Wait { alone: bool },
    /// Nothing: the queue is closed and empty.
    End,
}

impl<C> Queue<C> {
    /// A queue of at most `most` requests beside those that a worker stands ready for.
    pub(crate) fn new(most: usize) -> Self {
        let inner = Inner { waiting: VecDeque::new(), idle: 0, looks: 0, closed: false };
        Self { most, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in the queue, and says whether a worker is to be woken for it; gives it back where the queue is full.
    /// `free` workers are about to come for it that do not wait.
    pub(crate) fn offer(&self, job: Job<C>, free: usize) -> Result<bool, Job<C>> {
        let mut inner = self.lock();
        if inner.closed || inner.waiting.len() >= self.most + inner.idle + free {
            return Err(job);
        }
        inner.waiting.push_back(job);
        Ok(inner.idle > 0)
    }

    /// What a worker does next.
    pub(crate) fn next(&self) -> Turn<C> {
        let mut inner = self.lock();
        if let Some(job) = inner.waiting.pop_front() {
            return Turn::Job { job, more: inner.idle > 0 && !inner.waiting.is_empty() };
        }
        if inner.closed {
            return Turn::End;
        }
        let alone = inner.idle == 0;
        inner.idle += 1;
        inner.looks += 1;
        Turn::Wait { alone }
    }

    /// One who waited at the door waits no more.
    pub(crate) fn woke(&self) {
        self.lock().idle -= 1;
    }

    /// How many workers wait at the door, and how often one went there.
    pub(crate) fn watch(&self) -> (usize, u64) {
        let inner = self.lock();
        (inner.idle, inner.looks)
    }

    /// Lets workers end once the queue is empty. Those at the door are to be woken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(page: usize) -> Job<()> {
        Job { page, key: None, conversation: () }
    }

    fn next(queue: &Queue<()>) -> usize {
        match queue.next() {
            Turn::Job { job, .. } => job.page,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_full_queue_gives_back_what_it_cannot_take_and_keeps_the_order() {
        let queue = Queue::new(2);
        assert!(!queue.offer(job(1), 0).unwrap() && !queue.offer(job(2), 0).unwrap());
        assert_eq!(queue.offer(job(3), 0).unwrap_err().page, 3);
        // One who comes for it at once makes room for one more.
        assert!(queue.offer(job(3), 1).is_ok());
        assert_eq!(next(&queue), 1);
        assert_eq!(queue.offer(job(4), 0).unwrap_err().page, 4);
        queue.close();
        assert!(queue.offer(job(5), 1).is_err());
        assert_eq!([next(&queue), next(&queue)], [2, 3]);
        assert!(matches!(queue.next(), Turn::End));
    }

    #[test]
    fn whoever_waits_is_woken_and_wakes_the_next_while_there_is_more() {
        let queue = Queue::new(2);
        assert!(matches!(queue.next(), Turn::Wait { alone: true }));
        assert!(matches!(queue.next(), Turn::Wait { alone: false }));
        assert_eq!(queue.watch(), (2, 2));
        // Two stand ready, two may wait.
        for page in 1..=4 {
            assert!(queue.offer(job(page), 0).unwrap(), "nobody is woken");
        }
        assert!(queue.offer(job(5), 0).is_err());
        queue.woke();
        assert!(matches!(queue.next(), Turn::Job { more: true, .. }));
        queue.woke();
        assert!(matches!(queue.next(), Turn::Job { more: false, .. }), "all are awake");
    }
}
