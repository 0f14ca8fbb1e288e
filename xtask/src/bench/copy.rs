//! `cargo xtask bench copy`: a table copied from MySQL or MariaDB to PostgreSQL, by pgloader and by `kurabe copy`.
//!
//! pgloader 3.6 cannot log in to MySQL 9 ("unsupported authentication"), so that the source is MariaDB by default. Both
//! copy the same table between the same throwaway servers, in turn, each round beginning with the other. pgloader
//! runs with its own defaults. `kurabe copy` also compares every value, which is part of its time. Nothing is pinned:
//! both programs have threads that read and threads that write. The median of the ratios of all pairs must not exceed 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::peers::server::Server;
use super::peers::{machine, process, said, spread};
use super::{options, program};
use crate::{Outcome, programs, shell};

const TABLE: &str = "bench_copy";
/// The longest that a copy may take.
const LONGEST: Duration = Duration::from_secs(900);
/// What the table costs on its way: its text is compared without regard to case on MySQL.
const ACCEPT: &str = "collation";

/// Seconds of time and of CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Took {
    wall: f64,
    cpu: f64,
}

pub fn run(args: &[String]) -> Outcome {
    let (mut rounds, mut rows, mut engines) = (5_usize, 300_000_u64, vec!["mariadb".to_owned()]);
    let mut known: [(&str, &mut dyn options::Place); 3] =
        [("--rounds", &mut rounds), ("--rows", &mut rows), ("--engines", &mut engines)];
    options::read(args, &mut known)?;
    for (name, package) in
        [("pgloader", "pgloader"), ("psql", "postgresql-client"), ("mysql", "default-mysql-client")]
    {
        if programs::find(name, &programs::folders()).is_none() {
            return Err(format!("{name} is not installed; to get it: apt-get install {package}"));
        }
    }
    let scratch = std::env::temp_dir().join(format!("kurabe-copy-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let version = said("pgloader", &["--version"]);
    println!("{}; {}; {rows} rows, {rounds} rounds\n", machine(), version.lines().next().unwrap_or_default());
    println!(
        "| from | to | pgloader, s (range) | kurabe copy, s (range) | time, kurabe ÷ pgloader (range) | client CPU of \
         pgloader, s | of kurabe, s | CPU, kurabe ÷ pgloader (range) |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    let mut problems = Vec::new();
    let program = program()?;
    for engine in &engines {
        let bench = Bench::start(&program, &scratch, engine, rows);
        if let Err(problem) = bench.and_then(|bench| bench.measure(rounds)) {
            problems.push(format!("{engine}: {problem}"));
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    source: Server,
    target: Server,
    rows: u64,
}

impl Bench {
    fn start(program: &Path, scratch: &Path, engine: &str, rows: u64) -> Result<Self, String> {
        let source = Server::start(program, engine, &[])?;
        let target = Server::start(program, "postgres", &[])?;
        let bench = Self { program: program.to_owned(), scratch: scratch.to_owned(), source, target, rows };
        let mut command = Command::new("mysql");
        command.args(["--no-defaults", "--user=root", "--protocol=tcp", "--host", &bench.source.host]);
        command.args(["--port", &bench.source.port, "kurabe", "--execute", &fill(rows)]);
        shell::run(&mut command, "filling the table")?;
        Ok(bench)
    }

    fn measure(&self, rounds: usize) -> Outcome {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    theirs.push(self.by_pgloader()?);
                } else {
                    ours.push(self.by_us()?);
                }
            }
        }
        let (line, ratio) = row(&self.source.version, &self.target.version, &theirs, &ours);
        println!("{line}");
        if ratio > 1.0 {
            Err(format!("kurabe copy takes {ratio:.2} × the time of pgloader"))
        } else {
            Ok(())
        }
    }

    /// pgloader makes a schema with the name of MySQL's database.
    fn by_pgloader(&self) -> Result<Took, String> {
        self.sql("DROP SCHEMA IF EXISTS kurabe CASCADE")?;
        let from = format!("mysql://root@{}:{}/kurabe", self.source.host, self.source.port);
        let to = format!("postgresql://kurabe@{}:{}/kurabe", self.target.host, self.target.port);
        let mut command = Command::new("pgloader");
        command.env("HOME", &self.scratch).env("TMPDIR", &self.scratch);
        let (took, said) = self.took(command.args([from, to]))?;
        // It ends with code 0 all the same.
        if let Some(error) = said.lines().find(|line| line.contains(" ERROR ")) {
            return Err(format!("pgloader: {error}"));
        }
        self.check("kurabe")?;
        Ok(took)
    }

    fn by_us(&self) -> Result<Took, String> {
        self.sql(&format!("DROP TABLE IF EXISTS public.{TABLE}"))?;
        let mut command = Command::new(&self.program);
        // pgloader makes its own schema the first of the database's search path.
        let to = format!("{}?search_path=public", self.target.url);
        command.args(["copy", &self.source.url, &to, "--tables", TABLE, "--accept", ACCEPT]);
        let (took, _) = self.took(&mut command)?;
        self.check("public")?;
        Ok(took)
    }

    /// What a program took, and what it printed.
    fn took(&self, command: &mut Command) -> Result<(Took, String), String> {
        let began = Instant::now();
        let ran = process::run_within(command, &self.scratch, LONGEST)?;
        Ok((Took { wall: began.elapsed().as_secs_f64(), cpu: ran.cpu }, ran.said))
    }

    /// Checks that all rows are there.
    fn check(&self, schema: &str) -> Outcome {
        let found = self.sql(&format!("SELECT count(*) FROM {schema}.{TABLE}"))?;
        if found.trim() == self.rows.to_string() {
            return Ok(());
        }
        Err(format!("{} rows in {schema}.{TABLE}, expected {}", found.trim(), self.rows))
    }

    fn sql(&self, statement: &str) -> Result<String, String> {
        let mut command = Command::new("psql");
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", statement]);
        command.args(["--dbname", &self.target.url]).stdin(Stdio::null());
        shell::run(&mut command, "psql")
    }
}

/// The statements that make and fill the table: that of sysbench, with a decimal number and a time. The random numbers
/// are the same in each run.
fn fill(rows: u64) -> String {
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
                  SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let places = rows.to_string().len();
    let number: Vec<String> = (0..places).map(|at| format!("t{at}.d * {}", 10_u64.pow(at as u32))).collect();
    let from: Vec<String> = (0..places).map(|at| format!("{digits} t{at}")).collect();
    format!(
        "CREATE TABLE {TABLE} (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, k int NOT NULL, amount decimal(10,2) NOT NULL, \
         placed datetime NULL, c char(120) NOT NULL, pad char(60) NOT NULL, KEY k (k)); \
         INSERT INTO {TABLE} SELECT n, 1 + n * 7919 % 100000, n / 100, TIMESTAMPADD(SECOND, n, '2020-01-01 00:00:00'), \
         LEFT(REPEAT(SHA2(n, 256), 2), 120), LEFT(SHA2(-n, 256), 60) FROM (SELECT 1 + {} AS n FROM {}) numbers WHERE n <= {rows}",
        number.join(" + "),
        from.join(", "),
    )
}

/// A row of the table, and the ratio of times; ratios are paired by round.
fn row(from: &str, to: &str, theirs: &[Took], ours: &[Took]) -> (String, f64) {
    let shown = |values: &mut dyn Iterator<Item = f64>| {
        let (least, median, most) = spread(values);
        (format!("{median:.2} ({least:.2}–{most:.2})"), median)
    };
    let walls = |all: &[Took]| shown(&mut all.iter().map(|took| took.wall)).0;
    let cpus = |all: &[Took]| shown(&mut all.iter().map(|took| took.cpu)).0;
    let ratio = |of: fn(&Took) -> f64| {
        shown(&mut ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
    };
    let (time, median) = ratio(|took| took.wall);
    let (cpu, _) = ratio(|took| took.cpu);
    let line = format!(
        "| {from} | {to} | {} | {} | {time} | {} | {} | {cpu} |",
        walls(theirs),
        walls(ours),
        cpus(theirs),
        cpus(ours)
    );
    (line, median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_paired_by_round() {
        let took = |wall, cpu| Took { wall, cpu };
        let theirs = [took(2.0, 4.0), took(4.0, 4.0), took(4.0, 4.0)];
        let ours = [took(1.0, 1.0), took(4.0, 2.0), took(3.0, 1.0)];
        let (line, ratio) = row("mysql 9", "postgres 15", &theirs, &ours);
        assert!((ratio - 0.75).abs() < 1e-12, "{ratio}");
        assert!(line.contains("| 0.75 (0.50–1.00) |") && line.contains("| 0.25 (0.25–0.50) |"), "{line}");
    }

    #[test]
    fn table_has_a_row_for_each_number() {
        let text = fill(300_000);
        assert!(text.contains("t5.d * 100000") && text.contains("n <= 300000"), "{text}");
        assert_eq!(text.matches("SELECT 0 d").count(), 6);
    }
}
