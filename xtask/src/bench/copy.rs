//! `cargo xtask bench copy`: a table copied from MySQL or MariaDB to PostgreSQL, by pgloader and by `kurabe copy`.
//!
//! pgloader 3.6 cannot log in to MySQL 9 ("unsupported authentication"), so that the source is MariaDB by default. Both
//! copy the same table between the same throwaway servers, in turn, each round beginning with the other. pgloader
//! runs with its own defaults. `kurabe copy` also compares every value, which is part of its time. Nothing is pinned:
//! both programs have threads that read and threads that write. The median of the ratios of all pairs must not exceed 1.

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
    need("pgloader", "pgloader")?;
    need("psql", "postgresql-client")?;
    need("mysql", "default-mysql-client")?;
    let version = said("pgloader", &["--version"]);
    println!("{}; {}; {rows} rows, {rounds} rounds\n", machine(), version.lines().next().unwrap_or_default());
    println!(
        "| from | to | pgloader, s (range) | kurabe copy, s (range) | time, kurabe ÷ pgloader (range) | client CPU of \
         pgloader, s | of kurabe, s | CPU, kurabe ÷ pgloader (range) |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    let mut problems = Vec::new();
    let kurabe = Kurabe::build("copy")?;
    for engine in &engines {
        let bench = Bench::start(&kurabe, engine, rows);
        if let Err(problem) = bench.and_then(|bench| bench.measure(rounds)) {
            problems.push(format!("{engine}: {problem}"));
        }
    }
    end(&problems)
}

struct Bench<'a> {
    kurabe: &'a Kurabe,
    source: Server,
    target: Server,
    rows: u64,
}

impl<'a> Bench<'a> {
    fn start(kurabe: &'a Kurabe, engine: &str, rows: u64) -> Result<Self, String> {
        let source = Server::start(&kurabe.program, engine, &[])?;
        let target = Server::start(&kurabe.program, "postgres", &[])?;
        let mut command = Command::new("mysql");
        command.args(["--no-defaults", "--user=root", "--protocol=tcp", "--host", &source.host]);
        command.args(["--port", &source.port, "kurabe", "--execute", &fill(rows)]);
        shell::run(&mut command, "filling the table")?;
        Ok(Self { kurabe, source, target, rows })
    }

    fn measure(&self, rounds: usize) -> Outcome {
        let pairs = in_turn(rounds, || self.by_pgloader(), || self.by_us())?;
        let of = |figure: fn(&(Took, Took)) -> f64| Spread::of_pairs(&pairs, figure);
        let time = of(|(theirs, ours)| ours.wall / theirs.wall);
        println!(
            "| {} | {} | {} | {} | {time} | {} | {} | {} |",
            self.source.version,
            self.target.version,
            of(|(theirs, _)| theirs.wall),
            of(|(_, ours)| ours.wall),
            of(|(theirs, _)| theirs.cpu),
            of(|(_, ours)| ours.cpu),
            of(|(theirs, ours)| ours.cpu / theirs.cpu)
        );
        if time.median > 1.0 {
            return Err(format!("kurabe copy takes {:.2} × the time of pgloader", time.median));
        }
        Ok(())
    }

    /// pgloader makes a schema with the name of MySQL's database.
    fn by_pgloader(&self) -> Result<Took, String> {
        self.sql("DROP SCHEMA IF EXISTS kurabe CASCADE")?;
        let from = format!("mysql://root@{}:{}/kurabe", self.source.host, self.source.port);
        let to = format!("postgresql://kurabe@{}:{}/kurabe", self.target.host, self.target.port);
        let mut command = Command::new("pgloader");
        command.env("HOME", &self.kurabe.scratch).env("TMPDIR", &self.kurabe.scratch);
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
        let mut command = self.kurabe.command(None);
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
        let ran = process::run_within(command, &self.kurabe.scratch, LONGEST)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_row_for_each_number() {
        let text = fill(300_000);
        assert!(text.contains("t5.d * 100000") && text.contains("n <= 300000"), "{text}");
        assert_eq!(text.matches("SELECT 0 d").count(), 6);
    }
}
