//! The layout of sessions in a database: the collection, its fields, and the rows of a session.

use super::info::INFO;
use crate::axes::choice;
use crate::codec::{Codec, Compressor, Encoding};
use crate::content::{Content, Kind};
use crate::prelude::*;
use std::ops::Deref;

/// Bytes of a piece: the longest `varchar` that all databases of the original experiment supported.
pub(super) const PIECE: usize = 4_000;

/// The number of pieces of a value of `length` bytes. An empty value has one empty piece: a record without rows could
/// not be distinguished from a missing record.
fn pieces(length: usize) -> usize {
    length.div_ceil(PIECE).max(1)
}

/// The pieces of a value, each with its number from 0. The last one may be shorter.
pub(super) fn split(value: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..pieces(value.len())).map(|n| (n, &value[n * PIECE..value.len().min((n + 1) * PIECE)]))
}

/// The lengths of sessions that are not alike: of a hundred so many have these quarters of the mean, which is that of them all. As
/// on a site, most are small, and the few large ones are most of the bytes.
const LENGTHS: [(u64, usize); 5] = [(40, 1), (30, 2), (15, 4), (10, 8), (5, 32)];

/// One large value, or pieces of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Blob,
    Rows,
}

/// The cell's axes that decide how data are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Format {
    pub(super) seed: u64,
    pub(super) kind: Kind,
    /// The mean.
    pub(super) payload: usize,
    /// Whether sessions have all the same length.
    pub(super) alike: bool,
    pub(super) layout: Layout,
    pub(super) compressor: Compressor,
    pub(super) encoding: Encoding,
    /// Whether the database removes expired sessions of requests, by their times.
    pub(super) expires: bool,
}

#[derive(Debug)]
pub(super) struct Store {
    format: Format,
    pub(super) content: Content,
}

impl Deref for Store {
    type Target = Format;

    fn deref(&self) -> &Format {
        &self.format
    }
}

impl Format {
    pub(super) fn new(cell: &Cell, seed: u64) -> Result<Self> {
        let compressors = [
            ("none", Compressor::None),
            ("gzip", Compressor::Gzip),
            ("zstd", Compressor::Zstd),
            ("lz4", Compressor::Lz4),
        ];
        let encodings = [("binary", Encoding::Binary), ("base64", Encoding::Base64)];
        Ok(Self {
            seed,
            kind: choice(&INFO, cell, "content", &[("text", Kind::Text), ("random", Kind::Random)])?,
            payload: cell.number("payload")? as usize,
            alike: choice(&INFO, cell, "lengths", &[("alike", true), ("spread", false)])?,
            layout: choice(&INFO, cell, "layout", &[("blob", Layout::Blob), ("rows", Layout::Rows)])?,
            compressor: choice(&INFO, cell, "compress", &compressors)?,
            encoding: choice(&INFO, cell, "encoding", &encodings)?,
            expires: choice(&INFO, cell, "expiry", &[("request", false), ("database", true)])?,
        })
    }

    /// The sessions, and the pool of their contents, which is slightly larger than the largest session.
    pub(super) fn store(self) -> Arc<Store> {
        Arc::new(Store { format: self, content: Content::new(self.kind, self.seed, self.largest()) })
    }

    pub(super) fn codec(&self) -> Result<Codec> {
        Codec::new(self.compressor, self.encoding, self.largest())
    }

    /// The length of the largest session.
    pub(super) fn largest(&self) -> usize {
        if self.alike { self.payload } else { (self.payload * LENGTHS[LENGTHS.len() - 1].1 / 4).max(1) }
    }

    /// The length of a session, in each of its versions.
    pub(super) fn length(&self, key: u64) -> usize {
        if self.alike {
            return self.payload;
        }
        let mut draw = mix(self.seed ^ 0x6c65_6e67_7468, key) % 100;
        let own = LENGTHS.iter().find(|(share, _)| {
            let found = draw < *share;
            draw = draw.saturating_sub(*share);
            found
        });
        (self.payload * own.map_or(4, |(_, quarters)| *quarters) / 4).max(1)
    }

