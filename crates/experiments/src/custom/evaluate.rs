//! Evaluates expressions by pgbench's rules.

use super::datum::{Datum, condition, truth};
use super::expression::Expr;
use super::functions::Function;
use crate::prelude::*;

/// Arguments for which a call has room on the stack.
const FEW: usize = 3;

pub(super) struct Scope<'a> {
    pub(super) values: &'a dyn Fn(usize) -> Datum,
    pub(super) rng: &'a mut Rng,
}

impl Scope<'_> {
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Datum> {
        Ok(match expr {
            Expr::Null => Datum::Null,
            Expr::Bool(b) => Datum::Bool(*b),
            Expr::Int(n) => Datum::Int(*n),
            Expr::Double(n) => Datum::Double(*n),
            Expr::Variable(slot) => (self.values)(*slot),
            Expr::Case(arms, otherwise) => {
                for (condition, value) in arms {
                    if truth(self.value(condition)?) {
                        return self.value(value);
                    }
                }
                return self.value(otherwise);
            }
            Expr::Is(value, expected) => Datum::Bool(self.value(value)? == *expected),
            // The right side is not evaluated if the left side decides. Unlike in SQL, null on the left decides too.
            Expr::Logic { or, sides } => {
                let Some(left) = condition(self.value(&sides[0])?)? else { return Ok(Datum::Null) };
                if left == *or {
                    return Ok(Datum::Bool(left));
                }
                condition(self.value(&sides[1])?)?.map_or(Datum::Null, Datum::Bool)
            }
            Expr::Call(function, arguments) => return self.call(function, arguments),
        })
    }

    fn call(&mut self, function: &Function, arguments: &[Expr]) -> Result<Datum> {
        let (mut few, mut many) = ([Datum::Null; FEW], Vec::new());
        let values = if arguments.len() <= FEW {
            &mut few[..arguments.len()]
        } else {
            many.resize(arguments.len(), Datum::Null);
            &mut many[..]
        };
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
        }
        if values.contains(&Datum::Null) { Ok(Datum::Null) } else { (function.apply)(self.rng, values) }
    }
}

#[cfg(test)]
mod tests;
