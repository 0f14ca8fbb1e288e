//! A whole copy: plan, tables, rows, comparison, indexes, foreign keys. It can end anywhere and be continued.

use crate::issue::{Accepted, Issue};
use crate::plan::{Named, Parts, Plan, Resume, TablePlan, Wanted, plan};
use crate::pool::{Halt, Item, Pool, Work};
use crate::rows::{Range, Reader, Writer, in_transaction, refused_rows, stream};
use crate::sql::Side;
use crate::state::{self, OfTable, Phase, State, Whole};
use crate::types::Class;
use crate::verify::verify;
use kurabe_core::driver::Namespace;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A table is read in ranges of its key, for several sessions, if it has so many pages for each of them.
const PAGES_TO_SPLIT: usize = 4;
/// Ranges for each session, since keys are not spread evenly.
const RANGES: usize = 4;

/// What a copy does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copies rows.
    Copy,
    /// Compares values.
    Verify,
    /// Makes indexes.
    Index,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A copy that was begun before is continued.
    Resumed,
    /// How far a table is.
    Progress {
        /// The table.
        table: &'a TablePlan,
        /// What is done.
        step: Step,
        /// Rows so far.
        rows: u64,
    },
    /// A table is complete, but for foreign keys.
    Table(&'a TableDone),
}

/// A copied table.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct TableDone {
    /// Its name.
    pub name: String,
    /// All its rows on the target.
    pub rows: u64,
    /// Rows that the target refused, which were written to the file of such rows.
    pub rejected: u64,
    /// Rows that this process copied.
    pub copied: u64,
    /// Bytes of the values that this process copied, in canonical form.
    pub bytes: u64,
    /// Time of copying rows.
    pub copy: Duration,
    /// Time of comparing values.
    pub verify: Duration,
    /// Time of making indexes.
    pub index: Duration,
}

/// The two sides of a copy.
pub struct Copy<'a> {
    /// The source. It is only read.
    pub source: Side,
    /// The target.
    pub target: Side,
    /// Set when the user stops the copy.
    pub stop: &'a AtomicBool,
    /// Whether the target holds the state of this copy, so that it can be continued.
    pub begun: bool,
}

/// How a copy is done.
#[derive(Default)]
pub struct How<'a> {
    /// Removes what an unfinished copy made before.
    pub restart: bool,
    /// Empties tables of the target that Kurabe made, where only data is copied.
    pub truncate: bool,
    /// Keeps the record of what was made on the target.
    pub keep: bool,
    /// Further sessions of the source and the target, which were [prepared](Copy::plan_with).
    pub more: Vec<(Side, Side)>,
    /// Takes the rows that the target refuses, a JSON document a line.
    pub reject: Option<&'a Mutex<dyn Write + Send>>,
}

/// What each part of a copy needs.
struct Doing<'d, 't> {
    state: State,
    halt: &'d Halt<'d>,
    reject: Option<&'d Mutex<dyn Write + Send>>,
    parts: Parts,
    /// The tables of the target before this process made any.
    there: &'d [String],
    tell: &'t dyn Fn(Told<'d>),
}

/// An event of a session's thread.
enum Told<'d> {
    Progress { table: &'d TablePlan, step: Step, rows: u64 },
    Table(TableDone),
}

