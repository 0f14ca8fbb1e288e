//! What the connections of a trial cost the server: what its processes hold with them open, less what they held just
//! before.

use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::experiment::Footprint;
use kurabe_core::figure::{
    Figure, MEMORY, MEMORY_ADDED, MEMORY_EACH, PRIVATE_EACH, PROCESSES, PROCESSES_ADDED, THREADS,
    THREADS_ADDED, Unit,
};
use kurabe_core::observation::{Holding, Observer};
use kurabe_core::{Error, ErrorKind, Result};
use std::thread;
use std::time::Duration;

/// A server ends the connections of the trial before in its own time, and starts helpers of its own now and then: it is
/// looked at again until it has as many processes and threads as this long before, …
const PAUSE: Duration = Duration::from_millis(40);
/// … but no more often than this.
const LOOKS: u32 = 50;

/// One trial's question, and what is known so far.
pub(crate) struct Asked<'a> {
    what: Footprint,
    driver: &'a dyn Driver,
    observer: &'a dyn Observer,
    before: Holding,
    /// The connections that stand idle.
    idle: Vec<Box<dyn Session>>,
}

impl<'a> Asked<'a> {
    /// Looks at the server before the connections in question are opened: none of the clients' is open yet where
    /// theirs are, and all of them are where it is others.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), with the reason, where the server's processes cannot be seen.
    pub(crate) fn begin(
        what: Footprint,
        driver: &'a dyn Driver,
        observer: Option<&'a dyn Observer>,
    ) -> Result<Option<Self>> {
        // The tool's measurement of itself asks nobody.
        let Some(observer) = observer else { return Ok(None) };
        let before = settled(driver, observer)?;
        Ok(Some(Self { what, driver, observer, before, idle: Vec::new() }))
    }

    /// Opens the idle connections, where such are asked for.
    ///
    /// # Errors
    /// Where the server refuses one.
    pub(crate) fn open(&mut self, options: &ConnectOptions) -> Result<()> {
        let Footprint::Idle(count) = self.what else { return Ok(()) };
        for n in 1..=count {
            let session = self
                .driver
                .connect(options)
                .map_err(|error| error.context(format!("opening connection {n} of {count}")))?;
            self.idle.push(session);
        }
        Ok(())
    }

    /// Looks again, with all connections open, and closes the idle ones. `clients` is how many connections the
    /// clients have.
    ///
    /// # Errors
    /// As for [`Asked::begin`].
    pub(crate) fn end(self, clients: usize) -> Result<Vec<Figure>> {
        let after = settled(self.driver, self.observer)?;
        let connections = match self.what {
            Footprint::Idle(count) => count,
            Footprint::Clients => clients,
        };
        for session in self.idle {
            // What was to be seen has been seen.
            let _ = session.close();
        }
        Ok(figures(&self.before, &after, connections as f64))
    }
}

fn figures(before: &Holding, after: &Holding, connections: f64) -> Vec<Figure> {
    let more = |of: fn(&Holding) -> u64| of(after) as f64 - of(before) as f64;
    let (memory, private) = (more(|h| h.memory_bytes), more(|h| h.private_bytes));
    vec![
        Figure::new(MEMORY, Unit::Bytes, after.memory_bytes as f64),
        Figure::new(MEMORY_ADDED, Unit::Bytes, memory),
        Figure::new(MEMORY_EACH, Unit::Bytes, memory / connections.max(1.0)),
        Figure::new(PRIVATE_EACH, Unit::Bytes, private / connections.max(1.0)),
        Figure::new(PROCESSES, Unit::Count, after.processes as f64),
        Figure::new(PROCESSES_ADDED, Unit::Count, more(|h| h.processes)),
        Figure::new(THREADS, Unit::Count, after.threads as f64),
        Figure::new(THREADS_ADDED, Unit::Count, more(|h| h.threads)),
    ]
}

/// What the server holds once it neither begins nor ends anything any more.
fn settled(driver: &dyn Driver, observer: &dyn Observer) -> Result<Holding> {
    let look = || {
        observer.holding(&driver.endpoint()).map_err(|why| {
            Error::new(ErrorKind::Unsupported, format!("what the server holds is not to be seen: {why}"))
        })
    };
    let mut last = look()?;
    for _ in 0..LOOKS {
        thread::sleep(PAUSE);
        let now = look()?;
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
    fn figures_are_differences_and_may_be_below_nothing() {
        let before = Holding { processes: 5, threads: 5, memory_bytes: 1_000, private_bytes: 400 };
        let after = Holding { processes: 15, threads: 15, memory_bytes: 3_000, private_bytes: 300 };
        let found: Vec<(String, f64)> =
            figures(&before, &after, 10.0).into_iter().map(|figure| (figure.name, figure.value)).collect();
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
