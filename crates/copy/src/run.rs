//! A whole copy: plan, tables, rows, comparison, indexes, foreign keys. It can end anywhere and be continued.

use crate::catalog::{Catalog, Named, named};
use crate::engines::queries::file;
use crate::event::{Event, TableDone};
use crate::foreign;
use crate::issue::{Issue, IssueKind};
use crate::leftovers::{read_roles, try_entries};
use crate::make::shared;
use crate::ours::{know, made_before, to_empty};
use crate::plan::{Plan, TablePlan};
use crate::planner::plan;
use crate::pool::{Halt, Pool};
use crate::refused::{is_another, refusals, refuse_existing};
use crate::reject::Rejects;
use crate::script::{Entry, executed};
use crate::sql::{Side, in_transaction, only_refused};
use crate::state::{self, State, Whole};
use crate::verify::Of;
use crate::wanted::{Parts, Wanted};
use crate::worker::Worker;
use kurabe_core::driver::Namespace;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, Result};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

/// What opens a session of a side.
pub type Open<'a> = &'a dyn Fn(Of) -> Result<Side>;

/// The two sides of a copy.
pub struct Copy<'a> {
    /// The source. It is only read.
    pub source: Side,
    pub target: Side,
    /// Set when the user stops the copy.
    pub stop: &'a AtomicBool,
    /// Opens a further session of a side, if a copy needs one.
    pub open: Option<Open<'a>>,
    /// The session that keeps others from changing tables without transactions.
    pub holder: Option<Side>,
    /// Whether the target holds the state of this copy, so that it can be continued.
    pub begun: bool,
}

pub(crate) fn names_of(table: &TablePlan) -> Vec<String> {
    table.columns.iter().map(|column| column.name.clone()).collect()
}

/// Gives a session the settings of its engine, and executes these statements.
pub(crate) fn prepare(side: &mut Side, statements: &[&str]) -> Result<()> {
    side.engine.dialect.set(side, &file(side.engine).settings)?;
    statements.iter().try_for_each(|statement| side.run(statement))
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
    /// Further sessions of the source and the target, which were prepared by [`Copy::plan`].
    pub more: Vec<(Side, Side)>,
    /// Takes the rows that the target refuses, a JSON document a line.
    pub reject: Option<&'a Rejects>,
}

impl<'a> Copy<'a> {
    /// A copy that `stop` ends.
    pub fn new(source: Side, target: Side, stop: &'a AtomicBool) -> Self {
        Self { source, target, stop, open: None, holder: None, begun: false }
    }

    /// Prepares both sessions, and `more`, which see the same rows, and plans the copy. Changes nothing.
    ///
    /// # Errors
    /// Those of [`plan`]; [`Unsupported`](kurabe_core::ErrorKind::Unsupported) if the server gives several sessions no common view, or
    /// the target takes rows from one session only.
    pub fn plan(&mut self, wanted: &Wanted, more: &mut [(Side, Side)]) -> Result<Plan> {
        let engine = self.source.engine;
        if !more.is_empty() && self.target.engine.has_one_writer {
            let what = format!("{} takes rows from one session at a time", self.target.engine.name);
            return Err(Error::unsupported(what).hint("use --jobs 1"));
        }
        let into_keys = if wanted.parts == Parts::Data { self.target.engine.writing_into_keys } else { &[] };
        let others = more.iter_mut().map(|(source, target)| (source, target));
        for (source, target) in std::iter::once((&mut self.source, &mut self.target)).chain(others) {
            prepare(source, engine.reading)?;
            prepare(target, &[target.engine.writing, into_keys].concat())?;
        }
        self.refuse_itself()?;
        let mut without = self.source.without_transactions()?;
        without.retain(|name| wanted.is_chosen(name));
        let open = self.open.filter(|_| !without.is_empty());
        let mut holder = open.map(|open| open(Of::Source)).transpose()?;
        let mut unheld: Vec<(String, String)> = Vec::new();
        let mut hold = || {
            match &mut holder {
                None => unheld.extend(without.drain(..).map(|name| (name, "it is not locked".to_owned()))),
                Some(holder) => {
                    prepare(holder, engine.reading)?;
                    unheld = engine.dialect.hold(holder, &without)?;
                }
            }
            Ok(())
        };
        let mut sources = vec![&mut self.source];
        sources.extend(more.iter_mut().map(|(source, _)| source));
        // One transaction, so that all tables are read as they were at one time, where the engine can do that.
        match sources.as_mut_slice() {
            [only] => hold().and_then(|()| only.begin_reading())?,
            all => engine.dialect.begin_together(all, &mut hold)?,
        }
        self.holder = holder;
        let mut facts = self.target.engine.dialect.facts(&mut self.target)?;
        if engine == self.target.engine {
            let own = engine.dialect.facts(&mut self.source)?;
            facts.same_server = own.edition == facts.edition;
            read_roles(&mut self.target, &mut facts)?;
            if own.encoding == facts.encoding {
                facts.accepts_any_bytes = facts.encoding == "SQL_ASCII";
                facts.encoding.clear();
            }
        }
        let there = match wanted.parts {
            Parts::Data => Some(self.target.catalog()?),
            _ => None,
        };
        let mut plan = plan(&mut self.source, self.target.engine, &facts, wanted, there.as_ref())?;
        for (object, why) in unheld {
            let detail = format!("it has no transactions, and may change while it is read: {why}");
            plan.issues.push(Issue::new(IssueKind::Unlocked, object, detail));
        }
        let mut entries = plan.entries(self.target.engine);
        let is_tried = facts.same_server && self.target.engine.names_objects;
        if is_tried && entries.iter().any(|(_, entry)| !matches!(entry, Entry::Comment(_))) {
            let there = self.target.catalog()?;
            self.rehearse(&plan, &there, None, &mut |target| try_entries(target, &mut entries))?;
            plan.tried = Some(entries);
        }
        Ok(plan)
    }

