//! Generates the rows of a collection: each field is a pure function of seed, collection, field and row.

use super::random;
use super::variables::Constant;
use crate::content::{Content, Kind};
use crate::fill::text;
use crate::prelude::*;

/// The generator of a field's values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Generator {
    /// Consecutive numbers, beginning with this one.
    Sequence(i64),
    /// Numbers that increase by one after this many rows, from 1.
    Every(u64),
    Uniform(i64, i64),
    /// Numbers of a range, distributed as sysbench's default.
    Special(i64, i64),
    /// Text or bytes with a length in this range.
    Length(usize, usize),
    /// Text that follows a pattern.
    Template(String),
    /// One of these values, all equally likely.
    List(Vec<Constant>),
    Always(Constant),
}

/// Generates the rows of one collection.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    seed: u64,
    kind: FieldType,
    generator: Generator,
    content: Option<Content>,
}

impl Rows {
    pub(super) fn new(seed: u64, fields: &[Field], generators: &[Generator]) -> Self {
        let column = |(number, (field, generator)): (u64, (&Field, &Generator))| {
            let seed = mix(seed, number);
            let content = match generator {
                Generator::Length(_, most) => Some(Content::new(content_kind(field.kind), seed, *most)),
                _ => None,
            };
            Column { seed, kind: field.kind, generator: generator.clone(), content }
        };
        Self { columns: (0..).zip(fields.iter().zip(generators)).map(column).collect() }
    }

    /// The value of a field in row `row`, from 0. A text or bytes replace the content of `out`.
    pub(super) fn make<'b>(&self, row: u64, field: usize, out: &'b mut Vec<u8>) -> Result<Value<'b>> {
        let Some(column) = self.columns.get(field) else { return Ok(Value::Null) };
        let rng = || Rng::new(mix(column.seed, row));
        Ok(match &column.generator {
            Generator::Sequence(first) => column.number(first.wrapping_add(row as i64)),
            Generator::Every(rows) => column.number((row / (*rows).max(1)) as i64 + 1),
            Generator::Uniform(least, most) => {
                let width = most.wrapping_sub(*least) as u64;
                let draw = if width == u64::MAX { rng().next_u64() } else { rng().below(width + 1) };
                column.number(least.wrapping_add(draw as i64))
            }
            Generator::Special(least, most) => {
                column.number(random::special(&mut rng(), *least, *most).unwrap_or(*least))
            }
            Generator::Length(least, most) => {
                if let Some(content) = &column.content {
                    content.write(row, 0, out);
                    out.truncate(least + rng().below((most - least) as u64 + 1) as usize);
                }
                return column.bytes(out);
            }
            Generator::Template(pattern) => {
                template(pattern, &mut rng(), out);
                return column.bytes(out);
            }
            Generator::List(values) => {
                let value = values.get(rng().below(values.len() as u64) as usize);
                return column.constant(value.unwrap_or(&Constant::Null), out);
            }
            Generator::Always(value) => return column.constant(value, out),
        })
    }
}

impl Column {
    fn number(&self, number: i64) -> Value<'static> {
        match self.kind {
            FieldType::Timestamp => Value::Time(number.saturating_mul(1_000_000)),
            _ => Value::Int(number),
        }
    }

    fn bytes<'b>(&self, bytes: &'b [u8]) -> Result<Value<'b>> {
        match content_kind(self.kind) {
            Kind::Text => text(bytes),
            Kind::Random => Ok(Value::Bytes(bytes)),
        }
    }

    fn constant<'b>(&self, value: &Constant, out: &'b mut Vec<u8>) -> Result<Value<'b>> {
        match value {
            Constant::Null => Ok(Value::Null),
            Constant::Int(n) => Ok(self.number(*n)),
            Constant::Double(n) => Ok(self.number(*n as i64)),
            Constant::Text(text) => {
                text.as_bytes().clone_into(out);
                self.bytes(out)
            }
        }
    }
}

fn content_kind(kind: FieldType) -> Kind {
    match kind {
        FieldType::Bytes { .. } | FieldType::LongBytes => Kind::Random,
        _ => Kind::Text,
    }
}

/// Writes a text that follows a pattern: `#` is replaced by a random digit, `@` by a random lower-case letter, and any
/// other character is kept.
pub(super) fn template(pattern: &str, rng: &mut Rng, out: &mut Vec<u8>) {
    out.clear();
    // A draw has 64 bits, enough for many digits: each position consumes a part of it.
    let (mut drawn, mut left) = (0, 0_u64);
    for byte in pattern.bytes() {
        let (first, choices) = match byte {
            b'#' => (b'0', 10),
            b'@' => (b'a', 26),
            other => {
                out.push(other);
                continue;
            }
        };
        // The rest stays large relative to the choices, so that the bias stays below one in a million.
        if left < 26_000_000 {
            (drawn, left) = (rng.next_u64(), u64::MAX);
        }
        out.push(first + (drawn % choices) as u8);
        drawn /= choices;
        left /= choices;
    }
}

/// The maximum number of bytes of a field with this generator.
pub(super) fn most_bytes(generator: &Generator) -> u64 {
    let length = |value: &Constant| match value {
        Constant::Text(text) => text.len() as u64,
        _ => 8,
    };
    match generator {
        Generator::Length(_, most) => *most as u64,
        Generator::Template(pattern) => pattern.len() as u64,
        Generator::List(values) => values.iter().map(length).max().unwrap_or(0),
        Generator::Always(value) => length(value),
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn template_keeps_literal_characters_and_draws_digits_and_letters() {
        let mut rng = Rng::new(1);
        let mut out = Vec::new();
        let mut digits = [0_u32; 10];
        for _ in 0..1_000 {
            template("###########-@#é", &mut rng, &mut out);
            let text = std::str::from_utf8(&out).unwrap();
            assert_eq!((text.len(), &text[11..12], &text[14..]), (16, "-", "é"));
            assert!(text.as_bytes()[12].is_ascii_lowercase());
            for digit in text.bytes().filter(u8::is_ascii_digit) {
                digits[usize::from(digit - b'0')] += 1;
            }
        }
        assert_eq!(digits.iter().sum::<u32>(), 12_000);
        // 1,200 of each are expected, with a deviation of 33.
        assert!(digits.iter().all(|n| (1_000..1_400).contains(n)), "{digits:?}");
    }

    #[test]
    fn the_first_rows_of_a_seed_never_change() {
        let text = FieldType::Text { max: 30 };
        let kinds = [FieldType::Int, FieldType::Int, FieldType::Int, text, text, FieldType::Timestamp];
        let fields = kinds.map(|kind| Field { name: "f", kind });
        let generators = [
            Generator::Sequence(1),
            Generator::Every(2),
            Generator::Uniform(-5, 5),
            Generator::Length(20, 30),
            Generator::List(vec![
                Constant::Text("a".to_owned()),
                Constant::Text("b".to_owned()),
                Constant::Null,
            ]),
            Generator::Uniform(0, 1_000_000_000),
        ];
        let rows = Rows::new(1, &fields, &generators);
        let mut lines = String::new();
        let mut buffer = Vec::new();
        for row in [0, 1, 2, 99_999] {
            for field in 0..fields.len() {
                let _ = match rows.make(row, field, &mut buffer).unwrap() {
                    Value::Text(text) => write!(lines, "{text} "),
                    other => write!(lines, "{other:?} "),
                };
            }
            lines.push('\n');
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/custom_rows_seed1.txt");
        if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
            std::fs::write(file, &lines).unwrap();
        }
        assert_eq!(lines, std::fs::read_to_string(file).unwrap());
    }
}
