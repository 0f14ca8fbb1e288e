//! The data of a record: 96 hexadecimal digits, MD5 (RFC 1321) of `seed:key:1`, of `seed:key:2` and of `seed:key:3`,
//! all numbers decimal. MD5 protects nothing here. Every language and every SQL database has it, so that any server of
//! the same pages can fill a table with one statement.

use crate::ident::hex16;
use crate::prelude::*;
use crate::rows::RowData;
use md5::{Digest, Md5};
use std::io::Write;

/// Characters of a record's data.
pub(super) const LENGTH: usize = 96;

/// The data of records for a seed. Records never change, so they have no versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digests {
    pub(super) seed: u64,
}

impl RowData for Digests {
    fn length(&self) -> usize {
        LENGTH
    }

    fn write(&self, key: u64, _version: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&data(self.seed, key));
    }

    fn check(&self, key: u64, _version: u64, bytes: &[u8]) -> Result<()> {
        check(self.seed, key, bytes)
    }
}

/// Compares `bytes` with the expected data of a record.
///
/// # Errors
/// [`Mismatch`](kurabe_core::ErrorKind::Mismatch), with the offset of the first difference or the wrong length.
pub(super) fn check(seed: u64, key: u64, bytes: &[u8]) -> Result<()> {
    let expected = data(seed, key);
    if bytes == expected {
        return Ok(());
    }
    Err(Error::mismatch(if bytes.len() == LENGTH {
        let at = expected.iter().zip(bytes).position(|(a, b)| a != b).unwrap_or(0);
        format!("record {key} was returned with wrong content from byte {at} on")
    } else {
        format!("record {key} was returned with {} bytes instead of {LENGTH}", bytes.len())
    }))
}

fn data(seed: u64, key: u64) -> [u8; LENGTH] {
    let mut out = [0; LENGTH];
    for (part, digits) in out.chunks_exact_mut(32).enumerate() {
        // Two numbers of twenty digits, two colons and a digit always fit.
        let mut text = [0; 48];
        let mut rest = &mut text[..];
        let _ = write!(rest, "{seed}:{key}:{}", part + 1);
        let left = rest.len();
        let digest = Md5::digest(&text[..text.len() - left]);
        for (half, at) in digest.chunks_exact(8).zip([0, 16]) {
            let word = half.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            hex16(word, digits, at);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_equals_md5sum_output() {
        // printf 7:12:1 | md5sum, and so on.
        let mut out = Vec::new();
        Digests { seed: 7 }.write(12, 0, &mut out);
        let expected = include_str!("../../golden/kv_record_seed7_key12.txt");
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expected.trim_end());
        assert!(check(7, 12, &out).is_ok());
    }

    #[test]
    fn wrong_record_flipped_byte_and_short_answer_are_detected() {
        let mut out = Vec::new();
        Digests { seed: 7 }.write(12, 0, &mut out);
        assert!(check(7, 13, &out).is_err() && check(8, 12, &out).is_err());
        assert!(check(7, 12, &out[1..]).unwrap_err().to_string().contains("95 bytes instead of 96"));
        out[40] ^= 1;
        assert!(check(7, 12, &out).unwrap_err().to_string().contains("from byte 40 on"));
    }

    #[test]
    fn the_largest_numbers_fit() {
        assert_ne!(data(u64::MAX, u64::MAX), data(u64::MAX, u64::MAX - 1));
    }
}
