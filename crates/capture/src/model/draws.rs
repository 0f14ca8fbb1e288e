//! The draws of a model: of the variables, and of how often nodes repeat.

use super::writer::{Writer, quoted, toml};
use crate::draws::{Draw, Order};
use crate::forms::{Form, Value};
use crate::rows::{Expr, Verb};
use crate::show::Kind;
use crate::units::Node;
use crate::variables::{Plan, Source, Use, Variable};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};

/// The most repetitions of a loop.
pub(super) const REPEATS: u64 = 200;
/// The most numbers of repetitions that are told apart.
const COUNTS: usize = 20;

impl Writer<'_> {
    /// The draws of the variables that a node repeats and steps name, each with `before` and `after`.
    pub(super) fn draws(
        &self,
        plan: &Plan,
        within: Option<usize>,
        before: &str,
        after: &str,
        steps: &str,
    ) -> String {
        let named = |name: &str| {
            let name = format!(":{name}");
            steps
                .split(name.as_str())
                .skip(1)
                .any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        };
        let used: BTreeSet<usize> = (0..plan.variables.len())
            .filter(|number| plan.variables.get(*number).is_some_and(|variable| named(&variable.name)))
            .flat_map(|number| match plan.variables.get(number).map(|variable| &variable.source) {
                Some(Source::Plus(of, _)) => vec![number, *of],
                _ => vec![number],
            })
            .collect();
        let mut out = String::new();
        for (number, variable) in plan.variables.iter().enumerate() {
            if variable.within != within || !used.contains(&number) {
                continue;
            }
            let name = &variable.name;
            let of_key = self.key_of(plan, number);
            for (suffix, draw) in draw(variable, plan, of_key.as_ref(), self.made, self.is_translated()) {
                let _ = write!(out, "{before}draw.{name}{suffix} = {draw}{after}");
            }
        }
        out
    }

    /// How a variable names rows: in the key of a table that is made, or in an INSERT.
    fn key_of(&self, plan: &Plan, variable: usize) -> Option<KeyOf> {
        let mut found: Option<KeyOf> = None;
        for statement in plan.statements.values() {
            let Some((simple, values)) = self.simple(statement) else {
                let form = self.analysis.forms.get(statement.form);
                let inserts = form.is_some_and(Form::inserts);
                if statement.values.iter().flatten().any(|one| *one == Use::Variable(variable)) {
                    let found = found.get_or_insert_default();
                    found.is_inserted |= inserts;
                    found.is_compared |= !inserts;
                }
                continue;
            };
            let Some(table) = self.tables.get(&simple.table) else { continue };
            let is_it = |slot: usize| values.get(slot) == Some(&Use::Variable(variable));
            for (column, _) in simple.by.iter().filter(|(_, slot)| is_it(*slot)) {
                let found = found.get_or_insert_default();
                found.is_compared = true;
                if table.key == [column.clone()] {
                    found.table = Some((simple.table.clone(), table.rows));
                }
            }
            for (column, expr) in &simple.sets {
                if matches!(expr, Expr::Slot(slot) if is_it(*slot)) {
                    found.get_or_insert_default().is_written = true;
                }
                if matches!(simple.verb, Verb::Insert | Verb::Put)
                    && matches!(expr, Expr::Slot(slot) if is_it(*slot))
                {
                    let found = found.get_or_insert_default();
                    found.is_inserted |= table.key.is_empty() || table.key.contains(column);
                    found.rows = found.rows.max(if table.key.contains(column) { table.rows } else { 0 });
                }
            }
        }
        found
    }
}

/// What a variable is in tables.
#[derive(Clone, Debug, Default)]
struct KeyOf {
    /// Its table, and the largest key, where rows are found by it.
    table: Option<(String, i64)>,
    /// Whether rows are inserted with it, which may have to be new.
    is_inserted: bool,
    /// Whether it is written, and whether it is also looked for.
    is_written: bool,
    is_compared: bool,
    rows: i64,
}

