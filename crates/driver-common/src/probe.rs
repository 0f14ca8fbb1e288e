//! What stats probes of several engines share: which sessions are the clients', and probes that have only counters.

use kurabe_core::stats_probe::{Clients, Reading, SessionSample, SnapshotPoint, StatsProbe};
use kurabe_core::{Error, Result};
use std::collections::HashSet;

/// Which of a server's sessions are the clients', by their names, which are in the first column of a list of sessions.
#[derive(Default)]
pub struct ClientSessions {
    /// Sessions that existed before the first client.
    before: HashSet<String>,
    /// The clients' sessions, if each client keeps its session.
    kept: Option<HashSet<String>>,
}

impl ClientSessions {
    /// Removes the sessions of others from a list.
    pub fn retain(&self, sessions: &mut Vec<Vec<String>>) {
        sessions.retain(|row| {
            row.first().is_some_and(|name| {
                !self.before.contains(name) && self.kept.as_ref().is_none_or(|kept| kept.contains(name))
            })
        });
    }

    /// Whether the sessions at this point have to be noted.
    pub fn are_noted(point: SnapshotPoint, clients: &Clients) -> bool {
        point == SnapshotPoint::Before || point == SnapshotPoint::Gate && clients.kept
    }

    /// Notes the sessions at a point, without those of others.
    pub fn note(&mut self, point: SnapshotPoint, sessions: Vec<Vec<String>>) {
        let names = sessions.into_iter().filter_map(|row| row.into_iter().next()).collect();
        if point == SnapshotPoint::Before { self.before = names } else { self.kept = Some(names) }
    }
}

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

    fn background(&self) -> Vec<String> {
        Vec::new()
    }
}
