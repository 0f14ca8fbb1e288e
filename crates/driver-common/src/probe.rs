//! The statistics of servers that have counters, but no statistics of their sessions.

use kurabe_core::stats_probe::{Clients, Reading, SessionSample, SnapshotPoint, StatsProbe};
use kurabe_core::{Error, Result};

/// Reads counters that are exact at any time, over a connection of its own.
pub struct Counters<C> {
    /// The connection.
    pub client: C,
    /// Reads the counters.
    pub read: fn(&mut C, &mut Reading) -> Result<()>,
    /// Why sessions cannot be sampled.
    pub no_samples: &'static str,
    /// The connection's local TCP port.
    pub port: fn(&C) -> Option<u16>,
}

impl<C: Send> StatsProbe for Counters<C> {
    fn snapshot(&mut self, point: SnapshotPoint, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(point, SnapshotPoint::Gate | SnapshotPoint::End) {
            (self.read)(&mut self.client, &mut reading)?;
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        Err(Error::unsupported(self.no_samples))
    }

    fn port(&self) -> Option<u16> {
        (self.port)(&self.client)
    }
}
