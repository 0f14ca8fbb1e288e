//! A session that holds locks: it changes every row of a store, waits, and rolls back.

use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the rows are locked each time, …
const HELD: Duration = Duration::from_millis(50);
/// … and how long they are free in between.
const FREE: Duration = Duration::from_millis(8);

/// Holds the locks repeatedly until it is dropped, or for a given time.
pub(super) struct Holder {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Holder {
    /// Begins to lock the rows 1 to `rows` of the collection that `update` changes.
    ///
    /// # Errors
    /// The server's error, of the connection or of the first statements.
    pub(super) fn start(driver: &dyn Driver, update: &Operation, rows: u64, time: Duration) -> Result<Self> {
        let mut session = driver.connect(&ConnectOptions::default())?;
        let [begin, update, rollback] =
            [&Operation::Begin, update, &Operation::Rollback].map(|operation| session.prepare(operation));
        let (begin, update, rollback) = (begin?, update?, rollback?);
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let since = Instant::now();
        let run = move || {
            let mut reply = Reply::new();
            while !ended.load(Ordering::SeqCst) && since.elapsed() < time {
                let mut held = session.execute(&begin, &[], &mut reply);
                for row in 1..=rows {
                    let parameters = [Value::Text("held"), Value::Int(row as i64)];
                    held = held.and_then(|()| session.execute(&update, &parameters, &mut reply));
                }
                if held.is_ok() {
                    thread::sleep(HELD);
                }
                // A statement that the server refused ends its transaction too.
                if session.execute(&rollback, &[], &mut reply).is_err() {
                    break;
                }
                thread::sleep(FREE);
            }
            let _ = session.close();
        };
        let thread = thread::Builder::new()
            .name("holder".to_owned())
            .spawn(run)
            .map_err(|e| Error::new(ErrorKind::Limit, format!("no thread to hold a lock in: {e}")))?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
