//! The variables of a kind of units: which values its statements share, and how each is drawn.

use crate::draws::{Draw, Order, Seen, fit};
use crate::forms::{Form, Piece, Value};
use crate::show::work::{Kind, Occurrence};
use crate::units::{Leaf, leaves};
use kurabe_core::text::{cut, printable};
use kurabe_core::units::count;
use std::collections::{BTreeMap, HashMap};

/// The share of equal values from which two are the same variable: a race may give another.
const SAME: f64 = 0.999;
/// The share of NULL below which it is left out.
const RARE: f64 = 0.001;

/// What the statements of a kind of units do, and their variables.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) variables: Vec<Variable>,
    /// What each statement does, by the number of its node.
    pub(crate) statements: HashMap<usize, Statement>,
}

#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// The node that repeats it; `None`: once for each unit.
    pub(crate) within: Option<usize>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// A draw, and the share of NULL.
    Draw(Draw, f64),
    /// Another variable, and a number that is added to it.
    Plus(usize, i64),
}

#[derive(Debug)]
pub(crate) struct Statement {
    /// The form that most calls had.
    pub(crate) form: usize,
    /// Where its values come from; `None` if one is not known.
    pub(crate) values: Option<Vec<Use>>,
    /// The mean pause before it, in nanoseconds.
    pub(crate) pause_ns: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Use {
    /// It is part of the text.
    Text(Value),
    Variable(usize),
}

/// The values of a slot, each with its sample and its number in it.
struct Column<'a> {
    within: Option<usize>,
    variable: usize,
    values: Vec<(usize, usize, &'a Value)>,
}

/// Finds the variables of a kind of units.
pub(crate) fn plan(kind: &Kind, forms: &[Form]) -> Plan {
    let mut calls: HashMap<usize, Vec<(usize, usize, &Occurrence)>> = HashMap::new();
    for (number, sample) in kind.samples.iter().enumerate() {
        for (node, call) in &sample.calls {
            let of_node = calls.entry(*node).or_default();
            let before = of_node.last().filter(|(last, ..)| *last == number);
            let place = before.map_or(0, |(_, place, _)| place + 1);
            of_node.push((number, place, call));
        }
    }
    let mut plan = Plan::default();
    let mut columns: Vec<Column<'_>> = Vec::new();
    for Leaf { node, within, .. } in leaves(&kind.nodes) {
        let Some(calls) = calls.get(&node) else { continue };
        let mut by_form: BTreeMap<usize, usize> = BTreeMap::new();
        for form in calls.iter().filter_map(|(.., call)| call.form) {
            *by_form.entry(form).or_default() += 1;
        }
        let most = by_form.iter().max_by_key(|(form, count)| (**count, std::cmp::Reverse(**form)));
        let Some((form, text)) = most.and_then(|(place, _)| Some((*place, forms.get(*place)?))) else {
            continue;
        };
        let calls: Vec<_> = calls.iter().filter(|(.., call)| call.form == Some(form)).copied().collect();
        let pause_ns = calls.iter().map(|(.., call)| call.pause as f64).sum::<f64>() / calls.len() as f64;
        let names = names(text);
        let uses = text.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(slot, parameter) => Some((*slot, *parameter)),
            Piece::Text(_) => None,
        });
        let mut values = Some(Vec::new());
        for (slot, is_parameter) in uses {
            let column: Vec<(usize, usize, &Value)> = calls
                .iter()
                .filter_map(|(sample, place, call)| Some((*sample, *place, call.values.get(slot)?)))
                .collect();
            let name = names.get(slot).map_or("value", String::as_str);
            let found = plan.found(kind, &mut columns, column, is_parameter, name, within);
            match (&mut values, found) {
                (Some(values), Some(found)) => values.push(found),
                _ => values = None,
            }
        }
        plan.statements.insert(node, Statement { form, values, pause_ns });
    }
    plan
}

impl Plan {
    /// What a slot with these values is; `None` if too many are not known.
    fn found<'a>(
        &mut self,
        kind: &Kind,
        columns: &mut Vec<Column<'a>>,
        values: Vec<(usize, usize, &'a Value)>,
        is_parameter: bool,
        name: &str,
        within: Option<usize>,
    ) -> Option<Use> {
        let first = values.first()?.2;
        let is_constant = values.iter().all(|(.., value)| *value == first);
        let is_comment = matches!(first, Value::Verbatim(text) if ["--", "/*", "#"].iter().any(|sign| text.starts_with(sign)));
        if is_comment || (is_constant && !is_parameter && *first != Value::Unknown) {
            return Some(Use::Text(first.clone()));
        }
        if !is_constant {
            for column in columns.iter() {
                if let Some(added) = difference(column, &values, within) {
                    let variable = if added == 0 {
                        column.variable
                    } else {
                        let source = Source::Plus(column.variable, added);
                        self.add(name, source, within.filter(|_| column.within == within))
                    };
                    return Some(Use::Variable(variable));
                }
            }
        }
        let known = |value: &&Value| !matches!(value, Value::Null | Value::Unknown);
        let seen: Vec<Seen<'_>> = values
            .iter()
            .filter(|(.., value)| known(value))
            .map(|(sample, _, value)| Seen {
                connection: kind.samples.get(*sample).map_or(0, |sample| sample.connection),
                value,
            })
            .collect();
        let unknown = values.iter().filter(|(.., value)| **value == Value::Unknown).count();
        if unknown * 2 > values.len() {
            return None;
        }
        let nulls = (values.len() - unknown - seen.len()) as f64 / (values.len() - unknown) as f64;
        if seen.is_empty() {
            return Some(Use::Text(Value::Null));
        }
        let source = Source::Draw(fit(&seen), if nulls < RARE { 0.0 } else { nulls });
        let is_same = |known: &Variable| {
            is_constant && known.source == source && known.name.starts_with(name) && known.within.is_none()
        };
        if let Some(known) = self.variables.iter().position(is_same) {
            return Some(Use::Variable(known));
        }
        let variable = self.add(name, source, within);
        columns.push(Column { within, variable, values });
        Some(Use::Variable(variable))
    }

