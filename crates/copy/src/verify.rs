//! Verification of a copied table, which shares nothing with the copying but the form of values.
//!
//! Both servers count their rows. Both sides are read whole, by one query each without a key or an order, and each row adds
//! its digest of 128 bits to one of `CHUNKS` sums, that of its key. Equal sums are equal rows, in whatever order they
//! came. Where sums differ, the rows of the first such chunk are read again, to name a row that differs.

use crate::canonical::{Purpose, push_mended};
use crate::engines::Engine;
use crate::page::{Cell, Page};
use crate::plan::TablePlan;
use crate::pool::Halt;
use crate::sql::{ROWS, Side, quoted};
use crate::state::OfTable;
use crate::types::Class;
use kurabe_core::value::Value;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of sums of a table.
const CHUNKS: usize = 1024;

/// Bytes of rows that are kept to name one that differs.
const KEPT: usize = 64 << 20;

/// Which side of a copy is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The source, with values as the target holds them.
    Source,
    Target,
}

/// Verifies a table of which so many rows were inserted or refused. `progress` gets the number of rows read so far.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) if rows were lost or added, or with the first row and column that differ.
pub fn verify(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    now: &OfTable,
    halt: &Halt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let (copied, rejected) = (now.rows, now.rejected);
    let to = quoted(target.engine, &table.to);
    let counts = [
        ("the source's server counts", count(source, &table.from, &table.filtered())?, rejected),
        ("the target's server counts", count(target, &to, "")?, 0),
        ("the plan counted", table.rows, rejected),
    ];
    let [mut ours, theirs] = both(source, target, table, halt, progress)?;
    for (chunk, digests) in &now.sums {
        let sums = ours.sums.get_mut(*chunk).into_iter().flatten();
        sums.zip(digests).for_each(|(sum, digest)| *sum = sum.wrapping_sub(*digest));
    }
    let read = [("the source has", ours.rows, rejected), ("the target has", theirs.rows, 0)];
    let other = counts.iter().chain(&read).find(|(_, rows, without)| *rows != copied + without);
    let chunk = (0..CHUNKS).find(|chunk| ours.sums[*chunk] != theirs.sums[*chunk]);
    let mut what = match (other, chunk) {
        (None, None) => return Ok(copied),
        (None, Some(_)) => String::new(),
        (Some((who, rows, _)), _) => {
            format!("{} rows were copied, and {who} {}", units::count(copied), units::count(*rows))
        }
    };
    let mut hint = "if the source has changed since the copy began, --no-resume copies it again";
    if let Some(chunk) = chunk {
        let engine = source.engine;
        let named = if table.key.is_empty() {
            hint = "the table has no key by which rows could be named";
            None
        } else {
            let [ours, theirs] = [(source, Of::Source), (target, Of::Target)].map(|(side, of)| {
                let mut kept = Kept::default();
                read_all(side, of, table, halt, &mut |row| {
                    if digests(table, row, 0, &mut Vec::new()).0 == chunk {
                        kept.add(table, row);
                    }
                })
                .map(|()| kept)
            });
            difference(engine, table, &ours?, &theirs?)
        };
        if !what.is_empty() {
            what.push_str("; ");
        }
        what.push_str(
            &named.unwrap_or_else(|| format!("the rows of {} do not have the same digest", table.name)),
        );
    }
    Err(Error::new(ErrorKind::Mismatch, what).hint(hint))
}

fn count(side: &mut Side, table: &str, filter: &str) -> Result<u64> {
    side.number(&format!("SELECT COUNT(*) FROM {table}{filter}"))
}

/// Reads both sides at the same time.
fn both(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    halt: &Halt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<[Sums; 2]> {
    let failed = AtomicBool::new(false);
    let sums = |side: &mut Side, of: Of, progress: &mut dyn FnMut(u64)| {
        let mut sums = Sums { rows: 0, sums: vec![[0; 2]; CHUNKS] };
        let mut bytes = Vec::new();
        let done = read_all(side, of, table, halt, &mut |row| {
            sums.add(table, row, &mut bytes);
            if sums.rows.is_multiple_of(1_000) {
                progress(sums.rows);
            }
        });
        if done.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        done.map(|()| sums)
    };
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| sums(source, Of::Source, &mut |_| {}));
        let theirs = sums(target, Of::Target, progress);
        let ours =
            ours.join().map_err(|_| Error::new(ErrorKind::Internal, "the source's reader failed"))??;
        Ok([ours, theirs?])
    })
}

