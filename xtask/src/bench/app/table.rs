//! Results as Markdown: medians over the rounds, and differences within each.

use std::fmt::Write as _;

use super::super::peers::{machine, said};
use super::super::run::Spread;
use super::parts::Sample;
use super::{Group, MODES, Options};

impl Group {
    /// The results of the last round, for progress.
    pub fn last(&self) -> String {
        let samples = self.rounds.last().into_iter().flatten();
        let figures: Vec<String> = samples
            .map(|s| format!("{:.1} ({:.1}) − {:.1} − {:.1}", s.app, s.beside, s.database, s.floor))
            .collect();
        format!("{} round {}: {}", self.engine, self.rounds.len(), figures.join("; "))
    }

    /// The rows of the table.
    pub fn markdown(&self, beside: bool) -> String {
        let mut out = String::new();
        for (index, mode) in MODES.iter().enumerate() {
            let of =
                |figure: fn(&Sample) -> f64| Spread::of_pairs(&self.rounds, |round| figure(&round[index]));
            let range = |figure: fn(&Sample) -> f64| format!("{:.1}", of(figure));
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "| {} | {} | {} | {} | {:.1} | {} | {:.1} | {} | {:.0} |",
                self.engine,
                if mode.kept { "kept" } else { "per request" },
                if mode.write { "write" } else { "read" },
                range(|s| s.app),
                of(|s| s.database).median,
                range(|s| s.app - s.database),
                of(|s| s.floor).median,
                range(|s| s.app - s.database - s.floor),
                of(|s| s.per_second).median,
            );
            if beside {
                let _ = write!(
                    out,
                    " {} | {} | {:.2} | {:.0} |",
                    range(|s| s.beside),
                    range(|s| s.beside - s.database),
                    of(|s| s.app / s.beside).median,
                    of(|s| s.per_second_beside).median,
                );
            }
            out.push('\n');
        }
        out.trim_end().to_owned()
    }
}

/// `docs/web-tier.md`.
pub fn page(groups: &[Group], options: &Options, args: &[String]) -> String {
    let beside = options.beside.is_some();
    let rows: Vec<String> = groups.iter().map(|group| group.markdown(beside)).collect();
    // The path of the other build is irrelevant to readers.
    let shown = args.chunks(2).map(|pair| match pair {
        [name, _] if name == "--beside" => "--beside PROGRAM".to_owned(),
        pair => pair.join(" "),
    });
    let command: Vec<String> = ["cargo xtask bench app".to_owned()].into_iter().chain(shown).collect();
    let versions: Vec<&str> = groups.iter().map(|group| group.version.as_str()).collect();
    let more = if beside {
        ("| the other build: CPU | less the call | CPU, this ÷ other | req/s, other ", "|--:|--:|--:|--:")
    } else {
        ("", "")
    };
    format!(
        "# What the web tier costs\n\n\
         What `kurabe up app` itself adds to a database call. Made by\n\n```\n{command}\n```\n\n\
         on {date} UTC; {machine}; {versions}; kurabe {kurabe}. {rounds} rounds, {requests} requests each by `ab -c {clients}`, \
         16 workers, connections to the database kept. CPU in microseconds for a request.\n\n\
         | engine | connections of clients | page | CPU of `kurabe up app` | the call alone | difference | kernel's floor \
         | difference, less the floor | req/s {more}|\n\
         |---|---|---|--:|--:|--:|--:|--:|--:{lines}|\n{rows}\n\n{ABOUT}",
        command = command.join(" "),
        date = said("date", &["-u", "+%Y-%m-%d %H:%M"]),
        machine = machine(),
        versions = versions.join("; "),
        kurabe = env!("CARGO_PKG_VERSION"),
        rounds = options.rounds,
        requests = options.requests,
        clients = options.clients,
        more = more.0,
        lines = more.1,
        rows = rows.join("\n"),
    )
}

const ABOUT: &str = "\
Figures are medians over the rounds, with the least and the most; differences are taken within each round.

- **CPU of `kurabe up app`**: all threads of the process, as the kernel's scheduler counts them, while ab asks.
- **The call alone**: the CPU time of `kurabe run kv` of the same build for the same operation, with the same
  driver and 16 clients. It includes drawing, sending, comparing and timing.
- **Difference**: what the web tier adds. It includes the kernel's share, which every server has:
- **Kernel's floor**: a program that only waits for a request, reads it and writes a fixed answer of the same length. With a
  connection per request, one thread accepts, reads, writes and closes (`accept4`, `read`, `write`, `close`); with kept connections, each
  has a thread. It excludes the kernel's work for ab.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_taken_within_each_round() {
        let sample = |app, database| Sample {
            app,
            database,
            floor: 2.0,
            beside: 2.0 * app,
            per_second: 100.0,
            per_second_beside: 50.0,
        };
        let rounds = [sample(10.0, 1.0), sample(20.0, 12.0), sample(30.0, 20.0)];
        let group = Group {
            engine: "x".to_owned(),
            version: String::new(),
            rounds: rounds.map(|sample| [sample; MODES.len()]).to_vec(),
        };
        let row = group.markdown(true).lines().next().unwrap_or_default().to_owned();
        assert_eq!(
            row,
            "| x | kept | read | 20.0 (10.0–30.0) | 12.0 | 9.0 (8.0–10.0) | 2.0 | 7.0 (6.0–8.0) | 100 | 40.0 (20.0–60.0) | 28.0 \
             (19.0–40.0) | 0.50 | 50 |"
        );
    }
}
