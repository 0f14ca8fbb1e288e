//! What memcached says of itself: `stats`. Source: memcached's `doc/protocol.txt`, "General-purpose statistics".

use super::protocol::Client;
use crate::wire::Stream;
use kurabe_core::witness::{Clients, Meter, Moment, Reach, Reading, Sighting, Witness};
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
        let missing = "this version has no such counter";
        reading.count(Meter::Evictions, stats.number("evictions"), "evictions", Reach::Server, missing);
        reading.refuse(Meter::LogBytes.word(), "it keeps values in memory alone");
        Ok(reading)
    }

    fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
        Err(Error::unsupported("it does not tell what its connections wait for"))
    }

    fn port(&self) -> Option<u16> {
        self.0.wire.stream().port()
    }
}
