//! `cargo xtask bench peers`: the client's cost of a point read with common tools and with Kurabe.
//!
//! Of each engine, one throwaway server, with the client on one processor and the server on another (apart), or the server on
//! all (free). docs/performance.md has the table, and says what the tools do.

use super::contest::{ANY, CLIENT, COUNTED, Contest, Figure, Going, Place, Ran, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, cargo, processors};
use super::server::Server;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "engine | processors | clients",
    figures: &[
        Figure { name: "reads/s", digits: 0, compared: true },
        Figure { name: "client CPU, µs/read", digits: 1, compared: true },
        Figure { name: "of it in user space", digits: 1, compared: false },
        Figure { name: COUNTED, digits: 2, compared: false },
        Figure { name: "server CPU, µs/read", digits: 1, compared: false },
    ],
    allowed: ANY,
};

/// A tool, and where it is measured.
struct Tool {
    engines: &'static [&'static str],
    /// With so many clients at least, …
    least: u32,
    /// … and at most, …
    apart: u32,
    /// … or, where the server has all processors, these at most.
    free: u32,
    side: Side,
}

const MANY: u32 = u32::MAX;
/// With more clients, tools that are not of general interest are left out.
const FEW: u32 = 16;

const SYSBENCH: Side = Side {
    name: "sysbench, prepared",
    program: ["sysbench", "sysbench"],
    command: "sysbench $POINTS --threads=$CLIENTS --time=1 --db-ps-mode=auto run",
    nothing: "sysbench $POINTS --threads=$CLIENTS --time=0 --events=$CLIENTS --db-ps-mode=auto run",
    // `transactions:  57782  (57640.15 per sec.)`
    read: |ran, nothing| {
        let rate = Ran { said: ran.said.split_once("transactions:")?.1.to_owned(), ..Ran::default() };
        of_reads(ran, nothing, |ran| ran.after("transactions:"), rate.after("("))
    },
};

/// Its time includes connecting, one client after another; its rate excludes it.
const PGBENCH: Side = Side {
    name: "pgbench, prepared, one thread",
    program: ["pgbench", "postgresql-contrib"],
    command: "pgbench -n -S -M prepared -c $CLIENTS -j 1 -T $LONGER \"$URL\"",
    nothing: "pgbench -n -S -M prepared -c $CLIENTS -j 1 -t 1 \"$URL\"",
    // `number of transactions actually processed: 49621` and `tps = 50229.479920 (without initial connection time)`
    read: |ran, nothing| {
        of_reads(ran, nothing, |ran| ran.after("transactions actually processed:"), ran.after("tps ="))
    },
};

