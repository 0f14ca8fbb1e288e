//! The generated table, and the conditions on its columns.

use super::raw;
use crate::fill::{self, FieldValue, acknowledged, in_batches};
use crate::prelude::*;
use kurabe_core::raw::RawPiece;
use std::io::Write;

/// The values of axis `data`.
pub(super) const DATA: &[(&str, &str)] = &[
    ("uniform", "evenly distributed values, in random order"),
    ("zipf", "values by Zipf's law with exponent 1, in random order"),
    ("clustered", "values in the order of the rows"),
    ("correlated", "two columns, equal in 19 of 20 rows"),
];

/// The columns after the key, all integers, each with an index.
const COLUMNS: [&str; 5] = ["uniform", "zipf", "clustered", "cause", "effect"];
/// The values of a row in these columns.
type Row = [i64; COLUMNS.len()];

const UNIFORM_VALUES: u64 = 5_000;
const ZIPF_VALUES: usize = 1_000;
const CAUSES: u64 = 500;
/// Rows with the same value in the clustered column.
const CLUSTER: u64 = 20;
/// Characters of a row's last field, which only makes it longer.
const PADDING: u32 = 60;
/// Approximate bytes of a row with its index entries.
const ROW_BYTES: u64 = 300;

/// Ranges and equalities for each kind of data.
const RANGES: u64 = 60;
const EQUALITIES: u64 = 40;
/// Of the equalities, those with a value that no row has.
const ABSENT: u64 = 4;

/// The state of the table and its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fresh,
    Stale,
    Deleted,
}

impl State {
    const ALL: [(&'static str, Self); 3] =
        [("fresh", Self::Fresh), ("stale", Self::Stale), ("deleted", Self::Deleted)];

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == word).map(|(_, state)| state)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, state)| *state == self).map_or("", |(name, _)| name)
    }
}

/// The generated table.
pub(super) struct Table {
    pub(super) collection: Arc<Collection>,
    pub(super) state: State,
    seed: u64,
    records: u64,
}

impl Table {
    pub(super) fn new(dataset: &Dataset, records: u64, state: State) -> Self {
        let columns = COLUMNS.map(|name| Field { name, kind: FieldType::Int });
        let mut fields = vec![Field { name: "id", kind: FieldType::Int }];
        fields.extend(columns);
        fields.push(Field { name: "padding", kind: FieldType::Text { max: PADDING } });
        let name = format!("kurabe_{}_estimate_{}", dataset.slot, state.name());
        let indexes = (1..=COLUMNS.len()).map(|field| vec![field]).collect();
        let collection = Arc::new(Collection { indexes, ..Collection::new(name, fields, vec![0]) });
        Self { collection, state, seed: dataset.seed, records }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records * ROW_BYTES
    }

    /// The query for all fields of the rows that meet a condition; `where_clause` begins with a space, or is empty.
    pub(super) fn select(&self, where_clause: &str) -> Operation {
        self.query("SELECT * FROM ", where_clause)
    }

    /// The query for their number.
    pub(super) fn count(&self, where_clause: &str) -> Operation {
        self.query("SELECT COUNT(*) FROM ", where_clause)
    }

    /// The number of all rows.
    pub(super) fn count_all(&self) -> Operation {
        Operation::Count { collection: Arc::clone(&self.collection) }
    }

    fn query(&self, select: &str, where_clause: &str) -> Operation {
        let table = RawPiece::Table(self.collection.name.clone());
        raw(
            "estimate",
            vec![RawPiece::Text(select.to_owned()), table, RawPiece::Text(where_clause.to_owned())],
        )
    }

    /// The rows of the table, without deleted ones.
    pub(super) fn rows(&self) -> Vec<Row> {
        let kept = |key: &u64| !self.is_deleted(*key);
        let make = self.generator();
        (1..=self.records).filter(kept).map(make).collect()
    }

