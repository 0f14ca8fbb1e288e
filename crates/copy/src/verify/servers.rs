//! Digests that both servers compute of the same ranges of rows, where both can write all values of a table as the same texts.
//!
//! A row is the texts of its values, those of free length at its end, after the lengths of all but the last. Its digest are the first
//! 60 bits of the SHA-256 of that text, and the digest of a range is the sum of those. Where two of them differ, the whole table is compared
//! as any other: a text that servers write in different ways costs time, and is never called equal or different by itself.

use super::Of;
use crate::engines::engine::Engine;
use crate::plan::{Resume, TablePlan};
use crate::pool::Halt;
use crate::script::quoted;
use crate::splits::splits;
use crate::sql::{Row, Side};
use crate::state::Range;
use crate::types::{Class, UNLIMITED};
use kurabe_core::{Error, ErrorKind, Result};

/// Rows of a range, about: after each the user may stop the copy.
const ROWS_OF_RANGE: u64 = 800_000;

/// The digest of a table's rows on one side, as an expression; `None` if the sides write its values in different ways.
fn digest(engine: &Engine, table: &TablePlan, of: Of) -> Option<String> {
    let sums = engine.sums.as_ref()?;
    let names = || table.columns.iter().map(|column| quoted(engine, &column.name));
    let is_exact = table.columns.iter().all(|column| column.exact);
    if let Some(row) = sums.exact_row.filter(|_| is_exact) {
        let is_known = table.columns.iter().all(|column| column.kind.class != Class::Native);
        return is_known.then(|| (sums.sum)(&row(&names().collect::<Vec<_>>().join(", "))));
    }
    let (mut fixed, mut free) = (Vec::new(), Vec::new());
    for (column, name) in table.columns.iter().zip(names()) {
        let (kind, stored) = (&column.kind, &column.mapped.stored);
        let of_side = if of == Of::Source { kind } else { stored };
        let is_scaled = kind.n != UNLIMITED && kind.s == stored.s && kind.class == stored.class;
        if !column.mend.is_empty() || kind.class == Class::Decimal && !is_scaled {
            return None;
        }
        let text = engine.dialect.agreed(of_side, column.exact, &name)?;
        if kind.class.is_text() {
            free.push((text, column.nullable));
        } else {
            fixed.push(if column.nullable { (sums.or)(&text, "n") } else { text });
        }
    }
    let last = free.len().saturating_sub(1);
    // The length of the last one says only whether it is null.
    for (_, (text, nullable)) in free.iter().enumerate().filter(|(at, (_, nullable))| *nullable || *at < last)
    {
        let length = (engine.octets)(text);
        fixed.push(if *nullable { (sums.or)(&length, "n") } else { length });
    }
    fixed.extend(free.into_iter().map(|(text, _)| text));
    // Functions have at most a hundred parameters.
    (fixed.len() < 90).then(|| (sums.sum)(&(sums.row)(&fixed.join(", "))))
}

/// Compares the digests of all ranges. Returns the number of rows if all are equal, and nothing if they are not, or if the servers
/// compute none.
pub(super) fn compare(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    halt: &Halt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<u64>> {
    let digests = [digest(source.engine, table, Of::Source), digest(target.engine, table, Of::Target)];
    let [Some(ours), Some(theirs)] = digests else { return Ok(None) };
    let to = quoted(target.engine, &table.to);
    let key = match &table.resume {
        Resume::Columns(columns) => columns.first().map(|at| &table.columns[*at].name),
        _ => None,
    };
    let begins = match key {
        Some(_) => splits(source, table, (table.rows / ROWS_OF_RANGE).max(1) as usize)?,
        None => Vec::new(),
    };
    let mut rows = 0;
    for at in 0..=begins.len() {
        halt.check()?;
        let range = Range { from: at.checked_sub(1).map(|at| begins[at]), to: begins.get(at).copied() };
        let query = |engine: &Engine, digest: &str, from: &str, filter: Option<&String>| {
            let key = key.map(|key| quoted(engine, key)).unwrap_or_default();
            let filter = filter.map(|filter| format!("({filter})"));
            let lower = range.from.map(|from| format!("{key} >= {from}"));
            let upper = range.to.map(|to| format!("{key} < {to}"));
            let conditions: Vec<String> = filter.into_iter().chain(lower).chain(upper).collect();
            let before = if conditions.is_empty() { "" } else { " WHERE " };
            format!("SELECT COUNT(*), {digest} FROM {from}{before}{}", conditions.join(" AND "))
        };
        let ours = query(source.engine, &ours, &table.from, table.filter.as_ref());
        let theirs = query(target.engine, &theirs, &to, None);
        // Both at the same time.
        let [ours, theirs]: [Vec<Row>; 2] = std::thread::scope(|scope| {
            let ours = scope.spawn(|| source.rows(&ours));
            let theirs = target.rows(&theirs);
            let failed = || Error::new(ErrorKind::Internal, "the source's reader failed");
            Ok::<_, Error>([ours.join().map_err(|_| failed())??, theirs?])
        })?;
        if ours != theirs {
            return Ok(None);
        }
        rows += ours.first().and_then(|row| row.first()?.as_deref()?.parse::<u64>().ok()).unwrap_or(0);
        progress(rows);
    }
    Ok(Some(rows))
}
