//! TCP sockets as the kernel lists them over `NETLINK_SOCK_DIAG` (`sock_diag(7)`; layouts: `linux/inet_diag.h`,
//! `linux/tcp.h`). Messages are parsed byte by byte: `getsockopt` with `TCP_INFO` needs `unsafe`, and netlink shows
//! the other end of a connection too.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`: one socket; with `NLM_F_DUMP`, all that match.
const REQUEST: u16 = 1;
const REQUEST_DUMP: u16 = 0x301;
const MESSAGE_ERROR: u16 = 2;
const MESSAGE_DONE: u16 = 3;
const HEADER: usize = 16;
/// The sequence number in a header.
const SEQUENCE: usize = 8;
const DIAG_MESSAGE: usize = 72;
const TCP: u8 = 6;
/// `INET_DIAG_INFO`: requests `struct tcp_info`, and is its attribute type.
const INFO: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// `ENOENT`: there is no such socket.
const NONE: i32 = 2;

/// `TCP_ESTABLISHED` as a bit of the request's set of states.
pub const ESTABLISHED: u32 = 1 << 1;
/// `TCP_LISTEN` as a bit of the request's set of states.
pub const LISTEN: u32 = 1 << 10;

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    pub local: (IpAddr, u16),
    pub remote: (IpAddr, u16),
    /// The account that made it. Many kernels say 0 of a socket that no process has any more.
    pub uid: u32,
    /// Its number, by which the process is found that has it; 0 if no process has it any more.
    pub inode: u64,
    pub info: Info,
}

/// The used members of `struct tcp_info`. Members that an older kernel lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Milliseconds since data was last sent.
    pub since_sent: u32,
    /// Milliseconds since data was last received.
    pub since_received: u32,
    /// The minimum round-trip time. The smoothed time includes delayed acknowledgements: the other end waits for an
    /// answer that it can send with them.
    pub min_rtt_us: u32,
    /// Payload bytes sent, including retransmissions.
    pub sent: u64,
    pub resent: u64,
    pub received: u64,
    pub segments_out: u32,
    pub segments_in: u32,
    pub retransmits: u32,
    pub data_segments_in: u32,
    pub data_segments_out: u32,
}

/// Queries sockets; keeps its own socket open between queries.
#[derive(Debug)]
pub struct NetlinkClient {
    netlink: OwnedFd,
    answer: Vec<u8>,
    sequence: u32,
}

impl NetlinkClient {
    pub fn new() -> io::Result<Self> {
        let netlink = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self { netlink, answer: vec![0; 64 * 1024], sequence: 0 })
    }

    /// The TCP sockets in any of these states with this local or remote port (0: any), IPv4 and IPv6.
    pub fn sockets(&mut self, states: u32, local: u16, remote: u16) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            self.sequence += 1;
            send(&self.netlink, &request(family, states, local, remote, self.sequence), SendFlags::empty())?;
            self.receive(self.sequence, &mut found)?;
        }
        Ok(found)
    }

    /// The account of the TCP socket with these two addresses; `None` if there is none, or if none has it any more and its
    /// account is not known.
    pub fn owner(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
        Ok(self.socket(local, remote)?.map(|socket| socket.uid))
    }

    /// The TCP socket with these two addresses; `None` if there is none, or if none has it any more. It costs one exchange with
    /// the kernel, however many sockets there are; a list of sockets costs a walk through all that the kernel has.
    pub fn socket(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
        self.sequence += 1;
        send(&self.netlink, &request_one(local, remote, self.sequence), SendFlags::empty())?;
        let asked = ((local.ip().to_canonical(), local.port()), (remote.ip().to_canonical(), remote.port()));
        let mut found = Vec::new();
        // One answer is one datagram, and has no end.
        while found.is_empty() {
            let (length, _) = recv(&self.netlink, &mut self.answer[..], RecvFlags::empty())?;
            let bytes = &self.answer[..length.min(self.answer.len())];
            match read_answer(bytes, self.sequence, &mut found) {
                Err(error) if error.raw_os_error() == Some(NONE) => return Ok(None),
                read => read?,
            };
        }
        // Without such a connection, the kernel finds a listener at its port.
        let is_known = |socket: &Socket| socket.inode != 0 || socket.uid != 0;
        Ok(found
            .into_iter()
            .next()
            .filter(|socket| (socket.local, socket.remote) == asked && is_known(socket)))
    }

    fn receive(&mut self, sequence: u32, found: &mut Vec<Socket>) -> io::Result<()> {
        loop {
            let (length, _) = recv(&self.netlink, &mut self.answer[..], RecvFlags::empty())?;
            if read_answer(&self.answer[..length.min(self.answer.len())], sequence, found)? {
                return Ok(());
            }
        }
    }
}

fn request(family: u8, states: u32, local: u16, remote: u16, sequence: u32) -> [u8; 72] {
    let mut bytes = [0; 72];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &72_u32.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_DUMP.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(16, &[family, TCP, 1 << (INFO - 1)]);
    put(20, &states.to_ne_bytes());
    put(24, &local.to_be_bytes());
    put(26, &remote.to_be_bytes());
    bytes
}

