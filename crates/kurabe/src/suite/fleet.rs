//! `--fleet`, and the options that belong to it.

use super::Request;
use crate::commands::fleet::shown;
use kurabe_core::fleet::FleetSpec;
use kurabe_core::{Error, Result};
use std::collections::BTreeMap;

/// The maximum number of agents: more would need more ports of the coordinator's broker than one process may open.
const MAX: u64 = 10_000;

/// Reads labels: `rack=a,zone=b`.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if one has no name, or comes twice.
pub(crate) fn labels(text: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for part in text.split(',') {
        let label = part.split_once('=').filter(|(name, _)| !name.trim().is_empty());
        let Some((name, value)) = label else {
            return Err(
                Error::usage(format!("'{part}' is not a label")).hint("write NAME=VALUE, as in rack=a")
            );
        };
        if all.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
            return Err(Error::usage(format!("the label {} is given twice", name.trim())));
        }
    }
    Ok(all)
}

impl Request {
    /// The requested fleet, without its password.
    pub(super) fn fleet_spec(&self) -> Result<Option<FleetSpec>> {
        let Some(url) = &self.beside.fleet else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_names_and_values() {
        let found = labels("rack=a, zone = b").unwrap();
        assert_eq!(
            found.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>(),
            ["rack:a", "zone:b"]
        );
        for wrong in ["", "rack", "=a", "rack=a,rack=b"] {
            assert!(labels(wrong).is_err(), "{wrong}");
        }
    }
}
