//! The description of a benchmark that compares programs, and its one runner.
//!
//! Sides are shell commands that take turns in one place, each round beginning with another. The last one is ours. What they
//! print and take gives figures; ratios of ours to each other side are taken within each round.

use std::process::Command;
use std::time::{Duration, Instant};

use super::csv::Table;
use super::options::Variables;
use super::process;
use super::run::{Kurabe, Spread, end, interval, machine, need, said};
use crate::shell::Outcome;

/// The ratios of a benchmark that only shows them.
pub const ANY: [f64; 2] = [0.0, f64::INFINITY];

/// The processors of client and server where each has its own.
pub const CLIENT: &str = "0";
pub const SERVER: &str = "1";

/// A benchmark.
pub struct Contest {
    /// The heading of what distinguishes cases: `engine | clients`.
    pub cases: &'static str,
    pub figures: &'static [Figure],
    /// The lowest and the highest ratio of the first figure that are allowed.
    pub allowed: [f64; 2],
}

pub struct Figure {
    pub name: &'static str,
    pub digits: usize,
    /// Whether ours is compared with that of the others.
    pub compared: bool,
}

/// The figure that is counted by one trial of its own, if a benchmark has it.
pub const COUNTED: &str = "system calls/read";
/// What `perf` counts for it.
const CALLS: &str = "raw_syscalls:sys_enter";

/// The count in a line of `perf stat -x ,`.
fn calls(text: &str) -> Option<f64> {
    text.lines().find(|line| line.contains(CALLS))?.split(',').next()?.parse().ok()
}

/// One of the programs that are compared.
#[derive(Clone, Copy)]
pub struct Side {
    pub name: &'static str,
    /// The program that it needs, and the package that has it.
    pub program: [&'static str; 2],
    /// A shell command. Its environment has the place's variables, `KURABE` (the program), and `SCRATCH` (a folder). The
    /// function `ours` runs an experiment and prints its report as CSV.
    pub command: &'static str,
    /// The same without the work, whose cost is to be subtracted; or empty.
    pub nothing: &'static str,
    /// The figures, from the command and from the one without the work.
    pub read: fn(&Ran, &Ran) -> Option<Vec<f64>>,
}

impl Side {
    /// A program without a name, a command and figures: each is to be given.
    pub const PLAIN: Self =
        Self { name: "", program: ["sh", "dash"], command: "", nothing: "", read: |_, _| None };
    /// An experiment of ours, whose figure is the rate; the command is to be given.
    pub const OURS: Self =
        Self { name: "kurabe", read: |ran, _| Some(vec![ran.mean("ops_per_second")?]), ..Self::PLAIN };
}

/// What a command printed and took, in seconds.
#[derive(Default)]
pub struct Ran {
    pub said: String,
    pub wall: f64,
    pub cpu: f64,
    /// The part of it in user space.
    pub user: f64,
    /// System calls, of a trial that counts them.
    pub calls: Option<f64>,
    /// The servers' CPU meanwhile.
    pub servers: f64,
    /// The place's amount of work.
    pub work: f64,
}

impl Ran {
    /// The number that follows a text.
    pub fn after(&self, text: &str) -> Option<f64> {
        let rest = self.said.split_once(text)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit() && !['.', 'e', '-'].contains(&c)).next()?.parse().ok()
    }

    /// The mean of a column of our report: that of the cell and its A/A control.
    pub fn mean(&self, column: &str) -> Option<f64> {
        Table::read(&self.said).ok()?.mean(column).ok()
    }
}

/// What `ours` means in a command.
const OURS: &str =
    "ours() { \"$KURABE\" run \"$@\" --no-html --quiet >&2 && \"$KURABE\" report --format csv; }; ";
/// The longest that a command may take.
const LONGEST: Duration = Duration::from_secs(900);
/// Closing connections of one command must not count against the server's limit for the next one.
const PAUSE: Duration = Duration::from_millis(150);

/// Where sides run.
pub struct Place<'a> {
    pub kurabe: &'a Kurabe,
    /// The only processor of the sides.
    pub processor: Option<&'static str>,
    pub variables: Vec<(&'static str, String)>,
    /// Reads the seconds of CPU that the servers have used.
    pub servers: &'a dyn Fn() -> f64,
    pub work: f64,
}

