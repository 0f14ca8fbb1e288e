//! E9, what the network alone gives: bytes between two ends of Kurabe's own, one way and there and back.
//!
//! A stream is sent in blocks of one length, and the listener compares every byte. It is measured at the sender, from
//! the end of the warm-up to the last block: the buffers of both ends are full then as before, so as many bytes arrive
//! in this time as are sent. A stream is therefore never interleaved with another trial, in which it would drain.

use crate::axes::{CLIENTS, no_operation, reads};
use crate::prelude::*;
use kurabe_core::metric;
use kurabe_core::operation::{Flow, FlowKind};
use std::time::{Duration, Instant};

const STREAM: &str = "stream";
const ECHO: &str = "round-trip";
/// Bytes of a request of a stream, in whole blocks: enough that the time between two requests costs nothing.
const REQUEST: u64 = 1 << 20;
/// The longest block, in bytes.
const LONGEST: u64 = 4 << 20;
/// Bytes to which CPU times refer.
const GIGABYTE: f64 = 1e9;

const BUFFER: AxisInfo = AxisInfo::new(
    "buffer",
    "size that is asked for of each socket buffer of both ends",
    AxisKind::size(4 << 10, 1 << 30)
        .or(&[("auto", "chosen and changed by the kernels, as for most programs")]),
    &["64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB"],
);

const WRITE: AxisInfo = AxisInfo::new(
    "write-size",
    "bytes of each send and receive, and of each message of round-trip",
    AxisKind::size(1, LONGEST),
    &["8KiB", "128KiB"],
);

/// Of all streams together.
const DATA_RATE: Metric = metric::DATA_RATE.primary();
const SENDER_CPU: Metric = Metric::new(
    "sender CPU per GB",
    Unit::Nanoseconds,
    Better::Lower,
    "CPU time of the sending threads for each GB, including what the kernel does for both ends in their time",
);
const RECEIVER_CPU: Metric = Metric::new(
    "receiver CPU per GB",
    Unit::Nanoseconds,
    Better::Lower,
    "CPU time of the receiving threads for each GB, including the comparison of every byte",
);
const SEND_BUFFER: Metric = Metric::new(
    "send buffer",
    Unit::Bytes,
    Better::Neither,
    "of the sender when it had connected, as its kernel reports it: Linux doubles the size that is asked for, for its \
     bookkeeping, and changes it later with auto",
);
const RECEIVE_BUFFER: Metric = Metric::new(
    "receive buffer",
    Unit::Bytes,
    Better::Neither,
    "of the receiver at that time, as its kernel reports it",
);
const MSS: Metric = Metric::new("MSS", Unit::Bytes, Better::Neither, "the largest segment of the connection");

static INFO: ExperimentInfo = ExperimentInfo {
    name: "net",
    question: "What does the network alone give, against which other results can be read?",
    about: "Sends bytes to a listener of Kurabe's own, which compares every one of them: one way as fast as possible \
            (a request is 1 MiB), and there and back as messages. Over loopback: up:tcp. Over a link with another MTU: up:tcp?mtu=9000. To another host: start \
            'kurabe up tcp ADDRESS:PORT --allow-remote' there, and name it as tcp://ADDRESS:PORT. The sizes of socket buffers and \
            writes decide the result: two versions of iperf differ fourfold only because they write 128 kB or 8 kB \
            by default. As in the published experiments (network.csv).",
    axes: &[
        BUFFER,
        WRITE,
        AxisInfo { help: "concurrent streams, or clients of round-trip, each with a connection", ..CLIENTS },
    ],
    operations: &[
        reads(STREAM, "send 1 MiB one way, in blocks", 4_096),
        reads(ECHO, "send one message and receive it back", 10_000),
    ],
    metrics: &[DATA_RATE, SENDER_CPU, RECEIVER_CPU, SEND_BUFFER, RECEIVE_BUFFER, MSS],
    chart_axis: "buffer",
    answer: Answer::Comparison,
    published: Some("network.csv"),
};

