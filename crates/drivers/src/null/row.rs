//! A row with its key in front, so that a lookup and a read access one allocation.

use crate::packed;
use kurabe_core::value::Value;
use std::sync::Arc;

/// Size of the key's length, in bytes. It is followed by the key and the fields.
const LENGTH: usize = 4;

pub(super) type Row = Arc<[u8]>;

/// Packs a row, through `scratch`.
pub(super) fn pack<'a>(scratch: &mut Vec<u8>, key: &[u8], fields: impl Iterator<Item = Value<'a>>) -> Row {
    scratch.clear();
    scratch.extend_from_slice(&(key.len() as u32).to_le_bytes());
    scratch.extend_from_slice(key);
    packed::pack(scratch, fields);
    Arc::from(scratch.as_slice())
}

/// Splits a row into its key and its fields.
pub(super) fn parts(row: &[u8]) -> (&[u8], &[u8]) {
    match row.split_first_chunk::<LENGTH>() {
        Some((length, rest)) => rest.split_at((u32::from_le_bytes(*length) as usize).min(rest.len())),
        None => (&[], &[]),
    }
}
