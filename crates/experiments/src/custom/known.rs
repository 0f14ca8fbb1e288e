//! Errors in a workload's expressions that do not depend on random values. They are reported before anything runs.

use super::datum::{Datum, whole};
use super::declared::{Declared, Source, Step};
use super::evaluate::Scope;
use super::expression::Expr;
use super::variables::Constant;
use crate::prelude::*;

/// Variables that have the same value in all transactions, by slot.
pub(super) struct Known(Vec<Option<Datum>>);

impl Known {
    pub(super) fn of(declared: &Declared, initial: &[Constant]) -> Self {
        let value = |constant: &Constant| match constant {
            Constant::Null => None,
            Constant::Int(n) => Some(Datum::Int(*n)),
            Constant::Double(n) => Some(Datum::Double(*n)),
            Constant::Text(text) => Some(Datum::spelt(text)),
        };
        let mut known: Vec<Option<Datum>> = initial.iter().map(value).collect();
        for step in declared.programs.iter().flat_map(|program| &program.steps) {
            match step {
                Step::Set { slot, .. } => known[*slot] = None,
                Step::Execute(execute) => execute.keep.iter().for_each(|(_, slot)| known[*slot] = None),
                _ => {}
            }
        }
        Self(known)
    }

    /// The number of rows with which a collection is created.
    pub(super) fn rows(&self, rows: &Expr) -> Result<u64> {
        let count = self.value(rows).and_then(whole)?;
        u64::try_from(count).map_err(|_| Error::usage(format!("{count} is not a valid number of rows")))
    }

    /// Checks all expressions that every transaction evaluates. Branches may never run, so they are not checked.
    pub(super) fn check(&self, declared: &Declared) -> Result<()> {
        for program in &declared.programs {
            let mut beyond = 0;
            for (number, step) in program.steps.iter().enumerate() {
                let always = number >= beyond;
                let evaluated = match step {
                    Step::Set { source: Source::Expression(expr), place, .. } => Some((expr, place)),
                    Step::Sleep { time, place, .. } => Some((time, place)),
                    Step::Unless { condition, to, place } => {
                        beyond = beyond.max(*to);
                        Some((condition, place))
                    }
                    Step::Jump(to) => {
                        beyond = beyond.max(*to);
                        None
                    }
                    _ => None,
                };
                if let Some((expr, place)) = evaluated.filter(|_| always) {
                    self.check_expr(expr).map_err(|error| error.context(place))?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, expr: &Expr) -> Result<Datum> {
        let values = |slot: usize| self.0.get(slot).copied().flatten().unwrap_or(Datum::Null);
        Scope { values: &values, rng: &mut Rng::new(0) }.value(expr)
    }

    fn check_expr(&self, expr: &Expr) -> Result<()> {
        if expr.all_variables(&|slot| self.0.get(slot).is_some_and(Option::is_some)) {
            return self.value(expr).map(drop);
        }
        match expr {
            // The right side is not evaluated if the left side decides.
            Expr::Logic { sides, .. } => self.check_expr(&sides[0]),
            Expr::Is(value, _) => self.check_expr(value),
            Expr::Call(_, arguments) => arguments.iter().try_for_each(|argument| self.check_expr(argument)),
            Expr::Case(arms, _) => arms.first().map_or(Ok(()), |(condition, _)| self.check_expr(condition)),
            _ => Ok(()),
        }
    }
}
