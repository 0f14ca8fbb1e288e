//! The workloads, each with the tool that it comes from.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::super::peers::server::Server as Throwaway;
use super::super::run::Kurabe;

/// pgbench's scale: more branches than clients, so that they seldom wait for each other.
const SCALE: &str = "10";
/// The rows of sysbench's table, as options of both tools.
const ROWS: &str = "100000";

/// The address of a server.
pub struct Server {
    pub url: String,
    pub host: String,
    pub port: String,
}

impl Server {
    pub fn of(server: &Throwaway) -> Self {
        Self { url: server.url.clone(), host: server.host.clone(), port: server.port.clone() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Tool,
    Ours,
}

/// A tool's report of a run.
pub struct Said {
    transactions: f64,
    /// Transactions per second of the whole run.
    rate: f64,
    /// Transactions per second in the first second; `None` of a shorter run.
    first: Option<f64>,
}

impl Said {
    /// Transactions per second after the first second, which is warm-up: connections are new, statements not
    /// prepared, PostgreSQL's plans are made anew for five executions. Kurabe warms up before it measures too.
    pub fn warm(&self) -> Option<f64> {
        let seconds = self.transactions / self.rate;
        let first = self.first?;
        (seconds > 1.5).then(|| (self.transactions - first) / (seconds - 1.0))
    }
}

#[derive(Clone, Copy)]
pub enum Length {
    Time(Duration),
    Transactions(u64),
}

pub struct Contest {
    pub name: &'static str,
    pub tool: &'static str,
    pub engines: &'static [&'static str],
    pub load: fn(&Server) -> Option<Command>,
    pub clean: fn(&Server) -> Option<Command>,
    pub command: fn(&Server, clients: u32, Length) -> Command,
    /// The rate, parsed from either output format.
    pub read: fn(&str) -> Option<Said>,
    /// The suite, if it is one of ours and not pgbench's unmodified script.
    suite: Option<&'static str>,
}

const SQL: &[&str] = &["postgres", "mysql", "mariadb"];

pub const CONTESTS: &[Contest] = &[
    Contest {
        name: "TPC-B",
        tool: "pgbench",
        engines: &["postgres"],
        load: |server| {
            let mut command = Command::new("pgbench");
            command.args(["-i", "-q", "-s", SCALE, &server.url]);
            Some(command)
        },
        clean: |server| {
            let mut command = Command::new("pgbench");
            command.args(["-i", "-I", "d", &server.url]);
            Some(command)
        },
        command: |server, clients, length| {
            let mut command = Command::new("pgbench");
            let clients = clients.to_string();
            command.args(["-n", "-M", "prepared", "-c", &clients, "-j", &clients]);
            match length {
                Length::Time(time) => command.args(["-P", "1", "-T", &with_the_first(time)]),
                Length::Transactions(number) => command.args(["-t", &number.to_string()]),
            };
            command.arg(&server.url);
            command
        },
        read: read_pgbench,
        suite: None,
    },
    Contest {
        name: "oltp_point_select",
        tool: "sysbench",
        engines: SQL,
        load: |server| Some(sysbench_prepare(server)),
        clean: |server| Some(sysbench_cleanup(server)),
        command: |server, clients, length| sysbench_run("oltp_point_select", server, clients, length),
        read: read_sysbench,
        suite: Some("suites/sysbench-point-select.toml"),
    },
    Contest {
        name: "oltp_read_only",
        tool: "sysbench",
        engines: SQL,
        load: |server| Some(sysbench_prepare(server)),
        clean: |server| Some(sysbench_cleanup(server)),
        command: |server, clients, length| sysbench_run("oltp_read_only", server, clients, length),
        read: read_sysbench,
        suite: Some("suites/sysbench-read-only.toml"),
    },
    Contest {
        name: "oltp_read_write",
        tool: "sysbench",
        engines: SQL,
        load: |server| Some(sysbench_prepare(server)),
        clean: |server| Some(sysbench_cleanup(server)),
        command: |server, clients, length| sysbench_run("oltp_read_write", server, clients, length),
        read: read_sysbench,
        suite: Some("suites/sysbench-read-write.toml"),
    },
];

fn sysbench(script: &str, server: &Server) -> Command {
    let mut command = Command::new("sysbench");
    command.arg(script).arg(format!("--table_size={ROWS}"));
    if server.url.starts_with("postgres") {
        command.args(["--db-driver=pgsql", "--pgsql-user=kurabe", "--pgsql-db=kurabe"]);
        command.arg(format!("--pgsql-host={}", server.host)).arg(format!("--pgsql-port={}", server.port));
    } else {
        command.args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=kurabe"]);
        command.arg(format!("--mysql-host={}", server.host)).arg(format!("--mysql-port={}", server.port));
    }
    command
}

fn sysbench_prepare(server: &Server) -> Command {
    let mut command = sysbench("oltp_read_only", server);
    command.arg("prepare");
    command
}

fn sysbench_cleanup(server: &Server) -> Command {
    let mut command = sysbench("oltp_read_only", server);
    command.arg("cleanup");
    command
}

fn sysbench_run(script: &str, server: &Server, clients: u32, length: Length) -> Command {
    let mut command = sysbench(script, server);
    command.arg(format!("--threads={clients}"));
    match length {
        Length::Time(time) => {
            command.arg(format!("--time={}", with_the_first(time))).arg("--report-interval=1")
        }
        Length::Transactions(number) => command.arg("--time=0").arg(format!("--events={number}")),
    };
    command.arg("run");
    command
}

/// A tool's time in seconds: the first one is not counted.
fn with_the_first(time: Duration) -> String {
    (1 + time.as_secs()).to_string()
}

/// The number that follows this text in one of the lines.
fn number_after(said: &str, name: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| Some(line.split_once(name)?.1))?;
    rest.trim_start().split([' ', '/', ',']).next()?.parse().ok()
}

