//! Evaluates expressions by pgbench's rules: 64-bit integers with overflow errors, doubles, booleans, and null.

use super::expression::{Expr, Function};
use super::random;
use crate::prelude::*;
use std::cmp::Ordering;

/// A value. The slot that holds a text stores the text itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Datum {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A timestamp, in microseconds since 1970.
    Time(i64),
    /// The slot's own text.
    Text,
}

impl Datum {
    /// The value of a variable that holds a text, such as one of `-D`: pgbench's words for null, true and false, or a
    /// number. Any other text cannot be used in an expression.
    pub(super) fn spelt(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        if lower == "null" {
            Self::Null
        } else if begins("true") || begins("yes") || lower == "on" {
            Self::Bool(true)
        } else if begins("false") || begins("no") || lower == "off" || lower == "of" {
            Self::Bool(false)
        } else if let Ok(number) = text.parse() {
            Self::Int(number)
        } else {
            text.parse().map_or(Self::Text, Self::Double)
        }
    }
}

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
            Expr::Call(function, arguments) => return self.call(*function, arguments),
        })
    }

    fn call(&mut self, function: Function, arguments: &[Expr]) -> Result<Datum> {
        match (function, arguments) {
            (Function::And | Function::Or, [left, right]) => self.logic(function, left, right),
            (Function::IsNull, [one]) => Ok(Datum::Bool(self.value(one)? == Datum::Null)),
            (Function::IsTrue, [one]) => Ok(Datum::Bool(self.value(one)? == Datum::Bool(true))),
            (Function::IsFalse, [one]) => Ok(Datum::Bool(self.value(one)? == Datum::Bool(false))),
            (Function::Greatest | Function::Least, _) => self.extreme(function, arguments),
            (_, []) => Ok(Datum::Double(std::f64::consts::PI)),
            (_, [one]) => one_value(function, self.value(one)?),
            (_, [left, right]) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.two(function, left, right)
            }
            (_, [one, two, three, ..]) => {
                let values = [self.value(one)?, self.value(two)?, self.value(three)?];
                self.three(function, values)
            }
        }
    }

    fn three(&mut self, function: Function, [one, two, three]: [Datum; 3]) -> Result<Datum> {
        if [one, two, three].contains(&Datum::Null) {
            return Ok(Datum::Null);
        }
        if function == Function::Permute {
            return permuted(whole(one)?, whole(two)?, whole(three)?);
        }
        let draw = match function {
            Function::RandomExponential => random::exponential,
            Function::RandomGaussian => random::gaussian,
            Function::RandomZipfianBelowOne => random::zipfian_below_one,
            _ => random::zipfian,
        };
        draw(self.rng, whole(one)?, whole(two)?, double(three)?).map(Datum::Int)
    }

    /// AND and OR, which do not evaluate their right side if the left side decides. Unlike in SQL, null on the left
    /// decides too.
    fn logic(&mut self, function: Function, left: &Expr, right: &Expr) -> Result<Datum> {
        let decides = function == Function::Or;
        let Some(left) = condition(self.value(left)?)? else { return Ok(Datum::Null) };
        if left == decides {
            return Ok(Datum::Bool(decides));
        }
        Ok(condition(self.value(right)?)?.map_or(Datum::Null, Datum::Bool))
    }

    fn extreme(&mut self, function: Function, arguments: &[Expr]) -> Result<Datum> {
        let values = arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>>>()?;
        if values.contains(&Datum::Null) {
            return Ok(Datum::Null);
        }
        let greatest = function == Function::Greatest;
        if values.iter().any(|value| matches!(value, Datum::Double(_))) {
            let values = values.into_iter().map(double).collect::<Result<Vec<_>>>()?;
            let best = values.into_iter().reduce(|best, value| {
                let better = if greatest { value > best } else { value < best };
                if better { value } else { best }
            });
            return Ok(best.map_or(Datum::Null, Datum::Double));
        }
        let values = values.into_iter().map(whole).collect::<Result<Vec<_>>>()?;
        let best = if greatest { values.into_iter().max() } else { values.into_iter().min() };
        Ok(best.map_or(Datum::Null, Datum::Int))
    }

    fn two(&mut self, function: Function, left: Datum, right: Datum) -> Result<Datum> {
        if left == Datum::Null || right == Datum::Null {
            return Ok(Datum::Null);
        }
        let doubles = matches!(left, Datum::Double(_)) || matches!(right, Datum::Double(_));
        Ok(match function {
            Function::Random => Datum::Int(random::uniform(self.rng, whole(left)?, whole(right)?)?),
            Function::RandomSpecial => Datum::Int(random::special(self.rng, whole(left)?, whole(right)?)?),
            Function::Equal => Datum::Bool(compared(left, right)? == Some(Ordering::Equal)),
            Function::Different => Datum::Bool(compared(left, right)? != Some(Ordering::Equal)),
            Function::Less => Datum::Bool(compared(left, right)? == Some(Ordering::Less)),
            Function::LessOrEqual => Datum::Bool(compared(right, left)? != Some(Ordering::Less)),
            Function::Power => Datum::Double(double(left)?.powf(double(right)?)),
            Function::HashFnv1a | Function::HashMurmur2 => return hash(function, left, right),
            // The remainder of the least number and -1 is 0; some processors trap on it.
            Function::Modulo => Datum::Int(whole(left)?.wrapping_rem(nonzero(whole(right)?)?)),
            Function::BitAnd => Datum::Int(whole(left)? & whole(right)?),
            Function::BitOr => Datum::Int(whole(left)? | whole(right)?),
            Function::BitXor => Datum::Int(whole(left)? ^ whole(right)?),
            Function::ShiftLeft => Datum::Int(whole(left)?.wrapping_shl(whole(right)? as u32)),
            Function::ShiftRight => Datum::Int(whole(left)?.wrapping_shr(whole(right)? as u32)),
            Function::Add if doubles => Datum::Double(double(left)? + double(right)?),
            Function::Subtract if doubles => Datum::Double(double(left)? - double(right)?),
            Function::Multiply if doubles => Datum::Double(double(left)? * double(right)?),
            Function::Divide if doubles => Datum::Double(double(left)? / double(right)?),
            Function::Divide => Datum::Int(fits(whole(left)?.checked_div(nonzero(whole(right)?)?))?),
            Function::Add => Datum::Int(fits(whole(left)?.checked_add(whole(right)?))?),
            Function::Subtract => Datum::Int(fits(whole(left)?.checked_sub(whole(right)?))?),
            _ => Datum::Int(fits(whole(left)?.checked_mul(whole(right)?))?),
        })
    }
}

