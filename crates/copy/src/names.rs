//! Names of indexes and constraints on the target: unique, and not too long.

use crate::catalog::Table;
use crate::engines::engine::Engine;
use crate::script::without_bytes;
use kurabe_core::{Error, Result};
use std::collections::{BTreeSet, HashSet};

/// Refuses another name for a table that another one of the copy has.
pub fn differ<'n>(mut names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut known = HashSet::new();
    names.find(|name| !known.insert(*name)).map_or(Ok(()), |name| {
        let what = format!("--rename: two tables of the copy would be named {name}");
        Err(Error::usage(what).hint("rename both, or leave one out with --exclude"))
    })
}

/// Things, each after those that it waits for, where that is possible. `waits`: the positions of these, given its own.
pub fn ordered<T>(all: Vec<T>, waits: impl FnMut(usize) -> Vec<usize>) -> Vec<T> {
    let waits: Vec<Vec<usize>> = (0..all.len()).map(waits).collect();
    let mut counts: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut followers = vec![Vec::new(); all.len()];
    waits.iter().enumerate().for_each(|(at, of)| of.iter().for_each(|other| followers[*other].push(at)));
    // First what waits for nothing, then all else, in their order.
    let mut left: BTreeSet<(bool, usize)> = counts.iter().map(|count| *count > 0).zip(0..).collect();
    let mut all: Vec<Option<T>> = all.into_iter().map(Some).collect();
    let next = || {
        let (_, at) = left.pop_first()?;
        for follower in &followers[at] {
            counts[*follower] -= 1;
            if counts[*follower] == 0 && left.remove(&(true, *follower)) {
                left.insert((false, *follower));
            }
        }
        all[at].take()
    };
    std::iter::from_fn(next).collect()
}

/// Names of indexes and constraints on the target.
pub struct Names<'e> {
    taken: HashSet<String>,
    engine: &'e Engine,
}

impl<'e> Names<'e> {
    /// No names but those of the new tables.
    pub fn new(engine: &'e Engine, tables: &[Table]) -> Self {
        Self { taken: tables.iter().map(|table| table.name.to_lowercase()).collect(), engine }
    }

    /// The name, or another one if it is taken, too long, or one that the engine reserves or cannot have. `is_constraint`: the tables share
    /// such names. `is_index`: the table gets an index of this name.
    pub fn of(&mut self, table: &str, name: &str, is_constraint: bool, is_index: bool) -> String {
        let Engine { longest_name, has_narrow_names, index_names_are_shared, .. } = *self.engine;
        let is_other = |c| c == '\0' || has_narrow_names && c > '\u{ffff}';
        let name = &without_bytes(name, "_").replace(is_other, "_");
        let scopes = |name: &str| {
            let name = name.to_lowercase();
            let of_table = is_index.then(|| format!("{table}\0{name}"));
            of_table.into_iter().chain(Some(name).filter(|_| is_constraint || index_names_are_shared))
        };
        let is_free = |taken: &HashSet<String>, name: &str| {
            name.len() <= longest_name && !scopes(name).any(|name| taken.contains(&name))
        };
        let reserved = name.is_empty() || name.starts_with("sqlite_") || name.eq_ignore_ascii_case("primary");
        let mut chosen = name.clone();
        if reserved || !is_free(&self.taken, name) {
            let stem = if reserved { table.to_owned() } else { format!("{table}_{name}") };
            // No more than this many objects have one name.
            chosen = (1..1_000_000)
                .map(|number| {
                    let end = if number == 1 && !reserved { String::new() } else { format!("_k{number}") };
                    let most = longest_name.saturating_sub(end.len());
                    let mut cut = stem.len().min(most);
                    while !stem.is_char_boundary(cut) {
                        cut -= 1;
                    }
                    format!("{}{end}", &stem[..cut])
                })
                .find(|name| is_free(&self.taken, name))
                .unwrap_or_default();
        }
        self.taken.extend(scopes(&chosen));
        chosen
    }
}
