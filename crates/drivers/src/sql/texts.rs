//! The texts of a session's statements, made once each.

use super::dialect::Dialect;
use super::statement;
use kurabe_core::Result;
use kurabe_core::operation::Operation;
use std::sync::Arc;

/// More operations than any experiment has; beyond it the cache starts anew, so that it cannot grow without end.
const MOST: usize = 64;

/// Keeps the text of each operation of a session. Where a statement is prepared per request, what is measured is
/// the server's preparing, not the making of the same text again.
#[derive(Debug, Default)]
pub struct Texts(Vec<(Operation, Arc<str>)>);

impl Texts {
    /// The operation's text; made where it is not yet known. Comparing operations is quick, since they share their
    /// collection.
    ///
    /// # Errors
    /// As for [`statement::text`].
    pub fn get(&mut self, dialect: &Dialect, operation: &Operation) -> Result<Arc<str>> {
        if let Some((_, text)) = self.0.iter().find(|(known, _)| known == operation) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = statement::text(dialect, operation)?.into();
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.push((operation.clone(), Arc::clone(&text)));
        Ok(text)
    }
}
