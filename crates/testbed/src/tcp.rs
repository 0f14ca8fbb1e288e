//! The listener of `tcp:` targets, which this program contains.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;

use kurabe_os::account::Accounts;
use kurabe_tcp::Listener;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::spec::Spec;
use crate::supervisor::messages::SUBCOMMAND;

/// The word after [`SUBCOMMAND`] with which this program becomes a listener.
pub(crate) const LISTEN: &str = "listen";

pub(crate) static TCP: Engine = Engine {
    check,
    own_host: true,
    ..Engine::new(
        "tcp",
        "it is part of the program",
        find,
        command,
        |instance, _| instance.accepts(),
        |instance| format!("tcp://{}:{}", instance.address(), instance.port),
    )
};

fn find() -> Result<Installed, String> {
    let program = env::current_exe().map_err(|error| format!("this program has no path ({error})"))?;
    Ok(Installed { program, version: env!("CARGO_PKG_VERSION").to_owned() })
}

fn check(spec: &Spec) -> Result<(), String> {
    if spec.tls || spec.socket_only || spec.password.is_some() {
        return Err("a listener has neither TLS nor a password".to_owned());
    }
    if spec.settings.is_empty() { Ok(()) } else { Err("a listener has one setting: mtu".to_owned()) }
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // The program of this process, even if the file was replaced by a new build. Its parent is the supervisor.
    Launch::new(format!("/proc/{}/exe", std::process::id()))
        .args([SUBCOMMAND, LISTEN])
        .arg(instance.port.to_string())
        .arg(instance.address().to_string())
}

/// Becomes a listener until the process ends. The arguments are a port and an address.
pub(crate) fn listen(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let port = args.next().and_then(|port| port.to_str()?.parse().ok());
    let address: Option<Ipv4Addr> = args.next().and_then(|address| address.to_str()?.parse().ok());
    let Some((port, address)) = port.zip(address) else { return ExitCode::from(2) };
    // On a host of its own, clients are of the host on which the supervisor is, its parent.
    let accounts = if address.is_loopback() {
        Accounts::new()
    } else {
        Accounts::in_network_of(std::os::unix::process::parent_id())
    };
    let listener =
        accounts.and_then(|all| Listener::bind(SocketAddrV4::new(address, port).into(), Some(all)));
    let served = listener.and_then(Listener::serve);
    // The supervisor sees that it has ended, and that the port is free again.
    ExitCode::from(u8::from(served.is_err()))
}
