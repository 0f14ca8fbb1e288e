//! Statistics of statements, without their values.

use serde::{Deserialize, Serialize};

/// The maximum number of characters of a statement.
pub const TEXT: usize = 200;

/// The maximum number of statements, and of groups of session samples.
pub const MAX: usize = 12;

/// A server's statistics of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementUse {
    /// Its text without values, in the server's normalised form; at most [`TEXT`] characters.
    pub text: String,
    /// The number of executions.
    pub calls: u64,
    /// The total execution time on the server.
    pub time_ns: u64,
    /// The CPU time of that; `None` if the server does not account it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<u64>,
    /// Rows returned or changed.
    pub rows: u64,
}

impl StatementUse {
    /// Adds other executions of the same statement. A figure that either lacks is unknown in the sum.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.time_ns += other.time_ns;
        self.rows += other.rows;
        let sum = |(a, b): (u64, u64)| a + b;
        self.rows_examined = self.rows_examined.zip(other.rows_examined).map(sum);
        self.cpu_ns = self.cpu_ns.zip(other.cpu_ns).map(sum);
    }
}

/// The first characters of a statement on one line, with each value replaced by `?`. Some servers show a statement
/// with its values, which would make every execution a different statement and reveal data.
pub fn shortened(statement: &str) -> String {
    let mut out = String::new();
    let mut letters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if out.len() > TEXT * 4 {
            break;
        }
        if letter == '\'' {
            // Skips to the closing quote. A truncated literal has none.
            while let Some(inside) = letters.next() {
                match inside {
                    '\'' if letters.peek() != Some(&'\'') => break,
                    '\'' | '\\' => drop(letters.next()),
                    _ => {}
                }
            }
            out.push('?');
        } else if letter.is_ascii_digit() && !before.is_alphanumeric() && !"_$".contains(before) {
            while letters.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '.') {
                letters.next();
            }
            out.push('?');
        } else {
            out.push(letter);
        }
        before = letter;
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ").chars().take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_multiline_statement_is_truncated_to_one_line() {
        assert_eq!(shortened("select\n  a"), "select a");
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), TEXT);
    }

    #[test]
    fn a_statement_is_kept_without_its_values() {
        let shown =
            "UPDATE `kurabe_0_t1` SET `a` = 'it''s \\' secret', b=X'00ff' WHERE `id` = 17 AND c > -1.5e3";
        assert_eq!(shortened(shown), "UPDATE `kurabe_0_t1` SET `a` = ?, b=X? WHERE `id` = ? AND c > -?");
        assert_eq!(shortened("INSERT INTO t VALUES (1, 'cut off in the mid"), "INSERT INTO t VALUES (?, ?");
        assert_eq!(shortened("SELECT \"data\" FROM t WHERE id = $1"), "SELECT \"data\" FROM t WHERE id = $1");
    }
}
