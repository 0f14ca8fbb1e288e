//! Agents on other hosts, as in `postgres://me@db.example/shop?observe`.

use kurabe_core::observation::Endpoint;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use kurabe_observe::{DEFAULT_COMMAND, Remote};

/// The URL option; drivers do not see it.
const OPTION: &str = "observe";
/// The environment variable with the command that starts a program at a destination.
const COMMAND: &str = "KURABE_RSH";

/// Takes the option out of a target's URL.
pub(crate) fn taken(url: &mut TargetUrl) -> Option<String> {
    url.options.remove(OPTION)
}

/// The agent at a destination, as `ssh` takes it; without one, at the server's host.
///
/// # Errors
/// If the destination is invalid, or the server is not reached by TCP.
pub(crate) fn named(destination: &str, server: &Endpoint) -> Result<Remote> {
    let Endpoint::Tcp { host, .. } = server else {
        return Err(Error::usage(format!("?{OPTION}: only servers reached by TCP can be observed remotely")));
    };
    let destination = if destination.is_empty() { host } else { destination };
    // ssh would take it for an option, which may name a command.
    if destination.starts_with('-') || destination.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Error::usage(format!("?{OPTION}={destination} is not a destination"))
            .hint("write HOST, USER@HOST, or a name from ssh's configuration"));
    }
    let command = std::env::var(COMMAND).ok().filter(|command| !command.trim().is_empty());
    Ok(Remote::new(command.as_deref().unwrap_or(DEFAULT_COMMAND), destination))
}
