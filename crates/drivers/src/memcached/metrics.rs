//! Server statistics from `stats`. Source: memcached's `doc/protocol.txt`, "General-purpose statistics".

use super::protocol::Client;
use crate::wire::Stream;
use kurabe_core::stats_probe::{
    Clients, Counter, CounterScope, Reading, SessionSample, SnapshotPoint, StatsProbe,
};
use kurabe_core::{Error, Result};

/// The stats probe's connection.
pub(super) struct MemcachedStatsProbe(pub(super) Client<Stream>);

impl StatsProbe for MemcachedStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            return Ok(reading);
        }
        let stats = self.0.stats("stats")?;
        let missing = "this version has no such counter";
        reading.count(
            Counter::Evictions,
            stats.number("evictions"),
            "evictions",
            CounterScope::Server,
            missing,
        );
        reading.add_unavailable(Counter::LogBytes.word(), "it keeps values in memory only");
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        Err(Error::unsupported("it does not report wait states of its connections"))
    }

    fn port(&self) -> Option<u16> {
        self.0.wire.stream().port()
    }
}
