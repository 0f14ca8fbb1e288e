//! Which cells and targets agents cannot work on.

use kurabe_core::observation::Endpoint;
use kurabe_core::planned::{Connections, Need, PlannedCell};

/// Why the clients of a cell cannot be divided among agents; `None` if they can.
pub(crate) fn refusal(planned: &PlannedCell, is_application: bool) -> Option<String> {
    let why = if planned.is_job() {
        "a job has one client, which cannot be divided among the agents of a fleet"
    } else if is_application {
        "agents do not speak to applications yet"
    } else if !planned.policy.divisible {
        "its clients share what they know with the check after the trial, which Kurabe does not send between machines yet"
    } else if matches!(planned.policy.connections, Connections::Pool(_)) {
        "a connection pool belongs to one process, and cannot be divided among the agents of a fleet"
    } else if planned.idle_connections() > 0 || planned.needs.contains(&Need::ServerMemory) {
        "the memory of idle connections is measured without a fleet only"
    } else if planned.cpus().is_some() {
        "processors are divided between clients and server of one machine, and not among agents"
    } else if planned.cache().is_some() || planned.remote().is_some() {
        "agents do not reach a target through a cache or with a second server yet"
    } else {
        return None;
    };
    Some(format!("{why}; run it without --fleet"))
}

/// Why no agent can reach a target; `None` if one may.
pub(crate) fn unreachable(endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::InProcess => {
            Some("the database runs within the coordinator's process, where no agent reaches it".to_owned())
        }
        Endpoint::Unix(_) => {
            Some("a Unix socket is reached from its own machine only; use the server's TCP port".to_owned())
        }
        Endpoint::Tcp { .. } | Endpoint::Elsewhere(_) | Endpoint::Composite(_) => None,
    }
}