const TOOLS: &[Tool] = &[
    Tool { engines: &["mysql", "mariadb"], least: 1, apart: MANY, free: MANY, side: SYSBENCH },
    Tool {
        engines: &["mysql"],
        least: 1,
        apart: FEW,
        free: 0,
        side: Side {
            name: "sysbench, text",
            command: "sysbench $POINTS --threads=$CLIENTS --time=1 --db-ps-mode=disable run",
            nothing: "sysbench $POINTS --threads=$CLIENTS --time=0 --events=$CLIENTS --db-ps-mode=disable run",
            ..SYSBENCH
        },
    },
    Tool {
        engines: &["mysql"],
        least: 1,
        apart: FEW,
        free: 0,
        // It draws no keys: a thousand different points of sysbench's table, spread over it by a multiplier that is coprime to
        // their number.
        side: Side {
            name: "mysqlslap, text",
            program: ["mysqlslap", "mariadb-client"],
            command: "seq 0 999 | awk '{ print \"SELECT c FROM sbtest1 WHERE id=\" 1 + $1 * 97 * 7919 % 100000 \";\" }' \
                      >\"$SCRATCH/points.sql\"; mysqlslap $SLAP --query=\"$SCRATCH/points.sql\" --number-of-queries=16000",
            nothing: "echo 'SELECT 1' >\"$SCRATCH/points.sql\"; mysqlslap $SLAP --query=\"$SCRATCH/points.sql\" --number-of-queries=$CLIENTS",
            read: |ran, nothing| {
                let reads = |ran: &Ran| {
                    let clients = ran.after("Number of clients running queries:")?;
                    Some(clients * ran.after("Average number of queries per client:")?)
                };
                let seconds = ran.after("Average number of seconds to run all queries:")?;
                of_reads(ran, nothing, reads, Some(reads(ran)? / seconds))
            },
        },
    },
    Tool { engines: &["postgres"], least: 1, apart: MANY, free: MANY, side: PGBENCH },
    Tool {
        engines: &["postgres"],
        least: 2,
        apart: MANY,
        free: MANY,
        side: Side {
            name: "pgbench, prepared, a thread per client",
            command: "pgbench -n -S -M prepared -c $CLIENTS -j $CLIENTS -T $LONGER \"$URL\"",
            nothing: "pgbench -n -S -M prepared -c $CLIENTS -j $CLIENTS -t 1 \"$URL\"",
            ..PGBENCH
        },
    },
    Tool {
        engines: &["postgres"],
        least: 1,
        apart: FEW,
        free: 0,
        side: Side {
            name: "pgbench, simple, one thread",
            command: "pgbench -n -S -M simple -c $CLIENTS -j 1 -T $LONGER \"$URL\"",
            nothing: "pgbench -n -S -M simple -c $CLIENTS -j 1 -t 1 \"$URL\"",
            ..PGBENCH
        },
    },
    Tool {
        engines: &["memcached"],
        least: 1,
        // With more clients it does not end reliably.
        apart: FEW,
        free: FEW,
        // Reads only (command 1), of keys of 16 and values of 100 bytes. `Ops` includes the sets before them.
        side: Side {
            name: "memcaslap, one thread",
            program: ["memcaslap", "libmemcached-tools"],
            command: "printf 'key\\n16 16 1\\nvalue\\n100 100 1\\ncmd\\n0 0\\n1 1\\n' >\"$SCRATCH/slap\"; memcaslap \
                      --servers=$HOST:$PORT -F \"$SCRATCH/slap\" -T 1 -w $((100 / CLIENTS))k -c $CLIENTS -x 100000",
            nothing: "printf 'key\\n16 16 1\\nvalue\\n100 100 1\\ncmd\\n0 0\\n1 1\\n' >\"$SCRATCH/slap\"; memcaslap \
                      --servers=$HOST:$PORT -F \"$SCRATCH/slap\" -T 1 -w $((100 / CLIENTS))k -c $CLIENTS -x $CLIENTS",
            read: |ran, nothing| {
                let seconds = ran.after("Ops:")? / ran.after("TPS:")?;
                of_reads(ran, nothing, |ran| ran.after("cmd_get:"), Some(ran.after("cmd_get:")? / seconds))
            },
        },
    },
    Tool {
        engines: &["redis"],
        least: 1,
        apart: MANY,
        free: MANY,
        // A second or two. `150000 requests completed in 1.92 seconds`, `throughput summary: 78125.00 requests per second`.
        side: Side {
            name: "redis-benchmark, one thread",
            program: ["redis-benchmark", "redis-tools"],
            command: "redis-benchmark $KEYS -t get -c $CLIENTS -n $((CLIENTS == 1 ? 20000 : 150000))",
            nothing: "redis-benchmark $KEYS -t get -c $CLIENTS -n $CLIENTS",
            read: |ran, nothing| {
                let reads = |ran: &Ran| {
                    ran.said
                        .split_once(" requests completed in ")?
                        .0
                        .rsplit(char::is_whitespace)
                        .next()?
                        .parse()
                        .ok()
                };
                of_reads(ran, nothing, reads, ran.after("throughput summary:"))
            },
        },
    },
];

