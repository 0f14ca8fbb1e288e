//! `cargo xtask bench peers`: the client's cost of a point read with common tools and with Kurabe.
//!
//! All tools of an engine read from one throwaway server, in turn, each round beginning with another tool. Engines
//! are measured one after another.

mod ours;
pub(super) mod process;
pub(super) mod server;
mod table;
pub(super) mod tools;

use std::fs;
use std::process::Command;

use super::options;
use super::run::{Kurabe, end, need};
use crate::{Outcome, programs, shell};
use server::Server;
use table::{Group, Row};
pub(super) use table::{machine, said};
use tools::{ENGINES, Engine, Length, Report, Tool};

/// The file of the table.
const PAGE: &str = "docs/performance.md";
/// The processors of client and server.
pub(super) const CLIENT: &str = "0";
pub(super) const SERVER: &str = "1";
/// Up to this many clients, the tools without a default place in the table are measured too.
const FEW: u32 = 16;

struct Options {
    rounds: usize,
    engines: Vec<String>,
    apart: Vec<u32>,
    free: Vec<u32>,
}

/// One measurement: reads per second, and microseconds of CPU per read.
#[derive(Clone, Copy)]
struct Sample {
    per_second: f64,
    client: f64,
    server: f64,
}

/// A running tool.
#[derive(Clone, Copy)]
enum Contender {
    Peer(&'static Tool),
    Ours,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Peer(tool) => tool.name,
            Self::Ours => "kurabe",
        }
    }
}

pub fn run(args: &[String]) -> Outcome {
    let options = asked(args)?;
    let missing: Vec<String> = ENGINES
        .iter()
        .flat_map(|engine| engine.tools)
        .filter_map(|tool| need(tool.program, tool.package).err())
        .collect();
    for line in &missing {
        eprintln!("{line}");
    }
    let bench = Bench { kurabe: Kurabe::build("peers")?, rounds: options.rounds };
    let mut groups = Vec::new();
    let mut versions = Vec::new();
    let mut problems = missing;
    for engine in ENGINES.iter().filter(|engine| options.engines.iter().any(|name| name == engine.name)) {
        if let Err(problem) = bench.engine(engine, &options, &mut versions, &mut groups) {
            eprintln!("{problem}");
            problems.push(problem);
        }
        // After each engine, so that results are kept if the next one fails.
        let page = table::page(&versions, &groups, &problems, args, options.rounds);
        fs::write(PAGE, page).map_err(|error| format!("{PAGE}: {error}"))?;
    }
    problems.sort();
    problems.dedup();
    end(&problems)
}

fn asked(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        engines: ENGINES.iter().map(|engine| engine.name.to_owned()).collect(),
        apart: vec![1, 16, 256, 1_000],
        free: vec![1, 16, 256, 1_000],
    };
    let mut known: [(&str, &mut dyn options::Place); 4] = [
        ("--rounds", &mut options.rounds),
        ("--engines", &mut options.engines),
        ("--clients", &mut options.apart),
        ("--clients-free", &mut options.free),
    ];
    options::read(args, &mut known)?;
    Ok(options)
}

struct Bench {
    kurabe: Kurabe,
    rounds: usize,
}

impl Bench {
    fn engine(
        &self,
        engine: &Engine,
        options: &Options,
        versions: &mut Vec<String>,
        groups: &mut Vec<Group>,
    ) -> Outcome {
        let server = Server::start(&self.kurabe.program, engine.name, engine.settings)?;
        versions.push(server.version.clone());
        let there = |tool: &&Tool| programs::find(tool.program, &programs::folders()).is_some();
        let tools: Vec<&'static Tool> = engine.tools.iter().filter(there).collect();
        for tool in &tools {
            let flag = if tool.program == "memcaslap" { "-V" } else { "--version" };
            let version = programs::first_line(Command::new(tool.program).arg(flag));
            versions.extend(version.ok().filter(|version| !versions.contains(version)));
        }
        if let Some(mut load) = (engine.load)(&server).filter(|_| !tools.is_empty()) {
            shell::run(&mut load, "loading")?;
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let all = format!("0-{}", processors - 1);
        for (apart, counts) in [(true, &options.apart), (false, &options.free)] {
            server.pin(if apart { SERVER } else { &all })?;
            for clients in counts.iter().copied().filter(|clients| *clients <= engine.most_clients) {
                let few = apart && clients <= FEW;
                let fits = |tool: &&&'static Tool| {
                    (tool.least_clients..=tool.most_clients).contains(&clients) && (few || tool.always)
                };
                let peers = tools.iter().filter(fits).map(|tool| Contender::Peer(tool));
                let contenders: Vec<Contender> = peers.chain([Contender::Ours]).collect();
                let rows = self.group(&server, &contenders, clients)?;
                let group = Group { engine: engine.name, clients, apart, rows };
                println!("{}", group.markdown());
                groups.push(group);
            }
        }
        Ok(())
    }

    /// All rounds of one number of clients.
    fn group(&self, server: &Server, contenders: &[Contender], clients: u32) -> Result<Vec<Row>, String> {
        let mut bases = Vec::new();
        for contender in contenders {
            let [a, b] = [(); 2].map(|()| self.once(server, *contender, clients, Length::Nothing));
            let (a, b) = (a?, b?);
            bases.push((
                f64::midpoint(a.1, b.1),
                f64::midpoint(a.2, b.2),
                f64::midpoint(a.0.reads, b.0.reads),
            ));
        }
        let mut rows: Vec<Row> = contenders.iter().map(|c| Row::new(c.name())).collect();
        // One client leaves both processors idle between its steps: the cost of waking them varies most there.
        let rounds = if clients == 1 { 3 * self.rounds } else { self.rounds };
        for round in 0..rounds {
            for turn in 0..contenders.len() {
                let which = (round + turn) % contenders.len();
                let (report, client, of_server) =
                    self.once(server, contenders[which], clients, Length::Whole)?;
                let base = bases[which];
                let reads = (report.reads - base.2).max(1.0);
                rows[which].samples.push(Sample {
                    per_second: report.per_second,
                    client: report.cpu.unwrap_or((client - base.0) * 1e6 / reads),
                    server: (of_server - base.1) * 1e6 / reads,
                });
            }
        }
        Ok(rows)
    }

    /// One trial: the tool's report, and the seconds of CPU of the client and of the server.
    fn once(
        &self,
        server: &Server,
        contender: Contender,
        clients: u32,
        length: Length,
    ) -> Result<(Report, f64, f64), String> {
        let mut command = match contender {
            Contender::Peer(tool) => {
                let mut command = Command::new("taskset");
                command.args(["-c", CLIENT, tool.program]);
                (tool.command)(server, clients, length, &mut command, &self.kurabe.scratch);
                command
            }
            Contender::Ours => {
                let mut command = self.kurabe.command(Some(CLIENT));
                ours::command(&mut command, &server.url, clients, length);
                command
            }
        };
        let before = server.cpu();
        let ran = process::run(&mut command, &self.kurabe.scratch)?;
        let used = server.cpu() - before;
        let report = match contender {
            Contender::Ours => ours::read(&self.kurabe)?,
            Contender::Peer(_) if length == Length::Nothing => {
                Report { reads: f64::from(clients), per_second: 0.0, cpu: None }
            }
            Contender::Peer(tool) => {
                (tool.read)(&ran.said).ok_or_else(|| format!("{} said: {}", tool.name, ran.said))?
            }
        };
        // Closing connections must not count against the server's limit for the next tool.
        if clients > FEW {
            std::thread::sleep(std::time::Duration::from_millis(150));
        }
        Ok((report, ran.cpu, used))
    }
}
