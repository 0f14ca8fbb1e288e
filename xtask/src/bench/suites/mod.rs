//! `cargo xtask bench suites`: whole transactions by kurabe and by the tool that defines the workload, on one server
//! and the same tables, in turn. First the traffic of each for a transaction, through a relay that counts. Then the
//! transactions per second: with server and client on separate processors, and with both placed by the scheduler.

mod contest;
mod relay;
mod table;

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::options;
use super::peers::server::Server as Throwaway;
use super::peers::{CLIENT, SERVER, said};
use super::run::{Kurabe, end, in_turn};
use crate::{Outcome, shell};
use contest::{CONTESTS, Contest, Length, Server, Side};
use relay::{Count, Relay};
use table::{PAGE, Rates, Traffic};

/// The traffic is the difference between two runs of different numbers of transactions: connecting is in both.
const FEW: u64 = 100;
const MORE: u64 = 500;

/// The processors of client and server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// A separate processor for each.
    Apart,
    /// Wherever the scheduler puts them.
    Free,
}

impl options::Value for Placement {
    fn of(text: &str) -> Result<Self, String> {
        match text {
            "apart" => Ok(Self::Apart),
            "free" => Ok(Self::Free),
            _ => Err(format!("'{text}' is neither apart nor free")),
        }
    }
}

struct Options {
    rounds: usize,
    seconds: u64,
    engines: Vec<String>,
    clients: Vec<u32>,
    workloads: Option<Vec<String>>,
    placements: Vec<Placement>,
    /// Only count the traffic.
    wire_only: bool,
}

pub fn run(args: &[String]) -> Outcome {
    let options = asked(args)?;
    let bench = Bench { kurabe: Kurabe::build("suites")?, options };
    let measured = bench.all()?;
    if !measured.rates.is_empty() {
        let page = table::page(&measured, args, bench.options.rounds, bench.options.seconds);
        fs::write(PAGE, page).map_err(|error| format!("{PAGE}: {error}"))?;
        println!("written to {PAGE}");
    }
    end(&measured.problems)
}

fn asked(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 11,
        seconds: 4,
        engines: ["postgres", "mysql", "mariadb"].map(str::to_owned).to_vec(),
        clients: vec![1, 8],
        workloads: None,
        placements: vec![Placement::Apart, Placement::Free],
        wire_only: false,
    };
    let mut known: [(&str, &mut dyn options::Place); 7] = [
        ("--rounds", &mut options.rounds),
        ("--seconds", &mut options.seconds),
        ("--engines", &mut options.engines),
        ("--workloads", &mut options.workloads),
        ("--clients", &mut options.clients),
        ("--processors", &mut options.placements),
        ("--wire", &mut options.wire_only),
    ];
    options::read(args, &mut known)?;
    Ok(options)
}

/// All counts and measurements.
#[derive(Default)]
struct Measured {
    versions: Vec<String>,
    sent: Vec<Traffic>,
    rates: Vec<Rates>,
    problems: Vec<String>,
}

struct Bench {
    kurabe: Kurabe,
    options: Options,
}

impl Bench {
    fn all(&self) -> Result<Measured, String> {
        let mut measured = Measured::default();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let all = format!("0-{}", processors - 1);
        let asked = |contest: &&Contest| {
            self.options.workloads.as_ref().is_none_or(|names| names.iter().any(|name| name == contest.name))
        };
        println!("{}", Traffic::HEAD);
        for engine in &self.options.engines {
            let throwaway = Throwaway::start(&self.kurabe.program, engine, &[])?;
            measured.versions.push(throwaway.version.clone());
            let server = Server::of(&throwaway);
            let contests = CONTESTS.iter().filter(|contest| contest.engines.contains(&engine.as_str()));
            for contest in contests.filter(asked) {
                measured.note_tool(contest.tool);
                if let Some(mut load) = (contest.load)(&server) {
                    shell::run(&mut load, "loading")?;
                }
                self.wire(&server, engine, contest, &mut measured)?;
                let placements = self.options.placements.iter().filter(|_| !self.options.wire_only);
                for apart in
                    placements.map(|at| *at == Placement::Apart).filter(|apart| !apart || processors > 1)
                {
                    throwaway.pin(if apart { SERVER } else { &all })?;
                    for clients in &self.options.clients {
                        let rates = self.rates(&server, engine, contest, *clients, apart)?;
                        println!("{}", rates.markdown());
                        measured.rates.push(rates);
                    }
                }
                if let Some(mut clean) = (contest.clean)(&server) {
                    shell::run(&mut clean, "cleaning up")?;
                }
            }
        }
        Ok(measured)
    }

