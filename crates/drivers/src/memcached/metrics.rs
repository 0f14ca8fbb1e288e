//! Server statistics from `stats`. Source: memcached's `doc/protocol.txt`, "General-purpose statistics".

use super::protocol::Client;
use crate::probe::Counters;
use crate::wire::Stream;
use kurabe_core::Result;
use kurabe_core::stats_probe::{Counter, CounterScope, Reading};

pub(super) fn probe(client: Client<Stream>) -> Counters<Client<Stream>> {
    let no_samples = "it does not report wait states of its connections";
    Counters { client, read, no_samples, port: |client| client.wire.stream().port() }
}

fn read(client: &mut Client<Stream>, reading: &mut Reading) -> Result<()> {
    let evictions = client.stats("stats")?.number("evictions");
    let missing = "this version has no such counter";
    reading.count(Counter::Evictions, evictions, "evictions", CounterScope::Server, missing);
    reading.add_unavailable(Counter::LogBytes.word(), "it keeps values in memory only");
    Ok(())
}
