//! The contents of records: a pure function of (seed, key, version), made and checked at memory speed.
//!
//! All contents of one cell are slices of one *pool* of text (or of random bytes) that is slightly longer than a
//! record. Each record begins at its own offset. Each block of 4,096 bytes begins with its own stamp: sixteen
//! hexadecimal digits of a hash of seed, key, version and block. The pool therefore stays in the processor's cache,
//! and a record contains no repetition that a compressor could exploit. A block of another record, version or
//! position is always detected.

use crate::ident::hex16;
use crate::prelude::*;

/// Bytes between stamps.
const BLOCK: usize = 4096;
/// Bytes of a stamp.
const STAMP: usize = 16;
/// Possible offsets of a record in the pool.
///
/// Few enough that the pool of a small record stays in the L1 cache.
const OFFSETS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Serialised session data: words, numbers, field names. zstd compresses it to about a third.
    Text,
    /// Random bytes, which do not compress.
    Random,
}

/// The contents of records: a function of key and version.
pub(crate) trait RowData: Send + Sync + 'static {
    /// Bytes of each record.
    fn length(&self) -> usize;

    /// Replaces `out` with the content of this record.
    fn write(&self, key: u64, version: u64, out: &mut Vec<u8>);

    /// Compares `bytes` with the content of this record.
    ///
    /// # Errors
    /// [`Mismatch`](kurabe_core::ErrorKind::Mismatch), with the offset of the first difference or the wrong length.
    fn check(&self, key: u64, version: u64, bytes: &[u8]) -> Result<()>;
}

/// Makes and checks the contents of records of one length.
#[derive(Debug)]
pub(crate) struct Content {
    seed: u64,
    length: usize,
    pool: Vec<u8>,
}

impl Content {
    pub(crate) fn new(kind: Kind, seed: u64, length: usize) -> Self {
        let mut rng = Rng::new(mix(seed, 0x0063_6f6e_7465_6e74));
        let size = length + OFFSETS;
        let pool = match kind {
            Kind::Text => text(&mut rng, size),
            Kind::Random => random(&mut rng, size),
        };
        Self { seed: mix(seed, 0x7461_6773), length, pool }
    }

    /// Replaces `out` with the content of a record that is no longer than the others.
    pub(crate) fn write_part(&self, key: u64, version: u64, length: usize, out: &mut Vec<u8>) {
        let (tag, start) = self.place(key, version);
        out.clear();
        out.extend_from_slice(&self.pool[start..start + length]);
        for (block, bytes) in out.chunks_mut(BLOCK).enumerate() {
            let stamp = stamp(tag, block);
            let n = bytes.len().min(STAMP);
            bytes[..n].copy_from_slice(&stamp[..n]);
        }
    }

    /// Compares `bytes` with that content.
    #[inline]
    pub(crate) fn check_part(&self, key: u64, version: u64, length: usize, bytes: &[u8]) -> Result<()> {
        if bytes.len() != length {
            return Err(Error::mismatch(format!(
                "record {key} was returned with {} bytes instead of {length}",
                bytes.len(),
            )));
        }
        let (tag, start) = self.place(key, version);
        let pool = &self.pool[start..start + length];
        let mut right = true;
        for (block, (got, plain)) in bytes.chunks(BLOCK).zip(pool.chunks(BLOCK)).enumerate() {
            let n = got.len().min(STAMP);
            right &= got[n..] == plain[n..] && got[..n] == stamp(tag, block)[..n];
        }
        if !right {
            return Err(self.difference(key, version, bytes));
        }
        Ok(())
    }

    #[inline]
    fn place(&self, key: u64, version: u64) -> (u64, usize) {
        // One round of the finaliser is enough, because the seed is already mixed.
        let tag = scramble(self.seed ^ key.wrapping_mul(ODD) ^ version.rotate_left(32));
        (tag, tag as usize % OFFSETS)
    }

    #[cold]
    fn difference(&self, key: u64, version: u64, bytes: &[u8]) -> Error {
        let mut expected = Vec::new();
        self.write(key, version, &mut expected);
        let at = expected.iter().zip(bytes).position(|(a, b)| a != b).unwrap_or(0);
        Error::mismatch(format!(
            "record {key} was returned with the right length, {} bytes, and wrong content from byte {at} on",
            bytes.len()
        ))
    }
}

impl RowData for Content {
    fn length(&self) -> usize {
        self.length
    }

    fn write(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        self.write_part(key, version, self.length, out);
    }

    #[inline]
    fn check(&self, key: u64, version: u64, bytes: &[u8]) -> Result<()> {
        self.check_part(key, version, self.length, bytes)
    }
}

