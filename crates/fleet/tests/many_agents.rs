//! Many simulated agents on a real broker: what the coordinator needs for them.
//!
//! The agents are in another process, so that this one is the coordinator alone. They speak the protocol, each on a
//! connection of its own, and return results as large as real ones, but make no load.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of a test are a test")]

use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use kurabe_core::axis::Cell;
use kurabe_core::fleet::{AgentRecord, OnLostAgent};
use kurabe_core::load::Arrivals;
use kurabe_core::target::TargetUrl;
use kurabe_engine::fleet::{CellOrder, ClientResult, Fleet, Order, Part, Sums};
use kurabe_engine::trial::Failure;
use kurabe_fleet::message::{About, CLIENTS, Call, Frame, FromAgent, Request, Roles, ToAgent};
use kurabe_fleet::{Agents, BEAT, FleetUrl, Wanted};
use kurabe_observe::PROTOCOL;
use kurabe_stats::Histogram;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

/// The broker's URL, in the environment of the process with the agents.
const BROKER: &str = "KURABE_SIMULATION_BROKER";
/// The number of agents, and for how many seconds they report.
const AGENTS: &str = "KURABE_SIMULATED_AGENTS";
const SECONDS: &str = "KURABE_SIMULATED_SECONDS";
/// The length of a trial, and the clients of each agent.
const TRIAL: Duration = Duration::from_secs(2);
const EACH: usize = 10;

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn coordinator_of_many_agents_needs_less_than_half_a_core_and_500_mb() {
    if !Command::new("nats-server").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: nats-server is not installed");
        return;
    }
    let (agents, seconds) = (number(AGENTS, 100), number(SECONDS, 6));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (address, quiet) = (format!("127.0.0.1:{port}"), Stdio::null);
    let mut broker = Command::new("nats-server");
    broker.args(["-a", "127.0.0.1", "-p", &port.to_string()]);
    let broker = broker.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let _broker = Process(broker);
    let until = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(&address).is_err() {
        assert!(Instant::now() < until, "nats-server does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let url = format!("nats://{address}");
    // Each agent has a connection.
    let mut simulated = Command::new("sh");
    simulated.args(["-c", "ulimit -n 8192; exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
    simulated.args(["--exact", "simulated_agents", "--ignored", "--nocapture"]);
    simulated.env(BROKER, &url).env(AGENTS, agents.to_string()).stdin(quiet()).stdout(quiet());
    let _simulated = Process(simulated.spawn().unwrap());
    let wanted = Wanted {
        url: FleetUrl::parse(&url).unwrap(),
        agents: Some(agents as u32),
        labels: BTreeMap::new(),
        command: None,
        on_lost: OnLostAgent::Fail,
    };
    // They connect one after the other.
    let until = Instant::now() + Duration::from_secs(120);
    let mut fleet = loop {
        match Agents::join(&wanted, "simulation") {
            Ok(fleet) => break fleet,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    fleet.reach(&[(TargetUrl::parse("null:").unwrap(), None)]);
    let (began, before) = (Instant::now(), cpu());
    let mut trials = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        trial(&fleet, agents as usize);
        trials += 1;
    }
    let (wall, used) = (began.elapsed().as_secs_f64(), cpu() - before);
    let (cores, memory) = (used / wall, peak_memory());
    println!(
        "{agents} agents for {wall:.1} s, {trials} trials of {} clients: the coordinator used {cores:.3} of a processor and {} MB",
        agents as usize * EACH,
        memory / 1_000_000
    );
    assert!(cores < 0.5, "{cores} of a processor");
    assert!(memory < 500_000_000, "{memory} bytes");
}

/// One trial on all agents.
fn trial(fleet: &Agents, agents: usize) {
    let order = Order {
        cell: CellOrder {
            experiment: "point-read".to_owned(),
            axes: Cell::default(),
            seed: 1,
            records: None,
            slot: 0,
            target: 0,
            second_instance: false,
            durability: None,
            timeout_ns: None,
            largest_answer: 1_000,
            threads: None,
        },
        operation: "read".to_owned(),
        number: 1,
        requests: None,
        duration_ns: Some(TRIAL.as_nanos() as u64),
        least_ns: None,
        rate: None,
        arrivals: Arrivals::default(),
        seed: 1,
        clients: (agents * EACH) as u64,
    };
    let (never, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut started = made(fleet.begin(&order, &never));
    made(started.run(&never, &progress));
    let results = made(started.end());
    let clients: usize = results.iter().map(|result| result.part.clients.len()).sum();
    assert_eq!((results.len(), clients), (agents, agents * EACH));
}

fn made<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|failure| panic!("{}", failure.error))
}

/// Seconds of CPU of this process.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

/// The most memory that this process had, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
#[ignore = "the process of the simulated agents, which the test above starts"]
fn simulated_agents() {
    let Ok(url) = env::var(BROKER) else { return };
    let count = number(AGENTS, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runs = tokio::task::LocalSet::new();
    runs.block_on(&runtime, async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut last = None;
        for number in 0..count {
            let client = async_nats::connect(&url).await.unwrap();
            last = Some(tokio::task::spawn_local(Agent::new(client, number).serve()));
        }
        if let Some(last) = last {
            last.await.unwrap();
        }
    });
}

/// A simulated agent.
struct Agent {
    client: Client,
    about: About,
    epoch: Instant,
    coordinator: Option<async_nats::Subject>,
    sent: u64,
    seen: u64,
    part: Option<Part>,
    /// When its clients end.
    end: Option<Instant>,
}

impl Agent {
    fn new(client: Client, number: u64) -> Self {
        let name = format!("simulated-{number}");
        let agent = AgentRecord {
            name: name.clone(),
            host: name,
            cpus: 1,
            system: "simulated".to_owned(),
            labels: BTreeMap::new(),
        };
        let about = About {
            id: format!("simulated{number}"),
            agent,
            kurabe: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            boot: format!("boot-{number}"),
            network: String::new(),
            pid: 1,
            roles: Roles::default(),
            busy: None,
        };
        let (coordinator, part, end) = (None, None, None);
        Self { client, about, epoch: Instant::now(), coordinator, sent: 0, seen: 0, part, end }
    }

    async fn serve(mut self) {
        let mut calls = self.client.subscribe("kurabe.fleet.call").await.unwrap();
        let own = format!("kurabe.fleet.agent.{}", self.about.id);
        let mut messages: Subscriber = self.client.subscribe(own).await.unwrap();
        let mut beat = tokio::time::interval(BEAT);
        loop {
            let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
            tokio::select! {
                Some(call) = calls.next() => {
                    if let (Ok(_), Some(reply)) = (serde_json::from_slice::<Call>(&call.payload), call.reply) {
                        let here = FromAgent::Here(Box::new(self.about.clone()));
                        self.publish(reply, 0, here).await;
                    }
                }
                Some(message) = messages.next() => {
                    let Ok(Request::Fleet(frame)) = serde_json::from_slice(&message.payload) else { continue };
                    self.coordinator = message.reply.or(self.coordinator.take());
                    self.handle(frame).await;
                }
                _ = beat.tick() => self.say(false, FromAgent::Beat { completed: 1 }).await,
                () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() => {
                    self.end = None;
                    self.say(true, FromAgent::Ended { stopped: false }).await;
                }
            }
        }
    }

    async fn handle(&mut self, frame: Frame<ToAgent>) {
        if frame.number != 0 {
            if frame.number != self.seen + 1 {
                return;
            }
            self.seen = frame.number;
        }
        match frame.message {
            ToAgent::Join { .. } => {
                let here = FromAgent::Here(Box::new(self.about.clone()));
                self.say(true, here).await;
            }
            ToAgent::Ping { number } => {
                let at_ns = self.epoch.elapsed().as_nanos() as u64;
                self.say(false, FromAgent::Pong { number, at_ns }).await;
            }
            ToAgent::Load(load) => {
                self.part = Some(load.part);
                self.say(true, FromAgent::Ready).await;
            }
            ToAgent::Go { at_ns } => {
                self.end = Some(self.epoch + Duration::from_nanos(at_ns) + TRIAL);
            }
            ToAgent::Close => {
                let Some(part) = self.part.take() else { return };
                let all = (0..EACH).map(|nth| result(part.number + nth * part.of));
                let mut all: Vec<ClientResult> = all.collect();
                while !all.is_empty() {
                    let rest = all.split_off(all.len().min(CLIENTS));
                    self.say(true, FromAgent::Clients(all)).await;
                    all = rest;
                }
                self.say(true, FromAgent::Done(Box::new(sums()))).await;
            }
            ToAgent::Leave => {
                (self.coordinator, self.sent, self.seen) = (None, 0, 0);
            }
            ToAgent::Beat | ToAgent::Stop | ToAgent::Abort | ToAgent::Observe(_) => {}
        }
    }

    async fn say(&mut self, numbered: bool, message: FromAgent) {
        let Some(subject) = self.coordinator.clone() else { return };
        self.sent += u64::from(numbered);
        self.publish(subject, if numbered { self.sent } else { 0 }, message).await;
    }

    async fn publish(&self, subject: async_nats::Subject, number: u64, message: FromAgent) {
        let frame = Frame { number, seen: self.seen, message };
        let _ = self.client.publish(subject, serde_json::to_vec(&frame).unwrap().into()).await;
    }
}

/// The result of a client: its timeline has as many points as ten thousand clients may send.
fn result(index: usize) -> ClientResult {
    let timeline = (1..=4).map(|n| (n * 500_000_000, n * 2_000)).collect();
    ClientResult {
        index,
        completed: 8_100,
        rows_written: 0,
        elapsed_ns: TRIAL.as_nanos() as u64,
        measured: 8_000,
        timeline,
    }
}

/// Sums with a histogram of service times as a server on a network has.
fn sums() -> Sums {
    let mut service = Histogram::new();
    for n in 0..2_000_u64 {
        service.record(80_000 + n * n % 900_000);
    }
    let mut sums = serde_json::to_value(Sums::default()).unwrap();
    sums["service"] = serde_json::to_value(&service).unwrap();
    sums["completed"] = 80_000.into();
    serde_json::from_value(sums).unwrap()
}