    fn add(&mut self, name: &str, source: Source, within: Option<usize>) -> usize {
        let is_taken = |name: &str| self.variables.iter().any(|known| known.name == name);
        let mut unique = name.to_owned();
        let mut number = 2;
        while is_taken(&unique) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        self.variables.push(Variable { name: unique, source, within });
        self.variables.len() - 1
    }

    /// How each variable is drawn, by its name, for people.
    pub(crate) fn described(&self) -> BTreeMap<String, String> {
        self.variables.iter().map(|variable| (variable.name.clone(), self.describe(variable))).collect()
    }

    fn describe(&self, variable: &Variable) -> String {
        let (draw, nulls) = match &variable.source {
            Source::Plus(of, added) => {
                let name = self.variables.get(*of).map_or("", |of| of.name.as_str());
                return format!("{name} {} {}", if *added < 0 { '-' } else { '+' }, added.unsigned_abs());
            }
            Source::Draw(draw, nulls) => (draw, *nulls),
        };
        let what = match draw {
            Draw::Constant(value) => format!("always {}", value.shown()),
            Draw::Sequence(first, _) => format!("in sequence from {first}"),
            Draw::Uniform(least, most) => format!("uniform {least} to {most}"),
            Draw::Zipf { least, most, exponent, order } => {
                let first = match order {
                    Order::Rising => ", the least most often",
                    Order::Falling => ", the largest most often",
                    Order::Scattered => "",
                };
                format!("Zipf {exponent:.2} of {least} to {most}{first}")
            }
            Draw::List(values) => format!("one of {} values", values.len()),
            Draw::Recorded(_, different) => format!("no known draw of {} values", count(*different as u64)),
        };
        if nulls > 0.0 { format!("{what}, {:.1} % NULL", 100.0 * nulls) } else { what }
    }
}

/// What must be added to an earlier variable's values to get these; 0 if they are the same.
fn difference(column: &Column<'_>, values: &[(usize, usize, &Value)], within: Option<usize>) -> Option<i64> {
    // A variable of the unit is the same in all repetitions; one of the same loop is paired by its repetition.
    let is_outer = column.within.is_none();
    if !is_outer && column.within != within {
        return None;
    }
    let mut earlier = column.values.iter().peekable();
    let (mut pairs, mut same, mut added) = (0_usize, 0_usize, None);
    for (sample, place, value) in values {
        let at = (*sample, if is_outer { 0 } else { *place });
        while earlier.next_if(|(sample, place, _)| (*sample, *place) < at).is_some() {}
        let Some((_, _, before)) = earlier.peek().filter(|(sample, place, _)| (*sample, *place) == at) else {
            continue;
        };
        pairs += 1;
        let found = match (before, value) {
            (Value::Int(before), Value::Int(now)) => now.checked_sub(*before),
            (before, now) => (before == now).then_some(0),
        };
        let wanted = *added.get_or_insert(found);
        same += usize::from(found.is_some() && found == wanted);
    }
    // Pairs of few values are equal by chance.
    let enough = pairs >= 10 || (pairs >= 2 && pairs == same && added == Some(Some(0)));
    (enough && same as f64 >= SAME * pairs as f64).then_some(added??)
}

/// A name for each value of a form.
fn names(form: &Form) -> Vec<String> {
    const RESERVED: [&str; 6] = ["client_id", "clients", "now", "random_seed", "default_seed", "scale"];
    let name = |column: &String| {
        let name = plain(&column.to_lowercase()).trim_start_matches('_').to_owned();
        match name.starts_with(|c: char| c.is_ascii_lowercase()) {
            true if name.starts_with("rows_") || RESERVED.contains(&name.as_str()) => format!("{name}_value"),
            true => name,
            false => "value".to_owned(),
        }
    };
    form.columns.iter().map(name).collect()
}

/// A name without quotes and the table before it.
pub(crate) fn plain(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

impl Value {
    fn shown(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::Text(text) | Self::Verbatim(text) => cut(&printable(text), 40).into_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}
