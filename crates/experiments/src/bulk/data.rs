//! The rows of `bulk`: an integer key and text, made and checked at memory speed.

use crate::ident::hex16;
use crate::prelude::*;

/// Bytes of the key.
pub(super) const KEY: u64 = 8;
/// Hexadecimal digits of a row's digest.
const DIGEST: usize = 16;

/// What the rows contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same in every row.
    Equal,
    /// Two contents in turn.
    Alternating,
    /// Characters drawn at random, different in each row.
    Random,
}

/// Makes and checks rows: a pure function of seed and key.
#[derive(Debug)]
pub(super) struct Data {
    kind: Kind,
    seed: u64,
    length: usize,
    /// The contents of even and odd keys, except of random rows.
    plain: [Vec<u8>; 2],
}

impl Data {
    /// Rows of so many bytes, with their keys.
    pub(super) fn new(kind: Kind, seed: u64, row_bytes: u64) -> Self {
        let length = row_bytes.saturating_sub(KEY) as usize;
        let letters = match kind {
            Kind::Equal => [b'X', b'X'],
            Kind::Alternating => [b'X', b'Y'],
            Kind::Random => return Self { kind, seed, length, plain: [Vec::new(), Vec::new()] },
        };
        Self { kind, seed, length, plain: letters.map(|letter| vec![letter; length]) }
    }

    /// Bytes of the text.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Appends the text of a row.
    pub(super) fn push(&self, key: u64, out: &mut Vec<u8>) {
        if self.kind != Kind::Random {
            out.extend_from_slice(&self.plain[key as usize % 2]);
            return;
        }
        let start = out.len();
        out.resize(start + DIGEST, 0);
        let mut rng = Rng::new(mix(self.seed, key));
        let end = start + self.length;
        while out.len() < end {
            out.extend_from_slice(&characters(rng.next_u64()).to_le_bytes());
        }
        out.truncate(end);
        let mut digits = [0; DIGEST];
        hex16(digest(self.seed, key, &out[start + DIGEST..]), &mut digits, 0);
        out[start..start + DIGEST].copy_from_slice(&digits);
    }

    /// Compares a text with that of the row: random rows by their digest, the others byte for byte.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) if it differs.
    #[inline]
    pub(super) fn check(&self, key: u64, text: &[u8]) -> Result<()> {
        let right = match self.kind {
            Kind::Equal | Kind::Alternating => text == self.plain[key as usize % 2],
            Kind::Random => match text.split_first_chunk::<DIGEST>() {
                Some((found, body)) if text.len() == self.length => {
                    let mut digits = [0; DIGEST];
                    hex16(digest(self.seed, key, body), &mut digits, 0);
                    digits == *found
                }
                _ => false,
            },
        };
        if right { Ok(()) } else { Err(self.wrong(key, text)) }
    }

    #[cold]
    fn wrong(&self, key: u64, text: &[u8]) -> Error {
        let (found, expected) = (text.len(), self.length);
        Error::mismatch(if found == expected {
            format!("row {key} was returned with the right length, {expected} bytes, and wrong content")
        } else {
            format!("row {key} was returned with {found} bytes of text instead of {expected}")
        })
    }
}

/// The golden ratio in 64 bits.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The same byte in each of the eight bytes of a word.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Eight characters of 64: those from `#` to `c`, without the backslash, which several text formats escape. Each takes
/// six bits of eight, so that a compressor saves a quarter at most.
#[inline]
fn characters(random: u64) -> u64 {
    let all = (random & each(0x3f)) + each(b'#');
    // Bytes that are a backslash become 0, all others stay between 1 and 127; the next line marks the zeros.
    let apart = all ^ each(b'\\');
    let marked = !((apart & each(0x7f)) + each(0x7f)) & each(0x80);
    all + (marked >> 7) * u64::from(b'c' - b'\\')
}

/// A hash of a row's text that depends on seed and key. A change within eight aligned bytes always changes it.
#[inline]
fn digest(seed: u64, key: u64, body: &[u8]) -> u64 {
    let start = mix(seed, key);
    let mut lanes = [start, start ^ ODD, start.rotate_left(17), start.rotate_left(43) ^ ODD];
    let (blocks, rest) = body.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    }
    let (words, rest) = rest.as_chunks::<8>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane = step(*lane, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let end = lanes.iter().fold(u64::from_le_bytes(last), |sum, lane| step(sum, *lane));
    step(end, body.len() as u64)
}

#[inline]
fn step(lane: u64, word: u64) -> u64 {
    let product = (lane ^ word).wrapping_mul(ODD);
    product ^ (product >> 29)
}

/// Which rows of a transfer have arrived: a bit for each.
#[derive(Debug)]
pub(super) struct Arrived {
    bits: Vec<u64>,
    rows: u64,
    count: u64,
}

impl Arrived {
    /// None of so many rows, whose keys begin at 1.
    pub(super) fn none_of(rows: u64) -> Self {
        Self { bits: vec![0; rows.div_ceil(64) as usize], rows, count: 0 }
    }

