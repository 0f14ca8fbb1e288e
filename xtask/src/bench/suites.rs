//! `cargo xtask bench suites`: whole transactions by kurabe and by the tool that defines the workload, on one server
//! and the same tables, in turn. First the traffic of each for a transaction, through a relay that counts. Then the
//! transactions per second: with server and client on separate processors, and with both placed by the scheduler.
//! docs/suites.md has the tables, and says what they mean.

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kurabe_relay::{LOOPBACK, Relay, Way, on_piece};

use super::contest::{ANY, CLIENT, Contest, Figure, Going, Place, Ran, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, processors};
use super::server::Server;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "engine | workload | processors | clients",
    figures: &[Figure { name: "transactions/s", digits: 0, compared: true }],
    allowed: ANY,
};

/// The traffic is the difference between two runs of different numbers of transactions: connecting is in both.
const FEW: u64 = 100;
const MORE: u64 = 500;

/// A tool, and the commands that load and remove its tables and run by number.
struct Tool {
    side: Side,
    load: &'static str,
    clean: &'static str,
    number: &'static str,
}

/// Scale 10 has more branches than clients, so that they seldom wait for each other.
const PGBENCH: Tool = Tool {
    side: Side {
        name: "pgbench",
        program: ["pgbench", "postgresql-contrib"],
        command: "pgbench -n -M prepared -c $CLIENTS -j $CLIENTS -P 1 -T $LONGER \"$URL\"",
        // `number of transactions actually processed: 8841`, `tps = 2947.238266 (…)`, `progress: 1.0 s, 2827.5 tps, …`
        read: |ran, _| {
            warm(
                ran.after("transactions actually processed:")?,
                ran.after("tps =")?,
                ran.after("progress: 1.0 s,")?,
            )
        },
        ..Side::PLAIN
    },
    load: "pgbench -i -q -s 10 \"$URL\"",
    clean: "pgbench -i -I d \"$URL\"",
    number: "pgbench -n -M prepared -c 1 -j 1 -t $NUMBER \"$URL\"",
};

const SYSBENCH: Tool = Tool {
    side: Side {
        name: "sysbench",
        program: ["sysbench", "sysbench"],
        command: "sysbench $WORKLOAD $TABLE --threads=$CLIENTS --time=$LONGER --report-interval=1 run",
        // `transactions:  57782  (57640.15 per sec.)`, `[ 1s ] thds: 8 tps: 836.53 qps: …`
        read: |ran, _| {
            let part = |text: &str| {
                let (_, said) = ran.said.split_once(text)?;
                Some(Ran { said: said.to_owned(), ..Ran::default() })
            };
            warm(
                ran.after("transactions:")?,
                part("transactions:")?.after("(")?,
                part("[ 1s ]")?.after("tps:")?,
            )
        },
        ..Side::OURS
    },
    load: "sysbench oltp_read_only $TABLE prepare",
    clean: "sysbench oltp_read_only $TABLE cleanup",
    number: "sysbench $WORKLOAD $TABLE --threads=1 --time=0 --events=$NUMBER run",
};

/// A run measures its only cell twice, so each gets half of the time.
const OURS: Side = Side { command: "ours $SUITE \"$URL\" --rounds 1 --duration ${HALF}ms", ..Side::OURS };
const OURS_BY_NUMBER: &str = "ours $SUITE \"$URL\" --rounds 1 --requests $NUMBER";

/// Transactions per second after the first second, which is warm-up: connections are new, statements not prepared,
/// PostgreSQL's plans are made anew for five executions. Kurabe warms up before it measures too.
fn warm(transactions: f64, rate: f64, first: f64) -> Option<Vec<f64>> {
    let seconds = transactions / rate;
    (seconds > 1.5).then(|| vec![(transactions - first) / (seconds - 1.0)])
}

