//! A capture from packets that tcpdump or Wireshark wrote: connections are put together again, and their bytes are read as those of a
//! relay are.

mod file;
mod stream;

use crate::file::About;
use crate::input::Input;
use crate::secrets::Tables;
use crate::tape::{Tape, Taped, Totals};
use file::Packets;
use kurabe_core::{Error, Result};
use kurabe_wire::registry::Protocol;
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use stream::{ACK, RST, SYN, Segment, Stream};

#[cfg(test)]
mod tests;

/// The maximum number of other servers that are remembered for an error.
const OTHERS: usize = 64;

const BEFORE: &str = "they began before the packets were captured";
const MISSING: &str = "packets are missing";
const CUT: &str = "packets are cut off: tcpdump -s 0 keeps them whole";

/// Whether a file begins as one of packets does.
pub fn has_packets(input: &mut Input) -> Result<bool> {
    let failed = |error| Error::usage(format!("{} cannot be read: {error}", input.path.display()));
    let start = input.file.fill_buf().map_err(failed)?;
    Ok(file::MAGIC.iter().any(|(magic, _)| start.starts_with(magic)))
}

/// Reads packets of the server at this port, and of this address if one is named, and writes a capture. `about` gets the time of the
/// first packet. Also returns why the rest of the file of packets was not read, if it was not.
///
/// # Errors
/// If it is no file of packets or damaged, has none of the port, or the capture cannot be written.
pub fn record(
    input: Input,
    (address, port): (Option<IpAddr>, u16),
    protocol: &Protocol,
    path: &Path,
    about: &mut About,
) -> Result<(Totals, Option<String>)> {
    let from = input.path.clone();
    let mut packets = Packets::new(input)?;
    let mut next = packets.next()?;
    let began = next.as_ref().map_or(0, |packet| packet.at);
    about.began_ms = began / 1_000_000;
    let is_server =
        |one: &SocketAddr| one.port() == port && address.is_none_or(|address| address == one.ip());
    let (mut trace, mut others) = (None::<Trace>, BTreeSet::<SocketAddr>::new());
    let (mut now, mut why) = (Duration::ZERO, None);
    while let Some(packet) = next {
        // Times of several processors may go back a little.
        now = now.max(Duration::from_nanos(packet.at.saturating_sub(began)));
        if let Some(segment) = stream::segment(&packet) {
            let to_server = is_server(&segment.to);
            if to_server || is_server(&segment.from) {
                let known = match &mut trace {
                    Some(known) => known,
                    None => trace.insert(Trace::begin(protocol, path, about)?),
                };
                known.take(&segment, to_server, now);
            } else {
                let server = if segment.from.port() < segment.to.port() { segment.from } else { segment.to };
                if others.len() < OTHERS {
                    others.insert(server);
                }
            }
        }
        next = match packets.next() {
            // What was read before is kept.
            Err(error) if trace.is_some() => {
                why = Some(error.to_string());
                None
            }
            next => next?,
        };
    }
    if packets.is_cut {
        why.get_or_insert_with(|| format!("{} ends within a packet", from.display()));
    }
    let trace = trace.ok_or_else(|| {
        let of = address
            .map_or_else(|| format!("port {port}"), |address| SocketAddr::new(address, port).to_string());
        let shown: Vec<String> = others.iter().take(8).map(SocketAddr::to_string).collect();
        let there = if shown.is_empty() {
            "it has none of TCP".to_owned()
        } else {
            format!("it has those of {}", shown.join(", "))
        };
        Error::usage(format!("{} has no packets of {of}", from.display()))
            .hint(format!("{there}; the target's address and port say which are read"))
    })?;
    Ok((trace.end(path, now)?, why))
}

struct Trace {
    tape: Tape,
    /// By client and server.
    open: HashMap<(SocketAddr, SocketAddr), Connection>,
}

/// A connection: the streams of client and server.
struct Connection {
    taped: Taped,
    first: u32,
    streams: [Stream; 2],
    is_lost: bool,
}

impl Trace {
    fn begin(protocol: &Protocol, path: &Path, about: &About) -> Result<Self> {
        let tape = Tape::begin(protocol, path, about, Tables::default())?;
        Ok(Self { tape, open: HashMap::new() })
    }

    fn take(&mut self, segment: &Segment<'_>, to_server: bool, now: Duration) {
        let now = self.tape.shared.began + now;
        let key = if to_server { (segment.from, segment.to) } else { (segment.to, segment.from) };
        if to_server && segment.has(SYN) && !segment.has(ACK) {
            let is_new =
                self.open.get(&key).is_none_or(|known| known.is_lost || known.first != segment.sequence);
            if is_new {
                if let Some(mut old) = self.open.remove(&key) {
                    old.end(now);
                }
                let connection = self.connection(segment.sequence);
                self.open.insert(key, connection);
            }
        } else if !self.open.contains_key(&key) {
            // The last packets of a connection that was closed.
            if segment.payload.is_empty() {
                return;
            }
            let mut connection = self.connection(segment.sequence);
            connection.taped.sent(&[], now);
            connection.lose(BEFORE, now);
            self.open.insert(key, connection);
        }
        if let Some(connection) = self.open.get_mut(&key)
            && connection.take(segment, to_server, now)
        {
            self.open.remove(&key);
        }
    }

    fn connection(&self, first: u32) -> Connection {
        let taped = self.tape.shared.connection();
        Connection { taped, first, streams: [Stream::default(), Stream::default()], is_lost: false }
    }

    fn end(self, path: &Path, now: Duration) -> Result<Totals> {
        let Self { tape, open } = self;
        let mut left: Vec<Connection> = open.into_values().collect();
        kurabe_core::sort::by_key(&mut left, |one| one.taped.number);
        for connection in &mut left {
            connection.end(tape.shared.began + now);
        }
        tape.finish(path)
    }
}

impl Connection {
    /// Takes a segment. Returns whether the connection has ended.
    fn take(&mut self, segment: &Segment<'_>, to_server: bool, now: Instant) -> bool {
        if self.is_lost {
            return false;
        }
        if segment.is_cut {
            self.lose(CUT, now);
            return false;
        }
        let Self { taped, streams, .. } = self;
        let stream = &mut streams[usize::from(!to_server)];
        let mut each = |bytes: &[u8]| {
            if to_server {
                taped.sent(bytes, now);
            } else {
                taped.received(bytes, now);
            }
        };
        if stream.push(segment, &mut each).is_err() {
            self.lose(MISSING, now);
            return false;
        }
        let is_over = segment.has(RST) || self.streams.iter().all(Stream::has_ended);
        if is_over {
            self.end(now);
        }
        is_over
    }

    fn end(&mut self, now: Instant) {
        if self.streams.iter().any(Stream::has_gap) {
            self.lose(MISSING, now);
        } else if self.streams[1].has_ended() {
            self.taped.closed(now);
        }
        self.taped.end(now);
    }

    fn lose(&mut self, why: &'static str, now: Instant) {
        self.is_lost = true;
        self.taped.lose(why, now);
    }
}
