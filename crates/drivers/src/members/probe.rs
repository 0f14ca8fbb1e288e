//! The statistics of a target and its remotes: those of the target, and statements and session samples of the remotes.
//!
//! Counters are the target's alone: a counter of both servers would describe neither.

use crate::prelude::*;

/// Reads the statistics of a target and of its remotes. Texts of a remote begin with its name.
pub(super) struct CompositeProbe {
    own: Box<dyn StatsProbe>,
    remotes: Vec<Remote>,
}

struct Remote {
    name: &'static str,
    /// The probe, or why there is none, as a clause.
    probe: Result<Box<dyn StatsProbe>, String>,
    /// Whether it cannot sample sessions.
    silent: bool,
}

impl CompositeProbe {
    /// `remotes`: the name of each, and its probe.
    pub(super) fn new(
        own: Box<dyn StatsProbe>,
        remotes: impl Iterator<Item = (&'static str, Result<Box<dyn StatsProbe>>)>,
    ) -> Self {
        let remote = |(name, probe): (_, Result<_>)| Remote {
            name,
            probe: probe.map_err(|error| error.to_string()),
            silent: false,
        };
        Self { own, remotes: remotes.map(remote).collect() }
    }
}

impl StatsProbe for CompositeProbe {
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading> {
        let mut reading = self.own.snapshot(point, clients)?;
        for remote in &mut self.remotes {
            let name = remote.name;
            let found = match &mut remote.probe {
                Ok(probe) => probe.snapshot(point, clients).map_err(|error| error.to_string()),
                Err(why) => Err(why.clone()),
            };
            match found {
                Ok(found) => {
                    reading.statements.extend(found.statements.into_iter().map(|statement| StatementUse {
                        text: shortened(&format!("{name}: {}", statement.text)),
                        ..statement
                    }));
                    for missing in found.unavailable {
                        reading.add_unavailable(&format!("{name}: {}", missing.what), missing.why);
                    }
                }
                Err(why) => {
                    reading.add_unavailable(&format!("{name}: all statistics"), why.clone());
                    remote.probe = Err(why);
                }
            }
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, clients: &Clients) -> Result<Vec<SessionSample>> {
        let mut all = self.own.sample_sessions(clients)?;
        for remote in &mut self.remotes {
            let Ok(probe) = remote.probe.as_mut().map_err(|_| ()) else { continue };
            if remote.silent {
                continue;
            }
            // A remote that does not answer is no reason against the target's samples. Its snapshot reports why.
            let Ok(found) = probe.sample_sessions(clients) else {
                remote.silent = true;
                continue;
            };
            let named =
                |text: String| if text.is_empty() { text } else { format!("{}: {text}", remote.name) };
            all.extend(found.into_iter().map(|sample| SessionSample {
                wait_state: sample.wait_state,
                state: named(sample.state),
                event: named(sample.event),
                statement: named(sample.statement),
            }));
        }
        Ok(all)
    }

    fn background(&self) -> Vec<String> {
        self.own.background()
    }

    fn port(&self) -> Option<u16> {
        self.own.port()
    }
}
