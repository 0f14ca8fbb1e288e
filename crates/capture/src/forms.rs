//! The form of a statement: its text without what differs between calls, and the values that belong into it.

use crate::record::{Parameter, Request, Value as Bytes};
use crate::rows::Plain;
use kurabe_protocol::bytes::integer;
use kurabe_protocol::call::Call;
use kurabe_protocol::mongodb::bson::{self, Element};
use kurabe_protocol::sql::{Dialect, Kind, Token, columns_of_values, tokens};
use kurabe_wire::statement::GAP;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(Box<str>),
    /// A literal that has no parameter of its kind, as it stands: a number with a fraction, a comment, bits.
    Verbatim(Box<str>),
    /// Not kept, or of a type that is not read.
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) pieces: Vec<Piece>,
    /// The values' order, in that of the pieces.
    slots: Vec<Slot>,
    dialect: Dialect,
    /// The text by which forms are the same.
    pub(crate) key: String,
    /// Names of the values: the columns that they are compared with or written to.
    pub(crate) columns: Vec<String>,
    /// Effects of a call that was translated into a statement.
    pub(crate) translated: Option<Plain>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// A value, by its number, and whether it was a parameter.
    Value(usize, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// A literal by its number, and whether a minus sign stood before it.
    Literal(usize, bool),
    Parameter(usize),
}

impl Form {
    /// Divides the template of a statement.
    pub(crate) fn of(template: &str, dialect: Dialect) -> Self {
        let mut form = Self { dialect, ..Self::default() };
        let (mut text, mut literals, mut questions) = (String::new(), 0, 0);
        for token in tokens(template, dialect) {
            let slot = match token.kind {
                Kind::Mark if token.is_mark(GAP) => {
                    literals += 1;
                    // A sign belongs to its number where no value is before it.
                    let trimmed = text.trim_end();
                    let negative = trimmed.strip_suffix('-').filter(|before| {
                        let before = before.trim_end();
                        before.ends_with(['(', ',', '=', '<', '>', '+', '-', '*', '/'])
                    });
                    let negative = negative.map(str::len);
                    if let Some(length) = negative {
                        text.truncate(length);
                    }
                    Slot::Literal(literals - 1, negative.is_some())
                }
                Kind::Parameter => {
                    questions += 1;
                    let number = token.text.get(1..).and_then(|number| number.parse::<usize>().ok());
                    Slot::Parameter(number.unwrap_or(questions).saturating_sub(1))
                }
                _ => {
                    text.push_str(token.text);
                    continue;
                }
            };
            form.push(std::mem::take(&mut text), slot);
        }
        form.key.push_str(&text);
        form.pieces.push(Piece::Text(text));
        let template = form.template();
        let columns = columns_of_values(&form.tokens(&template), |token| token.is_mark(GAP));
        form.columns = columns.into_iter().map(|(_, column)| column.to_owned()).collect();
        form
    }

    /// The form of a call that is no statement, with what its values are named after. `are_parameters`: whether values that never differ
    /// are no part of what the program wrote.
    pub(crate) fn for_call(text: &str, columns: Vec<String>, are_parameters: bool) -> Self {
        let mut form = Self { key: text.to_owned(), ..Self::default() };
        for slot in 0..columns.len() {
            form.slots.push(Slot::Parameter(slot));
            form.pieces.push(Piece::Value(slot, are_parameters));
        }
        Self { columns, ..form }
    }

    /// The form of a call that is translated into a statement.
    pub(crate) fn for_translated(plain: Plain) -> Self {
        let form = Self::for_call(&plain.text(), plain.columns_of_values(), true);
        Self { translated: Some(plain), ..form }
    }

    fn push(&mut self, text: String, slot: Slot) {
        let is_parameter = matches!(slot, Slot::Parameter(_));
        self.key.push_str(&text);
        self.key.push_str(if is_parameter { "\0?" } else { "\0" });
        self.pieces.push(Piece::Text(text));
        self.pieces.push(Piece::Value(self.slots.len(), is_parameter));
        self.slots.push(slot);
    }

    /// The text with a [`GAP`] for each value.
    pub(crate) fn template(&self) -> String {
        let piece =
            |piece: &Piece| if let Piece::Text(text) = piece { text.clone() } else { GAP.to_string() };
        self.pieces.iter().map(piece).collect()
    }

    /// The tokens of its [template](Self::template) without spaces.
    pub(crate) fn tokens<'a>(&self, template: &'a str) -> Vec<Token<'a>> {
        tokens(template, self.dialect).filter(|token| !token.is_blank()).collect()
    }

    pub(crate) fn inserts(&self) -> bool {
        self.tokens(&self.template()).first().is_some_and(|first| first.is("insert"))
    }

    pub(crate) fn values_in_it(&self) -> usize {
        self.slots.len()
    }

    /// The values of a statement of this form.
    pub(crate) fn values(&self, request: &Request) -> Vec<Value> {
        let value = |slot: &Slot| match slot {
            Slot::Literal(number, negative) => request
                .literals
                .get(*number)
                .map_or(Value::Unknown, |text| literal(text, *negative, self.dialect)),
            Slot::Parameter(number) => {
                request.parameters.get(*number).map_or(Value::Unknown, |one| parameter(one, self.dialect))
            }
        };
        self.slots.iter().map(value).collect()
    }
}

