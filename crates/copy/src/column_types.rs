//! The types of a table's columns on both sides: by their declarations, corrected by the values.

use crate::catalog::{Column, Table};
use crate::classes::kind_of;
use crate::columns::OneTable;
use crate::engines::queries::expression_of;
use crate::script::quoted;
use crate::types::{Class, ColumnTypes, Kind, Mapped, UNLIMITED};
use kurabe_core::{Error, ErrorKind, Result};

impl OneTable<'_> {
    /// The types of all columns. On two servers of one kind, types have the same meaning.
    pub(crate) fn types(&mut self) -> Result<Vec<ColumnTypes>> {
        let (engine, target, table, casts) = (self.source.engine, self.target, self.table, self.casts);
        let same_server = self.facts.same_server;
        let is_given = |column: &Column| casts.user.has(&table.name, column);
        let kind = |column: &Column| {
            let mut kind = kind_of(engine, &column.declared);
            let is_same = same_server || engine == target && kind.class == Class::Geometry;
            if is_same && !is_given(column) {
                kind.class = (engine.exact_class)(&kind);
            }
            kind
        };
        let mut kinds: Vec<Kind> = table.columns.iter().map(kind).collect();
        let exact: Vec<bool> = table.columns.iter().map(|column| same_server && !is_given(column)).collect();
        let mut corrected = vec![None; kinds.len()];
        if exact.contains(&false) {
            corrected = self.corrections(&kinds)?;
        }
        for (at, kind) in kinds.iter_mut().enumerate() {
            corrected[at].take_if(|_| exact[at]);
            if let Some((name, _)) = corrected[at] {
                *kind = kind_of(engine, name);
            }
        }
        let mut all = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let (kind, exact) = (&kinds[at], exact[at]);
            let becomes = |limit| {
                if exact {
                    let renamed = target.same_type.filter(|[name, _]| *name == kind.declared);
                    let sql = renamed.map_or_else(|| kind.declared.clone(), |[_, to]| to.to_owned());
                    return Ok(Mapped { sql, stored: kind.clone(), issue: None });
                }
                casts.becomes(&table.name, column, kind, limit).ok_or_else(|| {
                    Error::new(ErrorKind::Internal, format!("{} has no type for {kind:?}", target.name))
                })
            };
            let mut mapped = becomes(None)?;
            let most = target.longest_key.filter(|_| !exact && table.is_indexed(&column.name));
            let limit = most.map(|most| share_of_index(most, table, &column.name, &kinds));
            let longest = limit.filter(|limit| may_exceed(&mapped.stored, *limit));
            if longest.is_some() {
                mapped = becomes(longest)?;
            }
            let (kind, corrected) = (kind.clone(), corrected[at]);
            let [is_longer, is_widened] = [false; 2];
            all.push(ColumnTypes { kind, exact, mapped, longest, is_longer, is_widened, corrected });
        }
        if !same_server {
            self.long_decimals(&mut all)?;
            self.widen(&mut all);
        }
        Ok(all)
    }

    /// Makes text of decimal numbers some of which have more digits than the target's.
    fn long_decimals(&mut self, all: &mut [ColumnTypes]) -> Result<()> {
        let Some((whole, part)) = self.target.longest_decimal else { return Ok(()) };
        let (engine, table, casts) = (self.source.engine, self.table, self.casts);
        for (types, column) in all.iter_mut().zip(&table.columns) {
            let kind = &types.kind;
            let is_limited = kind.n <= whole + part && kind.s <= part;
            let is_given = casts.user.has(&table.name, column);
            if kind.class != Class::Decimal || is_limited || is_given || table.is_indexed(&column.name) {
                continue;
            }
            let name = quoted(engine, &column.name);
            let Some(condition) = expression_of(engine, "longer_decimal", &name) else { continue };
            let condition =
                condition.replace("{whole}", &whole.to_string()).replace("{part}", &part.to_string());
            if self.source.count(table, &condition)? > 0
                && let Some(text) = casts.longer(kind)
            {
                (types.mapped, types.is_longer) = (text, true);
            }
        }
        Ok(())
    }

    /// Makes columns of unlimited length out of the longest ones, until a row is short enough. They are stored elsewhere.
    fn widen(&self, all: &mut [ColumnTypes]) {
        let (table, Some([row, page])) = (self.table, self.target.longest_row) else { return };
        for (most, bytes) in [(row, in_row as fn(&Mapped) -> u64), (page, in_page)] {
            while all.iter().map(|types| bytes(&types.mapped)).sum::<u64>() > most {
                let free = |at: &usize| !all[*at].is_widened && !table.is_indexed(&table.columns[*at].name);
                let longest = (0..all.len()).filter(free).max_by_key(|at| bytes(&all[*at].mapped));
                let Some(at) = longest else { return };
                let long = Kind { n: UNLIMITED, ..all[at].kind.clone() };
                match self.casts.becomes(&table.name, &table.columns[at], &long, None) {
                    Some(long) if bytes(&long) < bytes(&all[at].mapped) => {
                        (all[at].mapped, all[at].is_widened) = (long, true);
                    }
                    _ => return,
                }
            }
        }
    }
}

/// The bytes of a value in a row.
fn in_row(mapped: &Mapped) -> u64 {
    match mapped.stored.class {
        Class::Char | Class::Varchar => 4 * u64::from(mapped.stored.n) + 2,
        Class::Binary | Class::Varbinary => u64::from(mapped.stored.n) + 2,
        Class::Bool | Class::Int8 | Class::Int16 => 2,
        Class::Int32 | Class::Float32 | Class::Date => 4,
        Class::Int64 | Class::UInt64 | Class::Float64 | Class::Time | Class::Timestamp => 8,
        _ => 16,
    }
}

/// The bytes in its row's page of a value that may be stored elsewhere.
pub(crate) const ELSEWHERE: u64 = 40;

/// The bytes of a value in the page of its row, which has the beginning of a long one only.
pub(crate) fn in_page(mapped: &Mapped) -> u64 {
    match (mapped.stored.class, in_row(mapped)) {
        (Class::Text | Class::Blob | Class::Json | Class::Geometry, _) | (_, 258..) => ELSEWHERE,
        (_, short) => short,
    }
}

/// Whether a column may hold values that are longer than an index allows.
fn may_exceed(stored: &Kind, limit: u32) -> bool {
    let class = stored.class;
    matches!(class, Class::Text | Class::Blob | Class::Json)
        || (class.is_text() || class.is_bytes()) && stored.n > limit
}

/// The characters of an index that a column of text or bytes may have: the least of all indexes with it, each shared by its
/// columns of text after four for each of the others.
fn share_of_index(most: u32, table: &Table, column: &str, kinds: &[Kind]) -> u32 {
    let indexes = table.indexes.iter().map(|index| &index.columns);
    let keys = table.foreign.iter().map(|key| &key.columns);
    let share = |columns: &Vec<String>| {
        let of = |name: &String| table.position(name).map(|at| kinds[at].class);
        let is_text = |class: &Class| class.is_text() || class.is_bytes() || *class == Class::Native;
        let texts = columns.iter().filter_map(of).filter(is_text).count() as u32;
        most.saturating_sub(4 * (columns.len() as u32 - texts)) / texts.max(1)
    };
    let all = indexes.chain(keys).chain([&table.primary]);
    let with = all.filter(|columns| columns.iter().any(|known| known == column));
    with.map(share).min().unwrap_or(most)
}
