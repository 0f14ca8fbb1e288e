//! User-written statements: SQL with placeholders, as one text for all engines or one per engine.

use crate::collection::Collection;
use std::sync::Arc;

/// A user-written statement. The driver sends it unchanged, apart from placeholders and table names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStatement {
    /// Its location, for messages: "mine.toml, transaction pay, step 2".
    pub place: String,
    /// Its texts. All have the same parameters in the same order.
    pub texts: Vec<RawText>,
    /// The number of placeholders of each text.
    pub parameters: usize,
    /// A collection of the server that executes it, such as one of a second server; `None`: the target's own server.
    pub collection: Option<Arc<Collection>>,
}

/// A text of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawText {
    /// The engine's keyword ("mysql"); `None`: for all engines without a separate text.
    pub engine: Option<String>,
    /// Its parts, in order.
    pub pieces: Vec<RawPiece>,
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawPiece {
    /// Literal text.
    Text(String),
    /// A placeholder for the next parameter.
    Parameter,
    /// The name of one of Kurabe's tables, to be quoted.
    Table(String),
}

impl RawStatement {
    /// Names at positions where statements name tables: after `FROM`, `JOIN`, `UPDATE` and `INTO`, in any of its
    /// texts. The statement is not parsed, so some may not be tables.
    pub fn tables(&self) -> Vec<&str> {
        let mut tables = Vec::new();
        for piece in self.texts.iter().flat_map(|text| &text.pieces) {
            let RawPiece::Text(text) = piece else { continue };
            let mut follows = false;
            for word in text.split(|c: char| c.is_whitespace() || "(),;=".contains(c)) {
                let plain = word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.' || c == '$');
                if follows && plain && !word.is_empty() && !tables.contains(&word) {
                    tables.push(word);
                }
                let before = ["from", "join", "update", "into"];
                follows = before.iter().any(|known| word.eq_ignore_ascii_case(known));
            }
        }
        tables
    }

    /// The text for an engine with these keywords.
    pub fn text(&self, words: &[&str]) -> Option<&RawText> {
        let own =
            self.texts.iter().find(|text| text.engine.as_deref().is_some_and(|word| words.contains(&word)));
        own.or_else(|| self.texts.iter().find(|text| text.engine.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_detected_by_preceding_keywords() {
        let texts = [
            "SELECT abalance FROM pgbench_accounts a JOIN shop.branches b USING (bid) WHERE aid = ",
            "UPDATE orders SET total=1",
            "INSERT INTO log(id) SELECT id\nFROM orders;",
            "SELECT 1 FROM (SELECT 2 FROM inner_one) t WHERE x IN (SELECT EXTRACT(day FROM 'x'))",
        ];
        let text = |sql: &&str| RawText { engine: None, pieces: vec![RawPiece::Text((*sql).to_owned())] };
        let statement = RawStatement {
            place: String::new(),
            texts: texts.iter().map(text).collect(),
            parameters: 0,
            collection: None,
        };
        assert_eq!(statement.tables(), ["pgbench_accounts", "shop.branches", "orders", "log", "inner_one"]);
    }

    #[test]
    fn engine_specific_text_takes_precedence() {
        let text = |engine: Option<&str>, sql: &str| RawText {
            engine: engine.map(str::to_owned),
            pieces: vec![RawPiece::Text(sql.to_owned())],
        };
        let mut statement = RawStatement {
            place: String::new(),
            texts: vec![text(None, "all"), text(Some("mysql"), "own")],
            parameters: 0,
            collection: None,
        };
        assert_eq!(statement.text(&["mysql", "mariadb"]), Some(&text(Some("mysql"), "own")));
        assert_eq!(statement.text(&["postgres"]), Some(&text(None, "all")));
        statement.texts.remove(0);
        assert_eq!(statement.text(&["postgres"]), None);
    }
}
