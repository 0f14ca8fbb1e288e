//! The statements of a capture with their constant values and loops: what proposals of indexes are made from.

use crate::forms::{Form, Value};
use crate::show::{Analysis, Kind, analyse};
use crate::units::{Node, What, flatten};
use kurabe_core::Result;
use kurabe_protocol::call::Language;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The calls from which a value that never differs is taken for a constant.
const MANY: usize = 20;

#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// Their language, with the way in which new sessions read SQL.
    pub language: Language,
    /// Kinds of statements, those with the largest share of the time first.
    pub all: Vec<Asked>,
    pub loops: Vec<Loop>,
}

#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its text as shown, by which a replay knows it too.
    pub text: String,
    /// Its most frequent form, with a [`GAP`](kurabe_wire::statement::GAP) for each value.
    pub template: String,
    pub calls: u64,
    /// The time that the application waited for it, in nanoseconds.
    pub total_ns: u64,
    /// Whether it only sets up a connection or a transaction.
    pub is_setup: bool,
    /// The SQL literal that all recorded calls have in each gap; `None` if they differ, or are too few.
    pub constants: Vec<Option<String>>,
}

/// A loop of reads behind another statement ("N+1").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The place of the statement that repeats.
    pub statement: usize,
    /// The units of work with the loop.
    pub units: u64,
}

/// Reads the statements of a capture.
pub fn statements(path: &Path) -> Result<Statements> {
    let Analysis { shown, kinds, forms, .. } = analyse(path, false)?;
    let constants = constants(&kinds, &forms);
    let loops = shown.units.iter().zip(&kinds).filter(|(unit, _)| unit.n_plus_one);
    let spread = || shown.spread_loops.iter().map(|one| Loop { statement: one.statement, units: one.calls });
    let own = loops.filter_map(|(unit, kind)| {
        let calls = |place: &usize| shown.statements.get(*place).map(|one| one.calls);
        let statement = repeated(&kind.nodes).max_by_key(calls)?;
        // Of a loop that a pool spreads, units that are no transactions have parts.
        let is_part = !unit.transaction && spread().any(|one| one.statement == statement);
        (!is_part).then_some(Loop { statement, units: kind.calls })
    });
    let loops = own.chain(spread()).collect();
    let all = shown.statements.iter().enumerate().map(|(place, one)| {
        let (template, constants) = constants.get(&place).cloned().unwrap_or_default();
        Asked {
            text: one.text.clone(),
            template,
            calls: one.calls,
            total_ns: one.total_ns,
            is_setup: one.setup,
            constants,
        }
    });
    Ok(Statements { language: shown.about.language(), all: all.collect(), loops })
}

/// The statements within loops.
fn repeated(nodes: &[Node]) -> impl Iterator<Item = usize> {
    let often = nodes.iter().skip(1).filter(|node| node.most > 1 || matches!(node.what, What::Loop(_)));
    often.flat_map(|node| flatten(std::slice::from_ref(node)))
}

/// A form of a statement: its calls, and the values that all of them have.
struct Seen<'a> {
    calls: usize,
    form: usize,
    values: Vec<Option<&'a Value>>,
}

/// Of each statement, by its place: the template of its most frequent form, and the constants of that.
fn constants(kinds: &[Kind], forms: &[Form]) -> HashMap<usize, (String, Vec<Option<String>>)> {
    let mut seen: BTreeMap<(usize, usize), Seen<'_>> = BTreeMap::new();
    for (_, call) in kinds.iter().flat_map(|kind| &kind.samples).flat_map(|sample| &sample.calls) {
        let Some(form) = call.form else { continue };
        let new = || Seen { calls: 0, form, values: call.values.iter().map(Some).collect() };
        let one = seen.entry((call.statement, form)).or_insert_with(new);
        one.calls += 1;
        for (known, value) in one.values.iter_mut().zip(&call.values) {
            *known = known.filter(|known| *known == value);
        }
    }
    let mut most: HashMap<usize, Seen<'_>> = HashMap::new();
    for ((statement, _), one) in seen {
        if most.get(&statement).is_none_or(|known| known.calls < one.calls) {
            most.insert(statement, one);
        }
    }
    let shown = |one: Seen<'_>| {
        let constant = |value: Option<&Value>| value.filter(|_| one.calls >= MANY).and_then(literal);
        let template = forms.get(one.form).map(Form::template).unwrap_or_default();
        (template, one.values.iter().map(|value| constant(*value)).collect())
    };
    most.into_iter().map(|(statement, one)| (statement, shown(one))).collect()
}

/// A value as a literal that every SQL engine reads.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::Text(text) if !text.contains(['\\', '\0']) => Some(format!("'{}'", text.replace('\'', "''"))),
        _ => None,
    }
}