    /// Refuses a copy of a database to itself, by whatever names it is reached.
    fn refuse_itself(&mut self) -> Result<()> {
        let engine = self.source.engine;
        if engine != self.target.engine {
            return Ok(());
        }
        let places = [engine.dialect.place(&mut self.source)?, engine.dialect.place(&mut self.target)?];
        let [Some([source, of]), Some([target, other])] = places else { return Ok(()) };
        if source == target && (of == other || of.is_empty() || other.is_empty()) {
            return Err(Error::usage("source and target are the same database, by the word of the server"));
        }
        Ok(())
    }

    /// Copies. `namespace` is that of the target, which the caller has claimed.
    ///
    /// # Errors
    /// [`NotOurs`](kurabe_core::ErrorKind::NotOurs) for a table that exists on the target; [`Mismatch`](kurabe_core::ErrorKind::Mismatch) for a value
    /// that is not the same after the copy; [`Interrupted`](kurabe_core::ErrorKind::Interrupted) after the user has stopped it;
    /// [`Server`](kurabe_core::ErrorKind::Server) if only indexes or foreign keys were refused: all else is done; or a server's other error.
    /// The copy can be continued after all but the first.
    pub fn run(
        &mut self,
        plan: &Plan,
        namespace: &mut dyn Namespace,
        how: How<'_>,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<TableDone>> {
        let mut whole = Whole {
            fingerprint: self.fingerprint(plan),
            source: self.source.name.clone(),
            tables: plan.tables.iter().map(|table| table.to.clone()).collect(),
            parts: plan.parts,
            ..Whole::default()
        };
        let mut there = self.target.catalog()?;
        let (mut exists, mut record) = self.record(namespace, &there)?;
        let finished = record.as_ref().is_some_and(|record| record.done);
        if let Some(record) = &record {
            (whole.columns, whole.ids) = (record.columns.clone(), record.ids.clone());
        }
        let known = record.as_ref().filter(|_| !finished).map(|record| record.shared.clone());
        whole.shared = known.unwrap_or_else(|| shared(plan, &there));
        whole.kept = how.keep || plan.parts != Parts::All || finished;
        let made = if plan.parts == Parts::Data {
            made_before(&mut self.target, &whole, &there)?
        } else {
            whole.tables.clone()
        };
        if how.restart && exists && !finished {
            self.discard(namespace, &record.take().unwrap_or_default(), &whole, &there)?;
            exists = false;
            there = self.target.catalog()?;
        }
        let (resumed, kept) = (exists && !finished, whole.kept);
        let state = if resumed {
            let state = State::open(&mut self.target)?;
            match record.as_ref() {
                Some(found) if found.is_same(&whole) => whole.clone_from(found),
                Some(found) => return Err(is_another(&self.target, found, &whole)),
                None => state.set_whole(&mut self.target, &whole)?,
            }
            whole.kept = kept;
            events(Event::Resumed);
            state
        } else {
            if plan.parts == Parts::Data {
                let full = to_empty(&mut self.target, &there, &plan.tables, how.truncate.then_some(&made))?;
                in_transaction(&mut self.target, |target| {
                    full.iter().try_for_each(|of| target.run(&format!("DELETE FROM {of}")))
                })?;
            } else {
                refuse_existing(&self.target, &there.names, whole.tables.iter())?;
            }
            let state = State::create(namespace, &mut self.target)
                .map_err(|error| error.context(&self.target.name))?;
            state.set_whole(&mut self.target, &whole)?;
            state
        };
        self.begun = true;
        let begun = plan.tables.iter().map(|table| state.table(&mut self.target, &table.to));
        let begun = begun.collect::<Result<Vec<_>>>()?;
        if plan.parts != Parts::Data && begun.iter().all(Option::is_none) {
            let refused = self.rehearse(plan, &there, Some((&state, &mut whole)), &mut |_| Ok(()))?;
            if let Some(error) = refusals(None, &refused) {
                return self.end(namespace, state, &mut whole, finished, &[]).and(Err(error));
            }
        }
        self.needed(plan, &there, &whole)?;
        if plan.parts != Parts::Data {
            let new = plan.tables.iter().zip(&begun).filter(|(_, begun)| begun.is_none());
            refuse_existing(&self.target, &there.names, new.clone().map(|(table, _)| &table.to))?;
            whole.columns.extend(new.map(|(table, _)| (table.to.clone(), names_of(table))));
            state.set_whole(&mut self.target, &whole)?;
        }
        // The whole schema first, so that what the server refuses is known before rows are copied.
        let mut works = Vec::new();
        let jobs = how.more.len() + 1;
        let halt = Halt::new(self.stop);
        for (table, begun) in plan.tables.iter().zip(begun) {
            halt.check()?;
            let one = self.make(table, begun, &there, &state, &mut whole, jobs);
            works.push(one.map_err(|error| error.context(format!("table {}", table.name)))?);
        }
        how.reject.map_or(Ok(()), |file| file.keep(&whole.fingerprint, &works))?;
        let pool = Pool::new(works, &halt, plan.parts);
        let worked = self.work(&pool, state, &there.names, how.reject, how.more, events);
        let worked = worked
            .map(|()| pool.end())
            .and_then(|(done, refused)| Ok((done, self.after_rows(plan, &there, &whole, refused, resumed)?)));
        // Also what a copy keeps that failed.
        let flushed = self.flush(&whole, how.reject);
        let ((done, refused), state) = (worked?, flushed?);
        if let Some(error) = refusals(Some(plan.parts), &refused) {
            return state.close(&mut self.target).and(Err(error));
        }
        events(Event::Done(&done));
        self.end(namespace, state, &mut whole, kept, &made)?;
        self.holder = None;
        // Only read.
        let _ = self.source.control(&Operation::Rollback);
        Ok(done)
    }

