//! The cost of a client's connections: sums over the measured transactions that opened or obtained one; and the pool of connections
//! that all clients of a trial may share.

use kurabe_core::driver::{ConnectOptions, ConnectTimes, Driver, Session};
use kurabe_core::metric::{
    AUTHENTICATE, CLOSE, CONNECT, CONNECT_ROUND_TRIPS, Metric, MetricValue, REACH, SET_UP, TLS, WAIT,
};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_reactor::{Condition, Lock};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A count and a total, in nanoseconds unless it is of round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    times: u64,
    total: u64,
}

impl Sum {
    fn add(&mut self, took: Duration) {
        self.add_number(took.as_nanos() as u64);
    }

    fn add_number(&mut self, number: u64) {
        self.times += 1;
        self.total += number;
    }
}

/// What is measured of connections.
const PARTS: [Metric; 8] = [CONNECT, REACH, TLS, AUTHENTICATE, SET_UP, CONNECT_ROUND_TRIPS, CLOSE, WAIT];

/// The costs of connections: of each of [`PARTS`], as far as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Connections([Sum; PARTS.len()]);

impl Connections {
    /// Adds a new connection that was ready after this time, with its phases if the driver measures them.
    pub(crate) fn opened(&mut self, took: Duration, parts: Option<ConnectTimes>) {
        let [connect, reach, tls, authenticate, set_up, round_trips, ..] = &mut self.0;
        connect.add(took);
        if let Some(parts) = parts {
            reach.add(parts.reach);
            authenticate.add(parts.authenticate);
            set_up.add(parts.set_up);
            round_trips.add_number(parts.round_trips);
            if let Some(time) = parts.tls {
                tls.add(time);
            }
        }
    }

    /// Adds a closed connection.
    pub(crate) fn closed(&mut self, took: Duration) {
        let [.., close, _] = &mut self.0;
        close.add(took);
    }

    /// Adds a wait for the pool.
    pub(crate) fn waited(&mut self, took: Duration) {
        let [.., wait] = &mut self.0;
        wait.add(took);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.times += other.times;
            sum.total += other.total;
        }
    }

    /// The means of the measured values.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let measured = PARTS.iter().zip(&self.0).filter(|(_, sum)| sum.times > 0);
        measured.map(|(part, sum)| part.value(sum.total as f64 / sum.times as f64)).collect()
    }
}

/// A connection, or the error by which it was lost. The error stays in the slot, so that later clients fail with the
/// same reason instead of waiting forever.
type Slot = Result<Box<dyn Session>>;

/// A pool of connections. The most recently returned one is taken first, as in most pools, since its memory is warm.
pub(crate) struct Pool {
    free: Lock<Vec<Slot>>,
    given_back: Condition,
}

impl Pool {
    /// Opens `size` connections.
    pub(crate) fn open(driver: &dyn Driver, options: &ConnectOptions, size: usize) -> Result<Self> {
        let free = (0..size).map(|_| driver.connect(options).map(Ok)).collect::<Result<Vec<Slot>>>()?;
        Ok(Self { free: Lock::new(free), given_back: Condition::new() })
    }

    /// Takes a connection; waits if all are in use.
    pub(crate) fn take(&self) -> Result<Box<dyn Session>> {
        let mut free = self.free.lock();
        loop {
            match free.pop() {
                Some(Ok(session)) => return Ok(session),
                Some(Err(error)) => {
                    free.push(Err(error.clone()));
                    drop(free);
                    self.given_back.notify_one();
                    return Err(error);
                }
                None => free = self.given_back.wait(free),
            }
        }
    }

    /// Uses a connection and returns it to the pool, or marks it as lost if the work failed.
    pub(crate) fn lend(
        &self,
        mut session: Box<dyn Session>,
        work: impl FnOnce(&mut dyn Session) -> Result<()>,
    ) -> Result<()> {
        let mut slot = Return { pool: self, slot: None };
        let done = work(&mut *session);
        slot.slot = Some(done.clone().map(|()| session));
        done
    }

