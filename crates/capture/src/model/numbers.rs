//! The values of all statements of a model together: keys that are no numbers become numbers, and a column has one type.

use crate::forms::Value;
use crate::rows::{KEY, Plain, Verb};
use crate::show::Kind;
use kurabe_stats::mix;
use std::collections::{BTreeMap, HashMap, HashSet};

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
