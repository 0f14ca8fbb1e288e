//! What memcached says of itself: `stats`. Source: memcached's `doc/protocol.txt`, "General-purpose statistics".

use super::protocol::Client;
use crate::wire::Stream;
use kurabe_core::witness::{Clients, EngineCount, Meter, Moment, NotTold, Reach, Reading, Sighting, Witness};
use kurabe_core::{Error, Result};

/// The connection that asks.
pub(super) struct MemcachedWitness(pub(super) Client<Stream>);

impl Witness for MemcachedWitness {
    fn read(&mut self, moment: Moment, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(moment, Moment::Before | Moment::After) {
            return Ok(reading);
        }
        let stats = self.0.stats("stats")?;
        if let Some(value) = stats.get("evictions").and_then(|text| text.parse().ok()) {
            reading.counts.push(EngineCount::new(Meter::Evictions, value, "evictions", Reach::Server));
        }
        let why = "it keeps values in memory alone";
        reading.not_told.push(NotTold { what: Meter::LogBytes.word().to_owned(), why: why.to_owned() });
        Ok(reading)
    }

    fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
        Err(Error::unsupported("it does not tell what its connections wait for"))
    }

    fn port(&self) -> Option<u16> {
        self.0.wire.stream().port()
    }
}
