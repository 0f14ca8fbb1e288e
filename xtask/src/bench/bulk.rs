//! `cargo xtask bench bulk`: the client's CPU time to read a whole table, with the engine's own tool and with kurabe.
//!
//! Both read as many rows of the same size from one throwaway server, in turn, each round beginning with the other:
//! `psql` by COPY, `mariadb --quick` by a SELECT, and kurabe by `bulk --fetch whole`, which checks each row too. The
//! tools write to /dev/null.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::peers::server::Server;
use super::peers::{CLIENT, SERVER, machine, process, spread};
use super::{csv, options, program};
use crate::{Outcome, programs, shell};

/// Bytes of a row: a key of 8 bytes and text.
const ROW_BYTES: u64 = 1_024;
/// The table that the tools read.
const TABLE: &str = "bench_bulk";

/// The tool of an engine.
struct Tool {
    engine: &'static str,
    program: &'static str,
    package: &'static str,
    name: &'static str,
    /// The statement that makes the table of so many rows.
    fill: fn(rows: u64) -> String,
    /// Executes a statement, or reads the whole table.
    command: fn(&Server, Work<'_>) -> Vec<String>,
}

#[derive(Clone, Copy)]
enum Work<'a> {
    Execute(&'a str),
    /// Connects and reads nothing: what is subtracted.
    Nothing,
    Read,
}

const TOOLS: &[Tool] = &[
    Tool {
        engine: "postgres",
        program: "psql",
        package: "postgresql-client",
        name: "psql -c \"COPY … TO STDOUT\"",
        fill: |rows| {
            let text = format!("left(repeat(md5(n::text), 32), {})", ROW_BYTES - 8);
            format!(
                "CREATE TABLE {TABLE} (id bigint PRIMARY KEY, data varchar({ROW_BYTES})); \
                 INSERT INTO {TABLE} SELECT n, {text} FROM generate_series(1, {rows}) n; ANALYZE {TABLE}"
            )
        },
        command: |server, work| {
            let statement = match work {
                Work::Execute(statement) => statement.to_owned(),
                Work::Nothing => "SELECT 1".to_owned(),
                Work::Read => format!("COPY {TABLE} TO STDOUT"),
            };
            let words = ["psql", "--no-psqlrc", "--quiet", "--command", &statement, "--dbname", &server.url];
            words.map(str::to_owned).to_vec()
        },
    },
    Tool {
        engine: "mariadb",
        program: "mariadb",
        package: "mariadb-client",
        name: "mariadb --quick",
        fill: |rows| {
            let text = format!("LEFT(REPEAT(MD5(seq), 32), {})", ROW_BYTES - 8);
            format!(
                "CREATE TABLE {TABLE} (id bigint PRIMARY KEY, data varchar({ROW_BYTES})); \
                 INSERT INTO {TABLE} SELECT seq, {text} FROM seq_1_to_{rows}"
            )
        },
        command: |server, work| {
            let statement = match work {
                Work::Execute(statement) => statement.to_owned(),
                Work::Nothing => "SELECT 1".to_owned(),
                Work::Read => format!("SELECT id, data FROM {TABLE}"),
            };
            let mut words: Vec<String> =
                ["mariadb", "--no-defaults", "--quick", "--batch", "--skip-column-names", "--user=root"]
                    .map(str::to_owned)
                    .to_vec();
            words.extend([format!("--host={}", server.host), format!("--port={}", server.port)]);
            words.extend(["--protocol=tcp", "kurabe", "--execute"].map(str::to_owned));
            words.push(statement);
            words
        },
    },
];

struct Options {
    rounds: usize,
    rows: u64,
    engines: Vec<String>,
}

pub fn run(args: &[String]) -> Outcome {
    let mut options = Options {
        rounds: 5,
        rows: 500_000,
        engines: TOOLS.iter().map(|tool| tool.engine.to_owned()).collect(),
    };
    let mut known: [(&str, &mut dyn options::Place); 3] = [
        ("--rounds", &mut options.rounds),
        ("--rows", &mut options.rows),
        ("--engines", &mut options.engines),
    ];
    options::read(args, &mut known)?;
    let scratch = std::env::temp_dir().join(format!("kurabe-bulk-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let bench = Bench { program: program()?, scratch: scratch.clone(), options };
    let mut problems = Vec::new();
    println!("{}; {} rounds of {} rows\n", machine(), bench.options.rounds, bench.options.rows);
    println!("{HEAD}");
    for tool in TOOLS.iter().filter(|tool| bench.options.engines.iter().any(|name| name == tool.engine)) {
        match bench.measure(tool) {
            Ok(row) => println!("{row}"),
            Err(problem) => problems.push(format!("{}: {problem}", tool.engine)),
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

const HEAD: &str = "| server | tool | client CPU of the tool, ms/MB (range) | of kurabe, ms/MB (range) | kurabe ÷ tool \
                    (range) | peak memory of kurabe, MB |\n|---|---|--:|--:|--:|--:|";

/// One measurement of kurabe: milliseconds of CPU for each megabyte, and bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ours {
    cpu: f64,
    memory: f64,
}

struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    options: Options,
}

impl Bench {
    fn measure(&self, tool: &Tool) -> Result<String, String> {
        if programs::find(tool.program, &programs::folders()).is_none() {
            let (program, package) = (tool.program, tool.package);
            return Err(format!("{program} is not installed; to get it: apt-get install {package}"));
        }
        let server = Server::start(&self.program, tool.engine, &[])?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        server.pin(if processors > 1 { SERVER } else { CLIENT })?;
        let fill = (tool.fill)(self.options.rows);
        self.by_tool(tool, &server, Work::Execute(&fill))?;
        let nothing = self.by_tool(tool, &server, Work::Nothing)?;
        let megabytes = (self.options.rows * ROW_BYTES) as f64 / 1e6;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.options.rounds {
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    let cpu = self.by_tool(tool, &server, Work::Read)? - nothing;
                    theirs.push(cpu * 1e3 / megabytes);
                } else {
                    ours.push(self.by_us(&server)?);
                }
            }
        }
        Ok(row(&server.version, tool.name, &theirs, &ours))
    }

    /// Seconds of CPU that the tool used.
    fn by_tool(&self, tool: &Tool, server: &Server, work: Work<'_>) -> Result<f64, String> {
        let mut command = Command::new("taskset");
        // The shell becomes the tool, so that the CPU time is the tool's.
        command.args(["-c", CLIENT, "sh", "-c", "exec \"$@\" >/dev/null", "sh"]);
        command.args((tool.command)(server, work));
        process::run_within(&mut command, &self.scratch, LONGEST).map(|ran| ran.cpu)
    }

    fn by_us(&self, server: &Server) -> Result<Ours, String> {
        let runs = self.scratch.join("runs");
        let kurabe = |program: &mut Command, what: &str| {
            program.env("KURABE_RUNS", &runs).stdin(Stdio::null());
            shell::run(program, what)
        };
        let mut command = Command::new("taskset");
        command.args(["-c", CLIENT]).arg(&self.program);
        command.args(["run", "bulk", &server.url, "--operation", "read", "--fetch", "whole"]);
        command.args(["--rows", &self.options.rows.to_string(), "--row-bytes", &ROW_BYTES.to_string()]);
        command.args(["--rounds", "1", "--requests", "1", "--interleave=off", "--no-html", "--quiet"]);
        kurabe(&mut command, "kurabe run")?;
        let report =
            kurabe(Command::new(&self.program).args(["report", "--format", "csv"]), "kurabe report")?;
        let _ = fs::remove_dir_all(&runs);
        parse(&report).ok_or_else(|| format!("a report without results: {report}"))
    }
}

/// The longest that loading the table, or reading it, may take.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(600);

/// The mean over the cell and its A/A control.
fn parse(report: &str) -> Option<Ours> {
    let mut lines = report.lines();
    let names = csv::fields(lines.next()?);
    let column = |name: &str| names.iter().position(|known| known == name);
    let columns = [column("client CPU per MB (ns)")?, column("peak memory (bytes)")?];
    let mut sums = [0.0; 2];
    let mut rows = 0.0;
    for line in lines {
        let fields = csv::fields(line);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum += fields.get(column)?.parse::<f64>().ok()?;
        }
        rows += 1.0;
    }
    (rows > 0.0).then(|| Ours { cpu: sums[0] / rows / 1e6, memory: sums[1] / rows })
}

/// A row of the table; ratios are paired by round.
fn row(version: &str, tool: &str, theirs: &[f64], ours: &[Ours]) -> String {
    let shown = |values: &mut dyn Iterator<Item = f64>| {
        let (least, median, most) = spread(values);
        format!("{median:.2} ({least:.2}–{most:.2})")
    };
    let memory = ours.iter().map(|ours| ours.memory / 1e6).fold(0.0, f64::max);
    format!(
        "| {version} | {tool} | {} | {} | {} | {memory:.0} |",
        shown(&mut theirs.iter().copied()),
        shown(&mut ours.iter().map(|ours| ours.cpu)),
        shown(&mut ours.iter().zip(theirs).map(|(ours, theirs)| ours.cpu / theirs)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_and_memory_are_read_from_the_report() {
        let report = "run,evidence,client CPU per MB (ns),client CPU per MB low (ns),peak memory (bytes)\n\
                      a,\"busy, waited\",400000.0,,30000000\na,,600000.0,,40000000\n";
        assert_eq!(parse(report), Some(Ours { cpu: 0.5, memory: 35e6 }));
        assert_eq!(parse("run\n"), None);
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let ours = [(0.5, 2e7), (1.0, 3e7), (1.5, 1e7)].map(|(cpu, memory)| Ours { cpu, memory });
        let shown = row("x 1", "tool", &[1.0, 2.0, 2.0], &ours);
        assert_eq!(shown, "| x 1 | tool | 2.00 (1.00–2.00) | 1.00 (0.50–1.50) | 0.50 (0.50–0.75) | 30 |");
    }
}
