//! Comparison of every value on both sides, after a table is copied.
//!
//! If both engines have the rows in the same order, pages of both are read in that order and compared. If not, the rows of
//! each page of the source are looked up on the target by their keys, and the target's rows are counted. Rows without a
//! key are compared by the sum of their digests.

use crate::canonical::{Reading, push};
use crate::page::{Cell, Page};
use crate::plan::TablePlan;
use crate::rows::{Of, Reader, check, encode, stream};
use crate::sql::{GAP, Side, quoted};
use kurabe_core::driver::Prepared;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::AtomicBool;

/// Keys of one look-up, at most.
const KEYS: usize = 200;

/// Compares a table on both sides. `progress` gets the number of rows compared so far.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) with the first row and column that differ.
pub fn verify(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let reader = Reader::new(source, Of::Source, table, None);
    let compared = stream(source, reader, stop, |pages| {
        let mut compared = 0;
        let mut theirs = if table.key.is_empty() || table.same_order {
            Theirs::InOrder(Box::new(Reader::new(target, Of::Target, table, None)))
        } else {
            Theirs::ByKey(LookUp::new(table))
        };
        let mut sums = [Sum::default(), Sum::default()];
        for read in pages {
            let (page, _) = read?;
            check(stop)?;
            match &mut theirs {
                Theirs::InOrder(reader) if table.key.is_empty() => {
                    sums[0].add(&page);
                    if let Some(other) = reader.page(target)? {
                        sums[1].add(&other);
                    }
                }
                Theirs::InOrder(reader) => {
                    let other = reader.page(target)?.unwrap_or_else(|| Page::new(page.width()));
                    same_pages(table, &page, &other)?;
                }
                Theirs::ByKey(look_up) => look_up.compare(target, &page)?,
            }
            compared += page.rows() as u64;
            progress(compared);
        }
        match theirs {
            Theirs::InOrder(mut reader) => {
                while let Some(other) = reader.page(target)? {
                    check(stop)?;
                    if !table.key.is_empty() {
                        return Err(extra(table, &key_of(table, &other, 0)));
                    }
                    sums[1].add(&other);
                }
            }
            Theirs::ByKey(look_up) => look_up.end(target)?,
        }
        if sums[0] != sums[1] {
            let what = format!(
                "{} rows on the source and {} on the target do not have the same digest",
                sums[0].rows, sums[1].rows
            );
            return Err(Error::new(ErrorKind::Mismatch, what)
                .hint("the table has no key by which rows could be named"));
        }
        Ok(compared)
    })?;
    let there = target.number(&format!("SELECT COUNT(*) FROM {}", quoted(target.engine, &table.name)))?;
    if there != compared {
        let what = format!("{compared} rows on the source and {there} on the target");
        return Err(Error::new(ErrorKind::Mismatch, what));
    }
    Ok(compared)
}

enum Theirs<'a> {
    InOrder(Box<Reader<'a>>),
    ByKey(LookUp<'a>),
}

/// The sum of the digests of rows in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    sum: [u64; 2],
}

impl Sum {
    fn add(&mut self, page: &Page) {
        for row in 0..page.rows() {
            for (salt, sum) in self.sum.iter_mut().enumerate() {
                let mut hasher = DefaultHasher::new();
                salt.hash(&mut hasher);
                for at in 0..page.width() {
                    hash(page.cell(row, at), &mut hasher);
                }
                *sum = sum.wrapping_add(hasher.finish());
            }
            self.rows += 1;
        }
    }
}

fn hash(cell: Cell<'_>, hasher: &mut DefaultHasher) {
    match cell {
        Cell::Null => 0u8.hash(hasher),
        Cell::Int(number) => (1u8, number).hash(hasher),
        Cell::Bytes(bytes) => (2u8, bytes).hash(hasher),
    }
}

fn same_pages(table: &TablePlan, ours: &Page, theirs: &Page) -> Result<()> {
    for row in 0..ours.rows() {
        if row >= theirs.rows() {
            return Err(missing(table, &key_of(table, ours, row)));
        }
        match compare_keys(table, (ours, row), (theirs, row)) {
            Ordering::Less => return Err(missing(table, &key_of(table, ours, row))),
            Ordering::Greater => return Err(extra(table, &key_of(table, theirs, row))),
            Ordering::Equal => {}
        }
        same_rows(table, ours, row, theirs, row)?;
    }
    if theirs.rows() > ours.rows() {
        return Err(extra(table, &key_of(table, theirs, ours.rows())));
    }
    Ok(())
}

