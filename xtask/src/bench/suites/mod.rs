//! `cargo xtask bench suites`: whole transactions through us and through the tool whose workload they are, on one server
//! and the same tables, in turn. First what each sends for a transaction, through a relay that counts; then how many it
//! makes in a second.

mod contest;
mod interval;
mod relay;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::peers::server::Server as Throwaway;
use super::{cargo, program};
use crate::{Outcome, shell};
use contest::{CONTESTS, Contest, Length, Server, Side};
use relay::{Count, Relay};

/// What is sent is the difference between two runs of so many transactions: connecting is in both.
const FEW: u64 = 100;
const MORE: u64 = 500;

struct Options {
    rounds: usize,
    seconds: u64,
    engines: Vec<String>,
    clients: Vec<u32>,
    /// Only count what is sent.
    wire_only: bool,
}

pub fn run(args: &[String]) -> Outcome {
    let options = options(args)?;
    let built = std::env::var_os("KURABE_PROGRAM").map(PathBuf::from);
    if built.is_none() {
        cargo(&["build", "--release", "--package", "kurabe"])?;
    }
    let program = built.unwrap_or_else(program);
    let scratch = std::env::temp_dir().join(format!("kurabe-suites-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let bench = Bench { program, scratch: scratch.clone(), options };
    let result = bench.all();
    let _ = fs::remove_dir_all(&scratch);
    result
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 11,
        seconds: 4,
        engines: ["postgres", "mysql", "mariadb"].map(str::to_owned).to_vec(),
        clients: vec![1, 8],
        wire_only: false,
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is no number"));
    let mut words = args.iter();
    while let Some(name) = words.next() {
        if name == "--wire" {
            options.wire_only = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--rounds" => options.rounds = number(value)?.max(1) as usize,
            "--seconds" => options.seconds = number(value)?.max(1),
            "--engines" => options.engines = value.split(',').map(str::to_owned).collect(),
            "--clients" => {
                options.clients =
                    value.split(',').map(|n| number(n).map(|n| n as u32)).collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("no option {name}: --rounds, --seconds, --engines, --clients, --wire")),
        }
    }
    Ok(options)
}

struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    options: Options,
}

impl Bench {
    fn all(&self) -> Outcome {
        let mut problems = Vec::new();
        let mut rates = Vec::new();
        println!(
            "| engine | workload | tool | round trips | bytes sent | bytes received |\n|---|---|---|--:|--:|--:|"
        );
        for engine in &self.options.engines {
            let throwaway = Throwaway::start(&self.program, engine, &[])?;
            let server = Server::of(&throwaway);
            for contest in CONTESTS.iter().filter(|contest| contest.engines.contains(&engine.as_str())) {
                if let Some(mut load) = (contest.load)(&server) {
                    shell::run(&mut load, "loading")?;
                }
                problems.extend(self.wire(&server, engine, contest)?);
                if !self.options.wire_only {
                    for clients in &self.options.clients {
                        rates.push(self.rates(&server, engine, contest, *clients)?);
                    }
                }
                if let Some(mut clean) = (contest.clean)(&server) {
                    shell::run(&mut clean, "cleaning up")?;
                }
            }
        }
        if !rates.is_empty() {
            println!(
                "\n| engine | workload | clients | its own tool, transactions/s | kurabe | kurabe ÷ tool (95 %) |\n\
                 |---|---|--:|--:|--:|--:|\n{}",
                rates.join("\n")
            );
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    /// What each sends for a transaction. They must wait for the server equally often.
    fn wire(&self, server: &Server, engine: &str, contest: &Contest) -> Result<Option<String>, String> {
        let mut trips = Vec::new();
        for side in [Side::Tool, Side::Ours] {
            let relay = Relay::start(server)?;
            let mut counts = Vec::new();
            for transactions in [FEW, MORE] {
                let before = relay.count();
                self.once(&relay.server, contest, side, 1, Length::Transactions(transactions))?;
                counts.push(relay.count().since(before));
            }
            let each = contest::transactions(side, MORE) - contest::transactions(side, FEW);
            let per = |of: fn(&Count) -> u64| (of(&counts[1]) as f64 - of(&counts[0]) as f64) / each as f64;
            let (turns, sent, received) = (per(|c| c.turns), per(|c| c.sent), per(|c| c.received));
            let name = if side == Side::Tool { contest.tool } else { "kurabe" };
            println!("| {engine} | {} | {name} | {turns:.2} | {sent:.0} | {received:.0} |", contest.name);
            trips.push(turns);
        }
        // Retries and drivers' own words in the background are less than this.
        let same = (trips[0] - trips[1]).abs() < 0.05;
        Ok((!same).then(|| {
            format!(
                "{engine}, {}: {:.2} round trips through {}, {:.2} through us",
                contest.name, trips[0], contest.tool, trips[1]
            )
        }))
    }

    fn rates(
        &self,
        server: &Server,
        engine: &str,
        contest: &Contest,
        clients: u32,
    ) -> Result<String, String> {
        let length = Length::Time(Duration::from_secs(self.options.seconds));
        let (mut rates, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
        for round in 0..self.options.rounds {
            let mut pair = [0.0; 2];
            let sides = [(0, Side::Tool), (1, Side::Ours)];
            for turn in 0..2 {
                let (at, side) = sides[(round + turn) % 2];
                pair[at] = self.once(server, contest, side, clients, length)?;
                rates[at].push(pair[at]);
            }
            ratios.push(pair[1] / pair[0]);
            eprintln!(
                "{engine} {} {clients}: {:.1} {:.1} {:.3}",
                contest.name,
                pair[0],
                pair[1],
                pair[1] / pair[0]
            );
        }
        let [tool, ours] = rates.map(|mut rates| interval::median(&mut rates));
        let ratio = interval::of_median(&mut ratios);
        Ok(format!("| {engine} | {} | {clients} | {tool:.0} | {ours:.0} | {ratio} |", contest.name))
    }

    /// Transactions per second.
    fn once(
        &self,
        server: &Server,
        contest: &Contest,
        side: Side,
        clients: u32,
        length: Length,
    ) -> Result<f64, String> {
        match side {
            Side::Tool => {
                let said = shell::run(&mut (contest.command)(server, clients, length), contest.tool)?;
                (contest.read)(&said).ok_or_else(|| format!("{} said: {said}", contest.tool))
            }
            Side::Ours => {
                let runs = self.scratch.join("runs");
                let mut command =
                    contest::ours(contest, &self.program, server, clients, length, &self.scratch)?;
                shell::run(command.env("KURABE_RUNS", &runs), "kurabe run")?;
                contest::our_rate(&self.program, &runs)
            }
        }
    }
}
