//! The connections of the clients to the server: what went over them, and who had the move when they were looked at.

use crate::diag::{Asker, ESTABLISHED, Info, Socket};
use crate::find::own_sockets;
use kurabe_core::observation::{Endpoint, WireUse};
use std::collections::HashMap;
use std::io;

/// What came and what went lie within one tick of the kernel's clock, which is 10 ms at the most: nothing for so many
/// milliseconds since both means that the server has answered.
const LONG_SINCE: u32 = 12;

/// The connections of one trial.
#[derive(Debug)]
pub(crate) struct Wire {
    asker: Asker,
    /// The port that the clients connect to, and the server's own, which is another where a relay stands between.
    near: u16,
    far: u16,
    begin: HashMap<u64, Info>,
}

impl Wire {
    /// The connections that this process has to the server now; none where it is not reached by TCP or the kernel does
    /// not say.
    pub fn new(given: &Endpoint, real: &Endpoint) -> Option<Self> {
        let (Endpoint::Tcp { port: near, .. }, Endpoint::Tcp { port: far, .. }) = (given, real) else {
            return None;
        };
        let mut wire = Self { asker: Asker::new().ok()?, near: *near, far: *far, begin: HashMap::new() };
        wire.begin = wire.own().ok()?.into_iter().map(|socket| (socket.inode, socket.info)).collect();
        Some(wire)
    }

    fn own(&mut self) -> io::Result<Vec<Socket>> {
        let own = own_sockets();
        let mut sockets = self.asker.sockets(ESTABLISHED, 0, self.near)?;
        sockets.retain(|socket| own.contains(&socket.inode));
        Ok(sockets)
    }

    /// Looks who has the move; gives for how many connections that could be told, and on how many it was the server.
    /// Connections on which nothing came in this trial, which began so many milliseconds ago, are not its clients'.
    pub fn look(&mut self, elapsed_ms: u64) -> (u64, u64) {
        let Ok(sockets) = self.asker.sockets(ESTABLISHED, self.far, 0) else { return (0, 0) };
        let own = sockets.iter().filter(|socket| u64::from(socket.info.since_received) <= elapsed_ms);
        let moves = own.filter_map(|socket| at_server(&socket.info));
        moves.fold((0, 0), |(told, held), at_server| (told + 1, held + u64::from(at_server)))
    }

    /// What went over the connections since; those that were opened meanwhile count from their beginning.
    pub fn end(mut self, (told, at_server): (u64, u64)) -> Option<WireUse> {
        let mut used = WireUse { told, at_server, ..WireUse::default() };
        let sockets = self.own().ok()?;
        for Socket { inode, info, .. } in &sockets {
            let then = self.begin.get(inode).copied().unwrap_or_default();
            let sent = |info: &Info| info.sent.saturating_sub(info.resent);
            if info.segments_out == then.segments_out && info.received == then.received {
                continue;
            }
            used.connections += 1;
            used.sent_bytes += sent(info).saturating_sub(sent(&then));
            used.received_bytes += info.received.saturating_sub(then.received);
            used.segments_out += u64::from(info.segments_out.wrapping_sub(then.segments_out));
            used.segments_in += u64::from(info.segments_in.wrapping_sub(then.segments_in));
            used.retransmits += u64::from(info.retransmits.saturating_sub(then.retransmits));
            used.rtt_us += f64::from(info.rtt_us);
        }
        used.rtt_us /= used.connections.max(1) as f64;
        Some(used)
    }
}

/// Whether the server has a request that it has not answered, seen from its end of a connection; `None` where the
/// clock is too coarse to tell.
fn at_server(info: &Info) -> Option<bool> {
    match info.since_received.cmp(&info.since_sent) {
        std::cmp::Ordering::Less => Some(true),
        std::cmp::Ordering::Greater => Some(false),
        std::cmp::Ordering::Equal => (info.since_sent >= LONG_SINCE).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_last_is_with_the_server_until_it_answers() {
        let info = |since_received, since_sent| Info { since_sent, since_received, ..Info::default() };
        assert_eq!(at_server(&info(4, 60)), Some(true));
        assert_eq!(at_server(&info(60, 56)), Some(false));
        assert_eq!(at_server(&info(0, 0)), None);
        assert_eq!(at_server(&info(40, 40)), Some(false));
    }
}
