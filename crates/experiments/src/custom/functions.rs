//! The operators and functions of expressions, by pgbench's rules: 64-bit integers with overflow errors, doubles and
//! booleans.

use super::datum::{Datum, condition, double, nonzero, whole};
use super::random;
use crate::prelude::*;
use std::cmp::Ordering;
use std::fmt::{self, Debug, Formatter};

/// What an expression calls. Its value is null if one of its arguments is.
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The minimum and maximum number of arguments.
    pub(super) arguments: (usize, usize),
    pub(super) apply: Apply,
}

impl Debug for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

type Apply = fn(&mut Rng, &[Datum]) -> Result<Datum>;

const fn function(name: &'static str, least: usize, most: usize, apply: Apply) -> Function {
    Function { name, arguments: (least, most), apply }
}

/// The functions by name.
pub(super) static FUNCTIONS: &[Function] = &[
    function("abs", 1, 1, |_, v| number(v[0], f64::abs, |n| Some(n.wrapping_abs()))),
    function("double", 1, 1, |_, v| double(v[0]).map(Datum::Double)),
    function("exp", 1, 1, |_, v| real(v[0], f64::exp)),
    function("greatest", 1, usize::MAX, |_, v| extreme(v, f64::gt, Iterator::max)),
    function("hash", 1, 2, murmur2),
    function("hash_fnv1a", 1, 2, fnv1a),
    function("hash_murmur2", 1, 2, murmur2),
    function("int", 1, 1, |_, v| whole(v[0]).map(Datum::Int)),
    function("least", 1, usize::MAX, |_, v| extreme(v, f64::lt, Iterator::min)),
    function("ln", 1, 1, |_, v| real(v[0], f64::ln)),
    function("mod", 2, 2, modulo),
    function("permute", 2, 3, permute),
    function("pi", 0, 0, |_, _| Ok(Datum::Double(std::f64::consts::PI))),
    function("pow", 2, 2, |_, v| Ok(Datum::Double(double(v[0])?.powf(double(v[1])?)))),
    function("power", 2, 2, |_, v| Ok(Datum::Double(double(v[0])?.powf(double(v[1])?)))),
    RANDOM,
    RANDOM_EXPONENTIAL,
    RANDOM_GAUSSIAN,
    RANDOM_ZIPFIAN,
    function("sqrt", 1, 1, |_, v| real(v[0], f64::sqrt)),
];

pub(super) const RANDOM: Function =
    function("random", 2, 2, |rng, v| random::uniform(rng, whole(v[0])?, whole(v[1])?).map(Datum::Int));
pub(super) const RANDOM_EXPONENTIAL: Function =
    function("random_exponential", 3, 3, |rng, v| drawn(random::exponential, rng, v));
pub(super) const RANDOM_GAUSSIAN: Function =
    function("random_gaussian", 3, 3, |rng, v| drawn(random::gaussian, rng, v));
pub(super) const RANDOM_ZIPFIAN: Function =
    function("random_zipfian", 3, 3, |rng, v| drawn(random::zipfian, rng, v));
pub(super) const LESS: Function =
    function("<", 2, 2, |_, v| compared(v, |order| order == Some(Ordering::Less)));
pub(super) const LESS_OR_EQUAL: Function =
    function("<=", 2, 2, |_, v| compared(v, |order| order != Some(Ordering::Greater)));
pub(super) const ADD: Function = function("+", 2, 2, |_, v| numbers(v, |a, b| a + b, i64::checked_add));
/// A Zipf distribution with a small exponent, which pgbench's language lacks.
pub(super) const ZIPFIAN_BELOW_ONE: Function =
    function("random_zipfian", 3, 3, |rng, v| drawn(random::zipfian_below_one, rng, v));
/// sysbench's default distribution, which pgbench's language lacks.
pub(super) const SPECIAL: Function =
    function("special", 2, 2, |rng, v| random::special(rng, whole(v[0])?, whole(v[1])?).map(Datum::Int));
