//! The tables of a model: their keys and fields, as far as statements say; and the values of all statements together: keys that are no
//! numbers become numbers, and a column has one type.

use super::writer::{Field, NUMBER, Table, Writer, list, quoted};
use crate::draws::Draw;
use crate::forms::Value;
use crate::rows::{Expr, KEY, Plain, Verb};
use crate::show::Kind;
use crate::units::{Leaf, leaves};
use crate::variables::{Plan, Source, Use};
use kurabe_stats::mix;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// The most rows of a collection that is made for the run.
pub(super) const ROWS: i64 = 10_000_000;
/// The calls from which at most one row each says that it is found by its key.
const BY_KEY: u64 = 10;

impl Writer<'_> {
    /// Learns keys and fields from the statements that name them.
    pub(super) fn look_at_tables(&mut self, kinds: &[Kind], plans: &[Plan]) {
        let mut found: Vec<(Plain, Vec<Use>, &Plan, u64, u64)> = Vec::new();
        for (kind, plan) in kinds.iter().zip(plans) {
            for Leaf { node, statement: place, .. } in leaves(&kind.nodes) {
                let Some(statement) = plan.statements.get(&node) else { continue };
                let most_rows = self.analysis.shown.statements.get(place).map_or(0, |one| one.most_rows);
                if let Some((simple, values)) = self.simple(statement) {
                    found.push((simple, values, plan, most_rows, kind.calls));
                }
            }
        }
        for (simple, values, plan, most_rows, calls) in &found {
            let table = self.tables.entry(simple.table.clone()).or_default();
            for column in &simple.columns {
                table.fields.entry(column.clone()).or_default();
            }
            let sets = simple.sets.iter().map(|(column, expr)| match expr {
                Expr::Slot(slot) | Expr::Changed(_, slot) => (column, Some(*slot)),
                Expr::Now => (column, None),
            });
            let by = simple.by.iter().map(|(column, slot)| (column, Some(*slot)));
            for (column, slot) in sets.chain(by) {
                let kind = slot.map_or(Field::Time, |slot| {
                    values.get(slot).map_or(Field::Unknown, |value| plan.field(value))
                });
                let field = table.fields.entry(column.clone()).or_default();
                *field = field.with(kind);
            }
            let columns: Vec<String> = simple.by.iter().map(|(column, _)| column.clone()).collect();
            if !columns.is_empty() && *most_rows <= 1 {
                *table.keys.entry(columns).or_default() += calls;
            } else if !columns.is_empty() {
                table.indexed.insert(columns);
            }
        }
        let is_translated = self.is_translated();
        for table in self.tables.values_mut() {
            let several = std::mem::take(&mut table.indexed);
            if is_translated {
                table.key = vec![KEY.to_owned()];
                table.fields.insert(KEY.to_owned(), Field::Int);
                if table.fields.len() == 1 {
                    table.fields.insert("value".to_owned(), Field::Unknown);
                }
            } else {
                let has =
                    |columns: &Vec<String>, key: &Vec<String>| key.iter().all(|one| columns.contains(one));
                let best = table.keys.iter().filter(|(key, calls)| {
                    **calls >= BY_KEY && !several.iter().any(|columns| has(columns, key))
                });
                let best = best.max_by_key(|(_, calls)| **calls);
                table.key = best.map(|(key, _)| key.clone()).unwrap_or_default();
            }
            let others = std::mem::take(&mut table.keys).into_keys().chain(several);
            let is_key = |columns: &Vec<String>| table.key.starts_with(columns);
            table.indexed = others.filter(|columns| !is_key(columns)).collect();
        }
        for table in self.tables.values_mut().filter(|table| self.made && table.key.is_empty()) {
            table.is_numbered = table.fields.insert(NUMBER.to_owned(), Field::Int).is_none();
            table.key = vec![NUMBER.to_owned()];
        }
        for (simple, values, plan, ..) in &found {
            let Some(table) = self.tables.get_mut(&simple.table) else { continue };
            let [key] = table.key.as_slice() else { continue };
            for (_, slot) in simple.by.iter().filter(|(column, _)| column == key) {
                let most = values.get(*slot).map_or(0, |value| plan.largest(value));
                table.rows = table.rows.max(most);
            }
        }
    }

    /// What the file says of tables.
    pub(super) fn write_tables(&self, text: &mut String) {
        for (name, table) in self.tables.iter().filter(|(_, table)| !table.used.is_empty()) {
            let kind = if self.made { "collection" } else { "table" };
            let _ = writeln!(text, "\n[{kind}.{name}]");
            if self.made && table.rows > 0 {
                let _ = writeln!(text, "rows = \"greatest(1, int({} * :scale))\"", table.rows);
            }
            if !table.key.is_empty() {
                let _ = writeln!(text, "key = {}", list(table.key.iter().map(|column| quoted(column))));
            }
            if self.made && !table.indexed.is_empty() {
                let one = |columns: &Vec<String>| list(columns.iter().map(|column| quoted(column)));
                let all: Vec<String> = table.indexed.iter().map(one).collect();
                let _ = writeln!(text, "index = [{}]", all.join(", "));
            }
            let mut fields = Vec::new();
            for (column, field) in &table.fields {
                if !self.made && !table.used.contains(column) {
                    continue;
                }
                let kind = match field {
                    Field::Int => "\"int\"".to_owned(),
                    Field::Time => "\"time\"".to_owned(),
                    Field::Text(_) if !self.made => "\"text\"".to_owned(),
                    Field::Text(most) => {
                        let length =
                            self.lengths.as_ref().and_then(|all| all.get(&(name.clone(), column.clone())));
                        let length = length.map_or_else(String::new, |length| format!(", length = {length}"));
                        format!("{{ type = \"text\", max = {}{length} }}", (*most).max(1))
                    }
                    // Only read: its type and size are not in the capture.
                    _ => "{ type = \"text\", max = 20 }".to_owned(),
                };
                fields.push(format!("fields.{} = {kind}", quoted(column)));
            }
            let _ = writeln!(text, "{}", fields.join("\n"));
        }
    }
}