/// `number of transactions actually processed: 8841`, `tps = 2947.238266 (…)`, `progress: 1.0 s, 2827.5 tps, …`
fn read_pgbench(said: &str) -> Option<Said> {
    Some(Said {
        transactions: number_after(said, "transactions actually processed:")?,
        rate: number_after(said, "tps =")?,
        first: number_after(said, "progress: 1.0 s,"),
    })
}

/// `transactions:  57782  (57640.15 per sec.)`, `[ 1s ] thds: 8 tps: 836.53 qps: …`
fn read_sysbench(said: &str) -> Option<Said> {
    let line = said.lines().find(|line| line.trim().starts_with("transactions:"))?;
    Some(Said {
        transactions: number_after(line, "transactions:")?,
        rate: number_after(line, "(")?,
        first: said
            .lines()
            .find(|line| line.starts_with("[ 1s ]"))
            .and_then(|line| number_after(line, "tps:")),
    })
}

/// Kurabe's words. A run measures its only cell twice, so each gets half of the time.
pub fn ours(
    contest: &Contest,
    kurabe: &Kurabe,
    server: &Server,
    clients: u32,
    length: Length,
) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    match contest.suite {
        None => {
            add(&[
                "pgbench",
                "-b",
                "tpcb-like",
                "--scale",
                SCALE,
                "--write",
                "--clients",
                &clients.to_string(),
            ]);
        }
        Some(suite) => {
            let text = fs::read_to_string(suite).map_err(|error| format!("{suite}: {error}"))?;
            let own = kurabe.scratch.join("suite.toml");
            fs::write(&own, on_their_table(&text, clients)?).map_err(|error| error.to_string())?;
            add(&["-f", &own.to_string_lossy()]);
        }
    }
    add(&[&server.url, "--rounds", "1"]);
    match length {
        Length::Time(time) => add(&["--duration", &format!("{}ms", time.as_millis() / 2)]),
        Length::Transactions(number) => add(&["--requests", &number.to_string()]),
    }
    Ok(words)
}

/// The number of transactions for a requested number: a twentieth more for warm-up, all twice.
pub fn transactions(side: Side, number: u64) -> u64 {
    match side {
        Side::Tool => number,
        Side::Ours => 2 * (number + number / 20),
    }
}

/// The suite's transactions on the table that sysbench made, instead of a collection of ours.
fn on_their_table(suite: &str, clients: u32) -> Result<String, String> {
    let begin = suite.find("[variables]").ok_or("the suite has no variables")?;
    let mut text = format!("name = \"theirs\"\nwrite = true\naxes.clients = [{clients}]\n");
    let mut within = false;
    for line in suite[begin..].lines() {
        if let Some(name) = line.strip_prefix("[collection.") {
            within = true;
            text.push_str("[table.");
            text.push_str(name);
            text.push_str("\nkey = \"id\"\n");
            text += "fields = { id = \"int\", k = \"int\", c = { type = \"text\", max = 120 }, pad = { type = \"text\", max = 60 } }\n";
        } else if line.is_empty() {
            within = false;
        }
        if !within {
            text += line;
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_second_of_a_tool_is_excluded() {
        let pgbench = "number of transactions actually processed: 5700\ntps = 1900.0 (without initial connection time)\n\
                       progress: 1.0 s, 1700.0 tps, lat 2.786 ms stddev 1.038, 0 failed\n";
        let sysbench = "[ 1s ] thds: 8 tps: 1700.00 qps: 34000.00 (r/w/o: 1/2/3)\n\
                        [ 2s ] thds: 8 tps: 2000.00 qps: 40000.00 (r/w/o: 1/2/3)\n    transactions:    5700   (1900.00 per sec.)\n";
        for said in [read_pgbench(pgbench), read_sysbench(sysbench)] {
            assert_eq!(said.unwrap().warm(), Some(2000.0));
        }
        // A run by number may end sooner.
        let brief = read_sysbench("    transactions:    500   (1900.00 per sec.)\n").unwrap();
        assert_eq!(brief.warm(), None);
    }

    #[test]
    fn suite_uses_existing_table() {
        let text = "name = \"x\"\n[axes]\nclients = [1]\n\n[variables]\nrows = 5\n\n[collection.sbtest1]\nrows = 5\n\
                    fields.id = \"int\"\n\n[transaction.t]\nsteps = []\n";
        let made = on_their_table(text, 8).unwrap();
        assert!(
            made.starts_with("name = \"theirs\"\nwrite = true\naxes.clients = [8]\n[variables]\nrows = 5\n\n[table.sbtest1]\n"),
            "{made}"
        );
        assert!(made.ends_with("\n\n[transaction.t]\nsteps = []\n") && !made.contains("fields.id"), "{made}");
    }
}
