//! What one session of each side does of a copy: it takes ranges of rows, then the rest of tables, until nothing is left.

use crate::event::{Event, Step, TableDone};
use crate::page::{Cell, Page};
use crate::plan::TablePlan;
use crate::pool::{Item, Pool, RowRange};
use crate::reject::Rejects;
use crate::rows::{Read, Reader, Writer, refused_rows, stream, with_row};
use crate::run::{Open, prepare};
use crate::sql::{Side, in_transaction, only_refused};
use crate::state::{OfTable, Phase, State};
use crate::verify::servers::Digests;
use crate::verify::{Of, verify};
use crate::wanted::Parts;
use kurabe_core::{Error, Result};
use std::sync::mpsc::channel;
use std::time::Instant;

/// The rows of a table that is compared while they are written, at least.
const ROWS_TO_FOLLOW: u64 = 100_000;

/// The digests of a table's servers, and a further session of each.
type Checker<'t> = (Digests<'t>, [Side; 2]);

/// A session's part of a copy.
pub(crate) struct Worker<'d, 'n> {
    pub(crate) state: State,
    pub(crate) pool: &'n Pool<'d>,
    /// Takes the rows that the target refuses.
    pub(crate) reject: Option<&'d Rejects>,
    /// The tables of the target before this process made any.
    pub(crate) there: &'d [String],
    pub(crate) notify: &'n dyn Fn(Event<'d>),
    /// Opens further sessions, by which rows are compared while others are written.
    pub(crate) open: Option<Open<'d>>,
}