    /// Checks a row, key and text, and that it has not arrived before.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch).
    #[inline]
    pub(super) fn row(&mut self, data: &Data, fields: &[Value<'_>]) -> Result<()> {
        let &[Value::Int(key), Value::Bytes(text)] = fields else {
            return Err(Error::mismatch("a row was returned without its key or its text"));
        };
        let at = match u64::try_from(key) {
            Ok(at @ 1..) if at <= self.rows => at - 1,
            _ => return Err(Error::mismatch(format!("row {key} was returned and never written"))),
        };
        let (word, bit) = (&mut self.bits[(at / 64) as usize], 1 << (at % 64));
        if *word & bit != 0 {
            return Err(Error::mismatch(format!("row {key} was returned twice")));
        }
        *word |= bit;
        self.count += 1;
        data.check(at + 1, text)
    }

    /// Checks that all rows have arrived.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) with the first that has not.
    pub(super) fn finish(&self) -> Result<()> {
        if self.count == self.rows {
            return Ok(());
        }
        let missing = (0..self.rows).find(|at| self.bits[(at / 64) as usize] & (1 << (at % 64)) == 0);
        let (missing, lost) = (missing.unwrap_or_default() + 1, self.rows - self.count);
        Err(Error::mismatch(format!("row {missing} is missing, and {} in all", units::count(lost))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::Rng;
    use proptest::prelude::*;

    const KINDS: [Kind; 3] = [Kind::Equal, Kind::Alternating, Kind::Random];

    fn text(data: &Data, key: u64) -> Vec<u8> {
        let mut out = Vec::new();
        data.push(key, &mut out);
        out
    }

    #[test]
    fn characters_need_no_escape_and_all_occur() {
        let mut rng = Rng::new(3);
        let mut found = [false; 256];
        for _ in 0..10_000 {
            characters(rng.next_u64()).to_le_bytes().iter().for_each(|byte| found[usize::from(*byte)] = true);
        }
        let all: Vec<u8> = (0..=255).filter(|byte| found[usize::from(*byte)]).collect();
        let expected: Vec<u8> = (b'#'..=b'c').filter(|byte| *byte != b'\\').collect();
        assert_eq!((all.len(), all), (64, expected));
    }

    #[test]
    fn random_rows_do_not_compress_and_equal_ones_do() {
        let ratio = |kind| {
            let data = Data::new(kind, 1, 1_024);
            let rows: Vec<u8> = (1..=1_000).flat_map(|key| text(&data, key)).collect();
            rows.len() as f64 / zstd::bulk::compress(&rows, 3).unwrap().len() as f64
        };
        assert!((1.2..1.4).contains(&ratio(Kind::Random)), "{}", ratio(Kind::Random));
        assert!(ratio(Kind::Equal) > 100.0 && ratio(Kind::Alternating) > 50.0);
    }

    #[test]
    fn row_of_another_key_is_wrong_unless_the_rows_are_alike() {
        for kind in KINDS {
            let data = Data::new(kind, 1, 1_024);
            assert_eq!(text(&data, 5).len(), 1_016);
            assert_eq!(data.check(6, &text(&data, 5)).is_ok(), kind == Kind::Equal, "{kind:?}");
            assert_eq!(data.check(7, &text(&data, 5)).is_ok(), kind != Kind::Random, "{kind:?}");
            assert!(data.check(5, &text(&data, 5)[1..]).is_err());
        }
    }

    #[test]
    fn rows_that_are_missing_doubled_or_foreign_are_mismatches() {
        let data = Data::new(Kind::Random, 1, 64);
        let row = |arrived: &mut Arrived, key: u64| {
            arrived.row(&data, &[Value::Int(key as i64), Value::Bytes(&text(&data, key))])
        };
        let mut arrived = Arrived::none_of(70);
        (1..=70).filter(|key| *key != 69).for_each(|key| row(&mut arrived, key).unwrap());
        let error = arrived.finish().unwrap_err().to_string();
        assert!(error.contains("row 69 is missing, and 1 in all"), "{error}");
        for (key, why) in [(70, "twice"), (71, "never written"), (0, "never written")] {
            let error = row(&mut arrived, key).unwrap_err();
            assert!(error.kind() == ErrorKind::Mismatch && error.to_string().contains(why), "{error}");
        }
        row(&mut arrived, 69).unwrap();
        arrived.finish().unwrap();
        assert!(arrived.row(&data, &[Value::Int(1)]).is_err());
    }

    proptest! {
        #[test]
        fn changed_byte_is_detected(key in 1u64.., row_bytes in 32u64..3_000, at: prop::sample::Index, flip in 1u8..) {
            for kind in KINDS {
                let data = Data::new(kind, 9, row_bytes);
                let mut text = text(&data, key);
                prop_assert!(data.check(key, &text).is_ok());
                let at = at.index(text.len());
                text[at] ^= flip;
                prop_assert!(data.check(key, &text).is_err());
            }
        }
    }
}
