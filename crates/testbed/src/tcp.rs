//! The listener of `tcp:` targets, which this program contains.

use std::env;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::ExitCode;

use kurabe_tcp::Listener;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::options::Spec;
use crate::{supervisor, wire};

/// The word after [`supervisor::SUBCOMMAND`] with which this program becomes a listener.
pub(crate) const LISTEN: &str = "listen";

pub(crate) static TCP: Engine =
    Engine { check, ..Engine::new("tcp", "it is part of the program", find, command, ping, url) };

fn find() -> Result<Installed, String> {
    let program = env::current_exe().map_err(|error| format!("this program has no path ({error})"))?;
    Ok(Installed { program, version: env!("CARGO_PKG_VERSION").to_owned() })
}

fn check(spec: &Spec) -> Result<(), String> {
    let has_options = !spec.settings.is_empty() || spec.tls || spec.socket_only || spec.password.is_some();
    if has_options { Err("a listener has no settings".to_owned()) } else { Ok(()) }
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // The program of this process, even if the file was replaced by a new build.
    Launch::new("/proc/self/exe").arg(supervisor::SUBCOMMAND).arg(LISTEN).arg(instance.port.to_string())
}

fn ping(instance: &Instance, _pid: u32) -> Result<(), String> {
    wire::tcp(instance.port)
}

fn url(instance: &Instance) -> String {
    format!("tcp://127.0.0.1:{}", instance.port)
}

/// Becomes a listener on the port of 127.0.0.1 that the argument names, until the process ends.
pub(crate) fn listen(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let port = args.next().and_then(|port| port.to_str()?.parse().ok());
    let Some(port) = port else { return ExitCode::from(2) };
    let served = Listener::bind((Ipv4Addr::LOCALHOST, port).into()).and_then(Listener::serve);
    // The supervisor sees that it has ended, and that the port is free again.
    ExitCode::from(u8::from(served.is_err()))
}
