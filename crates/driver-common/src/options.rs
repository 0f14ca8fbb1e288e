//! Options of targets' URLs.

/// An option that a target's URL may have: `?name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    pub name: &'static str,
    /// Its effect and its default, in one line.
    pub help: &'static str,
    /// Whether its value names a file, a folder or a socket of the client's machine.
    pub is_file: bool,
}

impl OptionInfo {
    /// An option and its help.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, is_file: false }
    }

    /// The same for one that names a file, a folder or a socket of the client's machine.
    pub const fn file(name: &'static str, help: &'static str) -> Self {
        Self { name, help, is_file: true }
    }
}

/// An option of other clients or of providers' URLs.
#[derive(Clone, Copy, Debug)]
pub struct ForeignOption {
    pub name: &'static str,
    /// The value that this is about, in any case; `None`: every value.
    pub value: Option<&'static str>,
    /// What it means here.
    pub meaning: Meaning,
    /// Where it is from.
    pub from: &'static str,
}

impl ForeignOption {
    /// An option of these clients or providers with this meaning.
    pub const fn new(
        from: &'static str,
        name: &'static str,
        value: Option<&'static str>,
        meaning: Meaning,
    ) -> Self {
        Self { name, value, meaning, from }
    }

    /// The meaning of an option's value, if it is among `rows`.
    pub fn find(rows: &[Self], name: &str, value: &str) -> Option<Meaning> {
        let fits =
            |row: &&Self| row.name == name && row.value.is_none_or(|known| known.eq_ignore_ascii_case(value));
        rows.iter().find(fits).map(|row| row.meaning)
    }
}

/// What an option of other clients means to Kurabe.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// This option with this value; without one, with the same value.
    Is(&'static str, Option<&'static str>),
    /// Nothing: it is about what Kurabe does not have or always does; the reason.
    Nothing(&'static str),
    /// It is refused; the hint.
    Refused(&'static str),
}