/// The request for the socket with these two addresses.
fn request_one(local: SocketAddr, remote: SocketAddr, sequence: u32) -> [u8; 72] {
    let mut bytes = [0; 72];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &72_u32.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(16, &[if local.is_ipv4() { AF_INET } else { AF_INET6 }, TCP, 1 << (INFO - 1)]);
    put(20, &u32::MAX.to_ne_bytes());
    for (port_at, address_at, address) in [(24, 28, local), (26, 44, remote)] {
        put(port_at, &address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => put(address_at, &ip.octets()),
            IpAddr::V6(ip) => put(address_at, &ip.octets()),
        }
    }
    // `INET_DIAG_NOCOOKIE`: any.
    put(64, &[u8::MAX; 8]);
    bytes
}

/// Reads one datagram of messages; returns whether it was the last of the request with this sequence number. Messages of
/// an earlier request, whose answer was not read to its end, are skipped.
fn read_answer(mut bytes: &[u8], sequence: u32, found: &mut Vec<Socket>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        if length < HEADER || length > bytes.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink message has a wrong length"));
        }
        match kind {
            _ if u32_at(bytes, SEQUENCE) != Some(sequence) => {}
            MESSAGE_DONE => return Ok(true),
            MESSAGE_ERROR => {
                let code = u32_at(bytes, HEADER).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ => found.extend(read_socket(&bytes[HEADER..length])),
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

fn read_socket(message: &[u8]) -> Option<Socket> {
    let family = *message.first()?;
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
        Some(if family == AF_INET {
            IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
        } else {
            // A server on IPv6 sees its IPv4 clients with mapped addresses.
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        })
    };
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let mut info = Info::default();
    let mut attributes = message.get(DIAG_MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        if length < 4 || length > attributes.len() {
            break;
        }
        if kind == INFO {
            info = read_info(&attributes[4..length]);
        }
        attributes = &attributes[length.next_multiple_of(4).min(attributes.len())..];
    }
    Some(Socket {
        local: (address(8)?, port(4)?),
        remote: (address(24)?, port(6)?),
        uid: u32_at(message, 64)?,
        inode: u64::from(u32_at(message, 68)?),
        info,
    })
}

fn read_info(info: &[u8]) -> Info {
    let small = |at| u32_at(info, at).unwrap_or(0);
    let large = |at: usize| {
        info.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    };
    Info {
        since_sent: small(44),
        since_received: small(52),
        min_rtt_us: small(148),
        data_segments_in: small(152),
        data_segments_out: small(156),
        retransmits: small(100),
        received: large(128),
        segments_out: small(136),
        segments_in: small(140),
        sent: large(200),
        resent: large(208),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_connection_are_found_with_their_traffic() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 700]).unwrap();
        server.read_exact(&mut [0; 700]).unwrap();
        let mut netlink = NetlinkClient::new().unwrap();
        assert_eq!(netlink.sockets(LISTEN, port, 0).unwrap().len(), 1);
        let far = netlink.sockets(ESTABLISHED, port, 0).unwrap();
        let near = netlink.sockets(ESTABLISHED, 0, port).unwrap();
        assert_eq!((far.len(), near.len()), (1, 1));
        assert_eq!(near[0].local.1, client.local_addr().unwrap().port());
        assert_eq!(near[0].local, far[0].remote);
        assert_eq!((near[0].info.sent, near[0].info.resent, near[0].info.received), (700, 0, 0));
        assert_eq!(far[0].info.received, 700);
    }

    #[test]
    fn pending_side_follows_from_last_send_and_receive_times() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut netlink = NetlinkClient::new().unwrap();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(40));
        server.write_all(b"answer").unwrap();
        pause();
        client.write_all(b"request").unwrap();
        pause();
        let held = netlink.sockets(ESTABLISHED, port, 0).unwrap()[0].info;
        assert!(held.since_received < held.since_sent, "{held:?}");
        server.write_all(b"answer").unwrap();
        let free = netlink.sockets(ESTABLISHED, port, 0).unwrap()[0].info;
        assert!(free.since_sent < free.since_received, "{free:?}");
    }

    #[test]
    fn answer_to_an_earlier_request_is_skipped() {
        let done = |sequence: u32| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&20_u32.to_ne_bytes());
            bytes[4..6].copy_from_slice(&MESSAGE_DONE.to_ne_bytes());
            bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
            bytes
        };
        let mut found = Vec::new();
        assert!(!read_answer(&done(6), 7, &mut found).unwrap());
        assert!(read_answer(&[done(6), done(7)].concat(), 7, &mut found).unwrap());
    }

    #[test]
    fn truncated_netlink_message_is_an_error() {
        let mut whole = request(AF_INET, ESTABLISHED, 1, 2, 3).to_vec();
        for length in 0..whole.len() {
            let _ = read_answer(&whole[..length], 7, &mut Vec::new());
        }
        whole[0] = 3;
        assert!(read_answer(&whole, 7, &mut Vec::new()).is_err());
    }
}
