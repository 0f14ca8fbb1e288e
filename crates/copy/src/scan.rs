//! Passes over a table before anything is copied: its rows, what its values are in fact, and which will not map.

use crate::catalog::Table;
use crate::classes::kind_of;
use crate::engines::engine::Engine;
use crate::issue::IssueKind;
use crate::script::quoted;
use crate::sql::{Side, text};
use crate::types::{Class, ColumnTypes, Correction, Kind};
use kurabe_core::{ErrorKind, Result};

/// All kinds of values that depend on the value, not on the type.
const OF_VALUES: &[IssueKind] = &[
    IssueKind::ZeroDate,
    IssueKind::DateRange,
    IssueKind::TimeRange,
    IssueKind::NotANumber,
    IssueKind::NulCharacter,
    IssueKind::Fraction,
    IssueKind::Enum,
];

/// What a pass found in a table.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The number of rows.
    pub rows: u64,
    /// What it found in each column.
    pub columns: Vec<ScannedColumn>,
}

/// What a pass found in a column.
#[derive(Clone, Debug, Default)]
pub struct ScannedColumn {
    /// Kinds of values that the target cannot hold, and how many there are.
    pub unfit: Vec<(IssueKind, u64)>,
    /// The number of values that are longer than a key may be.
    pub too_long: u64,
    /// The number of nulls in a column that has none on the target.
    pub nulls: u64,
}

/// What the values of columns are, on an engine whose columns hold values of any type. Passes: what is stored, whether
/// texts and numbers have the form of the class, and whether those that do not are floating-point numbers. Each column is
/// corrected at most once in each.
pub fn corrections(source: &mut Side, table: &Table, kinds: &[Kind]) -> Result<Vec<Correction>> {
    let engine = source.engine;
    let mut found: Vec<Correction> = vec![None; kinds.len()];
    let mut of_type = Vec::new();
    for column in &table.columns {
        let Some(stored) = engine.storage_class.map(|class| class(&quoted(engine, &column.name))) else {
            return Ok(found);
        };
        of_type.extend(["integer", "real", "text", "blob"].map(|class| format!("{stored} = '{class}'")));
    }
    let counts = count(source, table, &of_type)?.1;
    for (at, counts) in counts.chunks(4).enumerate() {
        let &[integers, reals, texts, blobs] = counts else { continue };
        found[at] = stored(&kinds[at], integers, reals, texts, blobs);
    }
    for again in [false, true] {
        let (mut conditions, mut asked) = (Vec::new(), Vec::new());
        for (at, column) in table.columns.iter().enumerate() {
            let kind = found[at].map_or_else(|| kinds[at].clone(), |(name, _)| kind_of(engine, name));
            if again && (kind == kinds[at] || kind.class != Class::Float64) {
                continue;
            }
            for (condition, name) in engine.dialect.other_forms(&kind, &quoted(engine, &column.name)) {
                conditions.push(condition);
                asked.push((at, name));
            }
        }
        if conditions.is_empty() {
            continue;
        }
        let counts = count(source, table, &conditions)?.1;
        for ((at, name), number) in asked.into_iter().zip(counts) {
            // The first condition that holds decides.
            if number > 0 && (again || found[at].is_none()) {
                found[at] = Some((name, found[at].map_or(number, |(_, before)| before.max(number))));
            }
        }
    }
    Ok(found)
}

/// The type of a column with so many values of each storage class, if it is not the declared one.
fn stored(kind: &Kind, integers: u64, reals: u64, texts: u64, blobs: u64) -> Correction {
    let (numbers, all) = (integers + reals, integers + reals + texts + blobs);
    let is_untyped = kind.declared.trim().is_empty() || kind.declared.eq_ignore_ascii_case("any");
    if is_untyped {
        // The column has no type: the one that all values have, or the one that holds them all.
        return match () {
            () if all == blobs => None,
            () if all == integers => Some(("bigint", 0)),
            () if all == reals => Some(("double", 0)),
            () if all == texts => Some(("text", 0)),
            () if blobs > 0 => Some(("blob", all - blobs)),
            () => Some(("text", numbers)),
        };
    }
    let class = kind.class;
    if class.is_bytes() {
        return match () {
            () if numbers + texts == 0 => None,
            () if blobs == 0 => Some(("text", numbers + texts)),
            () => Some(("blob", numbers + texts)),
        };
    }
    if blobs > 0 {
        return Some(("blob", blobs));
    }
    let others = match class {
        Class::Bool | Class::Int8 | Class::Int16 | Class::Int32 | Class::Int64 => reals + texts,
        // Names of types that say that the text is a number.
        Class::UInt64 | Class::Decimal if kind.declared.to_ascii_lowercase().contains("text") => 0,
        Class::Float32 | Class::Float64 | Class::UInt64 | Class::Decimal => texts,
        _ => numbers,
    };
    (others > 0).then_some(("text", others))
}

