//! The bounded queue between clients and session threads.

use crate::response::Response;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// A request that needs the database.
#[derive(Debug)]
pub(crate) struct Job {
    pub page: usize,
    /// The record that the client named.
    pub key: Option<u64>,
    /// Where the response goes.
    pub reply: oneshot::Sender<Response>,
    /// When it was queued.
    pub queued: Instant,
}

/// Requests that wait for a session thread. Senders never block.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: usize,
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Debug)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    /// Whether one of them was woken and has not run yet. No other is woken until then: a thread that runs already
    /// often takes the next job first, and a wake-up costs more than a fast transaction.
    waking: bool,
    closed: bool,
}

impl State {
    /// Whether a thread is to be woken now.
    fn wake(&mut self) -> bool {
        let wake = !self.jobs.is_empty() && self.idle > 0 && !self.waking;
        self.waking |= wake;
        wake
    }
}

impl Queue {
    /// A queue of at most this many requests besides those that an idle thread takes at once.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, waking: false, closed: false };
        Self { capacity, state: Mutex::new(state), ready: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. Returns false if the queue is full or closed.
    pub(crate) fn offer(&self, job: Job) -> bool {
        let mut state = self.lock();
        if state.closed || state.jobs.len() >= self.capacity + state.idle {
            return false;
        }
        state.jobs.push_back(job);
        let wake = state.wake();
        drop(state);
        if wake {
            self.ready.notify_one();
        }
        true
    }

    /// Takes the request that has waited longest, and waits for one if there is none. `None` once the queue is closed
    /// and empty.
    pub(crate) fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                let wake = state.wake();
                drop(state);
                if wake {
                    self.ready.notify_one();
                }
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.waking = false;
        }
    }

    /// Ends the threads once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn job(page: usize) -> Job {
        Job { page, key: None, reply: oneshot::channel().0, queued: Instant::now() }
    }

    #[test]
    fn full_or_closed_queue_refuses_and_order_is_kept() {
        let queue = Queue::new(2);
        assert!(queue.offer(job(1)) && queue.offer(job(2)));
        assert!(!queue.offer(job(3)));
        assert_eq!(queue.take().unwrap().page, 1);
        assert!(queue.offer(job(4)));
        queue.close();
        assert!(!queue.offer(job(5)));
        assert_eq!([queue.take().unwrap().page, queue.take().unwrap().page], [2, 4]);
        assert!(queue.take().is_none());
    }

    #[test]
    fn idle_thread_takes_request_beyond_capacity() {
        let queue = Arc::new(Queue::new(0));
        assert!(!queue.offer(job(1)));
        let thread = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.take().map(|job| job.page)
        });
        while !queue.offer(job(2)) {
            thread::yield_now();
        }
        assert_eq!(thread.join().unwrap(), Some(2));
    }
}
