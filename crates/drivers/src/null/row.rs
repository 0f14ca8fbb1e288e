//! A row with its key before it, so that finding and reading touch one piece of memory.

use crate::row::pack as pack_fields;
pub(super) use crate::row::{encode, field, push, push_key};
use kurabe_core::value::Value;
use std::sync::Arc;

/// The key's length stands before the key, in so many bytes; the fields follow.
const LENGTH: usize = 4;

pub(super) type Row = Arc<[u8]>;

/// Packs a row, through `scratch`.
pub(super) fn pack<'a>(
    scratch: &mut Vec<u8>,
    key: &[u8],
    fields: impl ExactSizeIterator<Item = Value<'a>> + Clone,
) -> Row {
    scratch.clear();
    scratch.extend_from_slice(&(key.len() as u32).to_le_bytes());
    scratch.extend_from_slice(key);
    pack_fields(scratch, fields);
    Arc::from(scratch.as_slice())
}

/// The key of a row, and the rest of it, which holds its fields.
pub(super) fn parts(row: &[u8]) -> (&[u8], &[u8]) {
    match row.split_first_chunk::<LENGTH>() {
        Some((length, rest)) => rest.split_at((u32::from_le_bytes(*length) as usize).min(rest.len())),
        None => (&[], &[]),
    }
}