enum What {
    Unfit(IssueKind),
    TooLong,
    Nulls,
}

/// Counts a table's rows, and the values that will not map.
pub fn scan(source: &mut Side, target: &Engine, table: &Table, types: &[ColumnTypes]) -> Result<Scanned> {
    let engine = source.engine;
    let mut conditions = Vec::new();
    let mut asked = Vec::new();
    for (at, (column, types)) in table.columns.iter().zip(types).enumerate() {
        let (kind, name) = (&types.kind, quoted(engine, &column.name));
        let mut count = |what: What, condition: String| {
            conditions.push(condition);
            asked.push((at, what));
        };
        let cannot = target.dialect.cannot_hold(&types.mapped.stored);
        // A server refuses some values of its own.
        let is_asked = |unfit: &&IssueKind| !types.exact || **unfit == IssueKind::Enum;
        for unfit in OF_VALUES.iter().filter(|kind| cannot.contains(kind)).filter(is_asked) {
            if let Some(condition) = engine.dialect.has_unfit(kind, *unfit, &name) {
                count(What::Unfit(*unfit), condition);
            }
        }
        if let Some(longest) = types.longest {
            let length =
                if kind.class.is_bytes() { (engine.octets)(&name) } else { (engine.characters)(&name) };
            count(What::TooLong, format!("{length} > {longest}"));
        }
        // Keys of some engines hold nulls.
        if !types.exact && table.primary.contains(&column.name) && engine.has_null_keys {
            count(What::Nulls, format!("{name} IS NULL"));
        }
    }
    let (rows, counts) = count(source, table, &conditions)?;
    let mut scanned = Scanned { rows, columns: vec![ScannedColumn::default(); table.columns.len()] };
    for ((at, what), number) in asked.into_iter().zip(counts).filter(|(_, number)| *number > 0) {
        let column = &mut scanned.columns[at];
        match what {
            What::Unfit(kind) => column.unfit.push((kind, number)),
            What::TooLong => column.too_long = number,
            What::Nulls => column.nulls = number,
        }
    }
    Ok(scanned)
}

/// The number of rows, and of those for which each condition holds.
fn count(source: &mut Side, table: &Table, conditions: &[String]) -> Result<(u64, Vec<u64>)> {
    let (mut rows, mut counts) = (0, Vec::with_capacity(conditions.len()));
    // Engines limit the number of columns of a query. Without a condition, the rows are counted.
    let chunks: Vec<&[String]> =
        if conditions.is_empty() { vec![&[]] } else { conditions.chunks(200).collect() };
    for chunk in chunks {
        let sums = chunk.iter().map(|condition| format!("SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"));
        let list: Vec<String> = ["COUNT(*)".to_owned()].into_iter().chain(sums).collect();
        let filter = table.filter.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
        let sql = format!("SELECT {} FROM {}{filter}", list.join(", "), source.engine.from(table));
        let found = source.rows(&sql).map_err(|error| match error.kind() {
            ErrorKind::NotPermitted => error.hint(format!("--exclude {} leaves the table out", table.name)),
            _ => error,
        });
        let Some(row) = found?.into_iter().next() else { continue };
        // A sum of no rows is null; MySQL's sums are decimal numbers.
        let number =
            |at: usize| text(&row, at).split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut numbers = (0..=chunk.len()).map(number);
        rows = numbers.next().unwrap_or(0);
        counts.extend(numbers);
    }
    Ok((rows, counts))
}