pub(crate) static NET: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, _dataset: &Dataset) -> Result<PlannedCell> {
    let socket_buffer = match cell.get(BUFFER.name) {
        Some(AxisValue::Number(bytes)) => *bytes,
        _ => 0,
    };
    let block = cell.number(WRITE.name)?;
    let clients = cell.number(CLIENTS.name)? as usize;
    let net = Net { socket_buffer, block };
    let kinds = [FlowKind::Stream, FlowKind::Echo, FlowKind::Received];
    let demand = Demand {
        operations: kinds.map(|kind| net.flow(kind)).to_vec(),
        request_bytes: block,
        // The message, its answer and the block of the connection.
        client_bytes: 3 * block,
        ..Demand::default()
    };
    let policy = LoopPolicy { interleave: false, ..LoopPolicy::new(clients) };
    Ok(PlannedCell::new("nothing", demand, policy, net))
}

#[derive(Clone, Copy)]
struct Net {
    socket_buffer: u64,
    block: u64,
}

impl Net {
    fn flow(self, kind: FlowKind) -> Operation {
        Operation::Flow(Flow { kind, socket_buffer: self.socket_buffer, block: self.block })
    }

    /// Blocks of one request.
    fn batch(self) -> u64 {
        REQUEST.div_ceil(self.block)
    }

    /// Asks the listener what arrived, and compares it with what was sent. Returns the receiver's CPU time.
    fn arrived(self, session: &mut dyn Session, sent: &Sent) -> Result<u64> {
        let received = session.prepare(&self.flow(FlowKind::Received))?;
        let mut reply = Reply::new();
        session.execute(&received, &[Value::Int(sent.token)], &mut reply)?;
        session.release(received)?;
        let bytes = reply.field_int(0, 0).unwrap_or_default() as u64;
        if bytes != sent.bytes {
            let message = format!("{} bytes were sent and {bytes} arrived", sent.bytes);
            return Err(Error::mismatch(message));
        }
        Ok(reply.field_int(0, 1).unwrap_or_default() as u64)
    }

    fn check_streams(self, session: &mut dyn Session, clients: &[ClientSummary]) -> Result<Vec<MetricValue>> {
        let sent: Vec<&Sent> = clients.iter().filter_map(ClientSummary::notes).collect();
        let receivers = sent.iter().map(|sent| self.arrived(session, sent)).collect::<Result<Vec<u64>>>()?;
        let sum = |of: fn(&Sent) -> u64| sent.iter().map(|sent| of(sent)).sum::<u64>() as f64;
        let measured = sum(|sent| sent.measured);
        let Some(Sent { buffers, .. }) = sent.first().filter(|_| measured > 0.0) else {
            return Ok(Vec::new());
        };
        let rate = |sent: &&Sent| sent.measured as f64 / sent.took.as_secs_f64().max(f64::MIN_POSITIVE);
        let received = receivers.iter().sum::<u64>() as f64;
        Ok(vec![
            DATA_RATE.value(sent.iter().map(rate).sum()),
            SENDER_CPU.value(sum(|sent| sent.cpu_ns) / measured * GIGABYTE),
            RECEIVER_CPU.value(received / sum(|sent| sent.bytes) * GIGABYTE),
            SEND_BUFFER.value(buffers[0] as f64),
            RECEIVE_BUFFER.value(buffers[1] as f64),
            MSS.value(buffers[2] as f64),
        ])
    }
}

impl Workload for Net {
    fn transaction(&self, operation: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        match operation {
            STREAM => Ok(Box::new(Stream::new(*self))),
            ECHO => Ok(Box::new(Echo::new(*self, client))),
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let metrics = if operation == STREAM { self.check_streams(session, clients)? } else { Vec::new() };
        Ok(Checked { verification: Verification::default(), metrics, ..Checked::default() })
    }
}

/// What a stream sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    token: i64,
    /// Bytes, warm-up included.
    bytes: u64,
    /// Bytes of the measured phase, how long it took, and the CPU time of the sending thread in it.
    measured: u64,
    took: Duration,
    cpu_ns: u64,
    /// Sizes of the send buffer, of the other end's receive buffer, and of the largest segment.
    buffers: [i64; 3],
}