/// The draws of a variable: what is put behind its name, and how.
fn draw(
    variable: &Variable,
    plan: &Plan,
    of_key: Option<&KeyOf>,
    made: bool,
    is_translated: bool,
) -> Vec<(&'static str, String)> {
    let name = &variable.name;
    let (draw, nulls) = match &variable.source {
        Source::Plus(of, added) => {
            let of = plan.variables.get(*of).map_or("", |of| of.name.as_str());
            return vec![("", quoted(&format!(":{of} + {added}")))];
        }
        Source::Draw(draw, nulls) => (draw, *nulls),
    };
    let is_inserted = of_key.is_some_and(|key| key.is_inserted);
    let row = of_key.and_then(|key| key.table.as_ref()).filter(|_| made);
    let all_rows = |least: i64, most: i64, part: i64| {
        let (name, rows) = row?;
        ((1..=1 + rows / part).contains(&least) && most >= rows - rows / part).then_some(name.as_str())
    };
    let mut draws = match draw {
        Draw::Constant(value) => vec![("", format!("{{ list = [{}] }}", toml(value)))],
        Draw::Sequence(_, last) if is_inserted && !made => {
            // Rows of an earlier trial are still there.
            let most = if *last < i64::from(i32::MAX) { i64::from(i32::MAX) } else { i64::MAX >> 1 };
            vec![("", quoted(&format!("random({}, {most})", last.saturating_add(1))))]
        }
        Draw::Sequence(_, last) if is_inserted => {
            let first = of_key.map_or(0, |key| key.rows).max(*last);
            vec![("", format!("{{ sequence = {} }}", first.saturating_add(1)))]
        }
        // It begins again at its end.
        Draw::Sequence(first, last) => vec![
            ("_number", "{ sequence = 0 }".to_owned()),
            (
                "",
                quoted(&format!(
                    "{first} + mod(:{name}_number, {})",
                    last.saturating_sub(*first).saturating_add(1)
                )),
            ),
        ],
        // All of its rows, so that the number of rows can be another.
        Draw::Uniform(least, most) if let Some(name) = all_rows(*least, *most, 50) => {
            vec![("", format!("{{ row = {} }}", quoted(name)))]
        }
        Draw::Zipf { least, most, exponent, order: Order::Rising }
            if let Some(name) = all_rows(*least, *most, 2) =>
        {
            vec![("", format!("{{ row = {}, zipfian = true, exponent = {exponent:.3} }}", quoted(name)))]
        }
        Draw::Uniform(least, most) => vec![("", format!("{{ uniform = [{least}, {most}] }}"))],
        Draw::Zipf { least, most, exponent, order: Order::Rising } => {
            vec![("", format!("{{ zipfian = [{least}, {most}], exponent = {exponent:.3} }}"))]
        }
        Draw::Zipf { least, most, exponent, order } => {
            let width = most - least + 1;
            let (last, at) = match (order, all_rows(*least, *most, 2)) {
                (Order::Falling, _) => ((width - 1).to_string(), format!("{most} - :{name}_rank")),
                // Any order will do, as long as it is the same in each trial, and for all statements on these rows.
                (_, Some(rows)) => (
                    quoted(&format!(":rows_{rows} - 1")),
                    format!("1 + permute(:{name}_rank, :rows_{rows}, 1)"),
                ),
                _ => ((width - 1).to_string(), format!("{least} + permute(:{name}_rank, {width}, 1)")),
            };
            vec![
                ("_rank", format!("{{ zipfian = [0, {last}], exponent = {exponent:.3} }}")),
                ("", quoted(&at)),
            ]
        }
        // Of values in stores of keys, sizes count.
        Draw::Recorded(values, _)
            if is_translated && of_key.is_some_and(|key| key.is_written && !key.is_compared) =>
        {
            vec![("", texts(values))]
        }
        // What differs each time is written as new texts of the same form.
        Draw::Recorded(values, _)
            if of_key.is_some_and(|key| key.is_inserted || (key.is_written && !key.is_compared))
                && values.iter().all(|(value, count)| *count == 1 && matches!(value, Value::Text(_))) =>
        {
            vec![("", format!("{{ template = {} }}", quoted(&template(values))))]
        }
        Draw::List(values) | Draw::Recorded(values, _) => {
            let is_even = values.windows(2).all(|pair| pair[0].1 == pair[1].1);
            let values: Vec<(String, u64)> =
                values.iter().map(|(value, count)| (toml(value), *count)).collect();
            vec![("", weighted("list", &values, !is_even))]
        }
    };
    if nulls > 0.0 {
        if let Some((suffix, _)) = draws.last_mut() {
            *suffix = "_known";
        }
        let share = (nulls * 10_000.0).round();
        draws.push((
            "",
            quoted(&format!("CASE WHEN random(1, 10000) <= {share} THEN NULL ELSE :{name}_known END")),
        ));
    }
    draws
}

