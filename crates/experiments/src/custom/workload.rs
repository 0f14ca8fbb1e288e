//! A cell of a custom workload as the engine sees it: load, transactions, and verification afterwards.

use super::declared::{Declared, Step, Traffic};
use super::known::Known;
use super::request::{Execute, Request};
use super::rows::{Rows, most_bytes};
use super::transaction::{AS_TEXT, CustomTransaction};
use super::types::TypeTimes;
use super::variables::{Constant, rows_of};
use crate::axes;
use crate::fill::{PARAMETERS, REQUEST_BYTES, check_count, fill, rows_of_a_request};
use crate::prelude::*;
use crate::readback::returned;
use kurabe_core::driver::Access;

/// What the clients of a cell share.
pub(super) struct Shared {
    pub(super) declared: Arc<Declared>,
    pub(super) relations: Vec<Arc<Collection>>,
    /// The value of each variable when a client begins.
    pub(super) initial: Vec<Constant>,
    pub(super) weights: u64,
    pub(super) seed: u64,
    stores: Vec<Option<Store>>,
}

/// The rows of a collection that is created for the run.
struct Store {
    rows: Rows,
    count: u64,
    row_bytes: u64,
}

impl Shared {
    fn new(declared: &Arc<Declared>, dataset: &Dataset) -> Result<Self> {
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
    fn fill(&self, relation: usize, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        let Some(store) = &self.stores[relation] else { return Ok(()) };
        let most = rows_of_a_request(self.relations[relation].fields.len(), store.row_bytes);
        fill(session, &self.relations[relation], store.count, most, &mut |row, field, out| {
            store.rows.make(row, field, out)
        })?;
        self.check_count(relation, session, store.count as i64)?;
        namespace.analyse(&self.relations[relation])
    }

    /// Checks a number of rows, if the server can count them; returns whether it could.
    fn check_count(&self, relation: usize, session: &mut dyn Session, expected: i64) -> Result<bool> {
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
}

impl Seen {
    pub(super) fn new(shared: &Shared) -> Self {
        let tally = vec![0; shared.relations.len()];
        Self { tally, times: TypeTimes::new(&shared.declared.programs) }
    }
}

pub(super) struct CustomCell {
    shared: Arc<Shared>,
    bind: Bind,
}

impl CustomCell {
    pub(super) fn plan(declared: &Arc<Declared>, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let bind = Bind::parse(cell.word("statement")?)?;
        let simple = declared.simple.as_ref().filter(|_| bind == Bind::Literal);
        if let Some(place) = declared.left_in_quotes.as_ref().filter(|_| simple.is_none()) {
            let what = format!("{place} is within quotes, where a parameter cannot be");
            return Err(Error::usage(what).hint(AS_TEXT));
        }
        let declared = simple.unwrap_or(declared);
        let workload = Self { shared: Arc::new(Shared::new(declared, dataset)?), bind };
        let (demand, verifies_reads) = (workload.demand(), workload.verifies_reads());
        let access = workload.shared.declared.access;
        let policy = LoopPolicy { verifies_reads, access, ..axes::policy(cell)? };
        Ok(PlannedCell::new("custom", demand, policy, workload))
    }

    fn made(&self) -> impl Iterator<Item = (usize, &Store)> {
        self.shared
            .stores
            .iter()
            .enumerate()
            .filter_map(|(relation, store)| Some((relation, store.as_ref()?)))
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
        let inserts = self.made().map(|(relation, _)| Operation::Insert {
            collection: Arc::clone(&self.shared.relations[relation]),
        });
        let asked =
            self.executes().map(|execute| execute.request.operation(&self.shared.relations, &execute.place));
        for operation in inserts.chain(asked) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        let value_bytes = self.made().map(|(_, store)| store.row_bytes).max().unwrap_or(0);
        let parameters = operations.iter().map(Operation::parameters).max().unwrap_or(0) as u64;
        let prepares = (self.bind != Bind::Once).then_some(Capability::PreparedStatements);
        let reads = (self.shared.declared.access == Access::ReadOnly).then_some(Capability::ReadOnlySessions);
        Demand {
            operations,
            capabilities: prepares.into_iter().chain(reads).collect(),
            value_bytes,
            request_bytes: value_bytes.max(REQUEST_BYTES),
            parameters: parameters.max(PARAMETERS),
            loaded_bytes: self.made().map(|(_, store)| store.count.saturating_mul(store.row_bytes)).sum(),
            client_bytes: 64_000,
            ..Demand::default()
        }
    }

    /// Whether each reading request states its number of rows. Then a missing row is always detected.
    fn verifies_reads(&self) -> bool {
        self.executes().all(|execute| {
            let reads = !matches!(execute.request, Request::Begin | Request::Commit | Request::Rollback);
            !reads || execute.rows.is_some() || !execute.fields.is_empty()
        })
    }
}

impl Workload for CustomCell {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        for (relation, _) in self.made() {
            namespace.create(&self.shared.relations[relation])?;
            self.shared.fill(relation, namespace, session)?;
        }
        Ok(DatasetState::default())
    }

    fn before(&self, Before { namespace, session, .. }: Before<'_>) -> Result<()> {
        for (relation, _) in self
            .made()
            .filter(|(relation, _)| self.shared.declared.relations[*relation].traffic != Traffic::None)
        {
            namespace.clear(&self.shared.relations[relation])?;
            self.shared.fill(relation, namespace, session)?;
        }
        Ok(())
    }

    fn transaction(&self, _: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        if self.shared.declared.programs.is_empty() {
            return Err(Error::new(ErrorKind::Internal, "a workload without a transaction"));
        }
        Ok(Box::new(CustomTransaction::new(&self.shared, self.bind, client)))
    }

    /// The statements may change the user's own data. The server's acknowledgements are summed, and inserted or
    /// deleted rows are counted if the workload states their number.
    fn after(&self, After { session, clients, .. }: After<'_>) -> Result<Checked> {
        let seen: Vec<&Seen> = clients.iter().filter_map(ClientSummary::notes).collect();
        let mut counted = 0;
        for (relation, store) in self.made() {
            let declared = &self.shared.declared.relations[relation];
            if declared.traffic != Traffic::Counted {
                continue;
            }
            let tally: i64 = seen.iter().map(|seen| seen.tally[relation]).sum();
            if self.shared.check_count(relation, session, store.count as i64 + tally)? {
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
