//! A whole copy: plan, tables, rows, comparison, indexes, foreign keys. It can end anywhere and be continued.

use crate::issue::{Accepted, Issue};
use crate::plan::{Plan, Resume, TablePlan, Wanted, plan};
use crate::rows::{Reader, Writer, check, in_transaction, stream};
use crate::sql::Side;
use crate::state::{self, OfTable, Phase, State, Whole};
use crate::verify::verify;
use kurabe_core::driver::Namespace;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

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
#[derive(Clone, Debug, Default)]
pub struct TableDone {
    /// Its name.
    pub name: String,
    /// All its rows.
    pub rows: u64,
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

impl Copy<'_> {
    /// Prepares both sessions and plans the copy. Changes nothing.
    ///
    /// # Errors
    /// Those of [`plan`].
    pub fn plan(&mut self, wanted: &Wanted) -> Result<Plan> {
        for statement in self.source.engine.reading() {
            self.source.run(statement)?;
        }
        // One transaction, so that all tables are read as they were at one time, where the engine can do that.
        match self.source.engine.begin_reading() {
            Some(statement) => self.source.run(statement)?,
            None => self.source.control(&Operation::Begin)?,
        }
        for statement in self.target.engine.writing() {
            self.target.run(statement)?;
        }
        let mut facts = self.target.engine.facts(&mut self.target)?;
        facts.same_server = self.source.engine.name() == self.target.engine.name()
            && self.source.engine.facts(&mut self.source)?.edition == facts.edition;
        plan(&mut self.source, self.target.engine, &facts, wanted)
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
        let whole = Whole {
            fingerprint: self.fingerprint(plan),
            source: self.source.name.clone(),
            tables: plan.tables.iter().map(|table| table.name.clone()).collect(),
        };
        let there = self.target.engine.catalog(&mut self.target)?;
        // A process may have ended between its entry in the ownership table and the table itself, or its first row.
        let mut resumed = state::exists(namespace)? && there.names.iter().any(|name| name == state::NAME);
        let there = if restart && resumed {
            self.discard(namespace)?;
            resumed = false;
            self.target.engine.catalog(&mut self.target)?
        } else {
            there
        };
        let state = if resumed {
            let state = State::open(&mut self.target)?;
            match state.whole(&mut self.target)? {
                Some(found) if found == whole => {}
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
            refuse_existing(&self.target, &there.names, whole.tables.iter())?;
            let state = State::create(namespace, &mut self.target)
                .map_err(|error| error.context(&self.target.name))?;
            state.set_whole(&mut self.target, &whole)?;
            state
        };
        self.begun = true;
        for named in &plan.before {
            match there.before.iter().find(|known| known.name == named.name) {
                None => self.target.run(&named.sql)?,
                // A type may be shared; a sequence may be another one's, unless an earlier process of this copy made it.
                Some(known)
                    if known.sql == named.sql
                        && (resumed || restart || !named.sql.starts_with("CREATE SEQUENCE")) => {}
                Some(known) => {
                    let what = format!(
                        "{}: {} exists, and is another one: {}",
                        self.target.name, named.name, known.sql
                    );
                    return Err(Error::new(ErrorKind::NotOurs, what).hint("remove or rename it"));
                }
            }
        }
        let mut begun = Vec::new();
        for table in &plan.tables {
            begun.push(state.table(&mut self.target, &table.name)?);
        }
        let new = plan.tables.iter().zip(&begun).filter(|(_, begun)| begun.is_none());
        refuse_existing(&self.target, &there.names, new.map(|(table, _)| &table.name))?;
        // The whole schema first, so that what the server refuses is known before rows are copied.
        let mut made = Vec::new();
        for (table, begun) in plan.tables.iter().zip(begun) {
            let exists = there.names.contains(&table.name);
            let one = self.make(table, begun, exists, &state);
            made.push(one.map_err(|error| error.context(format!("table {}", table.name)))?);
        }
        let mut done = Vec::new();
        for (table, now) in plan.tables.iter().zip(made) {
            let one = self.table(table, now, &there.names, &state, events);
            let one = one.map_err(|error| error.context(format!("table {}", table.name)))?;
            events(Event::Table(&one));
            done.push(one);
        }
        self.foreign_keys(plan, resumed)?;
        plan.after.iter().try_for_each(|named| self.target.run(&named.sql))?;
        state.close(&mut self.target)?;
        state::remove(namespace)?;
        self.begun = false;
        // Only read.
        let _ = self.source.control(&Operation::Rollback);
        Ok(done)
    }

    /// Only a copy with the same source and statements is continued.
    fn fingerprint(&self, plan: &Plan) -> String {
        let mut hasher = DefaultHasher::new();
        self.source.name.hash(&mut hasher);
        for table in &plan.tables {
            table.create.hash(&mut hasher);
            // Statements without a name set positions of numbers, which change with the rows.
            let made = table.indexes.iter().chain(&table.foreign).filter(|made| !made.name.is_empty());
            made.for_each(|made| made.sql.hash(&mut hasher));
        }
        plan.before.iter().for_each(|made| made.sql.hash(&mut hasher));
        for column in plan.tables.iter().flat_map(|table| &table.columns) {
            for kind in &column.mend {
                (&column.name, kind).hash(&mut hasher);
            }
        }
        format!("{:016x}", hasher.finish())
    }

    /// Removes the tables of an unfinished copy, and its state.
    fn discard(&mut self, namespace: &mut dyn Namespace) -> Result<()> {
        let state = State::open(&mut self.target)?;
        let tables = state.whole(&mut self.target)?.map(|whole| whole.tables).unwrap_or_default();
        let there = self.target.engine.catalog(&mut self.target)?;
        // Tables that refer to others come after them.
        for table in tables.iter().rev() {
            if state.table(&mut self.target, table)?.is_some() && there.names.contains(table) {
                let sql = format!("DROP TABLE {}", self.target.quoted(table));
                self.target.run(&sql)?;
            }
        }
        state.close(&mut self.target)?;
        state::remove(namespace)
    }

    /// Makes a table that has no rows yet, or whose rows are copied again.
    fn make(
        &mut self,
        table: &TablePlan,
        begun: Option<OfTable>,
        exists: bool,
        state: &State,
    ) -> Result<OfTable> {
        check(self.stop)?;
        let mut now = begun.unwrap_or_else(|| OfTable::new(Phase::Making));
        let again = now.phase == Phase::Rows && (now.rows > 0 && table.resume == Resume::Restart || !exists);
        if now.phase == Phase::Making || again {
            now = OfTable::new(Phase::Making);
            state.set_table(&mut self.target, &table.name, &now)?;
            if exists {
                let sql = format!("DROP TABLE {}", self.target.quoted(&table.name));
                self.target.run(&sql)?;
            }
            self.target.run(&table.create)?;
            now.phase = Phase::Rows;
            state.set_table(&mut self.target, &table.name, &now)?;
        }
        Ok(now)
    }

    fn table(
        &mut self,
        table: &TablePlan,
        mut now: OfTable,
        there: &[String],
        state: &State,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<TableDone> {
        check(self.stop)?;
        let mut done = TableDone { name: table.name.clone(), ..TableDone::default() };
        let start = Instant::now();
        if now.phase == Phase::Rows {
            self.rows(table, &mut now, state, &mut done, events)?;
            now.phase = Phase::Copied;
            now.last = None;
            state.set_table(&mut self.target, &table.name, &now)?;
            done.copy = start.elapsed();
        }
        done.rows = now.rows;
        let start = Instant::now();
        // Also what an earlier process has verified: the source may have changed since.
        if now.phase >= Phase::Copied {
            let (source, stop) = (&mut self.source, self.stop);
            let mut progress = |rows| events(Event::Progress { table, step: Step::Verify, rows });
            let copied = now.rows;
            let compare = |target: &mut Side| verify(source, target, table, copied, stop, &mut progress);
            done.rows = in_transaction(&mut self.target, compare)?;
            if now.phase == Phase::Copied {
                now.phase = Phase::Verified;
                state.set_table(&mut self.target, &table.name, &now)?;
            }
            done.verify = start.elapsed();
        }
        let start = Instant::now();
        if now.phase == Phase::Verified {
            events(Event::Progress { table, step: Step::Index, rows: done.rows });
            let known = self.indexes_of(&table.name, there)?;
            for index in table.indexes.iter().filter(|index| !known.contains(&index.name)) {
                check(self.stop)?;
                if let Err(error) = self.target.run(&index.sql)
                    && !self.indexes_of(&table.name, std::slice::from_ref(&table.name))?.contains(&index.name)
                {
                    // Otherwise the server has completed the statement of a process that was killed.
                    return Err(error);
                }
            }
            self.restart_numbers(table)?;
            now.phase = Phase::Indexed;
            state.set_table(&mut self.target, &table.name, &now)?;
            done.index = start.elapsed();
        }
        Ok(done)
    }

    /// The indexes of a table that an earlier process made. A new table has none.
    fn indexes_of(&mut self, table: &str, there: &[String]) -> Result<Vec<String>> {
        if !there.iter().any(|name| name == table) {
            return Ok(Vec::new());
        }
        let mut catalog = self.target.engine.catalog(&mut self.target)?;
        let indexes =
            catalog.table_mut(table).map(|table| std::mem::take(&mut table.indexes)).unwrap_or_default();
        let native = catalog.table_mut(table).and_then(|table| table.native.take()).unwrap_or_default();
        let named = native.later.into_iter().map(|made| made.name).filter(|name| !name.is_empty());
        Ok(indexes.into_iter().map(|index| index.name).chain(named).collect())
    }

    fn rows(
        &mut self,
        table: &TablePlan,
        now: &mut OfTable,
        state: &State,
        done: &mut TableDone,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let target = &mut self.target;
        let reader = Reader::new(self.source.engine, table, now.last().as_ref())?;
        let mut writer = Writer::new(target.engine, table);
        let stop = self.stop;
        stream(&mut self.source, &reader, stop, |pages| {
            for read in pages {
                let (page, last) = read?;
                // The reader may have read the rest of the table already.
                check(stop)?;
                let mut next = now.clone();
                next.rows += page.rows() as u64;
                next.set_last(last.as_ref());
                in_transaction(target, |target| {
                    writer.insert(target, &page)?;
                    state.set_table(target, &table.name, &next)
                })?;
                *now = next;
                done.copied += page.rows() as u64;
                done.bytes += page.size();
                events(Event::Progress { table, step: Step::Copy, rows: now.rows });
            }
            Ok(())
        })?;
        writer.end(target)
    }

    /// Has the server give numbers after the largest one that was copied, and after those of rows that were deleted.
    fn restart_numbers(&mut self, table: &TablePlan) -> Result<()> {
        for (column, after) in table.columns.iter().filter_map(|column| Some((column, column.identity?))) {
            let (name, of) = (self.target.quoted(&column.name), self.target.quoted(&table.name));
            let largest = self.target.value(&format!("SELECT MAX({name}) FROM {of}"))?;
            let next =
                (largest.and_then(|text| text.parse::<i128>().ok()).unwrap_or(0).max(0) + 1).max(after);
            if let Some(sql) = self.target.engine.restart_identity(&of, &name, next) {
                self.target.run(&sql)?;
            }
        }
        Ok(())
    }

    fn foreign_keys(&mut self, plan: &Plan, resumed: bool) -> Result<()> {
        let known: Vec<String> = if resumed {
            let catalog = self.target.engine.catalog(&mut self.target)?;
            let keys = catalog.tables.into_iter().flat_map(|table| table.foreign);
            keys.map(|key| key.name).collect()
        } else {
            Vec::new()
        };
        let keys = plan.tables.iter().flat_map(|table| &table.foreign);
        for key in keys.filter(|key| !known.contains(&key.name)) {
            check(self.stop)?;
            self.target.run(&key.sql)?;
        }
        Ok(())
    }
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
