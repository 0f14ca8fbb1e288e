//! `cargo xtask bench fleet`: what the way through a fleet costs.
//!
//! Point reads with one agent on a broker, beside the same run without a fleet, on the same server. In each pair one runs
//! right after the other, and they take turns in being first. The median of the ratios must not be below 0.97. Then
//! simulated agents report to a coordinator for a minute, which must need less than half a processor and 500 MB.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::peers::server::Server;
use super::peers::{machine, ours, spread};
use super::{options, program};
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
    let program = program()?;
    let scratch = std::env::temp_dir().join(format!("kurabe-fleet-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let length =
        [format!("--clients={clients}"), format!("--duration={duration}"), format!("--rounds={rounds}")];
    let compared = compare(&program, &scratch, &engines, pairs, &length);
    let _ = fs::remove_dir_all(&scratch);
    compared?;
    simulate(agents, seconds)
}

fn compare(program: &Path, scratch: &Path, engines: &[String], pairs: usize, length: &[String]) -> Outcome {
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
    let _agent = Running::start(Command::new(program).args(["agent", "--broker", &broker, "--name", "one"]))?;
    let fleet = ["--fleet", &broker, "--agents", "1"];
    println!("{}; point-read {}; loopback\n", machine(), length.join(" "));
    println!(
        "| engine | without a fleet, reads/s | one agent, reads/s | agent ÷ without, median of {pairs} pairs (all) |"
    );
    println!("|---|---:|---:|---:|");
    let mut beyond = Vec::new();
    for engine in engines {
        let server = Server::start(program, engine, &[])?;
        let measure = |more: &[&str]| {
            let runs = scratch.join("runs");
            let mut command = Command::new(program);
            command
                .env("KURABE_RUNS", &runs)
                .args(["run", "point-read", &server.url])
                .args(length)
                .args(more);
            command.args(["--interleave=off", "--no-html", "--quiet"]).stdin(Stdio::null());
            shell::run(&mut command, "kurabe")?;
            Ok::<f64, String>(ours::read(program, &runs)?.per_second)
        };
        let mut found = Vec::new();
        for pair in 0..pairs {
            found.push(if pair % 2 == 0 {
                let alone = measure(&[])?;
                (alone, measure(&fleet)?)
            } else {
                let agent = measure(&fleet)?;
                (measure(&[])?, agent)
            });
        }
        let median = |of: fn(&(f64, f64)) -> f64| spread(found.iter().map(of)).1;
        let (least, ratio, most) = spread(found.iter().map(|(alone, agent)| agent / alone));
        let (alone, agent) = (median(|pair| pair.0), median(|pair| pair.1));
        println!("| {engine} | {alone:.0} | {agent:.0} | {ratio:.3} ({least:.3} to {most:.3}) |");
        if ratio < 1.0 - ALLOWED {
            beyond.push(format!("{engine}: {ratio:.3}"));
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