/// The values of a call that is no statement, each with what it is named after; and whether they are parameters.
pub(crate) fn call_values(call: &Call<'_>) -> (Vec<(String, Value)>, bool) {
    match call {
        Call::Document(command) => {
            let one =
                |(name, element): (Cow<'_, str>, Element<'_>)| (name.into_owned(), from_element(&element));
            (command.values().into_iter().map(one).collect(), true)
        }
        Call::Http(request) => {
            let one = |(name, part): (&str, &Parameter)| {
                (name.to_owned(), part.bytes().map_or(Value::Unknown, untyped))
            };
            (request.values().map(one).collect(), false)
        }
        Call::Command(_) | Call::Sql(..) => (Vec::new(), false),
    }
}

fn literal(text: &str, negative: bool, dialect: Dialect) -> Value {
    let verbatim = || Value::Verbatim(if negative { format!("-{text}") } else { text.to_owned() }.into());
    if let Some(quote @ ('\'' | '"')) = text.chars().next().filter(|_| text.len() > 1) {
        let inner = &text[1..text.len() - 1];
        // Escapes beyond quotes and backslashes are rare: what has them stays as it is.
        let escapes = dialect.has_backslash() && inner.contains('\\');
        if escapes || !text.ends_with(quote) {
            return verbatim();
        }
        let twice = format!("{quote}{quote}");
        return Value::Text(inner.replace(&twice, quote.encode_utf8(&mut [0; 4])).into());
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(number) if is_number => Value::Int(if negative { -number } else { number }),
        _ => verbatim(),
    }
}

fn parameter(parameter: &Parameter, dialect: Dialect) -> Value {
    let bytes = match &parameter.value {
        Bytes::Null => return Value::Null,
        Bytes::Dropped => return Value::Unknown,
        Bytes::Bytes(bytes) => bytes,
    };
    let kind = parameter.kind;
    if dialect.is_mysql() {
        // Of MySQL's: 1, 2, 3, 8 and 9 are whole numbers, 15, 253 and 254 texts, 246 a decimal number, 0x8000 without sign.
        return match (kind & 0xff, parameter.binary) {
            (1 | 2 | 3 | 8 | 9, true) => {
                little_endian(bytes, kind & 0x8000 != 0).map_or(Value::Unknown, Value::Int)
            }
            (15 | 246 | 253 | 254, false) => text(bytes),
            _ => Value::Unknown,
        };
    }
    // Numbers of PostgreSQL's types are those of its catalogue: 16 bool, 20 int8, 21 int2, 23 int4, 26 oid; 18, 19, 25, 1042
    // and 1043 are texts.
    match (kind, bytes.as_slice(), parameter.binary) {
        (18 | 19 | 25 | 1042 | 1043, _, _) => text(bytes),
        (16, [truth], true) => Value::Text(if *truth == 0 { "f" } else { "t" }.into()),
        (20 | 21 | 23 | 26, _, true) => integer(bytes, false).map_or(Value::Unknown, Value::Int),
        (_, _, true) => Value::Unknown,
        (_, _, false) => untyped(bytes),
    }
}

pub(crate) fn from_element(element: &Element<'_>) -> Value {
    let bytes = element.value;
    match (element.kind, bytes) {
        (bson::DOUBLE, _) => match bytes.try_into().map(f64::from_le_bytes) {
            // Programs without whole numbers send them so.
            Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => Value::Int(number as i64),
            Ok(number) => Value::Verbatim(number.to_string().into()),
            Err(_) => Value::Unknown,
        },
        (bson::TEXT, [_, _, _, _, text @ .., _]) => self::text(text),
        (bson::OBJECT_ID, _) => {
            Value::Text(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")).into())
        }
        (bson::BOOL, [truth]) => Value::Text(if *truth == 0 { "false" } else { "true" }.into()),
        (bson::DATE_TIME | bson::INT32 | bson::INT64, _) => {
            little_endian(bytes, false).map_or(Value::Unknown, Value::Int)
        }
        (bson::NULL, _) => Value::Null,
        _ => Value::Unknown,
    }
}

fn text(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or(Value::Unknown, |text| Value::Text(text.into()))
}

/// A text, or the whole number that it is.
fn untyped(bytes: &[u8]) -> Value {
    match text(bytes) {
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) if number.to_string() == *text => Value::Int(number),
            _ => Value::Text(text),
        },
        other => other,
    }
}

