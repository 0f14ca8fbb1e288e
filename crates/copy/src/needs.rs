//! Types, sequences and extensions that tables need on a server of the same kind.

use crate::catalog::{Catalog, Named};
use crate::engines::facts::TargetFacts;
use crate::plan::TablePlan;
use kurabe_protocol::sql::{Dialect, tokens};
use std::collections::HashSet;

/// A collation that a statement names, with its schema, and the target lacks.
pub fn missing_collation(sql: &str, facts: &TargetFacts) -> Option<String> {
    let mut tokens = tokens(sql, Dialect::POSTGRES).filter(|token| !token.is_blank()).peekable();
    while let Some(token) = tokens.next() {
        let is_of_range = token.is("COLLATION") && tokens.next_if(|token| token.is_mark('=')).is_some();
        let mut name = String::new();
        while (is_of_range || token.is("COLLATE")) && (name.is_empty() || name.ends_with('.')) {
            name.push_str(tokens.next()?.text);
            name.extend(tokens.next_if(|token| token.is_mark('.')).map(|_| '.'));
        }
        if !name.is_empty() && !facts.collations.contains(&name) {
            return Some(name);
        }
    }
    None
}

/// What tables need, directly or not, of what is made before them. All of it if `all`.
pub fn needed(catalog: &Catalog, tables: &[TablePlan], all: bool) -> Vec<Named> {
    let tables: HashSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let mut found: HashSet<&str> = HashSet::new();
    let is_used = |of: &str, found: &HashSet<&str>| tables.contains(of) || found.contains(of);
    while catalog.needs.iter().filter(|(of, needed)| is_used(of, &found) && found.insert(needed)).count() > 0
    {
    }
    catalog.before().filter(|named| all || found.contains(named.name.as_str())).cloned().collect()
}
