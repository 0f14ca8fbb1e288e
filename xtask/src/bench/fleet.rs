//! `cargo xtask bench fleet`: what the way through a fleet costs.
//!
//! Point reads with one agent on a broker, beside the same run without a fleet, on the same server. In each pair one runs
//! right after the other, and they take turns in being first. The median of the ratios must not be below 0.97. Then
//! simulated agents report to a coordinator for a minute, which must need less than half a processor and 500 MB.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::options;
use super::peers::machine;
use super::peers::server::Server;
use super::run::{Kurabe, Spread, in_turn};
use crate::{Outcome, shell};

/// The share of its rate that a run may lose on a fleet.
const ALLOWED: f64 = 0.03;
/// The time limit of a program to start.
const STARTS: Duration = Duration::from_secs(10);

/// A program, which ends with this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("{name}: {error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run(args: &[String]) -> Outcome {
    let (mut pairs, mut engines) = (9_usize, vec!["memcached".to_owned(), "postgres".to_owned()]);
    let (mut clients, mut duration, mut rounds) = (8_u32, "1s".to_owned(), 3_u32);
    let (mut agents, mut seconds) = (1_000_u32, 60_u32);
    let mut known: [(&str, &mut dyn options::Place); 7] = [
        ("--pairs", &mut pairs),
        ("--engines", &mut engines),
        ("--clients", &mut clients),
        ("--duration", &mut duration),
        ("--rounds", &mut rounds),
        ("--agents", &mut agents),
        ("--seconds", &mut seconds),
    ];
    options::read(args, &mut known)?;
    let kurabe = Kurabe::build("fleet")?;
    let length =
        [format!("--clients={clients}"), format!("--duration={duration}"), format!("--rounds={rounds}")];
    compare(&kurabe, &engines, pairs, &length)?;
    simulate(agents, seconds)
}

fn compare(kurabe: &Kurabe, engines: &[String], pairs: usize, length: &[String; 3]) -> Outcome {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.map_err(|error| format!("no free port: {error}"))?.to_string();
    let port = address.rsplit(':').next().unwrap_or_default();
    let _broker = Running::start(Command::new("nats-server").args(["-a", "127.0.0.1", "-p", port]))?;
    let until = Instant::now() + STARTS;
    while TcpStream::connect(&address).is_err() {
        if Instant::now() > until {
            return Err("nats-server does not listen".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let broker = format!("nats://{address}");
    let _agent = Running::start(kurabe.command(None).args(["agent", "--broker", &broker, "--name", "one"]))?;
    println!("{}; point-read {}; loopback\n", machine(), length.join(" "));
    println!(
        "| engine | without a fleet, reads/s | one agent, reads/s | agent ÷ without, median of {pairs} pairs (all) |"
    );
    println!("|---|---:|---:|---:|");
    let mut beyond = Vec::new();
    for engine in engines {
        let server = Server::start(&kurabe.program, engine, &[])?;
        let [clients, duration, rounds] = length;
        let measure = |more: &[&str]| {
            let words = ["point-read", &server.url, clients, duration, rounds, "--interleave=off"];
            kurabe.run(None, &[&words[..], more].concat())?.mean("ops_per_second")
        };
        let agent = || measure(&["--fleet", &broker, "--agents", "1"]);
        let found = in_turn(pairs, || measure(&[]), agent)?;
        let of = |figure: fn(&(f64, f64)) -> f64| Spread::of_pairs(&found, figure);
        let ratio = of(|(alone, agent)| agent / alone);
        println!(
            "| {engine} | {:.0} | {:.0} | {ratio:.3} |",
            of(|pair| pair.0).median,
            of(|pair| pair.1).median
        );
        if ratio.median < 1.0 - ALLOWED {
            beyond.push(format!("{engine}: {:.3}", ratio.median));
        }
    }
    if beyond.is_empty() {
        Ok(())
    } else {
        Err(format!("an agent loses more than 3 %: {}", beyond.join("; ")))
    }
}

/// The test of the coordinator, with as many agents and for as long.
fn simulate(agents: u32, seconds: u32) -> Outcome {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--workspace", "--test", "many_agents", "coordinator_of_many", "--", "--nocapture"]);
    cargo.env("KURABE_SIMULATED_AGENTS", agents.to_string());
    cargo.env("KURABE_SIMULATED_SECONDS", seconds.to_string());
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the coordinator's test ended with {status}")) }
}