impl<'d> Worker<'d, '_> {
    /// Does what is left, until nothing is or something fails.
    pub(crate) fn run(&self, source: &mut Side, target: &mut Side) {
        while let Some(item) = self.pool.next() {
            let (table, done) = match item {
                Item::Rows(rows) => {
                    let (at, table, range) = (rows.at, rows.table, rows.range);
                    let done = self.rows(source, target, rows).and_then(|(now, part)| {
                        let Some(whole) = self.pool.copied(at, range, now, &part) else { return Ok(()) };
                        self.state.set_table(target, &table.to, &whole)
                    });
                    (table, done)
                }
                Item::Finish { at, table, now, done } => {
                    let done = self.finish(source, target, table, now, done);
                    let done = done.map(|done| {
                        self.pool.finish(at, done.clone());
                        (self.notify)(Event::Table(done));
                    });
                    (table, done)
                }
            };
            if let Err(error) = done {
                self.pool.halt.fail(error.context(format!("table {}", table.name)));
            }
        }
    }

    /// Copies the rows of a range of a table.
    fn rows(
        &self,
        source: &mut Side,
        target: &mut Side,
        RowRange { at, table, range, whole, mut now }: RowRange<'d>,
    ) -> Result<(OfTable, TableDone)> {
        let mut done = TableDone::default();
        let start = Instant::now();
        let (after, bounds) = (now.last.as_ref(), whole.bounds(range));
        let reader = Reader::new(source.engine, table, after, bounds, self.reject.is_some())?;
        let mut writer = Writer::new(target.engine, table);
        let (halt, checker) = (self.pool.halt, self.checker(source, target, table));
        done.proven = std::thread::scope(|scope| {
            let (send, keys) = channel();
            let checking =
                checker.map(|(digests, sides)| scope.spawn(move || digests.follow(sides, &keys, halt)));
            stream(source, &reader, halt, |pages| {
                for read in pages {
                    let Read { mut page, last, digests } = read?;
                    // The reader may have read the rest of the table already.
                    halt.check()?;
                    let mut next = now.clone();
                    next.last.clone_from(&last);
                    let rows = page.rows() as u64;
                    let mut insert = |target: &mut Side, page: &Page, next: &mut OfTable| {
                        next.rows = now.rows + page.rows() as u64;
                        in_transaction(target, |target| {
                            writer.insert(target, page)?;
                            self.state.set_range(target, &table.to, &whole, range, next)
                        })
                    };
                    if let Err(error) = insert(target, &page, &mut next) {
                        let Some(file) = self.reject else {
                            return Err(with_row(target, table, &page, error));
                        };
                        only_refused(error)?;
                        let refused = refused_rows(target, table, &page, page.rows())?;
                        file.write(table, range, &page, &refused)?;
                        for (row, _) in &refused {
                            next.reject(digests[*row]);
                        }
                        done.rejected += refused.len() as u64;
                        page = page.with_rows(|row| !refused.iter().any(|(refused, _)| *refused == row));
                        insert(target, &page, &mut next)?;
                    }
                    now = next;
                    if let Some(Cell::Int(key)) = last.as_ref().map(|key| key.cell(0, 0)) {
                        let _ = send.send(key);
                    }
                    done.copied += page.rows() as u64;
                    done.bytes += page.size();
                    let rows = self.pool.add(at, rows);
                    (self.notify)(Event::Progress { table, step: Step::Copy, rows });
                }
                Ok(())
            })?;
            // The checker ends after the last key.
            drop(send);
            Ok::<_, Error>(checking.and_then(|checking| checking.join().ok()).flatten())
        })?;
        writer.end(target)?;
        now.phase = Phase::Copied;
        now.last = None;
        self.state.set_range(target, &table.to, &whole, range, &now)?;
        done.copy = start.elapsed();
        Ok((now, done))
    }

    /// What compares a large table while its rows are written. What fails here is done afterwards.
    fn checker<'t>(&self, source: &mut Side, target: &Side, table: &'t TablePlan) -> Option<Checker<'t>> {
        let is_whole = self.pool.parts == Parts::All && self.reject.is_none();
        let open = self.open.filter(|_| is_whole && table.rows >= ROWS_TO_FOLLOW)?;
        let digests =
            Digests::new(source.engine, target.engine, table).filter(|digests| digests.key.is_some())?;
        let mut sides = [open(Of::Source).ok()?, open(Of::Target).ok()?];
        prepare(&mut sides[0], source.engine.reading).ok()?;
        prepare(&mut sides[1], &[]).ok()?;
        source.engine.dialect.join(source, &mut sides[0]).ok()?;
        Some((digests, sides))
    }

    /// Verifies a table whose rows are copied, and makes its indexes.
    fn finish(
        &self,
        source: &mut Side,
        target: &mut Side,
        table: &'d TablePlan,
        mut now: OfTable,
        mut done: TableDone,
    ) -> Result<TableDone> {
        let Pool { halt, parts, .. } = *self.pool;
        halt.check()?;
        done.name.clone_from(&table.name);
        (done.rows, done.rejected) = (now.rows, now.rejected);
        let start = Instant::now();
        // Also what an earlier process has verified: the source may have changed since.
        if now.phase >= Phase::Copied && parts != Parts::Schema {
            let proven = done.proven;
            let mut progress = |rows| (self.notify)(Event::Progress { table, step: Step::Verify, rows });
            let compare =
                |target: &mut Side| verify(source, target, table, &now, proven, halt, &mut progress);
            (done.rows, done.by_servers) = in_transaction(target, compare)?;
            if now.phase == Phase::Copied {
                now.phase = Phase::Verified;
                self.state.set_table(target, &table.to, &now)?;
            }
            done.verify = start.elapsed();
        }
        let start = Instant::now();
        if now.phase == Phase::Verified {
            (self.notify)(Event::Progress { table, step: Step::Index, rows: done.rows });
            let indexes = if parts == Parts::Data { &[][..] } else { &table.indexes };
            let known =
                if indexes.is_empty() { Vec::new() } else { indexes_of(target, &table.to, self.there)? };
            let mut all = true;
            for index in indexes.iter().filter(|index| !known.contains(&index.name)) {
                halt.check()?;
                if let Err(error) = target.run(&index.sql) {
                    let error = only_refused(error)?;
                    // Otherwise the server has completed the statement of a process that was killed.
                    if !indexes_of(target, &table.to, std::slice::from_ref(&table.to))?.contains(&index.name)
                    {
                        self.pool.refuse((format!("{}.{}", table.to, index.name), error));
                        all = false;
                    }
                }
            }
            restart_numbers(target, table)?;
            if all {
                now.phase = Phase::Indexed;
                self.state.set_table(target, &table.to, &now)?;
            }
            done.index = start.elapsed();
        }
        Ok(done)
    }
}

/// The indexes of a table that an earlier process made. A new table has none.
fn indexes_of(target: &mut Side, table: &str, there: &[String]) -> Result<Vec<String>> {
    if !there.iter().any(|name| name == table) {
        return Ok(Vec::new());
    }
    let found = target.catalog()?.tables.into_iter().find(|known| known.name == table).unwrap_or_default();
    let later = found.native.unwrap_or_default().later;
    let named = later.into_iter().map(|made| made.name).filter(|name| !name.is_empty());
    Ok(found.indexes.into_iter().map(|index| index.name).chain(named).collect())
}

/// Has the server give numbers after the largest one that was copied, and after those of rows that were deleted.
fn restart_numbers(target: &mut Side, table: &TablePlan) -> Result<()> {
    for (column, after) in table.columns.iter().filter_map(|column| Some((column, column.identity?))) {
        let (name, of) = (target.quoted(&column.name), target.quoted(&table.to));
        let largest = target.engine.dialect.read(&column.mapped.stored, &format!("MAX({name})"));
        let largest = target.value(&format!("SELECT {largest} FROM {of}"))?;
        let next = (largest.and_then(|text| text.parse::<i128>().ok()).unwrap_or(0).max(0) + 1).max(after);
        target.engine.restart_identity.map_or(Ok(()), |sql| target.run(&sql(&of, &name, next)))?;
    }
    Ok(())
}