/// A run measures its cell twice, so each gets half of the time. The report's client CPU is that of the measured phase.
const OURS: Side = Side {
    command: "ours point-read \"$URL\" --rounds 1 --clients $CLIENTS --duration 500ms",
    nothing: "ours point-read \"$URL\" --rounds 1 --clients $CLIENTS --requests $CLIENTS",
    read: |ran, nothing| {
        let reads = |ran: &Ran| ran.mean("answers_compared").map(|mean| 2.0 * mean);
        let mut figures = of_reads(ran, nothing, reads, ran.mean("ops_per_second"))?;
        figures[1] = ran.mean("client_cpu_us_per_op")?;
        Some(figures)
    },
    ..Side::OURS
};

/// Reads a second, and microseconds of CPU for each, without what is subtracted.
fn of_reads(ran: &Ran, nothing: &Ran, reads: fn(&Ran) -> Option<f64>, rate: Option<f64>) -> Option<Vec<f64>> {
    let more = (reads(ran)? - reads(nothing).unwrap_or(0.0)).max(1.0);
    let each = |seconds: f64| seconds * 1e6 / more;
    let calls = ran.calls.zip(nothing.calls).map_or(f64::NAN, |(ran, nothing)| (ran - nothing) / more);
    Some(vec![
        rate?,
        each(ran.cpu - nothing.cpu),
        each(ran.user - nothing.user),
        calls,
        each(ran.servers - nothing.servers),
    ])
}

/// The least that a client can pay: `benches/peers/src/bin/bare.rs`. Its CPU is that of the measured phase.
const BARE: Side = Side {
    name: "bare loop, the driver's bytes",
    command: "\"$BARE\" \"$URL\" $CLIENTS 1",
    read: |ran, _| {
        let each = |name: &str| Some(ran.after(name)? / ran.after("reads:")?);
        let rate = ran.after("reads:")? / ran.after("seconds:")?;
        let cpu = |name: &str| Some(each(name)? * 1e6);
        Some(vec![rate, cpu("cpu:")?, cpu("user:")?, each("calls:")?, f64::NAN])
    },
    ..Side::PLAIN
};

/// The program of [`BARE`], newly built.
fn bare() -> Result<String, String> {
    let root = "benches/peers";
    cargo(&[
        "build",
        "--release",
        "--manifest-path",
        &format!("{root}/Cargo.toml"),
        "--no-default-features",
        "--bin",
        "bare",
    ])?;
    Ok(format!("{root}/target/release/bare"))
}

/// How the data of tools are loaded. Redis: ten sets for each of its keys, which it draws at random: one of 22,000 is missing.
pub const LOADS: [(&str, &str); 4] = [
    ("mysql", "sysbench $POINTS prepare"),
    ("mariadb", "sysbench $POINTS prepare"),
    ("postgres", "pgbench -i -s 1 -q \"$URL\""),
    ("redis", "redis-benchmark $KEYS -t set -n 1000000 -P 50"),
];

/// The first tool of an engine.
pub fn first(engine: &str) -> Option<&'static Side> {
    TOOLS.iter().find(|tool| tool.engines.contains(&engine)).map(|tool| &tool.side)
}

/// The variables of the commands.
pub fn variables(server: &Server, clients: u32) -> Vec<(&'static str, String)> {
    let (host, port, password) = (&server.host, &server.port, &server.password);
    let mut all = server.variables();
    all.extend([
        ("CLIENTS", clients.to_string()),
        ("LONGER", if clients > FEW { (clients / 64).max(3) } else { 1 }.to_string()),
        ("KEYS", format!("-h {host} -p {port} -a {password} -r 100000 -d 100")),
        (
            "POINTS",
            format!(
                "oltp_point_select --mysql-user=kurabe --mysql-password={password} --mysql-db=kurabe --mysql-host={host} --mysql-port={port} \
                 --table_size=100000 --skip-trx --rand-type=uniform"
            ),
        ),
        (
            "SLAP",
            format!(
                "--no-defaults --user=kurabe --protocol=tcp --create-schema=kurabe --host={host} --port={port} --no-drop \
                 --delimiter=; --concurrency={clients}"
            ),
        ),
    ]);
    all
}

