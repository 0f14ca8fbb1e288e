//! Servers on a host of their own on this machine: a network namespace behind a pair of virtual devices, as throwaway
//! servers with the setting `mtu` have. Their sockets are listed in their namespace only.

use crate::process::numbers;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Whether an address is that of such a host: in a network of those for benchmarks (RFC 2544), of which this machine
/// has the address before it. A real host could have it too, but then no namespace here has it.
pub(crate) fn is_there(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    let is_benchmark = address.octets()[0] == 198 && matches!(address.octets()[1], 18 | 19);
    // Connecting a UDP socket chooses its source address and sends nothing. The port is arbitrary.
    let source = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    let before = IpAddr::from(Ipv4Addr::from(u32::from(address).wrapping_sub(1)));
    is_benchmark && source().is_ok_and(|source| source.ip() == before)
}

/// The inodes of the sockets that listen at this address in another network namespace of this machine.
pub(crate) fn listening(address: IpAddr, port: u16) -> BTreeSet<u64> {
    let IpAddr::V4(address) = address else { return BTreeSet::new() };
    let mut seen: HashSet<_> = fs::read_link("/proc/self/ns/net").into_iter().collect();
    let all = numbers("/proc").into_iter();
    all.filter_map(|number| {
        let namespace = fs::read_link(format!("/proc/{number}/ns/net")).ok()?;
        // All processes of a namespace have the same sockets.
        seen.insert(namespace).then(|| fs::read_to_string(format!("/proc/{number}/net/tcp")).ok())?
    })
    .flat_map(|text| listening_in(&text, address, port))
    .collect()
}

/// Lines of `/proc/PID/net/tcp`: number, local address, remote address, state, queues, timer, retransmissions, user,
/// time-out, inode. An address is hexadecimal, in the byte order of the machine.
fn listening_in(text: &str, address: Ipv4Addr, port: u16) -> Vec<u64> {
    /// `TCP_LISTEN`
    const LISTENS: &str = "0A";
    let wanted = format!("{:08X}:{port:04X}", u32::from_ne_bytes(address.octets()));
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            (*words.get(1)? == wanted && words[3] == LISTENS).then(|| words.get(9)?.parse().ok()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listening_socket_of_the_address_counts() {
        let local = format!("{:08X}:1538", u32::from_ne_bytes([198, 18, 1, 98]));
        let text = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: {local} 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 7141 1 0 100 0 0 10 0\n\
             1: {local} 00000000:9000 01 00000000:00000000 00:00000000 00000000   105        0 7142 1 0 100 0 0 10 0\n"
        );
        assert_eq!(listening_in(&text, Ipv4Addr::new(198, 18, 1, 98), 0x1538), [7141]);
        assert!(listening_in(&text, Ipv4Addr::new(198, 18, 1, 99), 0x1538).is_empty());
        assert!(listening_in(&text, Ipv4Addr::new(198, 18, 1, 98), 0x1539).is_empty());
    }

    #[test]
    fn loopback_and_ordinary_addresses_are_no_hosts_of_their_own() {
        for address in ["127.0.0.1", "10.1.2.3", "::1"] {
            assert!(!is_there(address.parse().unwrap()), "{address}");
        }
    }
}
