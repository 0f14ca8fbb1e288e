//! The prepared operations of a session, by number.

use crate::prelude::*;
use slab::Slab;
use std::sync::Arc;

/// Prepared operations of a session. Numbers of released ones are reused, so that preparing per request needs no more
/// memory.
#[derive(Debug)]
pub struct Slots<T>(Slab<T>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        // Most sessions prepare one statement.
        Self(Slab::with_capacity(1))
    }
}

impl<T> Slots<T> {
    /// Stores `value` and returns its handle.
    pub fn insert(&mut self, value: T) -> Prepared {
        Prepared(self.0.insert(value))
    }

    /// The value of a handle.
    pub fn get(&self, prepared: &Prepared) -> Result<&T> {
        self.0.get(prepared.0).ok_or_else(|| unknown(prepared.0))
    }

    /// The value of a handle, mutable.
    pub fn get_mut(&mut self, prepared: &Prepared) -> Result<&mut T> {
        self.0.get_mut(prepared.0).ok_or_else(|| unknown(prepared.0))
    }

    /// Removes and returns the value of a handle.
    pub fn remove(&mut self, prepared: &Prepared) -> Result<T> {
        self.0.try_remove(prepared.0).ok_or_else(|| unknown(prepared.0))
    }
}

fn unknown(number: usize) -> Error {
    Error::new(ErrorKind::Internal, format!("prepared operation {number} is not one of this session"))
}

/// Capacity of the cache, larger than any experiment needs. A full cache is cleared, so that its size is bounded.
const MAX: usize = 64;

/// A cache of values generated from operations, such as statement texts. If statements are prepared per request, the
/// server's work is measured and not the generation of the same text. Operations share their collection, so comparing
/// them is fast.
#[derive(Debug)]
pub struct Known<T: ?Sized>(Vec<(Operation, Arc<T>)>);

impl<T: ?Sized> Known<T> {
    /// The value of an operation; `make` generates it the first time.
    pub fn get<M: Into<Arc<T>>>(
        &mut self,
        operation: &Operation,
        make: impl FnOnce() -> Result<M>,
    ) -> Result<Arc<T>> {
        if let Some((_, made)) = self.0.iter().find(|(known, _)| known == operation) {
            return Ok(Arc::clone(made));
        }
        let new = make()?.into();
        if self.0.len() == MAX {
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

/// Adds the types of a statement's parameters to the server's error: as the server takes them, where it says so, else as
/// they were sent.
#[cold]
pub fn with_types(error: Error, taken: &[&str], sent: &[Value<'_>]) -> Error {
    if error.kind() != ErrorKind::Server || sent.is_empty() {
        return error;
    }
    let name = |(n, value): (usize, &Value<'_>)| match taken.get(n) {
        Some(taken) => format!("${} {taken}", n + 1),
        None => format!("{} {}", n + 1, value.type_name()),
    };
    let types: Vec<String> = sent.iter().enumerate().map(name).collect();
    error.detail("PARAMETERS", &types.join(", "))
}

/// Returns an error if there is a reason why the engine does not support an operation.
pub fn check_supported(operation: &Operation, reason: Option<&str>) -> Result<()> {
    match reason {
        Some(reason) => Err(Error::unsupported(format!("{}: {reason}", operation.name()))),
        None => Ok(()),
    }
}

/// Returns an error if the number of parameters is wrong.
pub fn check_parameters(operation: &'static str, takes: usize, given: usize) -> Result<()> {
    if takes == given {
        return Ok(());
    }
    let message = format!("{operation} takes {takes} parameters and was given {given}");
    Err(Error::new(ErrorKind::Internal, message))
}
