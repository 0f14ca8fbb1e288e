//! The fleet: agents of a run. `left_out` stands in for it in a build without it.

mod agent;

pub(super) use agent::{AgentOptions, agent};
pub(super) use kurabe_fleet::Agents;

use crate::output::Output;
use crate::{clock, signals};
use kurabe_core::Result;
use kurabe_core::run::RunSpec;
use kurabe_core::target::{TargetUrl, is_throwaway};
use kurabe_fleet::{FleetUrl, ReachedServer, Wanted};
use kurabe_targets::Opened;

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
    let now = clock::since_1970().as_secs();
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
