//! A hook that delivers data later, as a long cable does.

use crate::hook::{End, Ends, Hook};
use crate::listener::POLL;
use crate::lock::lock;
use crate::socket::Way;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Delivers each piece so much later. Pieces do not wait for each other.
pub struct Late {
    delays: [Duration; 2],
    held: Arc<AtomicBool>,
    queues: [Mutex<Option<Queue>>; 2],
}

/// The pieces on the way, and the thread that delivers them.
type Queue = (Sender<(Instant, Vec<u8>)>, JoinHandle<()>);

impl Late {
    /// With these delays of requests and of answers. Nothing is delivered while `held` is set.
    pub fn new(requests: Duration, answers: Duration, held: &Arc<AtomicBool>) -> Self {
        Self { delays: [requests, answers], held: Arc::clone(held), queues: Default::default() }
    }

    fn deliver(&self, ends: &Ends) -> io::Result<Queue> {
        let (put, take) = channel::<(Instant, Vec<u8>)>();
        let (mut to, held) = (ends.to.handle(), Arc::clone(&self.held));
        let thread = thread::Builder::new().name("late".to_owned()).spawn(move || {
            for (due, piece) in take {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                while held.load(Ordering::SeqCst) {
                    thread::sleep(POLL);
                }
                if to.write_all(&piece).is_err() {
                    return;
                }
            }
        })?;
        Ok((put, thread))
    }
}

impl Hook for Late {
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        let mut queue = lock(&self.queues[way as usize]);
        if queue.is_none() {
            *queue = Some(self.deliver(ends)?);
        }
        let due = Instant::now() + self.delays[way as usize];
        let sent = queue.as_ref().is_some_and(|(put, _)| put.send((due, piece.to_vec())).is_ok());
        if sent { Ok(()) } else { Err(ErrorKind::BrokenPipe.into()) }
    }

    fn ended(&self, way: Way, end: End) {
        // The end must not overtake what is on the way.
        if end != End::Relay
            && let Some((put, thread)) = lock(&self.queues[way as usize]).take()
        {
            drop(put);
            let _ = thread.join();
        }
    }
}
