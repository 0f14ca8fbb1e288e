//! What is kept of values.

use kurabe_protocol::mongodb::bson::{self, push};
use kurabe_stats::Rng;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Their bytes.
    #[default]
    Keep,
    /// Something of the same length and the same kinds of characters, equal for equal values. The key is forgotten.
    Hash,
    /// Types, and whether they are NULL.
    Drop,
}

/// Replaces values by others that say nothing about them.
#[derive(Debug, Default)]
pub(crate) struct Hasher(RandomState);

impl Hasher {
    /// Random numbers that depend on the value and the key.
    fn numbers(&self, value: &[u8]) -> Rng {
        Rng::new(self.0.hash_one(value))
    }

    /// A text: letters stay letters, digits digits, and other ASCII characters as they are.
    pub(crate) fn text(&self, value: &str) -> String {
        let mut numbers = self.numbers(value.as_bytes());
        let mut one_of = |first: u8, count: u64| char::from(first + numbers.below(count) as u8);
        let replaced = value.bytes().map(|byte| match byte {
            b'0'..=b'9' => one_of(b'0', 10),
            b'A'..=b'Z' => one_of(b'A', 26),
            // A byte of another alphabet becomes a letter too.
            b'a'..=b'z' | 0x80.. => one_of(b'a', 26),
            other => char::from(other),
        });
        replaced.collect()
    }

    /// A literal of a statement: what says how it is quoted stays. A comment goes.
    pub(crate) fn literal(&self, literal: &str) -> String {
        if ["--", "/*", "#"].iter().any(|sign| literal.starts_with(sign)) {
            return " ".to_owned();
        }
        let Some(start) = literal.find(['\'', '"']).filter(|start| *start < 2) else {
            // Of a number: its digits. Of what another dialect quotes: all but the quotes, which are no letters.
            let number = literal.starts_with(|c: char| c.is_ascii_digit());
            let is_hex = literal.starts_with("0x");
            return if number && !is_hex { self.digits(literal) } else { self.text(literal) };
        };
        // A backslash begins something whose letters mean something.
        let (sign, rest) = literal.split_at(start + 1);
        format!("{sign}{}", self.text(&rest.replace('\\', "_")))
    }

    fn digits(&self, number: &str) -> String {
        let mut numbers = self.numbers(number.as_bytes());
        let mut is_first = true;
        let digit = |c: char| {
            // A number does not begin to have a zero before it.
            let least = u64::from(std::mem::take(&mut is_first) && c != '0');
            if c.is_ascii_digit() { char::from(b'0' + (least + numbers.below(10 - least)) as u8) } else { c }
        };
        number.chars().map(digit).collect()
    }

    /// A document, whose values are replaced and whose fields stay; `None` if it has values whose parts are not told apart.
    pub(crate) fn document(&self, document: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; 4];
        for field in bson::elements(document) {
            match (field.kind, field.value) {
                (bson::DOCUMENT | bson::ARRAY, within) => {
                    push(&mut out, field.kind, field.name, &self.document(within)?);
                }
                (bson::TEXT, [_, _, _, _, text @ .., _]) => {
                    let text = self.text(&String::from_utf8_lossy(text));
                    bson::push_text(&mut out, field.name, text.as_bytes());
                }
                (bson::BINARY, [a, b, c, d, kind, bytes @ ..]) => {
                    let bytes = self.parameter(bytes, true);
                    push(
                        &mut out,
                        bson::BINARY,
                        field.name,
                        &[&[*a, *b, *c, *d, *kind], &bytes[..]].concat(),
                    );
                }
                (kind, value) if bson::fixed(kind).is_some() => {
                    push(&mut out, kind, field.name, &self.parameter(value, true));
                }
                _ => return None,
            }
        }
        bson::end(&mut out, 0);
        Some(out)
    }

    /// A parameter. Zeros before a binary number stay, so that its size stays alike.
    pub(crate) fn parameter(&self, value: &[u8], binary: bool) -> Vec<u8> {
        match std::str::from_utf8(value) {
            Ok(text) if !binary => self.text(text).into_bytes(),
            _ => {
                let mut numbers = self.numbers(value);
                let zeros = value.iter().take_while(|byte| **byte == 0).count();
                let hashed = value.iter().skip(zeros).map(|_| (1 + numbers.below(127)) as u8);
                std::iter::repeat_n(0, zeros).chain(hashed).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_values_keep_length_and_kind_and_equality_and_nothing_else() {
        let hasher = Hasher::default();
        let text = "Zoë O'Hara, 17 Elm St.";
        let replaced = hasher.text(text);
        assert_eq!((replaced.len(), replaced.as_str()), (text.len(), hasher.text(text).as_str()));
        assert!(replaced != text && replaced != Hasher::default().text(text), "{replaced}");
        let kinds = |text: &str| text.bytes().map(|b| b.is_ascii_digit()).collect::<Vec<_>>();
        assert_eq!(kinds(&replaced), kinds(text));
        let literal = hasher.literal("'it''s Bob\\n'");
        assert!(
            literal.starts_with('\'') && literal.ends_with('\'') && !literal.contains("Bob"),
            "{literal}"
        );
        let number = hasher.literal("170000000000000000");
        assert!(number.parse::<u64>().is_ok() && number.len() == 18 && number != "170000000000000000");
        let binary = hasher.parameter(&[0, 0, 3, 7], true);
        assert_eq!((&binary[..2], binary.len()), (&[0, 0][..], 4));
    }
}
