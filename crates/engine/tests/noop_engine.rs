//! A minimal key-value engine, as an example of the interface: rows of a number and a text, in memory. This file
//! contains everything that such a driver needs.

use kurabe_core::collection::{Collection, FieldType};
use kurabe_core::driver::{
    Capabilities, ConnectOptions, Driver, Namespace, Prepared, Session, Support, TableStatistics,
};
use kurabe_core::facts::ServerFacts;
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::without;
use kurabe_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

type Rows = BTreeMap<i64, Vec<u8>>;

/// The rows of each collection, which all sessions share.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<BTreeMap<String, Rows>>>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Rows>> {
        self.0.lock().unwrap()
    }
}

impl Driver for Shelf {
    fn describe(&self) -> Result<ServerFacts> {
        Ok(ServerFacts { engine: "shelf".to_owned(), version: "1".to_owned(), ..ServerFacts::default() })
    }

    fn supports(&self, operation: &Operation) -> Support {
        let fields = operation.collection().map_or(&[][..], |collection| &collection.fields);
        let kinds: Vec<FieldType> = fields.iter().map(|field| field.kind).collect();
        let fits = matches!(kinds[..], [FieldType::Int, FieldType::Text { .. }]);
        match operation {
            Operation::Get { .. } | Operation::Insert { .. } | Operation::Count { .. } if fits => {
                Support::Native
            }
            other => Support::No(format!("a shelf does not {}", other.name())),
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_statements("a shelf", Support::no("it answers one request at a time"))
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess
    }

    fn connect(&self, _: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(Reader { shelf: self.clone(), operations: Vec::new() }))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(self.clone()))
    }

    without!(transfers, compression, other_durability, statistics, limited_memory, links, dump_tool);
}

struct Reader {
    shelf: Shelf,
    operations: Vec<Operation>,
}

impl Session for Reader {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Support::No(why) = self.shelf.supports(operation) {
            return Err(Error::unsupported(why));
        }
        self.operations.push(operation.clone());
        Ok(Prepared(self.operations.len() - 1))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let operation = &self.operations[prepared.0];
        let mut all = self.shelf.lock();
        let rows = operation.collection().and_then(|collection| all.get_mut(&collection.name));
        let rows = rows.ok_or_else(|| Error::new(ErrorKind::NotFound, "no such collection"))?;
        match (operation, parameters) {
            (Operation::Count { .. }, _) => {
                out.push_int(rows.len() as i64);
                out.end_row();
            }
            (Operation::Get { fields, .. }, [Value::Int(key)]) => {
                if let Some(text) = rows.get(key) {
                    for field in fields {
                        if *field == 0 { out.push_int(*key) } else { out.push_bytes(text) }
                    }
                    out.end_row();
                }
            }
            (Operation::Insert { .. }, [Value::Int(key), Value::Text(text)]) => {
                if rows.insert(*key, text.as_bytes().to_vec()).is_some() {
                    return Err(Error::new(ErrorKind::Server, format!("{key} was there")));
                }
                out.set_affected(1);
            }
            (other, _) => return Err(Error::unsupported(other.name())),
        }
        Ok(())
    }

    fn release(&mut self, _: Prepared) -> Result<()> {
        Ok(())
    }

    without!(bulk, planner, cache, raw_messages, transactions);
}

impl Namespace for Shelf {
    /// It ends with this process, which nobody else uses.
    fn claim(&mut self, _: &str) -> Result<()> {
        Ok(())
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        self.lock().entry(collection.name.clone()).or_default();
        Ok(())
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.lock().insert(collection.name.clone(), Rows::new());
        Ok(())
    }

    fn keeps_insertion_order(&self) -> bool {
        false
    }

    fn key_prefix(&mut self, _: &Collection) -> Result<Option<String>> {
        Ok(None)
    }

    fn statistics(&mut self) -> Option<&mut dyn TableStatistics> {
        None
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        self.lock().remove(name);
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{self, target};
    use kurabe_core::run::{Outcome, RunSpec};
    use kurabe_engine::plan::Plan;

    #[test]
    fn shipped_experiment_runs_on_a_new_engine_and_finds_each_row() {
        let shelf = Shelf::default();
        let mut targets = [target("shelf", Box::new(shelf.clone()))];
        let experiment = common::experiment("kv");
        let info = experiment.info;
        let spec = RunSpec {
            axes: info.baseline(&[("clients", "3")]).unwrap().alone(),
            operations: info.operation_names(),
            requests: info.operation_names().into_iter().map(|name| (name, 60)).collect(),
            records: Some(50),
            rounds: 1,
            ..RunSpec::new(info.name, ["shelf:"])
        };
        let plan = Plan::new(experiment, &spec, &targets).unwrap();
        let trials = common::trials(plan, &mut targets);
        // Reads and writes of the baseline and of its A/A control.
        assert_eq!(trials.len(), 4);
        for trial in trials {
            let Outcome::Measured(measured) = trial.outcome else { panic!("{:?}", trial.outcome) };
            assert_eq!(measured.completed, 60);
            let verified = measured.verified.unwrap();
            let all = measured.completed + measured.warmup;
            let expected = if trial.operation == "write" { (0, all) } else { (all, 0) };
            assert_eq!((verified.answers, verified.read_back), expected);
        }
        drop(targets);
        assert!(shelf.lock().is_empty(), "the run removes what it made");
    }
}