    /// Table `(id varchar(72) primary key, data, updated)`, with `subid` in the key if a session has several rows.
    pub(super) fn collection(&self, name: String) -> Collection {
        let data = match (self.layout, self.encoding) {
            (Layout::Blob, Encoding::Binary) => FieldType::LongBytes,
            (Layout::Blob, Encoding::Base64) => FieldType::LongText,
            (Layout::Rows, Encoding::Binary) => FieldType::Bytes { max: PIECE as u32 },
            (Layout::Rows, Encoding::Base64) => FieldType::Text { max: PIECE as u32 },
        };
        let id = Field { name: "id", kind: FieldType::Text { max: 72 } };
        let data = Field { name: "data", kind: data };
        let updated = Field { name: "updated", kind: FieldType::Timestamp };
        match self.layout {
            Layout::Blob => Collection::new(name, vec![id, data, updated], vec![0]),
            Layout::Rows => {
                let subid = Field { name: "subid", kind: FieldType::Int };
                Collection::new(name, vec![id, subid, data, updated], vec![0, 1])
            }
        }
    }

    /// The collection of requests: its sessions expire at the time of their last field, which has an index, if the database
    /// removes them.
    pub(super) fn requested(&self, name: String) -> Collection {
        let collection = self.collection(name);
        let time = collection.fields.len() - 1;
        let (indexes, expires) = (self.expires.then(|| vec![time]), self.expires.then_some(time));
        Collection { indexes: Vec::from_iter(indexes), expires, ..collection }
    }

    /// The number of rows for a value of `stored` bytes.
    pub(super) fn rows(&self, stored: usize) -> usize {
        match self.layout {
            Layout::Blob => 1,
            Layout::Rows => pieces(stored),
        }
    }

    /// The operation that adds one session of this many rows.
    pub(super) fn insert(&self, collection: &Arc<Collection>, rows: usize) -> Operation {
        match self.layout {
            Layout::Blob => Operation::Insert { collection: Arc::clone(collection) },
            Layout::Rows => Operation::InsertMany { collection: Arc::clone(collection), rows },
        }
    }

    /// The operation that loads one session: its data and its time of update.
    pub(super) fn select(&self, collection: &Arc<Collection>) -> Operation {
        match self.layout {
            Layout::Blob => Operation::Get { collection: Arc::clone(collection), fields: vec![1, 2] },
            Layout::Rows => {
                Operation::FindEqual { collection: Arc::clone(collection), by: vec![0], fields: vec![2, 3] }
            }
        }
    }
}

impl Store {
    /// Replaces `out` with the content of a version of a session.
    pub(super) fn write(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        self.content.write_part(key, version, self.length(key), out);
    }

    /// The time of session `key`, in microseconds since 1970 UTC: one second for each session since 2007, when it was last
    /// updated, or since 2036, when it expires.
    pub(super) fn time(&self, key: u64) -> i64 {
        let (base, most) =
            if self.expires { (2_100_000_000, 40_000_000) } else { (1_167_609_600, 400_000_000) };
        (base + (key % most) as i64) * 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_value_is_one_piece() {
        assert_eq!(split(b"short").collect::<Vec<_>>(), vec![(0, &b"short"[..])]);
        assert_eq!(split(b"").count(), 1);
    }

    #[test]
    fn lengths_that_are_not_alike_have_the_mean_that_was_asked_for() {
        let shares: u64 = LENGTHS.iter().map(|(share, _)| share).sum();
        let mean: u64 = LENGTHS.iter().map(|(share, quarters)| share * *quarters as u64).sum();
        assert_eq!((shares, mean), (100, 400));
    }

    proptest! {
        #[test]
        fn pieces_joined_are_the_value(value in prop::collection::vec(any::<u8>(), 0..20_000)) {
            let pieces: Vec<_> = split(&value).collect();
            prop_assert_eq!(pieces.len(), super::pieces(value.len()));
            prop_assert!(pieces.iter().all(|(_, piece)| piece.len() <= PIECE));
            prop_assert!(pieces.iter().enumerate().all(|(i, (n, _))| i == *n));
            let joined: Vec<u8> = pieces.iter().flat_map(|(_, piece)| piece.iter().copied()).collect();
            prop_assert_eq!(joined, value);
        }
    }
}
