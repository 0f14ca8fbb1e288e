//! Values that a server makes, and that a capture stores: another server makes others, and gives these where they are read.

use super::commands::values;
use super::family::Family;
use kurabe_capture::record::Request;
use kurabe_protocol::sql::Statement;
use std::collections::HashSet;

/// The most columns and keys that are remembered.
const MOST: usize = 100_000;

/// Where values of the server are.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Columns of tables; of each of them, `*` is one whose name is not known.
    columns: HashSet<(String, String)>,
    /// Keys of streams whose ids the server gave.
    streams: HashSet<Vec<u8>>,
}

impl Made {
    /// Learns from a template of SQL.
    pub(super) fn learn(&mut self, text: &str, family: Family) {
        let statement = Statement::read(text, family.dialect().sql());
        let columns = statement.stored();
        if columns.is_empty() || self.columns.len() > MOST {
            return;
        }
        for table in statement.tables() {
            self.columns.extend(columns.iter().map(|column| (table.clone(), column.clone())));
        }
    }

    /// Learns from a command of Redis.
    pub(super) fn learn_command(&mut self, text: &str, request: &Request) {
        let Ok(words) = values(request) else { return };
        if text.starts_with("XADD") && words.contains(&&b"*"[..]) && self.streams.len() < MOST {
            self.streams.extend(words.first().map(|key| key.to_vec()));
        }
    }

    /// Whether an answer to a statement may have such values.
    pub(super) fn are_read_by(&self, statement: &Statement<'_>) -> bool {
        if self.columns.is_empty() {
            return false;
        }
        let tables = statement.tables();
        let mut of_tables = self.columns.iter().filter(|(table, _)| tables.contains(table));
        of_tables.any(|(_, column)| column == "*" || statement.gives(column))
    }

    /// Whether a command is about ids of a stream that the server gave.
    pub(super) fn are_in(&self, text: &str, request: &Request) -> bool {
        let has = |words: Vec<&[u8]>| words.into_iter().any(|word| self.streams.contains(word));
        text.starts_with('X') && values(request).is_ok_and(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_capture::record::{Parameter, Value};
    use kurabe_protocol::sql::Dialect;

    #[test]
    fn what_the_server_made_is_known_where_it_is_read() {
        let mut made = Made::default();
        made.learn("INSERT INTO orders (item, created) VALUES ($1, now())", Family::Postgres);
        let reads = |text: &str| made.are_read_by(&Statement::read(text, Dialect::POSTGRES));
        assert!(reads("SELECT created FROM orders") && reads("SELECT o.* FROM orders o"));
        assert!(!reads("SELECT item FROM orders") && !reads("SELECT created FROM item"));
    }

    #[test]
    fn ids_of_streams_are_known_by_their_key() {
        let request = |words: &[&str]| Request {
            parameters: words
                .iter()
                .map(|word| Parameter {
                    kind: 0,
                    chosen: false,
                    binary: false,
                    value: Value::Bytes(word.as_bytes().to_vec()),
                })
                .collect(),
            ..Request::default()
        };
        let mut made = Made::default();
        made.learn_command("XADD ?", &request(&["jobs", "*", "a", "1"]));
        made.learn_command("XADD ?", &request(&["own", "5-1", "a", "1"]));
        assert!(made.are_in("XRANGE ?", &request(&["jobs", "-", "+"])));
        assert!(
            !made.are_in("XRANGE ?", &request(&["own", "-", "+"]))
                && !made.are_in("GET ?", &request(&["jobs"]))
        );
    }
}
