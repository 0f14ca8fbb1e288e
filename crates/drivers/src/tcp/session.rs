//! A session with a listener: a control connection, and one connection for each prepared flow.

use super::channel::{Channel, Place};
use crate::prelude::*;
use crate::slots::{Slots, check_parameters};
use kurabe_core::operation::{Flow, FlowKind};
use kurabe_tcp::content;
use kurabe_tcp::protocol::{Answer, Connected, Greeting, Hello, LARGEST_BLOCK, Request, Role, receive, send};
use kurabe_tcp::socket;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;

pub(super) struct TcpSession {
    control: Channel,
    /// The listener's address, of which the control connection was made.
    address: SocketAddr,
    hello: Hello,
    options: ConnectOptions,
    slots: Slots<Slot>,
}

enum Slot {
    Ping,
    Stream(Box<Stream>),
    Echo { channel: Channel, block: usize },
    Received,
}

/// A stream of blocks.
struct Stream {
    channel: Channel,
    /// By which its result is asked for.
    token: u64,
    /// A block, whose number is changed for each.
    block: Vec<u8>,
    number: u64,
    /// What the listener reported of its end, and the kernel of ours.
    theirs: Connected,
    ours: Connected,
}

impl TcpSession {
    pub(super) fn open(place: &Place, options: &ConnectOptions) -> Result<Self> {
        let greeting = Greeting { role: Role::Control, block: 0, token: 0 };
        let (address, mut control) =
            place.connect(options.timeout, |address, share| Channel::open(address, 0, share, greeting))?;
        control.without_delay()?;
        let hello = control.with(|stream| receive(stream)).map_err(|error| match error.kind() {
            ErrorKind::Protocol | ErrorKind::ConnectionLost | ErrorKind::Timeout => error
                .context(format!("{}, port {}", place.host, place.port))
                .hint("it is no listener of Kurabe, or of another version; start one there: kurabe up tcp"),
            _ => error,
        })?;
        Ok(Self { control, address, hello, options: *options, slots: Slots::default() })
    }

    pub(super) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// What this kernel reports of the control connection.
    pub(super) fn connected(&self) -> io::Result<Connected> {
        socket::connected(self.control.stream())
    }

    /// Sends a request, and waits until the listener has done it.
    fn request(&mut self, request: Request) -> Result<Answer> {
        self.control.with(|stream| {
            send(&request, stream)?;
            receive(stream)
        })
    }

    /// Opens the connection of a flow; also returns what the listener reported of it.
    fn channel(&mut self, flow: &Flow, greeting: Greeting) -> Result<(Channel, Connected)> {
        let sized = flow.socket_buffer > 0;
        let mut address = self.address;
        if sized {
            address.set_port(self.hello.sized_port);
            self.request(Request::Buffers(flow.socket_buffer))?.map_err(|why| refused(&why))?;
        }
        let opened = Channel::open(address, flow.socket_buffer, self.options.timeout, greeting);
        let connected = opened.map_err(|error| not_opened(&error, address)).and_then(|mut channel| {
            let theirs = channel.with(|stream| receive(stream))?;
            Ok((channel, theirs))
        });
        if sized {
            self.request(Request::Connected)?.map_err(|why| refused(&why))?;
        }
        connected
    }

    fn result(&mut self, token: u64, out: &mut Reply) -> Result<()> {
        let received = self.request(Request::Result(token))?;
        let lost = |why| Error::new(ErrorKind::ConnectionLost, format!("the listener: {why}"));
        let received = received.and_then(|found| found.ok_or_else(|| "it sent no result".to_owned()));
        let received = received.map_err(lost)?;
        if let Some(at) = received.wrong_at {
            return Err(Error::mismatch(format!("byte {at} of a stream arrived with wrong content")));
        }
        out.push_int(received.bytes as i64);
        out.push_int(received.cpu_ns as i64);
        out.end_row();
        Ok(())
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Limit, format!("the listener refused: {why}"))
}

fn not_opened(error: &io::Error, address: SocketAddr) -> Error {
    match error.kind() {
        _ if crate::cancel::is_cut() => crate::cancel::error(),
        io::ErrorKind::OutOfMemory => Error::new(ErrorKind::Limit, error.to_string())
            .hint("set a larger limit with sysctl -w, or measure smaller buffers"),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Timeout, format!("no answer from {address}"))
                .hint("the listener's second port must be reachable too: check firewalls")
        }
        _ => Error::new(ErrorKind::Unreachable, format!("no connection to {address}: {error}"))
            .hint("the listener's second port must be reachable too: check firewalls"),
    }
}

/// A token that no other stream of any client has. std's hash keys are random, and differ for each use.
fn token() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Session for TcpSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        let flow = match operation {
            Operation::Ping => return Ok(self.slots.insert(Slot::Ping)),
            Operation::Flow(flow) => flow,
            _ => return Err(Error::unsupported("a listener is no database: it only carries bytes")),
        };
        let block = flow.block.clamp(1, LARGEST_BLOCK);
        let slot = match flow.kind {
            FlowKind::Received => Slot::Received,
            FlowKind::Echo => {
                let greeting = Greeting { role: Role::Echo, block, token: 0 };
                let (channel, _) = self.channel(flow, greeting)?;
                channel.without_delay()?;
                Slot::Echo { channel, block: block as usize }
            }
            FlowKind::Stream => {
                let token = token();
                let (channel, theirs) = self.channel(flow, Greeting { role: Role::Stream, block, token })?;
                let ours = socket::connected(channel.stream()).map_err(|error| crate::wire::lost(&error))?;
                let block = content::block(block as usize);
                Slot::Stream(Box::new(Stream { channel, token, block, number: 0, theirs, ours }))
            }
        };
        Ok(self.slots.insert(slot))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        match (self.slots.get_mut(prepared)?, parameters) {
            (Slot::Ping, []) => {
                self.request(Request::Ping)?.map(drop).map_err(|why| Error::new(ErrorKind::Protocol, why))
            }
            (Slot::Stream(stream), [Value::Int(blocks)]) => stream.send(*blocks, out),
            (Slot::Echo { channel, block }, [Value::Bytes(message)]) if message.len() == *block => {
                channel.send(message)?;
                out.push_bytes_with(|bytes| {
                    let before = bytes.len();
                    bytes.resize(before + message.len(), 0);
                    channel.receive(&mut bytes[before..])
                })?;
                out.end_row();
                Ok(())
            }
            (Slot::Received, [Value::Int(token)]) => self.result(*token as u64, out),
            (_, parameters) => {
                check_parameters("a flow", 1, parameters.len())?;
                Err(Error::new(ErrorKind::Internal, "a flow was given a parameter of another type or length"))
            }
        }
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    without!(bulk, planner, cache, raw_messages, transactions);
}

impl Stream {
    fn send(&mut self, blocks: i64, out: &mut Reply) -> Result<()> {
        for _ in 0..blocks {
            content::set_number(&mut self.block, self.number);
            self.channel.send(&self.block)?;
            self.number += 1;
        }
        out.set_affected(blocks.unsigned_abs());
        let (ours, theirs) = (&self.ours, &self.theirs);
        let values =
            [self.token, socket::thread_cpu_ns(), ours.send_buffer, theirs.receive_buffer, ours.segment];
        for value in values {
            out.push_int(value as i64);
        }
        out.end_row();
        Ok(())
    }
}
