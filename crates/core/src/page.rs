//! Pages of a web application. Experiments with pages can be served by an application and measured through one.

use crate::driver::Session;
use crate::error::Result;
use crate::operation::Operation;
use crate::value::{Reply, Value};

/// How an application serves the transactions of a cell. A page is what the transaction of its name
/// [renders](crate::experiment::Transaction::render).
#[derive(Clone, Debug, Default)]
pub struct ServedPages {
    /// The operations that have a page, and additional pages, with which an external client can verify the
    /// application's replies.
    pub names: &'static [&'static str],
    /// The page of which each request opens its own database connection, independent of the application's other pages.
    pub connects_anew: Option<&'static str>,
    /// What a client needs to verify replies: names and numbers.
    pub facts: Vec<(&'static str, u64)>,
}

/// Requests a page of an application and returns its body.
pub fn get(session: &mut dyn Session, path: &str) -> Result<Vec<u8>> {
    request(session, path, false)
}

/// The same of a page that changes the application's data, or of one that does not.
pub fn request(session: &mut dyn Session, path: &str, writes: bool) -> Result<Vec<u8>> {
    let page = session.prepare(&Operation::Page { writes, last: false })?;
    let mut reply = Reply::new();
    session.execute(&page, &[Value::Text(path)], &mut reply)?;
    session.release(page)?;
    Ok(body(&reply).to_vec())
}

/// The body in a reply to [`Operation::Page`].
pub fn body(reply: &Reply) -> &[u8] {
    reply.field_bytes(0, 0).unwrap_or_default()
}
