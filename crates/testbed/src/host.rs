//! A host of its own for a server: a network namespace at the other end of a pair of virtual devices.
//!
//! The kernel removes namespace and devices when the server ends, in whatever way.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

/// The name of the setting of a throwaway server that asks for a host of its own, and is the MTU of its link.
pub(crate) const SETTING: &str = "mtu";
/// The MTU that every host must support (RFC 8200, section 5), and the largest one of a virtual device.
const MTUS: std::ops::RangeInclusive<u32> = 1_280..=65_535;
/// The networks of all links: addresses that are reserved for benchmarks (RFC 2544).
pub(crate) const NETWORKS: &str = "198.18.0.0/15";

/// Run by a shell in a new network namespace, whose parent process is in this host's: creates the pair of devices, and
/// then becomes the rest of its arguments. The others: MTU, address of this host's end, that of the other end, name of
/// this host's device.
const BEHIND_DEVICES: &str = r#"
set -e
here="nsenter -t $PPID -n"
$here ip link del dev "$4" 2>/dev/null || true
$here ip link add name "$4" mtu "$1" type veth peer name far mtu "$1" netns $$
ip link set dev lo up
ip addr add "$3/30" dev far
ip link set dev far up
$here ip link set dev "$4" up
$here ip addr add "$2/30" dev "$4"
shift 4
exec "$@"
"#;

/// The link to a server's own host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    mtu: u32,
    port: u16,
}

/// Reads the setting: the MTU.
pub(crate) fn mtu(value: &str) -> Result<u32, String> {
    let mtu = value.parse().ok().filter(|mtu| MTUS.contains(mtu));
    let mtu = mtu.ok_or_else(|| {
        format!("{SETTING}={value} is not a number from {} to {}", MTUS.start(), MTUS.end())
    })?;
    permitted().map(|()| mtu)
}

/// Whether this user can create network namespaces and devices; or why not, as a clause.
pub(crate) fn permitted() -> Result<(), String> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err("a host of its own is a network namespace, which takes root".to_owned())
}

impl Link {
    /// The link to the server that listens at this port.
    pub fn new(mtu: u32, port: u16) -> Self {
        Self { mtu, port }
    }

    /// The addresses of this host's end and of the server's: a network of four addresses for each port.
    fn ends(self) -> [Ipv4Addr; 2] {
        let network = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + 4 * u32::from(self.port % (1 << 15));
        [1, 2].map(|host| Ipv4Addr::from(network + host))
    }

    /// The server's address.
    pub fn server(self) -> Ipv4Addr {
        self.ends()[1]
    }

    /// The command that makes both, and then becomes the program of this process with the arguments that are added.
    pub fn command(self) -> Command {
        let [near, far] = self.ends().map(|end| end.to_string());
        let mut command = Command::new("unshare");
        command
            .args(["--net", "sh", "-c", BEHIND_DEVICES, "sh", &self.mtu.to_string(), &near, &far])
            .arg(format!("kbt{}", self.port))
            // The program of this process, even if the file was replaced by a new build.
            .arg(format!("/proc/{}/exe", std::process::id()));
        command
    }

    /// Refuses while this host's device has no address: until then, another host would be asked.
    pub fn check(self) -> Result<(), String> {
        let near = self.ends()[0];
        UdpSocket::bind((near, 0)).map(drop).map_err(|_| format!("no device has the address {near}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_one_link_share_a_network_that_no_other_port_has() {
        let ends = |port| Link::new(1_500, port).ends();
        assert_eq!(ends(0), [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)]);
        let [near, far] = ends(32_767);
        assert_eq!((near, far), (Ipv4Addr::new(198, 19, 255, 253), Ipv4Addr::new(198, 19, 255, 254)));
        assert_ne!(ends(40_000), ends(40_001));
    }

    #[test]
    fn mtu_that_no_device_has_is_refused() {
        for wrong in ["", "100", "x", "70000"] {
            assert!(mtu(wrong).unwrap_err().contains("is not a number from 1280 to 65535"), "{wrong}");
        }
    }
}
