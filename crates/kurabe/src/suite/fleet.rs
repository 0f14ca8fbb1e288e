//! `--fleet`, and the options that belong to it.

use super::Request;
#[cfg(not(feature = "fleet"))]
use crate::left_out::fleet::shown;
use kurabe_core::fleet::FleetSpec;
use kurabe_core::{Error, Result};

/// The maximum number of agents: more would need more ports of the coordinator's broker than one process may open.
const MAX: u64 = 10_000;

/// A fleet's URL without its password.
#[cfg(feature = "fleet")]
fn shown(url: &str) -> Result<String> {
    Ok(kurabe_fleet::FleetUrl::parse(url)?.shown())
}

impl Request {
    /// The requested fleet, without its password.
    pub(super) fn fleet_spec(&self) -> Result<Option<FleetSpec>> {
        let Some(url) = &self.companions.fleet else {
            let given = [
                (self.agents.is_some(), "--agents"),
                (!self.labels.is_empty(), "--agent-label"),
                (self.on_lost_agent.is_some(), "--on-lost-agent"),
            ];
            let Some((_, option)) = given.into_iter().find(|(given, _)| *given) else { return Ok(None) };
            return Err(Error::usage(format!("{option} needs --fleet")).hint("add --fleet nats://HOST:4222"));
        };
        if self.agents.is_some_and(|agents| !(1..=MAX).contains(&agents)) {
            return Err(Error::usage("--agents is out of range").hint(format!("from 1 to {MAX}")));
        }
        let url = shown(url)?;
        let agents = self.agents.map(|agents| agents as u32);
        let on_lost_agent = self.on_lost_agent.unwrap_or_default();
        Ok(Some(FleetSpec { url, agents, labels: self.labels.clone(), on_lost_agent }))
    }
}
