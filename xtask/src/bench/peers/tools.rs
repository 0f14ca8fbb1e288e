//! The tools: the command lines for point reads, and the parsers of their output.

use std::path::Path;
use std::process::Command;

use super::server::Server;

/// How long a trial is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The time of a trial.
    Whole,
    /// The same connections and (nearly) no reads: what is subtracted.
    Nothing,
}

/// A tool's report of a trial.
#[derive(Clone, Copy)]
pub struct Report {
    pub reads: f64,
    pub per_second: f64,
    /// Microseconds of client CPU per read, if the tool reports it.
    pub cpu: Option<f64>,
}

/// One way to read points from one engine.
pub struct Tool {
    pub name: &'static str,
    pub program: &'static str,
    pub package: &'static str,
    /// Measured only with `--all` or with few clients.
    pub always: bool,
    pub least_clients: u32,
    pub most_clients: u32,
    pub command: fn(&Server, clients: u32, Length, &mut Command, &Path),
    pub read: fn(&str) -> Option<Report>,
}

/// An engine, its settings for a thousand clients, its tools, and how their data are loaded.
pub struct Engine {
    pub name: &'static str,
    pub settings: &'static [&'static str],
    pub most_clients: u32,
    pub tools: &'static [Tool],
    pub load: fn(&Server) -> Option<Command>,
}

/// A trial of the tools that are limited by time.
const SECONDS: &str = "1";
/// A trial of mysqlslap, which is limited by number: about a second with 16 clients.
const SLAPS: u32 = 16_000;

/// Prepared statements of sysbench.
const SYSBENCH: Tool = Tool {
    name: "sysbench, prepared",
    program: "sysbench",
    package: "sysbench",
    always: true,
    least_clients: 1,
    most_clients: u32::MAX,
    command: |server, clients, length, command, _| {
        sysbench(server, clients, length, command).args(["--db-ps-mode=auto", "run"]);
    },
    read: read_sysbench,
};

/// Its table.
const SYSBENCH_LOAD: fn(&Server) -> Option<Command> = |server| {
    let mut command = Command::new("sysbench");
    sysbench(server, 1, Length::Whole, &mut command).arg("prepare");
    Some(command)
};

pub const ENGINES: &[Engine] = &[
    Engine {
        name: "mysql",
        settings: &["max_connections=1200"],
        most_clients: 1_000,
        tools: &[
            SYSBENCH,
            Tool {
                name: "sysbench, text",
                always: false,
                command: |server, clients, length, command, _| {
                    sysbench(server, clients, length, command).args(["--db-ps-mode=disable", "run"]);
                },
                ..SYSBENCH
            },
            Tool {
                name: "mysqlslap, text",
                program: "mysqlslap",
                package: "mariadb-client",
                always: false,
                least_clients: 1,
                most_clients: u32::MAX,
                command: mysqlslap,
                read: read_mysqlslap,
            },
        ],
        load: SYSBENCH_LOAD,
    },
    Engine {
        name: "mariadb",
        settings: &["max_connections=1200"],
        most_clients: 1_000,
        tools: &[SYSBENCH],
        load: SYSBENCH_LOAD,
    },
    Engine {
        name: "postgres",
        settings: &["max_connections=1200"],
        most_clients: 1_000,
        tools: &[
            Tool {
                name: "pgbench, prepared, one thread",
                program: "pgbench",
                package: "postgresql-contrib",
                always: true,
                least_clients: 1,
                most_clients: u32::MAX,
                command: |server, clients, length, command, _| {
                    pgbench(server, clients, 1, "prepared", length, command);
                },
                read: read_pgbench,
            },
            Tool {
                name: "pgbench, prepared, a thread per client",
                program: "pgbench",
                package: "postgresql-contrib",
                always: true,
                least_clients: 2,
                most_clients: u32::MAX,
                command: |server, clients, length, command, _| {
                    pgbench(server, clients, clients, "prepared", length, command);
                },
                read: read_pgbench,
            },
            Tool {
                name: "pgbench, simple, one thread",
                program: "pgbench",
                package: "postgresql-contrib",
                always: false,
                least_clients: 1,
                most_clients: u32::MAX,
                command: |server, clients, length, command, _| {
                    pgbench(server, clients, 1, "simple", length, command);
                },
                read: read_pgbench,
            },
        ],
        load: |server| {
            let mut command = Command::new("pgbench");
            command.args(["-i", "-s", "1", "-q", &server.url]);
            Some(command)
        },
    },
    Engine {
        name: "memcached",
        settings: &["c=1200"],
        most_clients: 1_000,
        tools: &[Tool {
            name: "memcaslap, one thread",
            program: "memcaslap",
            package: "libmemcached-tools",
            always: true,
            least_clients: 1,
            command: |server, clients, length, command, scratch| {
                let config = scratch.join("memcaslap");
                // Reads only (command 1), of keys of 16 and values of 100 bytes.
                let _ = std::fs::write(&config, "key\n16 16 1\nvalue\n100 100 1\ncmd\n0 0\n1 1\n");
                let reads = if length == Length::Whole { 100_000 } else { clients };
                command.arg(format!("--servers={}:{}", server.host, server.port));
                command.arg("-F").arg(config).args(["-T", "1", "-w"]).arg(format!("{}k", 100 / clients));
                command.arg("-c").arg(clients.to_string()).arg("-x").arg(reads.to_string());
            },
            // With more clients it does not end reliably.
            most_clients: 16,
            read: read_memcaslap,
        }],
        load: |_| None,
    },
    Engine {
        name: "redis",
        settings: &[],
        most_clients: 1_000,
        tools: &[Tool {
            name: "redis-benchmark, one thread",
            program: "redis-benchmark",
            package: "redis-tools",
            always: true,
            least_clients: 1,
            most_clients: u32::MAX,
            command: |server, clients, length, command, _| {
                // A second or two.
                let reads = match length {
                    Length::Whole if clients == 1 => 20_000,
                    Length::Whole => 150_000,
                    Length::Nothing => clients,
                };
                redis_benchmark(server, "get", command).args([
                    "-c",
                    &clients.to_string(),
                    "-n",
                    &reads.to_string(),
                ]);
            },
            read: read_redis_benchmark,
        }],
        load: |server| {
            let mut command = Command::new("redis-benchmark");
            // Ten sets for each of its keys, which it draws at random: one of 22,000 is missing.
            redis_benchmark(server, "set", &mut command).args(["-n", "1000000", "-P", "50"]);
            Some(command)
        },
    },
];

