//! A cell of a custom workload as the engine sees it: load, transactions, and verification afterwards.

use super::declared::{Declared, Step, Traffic};
use super::reads;
use super::request::{Execute, Request};
use super::shared::{Example, Seen, Shared, Store};
use super::transaction::CustomTransaction;
use super::types::TypeTimes;
use crate::axes;
use crate::explain::{self, Explain};
use crate::fill::{PARAMETERS, REQUEST_BYTES};
use crate::prelude::*;
use kurabe_core::driver::Access;
use kurabe_core::query_plan::QueryPlan;

pub(super) struct CustomCell {
    shared: Arc<Shared>,
    bind: Bind,
}

impl CustomCell {
    pub(super) fn plan(declared: &Arc<Declared>, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let bind = Bind::parse(cell.word("statement")?)?;
        let simple = declared.simple.as_ref().filter(|_| bind == Bind::Literal);
        if let Some(why) = declared.unpreparable.as_ref().filter(|_| simple.is_none()) {
            return Err(why.clone());
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

    /// The plans of the user's statements, as the server plans them with the values that the first client had first.
    fn plans(&self, session: &mut dyn Session, examples: &[Example]) -> Result<Vec<QueryPlan>> {
        let mut plans = Vec::new();
        for Example { program, step, values } in examples {
            let Some(program) = self.shared.declared.programs.get(*program) else { continue };
            let (Some(Step::Execute(execute)), Some(values)) = (program.steps.get(*step), values) else {
                continue;
            };
            let operation = execute.request.operation(&self.shared.relations, &execute.place);
            let Operation::Raw { statement } = operation else { continue };
            if !reads::is_planned(&execute.request) {
                continue;
            }
            let values: Vec<Value<'_>> = values.iter().map(|text| Value::Text(text)).collect();
            let plan = explain::plan(session, &program.name, &statement, &values, Explain::Plan)?;
            plans.extend(plan.filter(|plan| !plans.contains(plan)));
        }
        Ok(plans)
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
        for seen in &seen {
            times.merge(&seen.times);
        }
        let plans = self.plans(session, seen.first().map_or(&[], |seen| &seen.examples))?;
        let writes = clients.iter().map(|client| client.rows_written).sum();
        let verification = Verification { writes, records: writes, counted, ..Verification::default() };
        Ok(Checked { verification, metrics: times.values(programs), plans })
    }
}