impl<'a> Place<'a> {
    /// On all processors, without servers whose time counts and without an amount of work.
    pub fn new(kurabe: &'a Kurabe, variables: Vec<(&'static str, String)>) -> Self {
        Self { kurabe, processor: None, variables, servers: &|| 0.0, work: 0.0 }
    }

    /// With the sides on one processor.
    pub fn on(kurabe: &'a Kurabe, processor: &'static str, variables: Vec<(&'static str, String)>) -> Self {
        Self { processor: Some(processor), ..Self::new(kurabe, variables) }
    }

    pub fn run(&self, command: &str) -> Result<Ran, String> {
        self.run_with(command, false)
    }

    /// Runs a command, and has `perf` count its system calls, which makes each of them slower.
    fn run_with(&self, command: &str, counts: bool) -> Result<Ran, String> {
        let mut shell = self.kurabe.shell(self.processor, &format!("{OURS}{command}"));
        let counted = self.kurabe.scratch.join("calls");
        if counts {
            let mut perf = Command::new("perf");
            perf.args(["stat", "-x", ",", "-e", CALLS, "-o"]).arg(&counted).arg("--");
            perf.arg(shell.get_program()).args(shell.get_args());
            let set = shell.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
            perf.envs(set.collect::<Vec<_>>()).stdin(std::process::Stdio::null());
            shell = perf;
        }
        shell.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (before, began) = ((self.servers)(), Instant::now());
        let (said, cpu, user) = process::run(&mut shell, &self.kurabe.scratch, LONGEST)
            .map_err(|why| format!("`{command}`: {why}"))?;
        let (wall, servers) = (began.elapsed().as_secs_f64(), (self.servers)() - before);
        let _ = std::fs::remove_dir_all(self.kurabe.scratch.join("runs"));
        std::thread::sleep(PAUSE);
        let calls = std::fs::read_to_string(&counted).ok().filter(|_| counts).and_then(|text| calls(&text));
        Ok(Ran { said, wall, cpu, user, calls, servers, work: self.work })
    }

    /// The figures of one trial of a side.
    pub fn figures(&self, side: &Side, nothing: &Ran) -> Result<Vec<f64>, String> {
        let ran = self.run(side.command)?;
        (side.read)(&ran, nothing).ok_or_else(|| format!("{} said: {}", side.name, ran.said))
    }

    fn rows(&self, sides: &[Side], rounds: u32, calls: Option<usize>) -> Result<Vec<Row>, String> {
        let nothing = |side: &Side, counts: bool| match side.nothing {
            "" => Ok(Ran { calls: counts.then_some(0.0), ..Ran::default() }),
            command => self.run_with(command, counts),
        };
        let without = |side: &Side| nothing(side, false);
        let nothing_of_all = sides.iter().map(without).collect::<Result<Vec<Ran>, String>>()?;
        let mut rows: Vec<Row> = sides.iter().map(|side| Row::new(side.name)).collect();
        for round in 0..rounds as usize {
            for turn in 0..sides.len() {
                let which = (round + turn) % sides.len();
                rows[which].samples.push(self.figures(&sides[which], &nothing_of_all[which])?);
            }
        }
        // Counted apart, since counting slows down what it counts.
        if let Some(at) = calls.filter(|_| need("perf", "linux-perf").is_ok()) {
            for (side, row) in sides.iter().zip(&mut rows) {
                let (ran, nothing) = (self.run_with(side.command, true)?, nothing(side, true)?);
                let counted = (side.read)(&ran, &nothing).map_or(f64::NAN, |figures| figures[at]);
                row.samples.iter_mut().for_each(|sample| sample[at] = counted);
            }
        }
        Ok(rows)
    }
}

/// The figures of a side, by rounds.
pub struct Row {
    pub name: &'static str,
    pub samples: Vec<Vec<f64>>,
}

impl Row {
    pub fn new(name: &'static str) -> Self {
        Self { name, samples: Vec::new() }
    }
}

impl Contest {
    /// Prints machine and head.
    fn begin(&self, about: &str) {
        let figures = self.figures.iter().map(|figure| format!(" {} (range) |", figure.name));
        let compared = self.figures.iter().filter(|figure| figure.compared);
        let ratios = compared.map(|figure| format!(" {}: ours ÷ it (95 %; range) |", figure.name));
        let head: String = figures.chain(ratios).collect();
        let lines = "---|".repeat(head.matches('|').count() + self.cases.matches('|').count() + 2);
        let date = said("date", &["-u", "+%Y-%m-%d %H:%M"]);
        println!("{date} UTC; {}; {about}; kurabe {}\n", machine(), env!("CARGO_PKG_VERSION"));
        println!("| {} | tool |{head}\n|{lines}", self.cases);
    }

    /// A line of the table for each row. The last row is ours.
    fn markdown(&self, case: &str, rows: &[Row]) -> String {
        let mut lines = Vec::new();
        for row in rows {
            let of = |at: usize| Spread::of_pairs(&row.samples, |sample| sample[at]);
            let shown = |at: usize, digits: usize| {
                let spread = of(at);
                if spread.median.is_nan() { "–".to_owned() } else { format!("{spread:.digits$}") }
            };
            let figures = self.figures.iter().enumerate().map(|(at, figure)| shown(at, figure.digits));
            let compared = self.figures.iter().enumerate().filter(|(_, figure)| figure.compared);
            let cells: Vec<String> = figures
                .chain(compared.map(|(at, _)| ratio(rows, row, at).unwrap_or("–".to_owned())))
                .collect();
            lines.push(format!("| {case} | {} | {} |", row.name, cells.join(" | ")));
        }
        lines.join("\n")
    }
}

/// The ratios of our figure to that of a row, within each round.
fn ratios(rows: &[Row], row: &Row, at: usize) -> Vec<f64> {
    let ours = rows.last().into_iter().flat_map(|ours| &ours.samples);
    ours.zip(&row.samples).map(|(ours, theirs)| ours[at] / theirs[at]).collect()
}

