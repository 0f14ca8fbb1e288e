//! The connections of the clients to the server: their traffic, and which side had to send next at each sample.
//!
//! The server's end, if it is on this machine too, shows which side has to send next: a request is a received segment
//! with data, an answer a sent one. When the gate opens all requests are answered. From there on, one more received
//! than sent segment means a request that waits for its answer. This holds if requests and answers are one segment
//! each, which is verified when all are answered again. If it does not hold, the kernel's times of the last segment
//! in each direction decide, within the resolution of its clock (about 4 ms): a client that sends its next request at
//! once leaves them equal.

use crate::find::own_sockets;
use kurabe_core::observation::{Endpoint, WireUse};
use kurabe_os::diag::{ESTABLISHED, Info, NetlinkClient, Socket};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

/// Up to so many connections, one exchange with the kernel for each costs less than a list of them.
const FEW: usize = 64;

/// The connections of one trial.
#[derive(Debug)]
pub(crate) struct Wire {
    netlink: NetlinkClient,
    /// The port to which clients connect, and the server's own, which differs if a relay is used.
    near: u16,
    far: u16,
    /// The local port of a connection that does not belong to a client.
    probe_port: Option<u16>,
    begin: HashMap<u64, Info>,
    /// The server's ends, by client port.
    ends: HashMap<u16, End>,
}

/// The samples of one connection at the server's end.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// Received minus sent segments with data, when all requests were answered.
    answered: i64,
    samples: u64,
    /// Its own address and the client's.
    addresses: Option<(SocketAddr, SocketAddr)>,
    /// Samples with one more received than sent segment.
    held: u64,
    /// Samples in which the two times differed, and those in which data was received later.
    classified: u64,
    came_later: u64,
}

impl Wire {
    /// The present connections of this process to the server; `None` if it is not reached by TCP or the kernel does
    /// not list them.
    pub fn new(given: &Endpoint, real: &Endpoint, probe_port: Option<u16>) -> Option<Self> {
        let (Endpoint::Tcp { port: near, .. }, Endpoint::Tcp { port: far, .. }) = (given, real) else {
            return None;
        };
        let (begin, ends) = (HashMap::new(), HashMap::new());
        let mut wire =
            Self { netlink: NetlinkClient::new().ok()?, near: *near, far: *far, probe_port, begin, ends };
        wire.begin = wire.own().ok()?.into_iter().map(|socket| (socket.inode, socket.info)).collect();
        let ends = wire.netlink.sockets(ESTABLISHED, wire.far, 0).ok()?;
        let address = |(ip, port)| SocketAddr::new(ip, port);
        let end = |socket: &Socket| End {
            answered: balance(&socket.info),
            addresses: Some((address(socket.local), address(socket.remote))),
            ..End::default()
        };
        wire.ends = ends.iter().map(|socket| (socket.remote.1, end(socket))).collect();
        wire.ends.retain(|port, _| Some(*port) != probe_port);
        Some(wire)
    }

    fn own(&mut self) -> io::Result<Vec<Socket>> {
        let own = own_sockets();
        let mut sockets = self.netlink.sockets(ESTABLISHED, 0, self.near)?;
        sockets.retain(|socket| own.contains(&socket.inode) && Some(socket.local.1) != self.probe_port);
        Ok(sockets)
    }

    /// Samples which side has to send next on each connection. Connections that received nothing in this trial, which
    /// began this many milliseconds ago, do not belong to its clients.
    pub fn sample(&mut self, elapsed_ms: u64) {
        for socket in
            self.far_ends().iter().filter(|socket| u64::from(socket.info.since_received) <= elapsed_ms)
        {
            let Some(end) = self.ends.get_mut(&socket.remote.1) else { continue };
            end.sample(&socket.info);
        }
    }

    /// The server's ends of the connections. Few are asked for one by one: the kernel walks through all of its sockets for a list,
    /// on a processor that clients or servers need.
    fn far_ends(&mut self) -> Vec<Socket> {
        if self.ends.len() > FEW {
            return self.netlink.sockets(ESTABLISHED, self.far, 0).unwrap_or_default();
        }
        let Self { netlink, ends, .. } = self;
        ends.values().filter_map(|end| netlink.socket(end.addresses?.0, end.addresses?.1).ok()?).collect()
    }

    /// The traffic since the beginning; connections opened meanwhile count from their beginning.
    pub fn end(mut self) -> Option<WireUse> {
        let mut used = WireUse::default();
        for Socket { inode, info, .. } in &self.own().ok()? {
            let then = self.begin.get(inode).copied().unwrap_or_default();
            let sent = |info: &Info| info.sent.saturating_sub(info.resent);
            // A connection that only acknowledged earlier data does not belong to the trial.
            if info.sent == then.sent && info.received == then.received {
                continue;
            }
            used.connections += 1;
            used.sent_bytes += sent(info).saturating_sub(sent(&then));
            used.received_bytes += info.received.saturating_sub(then.received);
            used.segments_out += u64::from(info.segments_out.wrapping_sub(then.segments_out));
            used.segments_in += u64::from(info.segments_in.wrapping_sub(then.segments_in));
            used.retransmits += u64::from(info.retransmits.saturating_sub(then.retransmits));
            used.rtt_us += f64::from(info.min_rtt_us);
        }
        used.rtt_us /= used.connections.max(1) as f64;
        for socket in self.far_ends() {
            let Some(end) = self.ends.get(&socket.remote.1) else { continue };
            let (classified, held) = end.verdict(&socket.info);
            used.classified += classified;
            used.at_server += held;
        }
        Some(used)
    }
}

impl End {
    fn sample(&mut self, info: &Info) {
        self.samples += 1;
        self.held += u64::from(balance(info) > self.answered);
        self.classified += u64::from(info.since_received != info.since_sent);
        self.came_later += u64::from(info.since_received < info.since_sent);
    }

    /// The number of samples that show which side had to send next, and of those the number for the server; `last`:
    /// all requests are answered again.
    fn verdict(&self, last: &Info) -> (u64, u64) {
        if balance(last) == self.answered {
            (self.samples, self.held)
        } else {
            (self.classified, self.came_later)
        }
    }
}

/// Received minus sent segments with data.
fn balance(info: &Info) -> i64 {
    i64::from(info.data_segments_in) - i64::from(info.data_segments_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(came: u32, went: u32, since_received: u32, since_sent: u32) -> Info {
        Info {
            data_segments_in: came,
            data_segments_out: went,
            since_received,
            since_sent,
            ..Info::default()
        }
    }

    #[test]
    fn request_is_pending_until_its_answer_is_sent() {
        let mut end = End { answered: 2, ..End::default() };
        // The clock is too coarse to show that the next request arrived after the last answer.
        end.sample(&info(11, 8, 40, 40));
        end.sample(&info(11, 8, 80, 80));
        end.sample(&info(11, 9, 0, 0));
        assert_eq!(end.verdict(&info(12, 10, 0, 0)), (3, 2));
    }

    #[test]
    fn multi_segment_answers_are_classified_by_times() {
        let mut end = End { answered: 0, ..End::default() };
        end.sample(&info(1, 70, 4, 4));
        end.sample(&info(2, 140, 40, 60));
        end.sample(&info(2, 140, 60, 40));
        assert_eq!(end.verdict(&info(3, 210, 0, 0)), (2, 1));
    }
}
