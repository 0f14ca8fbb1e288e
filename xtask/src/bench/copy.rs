//! `cargo xtask bench copy`: a table copied by `kurabe copy`, beside pgloader (to PostgreSQL) and beside the engine's own dump
//! that is piped into its client (`pg_dump | psql`, `mysqldump | mysql`).
//!
//! pgloader 3.6 cannot log in to MySQL 9 ("unsupported authentication"), so that the source is MariaDB by default. Both
//! copy the same table between the same throwaway servers, in turn, each round beginning with the other. The others
//! run with their own defaults. `kurabe copy` also compares every value, which is part of its time, and is shown apart.
//! Nothing is pinned: the programs have threads that read and threads that write. The median of the ratios of all pairs with
//! pgloader must not exceed 1.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::options;
use super::peers::server::Server;
use super::peers::{machine, process, said};
use super::run::{Kurabe, Spread, end, in_turn, need};
use crate::{Outcome, shell};

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
    need("pgloader", "pgloader")?;
    need("psql", "postgresql-client")?;
    need("mysql", "default-mysql-client")?;
    need("sqlite3", "sqlite3")?;
    let kurabe = Kurabe::build("copy")?;
    let version = said("pgloader", &["--version"]);
    let version = version.lines().next().unwrap_or_default();
    println!("{}; {version}; {rows} rows, {rounds} rounds, --jobs {jobs}\n", machine());
    println!(
        "| from | to | beside | its time, s (range) | kurabe copy, s (range) | time, kurabe ÷ other (range) | its client CPU, s | \
         of kurabe, s | CPU, kurabe ÷ other (range) | kurabe: rows copied a second | copying alone, s | comparing alone, s |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut problems = Vec::new();
    for pair in &pairs {
        let bench = Bench::start(&kurabe, pair, rows, jobs);
        if let Err(problem) = bench.and_then(|bench| bench.measure(rounds)) {
            problems.push(format!("{pair}: {problem}"));
        }
    }
    end(&problems)
}

/// One end of a copy.
enum End {
    File(PathBuf),
    Server(Server),
}

impl End {
    fn start(kurabe: &Kurabe, engine: &str) -> Result<Self, String> {
        if engine == "sqlite" {
            return Ok(Self::File(kurabe.scratch.join("source.db")));
        }
        Server::start(&kurabe.program, engine, &[]).map(Self::Server)
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

struct Bench<'a> {
    kurabe: &'a Kurabe,
    source: End,
    target: End,
    rows: u64,
    jobs: u64,
    /// Whether the other program is pgloader.
    loads: bool,
}

impl<'a> Bench<'a> {
    fn start(kurabe: &'a Kurabe, pair: &str, rows: u64, jobs: u64) -> Result<Self, String> {
        let (from, to) = pair.split_once('-').ok_or("a pair is SOURCE-TARGET")?;
        let (source, target) = (End::start(kurabe, from)?, End::start(kurabe, to)?);
        source.sql(&fill(rows, from))?;
        Ok(Self { kurabe, source, target, rows, jobs, loads: from != to })
    }

    fn measure(&self, rounds: usize) -> Outcome {
        let theirs = || if self.loads { self.by_pgloader() } else { self.by_dump() };
        let pairs = in_turn(rounds, theirs, || self.by_us())?;
        let of = |figure: fn(&(Took, Took)) -> f64| Spread::of_pairs(&pairs, figure);
        let (time, copying) = (of(|(theirs, ours)| ours.wall / theirs.wall), of(|(_, ours)| ours.copy));
        println!(
            "| {} | {} | {} | {} | {} | {time} | {} | {} | {} | {:.0} | {copying} | {} |",
            self.source.version(),
            self.target.version(),
            if self.loads { "pgloader" } else { "dump" },
            of(|(theirs, _)| theirs.wall),
            of(|(_, ours)| ours.wall),
            of(|(theirs, _)| theirs.cpu),
            of(|(_, ours)| ours.cpu),
            of(|(theirs, ours)| ours.cpu / theirs.cpu),
            self.rows as f64 / copying.median,
            of(|(_, ours)| ours.verify)
        );
        if time.median > 1.0 && self.loads {
            return Err(format!("kurabe copy takes {:.2} × the time of pgloader", time.median));
        }
        Ok(())
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
        command.env("HOME", &self.kurabe.scratch).env("TMPDIR", &self.kurabe.scratch);
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
        let mut command = self.kurabe.command(None);
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
        let ran = process::run_within(command, &self.kurabe.scratch, LONGEST)?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
