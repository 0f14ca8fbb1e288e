//! What the clients of a cell share, and what they note for the check after a trial.

use super::declared::Declared;
use super::known::Known;
use super::rows::{Rows, most_bytes};
use super::types::TypeTimes;
use super::variables::{Constant, rows_of};
use crate::fill::{check_count, fill, rows_of_a_request};
use crate::prelude::*;
use crate::readback::returned;

/// What the clients of a cell share.
pub(super) struct Shared {
    pub(super) declared: Arc<Declared>,
    pub(super) relations: Vec<Arc<Collection>>,
    /// The value of each variable when a client begins.
    pub(super) initial: Vec<Constant>,
    pub(super) weights: u64,
    pub(super) seed: u64,
    pub(super) stores: Vec<Option<Store>>,
}

/// The rows of a collection that is created for the run.
pub(super) struct Store {
    rows: Rows,
    pub(super) count: u64,
    pub(super) row_bytes: u64,
}

impl Shared {
    pub(super) fn new(declared: &Arc<Declared>, dataset: &Dataset) -> Result<Self> {
        let mut initial = declared.variables.initial.clone();
        let made = declared.relations.iter().filter(|relation| relation.made.is_some());
        if dataset.records.is_some() && made.clone().count() != 1 {
            return Err(Error::usage("--records requires a workload with one collection")
                .hint("use --define with a variable"));
        }
        let mut stores = Vec::with_capacity(declared.relations.len());
        for (number, relation) in (1..).zip(&declared.relations) {
            let Some(made) = &relation.made else {
                stores.push(None);
                continue;
            };
            let known = Known::of(declared, &initial);
            let count = known.rows(&made.rows).map_err(|error| error.context(&made.place))?;
            let count = dataset.records.unwrap_or(count);
            if let Some(slot) = declared.variables.find(&rows_of(&relation.name)) {
                initial[slot] = Constant::Int(count as i64);
            }
            let rows = Rows::new(mix(dataset.seed, number), &relation.fields, &made.generators);
            let row_bytes = made.generators.iter().map(most_bytes).sum::<u64>() + 16;
            stores.push(Some(Store { rows, count, row_bytes }));
        }
        // The numbers of rows are known now.
        Known::of(declared, &initial).check(declared)?;
        Ok(Self {
            declared: Arc::clone(declared),
            relations: declared.relations.iter().map(|relation| relation.collection(dataset.slot)).collect(),
            initial,
            weights: declared.programs.iter().map(|program| program.weight).sum(),
            seed: dataset.seed,
            stores,
        })
    }

    /// Compares the fields of a generated row that no transaction changes with their generated values.
    #[inline]
    pub(super) fn check_made(
        &self,
        relation: usize,
        fields: &[usize],
        key: Option<Value<'_>>,
        reply: &Reply,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let declared = &self.declared.relations[relation];
        let (Some(store), Some(first), Some(Value::Int(key))) =
            (&self.stores[relation], declared.first_key(), key)
        else {
            return Ok(());
        };
        let row = key.wrapping_sub(first) as u64;
        if declared.disturbed || row >= store.count || reply.rows() != 1 {
            return Ok(());
        }
        for (column, field) in fields.iter().enumerate().filter(|(_, field)| !declared.changed[**field]) {
            let expected = store.rows.make(row, *field, scratch)?;
            if reply.field(0, column) != Some(returned(expected)) {
                let name = declared.fields[*field].name;
                return Err(Error::mismatch(format!(
                    "field {name} of row {key} differs from its generated value"
                )));
            }
        }
        Ok(())
    }

    /// Fills an empty collection. On some engines a change of rows invalidates the statistics, which are made anew.
    pub(super) fn fill(
        &self,
        relation: usize,
        namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let Some(store) = &self.stores[relation] else { return Ok(()) };
        let most = rows_of_a_request(self.relations[relation].fields.len(), store.row_bytes);
        fill(session, &self.relations[relation], store.count, most, &mut |row, field, out| {
            store.rows.make(row, field, out)
        })?;
        self.check_count(relation, session, store.count as i64)?;
        namespace.analyse(&self.relations[relation])
    }

    /// Checks a number of rows, if the server can count them; returns whether it could.
    pub(super) fn check_count(
        &self,
        relation: usize,
        session: &mut dyn Session,
        expected: i64,
    ) -> Result<bool> {
        let what = format!("rows of {}", self.declared.relations[relation].name);
        // No server counts as many rows as a negative number becomes.
        let counted = check_count(session, &self.relations[relation], expected as u64, &what)?;
        Ok(counted.is_some())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// For each collection, the inserted rows minus the deleted rows.
    pub(super) tally: Vec<i64>,
    /// The times of each transaction type, without warm-up.
    pub(super) times: TypeTimes,
    /// The values with which statements were first executed, for their plans.
    pub(super) examples: Vec<Example>,
}

/// The values with which a step's statement was first executed.
#[derive(Clone, Debug)]
pub(super) struct Example {
    pub(super) program: usize,
    pub(super) step: usize,
    /// As texts of SQL; `None`: one of them has no such text.
    pub(super) values: Option<Vec<String>>,
}

impl Seen {
    pub(super) fn new(shared: &Shared) -> Self {
        let tally = vec![0; shared.relations.len()];
        Self { tally, times: TypeTimes::new(&shared.declared.programs), examples: Vec::new() }
    }
}