/// The workloads, each with its suite; TPC-B is pgbench's own script.
const WORKLOADS: [(&str, &str, &Tool); 4] = [
    ("TPC-B", "", &PGBENCH),
    ("oltp_point_select", "suites/sysbench-point-select.toml", &SYSBENCH),
    ("oltp_read_only", "suites/sysbench-read-only.toml", &SYSBENCH),
    ("oltp_read_write", "suites/sysbench-read-write.toml", &SYSBENCH),
];

pub fn run(args: &[String]) -> Outcome {
    let all = WORKLOADS.map(|(name, ..)| name).join(",");
    let given = Variables::read(
        args,
        &[
            ("rounds", "11"),
            ("seconds", "4"),
            ("engines", "postgres,mysql,mariadb"),
            ("workloads", &all),
            ("clients", "1,8"),
            ("processors", "apart,free"),
        ],
    )?;
    let kurabe = Kurabe::build("suites")?;
    let about = format!("{} s a side", given.get("seconds"));
    let mut going = Going::begin(&CONTEST, &given, &about)?;
    let mut traffic = Vec::new();
    for engine in given.list("engines") {
        let server = Server::start(&kurabe.program, &engine, &[])?;
        for (workload, suite, tool) in WORKLOADS {
            let is_asked = given.list("workloads").iter().any(|name| name == workload);
            if !is_asked || (workload == "TPC-B" && engine != "postgres") {
                continue;
            }
            let place = |url: &str, port: &str, clients: u32, processor| -> Result<Place<'_>, String> {
                let variables = vec![
                    ("URL", url.to_owned()),
                    ("TABLE", table(&server, port)),
                    ("WORKLOAD", workload.to_owned()),
                    ("CLIENTS", clients.to_string()),
                    ("LONGER", (1 + given.number("seconds")?).to_string()),
                    ("HALF", (500 * given.number("seconds")?).to_string()),
                    ("SUITE", words(&kurabe, suite, clients)?),
                ];
                Ok(Place { processor, ..Place::new(&kurabe, variables) })
            };
            place(&server.url, &server.port, 1, None)?.run(tool.load)?;
            let counted = Counted::start(&server)?;
            let through = place(&counted.url, &counted.port, 1, None)?;
            // A run of ours makes a twentieth more for warm-up, all twice.
            let made = (MORE - FEW) as f64;
            let sides = [(tool.side.name, tool.number, made), ("kurabe", OURS_BY_NUMBER, 2.1 * made)];
            let mut trips = Vec::new();
            for (name, command, made) in sides {
                let [turns, sent, received] = counted.of(through_of(&through, command), made)?;
                traffic.push(format!(
                    "| {engine} | {workload} | {name} | {turns:.2} | {sent:.0} | {received:.0} |"
                ));
                trips.push(turns);
            }
            // Retries and background messages of drivers are less than this.
            if (trips[0] - trips[1]).abs() >= 0.05 {
                going.problem(format!(
                    "{engine}, {workload}: {:.2} round trips with {}, {:.2} with kurabe",
                    trips[0], tool.side.name, trips[1]
                ));
            }
            for placement in given.list("processors") {
                let apart = placement == "apart";
                server.pin(&if apart { SERVER.to_owned() } else { format!("0-{}", processors() - 1) })?;
                for clients in given.numbers("clients")? {
                    let place = place(&server.url, &server.port, clients, apart.then_some(CLIENT))?;
                    let case = format!("{engine} | {workload} | {placement} | {clients}");
                    going.case(&case, &place, &[tool.side, OURS]);
                }
            }
            place(&server.url, &server.port, 1, None)?.run(tool.clean)?;
        }
    }
    println!(
        "\n| engine | workload | tool | round trips | bytes sent | bytes received |\n|---|---|---|--:|--:|--:|"
    );
    println!("{}", traffic.join("\n"));
    going.end()
}

/// Runs a command by number.
fn through_of<'a>(place: &'a Place<'_>, command: &'a str) -> impl Fn(u64) -> Outcome + 'a {
    move |number| place.run(&format!("NUMBER={number}; {command}")).map(drop)
}

