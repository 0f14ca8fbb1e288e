//! Results as Markdown: medians, ranges, and ratios paired by round.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::super::run::Spread;
use super::Sample;

/// The results of one tool at one number of clients.
pub struct Row {
    pub name: &'static str,
    pub samples: Vec<Sample>,
}

impl Row {
    pub fn new(name: &'static str) -> Self {
        Self { name, samples: Vec::new() }
    }
}

/// All tools at one number of clients of one engine.
pub struct Group {
    pub engine: &'static str,
    pub clients: u32,
    pub apart: bool,
    pub rows: Vec<Row>,
}

impl Group {
    /// The rows of the table; ratios are `kurabe` to the row's tool, paired by round, and their median.
    pub fn markdown(&self) -> String {
        let ours = self.rows.iter().find(|row| row.name == "kurabe");
        let mut out = String::new();
        for row in &self.rows {
            let of = |figure: fn(&Sample) -> f64| Spread::of_pairs(&row.samples, figure);
            let ratio = |figure: fn(&Sample) -> f64| match ours {
                Some(ours) if ours.name != row.name => {
                    let pairs = ours.samples.iter().zip(&row.samples);
                    format!("{:.2}", Spread::of(pairs.map(|(a, b)| figure(a) / figure(b))).median)
                }
                _ => "–".to_owned(),
            };
            let (rate, client, server) = (of(|s| s.per_second), of(|s| s.client), of(|s| s.server));
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {rate:.0} | {client:.1} | {:.1} | {} | {} |",
                self.engine,
                if self.apart { "apart" } else { "free" },
                self.clients,
                row.name,
                server.median,
                ratio(|s| s.client),
                ratio(|s| s.per_second),
            );
        }
        out.trim_end().to_owned()
    }
}

/// `docs/performance.md`.
pub fn page(
    versions: &[String],
    groups: &[Group],
    problems: &[String],
    args: &[String],
    rounds: usize,
) -> String {
    let rows: Vec<String> = groups.iter().map(Group::markdown).collect();
    let command = ["cargo xtask bench peers"].into_iter().chain(args.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let kurabe = env!("CARGO_PKG_VERSION");
    let problems: String = problems.iter().fold(String::new(), |all, line| all + "- " + line + "\n");
    format!(
        "# Performance\n\n\
         What reading one row by its key costs the client, with other tools and with kurabe. Made by\n\n\
         ```\n{command}\n```\n\n\
         on {date} UTC; {machine}; {versions}; kurabe {kurabe}. {rounds} rounds, three times as many at one client, the tools in turn.\n\n\
         | engine | processors | clients | tool | reads/s (range) | client CPU, µs/read (range) | server CPU, µs/read \
         | CPU, kurabe ÷ tool | rate, kurabe ÷ tool |\n\
         |---|---|--:|---|--:|--:|--:|--:|--:|\n{rows}\n\n{ABOUT}{problems}",
        date = said("date", &["-u", "+%Y-%m-%d %H:%M"]),
        machine = machine(),
        versions = versions.join("; "),
        rows = rows.join("\n"),
    )
}

const ABOUT: &str = "\
Figures are medians over the rounds, with the least and the most; ratios are taken within each round, and their median is
shown. Below 1, kurabe's client costs less; above 1, its rate is higher.

- **apart**: client on one processor and server on another (`taskset`); **free**: client on one processor, server on all.
- **The work**: 100,000 rows, one field of one row by an integer primary key drawn uniformly, without transactions. The
  field has 120 characters in sysbench, is a whole number in pgbench, and has 100 characters in memcaslap, in
  redis-benchmark and in kurabe. kurabe compares every answer byte for byte, within its CPU time; the others compare nothing.
- **Client CPU** of the others is what the kernel counts for their process, in hundredths of a second. That of a run
  with the same connections and (nearly) no reads is subtracted, so that connecting and loading are excluded. kurabe's is its report's
  `client_cpu_us_per_op`: the whole process, in the measured phase only.
- **Server CPU** is that of all processes of the server, with the same subtracted; rough, since kurabe loads its table in each run.
- **Rates** are what each tool reports. A trial of the others takes a second (memcaslap: 100,000 reads; pgbench, which connects within its
  time: up to 15 s at many clients); one of kurabe's is the
  mean of two halves of a second.
- **mysqlslap** draws no keys: it repeats a thousand statements whose keys are spread over the table. Its rate is 16,000 reads divided by
  the time that it reports, which is rounded to a thousandth of a second and includes the start of its threads.
- **Left out**: memcaslap above 16 clients, where it does not end reliably; text protocols above 16
  clients and with processors free.

To install the peers on Debian: `apt-get install sysbench mariadb-client postgresql-contrib libmemcached-tools redis-tools`.
";

pub fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let model = model.map_or("unknown processor", |(_, model)| model);
    // `6.18.44-custom`: a distribution's build number does not affect speed.
    let release = said("uname", &["-r"]);
    let release = release.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    format!("{model}, {processors} processors, Linux {release}")
}

pub fn said(program: &str, args: &[&str]) -> String {
    crate::shell::run(Command::new(program).args(args), program).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, figures: [f64; 3]) -> Row {
        let sample = |figure: f64| Sample { per_second: 1e6 / figure, client: figure, server: 1.0 };
        Row { name, samples: figures.map(sample).to_vec() }
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let rows = vec![row("peer", [10.0, 20.0, 40.0]), row("kurabe", [5.0, 10.0, 20.0])];
        let group = Group { engine: "x", clients: 16, apart: true, rows };
        let expected = "| x | apart | 16 | peer | 50000 (25000–100000) | 20.0 (10.0–40.0) | 1.0 | 0.50 | 2.00 |\n\
             | x | apart | 16 | kurabe | 100000 (50000–200000) | 10.0 (5.0–20.0) | 1.0 | – | – |";
        assert_eq!(group.markdown(), expected);
    }
}
