//! The table of results, and the failures with the commands that reproduce them.

use crate::case::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The number of tries.
    pub tries: usize,
    /// The number of survived tries.
    pub survived: usize,
    /// Failures: the seed and the tries of the call, and what the program did.
    pub failed: Vec<((u64, usize), String)>,
    /// Why tries were impossible.
    pub skipped: Vec<String>,
}

/// All lines, by attack and target.
#[derive(Debug, Default)]
pub struct Table {
    lines: BTreeMap<(String, String), Line>,
}

/// The maximum number of failures shown per line.
const SHOWN: usize = 3;

impl Table {
    pub fn add(&mut self, name: &str, target: &str, call: (u64, usize), outcomes: Vec<Outcome>) {
        let line = self.lines.entry((name.to_owned(), target.to_owned())).or_default();
        for outcome in outcomes {
            match outcome {
                Outcome::Survived => line.survived += 1,
                Outcome::Failed(what) => line.failed.push((call, what)),
                Outcome::Skipped(why) => {
                    line.skipped.push(why);
                    continue;
                }
            }
            line.tries += 1;
        }
    }

    /// The numbers of tries and of failures.
    pub fn total(&self) -> (usize, usize) {
        self.lines
            .values()
            .fold((0, 0), |(tries, failed), line| (tries + line.tries, failed + line.failed.len()))
    }

    /// The table, and the failures, as text.
    pub fn text(&self, mut repeat: impl FnMut(&str, &str, u64, usize) -> String) -> String {
        let mut text =
            format!("{:24} {:12} {:>6} {:>9} {:>7}\n", "attack", "target", "tries", "survived", "failed");
        let mut row = |name: &str, target: &str, tries: usize, survived: usize, failed: usize| {
            let _ = writeln!(text, "{name:24} {target:12} {tries:>6} {survived:>9} {failed:>7}");
        };
        for ((name, target), line) in &self.lines {
            row(name, target, line.tries, line.survived, line.failed.len());
        }
        let (tries, failed) = self.total();
        row("all", "", tries, tries - failed, failed);
        for ((name, target), line) in &self.lines {
            let mut reasons: Vec<&String> = line.skipped.iter().collect();
            reasons.dedup();
            for why in reasons.iter().take(1) {
                let _ = write!(text, "\nNOT MADE {name} {target} ({} times): {why}", line.skipped.len());
            }
        }
        for ((name, target), line) in &self.lines {
            for ((seed, tries), what) in line.failed.iter().take(SHOWN) {
                let _ = write!(
                    text,
                    "\nFAILED {name} {target}, seed {seed}: {what}\n  {}",
                    repeat(name, target, *seed, *tries)
                );
            }
        }
        text
    }
}
