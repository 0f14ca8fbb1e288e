//! A row that borrows its fields from a receive buffer.

use kurabe_core::Result;
use kurabe_core::value::Value;

/// Fields of a row that need no allocation.
const FEW: usize = 16;

/// Calls `work` with so many fields, all null, to be set and passed on.
///
/// # Errors
/// The error of `work`.
#[inline]
pub fn with_fields<'v>(count: usize, work: impl FnOnce(&mut [Value<'v>]) -> Result<()>) -> Result<()> {
    if count <= FEW { work(&mut [Value::Null; FEW][..count]) } else { work(&mut vec![Value::Null; count]) }
}
