//! The generated table, and the conditions on its columns.

use crate::fill::{self, BATCH, acknowledged, in_batches, text};
use crate::prelude::*;
use crate::statement::raw_texts;
use kurabe_core::raw::RawPiece;
use std::io::Write;

/// The values of axis `data`.
pub(super) const DATA: &[(&str, &str)] = &[
    ("uniform", "evenly distributed values, in random order"),
    ("zipf", "values by Zipf's law with exponent 1, in random order"),
    ("clustered", "values in the order of the rows"),
    ("correlated", "two columns, equal in 19 of 20 rows"),
    ("text", "texts, in random order"),
    ("nulls", "evenly distributed values of which three in ten are NULL"),
    ("join", "a column of a second table, joined by the values of zipf: how frequent each is"),
];

/// The columns after the key, each with an index.
const COLUMNS: [&str; 7] = ["uniform", "zipf", "clustered", "cause", "effect", "word", "sparse"];
/// The column of texts, and …
const WORD: usize = 5;
/// … that with NULLs.
const SPARSE: usize = 6;
/// The column of the second table.
const RANK: usize = COLUMNS.len();
/// The values of a row in these columns and in that of the joined row. A text is the number in it.
pub(super) type Row = [i64; COLUMNS.len() + 1];

/// Stands for NULL.
const NULL: i64 = i64::MIN;

const UNIFORM_VALUES: u64 = 5_000;
const ZIPF_VALUES: usize = 1_000;
const CAUSES: u64 = 500;
const WORDS: u64 = 2_000;
/// Characters of a text.
const WORD_CHARACTERS: u32 = 12;
/// Rows with the same value in the clustered column.
const CLUSTER: u64 = 20;
/// Characters of a row's last field, which only makes it longer.
const PADDING: u32 = 60;
/// Approximate bytes of a row with its index entries.
const ROW_BYTES: u64 = 380;

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

/// The generated table, and the one that is joined to it.
#[derive(Clone)]
pub(super) struct Table {
    pub(super) collection: Arc<Collection>,
    ranks: Arc<Collection>,
    pub(super) state: State,
    seed: u64,
    records: u64,
}

impl Table {
    pub(super) fn new(dataset: &Dataset, records: u64, state: State) -> Self {
        let kind = |name| match name {
            "word" => FieldType::Text { max: WORD_CHARACTERS },
            _ => FieldType::Int,
        };
        let mut fields = vec![Field { name: "id", kind: FieldType::Int }];
        fields.extend(COLUMNS.map(|name| Field { name, kind: kind(name) }));
        fields.push(Field { name: "padding", kind: FieldType::Text { max: PADDING } });
        let name = format!("kurabe_{}_estimate_{}", dataset.slot, state.name());
        let indexes = (1..=COLUMNS.len()).map(|field| vec![field]).collect();
        let of_ranks = ["id", "popularity"].map(|name| Field { name, kind: FieldType::Int });
        let ranks = Collection::new(format!("{name}_ranks"), of_ranks.to_vec(), vec![0]);
        let ranks = Arc::new(Collection { indexes: vec![vec![1]], ..ranks });
        let collection = Arc::new(Collection { indexes, ..Collection::new(name, fields, vec![0]) });
        Self { collection, ranks, state, seed: dataset.seed, records }
    }

