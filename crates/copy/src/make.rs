//! Makes what tables need and the tables, and removes those of an unfinished copy.

use crate::catalog::{Catalog, Named};
use crate::ours::{check, identity};
use crate::plan::{Plan, Resume, TablePlan};
use crate::pool::Work;
use crate::refused::is_another;
use crate::run::Copy;
use crate::splits::splits;
use crate::sql::{in_transaction, only_refused};
use crate::state::{self, OfTable, Phase, State, Whole};
use crate::wanted::Parts;
use kurabe_core::driver::Namespace;
use kurabe_core::{Error, ErrorKind, Result};

impl Copy<'_> {
    /// Makes the types and sequences that tables need.
    pub(crate) fn needed(&mut self, plan: &Plan, there: &[Named], ours: bool) -> Result<()> {
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
                begun.push(table);
            }
        }
        let only = self.target.engine.only;
        let what =
            if of.parts == Parts::Data { format!("DELETE FROM {only}") } else { "DROP TABLE ".to_owned() };
        // Tables that refer to others come after them.
        for table in begun.into_iter().rev() {
            let sql = format!("{what}{}", self.target.quoted(table));
            self.target.run(&sql)?;
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
                        self.target.run(&format!("DROP TABLE {of}"))?;
                    }
                    state.set_table(&mut self.target, &table.to, &now)?;
                    if let Err(error) = self.target.run(&table.create) {
                        let error = only_refused(error)?;
                        // A table of that name would be somebody else's from now on.
                        state.forget_table(&mut self.target, &table.to)?;
                        return Err(error);
                    }
                    if let Some(id) = identity(&mut self.target, &table.to)? {
                        whole.ids.insert(table.to.clone(), id);
                        state.set_whole(&mut self.target, whole)?;
                    }
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
        let mut ranges = Vec::new();
        for range in 0..now.ranges() {
            ranges.push(state.range(&mut self.target, &table.to, &now, range)?);
        }
        Ok(Work::new(table, now, ranges))
    }
}