    /// Whether there is a state on the target, and what it says.
    fn record(&mut self, namespace: &mut dyn Namespace, there: &Catalog) -> Result<(bool, Option<Whole>)> {
        // A process may have ended between its entry in the ownership table and the table itself, or its first row.
        if !state::exists(namespace)? || !there.names.iter().any(|name| name == state::NAME) {
            return Ok((false, None));
        }
        let state = State::open(&mut self.target)?;
        let record = state.whole(&mut self.target)?;
        state.close(&mut self.target)?;
        Ok((true, record))
    }

    /// Makes or proves the foreign keys, and executes the statements after all rows unless the target refused some of what is made.
    fn after_rows(
        &mut self,
        plan: &Plan,
        there: &Catalog,
        whole: &Whole,
        mut refused: Vec<(String, Error)>,
        resumed: bool,
    ) -> Result<Vec<(String, Error)>> {
        if plan.parts == Parts::Data {
            foreign::prove(&mut self.target, plan, there)?;
        }
        let now = resumed.then(|| self.target.catalog()).transpose()?;
        for table in plan.tables.iter().filter(|_| plan.parts != Parts::Data) {
            // Other tables may have keys of the same names.
            let known = now.as_ref().and_then(|now| named(&now.tables, |known| &known.name, &table.to));
            let is_made =
                |name: &String| known.is_some_and(|known| known.foreign.iter().any(|key| key.name == *name));
            for key in table.foreign.iter().filter(|key| !is_made(&key.name)) {
                Halt::new(self.stop).check()?;
                if let Err(error) = self.target.run(&key.sql) {
                    refused.push((format!("{}.{}", table.to, key.name), only_refused(error)?));
                }
            }
        }
        // A shared type stays as others made it, and an earlier process of this copy may have executed some.
        let exists = |made: &Named| there.after.iter().any(|(_, known)| executed(&known.sql) == made.sql);
        let is_done = |made: &Named| whole.shared.contains(&made.name) || exists(made);
        let mut after = plan.after.iter().filter(|(_, made)| refused.is_empty() && !is_done(made));
        after.try_for_each(|(_, made)| self.target.run(&made.sql))?;
        Ok(refused)
    }