    /// The traffic of each for a transaction. Both must wait for the server equally often.
    fn wire(
        &self,
        server: &Server,
        engine: &str,
        contest: &Contest,
        measured: &mut Measured,
    ) -> Result<(), String> {
        let mut trips = Vec::new();
        for side in [Side::Tool, Side::Ours] {
            let relay = Relay::start(server)?;
            let mut counts = Vec::new();
            for transactions in [FEW, MORE] {
                let before = relay.count();
                self.once(&relay.server, contest, side, 1, Length::Transactions(transactions), false)?;
                counts.push(relay.count().since(before));
            }
            let each = contest::transactions(side, MORE) - contest::transactions(side, FEW);
            let per = |of: fn(&Count) -> u64| (of(&counts[1]) as f64 - of(&counts[0]) as f64) / each as f64;
            let sent = Traffic {
                engine: engine.to_owned(),
                workload: contest.name,
                tool: if side == Side::Tool { contest.tool } else { "kurabe" },
                trips: per(|c| c.turns),
                sent: per(|c| c.sent),
                received: per(|c| c.received),
            };
            println!("{}", sent.markdown());
            trips.push(sent.trips);
            measured.sent.push(sent);
        }
        // Retries and background messages of drivers are less than this.
        if (trips[0] - trips[1]).abs() >= 0.05 {
            measured.problems.push(format!(
                "{engine}, {}: {:.2} round trips with {}, {:.2} with kurabe",
                contest.name, trips[0], contest.tool, trips[1]
            ));
        }
        Ok(())
    }

    fn rates(
        &self,
        server: &Server,
        engine: &str,
        contest: &Contest,
        clients: u32,
        apart: bool,
    ) -> Result<Rates, String> {
        let length = Length::Time(Duration::from_secs(self.options.seconds));
        let side = |side| self.once(server, contest, side, clients, length, apart);
        let pairs = in_turn(self.options.rounds, || side(Side::Tool), || side(Side::Ours))?;
        let pairs = pairs.into_iter().map(|(tool, ours)| [tool, ours]).collect();
        Ok(Rates {
            engine: engine.to_owned(),
            workload: contest.name,
            tool: contest.tool,
            clients,
            apart,
            pairs,
        })
    }

    /// Transactions per second; `None` for a run by number.
    fn once(
        &self,
        server: &Server,
        contest: &Contest,
        side: Side,
        clients: u32,
        length: Length,
        apart: bool,
    ) -> Result<f64, String> {
        if side == Side::Ours {
            let words = contest::ours(contest, &self.kurabe, server, clients, length)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return self.kurabe.run(apart.then_some(CLIENT), &words)?.mean("ops_per_second");
        }
        let mut command = (contest.command)(server, clients, length);
        if apart {
            command = on_the_clients_processor(&command);
        }
        let (said, progress) = shell::both(&mut command, contest.tool)?;
        let all = said + &progress;
        let rate = (contest.read)(&all).and_then(|said| match length {
            Length::Time(_) => said.warm(),
            Length::Transactions(_) => Some(f64::NAN),
        });
        rate.ok_or_else(|| format!("{} said: {all}", contest.tool))
    }
}

impl Measured {
    fn note_tool(&mut self, tool: &str) {
        let version = said(tool, &["--version"]);
        let version = version.lines().next().unwrap_or_default().to_owned();
        if !self.versions.contains(&version) {
            self.versions.push(version);
        }
    }
}

fn on_the_clients_processor(command: &Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", CLIENT]).arg(command.get_program()).args(command.get_args());
    pinned
}
