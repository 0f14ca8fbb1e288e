//! `cargo xtask bench net`: experiment net beside iperf3, over loopback, in pairs.
//!
//! Both tools use the same socket buffers and the same size of writes and reads, one stream, the same processor for
//! the senders and the same for the receivers. The median of the ratios of all pairs must be within 5 % of 1.

use super::contest::{CLIENT, Contest, Figure, Going, Place, Ran, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, need, said};
use super::server::Server;
use super::serving::Listening;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "write | socket buffer",
    figures: &[Figure { name: "MB/s", digits: 0, compared: true }],
    allowed: [0.95, 1.05],
};

/// The rate that the receiver counted, without the first second.
const IPERF: Side = Side {
    name: "iperf3",
    program: ["iperf3", "iperf3"],
    command: "iperf3 -J -c 127.0.0.1 -p $IPERF -t 2 -O 1 -w $BUFFER -l $WRITE",
    read: |ran, _| {
        let received = ran.said.rsplit_once("\"sum_received\"")?.1.to_owned();
        Some(vec![Ran { said: received, ..Ran::default() }.after("\"bits_per_second\":")? / 8e6])
    },
    ..Side::OURS
};

const OURS: Side = Side {
    command: "ours net \"$URL\" --operation stream --buffer $BUFFER --write-size $WRITE --rounds 1 --duration 1s --interleave=off",
    read: |ran, _| Some(vec![ran.mean("data per second (bytes)")? / 1e6]),
    ..Side::OURS
};

pub fn run(args: &[String]) -> Outcome {
    let given =
        Variables::read(args, &[("rounds", "7"), ("buffers-kib", "64,512,2048"), ("writes-kib", "8,128")])?;
    need("iperf3", "iperf3")?;
    let kurabe = Kurabe::build("net")?;
    let listener = Server::start(&kurabe.program, "tcp", &[])?;
    listener.pin(SERVER)?;
    let iperf = Listening::start(&["taskset", "-c", SERVER, "iperf3", "-s", "-B", "127.0.0.1", "-p"])?;
    let version = said("iperf3", &["--version"]);
    let about = format!("{}; loopback, one stream", version.lines().next().unwrap_or_default());
    let mut going = Going::begin(&CONTEST, &given, &about)?;
    for write in given.numbers("writes-kib")? {
        for buffer in given.numbers("buffers-kib")? {
            let mut variables = listener.variables();
            variables.extend([
                ("IPERF", iperf.port.clone()),
                ("BUFFER", (buffer * 1_024).to_string()),
                ("WRITE", (write * 1_024).to_string()),
            ]);
            let place = Place::on(&kurabe, CLIENT, variables);
            going.case(&format!("{write} KiB | {buffer} KiB"), &place, &[IPERF, OURS]);
        }
    }
    going.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_receiver_is_read_from_json_of_iperf3() {
        let of = |said: &str| (IPERF.read)(&Ran { said: said.to_owned(), ..Ran::default() }, &Ran::default());
        let report = r#"{"end": {"sum_sent": {"bits_per_second": 16.0, "x": 1},
            "sum_received": {"start": 0, "bits_per_second":	8000004,
            "sender": true}, "cpu": {}}}"#;
        assert_eq!(of(report), Some(vec![1.000_000_5]));
        assert_eq!(of(r#"{"error": "unable to connect"}"#), None);
    }
}
