//! `null:`: no database. It answers immediately from this process's memory, to measure the overhead of Kurabe itself.
//! Rows are stored, so reads are verified and writes are counted as with any other target.
//!
//! Transactions can be rolled back but are not isolated: other sessions see a row as soon as it is written.

mod row;
mod session;
mod table;

use crate::info::{Connections, DriverInfo};
use crate::ownership::{self, Owned, Words};
use crate::prelude::*;
use session::{NullSession, supports};
use std::sync::{Arc, PoisonError};
use table::{Store, Table, read, write};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["null"],
    engine: "null",
    about: "no database: answers from memory, to measure Kurabe's own overhead",
    url: "null:",
    options: &[],
    benchmark_clause: None,
    connections: Connections::NONE,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    if !url.path.is_empty() || url.host.is_some() {
        return Err(Error::usage(format!("{url}: null: takes no host or path")).hint("write null:"));
    }
    Ok(Box::new(Null(Arc::new(Store::default()))))
}

#[derive(Debug)]
struct Null(Arc<Store>);

impl Driver for Null {
    fn describe(&self) -> Result<ServerFacts> {
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            client: "in process".to_owned(),
            transport: "in process".to_owned(),
            durability: Some(DurabilityClass::Memory),
            notes: vec!["null: is no database: its results are the overhead of Kurabe".to_owned()],
            ..ServerFacts::default()
        })
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess
    }

    fn supports(&self, operation: &Operation) -> Support {
        supports(operation)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_sql(Support::Native)
    }

    fn connect(&self, _: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(NullSession::new(Arc::clone(&self.0))))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Owned::boxed(NullNamespace { store: Arc::clone(&self.0), holds_claim: false }))
    }

    without!(transfers, compression, other_durability, statistics, limited_memory, links, dump_tool);
}

/// The namespace of a store, in which every table is Kurabe's own.
struct NullNamespace {
    store: Arc<Store>,
    holds_claim: bool,
}

impl NullNamespace {
    fn claimed(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.store.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ownership::NamespaceOps for NullNamespace {
    fn words(&self) -> Words {
        Words { engine: "null", thing: "collection", instead: "use another name", kept: &[] }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        let mut claimed = self.claimed();
        match claimed.as_deref() {
            // The same run may use it through another target.
            Some(other) if other == run => return Ok(()),
            Some(other) if !self.holds_claim => {
                return Err(Error::new(ErrorKind::InUse, format!("null: is in use by run {other}")));
            }
            _ => {}
        }
        *claimed = Some(run.to_owned());
        drop(claimed);
        self.holds_claim = true;
        Ok(())
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        Ok(read(&self.store.tables).keys().cloned().collect())
    }

    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        let table = Arc::new(Table::new(collection));
        if let Some(before) = write(&self.store.tables).insert(collection.name.clone(), table) {
            before.remove();
        }
        Ok(())
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.store.table(&collection.name).map(|table| table.clear())
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        if let Some(table) = write(&self.store.tables).remove(name) {
            table.remove();
        }
        Ok(())
    }
}

impl Drop for NullNamespace {
    fn drop(&mut self) {
        if self.holds_claim {
            *self.claimed() = None;
        }
    }
}