    /// The same with other rows: those of the nth draw, from 0.
    pub(super) fn draw(&self, nth: u64) -> Self {
        let seed = if nth == 0 { self.seed } else { mix(self.seed, nth) };
        Self { seed, ..self.clone() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records * ROW_BYTES
    }

    /// The query for all fields of the rows that meet a condition.
    pub(super) fn select(&self, condition: &Condition) -> Operation {
        self.query("SELECT * FROM ", condition)
    }

    /// The query for their number.
    pub(super) fn count(&self, condition: &Condition) -> Operation {
        self.query("SELECT COUNT(*) FROM ", condition)
    }

    /// The number of all rows, of both tables.
    pub(super) fn count_all(&self) -> [Operation; 2] {
        [&self.collection, &self.ranks].map(|one| Operation::Count { collection: Arc::clone(one) })
    }

    fn query(&self, select: &str, condition: &Condition) -> Operation {
        let piece = |text: &str| RawPiece::Text(text.to_owned());
        let pieces = |clause: String| {
            let mut pieces = vec![piece(select), RawPiece::Table(self.collection.name.clone())];
            if condition.columns.contains(&RANK) {
                pieces.extend([piece(" t JOIN "), RawPiece::Table(self.ranks.name.clone())]);
                pieces.push(piece(" r ON r.id = t.zipf"));
            }
            pieces.push(RawPiece::Text(clause));
            pieces
        };
        // PostgreSQL would take an operator of `varchar` that another role made.
        let own = |sign: &str| format!("OPERATOR(pg_catalog.{sign})");
        let texts = [(Some("postgres"), condition.clause(&own)), (None, condition.where_clause())];
        raw_texts("estimate", texts.map(|(engine, clause)| (engine, pieces(clause))))
    }

    /// Gathers the statistics of both tables.
    pub(super) fn analyse(&self, namespace: &mut dyn Namespace) -> Result<()> {
        namespace.analyse(&self.collection)?;
        namespace.analyse(&self.ranks)
    }

    /// The rows of the table, without deleted ones.
    pub(super) fn rows(&self) -> Vec<Row> {
        let kept = |key: &u64| !self.is_deleted(*key);
        let make = self.generator();
        (1..=self.records).filter(kept).map(make).collect()
    }

    /// Creates the table, fills it, and brings it into its state.
    pub(super) fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        for collection in [&self.collection, &self.ranks] {
            namespace.create(collection)?;
            namespace.hold_statistics(collection)?;
        }
        let seed = self.seed;
        let per_request = fill::rows_of_a_request(2, ROW_BYTES);
        fill::fill(session, &self.ranks, ZIPF_VALUES as u64, per_request, &mut |rank, field, _| {
            Ok(Value::Int(if field == 0 { zipf_value(seed, rank) } else { rank as i64 }))
        })?;
        let first = if self.state == State::Stale { self.records / 2 } else { self.records };
        self.add(session, 0, first)?;
        if self.state == State::Stale {
            self.analyse(namespace)?;
        }
        self.add(session, first, self.records - first)?;
        if self.state == State::Deleted {
            self.delete(session)?;
        }
        let expected = (1..=self.records).filter(|key| !self.is_deleted(*key)).count() as u64;
        self.check_count(session, expected)
    }

    pub(super) fn check_count(&self, session: &mut dyn Session, expected: u64) -> Result<()> {
        fill::check_count(session, &self.collection, expected, "rows").map(drop)
    }

    fn is_deleted(&self, key: u64) -> bool {
        self.state == State::Deleted && key % 5 < 2
    }

    fn add(&self, session: &mut dyn Session, after: u64, count: u64) -> Result<()> {
        let make = self.generator();
        let per_request = fill::rows_of_a_request(self.collection.fields.len(), ROW_BYTES);
        fill::fill(session, &self.collection, count, per_request, &mut |row, field, out| {
            let key = after + row + 1;
            out.clear();
            // Writing to memory does not fail.
            match field {
                0 => return Ok(Value::Int(key as i64)),
                field if field <= COLUMNS.len() => match (field - 1, make(key)[field - 1]) {
                    (_, NULL) => return Ok(Value::Null),
                    (WORD, number) => out.extend_from_slice(word(number).as_bytes()),
                    (_, number) => return Ok(Value::Int(number)),
                },
                _ => {
                    let _ = write!(out, "{:0width$}", mix(self.seed, key), width = PADDING as usize);
                }
            }
            text(out)
        })
    }

    fn delete(&self, session: &mut dyn Session) -> Result<()> {
        let delete = session.prepare(&Operation::Delete { collection: Arc::clone(&self.collection) })?;
        let mut reply = Reply::new();
        in_batches(session, self.records, BATCH, &mut |session, row| {
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
        // For each rank, the sum of the weights up to it.
        let weight = |rank: usize| {
            sum += 1.0 / rank as f64;
            sum
        };
        let up_to: Vec<f64> = (1..=ZIPF_VALUES).map(weight).collect();
        let seed = self.seed;
        move |key| {
            let mut rng = Rng::new(mix(seed, key));
            let uniform = rng.below(UNIFORM_VALUES);
            let draw = rng.unit_f64() * sum;
            let rank = up_to.partition_point(|part| *part <= draw).min(ZIPF_VALUES - 1);
            let zipf = zipf_value(seed, rank as u64);
            let (cause, other) = (rng.below(CAUSES), rng.below(CAUSES));
            let effect = if rng.below(20) == 0 { other } else { cause };
            let sparse = if rng.below(10) < 3 { NULL } else { rng.below(UNIFORM_VALUES) as i64 };
            let [uniform, clustered, cause, effect, word] =
                [uniform, key / CLUSTER, cause, effect, rng.below(WORDS) * 7].map(|value| value as i64);
            [uniform, zipf, clustered, cause, effect, word, sparse, rank as i64]
        }
    }

    /// The conditions on a kind of data. They depend on the seed and the rows only.
    pub(super) fn conditions(&self, data: &str, rows: &[Row]) -> Vec<Condition> {
        let columns: &[usize] = match data {
            "uniform" => &[0],
            "zipf" => &[1],
            "clustered" => &[2],
            "text" => &[WORD],
            "nulls" => &[SPARSE],
            "join" => &[RANK],
            _ => &[3, 4],
        };
        let values = rows.iter().map(|row| row[columns[0]]);
        let mut values: Vec<i64> = values.filter(|value| *value != NULL).collect();
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
                ABSENT if data == "nulls" => NULL,
                n if n < ABSENT => values[values.len() - 1] + 1 + n as i64,
                // By row, which prefers frequent values, and by value.
                n if n % 2 == 0 => values[rng.below(values.len() as u64) as usize],
                _ => distinct[rng.below(distinct.len() as u64) as usize],
            };
            conditions.push(condition(value, value.saturating_add(1)));
        }
        conditions
    }
}

