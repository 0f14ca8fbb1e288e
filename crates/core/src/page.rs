//! Pages of a web application. Experiments with pages can be served by an application and measured through one.

use crate::driver::Session;
use crate::error::{Error, Result};
use crate::experiment::{Client, DatasetState, Transaction, Workload};
use crate::operation::Operation;
use crate::value::{Reply, Value};

/// A workload whose operations an application serves as pages, with additional pages.
pub trait Serve: Workload {
    /// Additional pages, with which an external client can verify the application's replies.
    fn further(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether an operation of the experiment has a page.
    fn serves(&self, operation: &str) -> bool {
        let _ = operation;
        true
    }

    /// Whether each request of this page opens its own database connection, independent of the application's other
    /// pages.
    fn connects_anew(&self, page: &str) -> bool {
        let _ = page;
        false
    }

    /// What a client needs to verify replies: names and numbers.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The page for one client of the database.
    ///
    /// # Errors
    /// If there is no such page, or its buffers cannot be allocated.
    fn page(&self, name: &str, state: &DatasetState, client: Client) -> Result<Box<dyn Page>>;
}

/// A transaction whose reply is rendered. The application calls `set_key` or `prepare_input`, then `run`, `check` and
/// `render`.
pub trait Page: Transaction {
    /// Sets the record for the next `run`, instead of [`Transaction::prepare_input`], if the request names one.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if the page chooses its record itself;
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such record.
    fn set_key(&mut self, key: u64) -> Result<()> {
        let _ = key;
        Err(Error::usage("this page does not take a record number"))
    }

    /// Appends the body of the reply: what the last `run` read or wrote, in the format of `docs/app.openapi.yaml`.
    /// Called after a successful `check`.
    fn render(&self, out: &mut Vec<u8>);
}

/// Requests a page of an application and returns its body.
pub fn get(session: &mut dyn Session, path: &str) -> Result<Vec<u8>> {
    let page = session.prepare(&Operation::Page { writes: false, last: false })?;
    let mut reply = Reply::new();
    session.execute(&page, &[Value::Text(path)], &mut reply)?;
    session.release(page)?;
    Ok(body(&reply).to_vec())
}

/// The body in a reply to [`Operation::Page`].
pub fn body(reply: &Reply) -> &[u8] {
    reply.field_bytes(0, 0).unwrap_or_default()
}
