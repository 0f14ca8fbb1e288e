//! A whole copy: plan, tables, rows, comparison, indexes, foreign keys. It can end anywhere and be continued.

use crate::event::{Event, TableDone};
use crate::foreign;
use crate::ours::to_empty;
use crate::plan::Plan;
use crate::planner::plan;
use crate::pool::{Halt, Pool};
use crate::refused::{is_another, refusals, refuse_existing};
use crate::reject::Rejects;
use crate::sql::{Side, in_transaction, only_refused};
use crate::state::{self, State, Whole};
use crate::wanted::{Parts, Wanted};
use crate::worker::Worker;
use kurabe_core::driver::Namespace;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// The two sides of a copy.
pub struct Copy<'a> {
    /// The source. It is only read.
    pub source: Side,
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
    /// Further sessions of the source and the target, which were prepared by [`Copy::plan`].
    pub more: Vec<(Side, Side)>,
    /// Takes the rows that the target refuses, a JSON document a line.
    pub reject: Option<&'a Rejects>,
}

impl Copy<'_> {
    /// Prepares both sessions, and `more`, which see the same rows, and plans the copy. Changes nothing.
    ///
    /// # Errors
    /// Those of [`plan`]; [`Unsupported`](ErrorKind::Unsupported) if the server gives several sessions no common view, or
    /// the target takes rows from one session only.
    pub fn plan(&mut self, wanted: &Wanted, more: &mut [(Side, Side)]) -> Result<Plan> {
        let engine = self.source.engine;
        if !more.is_empty() && self.target.engine.has_one_writer {
            let what = format!("{} takes rows from one session at a time", self.target.engine.name);
            return Err(Error::unsupported(what).hint("use --jobs 1"));
        }
        let (mut sources, mut targets) = (vec![&mut self.source], vec![&mut self.target]);
        for (source, target) in more {
            sources.push(source);
            targets.push(target);
        }
        for source in &mut sources {
            let statements = engine.each_session.iter().chain(engine.reading);
            statements.copied().try_for_each(|statement| source.run(statement))?;
        }
        // One transaction, so that all tables are read as they were at one time, where the engine can do that.
        match sources.as_mut_slice() {
            [only] => only.begin_reading()?,
            all => engine.dialect.begin_together(all)?,
        }
        for target in targets {
            let engine = target.engine;
            let data_only = if wanted.parts == Parts::Data { engine.writing_into_keys } else { &[] };
            let statements = engine.each_session.iter().chain(engine.writing).chain(data_only);
            statements.copied().try_for_each(|statement| target.run(statement))?;
        }
        let mut facts = self.target.engine.dialect.facts(&mut self.target)?;
        facts.same_server =
            engine == self.target.engine && engine.dialect.facts(&mut self.source)?.edition == facts.edition;
        let there = match wanted.parts {
            Parts::Data => Some(self.target.engine.dialect.catalog(&mut self.target)?),
            _ => None,
        };
        plan(&mut self.source, self.target.engine, &facts, wanted, there.as_ref())
    }

    /// Copies. `namespace` is that of the target, which the caller has claimed.
    ///
    /// # Errors
    /// [`NotOurs`](ErrorKind::NotOurs) for a table that exists on the target; [`Mismatch`](ErrorKind::Mismatch) for a value
    /// that is not the same after the copy; [`Interrupted`](ErrorKind::Interrupted) after the user has stopped it;
    /// [`Server`](ErrorKind::Server) if only indexes or foreign keys were refused: all else is done; or a server's other error.
    /// The copy can be continued after all but the first.
    pub fn run(
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
            parts: plan.parts,
            ..Whole::default()
        };
        let mut there = self.target.engine.dialect.catalog(&mut self.target)?;
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
            (whole.columns, whole.ids) = (record.columns.clone(), record.ids.clone());
        }
        if restart && exists && !finished {
            self.discard(namespace, &record.take().unwrap_or_default(), &whole, &there)?;
            exists = false;
            there = self.target.engine.dialect.catalog(&mut self.target)?;
        }
        let resumed = exists && !finished;
        let state = if resumed {
            let state = State::open(&mut self.target)?;
            match record.as_ref() {
                Some(found) if found.is_same(&whole) => whole.clone_from(found),
                Some(found) => return Err(is_another(&self.target, found, &whole)),
                None => state.set_whole(&mut self.target, &whole)?,
            }
            events(Event::Resumed);
            state
        } else {
            if plan.parts == Parts::Data {
                let full = to_empty(&mut self.target, &whole, &there, &plan.tables, how.truncate)?;
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
        self.needed(plan, &there.before, resumed || restart)?;
        let mut begun = Vec::new();
        for table in &plan.tables {
            begun.push(state.table(&mut self.target, &table.to)?);
        }
        if plan.parts != Parts::Data {
            let new = plan.tables.iter().zip(&begun).filter(|(_, begun)| begun.is_none());
            refuse_existing(&self.target, &there.names, new.clone().map(|(table, _)| &table.to))?;
            for (table, _) in new {
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                whole.columns.insert(table.to.clone(), columns);
            }
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
        let pool = Pool::new(works, &halt, plan.parts == Parts::Data);
        self.work(&pool, state, plan.parts, &there.names, how.reject, how.more, events)?;
        let (done, mut refused) = pool.end();
        if plan.parts == Parts::Data {
            foreign::prove(&mut self.target, plan, &there)?;
        } else {
            refused.extend(self.foreign_keys(plan, resumed)?);
        }
        if let Some(error) = refusals(plan.parts, &refused) {
            return Err(error);
        }
        plan.after.iter().try_for_each(|named| self.target.run(&named.sql))?;
        events(Event::Done(&done));
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
        reject: Option<&'w Rejects>,
        mut more: Vec<(Side, Side)>,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let halt = pool.halt;
        let (source, target) = (&mut self.source, &mut self.target);
        if more.is_empty() {
            let events = RefCell::new(events);
            let notify = |event: Event<'w>| (*events.borrow_mut())(event);
            let worker = Worker { state, halt, reject, parts, there, notify: &notify };
            worker.run(source, target, pool);
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
                        let worker = Worker { state, halt, reject, parts, there, notify: &notify };
                        worker.run(source, target, pool);
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
        halt.error().map_or(Ok(()), Err)
    }

    /// Only a copy with the same source and tables is continued. Indexes and foreign keys may be left out then.
    fn fingerprint(&self, plan: &Plan) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.source.name, plan.parts).hash(&mut hasher);
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

    /// Makes the foreign keys. Returns those that the server refuses.
    fn foreign_keys(&mut self, plan: &Plan, resumed: bool) -> Result<Vec<(String, Error)>> {
        let known: Vec<String> = if resumed {
            let catalog = self.target.engine.dialect.catalog(&mut self.target)?;
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
