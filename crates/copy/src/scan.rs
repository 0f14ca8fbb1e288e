//! One pass over a table before anything is copied: its rows, the size of the largest, and values that will not map.

use crate::catalog::Table;
use crate::engines::{Engine, OF_VALUES};
use crate::issue::IssueKind;
use crate::sql::{Side, quoted, text};
use crate::types::{Class, Kind, Mapped};
use kurabe_core::Result;

/// What a pass found in a table.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The number of rows.
    pub rows: u64,
    /// The bytes of the longest values of all columns of unlimited length, in sum: no row has more.
    pub longest_row: u64,
    /// What it found in each column.
    pub columns: Vec<ScannedColumn>,
}

/// What a pass found in a column.
#[derive(Clone, Debug, Default)]
pub struct ScannedColumn {
    /// The class that its values have in fact, and how many values are of that class and not of the declared one.
    pub fallback: Option<(Class, u64)>,
    /// Kinds of values that the target cannot hold, and how many there are.
    pub unfit: Vec<(IssueKind, u64)>,
    /// The number of values that are longer than a key may be.
    pub too_long: u64,
}

enum What {
    Fallback(Class),
    Unfit(IssueKind),
    TooLong,
    Octets,
}

/// Reads a table once, if anything depends on its values. `longest` is the maximum length of a value of each column, in
/// characters, where an index of the target limits it.
pub fn scan(
    source: &mut Side,
    target: &dyn Engine,
    table: &Table,
    kinds: &[Kind],
    mapped: &[Mapped],
    longest: &[Option<u32>],
) -> Result<Scanned> {
    let engine = source.engine;
    let mut expressions = Vec::new();
    let mut asked = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let (kind, name) = (&kinds[at], quoted(engine, &column.name));
        let mut count = |what: What, condition: &str| {
            expressions.push(format!("COALESCE(SUM(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)"));
            asked.push((at, what));
        };
        for (condition, class) in engine.other_classes(kind, &name) {
            count(What::Fallback(class), &condition);
        }
        let cannot =
            if engine.name() == target.name() { &[] } else { target.cannot_hold(&mapped[at].stored) };
        for unfit in OF_VALUES.iter().filter(|kind| cannot.contains(kind)) {
            if let Some(condition) = engine.has_unfit(kind, *unfit, &name) {
                count(What::Unfit(*unfit), &condition);
            }
        }
        if let Some(longest) = longest[at] {
            let length = if kind.class.is_bytes() { engine.octets(&name) } else { engine.characters(&name) };
            count(What::TooLong, &format!("{length} > {longest}"));
        }
        if matches!(kind.class, Class::Text | Class::Blob | Class::Json | Class::Native)
            || matches!(kind.class, Class::Varchar | Class::Varbinary | Class::Char | Class::Binary)
                && kind.n > 1_000
        {
            expressions.push(format!("COALESCE(MAX({}), 0)", engine.octets(&name)));
            asked.push((at, What::Octets));
        }
    }
    let mut scanned =
        Scanned { columns: vec![ScannedColumn::default(); table.columns.len()], ..Scanned::default() };
    expressions.insert(0, "COUNT(*)".to_owned());
    // Engines limit the number of columns of a query.
    for (chunk, expressions) in expressions.chunks(200).enumerate() {
        let sql = format!("SELECT {} FROM {}", expressions.join(", "), quoted(engine, &table.name));
        let Some(row) = source.rows(&sql)?.into_iter().next() else { continue };
        for at in 0..row.len() {
            let number = text(&row, at).parse::<f64>().unwrap_or(0.0) as u64;
            let Some(asked) = (chunk * 200 + at).checked_sub(1).and_then(|at| asked.get(at)) else {
                scanned.rows = number;
                continue;
            };
            let column = &mut scanned.columns[asked.0];
            match asked.1 {
                What::Octets => scanned.longest_row += number,
                _ if number == 0 => {}
                What::Fallback(class) => column.fallback = column.fallback.or(Some((class, number))),
                What::Unfit(kind) => column.unfit.push((kind, number)),
                What::TooLong => column.too_long = number,
            }
        }
    }
    Ok(scanned)
}
