//! How far a copy came, held on the target in a table of Kurabe's own, which the ownership table records. The state of a
//! table changes in the transaction that inserts its rows.

use crate::page::Page;
use crate::sql::Side;
use crate::wanted::Parts;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{Namespace, Prepared};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table's name.
pub const NAME: &str = "kurabe_copy";

/// The whole copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// A digest of the plan: only the same copy can be resumed.
    pub fingerprint: String,
    pub source: String,
    /// The tables on the target.
    pub tables: Vec<String>,
    #[serde(default)]
    pub parts: Parts,
    /// All tables that copies have made on this target, with their columns.
    #[serde(default)]
    pub columns: BTreeMap<String, Vec<String>>,
    /// What tells those tables from others of their names, where the engine says it.
    #[serde(default)]
    pub ids: BTreeMap<String, String>,
    /// The types and sequences that the copy needs and that were on the target before it.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Whether the record stays when the copy ends.
    #[serde(default)]
    pub kept: bool,
    /// Whether the copy has ended, and this is only the record of what was made.
    #[serde(default)]
    pub done: bool,
}

impl Whole {
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.fingerprint, &self.source, &self.tables) == (&other.fingerprint, &other.source, &other.tables)
    }
}

/// How far a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It may exist, and has no rows.
    Making,
    /// Rows are being copied.
    Rows,
    Copied,
    /// All values were compared.
    Verified,
    Indexed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfTable {
    pub phase: Phase,
    pub rows: u64,
    /// The key of the last row.
    pub last: Option<Page>,
    /// The keys at which ranges begin that are copied separately, but for the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<i64>,
    /// The rows that the target refused.
    #[serde(default)]
    pub rejected: u64,
    /// The sums of their digests, by chunk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sums: BTreeMap<usize, [u64; 2]>,
}

/// The whole numbers with which the keys of a range begin: from the first one, to the last one exclusively.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// `None`: without a lower bound.
    pub from: Option<i64>,
    /// `None`: without an upper bound.
    pub to: Option<i64>,
}

impl OfTable {
    /// A table that has no rows yet.
    pub fn new(phase: Phase) -> Self {
        Self { phase, rows: 0, last: None, splits: Vec::new(), rejected: 0, sums: BTreeMap::new() }
    }

    pub fn ranges(&self) -> usize {
        self.splits.len() + 1
    }

    pub fn bounds(&self, range: usize) -> Range {
        let from = range.checked_sub(1).and_then(|before| self.splits.get(before));
        Range { from: from.copied(), to: self.splits.get(range).copied() }
    }

    /// Counts a row that the target refused.
    pub fn reject(&mut self, (chunk, digests): (usize, [u64; 2])) {
        self.add(&Self { rejected: 1, sums: BTreeMap::from([(chunk, digests)]), ..Self::new(self.phase) });
    }

    /// Adds the rows of a range.
    pub fn add(&mut self, range: &Self) {
        self.rows += range.rows;
        self.rejected += range.rejected;
        for (chunk, digests) in &range.sums {
            let sums = self.sums.entry(*chunk).or_default();
            (0..2).for_each(|at| sums[at] = sums[at].wrapping_add(digests[at]));
        }
    }
}

pub struct State {
    put: Prepared,
    get: Prepared,
}

fn collection() -> Collection {
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 200 } },
        Field { name: "data", kind: FieldType::LongText },
    ];
    Collection::new(NAME, fields, vec![0])
}

/// Whether a copy to this target is unfinished.
pub fn exists(namespace: &mut dyn Namespace) -> Result<bool> {
    Ok(namespace.list()?.iter().any(|name| name == NAME))
}

/// Removes the state, and the ownership table if it has no other entry.
pub fn remove(namespace: &mut dyn Namespace) -> Result<()> {
    namespace.remove(NAME)?;
    if namespace.list()?.is_empty() { namespace.finish() } else { Ok(()) }
}

impl State {
    /// Makes an empty state.
    pub fn create(namespace: &mut dyn Namespace, side: &mut Side) -> Result<Self> {
        namespace.create(&collection())?;
        Self::open(side)
    }

    pub fn open(side: &mut Side) -> Result<Self> {
        let collection = Arc::new(collection());
        let put = side.session.prepare(&Operation::Put { collection: Arc::clone(&collection) })?;
        let get = Operation::Get { collection, fields: vec![1] };
        let get = side.session.prepare(&get)?;
        Ok(Self { put, get })
    }

    fn get<T: DeserializeOwned>(&self, side: &mut Side, id: &str) -> Result<Option<T>> {
        let mut reply = Reply::new();
        side.session.execute(&self.get, &[Value::Text(id)], &mut reply)?;
        let Some(bytes) = reply.field_bytes(0, 0) else { return Ok(None) };
        serde_json::from_slice(bytes).map_err(|error| {
            let what = format!("{}: table {NAME} cannot be read: {error}", side.name);
            Error::new(ErrorKind::Damaged, what).hint("begin again with --no-resume")
        })
    }

    fn put(&self, side: &mut Side, id: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("the state cannot be written: {error}"))
        })?;
        side.session.execute(&self.put, &[Value::Text(id), Value::Text(&text)], &mut Reply::new())
    }

    /// The whole copy, once recorded.
    pub fn whole(&self, side: &mut Side) -> Result<Option<Whole>> {
        self.get(side, "copy")
    }

    pub fn set_whole(&self, side: &mut Side, whole: &Whole) -> Result<()> {
        self.put(side, "copy", whole)
    }

    /// How far a table is; `None` if it was not begun.
    pub fn table(&self, side: &mut Side, name: &str) -> Result<Option<OfTable>> {
        self.get(side, &format!("table {name}"))
    }

    pub fn set_table(&self, side: &mut Side, name: &str, state: &OfTable) -> Result<()> {
        self.put(side, &format!("table {name}"), state)
    }

    /// Records that a table was not begun.
    pub fn forget_table(&self, side: &mut Side, name: &str) -> Result<()> {
        self.put(side, &format!("table {name}"), &())
    }

    /// How far a range of a table is. The only range of a table is the table itself.
    pub fn range(&self, side: &mut Side, name: &str, table: &OfTable, range: usize) -> Result<OfTable> {
        if table.splits.is_empty() {
            return Ok(table.clone());
        }
        let found = self.get(side, &format!("range {range} of {name}"))?;
        Ok(found.unwrap_or_else(|| OfTable::new(Phase::Rows)))
    }

    /// Records how far a range of a table is.
    pub fn set_range(
        &self,
        side: &mut Side,
        name: &str,
        table: &OfTable,
        range: usize,
        state: &OfTable,
    ) -> Result<()> {
        if table.splits.is_empty() {
            return self.set_table(side, name, state);
        }
        self.put(side, &format!("range {range} of {name}"), state)
    }

    /// Frees what is prepared.
    pub fn close(self, side: &mut Side) -> Result<()> {
        let Self { put, get } = self;
        side.session.release(put).and(side.session.release(get))
    }
}