impl Table {
    /// Whether it can be made for a run: names that every engine takes, and keys that are numbers from 1 on.
    pub(super) fn can_be_made(&self, name: &str) -> bool {
        let is_plain = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
                && name.len() <= 40
        };
        let key_is_good = match self.key.as_slice() {
            [] => true,
            [key] => self.fields.get(key) == Some(&Field::Int) && (0..=ROWS).contains(&self.rows),
            _ => false,
        };
        key_is_good
            && is_plain(name)
            && self.fields.iter().all(|(name, field)| is_plain(name) && *field != Field::Other)
    }
}

impl Plan {
    /// What kind of field has this value.
    fn field(&self, value: &Use) -> Field {
        let draw = match value {
            Use::Text(value) => return Field::of(value),
            Use::Variable(variable) => match self.variables.get(*variable).map(|variable| &variable.source) {
                Some(Source::Draw(_, nulls)) if *nulls > 0.0 => return Field::Other,
                Some(Source::Draw(draw, _)) => draw,
                _ => return Field::Int,
            },
        };
        match draw {
            Draw::Constant(value) => Field::of(value),
            Draw::Sequence(..) | Draw::Uniform(..) | Draw::Zipf { .. } => Field::Int,
            Draw::List(values) | Draw::Recorded(values, _) => {
                values.iter().fold(Field::Unknown, |field, (value, _)| field.with(Field::of(value)))
            }
        }
    }

    /// The largest number that it can be.
    fn largest(&self, value: &Use) -> i64 {
        let of = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
        match value {
            Use::Text(value) => of(value),
            Use::Variable(variable) => match self.variables.get(*variable).map(|variable| &variable.source) {
                Some(Source::Draw(draw, _)) => match draw {
                    Draw::Constant(value) => of(value),
                    Draw::Sequence(_, most) | Draw::Uniform(_, most) | Draw::Zipf { most, .. } => *most,
                    Draw::List(values) | Draw::Recorded(values, _) => {
                        values.iter().map(|(value, _)| of(value)).max().unwrap_or(0)
                    }
                },
                Some(Source::Plus(of, added)) => self.largest(&Use::Variable(*of)).saturating_add(*added),
                None => 0,
            },
        }
    }
}