impl Copy<'_> {
    /// Prepares both sessions and plans the copy. Changes nothing.
    ///
    /// # Errors
    /// Those of [`plan`].
    pub fn plan(&mut self, wanted: &Wanted) -> Result<Plan> {
        self.plan_with(wanted, &mut [])
    }

    /// The same with further sessions, which see the same rows.
    ///
    /// # Errors
    /// Those of [`plan`]; [`Unsupported`](ErrorKind::Unsupported) if the server gives several sessions no common view, or
    /// the target takes rows from one session only.
    pub fn plan_with(&mut self, wanted: &Wanted, more: &mut [(Side, Side)]) -> Result<Plan> {
        let engine = self.source.engine;
        if !more.is_empty() && self.target.engine.has_one_writer() {
            let what = format!("{} takes rows from one session at a time", self.target.engine.name());
            return Err(Error::unsupported(what).hint("use --jobs 1"));
        }
        let (mut sources, mut targets) = (vec![&mut self.source], vec![&mut self.target]);
        for (source, target) in more {
            sources.push(source);
            targets.push(target);
        }
        for source in &mut sources {
            engine.reading().iter().try_for_each(|statement| source.run(statement))?;
        }
        // One transaction, so that all tables are read as they were at one time, where the engine can do that.
        match sources.as_mut_slice() {
            [only] => begin_reading(only)?,
            all => engine.begin_together(all)?,
        }
        for target in targets {
            let engine = target.engine;
            let data_only = if wanted.parts == Parts::Data { engine.writing_into_keys() } else { &[] };
            engine.writing().iter().chain(data_only).try_for_each(|statement| target.run(statement))?;
        }
        let mut facts = self.target.engine.facts(&mut self.target)?;
        facts.same_server = engine.name() == self.target.engine.name()
            && engine.facts(&mut self.source)?.edition == facts.edition;
        let there = match wanted.parts {
            Parts::Data => Some(self.target.engine.catalog(&mut self.target)?),
            _ => None,
        };
        plan(&mut self.source, self.target.engine, &facts, wanted, there.as_ref())
    }

    /// Copies. With `restart`, removes what an unfinished copy made before. `namespace` is that of the target, which the
    /// caller has claimed.
    ///
    /// # Errors
    /// [`NotOurs`](ErrorKind::NotOurs) for a table that exists on the target; [`Mismatch`](ErrorKind::Mismatch) for a value
    /// that is not the same after the copy; [`Interrupted`](ErrorKind::Interrupted) after the user has stopped it; or a
    /// server's error. The copy can be continued after all but the first.
    pub fn run(
        &mut self,
        plan: &Plan,
        namespace: &mut dyn Namespace,
        restart: bool,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<TableDone>> {
        self.run_as(plan, namespace, How { restart, ..How::default() }, events)
    }

    /// The same in other ways.
    ///
    /// # Errors
    /// As for [`Copy::run`]. [`Server`](ErrorKind::Server) if only indexes or foreign keys were refused: all else is done.
    pub fn run_as(
        &mut self,
        plan: &Plan,
        namespace: &mut dyn Namespace,
        how: How<'_>,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<TableDone>> {
        let restart = how.restart;
        let mut whole = Whole {
            fingerprint: self.fingerprint(plan),
            source: self.source.name.clone(),
            tables: plan.tables.iter().map(|table| table.to.clone()).collect(),
            ..Whole::default()
        };
        let mut there = self.target.engine.catalog(&mut self.target)?;
        // A process may have ended between its entry in the ownership table and the table itself, or its first row.
        let mut record = None;
        let mut exists = state::exists(namespace)? && there.names.iter().any(|name| name == state::NAME);
        if exists {
            let state = State::open(&mut self.target)?;
            record = state.whole(&mut self.target)?;
            state.close(&mut self.target)?;
        }
        let finished = record.as_ref().is_some_and(|record| record.done);
        if let Some(record) = &record {
            whole.made.clone_from(&record.made);
        }
        if restart && exists && !finished {
            self.discard(namespace, plan.parts)?;
            exists = false;
            there = self.target.engine.catalog(&mut self.target)?;
        }
        let resumed = exists && !finished;
        let state = if resumed {
            let state = State::open(&mut self.target)?;
            match record.as_ref() {
                Some(found) if found.is_same(&whole) => whole.clone_from(found),
                Some(found) => {
                    let what = format!("{}: a copy of {} is unfinished", self.target.name, found.source);
                    let why = if found.source == whole.source {
                        "the tables or their definitions have changed"
                    } else {
                        "it is another one"
                    };
                    return Err(Error::new(ErrorKind::NotOurs, format!("{what}, and {why}")).hint(
                        "continue it as it was begun, or remove its tables and begin again with --no-resume",
                    ));
                }
                None => state.set_whole(&mut self.target, &whole)?,
            }
            events(Event::Resumed);
            state
        } else {
            if plan.parts == Parts::Data {
                self.prepare_filled(plan, &whole, how.truncate)?;
            } else {
                refuse_existing(&self.target, &there.names, whole.tables.iter())?;
                let new = whole.tables.iter().filter(|name| !whole.made.contains(name));
                whole.made = whole.made.iter().chain(new).cloned().collect();
            }
            let state = State::create(namespace, &mut self.target)
                .map_err(|error| error.context(&self.target.name))?;
            state.set_whole(&mut self.target, &whole)?;
            state
        };
        self.begun = true;
        self.needed(plan, &there.before, resumed || restart)?;
        let mut begun = Vec::new();
        for table in &plan.tables {
            begun.push(state.table(&mut self.target, &table.to)?);
        }
        if plan.parts != Parts::Data {
            let new = plan.tables.iter().zip(&begun).filter(|(_, begun)| begun.is_none());
            refuse_existing(&self.target, &there.names, new.map(|(table, _)| &table.to))?;
        }
        // The whole schema first, so that what the server refuses is known before rows are copied.
        let mut works = Vec::new();
        let jobs = how.more.len() + 1;
        let halt = Halt::new(self.stop);
        for (table, begun) in plan.tables.iter().zip(begun) {
            halt.check()?;
            let exists = there.names.contains(&table.to);
            let one = self.make(table, begun, exists, &state, plan.parts, jobs);
            works.push(one.map_err(|error| error.context(format!("table {}", table.name)))?);
        }
        let pool = Pool::new(works, &halt);
        self.work(&pool, state, plan.parts, &there.names, how.reject, how.more, events)?;
        let (done, mut refused) = pool.end();
        if plan.parts != Parts::Data {
            refused.extend(self.foreign_keys(plan, resumed)?);
        }
        if let Some(error) = refusals(&refused) {
            return Err(error);
        }
        plan.after.iter().try_for_each(|named| self.target.run(&named.sql))?;
        if how.keep || plan.parts != Parts::All || finished {
            let state = State::open(&mut self.target)?;
            whole.done = true;
            state.set_whole(&mut self.target, &whole)?;
            state.close(&mut self.target)?;
        } else {
            state::remove(namespace)?;
        }
        self.begun = false;
        // Only read.
        let _ = self.source.control(&Operation::Rollback);
        Ok(done)
    }

    /// Copies and verifies all tables, with as many threads as there are sessions. With one, it is this thread.
    #[expect(clippy::too_many_arguments, reason = "what each thread needs")]
    fn work<'w>(
        &'w mut self,
        pool: &Pool<'w>,
        state: State,
        parts: Parts,
        there: &'w [String],
        reject: Option<&'w Mutex<dyn Write + Send>>,
        mut more: Vec<(Side, Side)>,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let halt = pool.halt;
        let (source, target) = (&mut self.source, &mut self.target);
        if more.is_empty() {
            let events = RefCell::new(events);
            let tell = |told: Told<'w>| show(&told, &mut *events.borrow_mut());
            let doing = Doing { state, halt, reject, parts, there, tell: &tell };
            doing.all(source, target, pool);
            doing.state.close(target)?;
        } else {
            let (send, receive) = channel();
            std::thread::scope(|scope| -> Result<()> {
                let first = std::iter::once((source, target, Some(state)));
                let others = more.iter_mut().map(|(source, target)| (source, target, None));
                for (source, target, state) in first.chain(others) {
                    let send = send.clone();
                    let state = state.map_or_else(|| State::open(target), Ok)?;
                    scope.spawn(move || {
                        // It is received as long as a thread may send.
                        let tell = |told: Told<'w>| drop(send.send(told));
                        let doing = Doing { state, halt, reject, parts, there, tell: &tell };
                        doing.all(source, target, pool);
                        // The connection ends with the copy.
                        let _ = doing.state.close(target);
                    });
                }
                drop(send);
                for told in receive {
                    show(&told, events);
                }
                Ok(())
            })?;
            for (source, target) in more {
                // Only read; and whatever was written is committed.
                let _ = (source.session.close(), target.session.close());
            }
        }
        halt.error().map_or(Ok(()), Err)
    }

    /// Makes the types and sequences that tables need.
    fn needed(&mut self, plan: &Plan, there: &[Named], ours: bool) -> Result<()> {
        for named in &plan.before {
            match there.iter().find(|known| known.name == named.name) {
                None => self.target.run(&named.sql)?,
                // A type may be shared; a sequence may be another one's, unless an earlier process of this copy made it.
                Some(known)
                    if known.sql == named.sql && (ours || !named.sql.starts_with("CREATE SEQUENCE")) => {}
                Some(known) => {
                    let what = format!(
                        "{}: {} exists, and is another one: {}",
                        self.target.name, named.name, known.sql
                    );
                    return Err(Error::new(ErrorKind::NotOurs, what).hint("remove or rename it"));
                }
            }
        }
        Ok(())
    }

    /// Refuses tables that have rows; or empties those that Kurabe made.
    fn prepare_filled(&mut self, plan: &Plan, whole: &Whole, truncate: bool) -> Result<()> {
        // Tables that refer to others come after them.
        for table in plan.tables.iter().rev() {
            let of = self.target.quoted(&table.to);
            let rows = self.target.number(&format!("SELECT COUNT(*) FROM {of}"))?;
            if rows == 0 {
                continue;
            }
            let what = format!("{}: table {} has {} rows", self.target.name, table.to, units::count(rows));
            if !truncate {
                return Err(Error::new(ErrorKind::NotOurs, what)
                    .hint("--truncate-target empties tables that 'kurabe copy' made"));
            }
            if !whole.made.contains(&table.to) {
                return Err(Error::new(
                    ErrorKind::NotOurs,
                    format!("{what}, and 'kurabe copy' did not make it"),
                )
                .hint("nothing was emptied but tables that it made; empty this one yourself"));
            }
            self.target.run(&format!("DELETE FROM {of}"))?;
        }
        Ok(())
    }

    /// Only a copy with the same source and tables is continued. Indexes and foreign keys may be left out then.
    fn fingerprint(&self, plan: &Plan) -> String {
        let mut hasher = DefaultHasher::new();
        self.source.name.hash(&mut hasher);
        for table in &plan.tables {
            (&table.create, &table.filter).hash(&mut hasher);
        }
        plan.before.iter().for_each(|made| made.sql.hash(&mut hasher));
        for column in plan.tables.iter().flat_map(|table| &table.columns) {
            for kind in &column.mend {
                (&column.name, kind).hash(&mut hasher);
            }
        }
        format!("{:016x}", hasher.finish())
    }

    /// Removes the tables of an unfinished copy, or their rows, and its state.
    fn discard(&mut self, namespace: &mut dyn Namespace, parts: Parts) -> Result<()> {
        let state = State::open(&mut self.target)?;
        let tables = state.whole(&mut self.target)?.map(|whole| whole.tables).unwrap_or_default();
        let there = self.target.engine.catalog(&mut self.target)?;
        let what = if parts == Parts::Data { "DELETE FROM" } else { "DROP TABLE" };
        // Tables that refer to others come after them.
        for table in tables.iter().rev() {
            if state.table(&mut self.target, table)?.is_some() && there.names.contains(table) {
                let sql = format!("{what} {}", self.target.quoted(table));
                self.target.run(&sql)?;
            }
        }
        state.close(&mut self.target)?;
        state::remove(namespace)
    }

    /// Makes a table that has no rows yet, or whose rows are copied again, and splits it for several sessions.
    fn make<'p>(
        &mut self,
        table: &'p TablePlan,
        begun: Option<OfTable>,
        exists: bool,
        state: &State,
        parts: Parts,
        jobs: usize,
    ) -> Result<Work<'p>> {
        let mut now = begun.unwrap_or_else(|| OfTable::new(Phase::Making));
        let again = now.phase == Phase::Rows && (now.rows > 0 && table.resume == Resume::Restart || !exists);
        if now.phase == Phase::Making || again {
            let new = now.rows == 0 && parts == Parts::Data;
            now = OfTable::new(Phase::Making);
            state.set_table(&mut self.target, &table.to, &now)?;
            let of = self.target.quoted(&table.to);
            match parts {
                Parts::Data if new => {}
                Parts::Data => self.target.run(&format!("DELETE FROM {of}"))?,
                _ => {
                    if exists {
                        self.target.run(&format!("DROP TABLE {of}"))?;
                    }
                    self.target.run(&table.create)?;
                }
            }
            now.phase = if parts == Parts::Schema { Phase::Verified } else { Phase::Rows };
            if parts != Parts::Schema && jobs > 1 {
                now.splits = self.splits(table, jobs)?;
            }
            for range in 0..now.ranges() {
                state.set_range(&mut self.target, &table.to, &now, range, &OfTable::new(Phase::Rows))?;
            }
            state.set_table(&mut self.target, &table.to, &now)?;
        }
        let mut ranges = Vec::new();
        for range in 0..now.ranges() {
            ranges.push(state.range(&mut self.target, &table.to, &now, range)?);
        }
        Ok(Work::new(table, now, ranges))
    }

    /// The keys at which ranges of a large table begin, but for the first one; none if it is not split.
    fn splits(&mut self, table: &TablePlan, jobs: usize) -> Result<Vec<i64>> {
        let engine = self.source.engine;
        let name = match &table.resume {
            Resume::Hidden(name) => (*name).to_owned(),
            Resume::Columns(columns) => {
                let first = columns.first().and_then(|at| table.columns.get(*at));
                let whole = |class: Class| class.is_whole() && class != Class::Bits;
                // A column of an engine whose columns hold values of any type is not split.
                match first.filter(|column| whole(column.kind.class) && engine.read_key("").is_none()) {
                    Some(column) => self.source.quoted(&column.name),
                    None => return Ok(Vec::new()),
                }
            }
            Resume::Restart => return Ok(Vec::new()),
        };
        if table.rows < (table.page.rows * PAGES_TO_SPLIT * jobs) as u64 {
            return Ok(Vec::new());
        }
        let filter = table.filtered();
        let mut end = |of: &str| -> Result<Option<i64>> {
            let value = self.source.value(&format!("SELECT {of}({name}) FROM {}{filter}", table.from))?;
            Ok(value.and_then(|text| text.parse().ok()))
        };
        let (Some(first), Some(last)) = (end("MIN")?, end("MAX")?) else { return Ok(Vec::new()) };
        let parts = (jobs * RANGES) as i128;
        let width = (i128::from(last) - i128::from(first)) / parts + 1;
        let begins = (1..parts).map(|part| i128::from(first) + part * width);
        Ok(begins
            .take_while(|begin| *begin <= i128::from(last))
            .filter_map(|begin| begin.try_into().ok())
            .collect())
    }

    /// Makes the foreign keys. Returns those that the server refuses.
    fn foreign_keys(&mut self, plan: &Plan, resumed: bool) -> Result<Vec<(String, Error)>> {
        let known: Vec<String> = if resumed {
            let catalog = self.target.engine.catalog(&mut self.target)?;
            let keys = catalog.tables.into_iter().flat_map(|table| table.foreign);
            keys.map(|key| key.name).collect()
        } else {
            Vec::new()
        };
        let mut refused = Vec::new();
        for (table, key) in
            plan.tables.iter().flat_map(|table| table.foreign.iter().map(move |key| (table, key)))
        {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
            }
            if known.contains(&key.name) {
                continue;
            }
            if let Err(error) = self.target.run(&key.sql) {
                refused.push((format!("{}.{}", table.to, key.name), only_refused(error)?));
            }
        }
        Ok(refused)
    }
}

