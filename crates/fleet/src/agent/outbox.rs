//! What an agent writes: answers and messages, from several threads.

use crate::delivery::Delivery;
use crate::message::{Frame, FromAgent};
use kurabe_observe::{Answer, Greeting, PROTOCOL, send};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The agent's output.
pub(super) struct Outbox(Mutex<Inner>);

struct Inner {
    output: Box<dyn Write + Send>,
    delivery: Delivery<FromAgent>,
}

impl Outbox {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Inner { output: Box::new(output), delivery: Delivery::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the first line.
    pub(super) fn greet(&self) -> io::Result<()> {
        send(&mut self.lock().output, &Greeting { kurabe_agent: PROTOCOL })
    }

    /// Answers a request for an observation.
    pub(super) fn answer(&self, answer: &Answer) -> io::Result<()> {
        send(&mut self.lock().output, answer)
    }

    /// Sends a message that must arrive.
    pub(super) fn send(&self, message: FromAgent) -> io::Result<()> {
        let mut inner = self.lock();
        let frame = inner.delivery.numbered(message, Instant::now());
        send(&mut inner.output, &frame)
    }

    /// Sends a message that may be lost.
    pub(super) fn send_once(&self, message: FromAgent) -> io::Result<()> {
        let mut inner = self.lock();
        let frame = inner.delivery.unnumbered(message);
        send(&mut inner.output, &frame)
    }

    /// Sends again what was not confirmed.
    pub(super) fn send_again(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let due: Vec<Frame<FromAgent>> = inner.delivery.due(Instant::now());
        due.iter().try_for_each(|frame| send(&mut inner.output, frame))
    }

    /// Whether a received frame is to be handled.
    pub(super) fn accept(&self, number: u64, seen: u64) -> bool {
        self.lock().delivery.accept(number, seen)
    }
}