fn mysqlslap(server: &Server, clients: u32, length: Length, command: &mut Command, scratch: &Path) {
    let statements = scratch.join("mysqlslap.sql");
    let _ = std::fs::write(&statements, points());
    let queries = if length == Length::Whole { SLAPS } else { clients };
    command.args(["--no-defaults", "--user=root", "--protocol=tcp", "--create-schema=kurabe"]);
    command.arg(format!("--host={}", server.host)).arg(format!("--port={}", server.port));
    command.arg("--no-drop").arg("--delimiter=;").arg("--query").arg(statements);
    command.arg(format!("--concurrency={clients}")).arg(format!("--number-of-queries={queries}"));
}

/// 100,000 keys with values of 100 bytes.
fn redis_benchmark<'a>(server: &Server, test: &str, command: &'a mut Command) -> &'a mut Command {
    command.args(["-h", &server.host, "-p", &server.port, "-t", test, "-r", "100000", "-d", "100"])
}

/// Statements for mysqlslap, which draws no keys and repeats its input: a thousand different points of sysbench's
/// table, spread over it by a multiplier that is coprime to their number.
fn points() -> String {
    let key = |n: u32| 1 + n * 7_919 % 100_000;
    let statements: Vec<String> =
        (0..1_000).map(|n| format!("SELECT c FROM sbtest1 WHERE id={}", key(n * 97))).collect();
    statements.join(";\n")
}

fn sysbench<'a>(server: &Server, clients: u32, length: Length, command: &'a mut Command) -> &'a mut Command {
    command.args(["oltp_point_select", "--mysql-user=root", "--mysql-db=kurabe", "--table_size=100000"]);
    command.args(["--skip-trx", "--rand-type=uniform"]);
    command.arg(format!("--mysql-host={}", server.host)).arg(format!("--mysql-port={}", server.port));
    command.arg(format!("--threads={clients}"));
    match length {
        Length::Whole => command.arg(format!("--time={SECONDS}")),
        Length::Nothing => command.arg("--time=0").arg(format!("--events={clients}")),
    }
}

