//! Digests that both servers compute of the same ranges of rows, where both can write all values of a table as the same texts.
//!
//! A row is the texts of its values, those of free length at its end, after the lengths of all but the last. Its digest are the first
//! 56 bits of the SHA-256 of that text, or a hash of 64 bits that only servers of one kind have, and the digest of a range is the sum of those. Where two of them differ, the whole table is compared
//! as any other: a text that servers write in different ways costs time, and is never called equal or different by itself.

use super::{Of, both};
use crate::engines::engine::Engine;
use crate::plan::{Resume, TablePlan};
use crate::pool::Halt;
use crate::script::quoted;
use crate::splits::splits;
use crate::sql::{Side, all_of};
use crate::state::Range;
use crate::types::{Class, UNLIMITED};
use kurabe_core::Result;
use std::sync::mpsc::Receiver;

/// Pages of a range that is compared while rows are written, at most. A server reads all of a small table for a large range.
const PAGES: usize = 4;

/// Rows of a range, about: after each the user may stop the copy.
const ROWS_OF_RANGE: u64 = 800_000;

/// The digest of a table's rows on one side, as an expression; `None` if the sides write its values in different ways.
pub fn digest(engine: &Engine, table: &TablePlan, of: Of) -> Option<String> {
    let sums = engine.sums.as_ref()?;
    let names = || table.columns.iter().map(|column| quoted(engine, &column.name));
    let is_exact = table.columns.iter().all(|column| column.exact);
    if let Some(hash) = sums.exact.filter(|_| is_exact) {
        // The parser of a server ends at some depth of calls.
        let is_known =
            table.columns.len() < 90 && table.columns.iter().all(|column| column.kind.class != Class::Native);
        let row = table.columns.iter().zip(names()).fold("0".to_owned(), |row, (column, name)| {
            hash(&column.kind.declared, &name, column.nullable, row)
        });
        return is_known.then(|| format!("CAST(SUM({row}) AS VARCHAR)"));
    }
    let (mut fixed, mut free) = (Vec::new(), Vec::new());
    for (column, name) in table.columns.iter().zip(names()) {
        let (kind, stored) = (&column.kind, &column.mapped.stored);
        let of_side = if of == Of::Source { kind } else { stored };
        let is_scaled = kind.n != UNLIMITED && kind.s == stored.s && kind.class == stored.class;
        let is_other = kind.class.is_bytes() != stored.class.is_bytes();
        if column.mend.is_some() || is_other || kind.class == Class::Decimal && !is_scaled {
            return None;
        }
        let text = engine.dialect.agreed(of_side, column.exact, &name)?;
        if kind.class.is_text() {
            free.push((text, (sums.length)(&name), column.nullable));
        } else {
            fixed.push(if column.nullable { (sums.or)(&text, "n") } else { text });
        }
    }
    let last = free.len().saturating_sub(1);
    // The length of the last one says only whether it is null.
    for (_, (_, length, nullable)) in
        free.iter().enumerate().filter(|(at, (_, _, nullable))| *nullable || *at < last)
    {
        fixed.push(if *nullable { (sums.or)(length, "n") } else { length.clone() });
    }
    fixed.extend(free.into_iter().map(|(text, ..)| text));
    // Functions have at most a hundred parameters.
    (fixed.len() < 90).then(|| (sums.sum)(&(sums.row)(&fixed.join(", "))))
}

/// The digests of a table's ranges on both sides.
pub struct Digests<'t> {
    table: &'t TablePlan,
    expressions: [String; 2],
    /// The first column of the target's key, if there is one.
    pub key: Option<&'t String>,
}

impl<'t> Digests<'t> {
    /// `None` if the servers compute none that are the same.
    pub fn new(source: &Engine, target: &Engine, table: &'t TablePlan) -> Option<Self> {
        let expressions = [digest(source, table, Of::Source)?, digest(target, table, Of::Target)?];
        let key = match &table.resume {
            Resume::Columns(columns) if table.has_key => columns.first().map(|at| &table.columns[*at].name),
            _ => None,
        };
        Some(Self { table, expressions, key })
    }

    /// The number of rows of a range if both sides have the same; nothing if they have not.
    fn compare(&self, source: &mut Side, target: &mut Side, range: Range) -> Result<Option<u64>> {
        let query = |engine: &Engine, digest: &str, from: &str, filter: Option<&String>| {
            let key = self.key.map(|key| quoted(engine, key)).unwrap_or_default();
            let filter = filter.map(|filter| format!("({filter})"));
            let lower = range.from.map(|from| format!("{key} >= {from}"));
            let upper = range.to.map(|to| format!("{key} < {to}"));
            let conditions = all_of(filter.into_iter().chain(lower).chain(upper));
            format!("SELECT COUNT(*), {digest} FROM {from}{conditions}")
        };
        let ours = query(source.engine, &self.expressions[0], &self.table.from, self.table.filter.as_ref());
        let theirs = query(target.engine, &self.expressions[1], &quoted(target.engine, &self.table.to), None);
        let [ours, theirs] = both(|| source.rows(&ours), || target.rows(&theirs))?;
        let rows = ours.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        Ok(rows.filter(|_| ours == theirs))
    }

    /// Compares, while rows are written by other sessions, those below each key that arrives. Returns the last key below which
    /// all are the same, and their number.
    pub fn follow(
        &self,
        [mut source, mut target]: [Side; 2],
        keys: &Receiver<i64>,
        halt: &Halt<'_>,
    ) -> Option<(i64, u64)> {
        let mut proven: Option<(i64, u64)> = None;
        while let Ok(key) = keys.recv() {
            halt.check().ok()?;
            let key = keys.try_iter().take(PAGES - 1).last().unwrap_or(key);
            let (from, rows) = proven.map_or((None, 0), |(from, rows)| (Some(from), rows));
            match self.compare(&mut source, &mut target, Range { from, to: Some(key) }) {
                Ok(Some(more)) => proven = Some((key, rows + more)),
                _ => break,
            }
        }
        let _ = (source.session.close(), target.session.close());
        proven
    }
}

/// Compares the digests of all ranges but those that were found to be the same while rows were written. Returns the number of rows
/// if all are equal, and nothing if they are not, or if the servers compute none.
pub(super) fn compare(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    proven: Option<(i64, u64)>,
    halt: &Halt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<u64>> {
    let Some(digests) = Digests::new(source.engine, target.engine, table) else { return Ok(None) };
    let mut begins = match digests.key {
        Some(_) => splits(source, table, (table.rows / ROWS_OF_RANGE).max(1) as usize)?,
        None => Vec::new(),
    };
    let (mut from, mut rows) = (None, 0);
    if let Some((key, known)) = proven {
        (from, rows) = (Some(key), known);
        begins.retain(|begin| *begin > key);
    }
    for to in begins.into_iter().map(Some).chain([None]) {
        halt.check()?;
        let Some(more) = digests.compare(source, target, Range { from, to })? else { return Ok(None) };
        (from, rows) = (to, rows + more);
        progress(rows);
    }
    Ok(Some(rows))
}
