//! Pages of a web application: experiments that have them are served by an application, driven through one, or both.

use crate::axis::Cell;
use crate::driver::Session;
use crate::error::{Error, Result};
use crate::experiment::{Client, DatasetState, Transaction, Workload};
use crate::operation::Operation;
use crate::planned::PlannedCell;
use crate::value::{Reply, Value};

/// The form of an experiment in which each transaction is one page of an application.
pub trait Pages: Sync {
    /// Plans one cell on a target that is an application.
    ///
    /// # Errors
    /// As for [`Experiment::plan`](crate::experiment::Experiment::plan).
    fn plan(&self, cell: &Cell) -> Result<PlannedCell>;
}

/// A workload of which an application serves each operation as a page, and further pages.
pub trait Serve: Workload {
    /// Further pages: by them a client that is not the application can hold it to what it said.
    fn further(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether each request of this page has a database connection of its own, whatever the application does for others.
    fn connects_anew(&self, page: &str) -> bool {
        let _ = page;
        false
    }

    /// What a client has to know to verify answers: names and numbers.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The page of one client of the database.
    ///
    /// # Errors
    /// Where there is no such page, or its buffers cannot be made.
    fn page(&self, name: &str, state: &DatasetState, client: Client) -> Result<Box<dyn Page>>;
}

/// A transaction whose answer is shown. The application calls `choose` or `draw`, then `run` and `check`, and shows it.
pub trait Page: Transaction {
    /// Chooses this record: in place of [`Transaction::draw`], where a client of the application names one.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) where the page chooses itself;
    /// [`NotFound`](crate::ErrorKind::NotFound) where there is no such record.
    fn set_key(&mut self, key: u64) -> Result<()> {
        let _ = key;
        Err(Error::usage("this page chooses its record itself"))
    }

    /// Appends what the last `run` read or wrote, in the form that `docs/app.openapi.yaml` describes: the body of the
    /// answer. Called after a `check` that found all right.
    fn render(&self, out: &mut Vec<u8>);
}

/// The body of one page of an application.
///
/// # Errors
/// As for [`Session::execute`] of [`Operation::Page`].
pub fn get(session: &mut dyn Session, path: &str) -> Result<Vec<u8>> {
    let page = session.prepare(&Operation::Page { last: false })?;
    let mut reply = Reply::new();
    session.execute(&page, &[Value::Text(path)], &mut reply)?;
    session.release(page)?;
    Ok(body(&reply).to_vec())
}

/// The body in an answer to [`Operation::Page`].
pub fn body(reply: &Reply) -> &[u8] {
    reply.field_bytes(0, 0).unwrap_or_default()
}