    fn give(&self, slot: Slot) {
        self.free.lock().push(slot);
        self.given_back.notify_one();
    }

    /// Closes all connections; fails if a server sent unexpected data.
    pub(crate) fn close(self) -> Result<()> {
        let free = self.free.into_inner();
        // All are closed, even if one fails.
        free.into_iter().flatten().map(close_and_check).fold(Ok(()), Result::and)
    }
}

/// Closes a kept connection. An error while closing is ignored, since the results are complete; an unexpected reply
/// is not: it was duplicated or late.
pub(crate) fn close_and_check(session: Box<dyn Session>) -> Result<()> {
    match session.close_checked() {
        Err(error) if matches!(error.kind(), ErrorKind::Protocol | ErrorKind::Timeout) => {
            Err(error.context("closing the connection"))
        }
        _ => Ok(()),
    }
}

/// Returns a slot to the pool even if the work panics.
struct Return<'a> {
    pool: &'a Pool,
    slot: Option<Slot>,
}

impl Drop for Return<'_> {
    fn drop(&mut self) {
        let panicked =
            || Err(Error::new(ErrorKind::Internal, "a client with a connection of the pool panicked"));
        self.pool.give(self.slot.take().unwrap_or_else(panicked));
    }
}

/// Lets a number of threads and tasks through at a time.
pub(crate) struct Semaphore {
    /// How many may still enter.
    free: Lock<usize>,
    left: Condition,
}

impl Semaphore {
    /// A semaphore for at most this many at a time, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self { free: Lock::new(most.max(1)), left: Condition::new() }
    }

    /// Waits until there is room, and then does `what`.
    pub(crate) fn pass<T>(&self, what: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock();
        while *free == 0 {
            free = self.left.wait(free);
        }
        *free -= 1;
        drop(free);
        let _leaves = Leaves(self);
        what()
    }
}

/// Makes room when it is dropped, also if the work panics.
struct Leaves<'a>(&'a Semaphore);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_reactor::Reactor;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn metric_is_mean_of_measured_values_and_absent_without_any() {
        let ms = Duration::from_millis;
        let mut one = Connections::default();
        assert_eq!(one.metrics(), []);
        one.opened(ms(10), None);
        let parts = ConnectTimes {
            reach: ms(1),
            tls: None,
            authenticate: ms(3),
            set_up: ms(2),
            round_trips: 4,
            login: "",
        };
        let mut two = Connections::default();
        two.opened(ms(20), Some(parts));
        two.closed(ms(1));
        one.merge(&two);
        let found: Vec<(String, f64)> =
            one.metrics().into_iter().map(|metric| (metric.name, metric.value)).collect();
        let expected = [
            ("connect", 15e6),
            ("reach", 1e6),
            ("auth", 3e6),
            ("set-up", 2e6),
            ("connect round trips", 4.0),
            ("close", 1e6),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    /// Passes while it notes how many do at once.
    fn pass(semaphore: &Semaphore, inside: &AtomicUsize, most: &AtomicUsize) {
        semaphore.pass(|| {
            most.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            kurabe_reactor::sleep(Duration::from_millis(2));
            inside.fetch_sub(1, Ordering::SeqCst);
        });
    }

    #[test]
    fn threads_and_tasks_pass_a_few_at_a_time() {
        let (semaphore, inside, most) = (Semaphore::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        let one = || pass(&semaphore, &inside, &most);
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(one);
            }
            let tasks: Vec<_> = (0..20).map(|_| one).collect();
            let ended = Reactor::new(tasks, 64 * 1024).unwrap().run();
            assert!(ended.iter().all(Result::is_ok));
        });
        assert_eq!((inside.into_inner(), most.into_inner()), (0, 3));
    }

    #[test]
    fn panic_makes_room() {
        let semaphore = Semaphore::new(1);
        let panics = || semaphore.pass(|| panic!("seven"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(semaphore.pass(|| 7), 7);
    }
}
