//! Many simulated agents on a real broker: what the coordinator needs for them.
//!
//! The agents are in another process, so that this one is the coordinator alone. They speak the protocol and return results
//! as large as real ones, but make no load.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of a test are a test")]

mod common;

use async_nats::{Client, Subscriber};
use common::{Broker, Process};
use futures_util::StreamExt;
use kurabe_core::ErrorKind;
use kurabe_core::axis::Cell;
use kurabe_core::experiment::Stop;
use kurabe_core::fleet::{AgentRecord, OnLostAgent};
use kurabe_core::name::Name;
use kurabe_core::target::TargetUrl;
use kurabe_engine::fleet::{CellOrder, ClientResult, ClientShare, Fleet, Order, ShareResult};
use kurabe_engine::trial::{Failure, LoadModel};
use kurabe_fleet::message::{About, CLIENTS, Call, Fault, Frame, FromAgent, Request, Roles, ToAgent};
use kurabe_fleet::{Agents, BEAT, Build, FleetUrl, ReachedServer, SILENCE, Wanted};
use kurabe_observe::PROTOCOL;
use kurabe_stats::Histogram;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The broker's URL, in the environment of the process with the agents.
const BROKER: &str = "KURABE_SIMULATION_BROKER";
/// The number of agents, and for how many seconds they report.
const AGENTS: &str = "KURABE_SIMULATED_AGENTS";
const SECONDS: &str = "KURABE_SIMULATED_SECONDS";
/// The number of the agent that falls silent when its clients are to start.
const SILENT: &str = "KURABE_SIMULATED_SILENT_AGENT";
/// The number of agents that share a connection, which takes longer to make than an agent.
const SHARED: &str = "KURABE_SIMULATED_AGENTS_PER_CONNECTION";
/// The length of a trial, and the clients of each agent.
const TRIAL: Duration = Duration::from_secs(2);
const EACH: usize = 10;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One simulation at a time: the processor's time is that of the whole process.
static ONE: Mutex<()> = Mutex::new(());

/// Simulated agents that have joined a run.
struct Simulation {
    fleet: Agents,
    _agents: Process,
    _broker: Broker,
    _one: MutexGuard<'static, ()>,
}