/// sysbench's options for its table.
fn table(server: &Server, port: &str) -> String {
    let name = if server.url.starts_with("postgres") { "pgsql" } else { "mysql" };
    format!(
        "--table_size=100000 --db-driver={name} --{name}-user=kurabe --{name}-db=kurabe --{name}-host={} --{name}-port={port}",
        server.host
    )
}

/// Kurabe's words for a workload.
fn words(kurabe: &Kurabe, suite: &str, clients: u32) -> Result<String, String> {
    if suite.is_empty() {
        return Ok(format!("pgbench -b tpcb-like --scale 10 --write --clients {clients}"));
    }
    let text = fs::read_to_string(suite).map_err(|error| format!("{suite}: {error}"))?;
    let own = kurabe.scratch.join(format!("suite-{clients}.toml"));
    fs::write(&own, on_their_table(&text, clients)?).map_err(|error| error.to_string())?;
    Ok(format!("-f {}", own.display()))
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

/// A server through a relay that counts: how often a client sent something after an answer (a round trip each time), and the
/// bytes of clients and of the server.
struct Counted {
    url: String,
    port: String,
    counts: Arc<[AtomicU64; 3]>,
    _relay: Relay,
}

impl Counted {
    fn start(server: &Server) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("a relay: {error}");
        let port = server.port.parse().map_err(|error| failed(&error))?;
        let counts: Arc<[AtomicU64; 3]> = Arc::default();
        let shared = Arc::clone(&counts);
        let to = kurabe_relay::Server::Tcp(server.host.clone(), port);
        let relay = Relay::start(LOOPBACK, to, move |_| {
            // A request follows the previous answer, so that the order of the two threads' counts is that of the traffic.
            let (answered, counts) = (AtomicBool::new(true), Arc::clone(&shared));
            on_piece(move |way, piece, ends| {
                let bytes = piece.len() as u64;
                if way == Way::ToServer {
                    counts[0].fetch_add(u64::from(answered.swap(false, Ordering::SeqCst)), Ordering::SeqCst);
                    counts[1].fetch_add(bytes, Ordering::SeqCst);
                } else {
                    counts[2].fetch_add(bytes, Ordering::SeqCst);
                    answered.store(true, Ordering::SeqCst);
                }
                ends.to.write_all(piece)
            })
        });
        let relay = relay.map_err(|error| failed(&error))?;
        let port = relay.address().port().to_string();
        let url = server.url.replacen(&format!(":{}", server.port), &format!(":{port}"), 1);
        Ok(Self { url, port, counts, _relay: relay })
    }

    /// The counts of one transaction; `made`: as many more the second run makes.
    fn of(&self, run: impl Fn(u64) -> Outcome, made: f64) -> Result<[f64; 3], String> {
        let count = || [0, 1, 2].map(|at| self.counts[at].load(Ordering::SeqCst) as f64);
        let before = count();
        run(FEW)?;
        let between = count();
        run(MORE)?;
        let after = count();
        Ok([0, 1, 2].map(|at| (after[at] - 2.0 * between[at] + before[at]) / made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_second_of_a_tool_is_excluded() {
        let pgbench = "progress: 1.0 s, 1700.0 tps, lat 2.786 ms stddev 1.038, 0 failed\n\
                       number of transactions actually processed: 5700\ntps = 1900.0 (without initial connection time)\n";
        let sysbench = "[ 1s ] thds: 8 tps: 1700.00 qps: 34000.00 (r/w/o: 1/2/3)\n\
                        [ 2s ] thds: 8 tps: 2000.00 qps: 40000.00 (r/w/o: 1/2/3)\n    transactions:    5700   (1900.00 per sec.)\n";
        for (tool, said) in [(&PGBENCH, pgbench), (&SYSBENCH, sysbench)] {
            let ran = Ran { said: said.to_owned(), ..Ran::default() };
            assert_eq!((tool.side.read)(&ran, &Ran::default()), Some(vec![2000.0]));
        }
        assert_eq!(warm(500.0, 1900.0, 400.0), None);
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
