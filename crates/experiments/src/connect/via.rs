//! connect through an application: each read is one page of it. The connections in question are the application's, to its
//! database; clients keep theirs to the application, so that nothing else differs.

use super::INFO;
use crate::answer;
use crate::content::Content;
use crate::point::{LENGTH, LOADED, NEW, READ, content};
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Checked, Client, Demand, Done, NeededSetting, Transaction, Workload};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// What the application says of its rows on `/connect`.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Facts {
    seed: u64,
    /// How many there are; their keys are 1 to this.
    records: u64,
}

/// The rows of an application.
#[derive(Debug)]
struct Data {
    records: u64,
    content: Content,
}

pub(super) struct ViaWorkload {
    clients: usize,
    /// The page that reads.
    page: &'static str,
    /// What the application must hold, where the page does not say so itself.
    held: Option<NeededSetting>,
    data: Mutex<Option<Arc<Data>>>,
}

impl ViaWorkload {
    pub(super) fn new(cell: &Cell) -> Result<Self> {
        let held = |value: String, options: &str| NeededSetting {
            name: "connection",
            value,
            remedy: format!("start it with {options}"),
        };
        let (page, held) = match cell.word("connection")? {
            "per-request" => (NEW, None),
            "pool" => {
                let size = cell.number("pool")?;
                (READ, Some(held(format!("pool of {size}"), &format!("--connection pool --pool {size}"))))
            }
            _ => (READ, Some(held("kept".to_owned(), "--connection kept"))),
        };
        Ok(Self { clients: cell.number("clients")? as usize, page, held, data: Mutex::default() })
    }
}

impl Workload for ViaWorkload {
    fn demand(&self) -> Demand {
        Demand {
            connections: self.clients as u64 + 1,
            client_bytes: 64_000,
            settings: self.held.iter().cloned().collect(),
            ..Demand::default()
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        false
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn data(&self) -> String {
        INFO.name.to_owned()
    }

    /// The application loaded its rows itself.
    fn load(&self, _namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn before(
        &self,
        _operation: &str,
        _namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let mut out = Vec::new();
        let page = format!("/{}", INFO.name);
        session.ask(&page, false, &mut out).map_err(|error| error.context(page))?;
        let facts: Facts = serde_json::from_slice(&out).map_err(|error| {
            Error::mismatch(format!("the application does not say what its rows are: {error}"))
        })?;
        if facts.records == 0 {
            return Err(Error::mismatch("the application says that it has no rows"));
        }
        let data = Data { records: facts.records, content: content(facts.seed) };
        *self.data.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(data));
        Ok(())
    }

    fn transaction(&self, _operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let data =
            data.ok_or_else(|| Error::new(ErrorKind::Internal, "the application was not asked yet"))?;
        let (rng, body) = (Rng::new(client.seed), Vec::new());
        Ok(Box::new(Read { data, of: self.page, path: String::new(), body, rng, key: 0 }))
    }

    fn after(&self, _operation: &str, _session: &mut dyn Session, _done: &[Done]) -> Result<Checked> {
        Ok(Checked::default())
    }
}

/// Has the application read rows drawn uniformly from all.
struct Read {
    data: Arc<Data>,
    of: &'static str,
    path: String,
    body: Vec<u8>,
    rng: Rng,
    key: u64,
}

impl Transaction for Read {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {
        self.key = 1 + self.rng.below(self.data.records);
        self.path.clear();
        // Writing to memory does not fail.
        let _ = write!(self.path, "/{}/{}?key={}", INFO.name, self.of, self.key);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        session.ask(&self.path, false, &mut self.body)
    }

    fn check(&mut self) -> Result<()> {
        let (key, data) = answer::read(&self.path, &self.body, Some(self.key))?;
        self.data.content.check(key, LOADED, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(connection: &str) -> Vec<NeededSetting> {
        let cell = Cell::new(INFO.axes.iter().map(|axis| {
            let text = match axis.name {
                "connection" => connection,
                "pool" => "7",
                _ => "100",
            };
            (axis.name.to_owned(), axis.parse(text).unwrap())
        }));
        ViaWorkload::new(&cell).unwrap().demand().settings
    }

    #[test]
    fn a_page_needs_an_application_that_holds_its_connections_so() {
        assert_eq!(needs("per-request"), []);
        assert_eq!(needs("kept")[0].value, "kept");
        let pool = needs("pool");
        assert_eq!(pool[0].value, "pool of 7");
        assert!(pool[0].remedy.contains("--connection pool --pool 7"), "{pool:?}");
    }
}
