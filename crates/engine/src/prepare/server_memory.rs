//! The memory cost of connections on the server: the memory of its processes with connections open, minus that just
//! before.

use kurabe_core::driver::Driver;
use kurabe_core::metric::{
    MEMORY, MEMORY_ADDED, MEMORY_EACH, MetricValue, PRIVATE_EACH, PROCESSES, PROCESSES_ADDED, THREADS,
    THREADS_ADDED,
};
use kurabe_core::observation::{MemoryUsage, Observer};
use kurabe_core::{Error, ErrorKind, Result};
use std::thread;
use std::time::Duration;

/// A server closes the previous trial's connections in its own time, and sometimes starts helper processes. It is
/// sampled until the number of processes and threads has not changed for this long, …
const PAUSE: Duration = Duration::from_millis(40);
/// … but at most this often.
const SAMPLES: u32 = 50;

/// The server's memory before the connections were opened.
pub(crate) struct MemoryReading<'a> {
    driver: &'a dyn Driver,
    observer: &'a dyn Observer,
    before: MemoryUsage,
}

impl<'a> MemoryReading<'a> {
    /// Samples the server before the connections are opened. Returns `None` without an observer, as for the tool's
    /// own overhead.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) with the reason if the server's processes cannot be observed.
    pub(crate) fn begin(driver: &'a dyn Driver, observer: Option<&'a dyn Observer>) -> Result<Option<Self>> {
        let Some(observer) = observer else { return Ok(None) };
        Ok(Some(Self { driver, observer, before: steady(driver, observer)? }))
    }

    /// Samples the server again with that many connections open.
    pub(crate) fn end(self, connections: usize) -> Result<Vec<MetricValue>> {
        let after = steady(self.driver, self.observer)?;
        Ok(metrics(&self.before, &after, connections as f64))
    }
}

fn metrics(before: &MemoryUsage, after: &MemoryUsage, connections: f64) -> Vec<MetricValue> {
    let more = |of: fn(&MemoryUsage) -> u64| of(after) as f64 - of(before) as f64;
    let (memory, private) = (more(|h| h.memory_bytes), more(|h| h.private_bytes));
    vec![
        MEMORY.value(after.memory_bytes as f64),
        MEMORY_ADDED.value(memory),
        MEMORY_EACH.value(memory / connections.max(1.0)),
        PRIVATE_EACH.value(private / connections.max(1.0)),
        PROCESSES.value(after.processes as f64),
        PROCESSES_ADDED.value(more(|h| h.processes)),
        THREADS.value(after.threads as f64),
        THREADS_ADDED.value(more(|h| h.threads)),
    ]
}

/// The server's memory usage once it starts and ends no processes or threads.
fn steady(driver: &dyn Driver, observer: &dyn Observer) -> Result<MemoryUsage> {
    let sample = || {
        observer.memory_usage(&driver.endpoint()).map_err(|why| {
            Error::new(ErrorKind::Unsupported, format!("the memory of the server cannot be read: {why}"))
        })
    };
    let mut last = sample()?;
    for _ in 0..SAMPLES {
        thread::sleep(PAUSE);
        let now = sample()?;
        let same = (now.processes, now.threads) == (last.processes, last.threads);
        last = now;
        if same {
            break;
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_differences_may_be_negative() {
        let before = MemoryUsage { processes: 5, threads: 5, memory_bytes: 1_000, private_bytes: 400 };
        let after = MemoryUsage { processes: 15, threads: 15, memory_bytes: 3_000, private_bytes: 300 };
        let found: Vec<(String, f64)> =
            metrics(&before, &after, 10.0).into_iter().map(|metric| (metric.name, metric.value)).collect();
        let expected = [
            ("memory", 3_000.0),
            ("added", 2_000.0),
            ("each", 200.0),
            ("private each", -10.0),
            ("processes", 15.0),
            ("processes added", 10.0),
            ("threads", 15.0),
            ("threads added", 10.0),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
