//! Compression of what client and server send each other: the axis that every experiment has beside its own.

use crate::axis::{AxisInfo, AxisKind, Cell};
use crate::named::named;

/// The axis of a connection's compression. Without it, connections are opened as the target's URL says.
pub const COMPRESSION: AxisInfo = AxisInfo::new(
    "wire-compression",
    "compression of what client and server send each other, where the protocol has it",
    AxisKind::choice(&[
        ("off", "none, unless the target's URL asks for it"),
        ("zlib", "zlib at its default level, 6"),
        ("zstd", "zstd at its default level, 3"),
    ]),
    &[],
);

named! {
    /// How a connection compresses what both ends send.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Compression {
        /// As the target's URL says: usually not at all.
        #[default]
        Off => "off",
        /// zlib (RFC 1950) at level 6.
        Zlib => "zlib",
        /// zstd (RFC 8878) at level 3.
        Zstd => "zstd",
    }
    /// Its value of the axis.
    pub fn name;
}

impl Compression {
    /// The compression of a cell; [`Compression::Off`] if it has no such axis.
    pub fn of(cell: &Cell) -> Self {
        let word = cell.word(COMPRESSION.name).ok();
        Self::ALL.into_iter().find(|one| word == Some(one.name())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_axis_is_a_compression_of_that_name() {
        let words = COMPRESSION.kind.words;
        for (word, _) in words {
            let value = (COMPRESSION.name.to_owned(), COMPRESSION.parse(word).unwrap());
            assert_eq!(Compression::of(&Cell::new([value])).to_string(), *word);
        }
        assert_eq!(Compression::of(&Cell::default()), Compression::Off);
    }
}
