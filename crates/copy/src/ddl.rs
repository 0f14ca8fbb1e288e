//! Statements that make tables and indexes on the target.

use crate::catalog::{Index, Named, Table};
use crate::engines::engine::Engine;
use crate::engines::facts::TargetFacts;
use crate::names::Names;
use crate::plan::ColumnPlan;
use crate::script::quoted;

/// The statement that makes a table with its primary key, and with `inline` clauses.
pub fn create_table(
    to: &Engine,
    facts: &TargetFacts,
    table: &Table,
    columns: &[ColumnPlan],
    inline: &[Named],
) -> String {
    let mut parts: Vec<String> = columns.iter().map(|column| column.sql.clone()).collect();
    if !table.primary.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", names(to, &table.primary)));
    }
    parts.extend(inline.iter().map(|clause| clause.sql.clone()));
    let own = Some(&table.collation).filter(|own| facts.same_server && facts.collations.contains(own));
    let options = to.table_options.replace("{collation}", own.unwrap_or(&facts.by_bytes));
    format!("CREATE TABLE {} ({}){options}", quoted(to, &table.name), parts.join(", "))
}

/// The statements that make a table's indexes.
pub fn indexes(to: &Engine, table: &Table, taken: &mut Names<'_>) -> Vec<Named> {
    let make = |index: &Index| {
        let name = taken.of(&table.name, &index.name, false, true);
        let columns = names(to, &index.columns);
        let unique = if index.unique { "UNIQUE " } else { "" };
        let sql =
            format!("CREATE {unique}INDEX {} ON {} ({columns})", quoted(to, &name), quoted(to, &table.name));
        Named { name, sql }
    };
    table.indexes.iter().map(make).collect()
}

/// The quoted names of columns.
pub fn names(to: &Engine, columns: &[String]) -> String {
    columns.iter().map(|name| quoted(to, name)).collect::<Vec<_>>().join(", ")
}
