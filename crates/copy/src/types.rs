//! Types of columns, and the classes that engines have in common.

use crate::issue::IssueKind;
use serde::Deserialize;

/// A class of types whose values have one canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Bool,
    /// A signed integer of 8 bits.
    Int8,
    /// A signed integer of 16 bits, or an unsigned one of 8.
    Int16,
    /// A signed integer of 32 bits, or an unsigned one of up to 24.
    Int32,
    /// A signed integer of 64 bits, or an unsigned one of 32.
    Int64,
    /// An unsigned integer of 64 bits.
    UInt64,
    /// An exact decimal number: `n` digits, `s` of them after the point.
    Decimal,
    /// A floating-point number of 32 bits.
    Float32,
    /// A floating-point number of 64 bits.
    Float64,
    /// Text of `n` characters; trailing spaces have no meaning.
    Char,
    /// Text of at most `n` characters.
    Varchar,
    /// Text of any length.
    Text,
    /// `n` bytes.
    Binary,
    /// At most `n` bytes.
    Varbinary,
    /// Bytes of any length.
    Blob,
    Date,
    /// A time of day with `n` decimal digits of a second.
    Time,
    /// A date and a time of day without a zone, with `n` decimal digits of a second.
    Timestamp,
    /// An instant, with `n` decimal digits of a second.
    TimestampTz,
    Uuid,
    Json,
    /// One of listed words, or a set of them.
    Enum,
    /// A bit field of `n` bits.
    Bits,
    Geometry,
    /// A type that only its own engine has; read and written as text.
    Native,
}

impl Class {
    /// Whether its values are bytes without a character set.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::Binary | Self::Varbinary | Self::Blob)
    }

    /// Whether its values are text that a collation compares.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Char | Self::Varchar | Self::Text | Self::Enum)
    }

    /// Whether its values are whole numbers of at most 64 bits.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 | Self::UInt64 | Self::Bits)
    }
}

/// No limit of [`Kind::n`].
pub const UNLIMITED: u32 = u32::MAX;

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub class: Class,
    /// Length, number of digits, or decimal digits of a second; [`UNLIMITED`] without a limit.
    pub n: u32,
    /// Digits after the point.
    pub s: u32,
    /// As its engine writes it.
    pub declared: String,
}

impl Kind {
    /// A whole number of 64 bits.
    pub fn whole() -> Self {
        Self { class: Class::Int64, n: UNLIMITED, s: 0, declared: String::new() }
    }
}

/// A type as a catalogue writes it, in parts: `decimal(10,2) unsigned`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The words in lower case, without what is in parentheses: `decimal unsigned`.
    pub base: String,
    /// The first number in parentheses.
    pub n: Option<u32>,
    /// The second one, which may be negative.
    pub s: Option<i32>,
}

impl Declared {
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let (before, after) = text.split_once('(').unwrap_or((text, ""));
        let (inside, after) = after.rsplit_once(')').unwrap_or((after, ""));
        let words = before.split_whitespace().chain(after.split_whitespace());
        // Display properties, which do not affect values.
        let words = words.map(str::to_ascii_lowercase).filter(|word| word != "zerofill");
        let mut numbers = inside.split(',').map(str::trim);
        let base = words.collect::<Vec<_>>().join(" ");
        let n = numbers.next().and_then(|number| number.parse().ok());
        Self { base, n, s: numbers.next().and_then(|number| number.parse().ok()) }
    }
}

/// A new column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// As the target writes it.
    pub sql: String,
    /// How the target stores it.
    pub stored: Kind,
    pub issue: Option<IssueKind>,
}

/// A column whose values are not of its declared type: the type that they have, and how many are not of the declared one.
pub type Correction = Option<(&'static str, u64)>;

/// The type of a column on both sides.
#[derive(Clone, Debug)]
pub struct ColumnTypes {
    /// Its type on the source.
    pub kind: Kind,
    /// Whether both sides have the same type, and values are carried as the server writes them.
    pub exact: bool,
    /// Its type on the target.
    pub mapped: Mapped,
    /// Its maximum length in characters, where an index of the target limits it.
    pub longest: Option<u32>,
    /// Whether it has decimal numbers with more digits than the target's.
    pub is_longer: bool,
    /// Whether it is of unlimited length, since a row has a maximum length.
    pub is_widened: bool,
    /// The type that it has in fact, and the number of values that are not of the declared one.
    pub corrected: Correction,
}
