//! Statements that make tables, indexes and foreign keys on the target.

use crate::catalog::{ForeignKey, Native, Table};
use crate::engines::{Engine, TargetFacts};
use crate::issue::{Issue, IssueKind};
use crate::names::Names;
use crate::plan::{ColumnPlan, Named};
use crate::sql::quoted;
use kurabe_core::Result;

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
    format!(
        "CREATE TABLE {} ({}){}",
        quoted(to, &table.name),
        parts.join(", "),
        to.dialect.table_options(facts)
    )
}

/// The statements that make a table's indexes.
pub fn indexes(to: &Engine, table: &Table, taken: &mut Names) -> Vec<Named> {
    let make = |index: &crate::catalog::Index| {
        let name = taken.of(&table.name, &index.name, false);
        let columns = names(to, &index.columns);
        let unique = if index.unique { "UNIQUE " } else { "" };
        let sql =
            format!("CREATE {unique}INDEX {} ON {} ({columns})", quoted(to, &name), quoted(to, &table.name));
        Named { name, sql }
    };
    table.indexes.iter().map(make).collect()
}

/// The clauses or statements that make a table's foreign keys. Those to tables that are not copied are listed, and those for
/// which `why_not` has a reason.
pub fn foreign_keys(
    to: &Engine,
    table: &Table,
    native: Option<&Native>,
    copied: &[&str],
    taken: &mut Names,
    issues: &mut Vec<Issue>,
    why_not: &mut dyn FnMut(&ForeignKey) -> Result<Option<String>>,
) -> Result<Vec<Named>> {
    let mut made = Vec::new();
    if native.is_some() && to.foreign_keys_inline {
        return Ok(made);
    }
    for (number, key) in table.foreign.iter().enumerate() {
        let shown =
            if key.name.is_empty() { format!("foreign key {}", number + 1) } else { key.name.clone() };
        let mut list = |detail: String| {
            let object = format!("{}.{shown}", table.name);
            issues.push(Issue { kind: IssueKind::ForeignKey, object, detail, text: String::new() });
        };
        let parent = copied.iter().find(|name| **name == key.parent);
        let Some(parent) = parent else {
            let parent = if key.parent.is_empty() { "a table of another schema" } else { &key.parent };
            list(format!("refers to {parent}, which is not copied"));
            continue;
        };
        let can_be_null = |name: &String| table.columns.iter().any(|own| own.name == *name && own.nullable);
        let nullable = key.columns.iter().all(can_be_null);
        if let Some(action) = [&key.on_update, &key.on_delete]
            .into_iter()
            .find(|action| !to.dialect.has_action(action, nullable))
        {
            let of = if nullable { "" } else { " for columns that are NOT NULL" };
            list(format!("{} has no {action}{of}", to.name));
            continue;
        }
        if let Some(why) = why_not(key)? {
            list(why);
            continue;
        }
        if let Some(native) = native {
            made.extend(native.foreign.iter().filter(|known| known.name == key.name).cloned());
            continue;
        }
        let name = taken.of(&table.name, &key.name, true);
        let action = |word: &str, action: &str| {
            let action = to.dialect.action(action);
            if action == "NO ACTION" || action.is_empty() {
                String::new()
            } else {
                format!(" ON {word} {action}")
            }
        };
        let parents = if key.parent_columns.is_empty() {
            String::new()
        } else {
            format!(" ({})", names(to, &key.parent_columns))
        };
        let clause = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}{parents}{}{}",
            quoted(to, &name),
            names(to, &key.columns),
            quoted(to, parent),
            action("UPDATE", &key.on_update),
            action("DELETE", &key.on_delete),
        );
        let sql = if to.foreign_keys_inline {
            clause
        } else {
            format!("ALTER TABLE {} ADD {clause}", quoted(to, &table.name))
        };
        made.push(Named { name, sql });
    }
    Ok(made)
}

fn names(to: &Engine, columns: &[String]) -> String {
    columns.iter().map(|name| quoted(to, name)).collect::<Vec<_>>().join(", ")
}