    /// Creates the table, fills it, and brings it into its state.
    pub(super) fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        namespace.create(&self.collection)?;
        namespace.hold_statistics(&self.collection)?;
        let first = if self.state == State::Stale { self.records / 2 } else { self.records };
        self.add(session, 0, first)?;
        if self.state == State::Stale {
            namespace.analyse(&self.collection)?;
        }
        self.add(session, first, self.records - first)?;
        if self.state == State::Deleted {
            self.delete(session)?;
        }
        let expected = (1..=self.records).filter(|key| !self.is_deleted(*key)).count() as u64;
        self.check_count(session, expected)
    }

    pub(super) fn check_count(&self, session: &mut dyn Session, expected: u64) -> Result<()> {
        let wrong = |rows| format!("the server counts {rows} rows, expected {expected}");
        fill::check_count(session, &self.collection, expected, wrong).map(drop)
    }

    fn is_deleted(&self, key: u64) -> bool {
        self.state == State::Deleted && key % 5 < 2
    }

    fn add(&self, session: &mut dyn Session, after: u64, count: u64) -> Result<()> {
        let make = self.generator();
        let per_request = fill::rows_of_a_request(self.collection.fields.len(), ROW_BYTES);
        fill::fill(session, &self.collection, count, per_request, |row, field, out| {
            let key = after + row + 1;
            match field {
                0 => FieldValue::Int(key as i64),
                field if field <= COLUMNS.len() => FieldValue::Int(make(key)[field - 1]),
                _ => {
                    out.clear();
                    // Writing to memory does not fail.
                    let _ = write!(out, "{:0width$}", mix(self.seed, key), width = PADDING as usize);
                    FieldValue::Text
                }
            }
        })
    }

    fn delete(&self, session: &mut dyn Session) -> Result<()> {
        let delete = session.prepare(&Operation::Delete { collection: Arc::clone(&self.collection) })?;
        let mut reply = Reply::new();
        in_batches(session, self.records, |session, row| {
            let key = row + 1;
            if !self.is_deleted(key) {
                return Ok(());
            }
            session.execute(&delete, &[Value::Int(key as i64)], &mut reply)?;
            acknowledged(&reply, format_args!("the deletion of row {key}"))
        })?;
        session.release(delete)
    }

    /// The values of the row with a key, as a pure function of seed and key.
    fn generator(&self) -> impl Fn(u64) -> Row + use<> {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=ZIPF_VALUES)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        for part in &mut up_to {
            *part /= sum;
        }
        let seed = self.seed;
        move |key| {
            let mut rng = Rng::new(mix(seed, key));
            let uniform = rng.below(UNIFORM_VALUES);
            let draw = rng.unit_f64();
            let rank = up_to.partition_point(|part| *part <= draw).min(ZIPF_VALUES - 1);
            // Popular values are spread over the range.
            let zipf = mix(seed, rank as u64) % 1_000_000;
            let (cause, other) = (rng.below(CAUSES), rng.below(CAUSES));
            let effect = if rng.below(20) == 0 { other } else { cause };
            [uniform, zipf, key / CLUSTER, cause, effect].map(|value| value as i64)
        }
    }

    /// The conditions on a kind of data. They depend on the seed and the rows only.
    pub(super) fn conditions(&self, data: &str, rows: &[Row]) -> Vec<Condition> {
        let columns: &[usize] = match data {
            "uniform" => &[0],
            "zipf" => &[1],
            "clustered" => &[2],
            _ => &[3, 4],
        };
        let mut values: Vec<i64> = rows.iter().map(|row| row[columns[0]]).collect();
        values.sort_unstable();
        let distinct: Vec<i64> = values.chunk_by(|a, b| a == b).map(|equal| equal[0]).collect();
        let mut rng = Rng::new(mix(self.seed, columns[0] as u64));
        let condition = |from: i64, to: i64| Condition { columns: columns.to_vec(), from, to };
        let mut conditions = Vec::new();
        for _ in 0..RANGES {
            // Between three rows and half of all, evenly on a logarithmic scale.
            let most = (values.len() as f64 / 2.0).max(4.0);
            let width = (3.0 * (most / 3.0).powf(rng.unit_f64())) as usize;
            let start = rng.below((values.len() - width) as u64) as usize;
            conditions.push(condition(values[start], values[start + width].max(values[start] + 1)));
        }
        for n in 0..EQUALITIES {
            let value = match n {
                n if n < ABSENT => values[values.len() - 1] + 1 + n as i64,
                // By row, which prefers frequent values, and by value.
                n if n % 2 == 0 => values[rng.below(values.len() as u64) as usize],
                _ => distinct[rng.below(distinct.len() as u64) as usize],
            };
            conditions.push(condition(value, value + 1));
        }
        conditions
    }
}