fn pgbench(server: &Server, clients: u32, threads: u32, mode: &str, length: Length, command: &mut Command) {
    command.args(["-n", "-S", "-M", mode, "-c", &clients.to_string(), "-j", &threads.to_string()]);
    // pgbench's time includes connecting, one client after another; its rate excludes it.
    let seconds = if clients > 16 { (clients / 64).max(3) } else { 1 };
    match length {
        Length::Whole => command.args(["-T", &seconds.to_string()]),
        Length::Nothing => command.args(["-t", "1"]),
    };
    command.arg(&server.url);
}

/// `transactions:  57782  (57640.15 per sec.)`
fn read_sysbench(said: &str) -> Option<Report> {
    let line = said.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (reads, rate) = line.split_once('(')?;
    let per_second = rate.split(' ').next()?.parse().ok()?;
    Some(Report { reads: reads.trim().parse().ok()?, per_second, cpu: None })
}

/// `number of transactions actually processed: 49621` and `tps = 50229.479920 (without initial connection time)`
fn read_pgbench(said: &str) -> Option<Report> {
    let after = |start: &str| said.lines().find_map(|line| line.strip_prefix(start));
    let reads = after("number of transactions actually processed: ")?;
    let rate = after("tps = ")?;
    Some(Report {
        reads: reads.split('/').next()?.parse().ok()?,
        per_second: rate.split(' ').next()?.parse().ok()?,
        cpu: None,
    })
}

/// `Average number of seconds to run all queries: 0.519 seconds`, `Number of clients running queries: 16` and
/// `Average number of queries per client: 1250`.
fn read_mysqlslap(said: &str) -> Option<Report> {
    let after = |start: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(start))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let reads =
        after("Number of clients running queries:")? * after("Average number of queries per client:")?;
    let seconds = after("Average number of seconds to run all queries:")?;
    Some(Report { reads, per_second: reads / seconds, cpu: None })
}

/// `150000 requests completed in 1.92 seconds`, and `throughput summary: 78125.00 requests per second`. Lines of its
/// progress end with a carriage return.
fn read_redis_benchmark(said: &str) -> Option<Report> {
    let lines = || said.split(['\n', '\r']).map(str::trim);
    let reads = lines().find_map(|line| line.split_once(" requests completed in "))?.0;
    let rate = lines().find_map(|line| line.strip_prefix("throughput summary: "))?;
    let per_second = rate.split(' ').next()?.parse().ok()?;
    Some(Report { reads: reads.parse().ok()?, per_second, cpu: None })
}

/// `cmd_get: 179094`, and `Run time: 2.0s Ops: 281494 TPS: 140538`, where Ops includes the sets before the
/// measurement.
fn read_memcaslap(said: &str) -> Option<Report> {
    let reads: f64 = said.lines().find_map(|line| line.strip_prefix("cmd_get: "))?.trim().parse().ok()?;
    let line = said.lines().find(|line| line.starts_with("Run time:"))?;
    let word = |name: &str| line.split(name).nth(1)?.split_whitespace().next()?.parse::<f64>().ok();
    let seconds = word("Ops:")? / word("TPS:")?;
    Some(Report { reads, per_second: reads / seconds, cpu: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_each_peer_is_parsed() {
        let report = read_sysbench("x\n    transactions:    57782  (57640.15 per sec.)\n").unwrap();
        assert_eq!((report.reads, report.per_second), (57_782.0, 57_640.15));
        let said = "number of transactions actually processed: 16/16\ntps = 811.5 (without initial)\n";
        let report = read_pgbench(said).unwrap();
        assert_eq!((report.reads, report.per_second), (16.0, 811.5));
        let said = "Benchmark\n\tAverage number of seconds to run all queries: 0.500 seconds\n\t\
                    Number of clients running queries: 16\n\tAverage number of queries per client: 1000\n";
        let report = read_mysqlslap(said).unwrap();
        assert_eq!((report.reads, report.per_second), (16_000.0, 32_000.0));
        let said = "cmd_get: 1000\ncmd_set: 3000\n\nRun time: 2.0s Ops: 4000 TPS: 2000 Net_rate: 20.4M/s\n";
        let report = read_memcaslap(said).unwrap();
        assert_eq!((report.reads, report.per_second), (1_000.0, 500.0));
        let said = "GET: rps=76000.0 (overall: 76123.5)\r====== GET ======\n  150000 requests completed in 1.92 seconds\n\
                    Summary:\n  throughput summary: 78125.00 requests per second\n";
        let report = read_redis_benchmark(said).unwrap();
        assert_eq!((report.reads, report.per_second), (150_000.0, 78_125.0));
        assert!(read_sysbench("FATAL: error 1040").is_none());
    }
}