/// Texts with the lengths of these.
fn texts(values: &[(Value, u64)]) -> String {
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in values {
        let length = if let Value::Text(text) = value { text.chars().count() } else { 0 };
        *lengths.entry(length.max(1) as u64).or_default() += count;
    }
    match few(lengths).as_slice() {
        [(one, _)] => format!("{{ text = {one} }}"),
        lengths => weighted("text", lengths, true),
    }
}

/// A draw of one of several values, each with its weight.
fn weighted(kind: &str, values: &[(impl Display, u64)], has_weights: bool) -> String {
    let shown: Vec<String> = values.iter().map(|(value, _)| value.to_string()).collect();
    let weights: Vec<String> = values.iter().map(|(_, weight)| weight.to_string()).collect();
    let weights = if has_weights { format!(", weights = [{}]", weights.join(", ")) } else { String::new() };
    format!("{{ {kind} = [{}]{weights} }}", shown.join(", "))
}

/// A pattern for texts like the first: letters and digits change, the rest stays.
fn template(values: &[(Value, u64)]) -> String {
    let Some((Value::Text(first), _)) = values.first() else { return String::new() };
    // Of hexadecimal numbers digits do for all.
    let is_hex = first.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && first.contains(|c: char| c.is_ascii_digit());
    let sign = |c: char| match c {
        c if c.is_ascii_digit() || (is_hex && c != '-') => '#',
        c if c.is_alphabetic() => '@',
        c => c,
    };
    first.chars().map(sign).collect()
}

/// The draws of how often nodes repeat, where that differs.
pub(super) fn repeats(kind: &Kind, nodes: &[Node], first: usize, before: &str) -> String {
    let mut out = String::new();
    let mut number = first;
    for node in nodes {
        if node.most > 1 {
            let counts = counts(kind, number);
            if counts.len() > 1 {
                let _ = writeln!(out, "{before}times_{number} = {}", weighted("list", &counts, true));
            }
        }
        number += node.size();
    }
    out
}

/// How often a node repeated, each number with how often it came.
pub(super) fn counts(kind: &Kind, number: usize) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut seen, mut nested) = (0, false);
    for sample in &kind.samples {
        let before = seen;
        for (_, count) in sample.counts.iter().filter(|(node, _)| *node == number) {
            *counts.entry((*count).min(REPEATS)).or_default() += 1;
            seen += 1;
        }
        nested |= seen > before + 1;
    }
    // Where it came once, nothing is said.
    let once = (kind.samples.len() as u64).saturating_sub(seen);
    if once > 0 && !nested {
        *counts.entry(1).or_default() += once;
    }
    let counts = few(counts);
    if counts.is_empty() { vec![(1, 1)] } else { counts }
}

/// Numbers, each with how often it came; of many, some stand for their neighbours.
fn few(counts: BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
    // The two neighbours that are rarest become their mean.
    while counts.len() > COUNTS {
        let rarest = (1..counts.len()).min_by_key(|n| counts[*n - 1].1 + counts[*n].1).unwrap_or(1);
        let (above, below) = (counts.remove(rarest), counts[rarest - 1]);
        let all = below.1 + above.1;
        counts[rarest - 1] = ((below.0 * below.1 + above.0 * above.1 + all / 2) / all, all);
    }
    counts
}
