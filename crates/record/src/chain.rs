//! The checksum of each line, which covers the checksum of the previous line.
//!
//! A line ends with `,"crc":"xxxxxxxx"}`. The eight digits are the CRC-32 of the eight digits of the previous line
//! (of nothing, for the first line), followed by this line up to its own digits. A changed line and a misplaced line
//! are therefore both detected.

/// The text before the digits.
const BEFORE: &[u8] = b",\"crc\":\"";
/// The text after the digits.
const BEHIND: &[u8] = b"\"}";

/// The digits of a checksum: lower-case hexadecimal.
type Digits = [u8; 8];

/// The end of the intact lines of a run file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chain {
    /// The number of lines.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The digits of the last line.
    last: Option<Digits>,
}

impl Chain {
    /// The chain after a line that is not verified itself; `None` if it does not end with digits.
    pub(crate) fn behind(line: &[u8]) -> Option<Self> {
        let last = split(line)?.1;
        Some(Self { last: Some(last), ..Self::default() })
    }

    /// The number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.lines + 1
    }

    /// Closes a JSON object as the next line, with its checksum and newline.
    pub(crate) fn close(&self, mut object: Vec<u8>) -> Vec<u8> {
        object.pop();
        object.extend_from_slice(BEFORE);
        let digits = self.digits(&object);
        object.extend_from_slice(&digits);
        object.extend_from_slice(BEHIND);
        object.push(b'\n');
        object
    }

    /// Whether a line, without its newline, is the next one and intact.
    pub(crate) fn fits(&self, line: &[u8]) -> bool {
        split(line).is_some_and(|(content, digits)| digits == self.digits(content))
    }

    /// Advances past a line, without its newline, that fits.
    pub(crate) fn advance(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        self.last = split(line).map(|(_, digits)| digits);
    }

    fn digits(&self, content: &[u8]) -> Digits {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.last.as_ref().map_or(&[], <[u8; 8]>::as_slice));
        crc.update(content);
        let crc = crc.finalize();
        std::array::from_fn(|n| b"0123456789abcdef"[(crc >> (28 - 4 * n) & 15) as usize])
    }
}

/// Splits a line into the part that its checksum covers, and the digits.
fn split(line: &[u8]) -> Option<(&[u8], Digits)> {
    let (content, digits) = line.strip_suffix(BEHIND)?.split_last_chunk()?;
    content.ends_with(BEFORE).then_some((content, *digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_with_any_bit_flipped_does_not_fit() {
        let mut chain = Chain::default();
        let object = format!("{{\"line\":1,\"text\":\"{}\"}}", "0123456789".repeat(40));
        for _ in 0..2 {
            let mut line = chain.close(object.clone().into_bytes());
            line.pop();
            assert!(chain.fits(&line));
            for bit in 0..line.len() * 8 {
                line[bit / 8] ^= 1 << (bit % 8);
                assert!(!chain.fits(&line), "bit {bit}");
                line[bit / 8] ^= 1 << (bit % 8);
            }
            chain.advance(&line);
        }
    }

    #[test]
    fn checksum_is_the_crc_32_of_zip_and_zlib() {
        // CRC-32 of `{"a":1,"crc":"`, then of that line's digits and `{"b":2,"crc":"`: by Python's zlib.crc32.
        let mut chain = Chain::default();
        let first = chain.close(b"{\"a\":1}".to_vec());
        assert_eq!(String::from_utf8_lossy(&first), "{\"a\":1,\"crc\":\"95481bc9\"}\n");
        chain.advance(&first[..first.len() - 1]);
        let second = chain.close(b"{\"b\":2}".to_vec());
        assert_eq!(String::from_utf8_lossy(&second), "{\"b\":2,\"crc\":\"65474daf\"}\n");
    }
}