fn one_value(function: Function, value: Datum) -> Result<Datum> {
    if value == Datum::Null {
        return Ok(Datum::Null);
    }
    Ok(match (function, value) {
        (Function::Not, value) => condition(value)?.map_or(Datum::Null, |b| Datum::Bool(!b)),
        // Subtracted from 0, as pgbench does, so that there is no -0.
        (Function::Negate, Datum::Double(n)) => Datum::Double(0.0 - n),
        (Function::Negate, value) => Datum::Int(fits(whole(value)?.checked_neg())?),
        (Function::Abs, Datum::Double(n)) => Datum::Double(n.abs()),
        (Function::Abs, value) => Datum::Int(whole(value)?.wrapping_abs()),
        (Function::BitNot, value) => Datum::Int(!whole(value)?),
        (Function::ToInt, value) => Datum::Int(whole(value)?),
        (Function::Exp, value) => Datum::Double(double(value)?.exp()),
        (Function::Ln, value) => Datum::Double(double(value)?.ln()),
        (Function::Sqrt, value) => Datum::Double(double(value)?.sqrt()),
        (_, value) => Datum::Double(double(value)?),
    })
}

/// Whether a value counts as true in a condition: `\if`, CASE.
pub(super) fn truth(value: Datum) -> bool {
    match value {
        Datum::Bool(b) => b,
        Datum::Int(n) => n != 0,
        Datum::Double(n) => n != 0.0,
        Datum::Null | Datum::Time(_) | Datum::Text => false,
    }
}

