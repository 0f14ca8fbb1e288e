//! A session on Oracle. The crate neither commits automatically nor can it commit with a statement. Every change
//! outside a transaction is therefore two round trips: the statement, and the commit.

use super::config::Config;
use super::dialect::dialect;
use super::errors;
use super::link::Link;
use super::plan::{LiteralPlan, Plan, Steps, literal_plan, plan};
use super::values::Bind;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::slots::{Known, Slots, check_parameters};
use kurabe_driver_common::sql::Dialect;
use std::sync::Arc;

pub(crate) struct OracleSession {
    link: Link,
    dialect: Dialect,
    /// Cached plans, so that preparing per request measures the crate's statement cache and not the planning.
    plans: Known<Plan>,
    slots: Slots<Slot>,
    /// Buffer of a statement with literals, reused.
    sql: String,
    in_transaction: bool,
}

enum Slot {
    Bound(Arc<Plan>),
    Literal(Arc<LiteralPlan>),
}

impl OracleSession {
    pub(crate) fn new(link: Link, config: &Config) -> Self {
        Self {
            link,
            dialect: dialect(config),
            plans: Known::default(),
            slots: Slots::default(),
            sql: String::new(),
            in_transaction: false,
        }
    }

    /// Outside a transaction, commits a change, or rolls back a failed one.
    fn finish(&mut self, done: Result<u64>) -> Result<u64> {
        if self.in_transaction {
            return done;
        }
        match done {
            Ok(rows) => self.link.commit().map(|()| rows),
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Protocol) {
                    // Removes rows of a batch before the failing one, and the table's lock. The first error is
                    // reported, even if this fails.
                    let _ = self.link.rollback();
                }
                Err(error)
            }
        }
    }

    fn execute_literal(
        &mut self,
        plan: &LiteralPlan,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        plan.template.fill(parameters, &mut self.sql)?;
        if !plan.changes {
            let kinds = plan.template.gives();
            return self.link.query(&self.sql, &[], kinds, out).inspect_err(|_| out.clear());
        }
        let changed = self.link.change(&self.sql, &[]);
        out.set_affected(self.finish(changed)?);
        Ok(())
    }

    /// Adds the rows of one request, all or none. Within a transaction this needs a savepoint (one more round trip),
    /// because rows before a failing one would remain.
    fn array(&mut self, sql: &str, width: usize, binds: &[Bind<'_>]) -> Result<u64> {
        if self.in_transaction {
            self.link.change(SAVEPOINT, &[])?;
        }
        let done = self.link.changes(sql, width, binds);
        if self.in_transaction && done.as_ref().is_err_and(|error| error.kind() != ErrorKind::ConnectionLost)
        {
            let _ = self.link.change(BACK_TO_SAVEPOINT, &[]);
        }
        done
    }
}

/// Sent before a batch of rows within a transaction.
pub(crate) const SAVEPOINT: &str = "SAVEPOINT kurabe_rows";
/// Sent if the batch failed.
pub(crate) const BACK_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT kurabe_rows";

impl Session for OracleSession {
    /// Sends nothing: the server parses a statement at its first execution, and the crate's statement cache keeps it.
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        let made = self.plans.get(operation, || plan(&self.dialect, operation))?;
        Ok(self.slots.insert(Slot::Bound(made)))
    }

    /// Each text is a separate statement for the server and for the crate's statement cache.
    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        if operation.collection().is_none() {
            // Without values, there is no difference.
            return self.prepare(operation);
        }
        let made = literal_plan(&self.dialect, operation)?;
        Ok(self.slots.insert(Slot::Literal(Arc::new(made))))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let plan = match self.slots.get(prepared)? {
            Slot::Bound(plan) => Arc::clone(plan),
            Slot::Literal(plan) => {
                let plan = Arc::clone(plan);
                return self.execute_literal(&plan, parameters, out);
            }
        };
        check_parameters(plan.name, plan.shape.takes.len(), parameters.len())?;
        let takes = plan.shape.takes.iter().zip(parameters);
        let binds: Vec<Bind<'_>> =
            takes.map(|(kind, value)| Bind::new(*kind, value)).collect::<Result<_>>()?;
        let changed = match &plan.steps {
            Steps::Ping => return self.link.ping(),
            Steps::Begin => {
                self.in_transaction = true;
                return Ok(());
            }
            Steps::Commit => {
                self.in_transaction = false;
                return self.link.commit();
            }
            Steps::Rollback => {
                self.in_transaction = false;
                return self.link.rollback();
            }
            Steps::Query(sql) => {
                return self.link.query(sql, &binds, &plan.shape.gives, out).inspect_err(|_| out.clear());
            }
            Steps::Change(sql) => self.link.change(sql, &binds),
            Steps::Array { sql, width } => self.array(sql, *width, &binds),
            Steps::UpdateOrInsert { update, order, insert } => {
                let updating: Vec<Bind<'_>> = order
                    .iter()
                    .filter_map(|&at| Some(Bind::new(*plan.shape.takes.get(at)?, parameters.get(at)?)))
                    .collect::<Result<_>>()?;
                update_or_insert(&mut self.link, (update, &updating), (insert, &binds))
            }
        };
        out.set_affected(self.finish(changed)?);
        Ok(())
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.link.quit()
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(self.in_transaction)
    }

    without!(bulk, planner, cache, raw_messages);
}

/// Updates the row, or inserts it if it does not exist; updates again if another session inserted it in between.
fn update_or_insert(
    link: &mut Link,
    (update, updating): (&str, &[Bind<'_>]),
    (insert, inserting): (&str, &[Bind<'_>]),
) -> Result<u64> {
    match link.change(update, updating)? {
        0 => {}
        rows => return Ok(rows),
    }
    match link.change(insert, inserting) {
        Err(error) if error.server_code() == Some(errors::DUPLICATE) => link.change(update, updating),
        done => done,
    }
}
