//! The texts of a session's statements, made once each.

use super::dialect::Dialect;
use super::literal::Template;
use super::statement;
use kurabe_core::Result;
use kurabe_core::operation::Operation;
use std::sync::Arc;

/// More operations than any experiment has; beyond it the cache starts anew, so that it cannot grow without end.
const MOST: usize = 64;

/// What was made of each operation. Comparing operations is quick, since they share their collection.
#[derive(Debug)]
struct Known<T: ?Sized>(Vec<(Operation, Arc<T>)>);

impl<T: ?Sized> Known<T> {
    fn get(&mut self, operation: &Operation, new: impl FnOnce() -> Result<Arc<T>>) -> Result<Arc<T>> {
        if let Some((_, made)) = self.0.iter().find(|(known, _)| known == operation) {
            return Ok(Arc::clone(made));
        }
        let made = new()?;
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.push((operation.clone(), Arc::clone(&made)));
        Ok(made)
    }
}

impl<T: ?Sized> Default for Known<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Keeps the text of each operation of a session. Where a statement is prepared per request, what is measured is
/// the server's preparing, not the making of the same text again.
#[derive(Debug, Default)]
pub struct Texts(Known<str>);

impl Texts {
    /// The operation's text; made where it is not yet known.
    ///
    /// # Errors
    /// As for [`statement::text`].
    pub fn get(&mut self, dialect: &Dialect, operation: &Operation) -> Result<Arc<str>> {
        self.0.get(operation, || Ok(statement::text(dialect, operation)?.into()))
    }
}

/// Keeps the template of each operation whose values are written into its text.
#[derive(Debug, Default)]
pub struct Templates(Known<Template>);

impl Templates {
    /// The operation's template; made where it is not yet known.
    ///
    /// # Errors
    /// As for [`statement::text`].
    pub fn get(&mut self, dialect: &Dialect, operation: &Operation) -> Result<Arc<Template>> {
        self.0.get(operation, || Ok(Arc::new(Template::new(dialect, operation)?)))
    }
}