/// The order of two rows by their keys, whose classes have one order in all engines.
fn compare_keys(table: &TablePlan, ours: (&Page, usize), theirs: (&Page, usize)) -> Ordering {
    let compare = |at: &usize| match (ours.0.cell(ours.1, *at), theirs.0.cell(theirs.1, *at)) {
        (Cell::Int(a), Cell::Int(b)) => a.cmp(&b),
        (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    };
    table.key.iter().map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn same_rows(table: &TablePlan, ours: &Page, row: usize, theirs: &Page, other: usize) -> Result<()> {
    for (at, column) in table.columns.iter().enumerate() {
        let (a, b) = (ours.cell(row, at), theirs.cell(other, at));
        if a != b {
            let key = key_of(table, ours, row);
            let what = format!(
                "row {key}, column {}: {} on the source, {} on the target",
                column.name,
                a.shown(),
                b.shown()
            );
            return Err(Error::new(ErrorKind::Mismatch, what));
        }
    }
    Ok(())
}

fn key_of(table: &TablePlan, page: &Page, row: usize) -> String {
    table.key.iter().map(|at| page.cell(row, *at).shown()).collect::<Vec<_>>().join(", ")
}

fn missing(table: &TablePlan, key: &str) -> Error {
    Error::new(ErrorKind::Mismatch, format!("row {key} of {} is not on the target", table.name))
}

fn extra(table: &TablePlan, key: &str) -> Error {
    Error::new(ErrorKind::Mismatch, format!("row {key} of {} is on the target only", table.name))
}

/// Looks rows up on the target by their keys.
struct LookUp<'a> {
    table: &'a TablePlan,
    full: Option<Prepared>,
}

impl<'a> LookUp<'a> {
    fn new(table: &'a TablePlan) -> Self {
        Self { table, full: None }
    }

    fn statement(&self, target: &Side, rows: usize) -> String {
        let engine = target.engine;
        let columns = &self.table.columns;
        let list: Vec<String> =
            columns.iter().map(|c| engine.read(&c.mapped.stored, &quoted(engine, &c.name))).collect();
        let key: Vec<(String, String)> = self
            .table
            .key
            .iter()
            .map(|at| (quoted(engine, &columns[*at].name), engine.compared(&columns[*at].mapped.stored)))
            .collect();
        let equal: Vec<String> = key.iter().map(|(name, gap)| format!("{name} = {gap}")).collect();
        let one = format!("({})", equal.join(" AND "));
        let condition = match key.as_slice() {
            [(name, gap)] => format!("{name} IN ({})", vec![gap.as_str(); rows].join(", ")),
            _ => vec![one.as_str(); rows].join(" OR "),
        };
        debug_assert_eq!(condition.matches(GAP).count(), rows * key.len());
        format!("SELECT {} FROM {} WHERE {condition}", list.join(", "), quoted(engine, &self.table.name))
    }

    fn compare(&mut self, target: &mut Side, page: &Page) -> Result<()> {
        let batch = KEYS.min(crate::rows::page_rows(self.table));
        for from in (0..page.rows()).step_by(batch) {
            let rows = batch.min(page.rows() - from);
            let mut parameters = Vec::with_capacity(rows * self.table.key.len());
            for row in from..from + rows {
                for at in &self.table.key {
                    let class = self.table.columns[*at].mapped.stored.class;
                    parameters.push(encode(target.engine, class, page.cell(row, *at))?);
                }
            }
            let values: Vec<Value<'_>> = parameters.iter().map(crate::rows::Encoded::value).collect();
            let mut reply = Reply::new();
            if rows == batch {
                if self.full.is_none() {
                    self.full = Some(target.prepare(&self.statement(target, rows))?);
                }
                let Some(full) = &self.full else { continue };
                target.session.execute(full, &values, &mut reply).map_err(|e| e.context(&target.name))?;
            } else {
                target.execute(&self.statement(target, rows), &values, &mut reply)?;
            }
            let mut theirs = Page::new(page.width());
            for row in 0..reply.rows() {
                for (at, column) in self.table.columns.iter().enumerate() {
                    let reading = Reading { class: column.kind.class, hex: target.engine.bytes_as_hex() };
                    push(reading, reply.field(row, at).unwrap_or(Value::Null), &mut theirs)
                        .map_err(|e| e.context(format!("target, {}.{}", self.table.name, column.name)))?;
                }
            }
            let key = |page: &Page, row: usize| -> Vec<u8> {
                let mut key = Vec::new();
                for at in &self.table.key {
                    match page.cell(row, *at) {
                        Cell::Null => key.push(0),
                        Cell::Int(number) => key.extend(number.to_le_bytes()),
                        Cell::Bytes(bytes) => {
                            key.extend((bytes.len() as u64).to_le_bytes());
                            key.extend(bytes);
                        }
                    }
                }
                key
            };
            let found: HashMap<Vec<u8>, usize> =
                (0..theirs.rows()).map(|row| (key(&theirs, row), row)).collect();
            for row in from..from + rows {
                match found.get(&key(page, row)) {
                    Some(other) => same_rows(self.table, page, row, &theirs, *other)?,
                    None => return Err(missing(self.table, &key_of(self.table, page, row))),
                }
            }
        }
        Ok(())
    }

    fn end(self, target: &mut Side) -> Result<()> {
        self.full.map_or(Ok(()), |prepared| target.session.release(prepared))
    }
}
