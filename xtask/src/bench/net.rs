//! `cargo xtask bench net`: experiment net beside iperf3, over loopback, in pairs.
//!
//! Both tools use the same socket buffers and the same size of writes and reads, one stream, the same processor for
//! the senders and the same for the receivers. In each pair one runs right after the other, and they take turns in
//! being first. The median of the ratios of all pairs must be within 5 % of 1.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::peers::server::Server;
use super::peers::{CLIENT, SERVER, machine, said, spread};
use super::{csv, options, program};
use crate::{Outcome, programs, shell};

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
    if programs::find("iperf3", &programs::folders()).is_none() {
        return Err("iperf3 is not installed; to get it: apt-get install iperf3".to_owned());
    }
    let program = program()?;
    let scratch = std::env::temp_dir().join(format!("kurabe-net-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let done = pairs(&program, &scratch, rounds, &buffers, &writes);
    let _ = fs::remove_dir_all(&scratch);
    done
}

fn pairs(program: &Path, scratch: &Path, rounds: usize, buffers: &[u32], writes: &[u32]) -> Outcome {
    let listener = Server::start(program, "tcp", &[])?;
    listener.pin(SERVER)?;
    let iperf = Iperf::start()?;
    let version = said("iperf3", &["--version"]);
    println!("{}; {}; loopback, one stream\n", machine(), version.lines().next().unwrap_or_default());
    println!(
        "| write | socket buffer | iperf3 MB/s | kurabe MB/s | kurabe ÷ iperf3, median of pairs (all) |"
    );
    println!("|---:|---:|---:|---:|---:|");
    let mut beyond = Vec::new();
    for &write in writes {
        for &buffer in buffers {
            let mut found: Vec<(f64, f64)> = Vec::new();
            for round in 0..rounds {
                let theirs = || iperf.measure(buffer * KIB, write * KIB);
                let ours = || ours(program, &listener.url, scratch, buffer * KIB, write * KIB);
                found.push(if round % 2 == 0 {
                    let theirs = theirs()?;
                    (theirs, ours()?)
                } else {
                    let ours = ours()?;
                    (theirs()?, ours)
                });
            }
            let median = |of: fn(&(f64, f64)) -> f64| spread(found.iter().map(of)).1 / 1e6;
            let (least, ratio, most) = spread(found.iter().map(|(theirs, ours)| ours / theirs));
            println!(
                "| {write} KiB | {buffer} KiB | {:.0} | {:.0} | {ratio:.3} ({least:.3} to {most:.3}) |",
                median(|pair| pair.0),
                median(|pair| pair.1),
            );
            if (ratio - 1.0).abs() > ALLOWED {
                beyond.push(format!("write {write} KiB, buffer {buffer} KiB: {ratio:.3}"));
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
fn ours(program: &Path, url: &str, scratch: &Path, buffer: u32, write: u32) -> Result<f64, String> {
    let kurabe = |command: &mut Command| {
        command.env("KURABE_RUNS", scratch.join("runs")).stdin(Stdio::null());
        shell::run(command, "kurabe")
    };
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENT]).arg(program).args([
        "run",
        "net",
        url,
        "--operation",
        "stream",
        "--rounds",
        "1",
    ]);
    command.args(["--duration", "1s", "--interleave=off", "--no-html", "--quiet"]);
    command.arg("--buffer").arg(buffer.to_string()).arg("--write-size").arg(write.to_string());
    kurabe(&mut command)?;
    let report = kurabe(Command::new(program).args(["report", "--format", "csv"]))?;
    rate(&report).ok_or_else(|| format!("a report without a rate: {report}"))
}

/// The mean rate of all lines.
fn rate(report: &str) -> Option<f64> {
    let mut lines = report.lines();
    let at = csv::fields(lines.next()?).iter().position(|name| name == "data per second (bytes)")?;
    let rates: Vec<f64> = lines.filter_map(|line| csv::fields(line).get(at)?.parse().ok()).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
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

    #[test]
    fn rate_of_ours_is_the_mean_of_cell_and_control() {
        let csv = "run,why,data per second (bytes),x\na,,100.0,\n\"a,b\",\"1, 2\",300.0,1\n";
        assert_eq!(rate(csv), Some(200.0));
        assert_eq!(rate("run,x\na,1\n"), None);
    }
}
