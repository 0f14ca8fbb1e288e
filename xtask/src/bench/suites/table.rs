//! The page that `cargo xtask bench suites` writes.

use super::super::peers::{machine, said};
use super::super::run::{Spread, interval};
use super::Measured;

/// The file of the tables.
pub const PAGE: &str = "docs/suites.md";

/// The traffic of one tool per transaction: bytes, and round trips.
pub struct Traffic {
    pub engine: String,
    pub workload: &'static str,
    pub tool: &'static str,
    pub trips: f64,
    pub sent: f64,
    pub received: f64,
}

impl Traffic {
    pub const HEAD: &str =
        "| engine | workload | tool | round trips | bytes sent | bytes received |\n|---|---|---|--:|--:|--:|";

    pub fn markdown(&self) -> String {
        format!(
            "| {} | {} | {} | {:.2} | {:.0} | {:.0} |",
            self.engine, self.workload, self.tool, self.trips, self.sent, self.received
        )
    }
}

/// Transactions per second of the tool and of Kurabe, in pairs.
pub struct Rates {
    pub engine: String,
    pub workload: &'static str,
    pub tool: &'static str,
    pub clients: u32,
    pub apart: bool,
    pub pairs: Vec<[f64; 2]>,
}

impl Rates {
    const HEAD: &str = "| engine | workload | tool | processors | clients | transactions/s, tool | kurabe | kurabe ÷ tool (95 %) |\n\
                        |---|---|---|---|--:|--:|--:|--:|";

    pub fn markdown(&self) -> String {
        let side = |at: usize| Spread::of_pairs(&self.pairs, |pair| pair[at]).median;
        let ratios = || self.pairs.iter().map(|[tool, ours]| ours / tool);
        let interval = match interval(ratios()) {
            Some((low, high)) => format!("{low:.3}–{high:.3}"),
            None => "too few rounds for an interval".to_owned(),
        };
        let ratio = format!("{:.3} ({interval})", Spread::of(ratios()).median);
        format!(
            "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {ratio} |",
            self.engine,
            self.workload,
            self.tool,
            if self.apart { "apart" } else { "free" },
            self.clients,
            side(0),
            side(1),
        )
    }
}

/// The page's text.
pub fn page(measured: &Measured, args: &[String], rounds: usize, seconds: u64) -> String {
    let command = ["cargo xtask bench suites"].into_iter().chain(args.iter().map(String::as_str));
    let lines = |lines: Vec<String>| lines.join("\n");
    format!(
        "# The field's own workloads\n\n\
         pgbench's and sysbench's own transactions, run by the tool that they come from and by kurabe: one server, the same tables,\n\
         in turn. Made by\n\n```\n{command}\n```\n\n\
         on {date} UTC; {machine}; {versions}; kurabe {kurabe}. {rounds} pairs of {seconds} s a side, each beginning with the other tool.\n\n\
         ## What is sent for a transaction\n\n{head}\n{sent}\n\n\
         ## How many a second\n\n{rates_head}\n{rates}\n\n{ABOUT}",
        command = command.collect::<Vec<_>>().join(" "),
        date = said("date", &["-u", "+%Y-%m-%d %H:%M"]),
        machine = machine(),
        versions = measured.versions.join("; "),
        kurabe = env!("CARGO_PKG_VERSION"),
        head = Traffic::HEAD,
        sent = lines(measured.sent.iter().map(Traffic::markdown).collect()),
        rates_head = Rates::HEAD,
        rates = lines(measured.rates.iter().map(Rates::markdown).collect()),
    )
}

const ABOUT: &str = "\
- **apart**: the client on one processor and the server on another (`taskset`), so that what a client takes from the processors is not
  taken from the server; **free**: both wherever the scheduler puts them.
- **Transactions/s** are what each tool reports after it has warmed up (the tools for a second), medians over the pairs. **kurabe ÷ tool** is taken within each pair; the median is
  shown, with the interval that the sign test gives. Above 1, kurabe makes more.
- A ratio near 1 says that both make the server do the same work. Where the client's own time is a part of the whole (one client,
  which waits for each answer, and **free**, where it shares processors with the server), a lean client makes the rate higher:
  there the ratio tells of clients, not of servers.
- **TPC-B**: pgbench's default script with `-M prepared`, scale 10, read by kurabe as it is (`kurabe run pgbench -b tpcb-like`).
  **oltp_read_only** and the others: `suites/sysbench-*.toml` on the table that sysbench made, 100,000 rows, keys drawn by both as sysbench does where nothing is said.
- On PostgreSQL both tools send through libpq, which asks the server to describe each result with each execution; kurabe's client
  asks once, when it prepares: fewer bytes, and less work for the server.
- A session is slower while it is new (PostgreSQL's for more than a second: memory that all share is new to its process). A trial
  of kurabe's begins with new sessions and warms up for a tenth of its time or more: sides of 1 s are two trials of half a second.
- kurabe compares what comes back with what must come, reads the server's counters and asks it ten times a second what its sessions
  do, for up to a hundredth of a processor; the tools do nothing of it.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_taken_within_each_pair() {
        let pairs = vec![[100.0, 110.0], [200.0, 210.0], [50.0, 60.0]];
        let rates =
            Rates { engine: "x".to_owned(), workload: "w", tool: "t", clients: 8, apart: true, pairs };
        let row = rates.markdown();
        assert!(row.starts_with("| x | w | t | apart | 8 | 100 | 110 | 1.100 ("), "{row}");
    }
}
