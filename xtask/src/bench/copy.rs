//! `cargo xtask bench copy`: a table copied by `kurabe copy`, beside pgloader (to PostgreSQL) and beside the engine's own dump
//! that is piped into its client (`pg_dump | psql`, `mysqldump | mysql`).
//!
//! pgloader 3.6 cannot log in to MySQL 9 ("unsupported authentication"), so that the source is MariaDB by default. Both
//! copy the same table between the same throwaway servers, in turn, each round beginning with the other. The others
//! run with their own defaults. `kurabe copy` also compares every value, which is part of its time, and is shown apart.
//! Nothing is pinned: the programs have threads that read and threads that write. The median of the ratios of all pairs with
//! pgloader must not exceed 1.

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

/// Seconds of time and of CPU, and those of copying rows and of comparing, where a program says them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Took {
    wall: f64,
    cpu: f64,
    copy: f64,
    verify: f64,
}

pub fn run(args: &[String]) -> Outcome {
    let (mut rounds, mut rows, mut jobs) = (5_usize, 300_000_u64, 1_u64);
    let all = ["mariadb-postgres", "sqlite-postgres", "postgres-postgres", "mariadb-mariadb"];
    let mut pairs: Vec<String> = all.map(str::to_owned).to_vec();
    let mut known: [(&str, &mut dyn options::Place); 4] =
        [("--rounds", &mut rounds), ("--rows", &mut rows), ("--pairs", &mut pairs), ("--jobs", &mut jobs)];
    options::read(args, &mut known)?;
    for (name, package) in [
        ("pgloader", "pgloader"),
        ("psql", "postgresql-client"),
        ("mysql", "default-mysql-client"),
        ("sqlite3", "sqlite3"),
    ] {
        if programs::find(name, &programs::folders()).is_none() {
            return Err(format!("{name} is not installed; to get it: apt-get install {package}"));
        }
    }
    let scratch = std::env::temp_dir().join(format!("kurabe-copy-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let version = said("pgloader", &["--version"]);
    let version = version.lines().next().unwrap_or_default();
    println!("{}; {version}; {rows} rows, {rounds} rounds, --jobs {jobs}\n", machine());
    println!(
        "| from | to | beside | its time, s (range) | kurabe copy, s (range) | time, kurabe ÷ other (range) | its client CPU, s | \
         of kurabe, s | CPU, kurabe ÷ other (range) | kurabe: rows copied a second | copying alone, s | comparing alone, s |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut problems = Vec::new();
    let program = program()?;
    for pair in &pairs {
        let bench = Bench::start(&program, &scratch, pair, rows, jobs);
        if let Err(problem) = bench.and_then(|bench| bench.measure(rounds)) {
            problems.push(format!("{pair}: {problem}"));
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// One end of a copy.
enum End {
    File(PathBuf),
    Server(Server),
}

impl End {
    fn start(program: &Path, scratch: &Path, engine: &str) -> Result<Self, String> {
        if engine == "sqlite" {
            return Ok(Self::File(scratch.join("source.db")));
        }
        Server::start(program, engine, &[]).map(Self::Server)
    }

    fn version(&self) -> String {
        match self {
            Self::File(_) => "sqlite".to_owned(),
            Self::Server(server) => server.version.clone(),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Server(server) => server.url.clone(),
        }
    }

    /// The command of the engine's own client, or of its dump.
    fn client(&self, of_mysql: &str, of_postgres: &str) -> String {
        match self {
            Self::File(path) => format!("sqlite3 {}", path.display()),
            Self::Server(server) if server.url.starts_with("postgres") => {
                format!("{of_postgres} --dbname={}", server.url)
            }
            Self::Server(server) => {
                let place = format!("--host={} --port={}", server.host, server.port);
                let (program, options) = of_mysql.split_once(' ').unwrap_or((of_mysql, ""));
                format!("{program} --no-defaults {options} --user=root --protocol=tcp {place} kurabe")
            }
        }
    }

    /// Executes statements, and returns the first line of output.
    fn sql(&self, statements: &str) -> Result<String, String> {
        let client = self.client(
            "mysql --batch --skip-column-names",
            "psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1",
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("printf '%s' \"$1\" | {client}"), "sh", statements])
            .stdin(Stdio::null());
        Ok(shell::run(&mut command, &client)?.lines().next().unwrap_or_default().to_owned())
    }
}

struct Bench {
    program: PathBuf,
    scratch: PathBuf,
    source: End,
    target: End,
    rows: u64,
    jobs: u64,
    /// Whether the other program is pgloader.
    loads: bool,
}

impl Bench {
    fn start(program: &Path, scratch: &Path, pair: &str, rows: u64, jobs: u64) -> Result<Self, String> {
        let (from, to) = pair.split_once('-').ok_or("a pair is SOURCE-TARGET")?;
        let (source, target) = (End::start(program, scratch, from)?, End::start(program, scratch, to)?);
        source.sql(&fill(rows, from))?;
        let (program, scratch, loads) = (program.to_owned(), scratch.to_owned(), from != to);
        Ok(Self { program, scratch, source, target, rows, jobs, loads })
    }

    fn measure(&self, rounds: usize) -> Outcome {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            for turn in 0..2 {
                if (round + turn) % 2 == 1 {
                    ours.push(self.by_us()?);
                } else if self.loads {
                    theirs.push(self.by_pgloader()?);
                } else {
                    theirs.push(self.by_dump()?);
                }
            }
        }
        let beside = if self.loads { "pgloader" } else { "dump" };
        let names = [&self.source.version(), &self.target.version(), beside];
        let (line, ratio) = row(names, self.rows, &theirs, &ours);
        println!("{line}");
        if ratio > 1.0 && self.loads {
            Err(format!("kurabe copy takes {ratio:.2} × the time of pgloader"))
        } else {
            Ok(())
        }
    }

    /// pgloader makes a schema with the name of MySQL's database, and none for SQLite.
    fn by_pgloader(&self) -> Result<Took, String> {
        let End::Server(target) = &self.target else {
            return Err("pgloader's target is PostgreSQL".to_owned());
        };
        let (from, schema) = match &self.source {
            End::File(path) => (format!("sqlite://{}", path.display()), "public"),
            End::Server(server) => (format!("mysql://root@{}:{}/kurabe", server.host, server.port), "kurabe"),
        };
        self.target
            .sql(&format!("DROP TABLE IF EXISTS public.{TABLE}; DROP SCHEMA IF EXISTS kurabe CASCADE"))?;
        let to = format!("postgresql://kurabe@{}:{}/kurabe", target.host, target.port);
        let mut command = Command::new("pgloader");
        command.env("HOME", &self.scratch).env("TMPDIR", &self.scratch);
        let (took, said) = self.took(command.args([from, to]))?;
        // It ends with code 0 all the same.
        if let Some(error) = said.lines().find(|line| line.contains(" ERROR ")) {
            return Err(format!("pgloader: {error}"));
        }
        self.check(&format!("{schema}.{TABLE}"))?;
        Ok(took)
    }

    fn by_dump(&self) -> Result<Took, String> {
        self.target.sql(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        let dump = self.source.client("mysqldump --single-transaction", "pg_dump");
        let load = self.target.client("mysql", "psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1");
        let mut command = Command::new("bash");
        let (took, _) = self.took(command.args(["-c", &format!("set -o pipefail; {dump} | {load}")]))?;
        self.check(TABLE)?;
        Ok(took)
    }

    fn by_us(&self) -> Result<Took, String> {
        self.target.sql(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        let mut command = Command::new(&self.program);
        let mut to = self.target.url();
        if to.starts_with("postgres") {
            // pgloader makes its own schema the first of the database's search path.
            to += "?search_path=public";
            self.target.sql(&format!("DROP TABLE IF EXISTS public.{TABLE}"))?;
        }
        command.args([
            "copy",
            &self.source.url(),
            &to,
            "--tables",
            TABLE,
            "--accept",
            ACCEPT,
            "--report",
            "json",
        ]);
        let (took, said) = self.took(command.args(["--jobs", &self.jobs.to_string()]))?;
        self.check(TABLE)?;
        let seconds = |name: &str| said.split_once(name).and_then(|(_, rest)| number(rest));
        match (seconds("\"copy_s\":"), seconds("\"verify_s\":")) {
            (Some(copy), Some(verify)) => Ok(Took { copy, verify, ..took }),
            _ => Err("kurabe copy did not say how long its parts took".to_owned()),
        }
    }

    /// What a program took, and what it printed.
    fn took(&self, command: &mut Command) -> Result<(Took, String), String> {
        let began = Instant::now();
        let ran = process::run_within(command, &self.scratch, LONGEST)?;
        Ok((Took { wall: began.elapsed().as_secs_f64(), cpu: ran.cpu, ..Took::default() }, ran.said))
    }

    /// Checks that all rows are there.
    fn check(&self, table: &str) -> Outcome {
        let found = self.target.sql(&format!("SELECT count(*) FROM {table}"))?;
        if found.trim() == self.rows.to_string() {
            return Ok(());
        }
        Err(format!("{} rows in {table}, expected {}", found.trim(), self.rows))
    }
}

/// The number at the beginning of a text.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    text.split(|c: char| !c.is_ascii_digit() && !['.', 'e', '-'].contains(&c)).next()?.parse().ok()
}

/// The statements that make and fill the table: that of sysbench, with a decimal number and a time. The texts are as long, and
/// the same in each run.
fn fill(rows: u64, engine: &str) -> String {
    let digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
                  SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let places = rows.to_string().len();
    let number: Vec<String> = (0..places).map(|at| format!("t{at}.d * {}", 10_u64.pow(at as u32))).collect();
    let from: Vec<String> = (0..places).map(|at| format!("{digits} t{at}")).collect();
    // Identity, time, and texts of 120 and 60 characters.
    let (identity, datetime, time, texts) = match engine {
        "sqlite" => (
            "integer NOT NULL PRIMARY KEY",
            "datetime",
            "datetime('2020-01-01', n || ' seconds')",
            ["substr(printf('%024d', n * 7919) || hex(zeroblob(60)), 1, 120)", "printf('%060d', n * 104729)"],
        ),
        "postgres" => (
            "int NOT NULL PRIMARY KEY",
            "timestamp",
            "timestamp '2020-01-01' + n * interval '1 second'",
            ["left(repeat(md5(n::text), 4), 120)", "left(repeat(md5((-n)::text), 2), 60)"],
        ),
        _ => (
            "int NOT NULL AUTO_INCREMENT PRIMARY KEY",
            "datetime",
            "TIMESTAMPADD(SECOND, n, '2020-01-01 00:00:00')",
            ["LEFT(REPEAT(SHA2(n, 256), 2), 120)", "LEFT(SHA2(-n, 256), 60)"],
        ),
    };
    format!(
        "CREATE TABLE {TABLE} (id {identity}, k int NOT NULL, amount decimal(10,2) NOT NULL, \
         placed {datetime} NULL, c char(120) NOT NULL, pad char(60) NOT NULL); CREATE INDEX bench_copy_k ON {TABLE} (k); \
         INSERT INTO {TABLE} SELECT n, 1 + n * 7 % 100000, n / 100.0, {time}, {}, {} \
         FROM (SELECT 1 + {} AS n FROM {}) numbers WHERE n <= {rows};",
        texts[0],
        texts[1],
        number.join(" + "),
        from.join(", "),
    )
}

/// A row of the table, and the ratio of times; ratios are paired by round.
fn row([from, to, beside]: [&str; 3], rows: u64, theirs: &[Took], ours: &[Took]) -> (String, f64) {
    let shown = |values: &mut dyn Iterator<Item = f64>| {
        let (least, median, most) = spread(values);
        (format!("{median:.2} ({least:.2}–{most:.2})"), median)
    };
    let of = |all: &[Took], one: fn(&Took) -> f64| shown(&mut all.iter().map(one));
    let ratio = |of: fn(&Took) -> f64| {
        shown(&mut ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
    };
    let (time, median) = ratio(|took| took.wall);
    let (cpu, _) = ratio(|took| took.cpu);
    let (copying, seconds) = of(ours, |took| took.copy);
    let line = format!(
        "| {from} | {to} | {beside} | {} | {} | {time} | {} | {} | {cpu} | {:.0} | {copying} | {} |",
        of(theirs, |took| took.wall).0,
        of(ours, |took| took.wall).0,
        of(theirs, |took| took.cpu).0,
        of(ours, |took| took.cpu).0,
        rows as f64 / seconds,
        of(ours, |took| took.verify).0,
    );
    (line, median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_paired_by_round() {
        let took = |wall, cpu| Took { wall, cpu, ..Took::default() };
        let theirs = [took(2.0, 4.0), took(4.0, 4.0), took(4.0, 4.0)];
        let ours = [took(1.0, 1.0), took(4.0, 2.0), took(3.0, 1.0)].map(|took| Took { copy: 0.5, ..took });
        let (line, ratio) = row(["mysql 9", "postgres 15", "pgloader"], 100, &theirs, &ours);
        assert!((ratio - 0.75).abs() < 1e-12, "{ratio}");
        assert!(
            line.contains("| 0.75 (0.50–1.00) |") && line.contains("| 0.25 (0.25–0.50) | 200 |"),
            "{line}"
        );
    }

    #[test]
    fn table_has_a_row_for_each_number() {
        for engine in ["sqlite", "postgres", "mariadb"] {
            let text = fill(300_000, engine);
            assert!(text.contains("t5.d * 100000") && text.contains("n <= 300000"), "{text}");
            assert_eq!(text.matches("SELECT 0 AS d").count(), 6);
        }
        assert_eq!(number(" 1.5e-3, \"verify_s\": 2"), Some(0.0015));
    }
}
