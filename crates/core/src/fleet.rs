//! A fleet: machines whose agents run the clients of a run's trials. The program that plans, verifies and records is the
//! coordinator.

use crate::defaults::is_default;
use crate::observation::ProcessUse;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The fleet that the user requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSpec {
    /// Where the agents are reached, without a password: `nats://HOST`, or `ssh:HOST,HOST`.
    pub url: String,
    /// The number of agents; `None`, and not written: all that answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
    /// The labels that each agent must have; empty, and not written: any agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What becomes of a run that loses an agent; not written if it is the default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_lost_agent: OnLostAgent,
}

/// What becomes of a run that loses an agent. The trial that was lost with it has failed in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLostAgent {
    /// Further trials fail too.
    #[default]
    Fail,
    /// The trial is repeated on the remaining agents, and the run goes on with them.
    Continue,
}

impl OnLostAgent {
    /// Parses `fail` or `continue`.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim() {
            "fail" => Ok(Self::Fail),
            "continue" => Ok(Self::Continue),
            other => Err(Error::usage(format!("'{other}' is not known here")).hint("write fail or continue")),
        }
    }
}

/// An agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its name, which is unique in the run.
    pub name: String,
    /// The name of its machine.
    pub host: String,
    /// Logical processors that it may use.
    pub cpus: u64,
    /// Its operating system and kernel.
    pub system: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What the agents did in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetUse {
    /// The time between the first agent's start and the last one's, in nanoseconds, by the coordinator's clock.
    pub start_spread_ns: u64,
    /// The agents that had clients, in the order of the run's agents.
    pub agents: Vec<AgentUse>,
}

/// What one agent did in one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUse {
    /// The agent's name.
    pub name: String,
    /// The number of its clients.
    pub clients: u64,
    /// The threads that served them.
    pub threads: u64,
    /// Transactions that they completed in the measured phase.
    pub completed: u64,
    /// Its start after the first agent's, in nanoseconds.
    pub start_ns: u64,
    /// The maximum error of the comparison of its clock with the coordinator's, in nanoseconds: half of the shortest
    /// round trip.
    pub clock_error_ns: u64,
    /// The length of its observation, in nanoseconds.
    pub wall_ns: u64,
    /// Its process; `None` if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ProcessUse>,
}

/// The largest share of a trial's time by which agents may start apart.
const APART: f64 = 0.01;

impl FleetUse {
    /// Whether the agents started too far apart for a trial of this many nanoseconds.
    pub fn started_apart(&self, elapsed_ns: u64) -> bool {
        self.start_spread_ns as f64 > elapsed_ns as f64 * APART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_not_written() {
        let spec = |on_lost_agent| FleetSpec { on_lost_agent, ..FleetSpec::default() };
        let written = |on_lost_agent| serde_json::to_string(&spec(on_lost_agent)).unwrap();
        assert!(!written(OnLostAgent::Fail).contains("lost"));
        assert!(written(OnLostAgent::Continue).contains(r#""on_lost_agent":"continue""#));
        assert!(OnLostAgent::parse("retry").is_err());
    }

    #[test]
    fn agents_may_start_one_percent_of_the_trial_apart() {
        let used = |start_spread_ns| FleetUse { start_spread_ns, agents: Vec::new() };
        assert!(!used(10_000_000).started_apart(1_000_000_000));
        assert!(used(10_000_001).started_apart(1_000_000_000));
    }
}
