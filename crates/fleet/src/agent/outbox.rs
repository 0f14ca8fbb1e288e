//! What an agent writes: answers and messages, from several threads.
//!
//! A thread of its own writes. Whoever sends only appends to a queue: a coordinator that does not read any more holds up
//! neither a trial nor the thread that notices its silence.

use crate::delivery::Delivery;
use crate::message::FromAgent;
use kurabe_observe::{Answer, Greeting, PROTOCOL};
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the end of the queue is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// The agent's output.
pub(super) struct Outbox {
    inner: Mutex<Inner>,
    /// Lines that are not written yet.
    waiting: Arc<AtomicUsize>,
    /// Why nothing can be written any more.
    failed: Arc<Mutex<Option<io::ErrorKind>>>,
}

struct Inner {
    /// The order of lines is that of their numbers: both are given under one lock, which is held for no write.
    lines: Sender<Vec<u8>>,
    delivery: Delivery<FromAgent>,
}

impl Outbox {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn new(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, from) = channel();
        let (waiting, failed) =
            (Arc::<AtomicUsize>::default(), Arc::<Mutex<Option<io::ErrorKind>>>::default());
        let (left, why) = (Arc::clone(&waiting), Arc::clone(&failed));
        let work = move || {
            if let Err(error) = write_all(output, &from, &left) {
                *lock(&why) = Some(error.kind());
            }
        };
        thread::Builder::new().name("answers".to_owned()).spawn(work)?;
        let inner = Mutex::new(Inner { lines, delivery: Delivery::default() });
        Ok(Self { inner, waiting, failed })
    }

    /// Writes the first line.
    pub(super) fn greet(&self) -> io::Result<()> {
        self.append(&lock(&self.inner), &Greeting { kurabe_agent: PROTOCOL })
    }

    /// Answers a request for an observation.
    pub(super) fn answer(&self, answer: &Answer) -> io::Result<()> {
        self.append(&lock(&self.inner), answer)
    }

    /// Sends a message that must arrive.
    pub(super) fn send(&self, message: FromAgent) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        let frame = inner.delivery.numbered(message, Instant::now());
        self.append(&inner, &frame)
    }

    /// Sends a message that may be lost.
    pub(super) fn send_once(&self, message: FromAgent) -> io::Result<()> {
        let inner = lock(&self.inner);
        let frame = inner.delivery.unnumbered(message);
        self.append(&inner, &frame)
    }

    /// Sends again what was not confirmed.
    pub(super) fn send_again(&self) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        let due = inner.delivery.due(Instant::now());
        due.iter().try_for_each(|frame| self.append(&inner, frame))
    }

    /// Whether a received frame is to be handled.
    pub(super) fn accept(&self, number: u64, seen: u64) -> bool {
        lock(&self.inner).delivery.accept(number, seen)
    }

    /// Whether lines wait because the other side does not read. More of them are of no use then.
    pub(super) fn is_stuck(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits until everything is written, but not longer than this.
    pub(super) fn drain_within(&self, most: Duration) {
        let until = Instant::now() + most;
        while self.is_stuck() && lock(&self.failed).is_none() && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    /// Appends a line.
    ///
    /// # Errors
    /// Why nothing can be written any more.
    fn append(&self, inner: &Inner, message: &impl Serialize) -> io::Result<()> {
        if let Some(kind) = *lock(&self.failed) {
            return Err(kind.into());
        }
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.waiting.fetch_add(1, Ordering::Relaxed);
        inner.lines.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_all(mut output: impl Write, lines: &Receiver<Vec<u8>>, left: &AtomicUsize) -> io::Result<()> {
    for line in lines {
        output.write_all(&line)?;
        output.flush()?;
        left.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}
