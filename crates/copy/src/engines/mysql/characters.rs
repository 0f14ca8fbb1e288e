//! Characters that the servers do not show in definitions. Of those of four bytes, MySQL shows four question marks in the
//! expressions of a table's text, and its catalogue reads the bytes of expressions as if they were in latin1. MariaDB's catalogue shows
//! four, and its text of a table is right. Both show one in a literal default and in the words of an `ENUM`, and literals of other
//! character sets wrongly. Seen with MySQL 9.7 and MariaDB 10.11.

use super::MYSQL;
use super::catalog::{bare, is_key, quoted_name};
use crate::catalog::{Collation, Column, DefaultValue, Table};
use crate::issue::IssueKind;
use crate::script::unchecked_literal;
use crate::sql::Side;
use kurabe_core::Result;
use kurabe_protocol::sql::{Kind, tokens};

/// What the plan says of a text that is not known.
pub(super) const UNKNOWN: &str = "the server may not show all of its characters as they are";

/// Whether a character may stand for another one.
fn is_doubtful(text: &str) -> bool {
    !text.is_ascii() || text.contains('?')
}

/// A text as it is shown: each character of four bytes becomes four marks, so that all else stays where it is.
fn shown(text: &str) -> String {
    let each = |c: char| if c.len_utf8() == 4 { "????".to_owned() } else { c.to_string() };
    text.chars().map(each).collect()
}

/// Writes an expression of the catalogue into the line of a table's text that has it. Returns it as the server executes it; `None` if
/// the line does not have it.
fn told(line: &mut String, catalogue: &str) -> Option<String> {
    let mut plain = String::new();
    let mut characters = catalogue.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    let bytes: Option<Vec<u8>> = plain.chars().map(|c| u8::try_from(c).ok()).collect();
    let from_latin1 = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    for text in [from_latin1.as_deref(), Some(&plain), Some(catalogue)].into_iter().flatten() {
        if line.contains(&shown(text)) {
            *line = line.replacen(&shown(text), text, 1);
            return Some(text.to_owned());
        }
    }
    let all = shown(line);
    let mut parts = all.match_indices(catalogue).filter_map(|(at, part)| line.get(at..at + part.len()));
    parts.next().map(str::to_owned)
}

/// Whether an expression has a literal whose bytes are not known from its text: of another character set than the session's, or with
/// bytes as MariaDB writes them, such as `xE9`.
fn has_unclear_literal(expression: &str) -> bool {
    let mut before = "";
    tokens(expression, MYSQL.syntax).filter(|token| !token.is_blank()).any(|token| {
        let set = std::mem::replace(&mut before, token.text);
        let is_known = !set.starts_with('_') || ["_utf8mb4", "_utf8mb3", "_utf8"].contains(&set);
        let is_wide = ["_ucs2", "_utf16", "_utf32"].iter().any(|wide| set.starts_with(wide));
        let is_plain = !is_doubtful(token.text) && !token.text.contains('\\') && !is_wide;
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
        let has_bytes =
            || token.text.as_bytes().windows(3).any(|w| w[0] == b'x' && w[1..].iter().all(is_digit));
        token.kind == Kind::Text && (!is_known && !is_plain || has_bytes())
    })
}

/// Whether it is known what an expression of the catalogue is: `told`, as the server executes it.
fn is_clear(told: Option<&String>, catalogue: &str) -> bool {
    told.map_or(!is_doubtful(catalogue), |text| !has_unclear_literal(text))
}

/// Writes a literal default into its line. Whether the line has one.
fn set_default(line: &mut String, default: &str) -> bool {
    let (mut at, mut is_next) = (0, false);
    for token in tokens(&line.clone(), MYSQL.syntax) {
        if is_next && token.kind == Kind::Text {
            line.replace_range(at..at + token.text.len(), &unchecked_literal(&MYSQL, default));
        }
        if is_next && !token.is_blank() {
            // MySQL writes it as a hexadecimal number.
            return token.kind == Kind::Text || token.text.starts_with("0x");
        }
        is_next |= token.is("DEFAULT");
        at += token.text.len();
    }
    false
}

/// Writes all characters that the server tells into the lines of a table's own text and its columns. `expressions` are those of checks
/// and indexes, by their names. Returns the parts of which it does not tell all.
pub(super) fn tell(
    side: &mut Side,
    table: &mut Table,
    lines: &mut [String],
    expressions: &[(String, String)],
) -> Result<Vec<(IssueKind, String)>> {
    let from = side.quoted(&table.name);
    let mut unknown = Vec::new();
    for line in lines.iter_mut().skip(1) {
        let name = quoted_name(line);
        let column = table.columns.iter_mut().find(|column| line.starts_with("  `") && column.name == name);
        let clause = [" CHECK (", "PARTITION "].iter().find_map(|of| bare(line).find(of));
        let mut is_told = !clause.is_some_and(|at| has_unclear_literal(&line[at..]));
        let kind = if let Some(column) = column {
            if tell_column(side, &from, line, column)? {
                IssueKind::Check
            } else {
                (is_told, column.default) = (false, DefaultValue::Null);
                if column.generated.is_some() { IssueKind::Generated } else { IssueKind::Default }
            }
        } else {
            let of_line = expressions.iter().filter(|(of, _)| *of == name);
            for (_, text) in of_line {
                is_told &= is_clear(told(line, text).as_ref(), text);
            }
            match line {
                line if line.starts_with("  CONSTRAINT ") => IssueKind::Check,
                line if is_key(line) => IssueKind::ExpressionIndex,
                _ => IssueKind::TableOption,
            }
        };
        if !is_told {
            unknown.push((kind, name));
        }
    }
    Ok(unknown)
}

/// Whether the server tells the default of a column, and the expression of a generated one.
fn tell_column(side: &mut Side, from: &str, line: &mut String, column: &mut Column) -> Result<bool> {
    let mut is_told = true;
    let mut tell = |text: &mut String| {
        let all = told(line, text);
        is_told &= is_clear(all.as_ref(), text);
        if let Some(all) = all {
            *text = all;
        }
    };
    column.generated.iter_mut().for_each(&mut tell);
    match &mut column.default {
        DefaultValue::Expression(text) => tell(text),
        DefaultValue::Literal(text) if text.contains('?') && column.collation != Collation::Bytes => {
            let of = format!("SELECT CONVERT(DEFAULT({}) USING utf8mb4)", side.quoted(&column.name));
            // A table without rows has one of the columns that may be null.
            let default = match side.value(&format!("{of} FROM {from} LIMIT 1"))? {
                None => side.value(&format!("{of}, COUNT(*) FROM {from}"))?,
                default => default,
            };
            match default {
                Some(default) => {
                    is_told &= set_default(line, &default);
                    *text = default;
                }
                None => is_told = false,
            }
        }
        _ => {}
    }
    Ok(is_told)
}
