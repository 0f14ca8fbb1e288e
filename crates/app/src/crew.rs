//! The workers: threads that wait for clients, read what they ask for, ask the database, and answer.

use crate::answer::Answer;
use crate::catalogue::Catalogue;
use crate::door::{Door, HANDFUL};
use crate::host::Host;
use crate::queue::{Job, Queue, Turn};
use crate::seat::{Ledger, Seat, Tally};
use crate::{Application, Connection};
use kurabe_core::experiment::Client;
use kurabe_core::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// A worker runs no deep recursion; drivers that parse certificates need the most of it.
const STACK: usize = 512 * 1024;

/// What all who attend to clients share.
pub(crate) struct Office {
    pub application: Application,
    pub catalogue: Catalogue,
    pub door: Door,
    pub queue: Queue,
    pub ledger: Ledger,
    pub counts: Counts,
    /// No further request is to be waited for.
    pub stopping: AtomicBool,
    seats: Seats,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub malformed: AtomicU64,
}

impl Counts {
    pub(crate) fn one(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The places that nobody sits on.
struct Seats {
    free: Mutex<Vec<Seat>>,
    freed: Condvar,
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Seat {
        let mut free = self.lock();
        loop {
            // The one that was used last is the one whose connection the server remembers best.
            if let Some(seat) = free.pop() {
                return seat;
            }
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, seat: Seat) {
        self.lock().push(seat);
        self.freed.notify_one();
    }
}

impl Office {
    pub(crate) fn new(application: Application, door: Door) -> Self {
        let catalogue = Catalogue::new(&application);
        let count = application.options.seats();
        let seed = application.options.seed;
        let seat = |index| {
            let part = application.options.part;
            // Those of the other applications are other clients of the same data.
            let index = index + (part.number - 1) * count;
            let client =
                Client { index, count: count * part.of, seed: seed.wrapping_add(index as u64), trial: 1 };
            Seat::new(client, catalogue.pages.len())
        };
        let seats = Seats { free: Mutex::new((0..count).map(seat).collect()), freed: Condvar::new() };
        let queue = Queue::new(application.options.queue);
        Self {
            application,
            catalogue,
            door,
            queue,
            ledger: Ledger::default(),
            counts: Counts::default(),
            stopping: AtomicBool::new(false),
            seats,
        }
    }

    /// Whether no further request is to be waited for.
    pub(crate) fn stops(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// One worker's life: until the queue is closed and empty. It waits for clients, as all that are free do, and does
    /// itself what they ask for: a request changes threads once, when the kernel wakes whoever waits for it.
    fn work(&self) {
        let pooled = matches!(self.application.options.connection, Connection::Pool(_));
        let mut own = if pooled { None } else { Some(self.seats.take()) };
        let mut host = Host::new(self);
        let (mut one, mut many) = (Vec::with_capacity(1), Vec::with_capacity(HANDFUL));
        loop {
            let job = match self.queue.next() {
                Turn::Job { job, more } => {
                    if more {
                        self.door.ring();
                    }
                    Some(job)
                }
                Turn::Wait { alone } => {
                    // Where others wait too, the kernel hands out what there is among them. Where none does, what there
                    // is has to be let in at least, since it may have to be refused.
                    let news = if alone { &mut many } else { &mut one };
                    self.door.wait(news);
                    self.queue.woke();
                    host.receive(news, alone, true)
                }
                Turn::End => {
                    // Each wakes the next.
                    self.door.ring();
                    break;
                }
            };
            let Some(Job { page, key, conversation }) = job else { continue };
            let mut seat = own.take().unwrap_or_else(|| self.seats.take());
            // Some drivers panic where they know no further.
            let served = catch_unwind(AssertUnwindSafe(|| {
                seat.serve(&self.application, &self.catalogue, &self.ledger, page, key)
            }));
            let answer = served.unwrap_or_else(|_| {
                seat.abandon();
                Answer::says(500, "the database's client panicked")
            });
            if pooled {
                self.seats.give_back(seat);
            } else {
                own = Some(seat);
            }
            host.reply(conversation, &answer);
        }
        if let Some(seat) = own {
            self.seats.give_back(seat);
        }
    }

    /// Closes all connections to the database, and says what was done on each. Workers have ended.
    pub(crate) fn close(&self) -> Vec<Tally> {
        std::mem::take(&mut *self.seats.lock())
            .into_iter()
            .flat_map(|seat| seat.close(&self.catalogue))
            .collect()
    }
}

/// Starts the workers.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit) where this machine has no more threads; those that were started end again.
pub(crate) fn start(office: &Arc<Office>) -> Result<Vec<JoinHandle<()>>> {
    let count = office.application.options.workers;
    let mut workers = Vec::with_capacity(count);
    for index in 0..count {
        let own = Arc::clone(office);
        let started = thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(STACK)
            .spawn(move || own.work());
        match started {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                office.queue.close();
                office.door.ring();
                return Err(Error::new(
                    ErrorKind::Limit,
                    format!("worker {index} of {count} got no thread: {error}"),
                )
                .hint("ask for fewer --workers"));
            }
        }
    }
    Ok(workers)
}