/// Converts a value to an integer, as pgbench does.
pub(super) fn whole(value: Datum) -> Result<i64> {
    match value {
        Datum::Int(n) => Ok(n),
        other => {
            // Rounds ties to even, as C's rint does. The bounds are exact doubles.
            let n = double(other)?.round_ties_even();
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) {
                Ok(n as i64)
            } else {
                Err(Error::usage(format!("{n} does not fit a 64-bit integer")))
            }
        }
    }
}

fn double(value: Datum) -> Result<f64> {
    match value {
        Datum::Int(n) => Ok(n as f64),
        Datum::Double(n) => Ok(n),
        other => Err(Error::usage(format!("{} is not a number", kind(other)))),
    }
}

fn condition(value: Datum) -> Result<Option<bool>> {
    match value {
        Datum::Bool(b) => Ok(Some(b)),
        Datum::Null => Ok(None),
        other => Err(Error::usage(format!("{} is neither true nor false", kind(other)))),
    }
}

fn kind(value: Datum) -> &'static str {
    match value {
        Datum::Null => "no value",
        Datum::Bool(_) => "a truth value",
        Datum::Int(_) => "a whole number",
        Datum::Double(_) => "a number",
        Datum::Time(_) => "a timestamp",
        Datum::Text => "a text",
    }
}

fn fits(value: Option<i64>) -> Result<i64> {
    value.ok_or_else(|| Error::usage("the result exceeds 64 bits"))
}

/// A divisor.
fn nonzero(value: i64) -> Result<i64> {
    if value == 0 { Err(Error::usage("division by zero")) } else { Ok(value) }
}

/// How two numbers compare; `None` if one is not a number (NaN).
fn compared(left: Datum, right: Datum) -> Result<Option<Ordering>> {
    match (left, right) {
        (Datum::Int(left), Datum::Int(right)) => Ok(Some(left.cmp(&right))),
        (left, right) => Ok(double(left)?.partial_cmp(&double(right)?)),
    }
}

/// A bijective mapping of 0..size to itself: pgbench's permute for this seed.
fn permuted(value: i64, size: i64, seed: i64) -> Result<Datum> {
    if size < 1 {
        return Err(Error::usage(format!("permute needs a size of 1 or more, not {size}")));
    }
    Ok(Datum::Int(random::permute(value as u64, size as u64, seed as u64) as i64))
}

/// FNV-1a over the eight bytes of a number, lowest first, and `MurmurHash2` for 64 bits, both seeded. They match
/// pgbench, so that keys scattered by either tool are equal.
fn hash(function: Function, value: Datum, seed: Datum) -> Result<Datum> {
    const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
    let (value, seed) = (whole(value)? as u64, whole(seed)? as u64);
    if function == Function::HashFnv1a {
        let start = 0xcbf2_9ce4_8422_2325 ^ seed;
        let hash = value
            .to_le_bytes()
            .into_iter()
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        return Ok(Datum::Int(hash as i64));
    }
    let shift = |word: u64| word ^ (word >> 47);
    let word = shift(value.wrapping_mul(MURMUR)).wrapping_mul(MURMUR);
    // The length of the hashed data, eight bytes, is part of the initial value.
    let hash = (seed ^ MURMUR.wrapping_mul(8) ^ word).wrapping_mul(MURMUR);
    Ok(Datum::Int(shift(shift(hash).wrapping_mul(MURMUR)) as i64))
}

#[cfg(test)]
mod tests;
