//! connect through an application: each read is one page of it. The connections in question are the application's, to its
//! database; clients keep theirs to the application, so that nothing else differs.

use super::INFO;
use crate::answer;
use crate::content::Content;
use crate::point::{LENGTH, LOADED, NEW, READ, content};
use crate::via::{Added, Pages, facts};
use kurabe_core::axis::Cell;
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, ExperimentInfo, Transaction};
use kurabe_core::planned::NeededSetting;
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::Arc;

/// What the application says of its rows on `/connect`.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Facts {
    seed: u64,
    /// How many there are; their keys are 1 to this.
    records: u64,
}

/// The rows of an application.
pub(super) struct Data {
    records: u64,
    content: Content,
}

pub(super) struct ConnectPages {
    /// The page that reads.
    page: &'static str,
    /// What the application must hold, where the page does not say so itself.
    held: Option<NeededSetting>,
}

impl ConnectPages {
    pub(super) fn new(cell: &Cell) -> Result<Self> {
        let held = |value: String, options: &str| NeededSetting {
            name: "connection".to_owned(),
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
        Ok(Self { page, held })
    }
}

impl Pages for ConnectPages {
    type Data = Data;
    type Told = ();

    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn client_bytes(&self) -> u64 {
        64_000
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn settings(&self) -> Vec<NeededSetting> {
        self.held.iter().cloned().collect()
    }

    fn data(&self, session: &mut dyn Session) -> Result<Data> {
        let facts: Facts = facts(session, &INFO, "its seed and its number of rows")?;
        if facts.records == 0 {
            return Err(Error::mismatch("the application says that it has no rows"));
        }
        Ok(Data { records: facts.records, content: content(facts.seed) })
    }

    fn transaction(
        &self,
        _operation: &str,
        client: Client,
        data: Arc<Data>,
        last: bool,
    ) -> Result<Box<dyn Transaction>> {
        let (rng, body) = (Rng::new(client.seed), Vec::new());
        Ok(Box::new(Read { data, last, of: self.page, path: String::new(), body, rng, key: 0 }))
    }

    /// None of its operations writes.
    fn hold(&self, _: &mut dyn Session, _: &Data, _: &[&()], _: &Added) -> Result<Verification> {
        Ok(Verification::default())
    }
}

/// Has the application read rows drawn uniformly from all.
struct Read {
    data: Arc<Data>,
    last: bool,
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
        session.ask(&self.path, self.last, &mut self.body)
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
        ConnectPages::new(&cell).unwrap().settings()
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
