//! `kurabe agent`: runs clients, and observes servers of this host, for a run on another host.

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::signals;
use crate::words::agent_labels;
use anyhow::Result;
use kurabe_core::{Error, ErrorKind};
use kurabe_fleet::{Allowed, FleetUrl, Roles};
use std::collections::BTreeMap;
use std::io;

options! {
    /// The options of `kurabe agent`.
    AgentOptions {
        stdio: bool,
        broker: Option<String>,
        role: Option<String>,
        allow: Vec<String>,
        name: Option<String>,
        agent_label: Vec<String>,
    }
}

pub(crate) fn agent(options: &AgentOptions, output: &Output) -> Result<Exit> {
    let name = options.name.as_deref();
    let mut labels = BTreeMap::new();
    for text in &options.agent_label {
        labels.extend(agent_labels(text).map_err(|error| error.context("--agent-label"))?);
    }
    let hosts = options.allow.iter().map(String::as_str);
    // The environment may name a broker for all agents of a host, and those of runs too.
    if let Some(url) = options.broker.as_ref().filter(|_| !options.stdio) {
        let url = FleetUrl::parse(url)
            .map_err(|error| Error::usage(error.to_string().replace("--fleet", "--broker")))?;
        let roles = options.role.as_ref().map_or(Ok(Roles::default()), |text| Roles::parse(text))?;
        let stop = signals::watch(exit::DONE, output)?;
        signals::wait_for("the connections of the current run to close");
        let allowed = Allowed::parse(hosts)?;
        let note = |text: &str| output.note(text);
        kurabe_fleet::serve_nats(&url, name, labels, roles, &allowed, &stop, &note)?;
        return Ok(exit::DONE);
    }
    // A run that starts an agent has the rights of the account that it starts it by.
    let allowed = if options.allow.is_empty() { Allowed::ANY } else { Allowed::parse(hosts)? };
    match kurabe_fleet::serve(io::stdin(), io::stdout(), name, labels, allowed) {
        Ok(()) => Ok(exit::DONE),
        // The run has ended.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::DONE),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::usage(format!("agent: {error}"))
                .hint("a run starts the agent: see ?observe and --fleet")
                .into())
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            Err(Error::new(ErrorKind::Unreachable, format!("agent: {error}")).into())
        }
        Err(error) => Err(Error::new(ErrorKind::Environment, format!("agent: {error}")).into()),
    }
}
