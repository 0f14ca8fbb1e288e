//! Characters of four bytes in definitions, of which the servers show question marks. MySQL shows four in the expressions of a
//! table's text, and its catalogue reads the bytes of expressions as if they were in latin1. MariaDB's catalogue shows four, and
//! its text of a table is right. Both show one in a literal default and in the words of an `ENUM`. Seen with MySQL 9.7 and MariaDB 10.11.

use super::MYSQL;
use crate::catalog::{Collation, Column, DefaultValue};
use crate::script::{quoted, unchecked_literal};
use crate::sql::Side;
use kurabe_core::Result;

/// What the plan says of a text that is not known.
pub(super) const UNKNOWN: &str = "the server shows a question mark for a character of four bytes too";

pub(super) fn has_mark(text: &str) -> bool {
    text.contains('?')
}

/// A text as it is shown: each character of four bytes becomes this.
fn shown(text: &str, mark: &str) -> String {
    let each = |c: char| if c.len_utf8() == 4 { mark.to_owned() } else { c.to_string() };
    text.chars().map(each).collect()
}

/// The expression of a catalogue as the table's text has it, with all its characters; `None` if the text does not have it.
fn expression(table: &str, catalogue: &str) -> Option<String> {
    let mut plain = String::new();
    let mut characters = catalogue.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    let bytes: Option<Vec<u8>> = plain.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    let from_latin1 = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let candidates = [from_latin1.as_deref(), Some(&plain), Some(catalogue)];
    let known = candidates.into_iter().flatten().find(|text| table.contains(&shown(text, "????")));
    known.map(str::to_owned).or_else(|| part_shown_as(table, catalogue).map(str::to_owned))
}

/// The part of a text that is shown so.
fn part_shown_as<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    text.char_indices().find_map(|(start, _)| {
        let mut rest = part;
        for (at, character) in text[start..].char_indices() {
            if rest.is_empty() {
                return Some(&text[start..start + at]);
            }
            rest = rest.strip_prefix(&*shown(character.encode_utf8(&mut [0; 4]), "????"))?;
        }
        None
    })
}

/// The definitions of one table, with all characters that the server tells.
pub(super) struct Definitions {
    /// As `SHOW CREATE TABLE` shows it.
    pub table: String,
    /// Whether a part of it is not known.
    pub is_lossy: bool,
}

impl Definitions {
    /// Sets the expressions of the columns, and writes these, and those of checks and indexes, into the table's text.
    pub(super) fn set_expressions(&mut self, columns: &mut [Column], others: Vec<String>) {
        let mut known: Vec<String> = others.iter().filter_map(|text| expression(&self.table, text)).collect();
        for column in columns {
            let default = match &mut column.default {
                DefaultValue::Expression(text) => Some(text),
                _ => None,
            };
            for text in default.into_iter().chain(&mut column.generated) {
                if let Some(all) = expression(&self.table, text) {
                    text.clone_from(&all);
                    known.push(all);
                }
            }
        }
        for part in known.iter().filter(|part| shown(part, "") != **part) {
            if self.table.contains(part) {
                continue;
            }
            let marks = shown(part, "????");
            let same: Vec<_> = known.iter().filter(|other| shown(other, "????") == marks).collect();
            // Which of several it is cannot be told.
            let is_told =
                same.iter().all(|other| *other == part) && self.table.matches(&marks).count() == same.len();
            if is_told {
                self.table = self.table.replace(&marks, part);
            } else {
                self.is_lossy = true;
            }
        }
    }

    /// Asks the server for the defaults that are shown with a question mark, and returns the names of columns that it does not tell.
    pub(super) fn set_defaults(
        &mut self,
        side: &mut Side,
        name: &str,
        columns: &mut [Column],
    ) -> Result<Vec<String>> {
        let mut unknown = Vec::new();
        for column in columns.iter_mut().filter(|column| column.collation != Collation::Bytes) {
            let DefaultValue::Literal(text) = &mut column.default else { continue };
            if !has_mark(text) {
                continue;
            }
            let of = format!("SELECT CONVERT(DEFAULT({}) USING utf8mb4)", side.quoted(&column.name));
            // A table without rows has one of the columns that may be null.
            let told = match side.value(&format!("{of} FROM {name} LIMIT 1"))? {
                None => side.value(&format!("{of}, COUNT(*) FROM {name}"))?,
                told => told,
            };
            let Some(told) = told else {
                column.default = DefaultValue::Null;
                unknown.push(column.name.clone());
                continue;
            };
            let line = format!("\n  {} ", quoted(&MYSQL, &column.name));
            let [before, after] =
                [&*text, &told].map(|text| format!(" DEFAULT {}", unchecked_literal(&MYSQL, text)));
            let start = self.table.find(&line).unwrap_or_default() + line.len();
            let end = self.table[start..].find('\n').map_or(self.table.len(), |at| start + at);
            match self.table[start..end].find(&before) {
                Some(at) => self.table.replace_range(start + at..start + at + before.len(), &after),
                // MySQL writes it as a hexadecimal number.
                None => self.is_lossy |= !self.table[start..end].contains(" DEFAULT 0x"),
            }
            *text = told;
        }
        Ok(unknown)
    }
}
