//! The content of rows: text, a full stop at its end, and letters of Latin-1 before it if the cell has some.

use crate::content::{Content, Kind};
use crate::prelude::*;

/// The last byte of each row. CONNECT removes spaces at the end of text.
const END: u8 = b'.';
/// Different letters: from U+00E0 on, each two bytes in UTF-8 and one in Latin-1.
const LETTERS: usize = 23;
/// One letter for each so many bytes of a row, which are a quarter of its bytes.
const BYTES_PER_LETTER: usize = 8;

/// Makes and checks the text of rows of one length.
pub(super) struct LinkText {
    text: Content,
    /// The letters of every row as UTF-8, one row beginning at another letter than the next.
    letters: Vec<u8>,
    /// Bytes of a row's letters.
    accented: usize,
}

impl LinkText {
    /// Rows of `length` bytes in UTF-8, at least 16.
    pub(super) fn new(seed: u64, length: u64, accented: bool) -> Self {
        let length = length as usize;
        let count = if accented { length / BYTES_PER_LETTER } else { 0 };
        let letter = |at: usize| [0xc3, 0xa0 + (at % LETTERS) as u8];
        let letters = (0..LETTERS + count).flat_map(letter).collect();
        Self { text: Content::new(Kind::Text, seed, length - 2 * count - 1), letters, accented: 2 * count }
    }

    fn letters(&self, key: u64) -> &[u8] {
        let first = 2 * (key % LETTERS as u64) as usize;
        &self.letters[first..first + self.accented]
    }
}

impl RowData for LinkText {
    fn length(&self) -> usize {
        self.text.length() + self.accented + 1
    }

    fn write(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        self.text.write(key, version, out);
        out.extend_from_slice(self.letters(key));
        out.push(END);
    }

    fn check(&self, key: u64, version: u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.length() {
            let (found, expected) = (bytes.len(), self.length());
            let message = format!("record {key} was returned with {found} bytes instead of {expected}");
            return Err(Error::mismatch(message));
        }
        let (text, rest) = bytes.split_at(self.text.length());
        let (letters, end) = rest.split_at(self.accented);
        self.text.check(key, version, text)?;
        if letters != self.letters(key) {
            let message = format!("record {key} was returned with other letters than were written");
            return Err(Error::mismatch(message)
                .hint("the servers converted text between character sets, and not every letter arrived"));
        }
        if end != [END] {
            return Err(Error::mismatch(format!("record {key} was returned without its last byte")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_shortened_and_foreign_row_is_wrong() {
        for (accented, length) in [(false, 40), (true, 40), (true, 16), (true, 1_000)] {
            let rows = LinkText::new(1, length, accented);
            let mut row = Vec::new();
            rows.write(7, 0, &mut row);
            assert_eq!((row.len() as u64, rows.check(7, 0, &row)), (length, Ok(())));
            let wrong =
                |key, bytes: &[u8]| rows.check(key, 0, bytes).unwrap_err().kind() == ErrorKind::Mismatch;
            assert!(wrong(7, &row[..row.len() - 1]) && wrong(7, b"") && wrong(8, &row));
            for at in 0..row.len() {
                row[at] ^= 1;
                assert!(wrong(7, &row), "byte {at}");
                row[at] ^= 1;
            }
        }
    }

    #[test]
    fn quarter_of_accented_row_is_letters_of_latin_1() {
        let mut row = Vec::new();
        LinkText::new(1, 1_000, true).write(3, 0, &mut row);
        let text = String::from_utf8(row).unwrap();
        let letters = text.chars().filter(|letter| ('\u{e0}'..='\u{ff}').contains(letter)).count();
        assert_eq!((letters, text.len()), (125, 1_000));
        assert!(text.chars().all(|letter| u32::from(letter) < 256));
    }
}
