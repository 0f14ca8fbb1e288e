//! The random values of a transaction: `[transaction.NAME.draw]`.

use super::declared::{Declared, Source, Step};
use super::expression::{self, Expr};
use super::functions::{
    ADD, Function, RANDOM, RANDOM_EXPONENTIAL, RANDOM_GAUSSIAN, RANDOM_ZIPFIAN, SPECIAL, ZIPFIAN_BELOW_ONE,
};
use super::section::{Section, variable};
use super::variables::{Constant, EVERY_CLIENTS, rows_of};
use crate::prelude::*;
use std::collections::BTreeMap;
use toml::{Table, Value};

const HOW: [&str; 11] = [
    "uniform", "zipfian", "gaussian", "exponential", "special", "sequence", "list", "file", "text",
    "template", "row",
];
/// The maximum length of a random text.
const MAX_TEXT: i64 = 10_000_000;
/// The default exponent: that of pgbench's example, a skew that is common in practice.
const EXPONENT: f64 = 1.1;
/// The smallest exponent of pgbench's own way to draw.
const PGBENCHS: f64 = 1.001;

/// Adds the steps that draw values, each after the steps whose values it uses. `files` contains the lists of values,
/// by name.
pub(super) fn draws(
    table: &Table,
    place: &str,
    declared: &mut Declared,
    files: &BTreeMap<&str, &str>,
    steps: &mut Vec<Step>,
) -> Result<()> {
    let mut taken: Vec<usize> = Vec::new();
    for name in table.keys() {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::usage(format!(
                "'{name}' is not a valid variable name: use letters, digits and underscores"
            ))
            .context(place));
        }
        let is_given = declared
            .variables
            .find(name)
            .is_some_and(|slot| declared.variables.initial[slot] != Constant::Null);
        if is_given || name.starts_with("rows_") || EVERY_CLIENTS.contains(&name.as_str()) {
            return Err(Error::usage(format!("the variable '{name}' already has a value")).context(place));
        }
        taken.push(declared.variables.slot(name));
    }
    // Adds each once its inputs exist. The rest depend on themselves.
    let mut waiting: Vec<(usize, String, Source)> = Vec::new();
    for (slot, (name, value)) in taken.iter().zip(table) {
        let place = format!("{place}, draw {name}");
        let source = source(value, &place, declared, files)?;
        waiting.push((*slot, place, source));
    }
    while !waiting.is_empty() {
        let unmade: Vec<usize> = waiting.iter().map(|(slot, ..)| *slot).collect();
        let ready = waiting.iter().position(|(_, _, source)| match source {
            Source::Expression(expr) => expr.all_variables(&|slot| !unmade.contains(&slot)),
            _ => true,
        });
        let Some(ready) = ready else {
            let (_, place, _) = waiting.remove(0);
            return Err(
                Error::usage("it depends on its own value, directly or through others").context(place)
            );
        };
        let (slot, place, source) = waiting.remove(ready);
        steps.push(Step::Set { slot, source, place });
    }
    Ok(())
}

