//! What an expression is worth, by pgbench's rules: whole numbers of 64 bits that may not overflow, doubles, truth, and
//! no value.

use super::expression::{Expr, Function};
use super::place::{Fault, fault};
use super::random;
use kurabe_stats::rng::Rng;

/// A value. Texts are kept by the slot that holds one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Datum {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A moment, in microseconds since 1970.
    Time(i64),
    /// The slot's own text.
    Text,
}

/// What expressions see.
pub(super) struct Scope<'a> {
    pub(super) values: &'a dyn Fn(usize) -> Datum,
    pub(super) rng: &'a mut Rng,
    /// What hash functions are seeded with where they are given no seed.
    pub(super) seed: i64,
}

impl Scope<'_> {
    pub(super) fn value(&mut self, expr: &Expr) -> Fault<Datum> {
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

    fn call(&mut self, function: Function, arguments: &[Expr]) -> Fault<Datum> {
        match (function, arguments) {
            (Function::And | Function::Or, [left, right]) => self.logic(function, left, right),
            (Function::Greatest | Function::Least, _) => self.extreme(function, arguments),
            (_, []) => Ok(Datum::Double(std::f64::consts::PI)),
            (Function::HashFnv1a | Function::HashMurmur2, [value]) => {
                let value = self.value(value)?;
                hash(function, value, Datum::Int(self.seed))
            }
            (_, [one]) => one_value(function, self.value(one)?),
            (_, [left, right]) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.two(function, left, right)
            }
            (_, [least, most, parameter, ..]) => {
                let (least, most) = (whole(self.value(least)?)?, whole(self.value(most)?)?);
                let parameter = double(self.value(parameter)?)?;
                let draw = match function {
                    Function::RandomExponential => random::exponential,
                    Function::RandomGaussian => random::gaussian,
                    _ => random::zipfian,
                };
                draw(self.rng, least, most, parameter).map(Datum::Int)
            }
        }
    }

    fn logic(&mut self, function: Function, left: &Expr, right: &Expr) -> Fault<Datum> {
        // What decides alone: a truth for OR, an untruth for AND.
        let decides = Some(function == Function::Or);
        let left = condition(self.value(left)?)?;
        if left == decides {
            return Ok(Datum::Bool(function == Function::Or));
        }
        let right = condition(self.value(right)?)?;
        Ok(match (left, right) {
            (_, right) if right == decides => Datum::Bool(function == Function::Or),
            (Some(_), Some(right)) => Datum::Bool(right),
            _ => Datum::Null,
        })
    }

    fn extreme(&mut self, function: Function, arguments: &[Expr]) -> Fault<Datum> {
        let mut best: Option<Datum> = None;
        let mut doubles = false;
        for argument in arguments {
            let value = self.value(argument)?;
            if value == Datum::Null {
                return Ok(Datum::Null);
            }
            doubles |= matches!(value, Datum::Double(_));
            let better = match best {
                None => true,
                Some(best) if function == Function::Greatest => less(best, value)?,
                Some(best) => less(value, best)?,
            };
            if better {
                best = Some(value);
            }
        }
        let best = best.unwrap_or(Datum::Null);
        if doubles { double(best).map(Datum::Double) } else { Ok(best) }
    }

    fn two(&mut self, function: Function, left: Datum, right: Datum) -> Fault<Datum> {
        if function == Function::Random {
            return random::uniform(self.rng, whole(left)?, whole(right)?).map(Datum::Int);
        }
        if left == Datum::Null || right == Datum::Null {
            return Ok(Datum::Null);
        }
        let doubles = matches!(left, Datum::Double(_)) || matches!(right, Datum::Double(_));
        Ok(match function {
            Function::Equal => Datum::Bool(equal(left, right)?),
            Function::Different => Datum::Bool(!equal(left, right)?),
            Function::Less => Datum::Bool(less(left, right)?),
            Function::LessOrEqual => Datum::Bool(!less(right, left)?),
            Function::Power => Datum::Double(double(left)?.powf(double(right)?)),
            Function::HashFnv1a | Function::HashMurmur2 => return hash(function, left, right),
            Function::Modulo => Datum::Int(divided(whole(left)?, whole(right)?, i64::checked_rem)?),
            Function::BitAnd => Datum::Int(whole(left)? & whole(right)?),
            Function::BitOr => Datum::Int(whole(left)? | whole(right)?),
            Function::BitXor => Datum::Int(whole(left)? ^ whole(right)?),
            Function::ShiftLeft => Datum::Int(whole(left)?.wrapping_shl(whole(right)? as u32)),
            Function::ShiftRight => Datum::Int(whole(left)?.wrapping_shr(whole(right)? as u32)),
            Function::Add if doubles => Datum::Double(double(left)? + double(right)?),
            Function::Subtract if doubles => Datum::Double(double(left)? - double(right)?),
            Function::Multiply if doubles => Datum::Double(double(left)? * double(right)?),
            Function::Divide if doubles => Datum::Double(double(left)? / double(right)?),
            Function::Divide => Datum::Int(divided(whole(left)?, whole(right)?, i64::checked_div)?),
            Function::Add => Datum::Int(fits(whole(left)?.checked_add(whole(right)?))?),
            Function::Subtract => Datum::Int(fits(whole(left)?.checked_sub(whole(right)?))?),
            _ => Datum::Int(fits(whole(left)?.checked_mul(whole(right)?))?),
        })
    }
}

