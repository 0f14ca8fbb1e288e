//! The prepared operations of a session, numbered.

use crate::prelude::*;
use std::sync::Arc;

/// Keeps what a session prepared until it is released, and gives the numbers of released ones out again, so that
/// preparing per request does not grow anything.
#[derive(Debug)]
pub struct Slots<T> {
    taken: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { taken: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Keeps `value` and names it.
    pub fn insert(&mut self, value: T) -> Prepared {
        let number = self.free.pop().unwrap_or_else(|| {
            self.taken.push(None);
            self.taken.len() - 1
        });
        self.taken[number] = Some(value);
        Prepared(number)
    }

    /// What was prepared under this name.
    pub fn get(&self, prepared: &Prepared) -> Result<&T> {
        self.taken.get(prepared.0).and_then(Option::as_ref).ok_or_else(|| unknown(prepared.0))
    }

    /// What was prepared under this name, to be changed.
    pub fn get_mut(&mut self, prepared: &Prepared) -> Result<&mut T> {
        self.taken.get_mut(prepared.0).and_then(Option::as_mut).ok_or_else(|| unknown(prepared.0))
    }

    /// Forgets what was prepared under this name, and gives it back.
    pub fn remove(&mut self, prepared: &Prepared) -> Result<T> {
        let value =
            self.taken.get_mut(prepared.0).and_then(Option::take).ok_or_else(|| unknown(prepared.0))?;
        self.free.push(prepared.0);
        Ok(value)
    }
}

fn unknown(number: usize) -> Error {
    Error::new(ErrorKind::Internal, format!("prepared operation {number} is not one of this session"))
}

/// More operations than any experiment has; beyond it the cache starts anew, so that it cannot grow without end.
const MOST: usize = 64;

/// What was made of each operation, once: where a statement is prepared per request, what is measured is the server's
/// preparing, not the making of the same text again. Comparing operations is quick, since they share their collection.
#[derive(Debug)]
pub struct Known<T: ?Sized>(Vec<(Operation, Arc<T>)>);

impl<T: ?Sized> Known<T> {
    /// What was made of the operation; made where it is not yet known.
    pub fn get<M: Into<Arc<T>>>(
        &mut self,
        operation: &Operation,
        make: impl FnOnce() -> Result<M>,
    ) -> Result<Arc<T>> {
        if let Some((_, made)) = self.0.iter().find(|(known, _)| known == operation) {
            return Ok(Arc::clone(made));
        }
        let new = make()?.into();
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.push((operation.clone(), Arc::clone(&new)));
        Ok(new)
    }
}

impl<T: ?Sized> Default for Known<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Refuses an operation that the engine has not, for this reason.
pub fn check_supported(operation: &Operation, reason: Option<&str>) -> Result<()> {
    match reason {
        Some(reason) => Err(Error::unsupported(format!("{}: {reason}", operation.name()))),
        None => Ok(()),
    }
}

/// Refuses an operation whose parameters are not as many as it takes.
pub fn check_parameters(operation: &'static str, takes: usize, given: usize) -> Result<()> {
    if takes == given {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Internal,
        format!("{operation} takes {takes} parameters and was given {given}"),
    ))
}