/// A condition: each of these columns is at least `from` and less than `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    columns: Vec<usize>,
    from: i64,
    to: i64,
}

impl Condition {
    /// The clause, with a leading space.
    pub(super) fn where_clause(&self) -> String {
        let of_column = |column: &usize| {
            let (name, from, to) = (COLUMNS[*column], self.from, self.to);
            if from + 1 == to {
                format!("{name} = {from}")
            } else {
                format!("{name} >= {from} AND {name} < {to}")
            }
        };
        format!(" WHERE {}", self.columns.iter().map(of_column).collect::<Vec<_>>().join(" AND "))
    }

    /// The number of rows that meet it.
    pub(super) fn count(&self, rows: &[Row]) -> u64 {
        let meets =
            |row: &&Row| self.columns.iter().all(|column| (self.from..self.to).contains(&row[*column]));
        rows.iter().filter(meets).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(state: State) -> Table {
        Table::new(&Dataset { seed: 7, records: None, slot: 0 }, 20_000, state)
    }

    #[test]
    fn columns_have_their_distributions() {
        let rows = table(State::Fresh).rows();
        let share =
            |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| of(row)).count() as f64 / rows.len() as f64;
        let mut zipf: std::collections::HashMap<i64, u32> = std::collections::HashMap::new();
        for row in &rows {
            *zipf.entry(row[1]).or_default() += 1;
        }
        let harmonic: f64 = (1..=ZIPF_VALUES).map(|n| 1.0 / n as f64).sum();
        let most = f64::from(*zipf.values().max().unwrap()) / rows.len() as f64;
        assert!((most * harmonic - 1.0).abs() < 0.1, "{most}");
        let below = share(&|row| row[0] < UNIFORM_VALUES as i64 / 4);
        assert!((below - 0.25).abs() < 0.02, "{below}");
        assert!(rows.is_sorted_by_key(|row| row[2]));
        let equal = share(&|row| row[3] == row[4]);
        assert!((equal - 0.95).abs() < 0.01, "{equal}");
    }

    #[test]
    fn conditions_select_few_and_many_rows_and_some_none() {
        let table = table(State::Deleted);
        let rows = table.rows();
        assert_eq!(rows.len(), 12_000);
        for (data, _) in DATA {
            let conditions = table.conditions(data, &rows);
            assert_eq!(conditions.len() as u64, RANGES + EQUALITIES);
            let counts: Vec<u64> = conditions.iter().map(|condition| condition.count(&rows)).collect();
            assert!(counts.iter().any(|rows| *rows > 2_000), "{data}: {counts:?}");
            assert!(counts.iter().filter(|rows| **rows == 0).count() as u64 >= ABSENT, "{data}: {counts:?}");
            assert!(counts.iter().any(|rows| (1..100).contains(rows)), "{data}: {counts:?}");
        }
    }

    #[test]
    fn clause_of_single_value_is_an_equality() {
        let clause =
            |columns: &[usize], from, to| Condition { columns: columns.to_vec(), from, to }.where_clause();
        assert_eq!(clause(&[0], 5, 6), " WHERE uniform = 5");
        assert_eq!(clause(&[3, 4], 5, 9), " WHERE cause >= 5 AND cause < 9 AND effect >= 5 AND effect < 9");
    }
}
