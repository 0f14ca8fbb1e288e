//! A cell of a custom workload as the engine sees it: load, transactions, and what is counted afterwards.

use super::declared::{Constant, Declared, Execute, Request, Step, Traffic, rows_of};
use super::known::Known;
use super::place::fault;
use super::rows::{Rows, most_bytes};
use super::transaction::CustomTransaction;
use super::types::TypeTimes;
use crate::axes;
use crate::fill::{PARAMETERS, REQUEST_BYTES, count, fill, rows_of_a_request};
use kurabe_core::axis::Cell;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Capability, Namespace, Session};
use kurabe_core::experiment::{
    After, Before, Checked, Client, ClientSummary, Dataset, DatasetState, Prepare, Transaction, Workload,
};
use kurabe_core::operation::Operation;
use kurabe_core::planned::{Demand, LoopPolicy, PlannedCell};
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::sync::Arc;

/// What the clients of a cell share.
pub(super) struct Shared {
    pub(super) declared: Arc<Declared>,
    pub(super) homes: Vec<Arc<Collection>>,
    /// What each variable holds when a client begins.
    pub(super) initial: Vec<Constant>,
    pub(super) weights: u64,
    pub(super) seed: u64,
    stores: Vec<Option<Store>>,
}

/// The rows of a collection that is made for the run.
struct Store {
    rows: Rows,
    count: u64,
    row_bytes: u64,
}

impl Shared {
    fn new(declared: &Arc<Declared>, dataset: &Dataset) -> Result<Self> {
        let mut initial = declared.variables.initial.clone();
        let made = declared.homes.iter().filter(|home| home.made.is_some());
        if dataset.records.is_some() && made.clone().count() != 1 {
            return Err(
                fault("--records is for a workload of one collection").hint("use --define with a variable")
            );
        }
        let mut stores = Vec::with_capacity(declared.homes.len());
        for (number, home) in (1..).zip(&declared.homes) {
            let Some(made) = &home.made else {
                stores.push(None);
                continue;
            };
            let known = Known::of(declared, &initial);
            let count = known.rows(&made.rows).map_err(|error| error.context(&made.place))?;
            let count = dataset.records.unwrap_or(count);
            if let Some(slot) = declared.variables.find(&rows_of(&home.name)) {
                initial[slot] = Constant::Int(count as i64);
            }
            let rows = Rows::new(mix(dataset.seed, number), &home.fields, &made.generators);
            let row_bytes = made.generators.iter().map(most_bytes).sum::<u64>() + 16;
            stores.push(Some(Store { rows, count, row_bytes }));
        }
        // Now that the numbers of rows are known too.
        Known::of(declared, &initial).check(declared)?;
        Ok(Self {
            declared: Arc::clone(declared),
            homes: declared.homes.iter().map(|home| home.collection(dataset.slot)).collect(),
            initial,
            weights: declared.programs.iter().map(|program| program.weight).sum(),
            seed: dataset.seed,
            stores,
        })
    }

    /// Compares the fields of a row that was made, and that no transaction changes, with what they were made as.
    #[inline]
    pub(super) fn check_made(
        &self,
        home: usize,
        fields: &[usize],
        key: Option<Value<'_>>,
        reply: &Reply,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let declared = &self.declared.homes[home];
        let (Some(store), Some(first), Some(Value::Int(key))) =
            (&self.stores[home], declared.first_key(), key)
        else {
            return Ok(());
        };
        let row = key.wrapping_sub(first) as u64;
        if declared.disturbed || row >= store.count || reply.rows() != 1 {
            return Ok(());
        }
        for (column, field) in fields.iter().enumerate().filter(|(_, field)| !declared.changed[**field]) {
            let expected = store.rows.make(row, *field, scratch).value(scratch)?;
            let found = reply.field(0, column);
            let right = match (found, expected) {
                (Some(Value::Bytes(found)), Value::Text(text)) => found == text.as_bytes(),
                (found, expected) => found == Some(expected),
            };
            if !right {
                let name = declared.fields[*field].name;
                return Err(Error::mismatch(format!("field {name} of row {key} is not as it was made")));
            }
        }
        Ok(())
    }

    fn fill(&self, home: usize, session: &mut dyn Session) -> Result<()> {
        let Some(store) = &self.stores[home] else { return Ok(()) };
        let most = rows_of_a_request(self.homes[home].fields.len(), store.row_bytes);
        fill(session, &self.homes[home], store.count, most, |row, field, out| {
            store.rows.make(row, field, out)
        })?;
        self.check_count(home, session, store.count as i64).map(drop)
    }

    /// Holds the server to a number of rows, where it can count; gives whether it could.
    fn check_count(&self, home: usize, session: &mut dyn Session, expected: i64) -> Result<bool> {
        match count(session, &self.homes[home])? {
            None => Ok(false),
            Some(rows) if i64::try_from(rows) == Ok(expected) => Ok(true),
            Some(rows) => Err(Error::mismatch(format!(
                "{} must hold {expected} rows and the server counts {rows}",
                self.declared.homes[home].name
            ))),
        }
    }
}