    /// Has a last commit of the target wait for the disk, with all before it, and the file of refused rows before.
    fn flush(&mut self, whole: &Whole, reject: Option<&Rejects>) -> Result<State> {
        reject.map_or(Ok(()), Rejects::flush)?;
        self.target.engine.before_last_commit.iter().try_for_each(|sql| self.target.run(sql))?;
        let state = State::open(&mut self.target)?;
        state.set_whole(&mut self.target, whole)?;
        Ok(state)
    }

    /// Ends the state on the target, or keeps it as the record of what was made.
    fn end(
        &mut self,
        namespace: &mut dyn Namespace,
        state: State,
        whole: &mut Whole,
        kept: bool,
        made: &[String],
    ) -> Result<()> {
        if kept {
            whole.done = true;
            know(&mut self.target, whole, made)?;
            state.set_whole(&mut self.target, whole)?;
        }
        state.close(&mut self.target)?;
        if !kept {
            state::remove(namespace)?;
        }
        self.begun = false;
        Ok(())
    }

    /// Copies and verifies all tables, with as many threads as there are sessions. With one, it is this thread.
    fn work<'w>(
        &'w mut self,
        pool: &Pool<'w>,
        state: State,
        there: &'w [String],
        reject: Option<&'w Rejects>,
        mut more: Vec<(Side, Side)>,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let (source, target) = (&mut self.source, &mut self.target);
        if more.is_empty() {
            let events = RefCell::new(events);
            let notify = |event: Event<'w>| (*events.borrow_mut())(event);
            let worker = Worker { state, pool, reject, there, notify: &notify, open: self.open };
            worker.run(source, target);
            worker.state.close(target)?;
        } else {
            let (send, receive) = channel();
            let mut states = vec![state];
            for (_, target) in &mut more {
                states.push(State::open(target)?);
            }
            std::thread::scope(|scope| {
                let others = more.iter_mut().map(|(source, target)| (source, target));
                let sides = std::iter::once((source, target)).chain(others);
                for ((source, target), state) in sides.zip(states) {
                    let send = send.clone();
                    scope.spawn(move || {
                        // It is received as long as a thread may send.
                        let notify = |event: Event<'w>| drop(send.send(event));
                        let worker = Worker { state, pool, reject, there, notify: &notify, open: None };
                        worker.run(source, target);
                        // The connection ends with the copy.
                        let _ = worker.state.close(target);
                    });
                }
                drop(send);
                receive.into_iter().for_each(events);
            });
            for (source, target) in more {
                // Only read; and whatever was written is committed.
                let _ = (source.session.close(), target.session.close());
            }
        }
        pool.halt.error().map_or(Ok(()), Err)
    }

    /// Only a copy with the same source and tables is continued. Indexes and foreign keys may be left out then.
    fn fingerprint(&self, plan: &Plan) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.source.name, plan.parts).hash(&mut hasher);
        plan.tables.iter().for_each(|table| (&table.create, &table.filter, &table.resume).hash(&mut hasher));
        plan.before.iter().for_each(|made| made.sql.hash(&mut hasher));
        for column in plan.tables.iter().flat_map(|table| &table.columns) {
            column.mend.iter().for_each(|mend| (&column.name, mend).hash(&mut hasher));
        }
        format!("{:016x}", hasher.finish())
    }
}