/// Their median, its interval, and their range; `None` of our own row.
fn ratio(rows: &[Row], row: &Row, at: usize) -> Option<String> {
    let ratios = ratios(rows, row, at);
    let spread = Spread::of(ratios.iter().copied());
    let is_ours = rows.last().is_some_and(|ours| std::ptr::eq(ours, row));
    (!is_ours && !spread.median.is_nan()).then(|| match interval(ratios.into_iter()) {
        Some((low, high)) => {
            format!("{:.3} ({low:.3}–{high:.3}; {:.3}–{:.3})", spread.median, spread.min, spread.max)
        }
        None => format!("{spread:.3}"),
    })
}

/// A benchmark that goes on.
pub struct Going {
    pub contest: &'static Contest,
    pub rounds: u32,
    problems: Vec<String>,
}

impl Going {
    /// `about` names the tools and the settings.
    pub fn begin(contest: &'static Contest, variables: &Variables, about: &str) -> Result<Self, String> {
        let rounds = variables.number("rounds")?;
        contest.begin(&format!("{about}; {rounds} rounds"));
        Ok(Self { contest, rounds, problems: Vec::new() })
    }

    /// Measures a case, by those sides that are installed, and prints its lines. Returns them, unless a side failed.
    pub fn case(&mut self, case: &str, place: &Place<'_>, sides: &[Side]) -> Option<Vec<Row>> {
        self.case_of(self.rounds, case, place, sides)
    }

    /// As [`Self::case`], with a number of rounds of its own.
    pub fn case_of(
        &mut self,
        rounds: u32,
        case: &str,
        place: &Place<'_>,
        sides: &[Side],
    ) -> Option<Vec<Row>> {
        let missing = |side: &Side| need(side.program[0], side.program[1]).err();
        self.problems.extend(sides.iter().filter_map(missing));
        let sides: Vec<Side> = sides.iter().filter(|side| missing(side).is_none()).copied().collect();
        let counted = self.contest.figures.iter().position(|figure| figure.name == COUNTED);
        match place.rows(&sides, rounds, counted) {
            Ok(rows) => {
                self.add(case, &rows);
                Some(rows)
            }
            Err(problem) => {
                self.problem(format!("{case}: {problem}"));
                None
            }
        }
    }

    /// Prints the lines of a case.
    fn add(&mut self, case: &str, rows: &[Row]) {
        println!("{}", self.contest.markdown(case, rows));
        let [low, high] = self.contest.allowed;
        for row in &rows[..rows.len().saturating_sub(1)] {
            let found = Spread::of(ratios(rows, row, 0).into_iter()).median;
            if found < low || found > high {
                let name = row.name;
                self.problem(format!("{case}: ours ÷ {name} is {found:.3}, beyond {low} to {high}"));
            }
        }
    }

    pub fn problem(&mut self, problem: String) {
        eprintln!("{problem}");
        self.problems.push(problem);
    }

    /// Ends it: an error with what was missing, failed, or was beyond what is allowed.
    pub fn end(mut self) -> Outcome {
        self.problems.sort();
        self.problems.dedup();
        end(&self.problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEST: Contest = Contest {
        cases: "engine",
        figures: &[
            Figure { name: "reads/s", digits: 0, compared: true },
            Figure { name: "CPU", digits: 1, compared: false },
        ],
        allowed: [0.9, 1.1],
    };

    fn row(name: &'static str, figures: [f64; 3]) -> Row {
        Row { name, samples: figures.map(|figure| vec![1e6 / figure, f64::NAN]).to_vec() }
    }

    #[test]
    fn ratios_are_taken_within_each_round() {
        let rows = [row("peer", [10.0, 20.0, 40.0]), row("kurabe", [5.0, 10.0, 20.0])];
        assert_eq!(
            CONTEST.markdown("x", &rows),
            "| x | peer | 50000 (25000–100000) | – | 2.000 (2.000–2.000) |\n\
             | x | kurabe | 100000 (50000–200000) | – | – |"
        );
        let mut going = Going { contest: &CONTEST, rounds: 3, problems: Vec::new() };
        going.add("x", &rows);
        assert_eq!(going.end(), Err("x: ours ÷ peer is 2.000, beyond 0.9 to 1.1".to_owned()));
    }

    #[test]
    fn number_after_a_text_is_read() {
        let ran = Ran { said: "tps = 50229.4 (x)\n\"copy_s\": 1.5e-3,".to_owned(), ..Ran::default() };
        assert_eq!((ran.after("tps ="), ran.after("copy_s\":")), (Some(50229.4), Some(0.0015)));
        assert_eq!(ran.after("transactions:"), None);
        assert_eq!(calls("# started\n\n1234,,raw_syscalls:sys_enter,5,100.00,,\n"), Some(1234.0));
        assert_eq!(calls("<not supported>,,raw_syscalls:sys_enter,0,0.00,,\n"), None);
    }
}