/// The value of a rank by Zipf's law. Popular ones are spread over the range.
fn zipf_value(seed: u64, rank: u64) -> i64 {
    let spread = mix(seed, rank) % 1_000;
    (spread * ZIPF_VALUES as u64 + rank) as i64
}

/// A text with this number in it, in the order of the numbers.
fn word(number: i64) -> String {
    format!("item-{number:07}")
}

/// A condition: each of these columns is at least `from` and less than `to`; or it is NULL. Without columns, no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Condition {
    columns: Vec<usize>,
    from: i64,
    to: i64,
}

impl Condition {
    /// The clause, with a leading space; empty without columns.
    pub(super) fn where_clause(&self) -> String {
        self.clause(&str::to_owned)
    }

    /// The clause with these operators of texts.
    fn clause(&self, of_text: &dyn Fn(&str) -> String) -> String {
        if self.columns.is_empty() {
            return String::new();
        }
        let of_column = |column: &usize| {
            let name = COLUMNS.get(*column).copied().unwrap_or("popularity");
            let value =
                |number| if *column == WORD { format!("'{}'", word(number)) } else { format!("{number}") };
            let [is, least, below] =
                ["=", ">=", "<"].map(|sign| if *column == WORD { of_text(sign) } else { sign.to_owned() });
            match (self.from, self.to) {
                (NULL, _) => format!("{name} IS NULL"),
                (from, to) if from + 1 == to => format!("{name} {is} {}", value(from)),
                (from, to) => format!("{name} {least} {} AND {name} {below} {}", value(from), value(to)),
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
        let null = share(&|row| row[SPARSE] == NULL);
        assert!((null - 0.3).abs() < 0.02, "{null}");
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
            let nulls =
                conditions.iter().filter(|condition| condition.from == NULL).map(|one| one.count(&rows));
            assert_eq!(nulls.filter(|rows| *rows > 3_000).count(), usize::from(*data == "nulls"));
            assert!(counts.iter().any(|rows| (1..100).contains(rows)), "{data}: {counts:?}");
        }
    }

    #[test]
    fn clause_of_single_value_is_an_equality() {
        let clause =
            |columns: &[usize], from, to| Condition { columns: columns.to_vec(), from, to }.where_clause();
        assert_eq!(clause(&[0], 5, 6), " WHERE uniform = 5");
        assert_eq!(clause(&[3, 4], 5, 9), " WHERE cause >= 5 AND cause < 9 AND effect >= 5 AND effect < 9");
        assert_eq!(clause(&[WORD], 5, 90), " WHERE word >= 'item-0000005' AND word < 'item-0000090'");
        assert_eq!(clause(&[SPARSE], NULL, NULL + 1), " WHERE sparse IS NULL");
        assert_eq!(clause(&[RANK], 5, 6), " WHERE popularity = 5");
    }

    #[test]
    fn each_draw_has_other_rows_and_conditions() {
        let [first, other] = [0, 1].map(|nth| table(State::Fresh).draw(nth));
        assert_ne!(first.rows(), other.rows());
        assert_ne!(first.conditions("zipf", &first.rows()), other.conditions("zipf", &other.rows()));
        assert_eq!(first.rows(), table(State::Fresh).rows());
        let mut keys: Vec<i64> = (0..ZIPF_VALUES as u64).map(|rank| zipf_value(3, rank)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), ZIPF_VALUES, "the key of the second table");
    }
}