fn one_value(function: Function, value: Datum) -> Fault<Datum> {
    match function {
        Function::IsNull => return Ok(Datum::Bool(value == Datum::Null)),
        Function::IsTrue => return Ok(Datum::Bool(value == Datum::Bool(true))),
        Function::IsFalse => return Ok(Datum::Bool(value == Datum::Bool(false))),
        _ if value == Datum::Null => return Ok(Datum::Null),
        _ => {}
    }
    Ok(match (function, value) {
        (Function::Not, value) => condition(value)?.map_or(Datum::Null, |b| Datum::Bool(!b)),
        (Function::Negate, Datum::Double(n)) => Datum::Double(-n),
        (Function::Negate, value) => Datum::Int(fits(whole(value)?.checked_neg())?),
        (Function::Abs, Datum::Double(n)) => Datum::Double(n.abs()),
        (Function::Abs, value) => Datum::Int(fits(whole(value)?.checked_abs())?),
        (Function::BitNot, value) => Datum::Int(!whole(value)?),
        (Function::ToInt, value) => Datum::Int(whole(value)?),
        (Function::Exp, value) => Datum::Double(double(value)?.exp()),
        (Function::Ln, value) => Datum::Double(double(value)?.ln()),
        (Function::Sqrt, value) => Datum::Double(double(value)?.sqrt()),
        (_, value) => Datum::Double(double(value)?),
    })
}

/// Whether a value counts as true where a condition is wanted: `\if`, CASE.
pub(super) fn truth(value: Datum) -> bool {
    match value {
        Datum::Bool(b) => b,
        Datum::Int(n) => n != 0,
        Datum::Double(n) => n != 0.0,
        Datum::Null | Datum::Time(_) | Datum::Text => false,
    }
}

/// A whole number, as pgbench makes one of a value.
pub(super) fn whole(value: Datum) -> Fault<i64> {
    match value {
        Datum::Int(n) => Ok(n),
        Datum::Double(n) => {
            // Ties to even, as C's rint does. The bounds are exact doubles.
            let n = n.round_ties_even();
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n) {
                Ok(n as i64)
            } else {
                Err(fault(format!("{n} does not fit a whole number")))
            }
        }
        other => Err(fault(format!("{} is not a number", kind(other)))),
    }
}

fn double(value: Datum) -> Fault<f64> {
    match value {
        Datum::Int(n) => Ok(n as f64),
        Datum::Double(n) => Ok(n),
        other => Err(fault(format!("{} is not a number", kind(other)))),
    }
}

fn condition(value: Datum) -> Fault<Option<bool>> {
    match value {
        Datum::Bool(b) => Ok(Some(b)),
        Datum::Null => Ok(None),
        other => Err(fault(format!("{} is neither true nor false", kind(other)))),
    }
}

fn kind(value: Datum) -> &'static str {
    match value {
        Datum::Null => "no value",
        Datum::Bool(_) => "a truth value",
        Datum::Int(_) => "a whole number",
        Datum::Double(_) => "a number",
        Datum::Time(_) => "a moment",
        Datum::Text => "a text",
    }
}

fn fits(value: Option<i64>) -> Fault<i64> {
    value.ok_or_else(|| fault("a whole number of more than 64 bits came out"))
}

fn divided(left: i64, right: i64, how: fn(i64, i64) -> Option<i64>) -> Fault<i64> {
    if right == 0 {
        return Err(fault("a division by zero"));
    }
    // The least number by -1 leaves no remainder, whatever the processor says.
    if right == -1 && how(left, right).is_none() {
        return if how(7, 4) == Some(3) { Ok(0) } else { fits(None) };
    }
    fits(how(left, right))
}

fn equal(left: Datum, right: Datum) -> Fault<bool> {
    match (left, right) {
        (Datum::Bool(left), Datum::Bool(right)) => Ok(left == right),
        (Datum::Int(left), Datum::Int(right)) => Ok(left == right),
        #[allow(clippy::float_cmp, reason = "the language's own equality")]
        (left, right) => Ok(double(left)? == double(right)?),
    }
}

fn less(left: Datum, right: Datum) -> Fault<bool> {
    match (left, right) {
        (Datum::Int(left), Datum::Int(right)) => Ok(left < right),
        (left, right) => Ok(double(left)? < double(right)?),
    }
}

/// FNV-1a over the eight bytes of a number, the lowest first, and Murmur's second hash for 64 bits, each seeded: what
/// pgbench computes, so that keys scattered by either are the same.
fn hash(function: Function, value: Datum, seed: Datum) -> Fault<Datum> {
    const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
    if value == Datum::Null || seed == Datum::Null {
        return Ok(Datum::Null);
    }
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
    // The length of what is hashed, eight bytes, is part of the start.
    let hash = (seed ^ MURMUR.wrapping_mul(8) ^ word).wrapping_mul(MURMUR);
    Ok(Datum::Int(shift(shift(hash).wrapping_mul(MURMUR)) as i64))
}

#[cfg(test)]
mod tests;
