//! What Redis and Valkey say of themselves: `INFO`. Source: <https://redis.io/docs/latest/commands/info/>.

use super::connect::lines;
use super::protocol::Client;
use crate::wire::Stream;
use kurabe_core::witness::{Clients, EngineCount, Meter, Moment, NotTold, Reach, Reading, Sighting, Witness};
use kurabe_core::{Error, Result};
use std::collections::BTreeMap;

/// The connection that asks.
pub(super) struct RedisWitness(pub(super) Client<Stream>);

impl Witness for RedisWitness {
    fn read(&mut self, moment: Moment, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        // All counters are exact at any moment: one thread serves everybody.
        if matches!(moment, Moment::Before | Moment::After) {
            return Ok(reading);
        }
        match self.0.ask_text(&["INFO"]) {
            Ok(node) => counts(&lines(&node), &mut reading),
            Err(error) if error.server_code().is_some() => {
                reading.not_told.push(not_told("anything", &format!("INFO may not be read: {error}")));
            }
            Err(error) => return Err(error),
        }
        Ok(reading)
    }

    fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
        Err(Error::unsupported(
            "it works on one request after the other, so that none waits for what another session holds",
        ))
    }

    fn port(&self) -> Option<u16> {
        self.0.wire.stream().port()
    }
}

fn counts(info: &BTreeMap<String, String>, reading: &mut Reading) {
    let number = |name: &str| info.get(name).and_then(|text| text.trim().parse::<u64>().ok());
    let mut add = |what, value: Option<u64>, from: &str| match value {
        Some(value) => reading.counts.push(EngineCount::new(what, value, from, Reach::Server)),
        None => reading.not_told.push(not_told(what.word(), "this version has no such counter")),
    };
    add(Meter::Evictions, number("evicted_keys"), "evicted_keys");
    let copies = number("rdb_saves").zip(number("aof_rewrites")).map(|(saves, rewrites)| saves + rewrites);
    add(Meter::Checkpoints, copies, "rdb_saves + aof_rewrites");
    match (number("aof_enabled"), number("aof_current_size")) {
        (Some(1), Some(size)) => {
            // A log that is written anew is another one: its size says nothing of what came to the one before.
            let from = format!("aof_current_size, log {}", number("aof_rewrites").unwrap_or(0));
            add(Meter::LogBytes, Some(size), &from);
        }
        _ => reading.not_told.push(not_told("log bytes", "the server keeps no append-only file")),
    }
}

fn not_told(what: &str, why: &str) -> NotTold {
    NotTold { what: what.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: &[(&str, &str)]) -> Reading {
        let info = info.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut reading = Reading::default();
        counts(&info, &mut reading);
        reading
    }

    #[test]
    fn a_log_that_was_written_anew_is_not_taken_for_the_one_before() {
        let size = |rewrites| {
            let found = read(&[
                ("aof_enabled", "1"),
                ("aof_current_size", "90"),
                ("aof_rewrites", rewrites),
                ("rdb_saves", "0"),
            ]);
            found.counts.into_iter().find(|count| count.what == Meter::LogBytes).unwrap().from
        };
        assert_eq!(size("1"), size("1"));
        assert_ne!(size("1"), size("2"));
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let found = read(&[("aof_enabled", "0"), ("evicted_keys", "3")]);
        assert_eq!(found.counts.len(), 1);
        let untold: Vec<&str> = found.not_told.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(untold, ["checkpoints", "log bytes"]);
    }
}
