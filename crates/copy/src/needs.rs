//! Types, sequences and extensions that tables need on a server of the same kind.

use crate::catalog::{Catalog, Named, Table};
use crate::engines::facts::TargetFacts;
use crate::plan::TablePlan;
use kurabe_core::{Error, Result};
use std::collections::HashSet;

/// Refuses columns whose type neither the target's server has nor the copy makes, such as that of an extension.
pub fn types_exist(tables: &[Table], catalog: &Catalog, facts: &TargetFacts) -> Result<()> {
    let known = |declared: &str| {
        let name = declared.split(['(', '[']).next().unwrap_or_default().trim();
        let tail = declared.rsplit(')').next().filter(|tail| declared.contains(')') && !tail.is_empty());
        let full = tail.map_or(name.to_owned(), |tail| format!("{name}{}", tail.trim_end_matches("[]")));
        facts.types.contains(&full)
            || name.starts_with("interval")
            || catalog.accompanying_types.contains(&full)
            || catalog.types.iter().any(|made| made.name == name.trim_matches('"'))
    };
    for table in tables.iter().filter(|_| !facts.types.is_empty()) {
        if let Some(column) = table.columns.iter().find(|column| !known(&column.declared)) {
            let what = format!("{}.{}: the target has no type {}", table.name, column.name, column.declared);
            return Err(Error::unsupported(what).hint("make it there first, such as by CREATE EXTENSION"));
        }
    }
    Ok(())
}

/// What tables need, directly or not, of what is made before them. All of it if `all`.
pub fn needed(catalog: &Catalog, tables: &[TablePlan], all: bool) -> Vec<Named> {
    let tables: HashSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let mut found: HashSet<&str> = HashSet::new();
    loop {
        let before = found.len();
        for (of, needed) in &catalog.needs {
            if tables.contains(of.as_str()) || found.contains(of.as_str()) {
                found.insert(needed);
            }
        }
        if found.len() == before {
            break;
        }
    }
    catalog.before().filter(|named| all || found.contains(named.name.as_str())).cloned().collect()
}
