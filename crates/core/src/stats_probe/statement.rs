//! What an engine tells of statements, whose values are taken out.

use serde::{Deserialize, Serialize};

/// The most characters of a statement that are kept.
pub const TEXT: usize = 200;

/// The most statements, and groups of samples, that are kept.
pub const MOST: usize = 12;

/// What the engine tells of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementUse {
    /// Its text without its values, in the engine's own form; at most [`TEXT`] characters.
    pub text: String,
    /// How often it was executed.
    pub calls: u64,
    /// How long that took the server, all together.
    pub time_ns: u64,
    /// Rows that it looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<u64>,
    /// Rows that it gave or changed.
    pub rows: u64,
}

/// The beginning of a statement on one line, each value in it as `?`: for a [`SessionSample`](super::SessionSample) or a [`StatementUse`]. Some engines
/// show a statement with the values that it was executed with, which makes each another one, and are nobody's business.
pub fn shortened(statement: &str) -> String {
    let mut out = String::new();
    let mut letters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if out.len() > TEXT * 4 {
            break;
        }
        if letter == '\'' {
            // To the quote that ends it; one that is cut off ends nowhere.
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
    fn a_long_statement_on_many_lines_is_kept_as_the_beginning_of_one() {
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
