//! The listener of `tcp:` targets, which this program contains.
//!
//! With the setting `mtu` it runs in a network namespace of its own, at the other end of a pair of virtual devices with
//! this MTU. The kernel removes namespace and devices when the listener ends, in whatever way.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::ExitCode;

use kurabe_tcp::Listener;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::options::Spec;
use crate::{supervisor, wire};

/// The word after [`supervisor::SUBCOMMAND`] with which this program becomes a listener.
pub(crate) const LISTEN: &str = "listen";

pub(crate) static TCP: Engine =
    Engine { check, ..Engine::new("tcp", "it is part of the program", find, command, ping, url) };

/// The name of the only setting.
const MTU: &str = "mtu";
/// The MTU that every host must support (RFC 8200, section 5), and the largest one of a virtual device.
const MTUS: std::ops::RangeInclusive<u32> = 1_280..=65_535;

/// Run by a shell in a new network namespace, whose parent process is in the host's: creates the pair of devices, and
/// then becomes the listener. Arguments: MTU, address of the host's end, that of the other end, name of the host's
/// device, port, subcommand and its first word.
const BEHIND_DEVICES: &str = r#"
set -e
host="nsenter -t $PPID -n"
$host ip link del dev "$4" 2>/dev/null || true
$host ip link add name "$4" mtu "$1" type veth peer name far mtu "$1" netns $$
ip link set dev lo up
ip addr add "$3/30" dev far
ip link set dev far up
$host ip link set dev "$4" up
$host ip addr add "$2/30" dev "$4"
exec "/proc/$PPID/exe" "$6" "$7" "$5" "$3"
"#;

fn find() -> Result<Installed, String> {
    let program = env::current_exe().map_err(|error| format!("this program has no path ({error})"))?;
    Ok(Installed { program, version: env!("CARGO_PKG_VERSION").to_owned() })
}

fn check(spec: &Spec) -> Result<(), String> {
    if spec.tls || spec.socket_only || spec.password.is_some() {
        return Err("a listener has neither TLS nor a password".to_owned());
    }
    for (name, value) in &spec.settings {
        if name != MTU {
            return Err(format!("a listener has one setting: {MTU}"));
        }
        if !value.parse().is_ok_and(|mtu: u32| MTUS.contains(&mtu)) {
            return Err(format!("{MTU}={value} is not a number from {} to {}", MTUS.start(), MTUS.end()));
        }
    }
    if mtu(spec).is_some() && !rustix::process::geteuid().is_root() {
        return Err(format!("{MTU}= needs a network namespace, which takes root"));
    }
    Ok(())
}

fn mtu(spec: &Spec) -> Option<&str> {
    spec.settings.iter().find(|(name, _)| name == MTU).map(|(_, value)| value.as_str())
}

/// The addresses of both ends of the pair of devices: a network of four addresses for each port, of those that are
/// reserved for benchmarks (RFC 2544).
fn ends(port: u16) -> [Ipv4Addr; 2] {
    let network = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + 4 * u32::from(port % (1 << 15));
    [1, 2].map(|host| Ipv4Addr::from(network + host))
}

fn address(instance: &Instance) -> SocketAddrV4 {
    let [_, far] = ends(instance.port);
    SocketAddrV4::new(mtu(&instance.spec).map_or(Ipv4Addr::LOCALHOST, |_| far), instance.port)
}

fn command(instance: &Instance, _first: bool) -> Launch {
    let port = instance.port.to_string();
    let Some(mtu) = mtu(&instance.spec) else {
        // The program of this process, even if the file was replaced by a new build.
        return Launch::new("/proc/self/exe").arg(supervisor::SUBCOMMAND).arg(LISTEN).arg(port);
    };
    let [near, far] = ends(instance.port).map(|end| end.to_string());
    let device = format!("kbt{port}");
    Launch::new("unshare")
        .args(["--net", "sh", "-c", BEHIND_DEVICES, "sh", mtu])
        .args([near, far, device, port])
        .args([supervisor::SUBCOMMAND, LISTEN])
}

fn ping(instance: &Instance, _pid: u32) -> Result<(), String> {
    let [near, _] = ends(instance.port);
    // Until the device has its address, another host would be asked.
    if mtu(&instance.spec).is_some() && UdpSocket::bind((near, 0)).is_err() {
        return Err(format!("no device has the address {near}"));
    }
    wire::tcp_at(address(instance))
}

fn url(instance: &Instance) -> String {
    format!("tcp://{}", address(instance))
}

/// Becomes a listener until the process ends. The arguments are a port, and an address other than 127.0.0.1.
pub(crate) fn listen(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let port = args.next().and_then(|port| port.to_str()?.parse().ok());
    let address = args.next().map_or(Some(Ipv4Addr::LOCALHOST), |address| address.to_str()?.parse().ok());
    let Some((port, address)) = port.zip(address) else { return ExitCode::from(2) };
    let served = Listener::bind(SocketAddrV4::new(address, port).into()).and_then(Listener::serve);
    // The supervisor sees that it has ended, and that the port is free again.
    ExitCode::from(u8::from(served.is_err()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_one_link_share_a_network_that_no_other_port_has() {
        assert_eq!(ends(0), [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)]);
        let [near, far] = ends(32_767);
        assert_eq!((near, far), (Ipv4Addr::new(198, 19, 255, 253), Ipv4Addr::new(198, 19, 255, 254)));
        assert_ne!(ends(40_000), ends(40_001));
    }
}