fn source(value: &Value, place: &str, declared: &Declared, files: &BTreeMap<&str, &str>) -> Result<Source> {
    let read = |text: &str| {
        expression::parse(text, &mut |name| variable(name, &declared.variables))
            .map_err(|error| error.context(place))
    };
    let table = match value {
        Value::String(text) => return read(text).map(Source::Expression),
        Value::Table(table) => table,
        _ => {
            return Err(Error::usage("is neither an expression nor a table such as { uniform = [1, 100] }")
                .context(place));
        }
    };
    let section = Section::new(table, place, &[&HOW[..], &["exponent", "parameter", "weights"]].concat())?;
    let mut ways: Vec<&str> = HOW.into_iter().filter(|key| section.has(key)).collect();
    // Rows may be drawn with a skew: { row = "users", zipfian = true }.
    let row = section.has("row");
    if row && ways.len() > 1 {
        ways.retain(|way| *way != "row");
    }
    let [how] = ways.as_slice() else {
        return Err(section.error(format!("it must be drawn in exactly one way, of: {}", HOW.join(", "))));
    };
    if row && !matches!(*how, "row" | "uniform" | "zipfian" | "gaussian" | "exponential" | "special") {
        return Err(section.error(format!("'{how}' cannot draw rows")));
    }
    let parameter = |key: &str, default: f64| {
        let number = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64));
        section.read(key, "not a number", number).map(|found| found.unwrap_or(default))
    };
    let bounds = |key: &str| -> Result<(Expr, Expr)> {
        if row {
            return row_bounds(&section, declared);
        }
        let list = section.get(key).and_then(Value::as_array).map(Vec::as_slice);
        let Some([least, most]) = list else {
            return Err(section.error(format!("'{key}' is not a range: write {key} = [least, most]")));
        };
        let bound = |value: &Value| match value {
            Value::Integer(n) => Ok(Expr::Int(*n)),
            Value::String(text) => match kurabe_core::units::parse_count(text) {
                Ok(n) => Ok(Expr::Int(n as i64)),
                Err(_) => read(text),
            },
            _ => Err(section.error(format!("a bound of '{key}' is neither an integer nor an expression"))),
        };
        Ok((bound(least)?, bound(most)?))
    };
    if section.has("exponent") && *how != "zipfian"
        || section.has("parameter") && !matches!(*how, "gaussian" | "exponential")
    {
        return Err(
            section.error("'exponent' requires zipfian, and 'parameter' requires gaussian or exponential")
        );
    }
    if section.has("weights") && !["list", "text"].contains(how) {
        return Err(section.error("'weights' requires list or text"));
    }
    let call = |function: &'static Function, (least, most): (Expr, Expr), parameter: Option<f64>| {
        let arguments = [least, most].into_iter().chain(parameter.map(Expr::Double)).collect();
        Source::Expression(Expr::Call(function, arguments))
    };
    Ok(match *how {
        "row" | "uniform" => call(&RANDOM, bounds("uniform")?, None),
        "special" => call(&SPECIAL, bounds(how)?, None),
        "zipfian" => {
            let exponent = parameter("exponent", EXPONENT)?;
            let function = if exponent < PGBENCHS { &ZIPFIAN_BELOW_ONE } else { &RANDOM_ZIPFIAN };
            if exponent <= 0.0 {
                return Err(section.error("'exponent' is not above 0"));
            }
            call(function, bounds(how)?, Some(exponent))
        }
        "gaussian" => call(&RANDOM_GAUSSIAN, bounds(how)?, Some(parameter("parameter", 2.5)?)),
        "exponential" => call(&RANDOM_EXPONENTIAL, bounds(how)?, Some(parameter("parameter", 5.0)?)),
        "sequence" => Source::Sequence(section.number(how)?.unwrap_or(1)),
        "list" => {
            let values = section.constants(how)?.unwrap_or_default();
            let sums = weights(&section, values.len())?;
            Source::List(values, sums)
        }
        "template" => Source::Template(section.text(how)?.unwrap_or_default().to_owned()),
        "text" => {
            let lengths = section.read(how, "a length out of range", lengths)?.unwrap_or_default();
            let sums = weights(&section, lengths.len())?;
            Source::Text(lengths, sums)
        }
        _ => {
            let name = section.text(how)?.unwrap_or_default();
            let text =
                files.get(name).ok_or_else(|| section.error(format!("the file {name} was not read")))?;
            let values: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(Constant::of).collect();
            if values.is_empty() {
                return Err(section.error(format!("{name} holds no value")));
            }
            Source::List(values, Vec::new())
        }
    })
}

/// The lengths of texts: one, or a list of some.
fn lengths(value: &Value) -> Option<Vec<usize>> {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let one = |value: &Value| value.as_integer().filter(|n| (1..=MAX_TEXT).contains(n)).map(|n| n as usize);
    all.iter().map(one).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

/// The sums of the weights of a list's values, up to each.
fn weights(section: &Section<'_>, values: usize) -> Result<Vec<u64>> {
    let what = format!("not a list of {values} whole numbers above 0, one for each value");
    let sums = section.read("weights", &what, |value| {
        let weights = value.as_array().filter(|weights| weights.len() == values)?;
        let mut sum = 0_u64;
        let add = |weight: &Value| {
            let weight = weight.as_integer().and_then(|weight| u64::try_from(weight).ok())?;
            sum = sum.checked_add(weight).filter(|_| weight > 0)?;
            Some(sum)
        };
        weights.iter().map(add).collect()
    })?;
    Ok(sums.unwrap_or_default())
}

/// The first and last key of a collection, if its keys are consecutive numbers.
fn row_bounds(section: &Section<'_>, declared: &Declared) -> Result<(Expr, Expr)> {
    let name = section.text("row")?.unwrap_or_default();
    let relation = section.at(declared.relation(name, "collection"))?;
    let Some(first) = declared.relations[relation].first_key() else {
        return Err(section
            .error(format!("the keys of {name} are not consecutive numbers: draw them in another way")));
    };
    let rows = variable(&rows_of(name), &declared.variables)?;
    let last = Expr::Call(&ADD, vec![Expr::Variable(rows), Expr::Int(first - 1)]);
    Ok((Expr::Int(first), last))
}
