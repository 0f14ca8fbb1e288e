//! Types, sequences and extensions that tables need on a server of the same kind.

use crate::catalog::{Catalog, Named, Table};
use crate::engines::facts::TargetFacts;
use crate::plan::TablePlan;
use crate::script::unquoted;
use kurabe_core::{Error, Result};
use kurabe_protocol::sql::{Dialect, Token, tokens};
use std::collections::HashSet;

/// Refuses columns whose type neither the target's server has nor the copy makes, such as that of an extension.
pub fn types_exist(tables: &[Table], catalog: &Catalog, facts: &TargetFacts) -> Result<()> {
    let known = |declared: &str| {
        let is_end = |token: &Token<'_>| token.is_mark('(') || token.is_mark('[');
        let name = tokens(declared, Dialect::POSTGRES).take_while(|token| !is_end(token));
        let (name, rest) = declared.split_at(name.map(|token| token.text.len()).sum());
        let tail = rest.rsplit_once(')').map_or("", |(_, tail)| tail).trim_end_matches("[]");
        let full = format!("{name}{tail}");
        facts.types.contains(&full)
            || name.starts_with("interval")
            // Without a length, it has no other name.
            || name == "bpchar"
            || catalog.accompanying_types.contains(&full)
            || catalog.types.iter().any(|made| made.name == unquoted(name))
    };
    for table in tables.iter().filter(|_| !facts.types.is_empty()) {
        if let Some(column) = table.columns.iter().find(|column| !known(&column.declared)) {
            let what = format!("{}.{}: the target has no type {}", table.name, column.name, column.declared);
            return Err(Error::unsupported(what).hint("make it there first, such as by CREATE EXTENSION"));
        }
    }
    Ok(())
}

/// A collation that a statement names and the target lacks.
pub fn missing_collation(sql: &str, facts: &TargetFacts) -> Option<String> {
    let mut tokens = tokens(sql, Dialect::POSTGRES).filter(|token| !token.is_blank()).peekable();
    while let Some(token) = tokens.next() {
        let is_of_range = token.is("COLLATION") && tokens.next_if(|token| token.is_mark('=')).is_some();
        let mut name = tokens.next_if(|_| is_of_range || token.is("COLLATE"));
        while tokens.next_if(|token| name.is_some() && token.is_mark('.')).is_some() {
            name = tokens.next();
        }
        let name = name.and_then(|name| name.name());
        if let Some(name) = name.filter(|name| !facts.collations.iter().any(|known| known == name)) {
            return Some(name.to_owned());
        }
    }
    None
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