/// The golden ratio in 64 bits.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Stafford's variant 13): each bit of the input affects every bit of the result.
#[inline]
fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[inline]
fn stamp(tag: u64, block: usize) -> [u8; STAMP] {
    // The tag is well mixed: one multiplication by an odd constant distinguishes its blocks.
    let word = tag ^ (block as u64 + 1).wrapping_mul(ODD);
    let mut out = [0; STAMP];
    hex16(word, &mut out, 0);
    out
}

fn random(rng: &mut Rng, size: usize) -> Vec<u8> {
    let mut pool = Vec::with_capacity(size + 8);
    while pool.len() < size {
        pool.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    pool.truncate(size);
    pool
}

/// Text in the format of a web framework's serialised session: `name|s:5:"words";` and `name|i:48213;`. There are few
/// names, many words with a Zipf-like distribution, and random tokens.
fn text(rng: &mut Rng, size: usize) -> Vec<u8> {
    const NAMES: &str =
        "user_id cart last_seen csrf_token locale referer flash address note item price history";
    let names: Vec<&str> = NAMES.split(' ').collect();
    let words: Vec<String> = (0..2_000).map(|_| word(rng)).collect();
    let mut pool = Vec::with_capacity(size + 256);
    let mut value = String::new();
    while pool.len() < size {
        let name = names[rng.below(names.len() as u64) as usize];
        value.clear();
        match rng.below(10) {
            0 => value = format!("{:016x}", rng.next_u64()),
            1 | 2 => value = rng.below(1_000_000).to_string(),
            _ => {
                for _ in 0..=rng.below(12) {
                    // The product of two draws prefers small ranks, as word frequencies do.
                    let rank = rng.below(2_000) * rng.below(2_000) / 2_000;
                    value.push_str(&words[rank as usize]);
                    value.push(' ');
                }
            }
        }
        pool.extend_from_slice(format!("{name}|s:{}:\"{value}\";", value.len()).as_bytes());
    }
    pool.truncate(size);
    pool
}

fn word(rng: &mut Rng) -> String {
    const SYLLABLES: [&str; 20] = [
        "ka", "ri", "to", "ne", "shi", "mo", "la", "ver", "en", "tis", "do", "ra", "cu", "lo", "mi", "sta",
        "per", "on", "al", "ge",
    ];
    (0..=rng.below(3)).map(|_| SYLLABLES[rng.below(20) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(content: &Content, key: u64, version: u64) -> Vec<u8> {
        let mut out = Vec::new();
        content.write(key, version, &mut out);
        out
    }

    #[test]
    fn the_first_records_of_a_seed_never_change() {
        let content = Content::new(Kind::Text, 1, 64);
        let first: Vec<String> =
            (0..3).map(|key| String::from_utf8(bytes(&content, key, 0)).unwrap()).collect();
        assert_eq!(first.join("\n"), include_str!("../golden/content_text_seed1_64.txt").trim_end());
    }

    #[test]
    fn text_compresses_and_random_bytes_do_not() {
        for (kind, least, most) in [(Kind::Text, 2.0, 5.0), (Kind::Random, 0.9, 1.01)] {
            for length in [10_000, 1_000_000] {
                let record = bytes(&Content::new(kind, 3, length), 5, 0);
                let packed = zstd::bulk::compress(&record, 3).unwrap().len();
                let ratio = length as f64 / packed as f64;
                assert!((least..most).contains(&ratio), "{kind:?} {length}: {ratio}");
            }
        }
    }

    #[test]
    fn text_is_ascii() {
        assert!(bytes(&Content::new(Kind::Text, 9, 100_000), 1, 0).is_ascii());
    }

    proptest! {
        #[test]
        fn record_passes_its_own_check(seed: u64, key: u64, version in 0u64..5, length in 1usize..20_000) {
            let content = Content::new(Kind::Random, seed, length);
            prop_assert!(content.check(key, version, &bytes(&content, key, version)).is_ok());
        }

        #[test]
        fn flipped_byte_is_detected(key: u64, length in 1usize..20_000, at: prop::sample::Index, flip in 1u8..) {
            let content = Content::new(Kind::Text, 4, length);
            let mut record = bytes(&content, key, 0);
            let at = at.index(length);
            record[at] ^= flip;
            let error = content.check(key, 0, &record).unwrap_err().to_string();
            prop_assert!(error.contains(&format!("from byte {at} on")), "{}", error);
        }

        #[test]
        fn no_block_can_stand_for_another(a: u64, b: u64, length in 16usize..20_000, block in 0usize..4) {
            prop_assume!(a != b);
            let content = Content::new(Kind::Text, 4, length);
            let mut record = bytes(&content, a, 0);
            let from = (block * BLOCK).min(length - 16) / BLOCK * BLOCK;
            let to = (from + BLOCK).min(length);
            prop_assume!(to - from >= STAMP);
            record[from..to].copy_from_slice(&bytes(&content, b, 0)[from..to]);
            prop_assert!(content.check(a, 0, &record).is_err());
        }
    }
}