/// Reads all rows of a side in whatever order they come, one at a time, in canonical form.
fn read_all(
    side: &mut Side,
    of: Of,
    table: &TablePlan,
    halt: &Halt<'_>,
    each: &mut dyn FnMut(&Page),
) -> Result<()> {
    let engine = side.engine;
    let readings = table.readings(engine, Purpose::Compare);
    let list = table.columns.iter().map(|column| {
        let kind = if of == Of::Source { &column.kind } else { &column.mapped.stored };
        engine.read(kind, &quoted(engine, &column.name))
    });
    let list: Vec<String> = list.collect();
    let (from, filter) = match of {
        Of::Source => (table.from.clone(), table.filtered()),
        Of::Target => (quoted(engine, &table.to), String::new()),
    };
    let sql = format!("SELECT {} FROM {from} {ROWS}{filter}", list.join(", "));
    side.pages(&sql, &[], table.page, &mut |reply| {
        halt.check()?;
        for row in 0..reply.rows() {
            let mut one = Page::new(readings.len());
            for (at, (reading, column)) in readings.iter().zip(&table.columns).enumerate() {
                let mended: &[_] = if of == Of::Source { &column.mend } else { &[] };
                push_mended(*reading, mended, reply.field(row, at).unwrap_or(Value::Null), &mut one)
                    .map_err(|error| error.context(format!("{of:?}, {}.{}", table.name, column.name)))?;
            }
            each(&one);
        }
        Ok(())
    })
}

/// The sums of the digests of rows, by chunk.
struct Sums {
    rows: u64,
    sums: Vec<[u64; 2]>,
}

impl Sums {
    fn add(&mut self, table: &TablePlan, row: &Page, bytes: &mut Vec<u8>) {
        let (chunk, digests) = digests(table, row, 0, bytes);
        for (sum, digest) in self.sums[chunk].iter_mut().zip(digests) {
            *sum = sum.wrapping_add(digest);
        }
        self.rows += 1;
    }
}

/// The chunk of a row of a page, and its digest in two halves.
pub fn digests(table: &TablePlan, page: &Page, row: usize, bytes: &mut Vec<u8>) -> (usize, [u64; 2]) {
    bytes.clear();
    (0..page.width()).for_each(|at| push_bytes(bytes, page.cell(row, at)));
    let both = [0, 1].map(|salt| digest(salt, bytes));
    if !table.key.is_empty() {
        bytes.clear();
        table.key.iter().for_each(|at| push_bytes(bytes, page.cell(row, *at)));
    }
    (digest(2, bytes) as usize % CHUNKS, both)
}

/// A hash of bytes: `SipHash` of the standard library, with the same keys in each process.
fn digest(salt: u8, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(salt);
    hasher.write(bytes);
    hasher.finish()
}

/// What names a row: its key, or all of it.
fn key_bytes(table: &TablePlan, row: &Page) -> Vec<u8> {
    let mut bytes = Vec::new();
    if table.key.is_empty() {
        (0..row.width()).for_each(|at| push_bytes(&mut bytes, row.cell(0, at)));
    }
    table.key.iter().for_each(|at| push_bytes(&mut bytes, row.cell(0, *at)));
    bytes
}

/// Appends a value so that different values never give the same bytes.
fn push_bytes(out: &mut Vec<u8>, cell: Cell<'_>) {
    match cell {
        Cell::Null => out.push(0),
        Cell::Int(number) => {
            out.push(1);
            out.extend(number.to_le_bytes());
        }
        Cell::Bytes(bytes) => {
            out.push(2);
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// The rows of a chunk that differs.
#[derive(Default)]
struct Kept {
    rows: Vec<(Vec<u8>, Page)>,
    bytes: usize,
}

impl Kept {
    fn add(&mut self, table: &TablePlan, row: &Page) {
        if self.bytes < KEPT {
            self.bytes += row.size() as usize;
            self.rows.push((key_bytes(table, row), row.clone()));
        }
    }
}

/// The first difference between the rows of a chunk. `None` if all that were kept are the same.
fn difference(engine: &dyn Engine, table: &TablePlan, ours: &Kept, theirs: &Kept) -> Option<String> {
    let shown = |page: &Page, at: usize| {
        let cell = page.cell(0, at);
        if table.columns[at].exact && table.columns[at].kind.class == Class::Native {
            engine.shown(cell)
        } else {
            cell.shown()
        }
    };
    let whole = ours.bytes < KEPT && theirs.bytes < KEPT;
    let found: HashMap<&[u8], &Page> = theirs.rows.iter().map(|(key, page)| (&key[..], page)).collect();
    let key_of = |page: &Page| table.key.iter().map(|at| shown(page, *at)).collect::<Vec<_>>().join(", ");
    for (key, page) in &ours.rows {
        let row = key_of(page);
        let Some(other) = found.get(&key[..]) else {
            if whole {
                return Some(format!("row {row} of {} is not on the target", table.name));
            }
            continue;
        };
        let differ = |at: &usize| page.cell(0, *at) != other.cell(0, *at);
        if let Some(at) = (0..page.width()).find(differ) {
            let [a, b] = [page, *other].map(|page| shown(page, at));
            let column = &table.columns[at].name;
            return Some(format!("row {row}, column {column}: {a} on the source, {b} on the target"));
        }
    }
    let known: HashSet<&[u8]> = ours.rows.iter().map(|(key, _)| &key[..]).collect();
    let extra = theirs.rows.iter().find(|(key, _)| !known.contains(&key[..])).filter(|_| whole)?;
    Some(format!("row {} of {} is on the target only", key_of(&extra.1), table.name))
}
