//! `cargo xtask bench bulk`: the client's CPU time to read a whole table, with the engine's own tool and with kurabe.
//!
//! Both read as many rows of the same size from one throwaway server, in turn, each round beginning with the other:
//! `psql` by COPY, `mariadb --quick` by a SELECT, and kurabe by `bulk --fetch whole`, which checks each row too. The
//! tools write to /dev/null.

use std::process::Command;

use super::options;
use super::peers::server::Server;
use super::peers::{CLIENT, SERVER, machine, process};
use super::run::{Kurabe, Spread, end, in_turn, need};
use crate::Outcome;

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
    let bench = Bench { kurabe: Kurabe::build("bulk")?, options };
    let mut problems = Vec::new();
    println!("{}; {} rounds of {} rows\n", machine(), bench.options.rounds, bench.options.rows);
    println!("{HEAD}");
    for tool in TOOLS.iter().filter(|tool| bench.options.engines.iter().any(|name| name == tool.engine)) {
        match bench.measure(tool) {
            Ok(row) => println!("{row}"),
            Err(problem) => problems.push(format!("{}: {problem}", tool.engine)),
        }
    }
    end(&problems)
}

const HEAD: &str = "| server | tool | client CPU of the tool, ms/MB (range) | of kurabe, ms/MB (range) | kurabe ÷ tool \
                    (range) | peak memory of kurabe, MB |\n|---|---|--:|--:|--:|--:|";

struct Bench {
    kurabe: Kurabe,
    options: Options,
}

impl Bench {
    fn measure(&self, tool: &Tool) -> Result<String, String> {
        need(tool.program, tool.package)?;
        let server = Server::start(&self.kurabe.program, tool.engine, &[])?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        server.pin(if processors > 1 { SERVER } else { CLIENT })?;
        self.by_tool(tool, &server, Work::Execute(&(tool.fill)(self.options.rows)))?;
        let nothing = self.by_tool(tool, &server, Work::Nothing)?;
        let megabytes = (self.options.rows * ROW_BYTES) as f64 / 1e6;
        let theirs = || Ok((self.by_tool(tool, &server, Work::Read)? - nothing) * 1e3 / megabytes);
        let pairs = in_turn(self.options.rounds, theirs, || self.by_us(&server))?;
        let of = |figure: fn(&(f64, [f64; 2])) -> f64| Spread::of_pairs(&pairs, figure);
        let (version, name) = (&server.version, tool.name);
        Ok(format!(
            "| {version} | {name} | {} | {} | {} | {:.0} |",
            of(|(theirs, _)| *theirs),
            of(|(_, ours)| ours[0]),
            of(|(theirs, ours)| ours[0] / theirs),
            of(|(_, ours)| ours[1]).max
        ))
    }

    /// Seconds of CPU that the tool used.
    fn by_tool(&self, tool: &Tool, server: &Server, work: Work<'_>) -> Result<f64, String> {
        let mut command = Command::new("taskset");
        // The shell becomes the tool, so that the CPU time is the tool's.
        command.args(["-c", CLIENT, "sh", "-c", "exec \"$@\" >/dev/null", "sh"]);
        command.args((tool.command)(server, work));
        process::run_within(&mut command, &self.kurabe.scratch, LONGEST).map(|ran| ran.cpu)
    }

    /// Milliseconds of CPU for each megabyte, and megabytes of memory.
    fn by_us(&self, server: &Server) -> Result<[f64; 2], String> {
        let (rows, bytes) = (self.options.rows.to_string(), ROW_BYTES.to_string());
        let words = ["bulk", &server.url, "--operation", "read", "--fetch", "whole", "--rows", &rows];
        let how = ["--row-bytes", &bytes, "--rounds", "1", "--requests", "1", "--interleave=off"];
        let report = self.kurabe.run(Some(CLIENT), &[&words[..], &how].concat())?;
        Ok([report.mean("client CPU per MB (ns)")? / 1e6, report.mean("peak memory (bytes)")? / 1e6])
    }
}

/// The longest that loading the table, or reading it, may take.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(600);