/// Sends a request of a stream.
struct Stream {
    net: Net,
    statement: Statement,
    reply: Reply,
    sent: Sent,
    /// CPU time of this thread after the last request.
    cpu_ns: u64,
    /// The start of the measured phase: bytes sent and CPU time until then.
    began: Option<(Instant, u64, u64)>,
}

impl Stream {
    fn new(net: Net) -> Self {
        let statement = Statement::new(net.flow(FlowKind::Stream), Bind::Once);
        Self { net, statement, reply: Reply::new(), sent: Sent::default(), cpu_ns: 0, began: None }
    }
}

impl Transaction for Stream {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        if recorder.measures() && self.began.is_none() {
            self.began = Some((Instant::now(), self.sent.bytes, self.cpu_ns));
        }
        let blocks = Value::Int(self.net.batch() as i64);
        self.statement.execute(session, &[blocks], &mut self.reply)
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        let field = |at| {
            let missing = || Error::mismatch("a stream's reply has missing fields");
            self.reply.field_int(0, at).ok_or_else(missing)
        };
        self.sent.bytes += self.reply.affected() * self.net.block;
        self.sent.token = field(0)?;
        self.cpu_ns = field(1)? as u64;
        self.sent.buffers = [field(2)?, field(3)?, field(4)?];
        if let Some((began, bytes, cpu_ns)) = self.began {
            self.sent.took = began.elapsed();
            self.sent.measured = self.sent.bytes - bytes;
            self.sent.cpu_ns = self.cpu_ns.saturating_sub(cpu_ns);
        }
        *recorder.notes(Sent::default) = self.sent;
        Ok(())
    }
}

/// Sends a message and receives it back.
struct Echo {
    statement: Statement,
    message: Vec<u8>,
    rng: Rng,
    reply: Reply,
}

/// Bytes of a message that differ from those of the last one.
const FRESH: usize = 8;

impl Echo {
    fn new(net: Net, client: Client) -> Self {
        let mut rng = Rng::new(client.seed);
        let mut message = Vec::with_capacity(net.block as usize + FRESH);
        while message.len() < net.block as usize {
            message.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        message.truncate(net.block as usize);
        let statement = Statement::new(net.flow(FlowKind::Echo), Bind::Once);
        Self { statement, message, rng, reply: Reply::new() }
    }
}

impl Transaction for Echo {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn prepare_input(&mut self) {
        let fresh = self.rng.next_u64().to_le_bytes();
        let length = self.message.len().min(FRESH);
        self.message[..length].copy_from_slice(&fresh[..length]);
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        self.statement.execute(session, &[Value::Bytes(&self.message)], &mut self.reply)
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        if self.reply.field_bytes(0, 0) == Some(&self.message[..]) {
            return Ok(());
        }
        Err(Error::mismatch("a message came back with other bytes than were sent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_of_a_stream_is_at_least_one_mebibyte_in_whole_blocks() {
        for (block, bytes) in [(8 << 10, 1 << 20), (128 << 10, 1 << 20), (1, 1 << 20), (3 << 20, 3 << 20)] {
            let net = Net { socket_buffer: 0, block };
            assert_eq!(net.batch() * block, bytes);
        }
        let net = Net { socket_buffer: 0, block: 1_000 };
        assert_eq!(net.batch() * 1_000, 1_049_000);
    }

    #[test]
    fn automatic_buffers_are_left_to_the_kernel() {
        let dataset = Dataset { seed: 1, records: None, slot: 0 };
        for (text, expected) in [("auto", 0), ("64KiB", 65_536)] {
            let cell = INFO.baseline(&[("buffer", text)]).unwrap();
            let planned = plan(&cell, &dataset).unwrap();
            assert!(!planned.policy.interleave);
            for operation in planned.demand.operations {
                let Operation::Flow(flow) = operation else { panic!("{operation:?}") };
                assert_eq!((flow.socket_buffer, flow.block), (expected, 8 << 10));
            }
        }
    }
}
