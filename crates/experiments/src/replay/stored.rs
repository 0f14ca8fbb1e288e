//! The columns that have what a server made and what cannot be followed.

use kurabe_protocol::sql::Statement;
use std::collections::HashSet;

/// Columns into which statements store what a server made, and what is no key and no moment of its clock: it cannot be followed.
#[derive(Debug, Default)]
pub(super) struct Stored(HashSet<(String, String)>);

/// The most columns that are remembered.
const MOST: usize = 100_000;

impl Stored {
    /// Learns from a statement that writes.
    pub(super) fn learn(&mut self, statement: &Statement<'_>) {
        let columns = if self.0.len() < MOST { statement.stored() } else { Vec::new() };
        for table in statement.tables().into_iter().filter(|_| !columns.is_empty()) {
            self.0.extend(columns.iter().map(|column| (table.clone(), column.clone())));
        }
    }

    /// Whether an answer may have such values; `*` is a column whose name is not known.
    pub(super) fn are_read_by(&self, statement: &Statement<'_>) -> bool {
        let tables = if self.0.is_empty() { Vec::new() } else { statement.tables() };
        let mut of_tables = self.0.iter().filter(|(table, _)| tables.contains(table));
        of_tables.any(|(_, column)| column == "*" || statement.gives(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;

    #[test]
    fn what_the_server_made_is_known_where_it_is_read() {
        let mut stored = Stored::default();
        let read = |text| Statement::read(text, Dialect::POSTGRES);
        stored.learn(&read("INSERT INTO orders (item, luck) VALUES ($1, random())"));
        let reads = |text| stored.are_read_by(&read(text));
        assert!(reads("SELECT luck FROM orders") && reads("SELECT o.* FROM orders o"));
        assert!(!reads("SELECT item FROM orders") && !reads("SELECT luck FROM item"));
    }
}