type Column = (String, String);
/// The mean length of the texts of columns.
pub(super) type Lengths = BTreeMap<Column, usize>;

/// A value with its time and its form.
struct Seen<'a> {
    at: u64,
    form: usize,
    value: &'a mut Value,
}

/// Gives keys numbers, unless all are numbers from 0 to `most`; makes a text of each value of a column that has others than
/// numbers. Gives the mean lengths of texts.
pub(super) fn number(kinds: &mut [Kind], simple: &[Option<Plain>], most: i64) -> Lengths {
    let columns_of = |plain: &Plain| -> Vec<Column> {
        plain.columns_of_values().into_iter().map(|column| (plain.table.clone(), column)).collect()
    };
    let slots: Vec<Vec<Column>> =
        simple.iter().map(|one| one.as_ref().map(columns_of).unwrap_or_default()).collect();
    let mut columns: BTreeMap<Column, Vec<Seen<'_>>> = BTreeMap::new();
    let calls = kinds.iter_mut().flat_map(|kind| &mut kind.samples).flat_map(|sample| &mut sample.calls);
    for (_, call) in calls {
        let Some((form, slots)) = call.form.and_then(|form| Some((form, slots.get(form)?))) else { continue };
        for (slot, value) in call.values.iter_mut().enumerate() {
            if let Some(column) = slots.get(slot) {
                columns.entry(column.clone()).or_default().push(Seen { at: call.at, form, value });
            }
        }
    }
    let mut lengths = Lengths::new();
    for (column, mut seen) in columns {
        let is_number = |value: &Value, most: i64| matches!(value, Value::Int(n) if (0..=most).contains(n));
        if column.1 == KEY {
            if !seen.iter().all(|one| is_number(one.value, most)) {
                number_keys(&mut seen, simple);
            }
        } else if !seen.iter().all(|one| matches!(one.value, Value::Int(_))) {
            let (mut sum, count) = (0, seen.len());
            for Seen { value, .. } in seen {
                *value = match std::mem::replace(value, Value::Null) {
                    Value::Int(number) => Value::Text(number.to_string().into()),
                    Value::Null => Value::Text("".into()),
                    other => other,
                };
                sum += if let Value::Text(text) = value { text.chars().count() } else { 0 };
            }
            lengths.insert(column, sum / count);
        }
    }
    lengths
}

/// Gives the keys of a table numbers from 1 on. Those that a statement creates have the last ones, in the order of time. The
/// others have no order: in that of their first appearance, frequent ones would be first, but not as far as they are frequent.
fn number_keys(seen: &mut [Seen<'_>], simple: &[Option<Plain>]) {
    seen.sort_by_key(|one| one.at);
    let mut of_forms: HashMap<usize, Option<HashSet<&Value>>> = HashMap::new();
    for one in &*seen {
        let verb = simple.get(one.form).and_then(|plain| plain.as_ref().map(|plain| plain.verb));
        let own = of_forms
            .entry(one.form)
            .or_insert_with(|| matches!(verb, Some(Verb::Insert | Verb::Put)).then(HashSet::new));
        // What writes a key twice does not create it.
        if !own.as_mut().is_none_or(|keys| keys.insert(one.value)) {
            *own = None;
        }
    }
    let created: HashSet<&Value> = of_forms.into_values().flatten().flatten().collect();
    let mut known: HashSet<&Value> = HashSet::new();
    let firsts = seen.iter().map(|one| &*one.value).filter(|value| known.insert(value));
    let mut order: Vec<(bool, u64, &Value)> = (0..)
        .zip(firsts)
        .map(|(place, value)| {
            let is_new = created.contains(value);
            (is_new, if is_new { place } else { mix(1, place) }, value)
        })
        .collect();
    order.sort_unstable_by_key(|(is_new, place, _)| (*is_new, *place));
    let numbers: HashMap<Value, i64> = order.into_iter().map(|(.., value)| value.clone()).zip(1..).collect();
    for one in seen {
        *one.value = Value::Int(numbers.get(one.value).copied().unwrap_or(0));
    }
}