/// A number of MySQL or MongoDB.
fn little_endian(bytes: &[u8], unsigned: bool) -> Option<i64> {
    let padding: &[u8] = if unsigned && bytes.len() < 8 { &[0] } else { &[] };
    integer(&[bytes, padding].concat(), true).filter(|number| !unsigned || *number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::call::Language;
    use kurabe_wire::statement::split;

    #[test]
    fn statements_that_differ_in_signs_have_one_form_and_their_values() {
        let of = |text: &str, dialect, parameters: Vec<Parameter>| {
            let split = split(text, dialect);
            let form = Form::of(&split.template, dialect);
            let literals = split.literals.iter().map(|one| (*one).to_owned()).collect();
            let values = form.values(&Request { literals, parameters, ..Request::default() });
            (form.key, values)
        };
        let text = |text: &str| Value::Text(text.into());
        let (one, values) = of("UPDATE t SET a = a + -5, b='it''s' WHERE c=7", Dialect::POSTGRES, Vec::new());
        let (two, _) = of("UPDATE t SET a = a + 5, b='x' WHERE c=7", Dialect::POSTGRES, Vec::new());
        assert_eq!(one, two);
        assert_eq!(values, [Value::Int(-5), text("it's"), Value::Int(7)]);
        let parameter = |kind, binary, bytes: &[u8]| Parameter::new(kind, binary, bytes);
        let parameters = vec![parameter(23, true, &[255, 255, 255, 254]), parameter(0, false, b"12")];
        let (key, values) = of("SELECT \"$1\", $2, $1 - 1", Dialect::POSTGRES, parameters);
        assert_eq!(key, "SELECT \"$1\", \0?, \0? - \0");
        assert_eq!(values, [Value::Int(12), Value::Int(-2), Value::Int(1)]);
        let parameters = vec![
            parameter(0x8001, true, &[255]),
            parameter(8, true, &[254, 255, 255, 255, 255, 255, 255, 255]),
        ];
        let (_, values) = of("SELECT `a?`, ?, ?, 1.5, \"a\"", Dialect::MYSQL, parameters);
        assert_eq!(values, [Value::Int(255), Value::Int(-2), Value::Verbatim("1.5".into()), text("a")]);
        // A backslash is a character in some sessions of MySQL, and an escape in some of PostgreSQL.
        let parameters = vec![parameter(8, true, &[7, 0, 0, 0, 0, 0, 0, 0])];
        let (_, values) = of(r"SELECT 'C:\', ?", Dialect::MYSQL_PLAIN, parameters);
        assert_eq!(values, [text(r"C:\"), Value::Int(7)]);
        let escapes = Dialect::POSTGRES.under("standard_conforming_strings", "off");
        let (_, values) = of(r"SELECT 'it\'s'", escapes, Vec::new());
        assert_eq!(values, [Value::Verbatim(r"'it\'s'".into())]);
    }

    #[test]
    fn values_of_mongodb_are_numbers_and_texts() {
        let text = |text: &str| Value::Text(text.into());
        let half = Value::Verbatim("0.5".into());
        for (kind, value, expected) in [
            (bson::DOUBLE, &2_f64.to_le_bytes()[..], Value::Int(2)),
            (bson::DOUBLE, &0.5_f64.to_le_bytes(), half),
            (bson::TEXT, b"\x02\0\0\0x\0", text("x")),
            (bson::OBJECT_ID, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xff], text("000102030405060708090aff")),
            (bson::INT32, &(-7_i32).to_le_bytes(), Value::Int(-7)),
            (bson::NULL, &[], Value::Null),
            (bson::DOCUMENT, &[5, 0, 0, 0, 0], Value::Unknown),
        ] {
            assert_eq!(from_element(&Element { kind, name: b"a", value, is_whole: true }), expected);
        }
    }

    #[test]
    fn values_of_a_command_are_in_the_order_of_its_text() {
        let mut document = vec![0; 4];
        bson::push_text(&mut document, b"find", b"items");
        let filter = bson::begin(&mut document, bson::DOCUMENT, b"filter");
        let list = bson::begin(&mut document, bson::ARRAY, b"$a?");
        for number in [1_i32, 2] {
            bson::push(&mut document, bson::INT32, b"0", &number.to_le_bytes());
        }
        bson::end(&mut document, list);
        bson::push(&mut document, bson::INT32, b"b", &3_i32.to_le_bytes());
        bson::end(&mut document, filter);
        bson::end(&mut document, 0);
        let parameters = vec![Parameter::new(bson::DOCUMENT.into(), true, document)];
        let call = Language::Documents.call("", &parameters).unwrap();
        let Call::Document(command) = call else { panic!("{call:?}") };
        assert_eq!(command.text(), "find items {\"filter\": {\"$a?\": [?], \"b\": ?}}");
        let named = |name: &str, number| (name.to_owned(), Value::Int(number));
        assert_eq!(call_values(&call), (vec![named("filter", 1), named("b", 3)], true));
    }
}
