//! The fleet: agents of a run, and `kurabe agent`, which is one. `left_out` stands in for it in a build without it.

pub(super) use kurabe_fleet::Agents;

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::words::agent_labels;
use crate::{signals, time};
use clap::ArgMatches;
use kurabe_core::run::RunSpec;
use kurabe_core::target::{TargetUrl, is_throwaway};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_fleet::{Allowed, FleetUrl, ReachedServer, Roles, Wanted};
use kurabe_targets::Opened;
use std::collections::BTreeMap;
use std::io;

/// The variable with the command that starts a program at a destination.
const COMMAND: &str = "KURABE_RSH";

/// Has the agents of a run join it. `given` is the fleet's URL with its password. `None` without a fleet, or if nothing is
/// measured.
///
/// # Errors
/// As for [`Agents::join`].
pub(super) fn join(
    spec: &RunSpec,
    given: Option<&str>,
    dry: bool,
    output: &Output,
) -> Result<Option<Agents>> {
    let Some(fleet) = spec.fleet.as_ref().filter(|_| !dry) else { return Ok(None) };
    let wanted = Wanted {
        url: FleetUrl::parse(given.unwrap_or(&fleet.url))?,
        agents: fleet.agents,
        labels: fleet.labels.clone(),
        on_lost: fleet.on_lost_agent,
        command: std::env::var(COMMAND).ok().filter(|command| !command.trim().is_empty()),
    };
    signals::wait_for("the agents to answer");
    let now = time::since_1970().as_secs();
    let agents = Agents::join(&wanted, &format!("{}-{now}", spec.experiment))?;
    let names: Vec<String> = agents.records().into_iter().map(|agent| agent.name).collect();
    let count = if names.len() == 1 { "1 agent".to_owned() } else { format!("{} agents", names.len()) };
    output.note(&format!("{count} joined: {}", names.join(", ")));
    Ok(Some(agents))
}

/// Tells the agents where the targets are. Those that they cannot measure are not measured. Agents observe servers that
/// this program cannot, if their role is to observe and they find them on their hosts.
pub(super) fn reach(mut agents: Agents, opened: &mut Opened, output: &Output) -> Agents {
    for (target, url) in opened.targets.iter_mut().zip(&opened.reached) {
        let refusal = agents.refusal(url, &target.driver.endpoint());
        target.skip_reason = target.skip_reason.take().or(refusal);
    }
    for target in &opened.targets {
        let server = target.driver.endpoint();
        let known = opened.observers.iter().any(|(known, _)| *known == server);
        if !known
            && target.skip_reason.is_none()
            && kurabe_observe::processes(&server).is_err()
            && let Some((name, observer)) = agents.observer_of(&server)
        {
            output.note(&format!("{}: observed by agent {name}", target.name));
            opened.observers.push((server, observer));
        }
    }
    let reached = opened.reached.iter().zip(&opened.second_reached);
    let servers = reached.zip(&opened.targets).map(|((first, second), target)| {
        let is_throwaway = is_throwaway(&target.url);
        let server = |url: &TargetUrl| ReachedServer { url: url.clone(), is_throwaway };
        (server(first), second.as_ref().map(server))
    });
    agents.reach(&servers.collect::<Vec<_>>());
    agents
}

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

pub(crate) fn agent(matches: &ArgMatches, output: &Output) -> anyhow::Result<Exit> {
    let options = AgentOptions::of(matches);
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