pub fn run(args: &[String]) -> Outcome {
    let defaults = [
        ("rounds", "5"),
        ("engines", "mysql,mariadb,postgres,memcached,redis"),
        ("clients", "1,16,256,1000"),
        ("clients-free", "1,16,256,1000"),
    ];
    let given = Variables::read(args, &defaults)?;
    let (kurabe, bare) = (Kurabe::build("peers")?, bare()?);
    let mut going = Going::begin(&CONTEST, &given, "a row by its key, three times the rounds at one client")?;
    for engine in given.list("engines") {
        let settings: &[&str] = match engine.as_str() {
            // memcaslap cannot log in.
            "memcached" => &["c=1200", "login=none"],
            "redis" | "mongodb" => &[],
            _ => &["max_connections=1200"],
        };
        let server = Server::start(&kurabe.program, &engine, settings)?;
        let cpu = || server.cpu();
        let place = |clients: u32| Place {
            kurabe: &kurabe,
            processor: Some(CLIENT),
            variables: [variables(&server, clients), vec![("BARE", bare.clone())]].concat(),
            servers: &cpu,
            work: 0.0,
        };
        if let Some((_, load)) = LOADS.iter().find(|(name, _)| *name == engine) {
            place(1).run(load)?;
        }
        for (apart, counts) in [(true, "clients"), (false, "clients-free")] {
            server.pin(&if apart { SERVER.to_owned() } else { format!("0-{}", processors() - 1) })?;
            for clients in given.numbers(counts)? {
                let fits = |tool: &&Tool| {
                    tool.engines.contains(&engine.as_str())
                        && clients >= tool.least
                        && clients <= if apart { tool.apart } else { tool.free }
                };
                let tools = TOOLS.iter().filter(fits).map(|tool| tool.side);
                let sides: Vec<Side> = tools.chain([BARE, OURS]).collect();
                // One client leaves both processors idle between its steps: the cost of waking them varies most there.
                let rounds = if clients == 1 { 3 * going.rounds } else { going.rounds };
                let case = format!("{engine} | {} | {clients}", if apart { "apart" } else { "free" });
                going.case_of(rounds, &case, &place(clients), &sides);
            }
        }
    }
    going.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_each_peer_is_parsed() {
        for (tool, said, figures) in [
            (
                "sysbench, prepared",
                "x\n    transactions:    57782  (57640.15 per sec.)\n",
                [57_640.15, 17.306],
            ),
            (
                "pgbench, prepared, one thread",
                "number of transactions actually processed: 16/16\ntps = 811.5 (without initial)\n",
                [811.5, 62_500.0],
            ),
            (
                "mysqlslap, text",
                "Benchmark\n\tAverage number of seconds to run all queries: 0.500 seconds\n\t\
                 Number of clients running queries: 16\n\tAverage number of queries per client: 1000\n",
                [32_000.0, 62.5],
            ),
            (
                "memcaslap, one thread",
                "cmd_get: 1000\ncmd_set: 3000\n\nRun time: 2.0s Ops: 4000 TPS: 2000 Net_rate: 20.4M/s\n",
                [500.0, 1_000.0],
            ),
            (
                "redis-benchmark, one thread",
                "GET: rps=76000.0 (overall: 76123.5)\r====== GET ======\n  150000 requests completed in 1.92 seconds\n\
                 Summary:\n  throughput summary: 78125.00 requests per second\n",
                [78_125.0, 6.667],
            ),
        ] {
            let side = TOOLS.iter().map(|tool| tool.side).find(|side| side.name == tool).unwrap();
            let ran = Ran { said: said.to_owned(), cpu: 1.0, ..Ran::default() };
            let found = (side.read)(&ran, &Ran::default()).unwrap();
            assert!((found[0] - figures[0]).abs() < 0.01, "{tool}: {found:?}");
            assert!((found[1] - figures[1]).abs() < 0.01, "{tool}: {found:?}");
        }
        let failed = Ran { said: "FATAL: error 1040".to_owned(), ..Ran::default() };
        assert!(TOOLS.iter().all(|tool| (tool.side.read)(&failed, &failed).is_none()));
    }
}
