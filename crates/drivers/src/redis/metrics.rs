//! Server statistics of Redis and Valkey, from `INFO`. One thread serves all clients, so they are always exact.
//! Source: <https://redis.io/docs/latest/commands/info/>.

use super::connect::lines;
use super::protocol::Client;
use crate::probe::Counters;
use crate::reported::Reported;
use crate::wire::Stream;
use kurabe_core::Result;
use kurabe_core::stats_probe::{Counter, CounterScope, Reading};

pub(super) fn probe(client: Client<Stream>) -> Counters<Client<Stream>> {
    let no_samples = "it executes one request at a time, so no request waits for another session";
    Counters { client, read, no_samples, port: |client| client.wire.stream().port() }
}

fn read(client: &mut Client<Stream>, reading: &mut Reading) -> Result<()> {
    let asked = client.ask_text(&["INFO"]);
    if let Some(node) = reading.reported(asked, "all statistics", "INFO may not be read: ")? {
        counts(&lines(&node), reading);
    }
    Ok(())
}

fn counts(info: &Reported, reading: &mut Reading) {
    let mut count = |what, value, from: &str, missing| {
        reading.count(what, value, from, CounterScope::Server, missing);
    };
    let missing = "this version has no such counter";
    count(Counter::Evictions, info.number("evicted_keys"), "evicted_keys", missing);
    let (saves, rewrites) = (info.number("rdb_saves"), info.number("aof_rewrites"));
    let copies = saves.zip(rewrites).map(|(saves, rewrites)| saves + rewrites);
    count(Counter::Checkpoints, copies, "rdb_saves + aof_rewrites", missing);
    // A rewrite starts a new log, whose size cannot be compared with that of the previous one.
    let from = format!("aof_current_size, log {}", rewrites.unwrap_or(0));
    let log = info.number("aof_current_size").filter(|_| info.number("aof_enabled") == Some(1));
    count(Counter::LogBytes, log, &from, "the server keeps no append-only file");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: &[(&str, &str)]) -> Reading {
        let mut reading = Reading::default();
        counts(&info.into(), &mut reading);
        reading
    }

    #[test]
    fn sizes_of_rewritten_logs_are_not_compared() {
        let size = |rewrites| {
            let found = read(&[
                ("aof_enabled", "1"),
                ("aof_current_size", "90"),
                ("aof_rewrites", rewrites),
                ("rdb_saves", "0"),
            ]);
            found.counts.into_iter().find(|count| count.what == Counter::LogBytes).unwrap().from
        };
        assert_eq!(size("1"), size("1"));
        assert_ne!(size("1"), size("2"));
    }

    #[test]
    fn missing_counters_are_unavailable() {
        let found = read(&[("aof_enabled", "0"), ("evicted_keys", "3")]);
        assert_eq!(found.counts.len(), 1);
        let unavailable: Vec<&str> = found.unavailable.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(unavailable, ["checkpoints", "log bytes"]);
    }
}
