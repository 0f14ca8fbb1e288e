//! `kurabe observe`: reports this host's server metrics to remote runs.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::{observers, signals};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind};
use kurabe_observe::{Agent, AgentEvent, PORT};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::channel;

pub(super) fn observe(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let token = observers::token(matches.get_one::<PathBuf>("token-file").map(PathBuf::as_path))?;
    let text = matches.get_one::<String>("listen").map_or("", String::as_str);
    let address = address(text).ok_or_else(|| {
        Error::usage(format!("--listen: '{text}' is not an address"))
            .hint("write 10.0.0.5, 10.0.0.5:7117 or [::1]:7117")
    })?;
    let stop = signals::watch(exit::DONE, output)?;
    signals::wait_for("requests in progress");
    let failed = |error: std::io::Error| Error::new(ErrorKind::Environment, format!("{address}: {error}"));
    let refused = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AddrInUse => ErrorKind::InUse,
            std::io::ErrorKind::PermissionDenied => ErrorKind::NotPermitted,
            std::io::ErrorKind::AddrNotAvailable => ErrorKind::Usage,
            _ => ErrorKind::Environment,
        };
        Error::new(kind, format!("cannot listen at {address}: {error}"))
            .hint("choose another address with --listen; port 0 chooses a free port")
    };
    let agent = Agent::listen(address, token).map_err(refused)?;
    output.result(&agent.address().map_err(failed)?.to_string())?;
    output.note("reports this host's server metrics to runs with the token, until Ctrl-C");
    let (tell, asked) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A run sends the same request for each trial.
            let mut known = HashSet::new();
            for asked in asked {
                let message = message(&asked);
                if known.insert(message.clone()) {
                    output.note(&message);
                }
            }
        });
        agent.serve(&stop, &tell);
        drop(tell);
    });
    Ok(exit::DONE)
}

fn address(text: &str) -> Option<SocketAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    text.parse().ok().or_else(|| bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT)))
}

fn message(asked: &AgentEvent) -> String {
    match asked {
        AgentEvent::Watched(from, port) => format!("{} observes the server at port {port}", from.ip()),
        AgentEvent::Refused(from, why) => format!("request of {} refused: {why}", from.ip()),
    }
}
