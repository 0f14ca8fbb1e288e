//! `cargo xtask bench net`: experiment net beside iperf3, over loopback, in pairs.
//!
//! Both tools use the same socket buffers and the same size of writes and reads, one stream, the same processor for
//! the senders and the same for the receivers. In each pair one runs right after the other, and they take turns in
//! being first. The median of the ratios of all pairs must be within 5 % of 1.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::options;
use super::peers::server::Server;
use super::peers::{CLIENT, SERVER, machine, said};
use super::run::{Kurabe, Spread, in_turn, need};
use crate::{Outcome, shell};

/// The difference that is allowed between the tools.
const ALLOWED: f64 = 0.05;
/// The time limit of iperf3's server to start.
const STARTS: Duration = Duration::from_secs(10);
const KIB: u32 = 1_024;

/// iperf3's server, until it is dropped.
struct Iperf {
    child: Child,
    port: String,
}

impl Iperf {
    fn start() -> Result<Self, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| format!("no free port: {error}"))?.port().to_string();
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig",
            "TERM",
            "taskset",
            "-c",
            SERVER,
            "iperf3",
            "-s",
            "-B",
            "127.0.0.1",
            "-p",
        ]);
        command.arg(&port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child =
            command.spawn().map_err(|error| format!("setpriv (of util-linux), for iperf3: {error}"))?;
        let started = Self { child, port };
        let until = Instant::now() + STARTS;
        while !started.listens() {
            if Instant::now() > until {
                return Err("iperf3 -s does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }

    /// Whether its port is taken. A connection would be a test of its own to it.
    fn listens(&self) -> bool {
        TcpListener::bind(format!("127.0.0.1:{}", self.port)).is_err()
    }

    /// Bytes per second that the receiver counted, without the first second.
    fn measure(&self, buffer: u32, write: u32) -> Result<f64, String> {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            CLIENT,
            "iperf3",
            "-J",
            "-c",
            "127.0.0.1",
            "-p",
            &self.port,
            "-t",
            "2",
            "-O",
            "1",
        ]);
        command.arg("-w").arg(buffer.to_string()).arg("-l").arg(write.to_string()).stdin(Stdio::null());
        let report = shell::run(&mut command, "iperf3")?;
        received(&report).ok_or_else(|| format!("iperf3 said: {report}"))
    }
}

impl Drop for Iperf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rate of the receiver in iperf3's JSON report, in bytes per second.
fn received(report: &str) -> Option<f64> {
    let sum = &report[report.rfind("\"sum_received\"")?..];
    let rate = sum[sum.find("\"bits_per_second\":")?..].split_once(':')?.1;
    let bits: f64 = rate.split([',', '}', '\n']).next()?.trim().parse().ok()?;
    Some(bits / 8.0)
}

pub fn run(args: &[String]) -> Outcome {
    let (mut rounds, mut buffers, mut writes) = (7_usize, vec![64_u32, 512, 2_048], vec![8_u32, 128]);
    let mut known: [(&str, &mut dyn options::Place); 3] =
        [("--rounds", &mut rounds), ("--buffers-kib", &mut buffers), ("--writes-kib", &mut writes)];
    options::read(args, &mut known)?;
    need("iperf3", "iperf3")?;
    let kurabe = Kurabe::build("net")?;
    let listener = Server::start(&kurabe.program, "tcp", &[])?;
    listener.pin(SERVER)?;
    let iperf = Iperf::start()?;
    let version = said("iperf3", &["--version"]);
    println!("{}; {}; loopback, one stream\n", machine(), version.lines().next().unwrap_or_default());
    println!(
        "| write | socket buffer | iperf3 MB/s | kurabe MB/s | kurabe ÷ iperf3, median of pairs (all) |"
    );
    println!("|---:|---:|---:|---:|---:|");
    let mut beyond = Vec::new();
    for write in &writes {
        for buffer in &buffers {
            let theirs = || iperf.measure(buffer * KIB, write * KIB);
            let found = in_turn(rounds, theirs, || ours(&kurabe, &listener.url, buffer * KIB, write * KIB))?;
            let of = |figure: fn(&(f64, f64)) -> f64| Spread::of_pairs(&found, figure);
            let ratio = of(|(theirs, ours)| ours / theirs);
            println!(
                "| {write} KiB | {buffer} KiB | {:.0} | {:.0} | {ratio:.3} |",
                of(|pair| pair.0).median / 1e6,
                of(|pair| pair.1).median / 1e6
            );
            if (ratio.median - 1.0).abs() > ALLOWED {
                beyond.push(format!("write {write} KiB, buffer {buffer} KiB: {:.3}", ratio.median));
            }
        }
    }
    if beyond.is_empty() {
        Ok(())
    } else {
        Err(format!("they differ by more than 5 %: {}", beyond.join("; ")))
    }
}

/// Bytes per second of a stream of ours, the mean of the cell and its A/A control.
fn ours(kurabe: &Kurabe, url: &str, buffer: u32, write: u32) -> Result<f64, String> {
    let (buffer, write) = (buffer.to_string(), write.to_string());
    let words = ["net", url, "--operation", "stream", "--buffer", &buffer, "--write-size", &write];
    let how = ["--rounds", "1", "--duration", "1s", "--interleave=off"];
    kurabe.run(Some(CLIENT), &[&words[..], &how].concat())?.mean("data per second (bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_receiver_is_read_from_json_of_iperf3() {
        let report = r#"{"end": {"sum_sent": {"bits_per_second": 16.0, "x": 1},
            "sum_received": {"start": 0, "bits_per_second":	8000004,
            "sender": true}, "cpu": {}}}"#;
        assert_eq!(received(report), Some(1_000_000.5));
        assert_eq!(received(r#"{"error": "unable to connect"}"#), None);
    }
}