pub(super) const NOT: Function =
    function("not", 1, 1, |_, v| Ok(condition(v[0])?.map_or(Datum::Null, |truth| Datum::Bool(!truth))));
/// Subtracts from 0, as pgbench does, so that there is no -0.
pub(super) const NEGATE: Function = function("-", 1, 1, |_, v| number(v[0], |n| 0.0 - n, i64::checked_neg));
pub(super) const BIT_NOT: Function = function("~", 1, 1, |_, v| Ok(Datum::Int(!whole(v[0])?)));

/// Precedence of the operators, the lowest first, as in PostgreSQL.
pub(super) mod binding {
    pub(in super::super) const NONE: u8 = 0;
    pub(in super::super) const OR: u8 = 1;
    pub(in super::super) const AND: u8 = 2;
    pub(in super::super) const NOT: u8 = 3;
    pub(in super::super) const IS: u8 = 4;
    pub(in super::super) const COMPARISON: u8 = 5;
    pub(in super::super) const BITS: u8 = 6;
    pub(in super::super) const SUM: u8 = 7;
    pub(in super::super) const PRODUCT: u8 = 8;
    pub(in super::super) const SIGN: u8 = 9;
}

/// The binary operators that evaluate both sides, with their precedence.
pub(super) static BINARY: &[(u8, Function)] = &[
    (binding::COMPARISON, LESS),
    (binding::COMPARISON, LESS_OR_EQUAL),
    (binding::COMPARISON, function(">", 2, 2, LESS.apply)),
    (binding::COMPARISON, function(">=", 2, 2, LESS_OR_EQUAL.apply)),
    (binding::COMPARISON, function("=", 2, 2, |_, v| compared(v, |order| order == Some(Ordering::Equal)))),
    (binding::COMPARISON, function("<>", 2, 2, |_, v| compared(v, |order| order != Some(Ordering::Equal)))),
    (binding::COMPARISON, function("!=", 2, 2, |_, v| compared(v, |order| order != Some(Ordering::Equal)))),
    (binding::BITS, function("|", 2, 2, |_, v| Ok(Datum::Int(whole(v[0])? | whole(v[1])?)))),
    (binding::BITS, function("#", 2, 2, |_, v| Ok(Datum::Int(whole(v[0])? ^ whole(v[1])?)))),
    (binding::BITS, function("&", 2, 2, |_, v| Ok(Datum::Int(whole(v[0])? & whole(v[1])?)))),
    (
        binding::BITS,
        function("<<", 2, 2, |_, v| Ok(Datum::Int(whole(v[0])?.wrapping_shl(whole(v[1])? as u32)))),
    ),
    (
        binding::BITS,
        function(">>", 2, 2, |_, v| Ok(Datum::Int(whole(v[0])?.wrapping_shr(whole(v[1])? as u32)))),
    ),
    (binding::SUM, ADD),
    (binding::SUM, function("-", 2, 2, |_, v| numbers(v, |a, b| a - b, i64::checked_sub))),
    (binding::PRODUCT, function("*", 2, 2, |_, v| numbers(v, |a, b| a * b, i64::checked_mul))),
    (binding::PRODUCT, function("/", 2, 2, divide)),
    (binding::PRODUCT, function("%", 2, 2, modulo)),
];

fn fits(value: Option<i64>) -> Result<Datum> {
    value.map(Datum::Int).ok_or_else(|| Error::usage("the result exceeds 64 bits"))
}

fn real(value: Datum, of: fn(f64) -> f64) -> Result<Datum> {
    Ok(Datum::Double(of(double(value)?)))
}

fn number(value: Datum, real: fn(f64) -> f64, integer: fn(i64) -> Option<i64>) -> Result<Datum> {
    match value {
        Datum::Double(n) => Ok(Datum::Double(real(n))),
        value => fits(integer(whole(value)?)),
    }
}