/// What a client saw.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The rows that came into each collection, less those that went.
    pub(super) tally: Vec<i64>,
    /// How long each transaction type took, without warm-up.
    pub(super) times: TypeTimes,
}

pub(super) struct CustomCell {
    shared: Arc<Shared>,
    prepare_once: bool,
}

impl CustomCell {
    pub(super) fn plan(declared: &Arc<Declared>, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let shared = Arc::new(Shared::new(declared, dataset)?);
        let workload = Self { shared, prepare_once: cell.word("statement")? == "once" };
        let (demand, verifies_reads) = (workload.demand(), workload.verifies_reads());
        let policy = LoopPolicy { verifies_reads, ..axes::policy(cell)? };
        Ok(PlannedCell::new("custom", demand, policy, workload))
    }

    fn made(&self) -> impl Iterator<Item = (usize, &Store)> {
        self.shared.stores.iter().enumerate().filter_map(|(home, store)| Some((home, store.as_ref()?)))
    }

    fn executes(&self) -> impl Iterator<Item = &Execute> {
        let steps = self.shared.declared.programs.iter().flat_map(|program| &program.steps);
        steps.filter_map(|step| match step {
            Step::Execute(execute) => Some(&**execute),
            _ => None,
        })
    }

    fn demand(&self) -> Demand {
        let mut operations: Vec<Operation> = Vec::new();
        let inserts = self
            .made()
            .map(|(home, _)| Operation::Insert { collection: Arc::clone(&self.shared.homes[home]) });
        let asked =
            self.executes().map(|execute| execute.request.operation(&self.shared.homes, &execute.place));
        for operation in inserts.chain(asked) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        let value_bytes = self.made().map(|(_, store)| store.row_bytes).max().unwrap_or(0);
        let parameters = operations.iter().map(Operation::parameters).max().unwrap_or(0) as u64;
        Demand {
            operations,
            capabilities: Vec::from_iter((!self.prepare_once).then_some(Capability::PreparedStatements)),
            value_bytes,
            request_bytes: value_bytes.max(REQUEST_BYTES),
            parameters: parameters.max(PARAMETERS),
            loaded_bytes: self.made().map(|(_, store)| store.count.saturating_mul(store.row_bytes)).sum(),
            client_bytes: 64_000,
            ..Demand::default()
        }
    }

    /// Where each request that reads says how many rows must come: then nothing can be missing unseen.
    fn verifies_reads(&self) -> bool {
        self.executes().all(|execute| {
            let reads = !matches!(execute.request, Request::Begin | Request::Commit | Request::Rollback);
            !reads || execute.rows.is_some() || !execute.fields.is_empty()
        })
    }
}

impl Prepare for CustomCell {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        for (home, _) in self.made() {
            namespace.create(&self.shared.homes[home])?;
            self.shared.fill(home, session)?;
            namespace.analyse(&self.shared.homes[home])?;
        }
        Ok(DatasetState::default())
    }

    fn before(&self, Before { namespace, session, .. }: Before<'_>) -> Result<()> {
        for (home, _) in
            self.made().filter(|(home, _)| self.shared.declared.homes[*home].traffic != Traffic::None)
        {
            namespace.clear(&self.shared.homes[home])?;
            self.shared.fill(home, session)?;
            // What was known went with the rows, on some engines.
            namespace.analyse(&self.shared.homes[home])?;
        }
        Ok(())
    }
}

impl Workload for CustomCell {
    fn transaction(&self, _: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        if self.shared.declared.programs.is_empty() {
            return Err(Error::new(ErrorKind::Internal, "a workload without a transaction"));
        }
        Ok(Box::new(CustomTransaction::new(&self.shared, self.prepare_once, client)))
    }

    /// What its statements change is the user's own: the server's acknowledgements are summed, and rows that came or went are
    /// counted where the workload says which.
    fn after(&self, After { session, clients, .. }: After<'_>) -> Result<Checked> {
        let seen = clients.iter().map(ClientSummary::notes).collect::<Result<Vec<&Seen>>>()?;
        let mut counted = 0;
        for (home, store) in self.made() {
            let declared = &self.shared.declared.homes[home];
            if declared.traffic != Traffic::Counted {
                continue;
            }
            let tally: i64 = seen.iter().map(|seen| seen.tally[home]).sum();
            if self.shared.check_count(home, session, store.count as i64 + tally)? {
                counted += tally.unsigned_abs();
            }
        }
        let programs = &self.shared.declared.programs;
        let mut times = TypeTimes::new(programs);
        for seen in seen {
            times.merge(&seen.times);
        }
        let writes = clients.iter().map(|client| client.rows_written).sum();
        let verification = Verification { writes, records: writes, counted, ..Verification::default() };
        Ok(Checked { verification, metrics: times.values(programs) })
    }
}
