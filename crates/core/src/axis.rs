//! What an experiment varies: axes, their values, and cells. A cell is one value of each axis.

use crate::error::{Error, ErrorKind, Result};
use crate::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Words, each with its meaning.
pub type Words = &'static [(&'static str, &'static str)];

/// The values that an axis accepts: numbers, words, free text, or several of these.
#[derive(Clone, Copy, Debug)]
pub struct AxisKind {
    /// Numbers, if it accepts any.
    pub numbers: Option<Numbers>,
    pub words: Words,
    /// Free text, if it accepts any.
    pub text: Option<FreeText>,
}

/// Numbers in this range.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// What they are.
    pub unit: NumberUnit,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberUnit {
    /// A size in bytes.
    Size,
    Count,
    /// A share in whole per cent.
    Percent,
    /// A number with at most two decimals, kept as written except trailing zeros: its value is a word.
    Decimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeText {
    /// A text with a space in it: "TABLE WHERE CONDITION".
    Phrase(&'static str),
    /// The name of a file, which does not begin with a digit, and what the file contains.
    File(&'static str),
}

impl AxisKind {
    /// Sizes in bytes.
    pub const fn size(min: u64, max: u64) -> Self {
        Self::number(NumberUnit::Size, min, max)
    }

    pub const fn count(min: u64, max: u64) -> Self {
        Self::number(NumberUnit::Count, min, max)
    }

    /// Shares in whole per cent.
    pub const fn percent(min: u64, max: u64) -> Self {
        Self::number(NumberUnit::Percent, min, max)
    }

    /// Numbers from 0 with at most two decimals.
    pub const fn decimal(max: u64) -> Self {
        Self::number(NumberUnit::Decimal, 0, max)
    }

    const fn number(unit: NumberUnit, min: u64, max: u64) -> Self {
        Self { numbers: Some(Numbers { unit, min, max }), words: &[], text: None }
    }

    pub const fn choice(words: Words) -> Self {
        Self { numbers: None, words, text: None }
    }

    /// The same, or one of these words.
    #[must_use]
    pub const fn or(self, words: Words) -> Self {
        Self { words, ..self }
    }

    /// The same, or free text.
    #[must_use]
    pub const fn or_text(self, text: FreeText) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Whether it accepts words only.
    pub const fn is_choice(&self) -> bool {
        self.numbers.is_none() && self.text.is_none()
    }
}

impl FreeText {
    fn accepts(self, text: &str) -> bool {
        match self {
            Self::Phrase(_) => text.contains(char::is_whitespace),
            Self::File(_) => !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()),
        }
    }
}

impl NumberUnit {
    /// A number of this unit as text.
    fn show(self, number: u64) -> String {
        match self {
            Self::Size => units::size(number),
            Self::Percent => format!("{number}%"),
            Self::Count | Self::Decimal => units::count(number),
        }
    }
}

/// One factor that an experiment varies.
#[derive(Clone, Copy, Debug)]
pub struct AxisInfo {
    /// Its name, also its option on the command line (`payload` → `--payload`).
    pub name: &'static str,
    /// A description in one line.
    pub help: &'static str,
    /// The values that it accepts.
    pub kind: AxisKind,
    /// Its default values.
    pub default: &'static [&'static str],
}

impl AxisInfo {
    /// An axis.
    pub const fn new(
        name: &'static str,
        help: &'static str,
        kind: AxisKind,
        default: &'static [&'static str],
    ) -> Self {
        Self { name, help, kind, default }
    }

    /// Reads one value of this axis.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) with the axis, the text and the accepted values.
    pub fn parse(&self, text: &str) -> Result<AxisValue> {
        let AxisKind { numbers, words, text: free } = self.kind;
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        if words.contains(&text) || free.is_some_and(|free| free.accepts(text)) {
            return Ok(AxisValue::Word(text.to_owned()));
        }
        let Some(Numbers { unit, min, max }) = numbers else {
            let why = format!("--{}: '{text}' is not a value of this axis", self.name);
            return Err(Error::usage(why).hint(units::suggestion(text, &words, "one of")));
        };
        let (number, what) = match unit {
            NumberUnit::Size => (units::parse_size(text), "a size"),
            NumberUnit::Count => (units::parse_count(text), "a count"),
            NumberUnit::Percent => {
                (units::parse_count(text.strip_suffix('%').unwrap_or(text).trim_end()), "a share")
            }
            NumberUnit::Decimal => return self.decimal(text, max),
        };
        let number = number.map_err(|error| {
            let error = error.context(format!("--{}", self.name));
            if words.is_empty() { error } else { error.hint(format!("{what}, or {}", words.join(", "))) }
        })?;
        if (min..=max).contains(&number) {
            return Ok(AxisValue::Number(number));
        }
        let why = format!("--{} {text} is out of range", self.name);
        Err(Error::usage(why).hint(format!("from {} to {}", unit.show(min), unit.show(max))))
    }

    fn decimal(&self, text: &str, max: u64) -> Result<AxisValue> {
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=max as f64).contains(number));
        let number = number.ok_or_else(|| {
            let why = format!("--{}: '{text}' is not a valid number", self.name);
            Error::usage(why).hint(format!("from 0 to {max}, with at most two decimals: 0.99"))
        })?;
        let exact = format!("{number:.2}");
        Ok(AxisValue::Word(exact.trim_end_matches('0').trim_end_matches('.').to_owned()))
    }

    pub fn names_file(&self, value: &AxisValue) -> bool {
        let AxisValue::Word(text) = value else { return false };
        matches!(self.kind.text, Some(FreeText::File(_)))
            && !self.kind.words.iter().any(|(word, _)| word == text)
    }

    /// The values in a list on the command line, separated by commas. A text with a space is one value.
    pub fn list<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match self.kind.text {
            Some(phrase @ FreeText::Phrase(_)) if phrase.accepts(text) => vec![text],
            _ => text.split(',').collect(),
        }
    }

    /// Formats a value of this axis for display.
    pub fn show(&self, value: &AxisValue) -> String {
        match value {
            AxisValue::Number(number) => {
                self.kind.numbers.map_or(NumberUnit::Count, |numbers| numbers.unit).show(*number)
            }
            AxisValue::Word(word) => word.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A size in bytes, a count, or a share in per cent.
    Number(u64),
    Word(String),
}

impl AxisValue {
    /// Whether it says nothing without the name of its axis.
    pub fn is_yes_or_no(&self) -> bool {
        matches!(self, Self::Word(word) if word == "yes" || word == "no")
    }
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// One value of each axis of an experiment. The target is not part of it: a run keeps the target beside the cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cell(BTreeMap<String, AxisValue>);

impl Cell {
    /// A cell with these values.
    pub fn new(values: impl IntoIterator<Item = (String, AxisValue)>) -> Self {
        Self(crate::sort::btree_map(values))
    }

    /// All values, by axis name.
    pub fn values(&self) -> &BTreeMap<String, AxisValue> {
        &self.0
    }

    /// The same values as axes with one value each, as for a run with only this cell.
    pub fn alone(&self) -> BTreeMap<String, Vec<AxisValue>> {
        self.0.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect()
    }

    /// The value of an axis, if the cell has it.
    pub fn get(&self, axis: &str) -> Option<&AxisValue> {
        self.0.get(axis)
    }

    /// A size or count.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) if the cell has no such number: the experiment does not declare
    /// the axis, or the run file is of another version.
    pub fn number(&self, axis: &str) -> Result<u64> {
        match self.0.get(axis) {
            Some(AxisValue::Number(n)) => Ok(*n),
            _ => Err(Error::new(ErrorKind::Internal, format!("the cell has no number for axis '{axis}'"))),
        }
    }

    pub fn word(&self, axis: &str) -> Result<&str> {
        match self.0.get(axis) {
            Some(AxisValue::Word(word)) => Ok(word),
            _ => Err(Error::new(ErrorKind::Internal, format!("the cell has no word for axis '{axis}'"))),
        }
    }
}

/// Every combination of the axes' values, the first axis varying slowest.
pub fn product(axes: &[(AxisInfo, Vec<AxisValue>)]) -> Vec<Cell> {
    let mut cells = vec![Cell::default()];
    for (axis, values) in axes {
        cells = cells
            .iter()
            .flat_map(|cell| {
                values.iter().map(|value| {
                    let mut next = cell.clone();
                    next.0.insert(axis.name.to_owned(), value.clone());
                    next
                })
            })
            .collect();
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: AxisInfo = AxisInfo::new("payload", "bytes", AxisKind::size(1, 1_000_000), &["1k"]);
    const LAYOUT: AxisInfo =
        AxisInfo::new("layout", "how", AxisKind::choice(&[("blob", "one"), ("rows", "many")]), &["blob"]);

    #[test]
    fn cells_are_the_product_of_the_axes() {
        let payloads = vec![AxisValue::Number(1), AxisValue::Number(2)];
        let layouts = vec![AxisValue::Word("blob".into()), AxisValue::Word("rows".into())];
        let cells = product(&[(PAYLOAD, payloads), (LAYOUT, layouts)]);
        assert_eq!(cells.len(), 4);
        assert_eq!(cells[1].number("payload").unwrap(), 1);
        assert_eq!(cells[1].word("layout").unwrap(), "rows");
        assert!(cells[1].number("layout").is_err());
    }

    #[test]
    fn percentages_parse_with_and_without_percent_sign() {
        let share =
            AxisInfo { name: "share", kind: AxisKind::percent(0, 100).or(&[("none", "nothing")]), ..PAYLOAD };
        for text in ["5", "5%", "5 %"] {
            assert_eq!(share.parse(text).unwrap(), AxisValue::Number(5), "{text}");
        }
        assert_eq!(share.show(&AxisValue::Number(5)), "5%");
        assert_eq!(share.parse("none").unwrap(), AxisValue::Word("none".to_owned()));
        let error = share.parse("101%").unwrap_err().to_string();
        assert!(error.contains("from 0% to 100%"), "{error}");
    }

    #[test]
    fn size_or_word_is_either() {
        let kind = AxisKind::size(10, 100_000).or(&[("auto", "the kernel's choice")]);
        let buffer = AxisInfo { name: "buffer", kind, ..PAYLOAD };
        assert_eq!(buffer.parse("auto").unwrap(), AxisValue::Word("auto".to_owned()));
        assert_eq!(buffer.parse("64KiB").unwrap(), AxisValue::Number(65_536));
        assert_eq!(buffer.show(&AxisValue::Number(64_000)), "64 kB");
        for (text, part) in [("much", "a size, or auto"), ("1", "out of range")] {
            let error = buffer.parse(text).unwrap_err().to_string();
            assert!(error.contains("--buffer") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn equal_decimals_have_one_spelling() {
        let exponent = AxisInfo { name: "zipf", kind: AxisKind::decimal(4), ..PAYLOAD };
        for (text, kept) in [("0.99", "0.99"), ("1", "1"), ("1.50", "1.5"), ("0", "0"), (".5", "0.5")] {
            assert_eq!(exponent.parse(text).unwrap(), AxisValue::Word(kept.to_owned()), "{text}");
        }
        for text in ["99", "-1", "much", "NaN"] {
            let error = exponent.parse(text).unwrap_err().to_string();
            assert!(error.contains("--zipf") && error.contains("from 0 to 4"), "{error}");
        }
    }

    #[test]
    fn text_with_space_is_one_value_and_words_are_a_list() {
        let words = AxisKind::choice(&[("even", "evenly"), ("skewed", "by Zipf's law")]);
        let data = AxisInfo { name: "data", kind: words.or_text(FreeText::Phrase("TEXT")), ..PAYLOAD };
        assert_eq!(data.list("even,skewed"), ["even", "skewed"]);
        let own = "orders WHERE a IN (1, 2)";
        assert_eq!(data.list(own), [own]);
        assert_eq!(data.parse(own).unwrap(), AxisValue::Word(own.to_owned()));
        assert!(data.parse("evne").unwrap_err().to_string().contains("did you mean 'even'?"));
    }

    #[test]
    fn invalid_value_error_names_axis_and_problem() {
        for (text, part) in [("1x", "not a size"), ("10t", "out of range"), ("0", "out of range")] {
            let error = PAYLOAD.parse(text).unwrap_err().to_string();
            assert!(error.contains("--payload") && error.contains(part), "{error}");
        }
        let error = LAYOUT.parse("blub").unwrap_err().to_string();
        assert!(error.contains("did you mean 'blob'?"), "{error}");
    }
}