/// A result of two numbers: a double if one of them is.
fn numbers(v: &[Datum], real: fn(f64, f64) -> f64, integer: fn(i64, i64) -> Option<i64>) -> Result<Datum> {
    if v.iter().any(|value| matches!(value, Datum::Double(_))) {
        return Ok(Datum::Double(real(double(v[0])?, double(v[1])?)));
    }
    fits(integer(whole(v[0])?, whole(v[1])?))
}

fn divide(_: &mut Rng, v: &[Datum]) -> Result<Datum> {
    if let [Datum::Double(_), _] | [_, Datum::Double(_)] = v {
        return Ok(Datum::Double(double(v[0])? / double(v[1])?));
    }
    fits(whole(v[0])?.checked_div(nonzero(whole(v[1])?)?))
}

/// The remainder of the least number and -1 is 0; some processors trap on it.
fn modulo(_: &mut Rng, v: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int(whole(v[0])?.wrapping_rem(nonzero(whole(v[1])?)?)))
}

/// Whether two numbers compare so; the order is `None` if one is not a number (NaN).
fn compared(v: &[Datum], holds: fn(Option<Ordering>) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(holds(match v {
        [Datum::Int(left), Datum::Int(right)] => Some(left.cmp(right)),
        _ => double(v[0])?.partial_cmp(&double(v[1])?),
    })))
}

/// The greatest or the least of some numbers: a double if one of them is.
fn extreme(
    v: &[Datum],
    better: fn(&f64, &f64) -> bool,
    best: fn(std::vec::IntoIter<i64>) -> Option<i64>,
) -> Result<Datum> {
    if v.iter().any(|value| matches!(value, Datum::Double(_))) {
        let all = v.iter().map(|value| double(*value)).collect::<Result<Vec<_>>>()?;
        let best = all.into_iter().reduce(|best, value| if better(&value, &best) { value } else { best });
        return Ok(best.map_or(Datum::Null, Datum::Double));
    }
    let all = v.iter().map(|value| whole(*value)).collect::<Result<Vec<_>>>()?;
    Ok(best(all.into_iter()).map_or(Datum::Null, Datum::Int))
}

fn drawn(draw: fn(&mut Rng, i64, i64, f64) -> Result<i64>, rng: &mut Rng, v: &[Datum]) -> Result<Datum> {
    draw(rng, whole(v[0])?, whole(v[1])?, double(v[2])?).map(Datum::Int)
}

/// A bijective mapping of 0..size to itself: pgbench's permute for this seed.
fn permute(_: &mut Rng, v: &[Datum]) -> Result<Datum> {
    let (value, size, seed) = (whole(v[0])?, whole(v[1])?, whole(v[2])?);
    if size < 1 {
        return Err(Error::usage(format!("permute needs a size of 1 or more, not {size}")));
    }
    Ok(Datum::Int(random::permute(value as u64, size as u64, seed as u64) as i64))
}

/// FNV-1a over the eight bytes of a number, lowest first, with a seed. It matches pgbench, so that keys scattered by either
/// tool are equal; so does [`murmur2`].
fn fnv1a(_: &mut Rng, v: &[Datum]) -> Result<Datum> {
    let start = 0xcbf2_9ce4_8422_2325 ^ whole(v[1])? as u64;
    let bytes = (whole(v[0])? as u64).to_le_bytes();
    let next = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(Datum::Int(bytes.into_iter().fold(start, next) as i64))
}

/// `MurmurHash2` for 64 bits over a number, with a seed.
fn murmur2(_: &mut Rng, v: &[Datum]) -> Result<Datum> {
    const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
    let (value, seed) = (whole(v[0])? as u64, whole(v[1])? as u64);
    let shift = |word: u64| word ^ (word >> 47);
    let word = shift(value.wrapping_mul(MURMUR)).wrapping_mul(MURMUR);
    // The length of the hashed data, eight bytes, is part of the initial value.
    let hash = (seed ^ MURMUR.wrapping_mul(8) ^ word).wrapping_mul(MURMUR);
    Ok(Datum::Int(shift(shift(hash).wrapping_mul(MURMUR)) as i64))
}