/// Begins the transaction in which a side is read.
pub fn begin_reading(side: &mut Side) -> Result<()> {
    match side.engine.begin_reading() {
        Some(statement) => side.run(statement),
        None => side.control(&Operation::Begin),
    }
}

fn show(told: &Told<'_>, events: &mut dyn FnMut(Event<'_>)) {
    match told {
        Told::Progress { table, step, rows } => events(Event::Progress { table, step: *step, rows: *rows }),
        Told::Table(done) => events(Event::Table(done)),
    }
}

/// The error of a statement that the server refused; others end the copy.
pub(crate) fn only_refused(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::ConnectionLost | ErrorKind::Protocol | ErrorKind::Timeout | ErrorKind::Interrupted => {
            Err(error)
        }
        _ => Ok(error),
    }
}

/// The error of all indexes and foreign keys that the server refused.
fn refusals(refused: &[(String, Error)]) -> Option<Error> {
    let (_, first) = refused.first()?;
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(",");
    let what = format!(
        "all rows were copied and verified, but the target refused {names}; the first reason: {first}"
    );
    Some(
        Error::new(ErrorKind::Server, what)
            .hint(format!("the same command tries them again; --leave-out {names} leaves them out")),
    )
}

impl<'d> Doing<'d, '_> {
    /// Does what is left, until nothing is or something fails.
    fn all(&self, source: &mut Side, target: &mut Side, pool: &Pool<'d>) {
        while let Some(item) = pool.next() {
            let (table, done) = match item {
                Item::Rows { at, table, range, bounds, now } => {
                    let shared = |rows| {
                        (self.tell)(Told::Progress { table, step: Step::Copy, rows: pool.add(at, rows) });
                    };
                    let id = (range, pool.state(at));
                    let done = self.rows(source, target, table, bounds, now, &id, &shared);
                    let done = done.and_then(|(now, part)| {
                        let Some(whole) = pool.copied(at, range, now, &part) else { return Ok(()) };
                        self.state.set_table(target, &table.to, &whole)
                    });
                    (table, done)
                }
                Item::Finish { at, table, now } => {
                    let done = self.finish(source, target, table, now, pool, at);
                    let done = done.map(|done| {
                        pool.finish(at, done.clone());
                        (self.tell)(Told::Table(done));
                    });
                    (table, done)
                }
            };
            if let Err(error) = done {
                self.halt.fail(error.context(format!("table {}", table.name)));
            }
            pool.wake();
        }
    }

    /// Copies the rows of a range of a table.
    #[expect(clippy::too_many_arguments, reason = "a range of a table")]
    fn rows(
        &self,
        source: &mut Side,
        target: &mut Side,
        table: &TablePlan,
        bounds: Range,
        mut now: OfTable,
        (range, whole): &(usize, OfTable),
        progress: &dyn Fn(u64),
    ) -> Result<(OfTable, TableDone)> {
        let mut done = TableDone::default();
        let start = Instant::now();
        let reader = Reader::new(source.engine, table, now.last().as_ref(), bounds)?;
        let mut writer = Writer::new(target.engine, table);
        stream(source, &reader, self.halt, |pages| {
            for read in pages {
                let (mut page, last) = read?;
                // The reader may have read the rest of the table already.
                self.halt.check()?;
                let mut next = now.clone();
                next.set_last(last.as_ref());
                let rows = page.rows() as u64;
                let mut insert = |target: &mut Side, page: &crate::page::Page, next: &mut OfTable| {
                    next.rows = now.rows + page.rows() as u64;
                    in_transaction(target, |target| {
                        writer.insert(target, page)?;
                        self.state.set_range(target, &table.to, whole, *range, next)
                    })
                };
                if let Err(error) = insert(target, &page, &mut next) {
                    let Some(file) = self.reject else { return Err(error) };
                    only_refused(error)?;
                    let refused = refused_rows(target, table, &page)?;
                    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                    for (row, reason) in &refused {
                        next.reject(table, &page, *row);
                        write_rejected(&mut *file, table, &page, *row, reason)?;
                    }
                    done.rejected += refused.len() as u64;
                    page = page.with_rows(|row| !refused.iter().any(|(refused, _)| *refused == row));
                    insert(target, &page, &mut next)?;
                }
                now = next;
                done.copied += page.rows() as u64;
                done.bytes += page.size();
                progress(rows);
            }
            Ok(())
        })?;
        writer.end(target)?;
        now.phase = Phase::Copied;
        now.last = None;
        self.state.set_range(target, &table.to, whole, *range, &now)?;
        done.copy = start.elapsed();
        Ok((now, done))
    }

    /// Verifies a table whose rows are copied, and makes its indexes.
    fn finish(
        &self,
        source: &mut Side,
        target: &mut Side,
        table: &'d TablePlan,
        mut now: OfTable,
        pool: &Pool<'d>,
        at: usize,
    ) -> Result<TableDone> {
        self.halt.check()?;
        let mut done = pool.done(at);
        done.name.clone_from(&table.name);
        (done.rows, done.rejected) = (now.rows, now.rejected);
        let start = Instant::now();
        // Also what an earlier process has verified: the source may have changed since.
        if now.phase >= Phase::Copied && self.parts != Parts::Schema {
            let mut progress = |rows| (self.tell)(Told::Progress { table, step: Step::Verify, rows });
            let compare = |target: &mut Side| verify(source, target, table, &now, self.halt, &mut progress);
            done.rows = in_transaction(target, compare)?;
            if now.phase == Phase::Copied {
                now.phase = Phase::Verified;
                self.state.set_table(target, &table.to, &now)?;
            }
            done.verify = start.elapsed();
        }
        let start = Instant::now();
        if now.phase == Phase::Verified {
            (self.tell)(Told::Progress { table, step: Step::Index, rows: done.rows });
            let indexes = if self.parts == Parts::Data { &[][..] } else { &table.indexes };
            let known =
                if indexes.is_empty() { Vec::new() } else { indexes_of(target, &table.to, self.there)? };
            let mut all = true;
            for index in indexes.iter().filter(|index| !known.contains(&index.name)) {
                self.halt.check()?;
                if let Err(error) = target.run(&index.sql) {
                    let error = only_refused(error)?;
                    // Otherwise the server has completed the statement of a process that was killed.
                    if !indexes_of(target, &table.to, std::slice::from_ref(&table.to))?.contains(&index.name)
                    {
                        pool.refuse((format!("{}.{}", table.to, index.name), error));
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

/// Appends a row that the target refused to the file of such rows.
fn write_rejected(
    file: &mut dyn Write,
    table: &TablePlan,
    page: &crate::page::Page,
    row: usize,
    reason: &Error,
) -> Result<()> {
    let values =
        table.columns.iter().enumerate().map(|(at, column)| (column.name.clone(), page.cell(row, at).json()));
    let values: serde_json::Map<String, serde_json::Value> = values.collect();
    let line = serde_json::json!({ "table": table.name, "row": values, "reason": reason.to_string() });
    writeln!(file, "{line}")
        .and_then(|()| file.flush())
        .map_err(|error| Error::new(ErrorKind::Environment, format!("the file of --reject: {error}")))
}

/// The indexes of a table that an earlier process made. A new table has none.
fn indexes_of(target: &mut Side, table: &str, there: &[String]) -> Result<Vec<String>> {
    if !there.iter().any(|name| name == table) {
        return Ok(Vec::new());
    }
    let mut catalog = target.engine.catalog(target)?;
    let indexes =
        catalog.table_mut(table).map(|table| std::mem::take(&mut table.indexes)).unwrap_or_default();
    let native = catalog.table_mut(table).and_then(|table| table.native.take()).unwrap_or_default();
    let named = native.later.into_iter().map(|made| made.name).filter(|name| !name.is_empty());
    Ok(indexes.into_iter().map(|index| index.name).chain(named).collect())
}

/// Has the server give numbers after the largest one that was copied, and after those of rows that were deleted.
fn restart_numbers(target: &mut Side, table: &TablePlan) -> Result<()> {
    for (column, after) in table.columns.iter().filter_map(|column| Some((column, column.identity?))) {
        let (name, of) = (target.quoted(&column.name), target.quoted(&table.to));
        let largest = target.value(&format!("SELECT MAX({name}) FROM {of}"))?;
        let next = (largest.and_then(|text| text.parse::<i128>().ok()).unwrap_or(0).max(0) + 1).max(after);
        if let Some(sql) = target.engine.restart_identity(&of, &name, next) {
            target.run(&sql)?;
        }
    }
    Ok(())
}

fn refuse_existing<'a>(
    target: &Side,
    there: &[String],
    wanted: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let existing: Vec<&str> = wanted.filter(|name| there.contains(name)).map(String::as_str).collect();
    if existing.is_empty() {
        return Ok(());
    }
    let (noun, verb) = if existing.len() == 1 { ("table", "exists") } else { ("tables", "exist") };
    let what =
        format!("{}: {noun} {} {verb}, and the copy did not make it", target.name, existing.join(", "));
    let what = what.replace("exist, and the copy did not make it", "exist, and the copy did not make them");
    Err(Error::new(ErrorKind::NotOurs, what).hint(
        "nothing was copied; remove or rename it, use an empty database, or leave it out with --tables",
    ))
}

/// The error of differences that the user did not accept, all of them.
pub fn refusal(plan: &Plan, accepted: &Accepted) -> Option<Error> {
    let refused: Vec<&Issue> = plan.refused(accepted);
    if refused.is_empty() {
        return None;
    }
    let mut kinds: Vec<&str> = refused.iter().map(|issue| issue.kind.name()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let what = format!("{} differences do not map, and nothing was copied", refused.len());
    Some(Error::unsupported(what).hint(format!("accept them by name: --accept {}", kinds.join(","))))
}