impl Simulation {
    /// Starts so many, of which some share a connection. Agent `silent` falls silent when its clients are to start.
    fn start(agents: u64, shared: u64, silent: Option<u64>) -> Option<Self> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let broker = Broker::start()?;
        let quiet = Stdio::null;
        let mut simulated = Command::new("sh");
        simulated.args(["-c", "ulimit -n 8192; exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
        simulated.args(["--exact", "silence_among_4_agents_is_found_in_time", "--nocapture"]);
        simulated.env(BROKER, &broker.url).env(AGENTS, agents.to_string()).stdin(quiet()).stdout(quiet());
        simulated.env(SHARED, shared.to_string());
        simulated.env(SILENT, silent.map_or_else(String::new, |agent| agent.to_string()));
        let simulated = Process(simulated.spawn().unwrap());
        let wanted = Wanted {
            url: FleetUrl::parse(&broker.url).unwrap(),
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
        let server = ReachedServer { url: TargetUrl::parse("null:").unwrap(), is_throwaway: true };
        fleet.reach(&[(server, None)]);
        Some(Self { fleet, _agents: simulated, _broker: broker, _one: one })
    }
}

#[test]
fn coordinator_of_many_agents_needs_less_than_half_a_core_and_500_mb() {
    let (agents, seconds) = (number(AGENTS, 100), number(SECONDS, 6));
    let Some(simulation) = Simulation::start(agents, 1, None) else { return };
    let (began, before) = (Instant::now(), cpu());
    let mut trials = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        trial(&simulation.fleet, agents as usize);
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

/// The run ends within a second and a half of the time after which an agent counts as lost, whether four agents or a
/// thousand send signs of life meanwhile.
fn silence_is_found_in_time(agents: u64) {
    let Some(simulation) = Simulation::start(agents, 50, Some(agents / 2)) else { return };
    let (never, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut started = made(simulation.fleet.begin(&order(agents as usize), &never));
    let began = Instant::now();
    let Err(failure) = started.run(&never, &progress) else { panic!("nobody noticed the silence") };
    let took = began.elapsed();
    println!("{agents} agents: the trial ended {:.1} s after one fell silent", took.as_secs_f64());
    let why = failure.error.to_string();
    assert!(why.contains(&format!("agent simulated-{}: it gave no sign of life", agents / 2)), "{why}");
    assert!(took < SILENCE + Duration::from_millis(1_500), "{took:?}");
}

/// With the broker in its environment it is the process of the simulated agents, which all tests start.
#[test]
fn silence_among_4_agents_is_found_in_time() {
    if let Ok(broker) = env::var(BROKER) {
        return simulate_agents(&broker);
    }
    silence_is_found_in_time(4);
}

#[test]
fn silence_among_200_agents_is_found_in_time() {
    silence_is_found_in_time(200);
}

#[test]
fn silence_among_1000_agents_is_found_in_time() {
    silence_is_found_in_time(1_000);
}

fn trial(fleet: &Agents, agents: usize) {
    let (never, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut started = made(fleet.begin(&order(agents), &never));
    made(started.run(&never, &progress));
    let results = made(started.end());
    let clients: usize = results.iter().map(|result| result.part.recorded.clients.len()).sum();
    assert_eq!((results.len(), clients), (agents, agents * EACH));
}

fn order(agents: usize) -> Order {
    Order {
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
        stop: Stop { duration: Some(TRIAL), ..Stop::default() },
        load_model: LoadModel::Closed,
        seed: 1,
        clients: (agents * EACH) as u64,
    }
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

fn simulate_agents(url: &str) {
    let count = number(AGENTS, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runs = tokio::task::LocalSet::new();
    runs.block_on(&runtime, async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (mut last, mut connection) = (None, None);
        for agent in 0..count {
            let client = match connection.take().filter(|_| agent % number(SHARED, 1) != 0) {
                Some(client) => client,
                None => async_nats::connect(url).await.unwrap(),
            };
            connection = Some(client.clone());
            last = Some(tokio::task::spawn_local(Agent::new(client, agent).serve()));
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
    part: Option<ClientShare>,
    /// When its clients end.
    end: Option<Instant>,
    /// Whether it falls silent when they are to start, and whether it has.
    falls_silent: bool,
    silent: bool,
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
            id: Name::parse(&format!("simulated{number}")).unwrap(),
            agent,
            kurabe: env!("CARGO_PKG_VERSION").to_owned(),
            build: Build::this(),
            protocol: PROTOCOL,
            boot: format!("boot-{number}"),
            network: String::new(),
            pid: 1,
            roles: Roles::default(),
            busy: None,
        };
        let (coordinator, part, end) = (None, None, None);
        let falls_silent = env::var(SILENT).is_ok_and(|silent| silent == number.to_string());
        let (epoch, silent) = (Instant::now(), false);
        Self { client, about, epoch, coordinator, sent: 0, seen: 0, part, end, falls_silent, silent }
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
            ToAgent::Go { .. } if self.falls_silent => self.silent = true,
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
                self.say(true, FromAgent::Done(Box::new(part_result()))).await;
            }
            ToAgent::Leave => {
                (self.coordinator, self.sent, self.seen) = (None, 0, 0);
            }
            ToAgent::Abort => {
                let kind = ErrorKind::Interrupted;
                let fault = Fault { kind, message: String::new(), mismatches: 0, stood_still_ns: 0 };
                self.say(true, FromAgent::Failed(fault)).await;
            }
            ToAgent::Beat | ToAgent::Stop | ToAgent::Observe(_) => {}
        }
    }

    async fn say(&mut self, numbered: bool, message: FromAgent) {
        let Some(subject) = self.coordinator.clone() else { return };
        self.sent += u64::from(numbered);
        self.publish(subject, if numbered { self.sent } else { 0 }, message).await;
    }

    async fn publish(&self, subject: async_nats::Subject, number: u64, message: FromAgent) {
        if self.silent {
            return;
        }
        let frame = Frame { number, seen: self.seen, message };
        let _ = self.client.publish(subject, serde_json::to_vec(&frame).unwrap().into()).await;
    }
}

fn result(index: usize) -> ClientResult {
    let elapsed_ns = TRIAL.as_nanos() as u64;
    ClientResult { index, completed: 8_100, rows_written: 0, elapsed_ns, measured: 8_000 }
}

/// A result with the histogram of service times, and the course, of a server on a network.
fn part_result() -> ShareResult {
    let mut service = Histogram::new();
    for n in 0..2_000_u64 {
        service.record(80_000 + n * n % 900_000);
    }
    let mut part = serde_json::to_value(ShareResult::default()).unwrap();
    let shares: Vec<(u32, u32)> = (0..800).map(|bucket| (bucket + 1_000, 100)).collect();
    let times: Vec<(u32, u32)> = (0..800).map(|bucket| (bucket * 10, 100)).collect();
    let course = serde_json::json!({ "shares": shares, "parts": { "counts": times, "length": 26 } });
    part["recorded"]["times"] = serde_json::json!({ "service": service, "course": course });
    part["recorded"]["completed"] = 80_000.into();
    serde_json::from_value(part).unwrap()
}
