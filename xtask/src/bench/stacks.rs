//! `cargo xtask bench stacks`: the rate of application stacks that ab and Kurabe measure, in pairs.
//!
//! In each pair one tool runs right after the other on the same running stack, for as long and with as many clients, after a
//! warm-up, and they take turns in being first. ab requests records that the application draws; Kurabe names them, compares each, and
//! measures twice (a cell and its A/A control). The stack and its database share one processor and the tools have another:
//! a tool that compares answers would otherwise take the stack's processor. The median of the ratios of all pairs must be
//! within 5 % of 1.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::peers::{CLIENT, SERVER, machine, said, spread};
use super::serving::{Ab, Serving};
use super::{csv, options, program};
use crate::{Outcome, programs, shell};

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
    if programs::find("ab", &programs::folders()).is_none() {
        return Err("ab is not installed; to get it: apt-get install apache2-utils".to_owned());
    }
    let program = program()?;
    let scratch = std::env::temp_dir().join(format!("kurabe-stacks-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let done = pairs(&program, &scratch, &options);
    let _ = fs::remove_dir_all(&scratch);
    done
}

fn pairs(program: &Path, scratch: &Path, options: &Options) -> Outcome {
    let version = said("ab", &["-V"]);
    let version = version.lines().next().unwrap_or_default();
    let Options { rounds, clients, seconds, database, page, .. } = options;
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
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER]).arg(program);
        command.args(["up", "stack", name, "--variant", variant, "--db", database, "--records", "10k"]);
        let serving = Serving::start(command.stderr(Stdio::null()))?;
        let theirs = |length: &str| {
            let ab = Ab { clients: *clients, kept: true, length: ["-t", length], processor: Some(CLIENT) };
            ab.drive(&format!("{}/{page}", serving.url))
        };
        theirs(WARM_UP)?;
        let mut found: Vec<(f64, f64)> = Vec::new();
        for round in 0..*rounds {
            // Kurabe warms up too.
            let theirs = || theirs("1").and_then(|_| theirs(&seconds.to_string()));
            let ours = || ours(program, &serving.url, scratch, options);
            found.push(if round % 2 == 0 {
                let theirs = theirs()?;
                (theirs, ours()?)
            } else {
                let ours = ours()?;
                (theirs()?, ours)
            });
        }
        let median = |of: fn(&(f64, f64)) -> f64| spread(found.iter().map(of)).1;
        let ratios: Vec<f64> = found.iter().map(|(theirs, ours)| ours / theirs).collect();
        let ((low, high), (least, ratio, most)) = (interval(&ratios), spread(ratios.iter().copied()));
        let rates = [median(|pair| pair.0), median(|pair| pair.1)];
        println!(
            "| `{stack}` | `/{page}` | {:.0} | {:.0} | {ratio:.3} | {low:.3} to {high:.3} | {least:.3} to {most:.3} |",
            rates[0], rates[1],
        );
        if (ratio - 1.0).abs() > ALLOWED {
            beyond.push(format!("{stack}: {ratio:.3}"));
        }
    }
    if beyond.is_empty() {
        Ok(())
    } else {
        Err(format!("they differ by more than 5 %: {}", beyond.join("; ")))
    }
}

/// The 95 % interval of the median: the values at the ranks that a binomial distribution with p = ½, approximated by a
/// normal one, leaves outside with 2.5 % each (Conover, Practical Nonparametric Statistics, 3.2). All values if they are few.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let outside = ((count - 1.96 * count.sqrt()) / 2.0).floor().max(1.0) as usize - 1;
    match (sorted.get(outside), sorted.iter().rev().nth(outside)) {
        (Some(low), Some(high)) => (*low, *high),
        _ => (f64::NAN, f64::NAN),
    }
}

/// Requests per second of Kurabe, the mean of the cell and its A/A control.
fn ours(program: &Path, url: &str, scratch: &Path, options: &Options) -> Result<f64, String> {
    let kurabe = |command: &mut Command| {
        command.env("KURABE_RUNS", scratch.join("runs")).stdin(Stdio::null());
        shell::run(command, "kurabe")
    };
    let (experiment, operation) = match options.page.as_str() {
        "kv/read" => ("kv", "read"),
        "connect/new" => ("connect", "read"),
        other => return Err(format!("--page {other}: there are kv/read and connect/new")),
    };
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENT]).arg(program);
    command.args(["run", experiment, "--via", url, "--operation", operation, "--rounds", "1"]);
    command.args(["--interleave=off", "--no-html", "--quiet"]);
    if experiment == "connect" {
        command.args(["--connection", "per-request"]);
    }
    // The control takes the other half.
    let duration = format!("{}ms", options.seconds * 500);
    command.args(["--duration", &duration, "--clients", &options.clients.to_string()]);
    kurabe(&mut command)?;
    let report = kurabe(Command::new(program).args(["report", "--format", "csv"]))?;
    rate(&report).ok_or_else(|| format!("a report without a rate: {report}"))
}

/// The mean rate of all lines.
fn rate(report: &str) -> Option<f64> {
    let mut lines = report.lines();
    let at = csv::fields(lines.next()?).iter().position(|name| name == "ops_per_second")?;
    let rates: Option<Vec<f64>> = lines.map(|line| csv::fields(line).get(at)?.parse().ok()).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    Some(rates.iter().sum::<f64>() / rates.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_median_leaves_out_the_outermost_values() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(interval(&values), (5.0, 16.0));
        assert_eq!(interval(&[2.0, 1.0, 3.0]), (1.0, 3.0));
        assert!(interval(&[]).0.is_nan());
    }

    #[test]
    fn rate_of_a_report_with_a_failed_trial_is_none() {
        let csv = "run,why,ops_per_second,x\na,,100.0,\n\"a,b\",\"1, 2\",300.0,1\n";
        assert_eq!(rate(csv), Some(200.0));
        assert_eq!(rate(&format!("{csv}a,failed,,\n")), None);
        assert_eq!(rate("run,ops_per_second\n"), None);
    }
}
