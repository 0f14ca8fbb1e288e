//! Makes what tables need and the tables, and removes those of an unfinished copy.

use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::ours::{check, know};
use crate::plan::{Plan, Resume, TablePlan};
use crate::pool::{Halt, Work};
use crate::refused::is_another;
use crate::run::{Copy, names_of};
use crate::script::executed;
use crate::splits::splits;
use crate::sql::{Side, in_transaction, only_refused};
use crate::state::{self, OfTable, Phase, State, Whole};
use crate::wanted::Parts;
use kurabe_core::driver::Namespace;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
use std::hash::{BuildHasher as _, RandomState};

/// The point in a trial's transaction to which a refused statement is taken back.
pub(crate) const SAVED: &str = "kurabe_copy_trial";

/// The types and sequences that tables need and that are on the target.
pub(crate) fn shared(plan: &Plan, there: &Catalog) -> Vec<String> {
    // An extension may have the name of a table, which has comments of its own.
    let is_table = |name: &String| plan.tables.iter().any(|table| table.to == *name);
    let names = plan.before.iter().map(|named| &named.name).filter(|name| !is_table(name));
    names.filter(|name| there.before().any(|known| known.name == **name)).cloned().collect()
}

impl Copy<'_> {
    /// Makes the types and sequences that tables need.
    pub(crate) fn needed(&mut self, plan: &Plan, there: &Catalog, whole: &Whole) -> Result<()> {
        // A type of others keeps its constraints: none of it is added by this copy.
        let unproven = |after: &[(IssueKind, Named)], of: &str| {
            let of = after.iter().filter(|(kind, made)| *kind == IssueKind::Constraint && made.name == of);
            of.map(|(_, made)| executed(&made.sql)).collect::<Vec<_>>()
        };
        for named in &plan.before {
            let is_same = || unproven(&there.after, &named.name) == unproven(&plan.after, &named.name);
            match there.before().find(|known| known.name == named.name) {
                None => self.target.run(&named.sql)?,
                // A type may be shared; a sequence may be another one's, unless an earlier process of this copy made it.
                Some(known)
                    if executed(&known.sql) == named.sql
                        && (!whole.shared.contains(&named.name)
                            || !there.sequences.contains(known) && is_same()) => {}
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

    /// What the target will refuse of a plan, by its own word: all that is new is made without a row and taken back, and no other
    /// session sees it.
    pub fn try_out(&mut self, plan: &Plan) -> Result<Vec<(String, Error)>> {
        let there = self.target.catalog()?;
        // An unfinished copy has made tables of these names.
        if plan.parts == Parts::Data || there.names.iter().any(|name| name == state::NAME) {
            return Ok(Vec::new());
        }
        let mut refused = self.rehearse(plan, &there, None, &mut |_| Ok(()))?;
        if self.target.engine.drops.is_some() {
            // What temporary tables do not have: a name that another table has, and foreign keys.
            let is_taken = |name: &str| there.names.iter().any(|known| known == name);
            let known = there.tables.iter().flat_map(|table| &table.foreign);
            let has_key = |name: &str| known.clone().any(|key| key.name.eq_ignore_ascii_case(name));
            let error = |what: &str| Error::new(ErrorKind::NotOurs, what);
            let tables = plan.tables.iter().filter(|table| is_taken(&table.to));
            refused.extend(tables.map(|table| (table.to.clone(), error("a table of this name exists"))));
            let keys = plan.tables.iter().flat_map(|table| table.foreign.iter().map(move |key| (table, key)));
            let keys = keys.filter(|(_, key)| has_key(&key.name));
            let named = |(table, key): (&TablePlan, &Named)| format!("{}.{}", table.to, key.name);
            refused.extend(keys.map(|key| (named(key), error("a foreign key of this name exists"))));
        }
        Ok(refused)
    }

    /// Makes all that is new, with its indexes and foreign keys and without a row, and takes it back. Returns what the target
    /// refuses. `state` records tables that a process which is killed would leave; without it, they are temporary where they would. `tail`
    /// is done before a transaction takes them back.
    pub(crate) fn rehearse(
        &mut self,
        plan: &Plan,
        there: &Catalog,
        state: Option<(&State, &mut Whole)>,
        tail: &mut dyn FnMut(&mut Side) -> Result<()>,
    ) -> Result<Vec<(String, Error)>> {
        let engine = self.target.engine;
        let in_transaction = engine.drops.is_none();
        // By these, a table of a trial that did not end is known.
        let state = match state {
            None => None,
            Some((state, whole)) => {
                whole.columns.extend(plan.tables.iter().map(|table| (table.to.clone(), names_of(table))));
                state.set_whole(&mut self.target, whole)?;
                Some(state).filter(|_| !in_transaction)
            }
        };
        let is_temporary = state.is_none() && !in_transaction;
        if in_transaction {
            self.target.control(&Operation::Begin)?;
        }
        let is_new = |named: &&Named| !there.before().any(|known| known.name == named.name);
        let before = plan.before.iter().filter(is_new).map(|named| (None, &named.name, &named.sql));
        let tables = plan.tables.iter().map(|table| (Some(table), &table.to, &table.create));
        let rest = |of: fn(&TablePlan) -> &Vec<Named>| {
            let all = move |table| of(table).iter().map(move |named| (Some(table), &named.name, &named.sql));
            plan.tables.iter().flat_map(all)
        };
        let foreign = rest(|table| &table.foreign).filter(|_| !is_temporary);
        let is_made = |made: &&Named| plan.before.iter().filter(is_new).any(|new| new.name == made.name);
        let after = plan.after.iter().map(|(_, made)| made).filter(is_made);
        let after = after.map(|made| (None, &made.name, &made.sql));
        let later = rest(|table| &table.indexes).chain(foreign).chain(after);
        let is_not_temporary = |code: &str| engine.not_temporary.contains(&code);
        let (mut refused, mut made) = (Vec::new(), Vec::new());
        for (table, name, sql) in before.chain(tables).chain(later) {
            let is_table = table.is_some_and(|table| std::ptr::eq(&raw const table.create, sql));
            let of = table.map_or("", |table| table.to.as_str());
            // What belongs to something that was refused.
            let is_lost = match table {
                None => refused.iter().any(|(known, _)| known == name),
                Some(_) => !is_table && !made.contains(&of),
            };
            if is_lost {
                continue;
            }
            Halt::new(self.stop).check()?;
            if in_transaction {
                self.target.run(&format!("SAVEPOINT {SAVED}"))?;
            } else if let Some(state) = state.filter(|_| is_table) {
                state.set_table(&mut self.target, of, &OfTable::new(Phase::Making))?;
            }
            let temporary =
                (is_table && is_temporary).then(|| sql.replacen("CREATE TABLE", "CREATE TEMPORARY TABLE", 1));
            match self.target.run(temporary.as_ref().unwrap_or(sql)) {
                Ok(()) if is_table => made.push(of),
                Ok(()) => {}
                Err(error) if is_temporary && error.server_code().is_some_and(is_not_temporary) => {}
                Err(error) => {
                    let error = only_refused(error)?;
                    let dot = if of.is_empty() || is_table { String::new() } else { format!("{of}.") };
                    refused.push((format!("{dot}{name}"), error));
                    if in_transaction {
                        self.target.run(&format!("ROLLBACK TO SAVEPOINT {SAVED}"))?;
                    } else if let Some(state) = state.filter(|_| is_table) {
                        state.forget_table(&mut self.target, of)?;
                    }
                }
            }
        }
        if in_transaction {
            tail(&mut self.target)?;
            self.target.control(&Operation::Rollback)?;
        } else {
            self.drop_tables(if is_temporary { "TEMPORARY " } else { "" }, &made)?;
            let mut recorded = made.iter().filter_map(|table| Some((state?, table)));
            recorded.try_for_each(|(state, table)| state.forget_table(&mut self.target, table))?;
        }
        Ok(refused)
    }

    /// Removes tables that the copy made. They may refer to one another.
    fn drop_tables(&mut self, temporary: &str, tables: &[&str]) -> Result<()> {
        let (begin, end) = self.target.engine.drops.map(|[begin, end]| (begin, end)).unzip();
        let drop = |table: &&str| format!("DROP {temporary}TABLE {}", self.target.quoted(table));
        let all: Vec<String> = tables.iter().rev().map(drop).collect();
        let mut all = begin.into_iter().chain(all.iter().map(String::as_str)).chain(end);
        all.try_for_each(|sql| self.target.run(sql))
    }

    /// Removes the tables of an unfinished copy, or their rows, and its state.
    pub(crate) fn discard(
        &mut self,
        namespace: &mut dyn Namespace,
        of: &Whole,
        whole: &Whole,
        there: &Catalog,
    ) -> Result<()> {
        if of.parts == Parts::Data && whole.parts != Parts::Data {
            return Err(is_another(&self.target, of, whole));
        }
        let state = State::open(&mut self.target)?;
        let mut begun = Vec::new();
        for table in of.tables.iter().filter(|table| there.names.contains(table)) {
            if state.table(&mut self.target, table)?.is_some() {
                check(&mut self.target, &state, of, there, table)?;
                begun.push(table.as_str());
            }
        }
        if of.parts == Parts::Data {
            let only = self.target.engine.only;
            // Tables that refer to others come after them.
            for table in begun.into_iter().rev() {
                self.target.run(&format!("DELETE FROM {only}{}", self.target.quoted(table)))?;
            }
        } else {
            self.drop_tables("", &begun)?;
        }
        state.close(&mut self.target)?;
        state::remove(namespace)
    }

    /// Makes a table that has no rows yet, or whose rows are copied again, and splits it for several sessions.
    pub(crate) fn make<'p>(
        &mut self,
        table: &'p TablePlan,
        begun: Option<OfTable>,
        there: &Catalog,
        state: &State,
        whole: &mut Whole,
        jobs: usize,
    ) -> Result<Work<'p>> {
        let (parts, exists) = (whole.parts, there.names.contains(&table.to));
        let mut now = begun.unwrap_or_else(|| OfTable::new(Phase::Making));
        let again = now.phase == Phase::Rows && (now.rows > 0 && table.resume == Resume::Restart || !exists);
        if now.phase == Phase::Making || again {
            let new = now.rows == 0 && parts == Parts::Data;
            if exists && !new {
                check(&mut self.target, state, whole, there, &table.to)?;
            }
            now = OfTable::new(Phase::Making);
            let of = self.target.quoted(&table.to);
            match parts {
                Parts::Data if new => {}
                Parts::Data => in_transaction(&mut self.target, |target| {
                    target.run(&format!("DELETE FROM {}{of}", target.engine.only))?;
                    state.set_table(target, &table.to, &now)
                })?,
                _ => {
                    if exists {
                        self.drop_tables("", &[&table.to])?;
                    }
                    state.set_table(&mut self.target, &table.to, &now)?;
                    let mark = self.target.engine.mark.filter(|_| whole.kept);
                    // A number that no other table has.
                    let number = format!("{:016x}", RandomState::new().hash_one(&table.to));
                    let create = mark.map(|mark| mark(&table.create, &number));
                    if let Err(error) = self.target.run(create.as_ref().unwrap_or(&table.create)) {
                        let error = only_refused(error)?;
                        // A table of that name would be somebody else's from now on.
                        state.forget_table(&mut self.target, &table.to)?;
                        return Err(error);
                    }
                    whole.ids.remove(&table.to);
                    // One that changes with its indexes is recorded after them.
                    if self.target.engine.identity_ends.is_none() {
                        know(&mut self.target, whole, std::slice::from_ref(&table.to))?;
                    }
                    state.set_whole(&mut self.target, whole)?;
                }
            }
            now.phase = if parts == Parts::Schema { Phase::Verified } else { Phase::Rows };
            if parts != Parts::Schema && jobs > 1 {
                now.splits = splits(&mut self.source, table, jobs)?;
            }
            for range in 0..now.ranges() {
                state.set_range(&mut self.target, &table.to, &now, range, &OfTable::new(Phase::Rows))?;
            }
            state.set_table(&mut self.target, &table.to, &now)?;
        }
        let ranges = (0..now.ranges()).map(|range| state.range(&mut self.target, &table.to, &now, range));
        let ranges = ranges.collect::<Result<_>>()?;
        Ok(Work::new(table, now, ranges))
    }
}
