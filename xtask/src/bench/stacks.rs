//! `cargo xtask bench stacks`: the rate of application stacks that ab and Kurabe measure, in pairs.
//!
//! In each pair one tool runs right after the other on the same running stack, for as long and with as many clients, after a
//! warm-up, and they take turns in being first. ab requests records that the application draws; Kurabe names them, compares each, and
//! measures twice (a cell and its A/A control). The stack and its database share one processor and the tools have another:
//! a tool that compares answers would otherwise take the stack's processor. The median of the ratios of all pairs must be
//! within 5 % of 1.

use std::process::Stdio;

use super::options;
use super::peers::{CLIENT, SERVER, machine, said};
use super::run::{Kurabe, Spread, in_turn, interval, need};
use super::serving::{Ab, Serving};
use crate::Outcome;

/// The difference that is allowed between the tools.
const ALLOWED: f64 = 0.05;
/// Seconds of requests before the first pair: Java compiles then.
const WARM_UP: &str = "15";

struct Options {
    rounds: usize,
    clients: u32,
    seconds: u32,
    stacks: Vec<String>,
    database: String,
    page: String,
}

pub fn run(args: &[String]) -> Outcome {
    let mut options = Options {
        rounds: 10,
        clients: 8,
        seconds: 2,
        stacks: vec!["php/mysqli-persistent".to_owned(), "java/hikari".to_owned()],
        database: "up:mariadb".to_owned(),
        page: "kv/read".to_owned(),
    };
    let mut known: [(&str, &mut dyn options::Place); 6] = [
        ("--rounds", &mut options.rounds),
        ("--clients", &mut options.clients),
        ("--seconds", &mut options.seconds),
        ("--stacks", &mut options.stacks),
        ("--db", &mut options.database),
        ("--page", &mut options.page),
    ];
    options::read(args, &mut known)?;
    need("ab", "apache2-utils")?;
    let kurabe = Kurabe::build("stacks")?;
    let version = said("ab", &["-V"]);
    let version = version.lines().next().unwrap_or_default();
    let Options { rounds, clients, seconds, database, page, .. } = &options;
    println!(
        "{}; {}; {database}, {clients} clients, {rounds} pairs of {seconds} s each\n",
        machine(),
        version
    );
    println!(
        "| stack | page | ab, requests/s | kurabe, requests/s | kurabe ÷ ab, median of pairs | its 95 % interval | all |"
    );
    println!("|---|---|---:|---:|---:|---|---|");
    let mut beyond = Vec::new();
    for stack in &options.stacks {
        let (name, variant) =
            stack.split_once('/').ok_or_else(|| format!("'{stack}' is not STACK/VARIANT"))?;
        let mut command = kurabe.command(Some(SERVER));
        command.args(["up", "stack", name, "--variant", variant, "--db", database, "--records", "10k"]);
        let serving = Serving::start(command.stderr(Stdio::null()))?;
        let theirs = |length: &str| {
            let ab = Ab { clients: *clients, kept: true, length: ["-t", length], processor: Some(CLIENT) };
            ab.drive(&format!("{}/{page}", serving.url))
        };
        theirs(WARM_UP)?;
        // Kurabe warms up too.
        let theirs = || theirs("1").and_then(|_| theirs(&seconds.to_string()));
        let found = in_turn(*rounds, theirs, || ours(&kurabe, &serving.url, &options))?;
        let of = |figure: fn(&(f64, f64)) -> f64| Spread::of_pairs(&found, figure);
        let ratio = of(|(theirs, ours)| ours / theirs);
        let (low, high) =
            interval(found.iter().map(|(theirs, ours)| ours / theirs)).unwrap_or((ratio.min, ratio.max));
        println!(
            "| `{stack}` | `/{page}` | {:.0} | {:.0} | {:.3} | {low:.3} to {high:.3} | {:.3} to {:.3} |",
            of(|pair| pair.0).median,
            of(|pair| pair.1).median,
            ratio.median,
            ratio.min,
            ratio.max
        );
        if (ratio.median - 1.0).abs() > ALLOWED {
            beyond.push(format!("{stack}: {:.3}", ratio.median));
        }
    }
    if beyond.is_empty() {
        Ok(())
    } else {
        Err(format!("they differ by more than 5 %: {}", beyond.join("; ")))
    }
}

/// Requests per second of Kurabe, the mean of the cell and its A/A control.
fn ours(kurabe: &Kurabe, url: &str, options: &Options) -> Result<f64, String> {
    let experiment: &[&str] = match options.page.as_str() {
        "kv/read" => &["kv"],
        "connect/new" => &["connect", "--connection", "per-request"],
        other => return Err(format!("--page {other}: there are kv/read and connect/new")),
    };
    // The control takes the other half.
    let (duration, clients) = (format!("{}ms", options.seconds * 500), options.clients.to_string());
    let how = ["--via", url, "--operation", "read", "--duration", &duration, "--clients", &clients];
    let words = [experiment, &how, &["--rounds", "1", "--interleave=off"]].concat();
    kurabe.run(Some(CLIENT), &words)?.mean("ops_per_second")
}
