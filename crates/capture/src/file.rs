//! The file of a capture: a first line, then blocks of records, each compressed and with checksums.
//!
//! A block has a header of 20 bytes, numbers in little-endian order: its own number, the size of its records, its size in the
//! file, the CRC-32 of its bytes there, and the CRC-32 of the header before that. The first block is a JSON object
//! ([`About`]); the others are records. A file whose recorder was killed ends within a block or after one.

use crate::old::Texts;
use crate::record::{Reader, Record, Writer};
use crate::session::Settings;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::private;
use kurabe_protocol::bytes::word;
use kurabe_protocol::call::Language;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// The first line. No two versions differ in one bit only, as 3 does from 1 and from 2: a changed bit makes no other version.
const MAGIC: &[u8] = b"kurabe capture 4\n";
/// First line of the second version, in which commands and requests of HTTP are texts with values.
const TEXTS: &[u8] = b"kurabe capture 2\n";
/// First line of the first version, which has other checksums of rows too, and none of the values that a server made.
const OLD: &[u8] = b"kurabe capture 1\n";
const KIND: &[u8] = b"kurabe capture ";
const HEADER: usize = 20;
/// The maximum size of a block's records: a few of the largest requests.
const LARGEST: u32 = 32 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The scheme of its protocol.
    pub protocol: String,
    /// The server's URL, without a password.
    pub target: String,
    /// What was kept of values.
    pub values: crate::Values,
    /// What is known beside the requests.
    #[serde(default)]
    pub known: Known,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// The version of the program.
    pub kurabe: String,
    /// Settings of the server's new sessions; `None` if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Settings>,
    /// Whether its checksums tell a nil list of Redis from an empty one. Those of earlier builds do not.
    #[serde(default)]
    pub tells_nil_lists: bool,
    /// Whether its checksums of rows are those of the first version, to which none of today's compares.
    #[serde(skip)]
    pub has_old_checksums: bool,
}

impl About {
    /// The language of its calls, with the way in which new sessions read SQL.
    pub fn language(&self) -> Language {
        let settings = self.session.iter().flatten();
        settings.fold(Language::from_scheme(&self.protocol), |language, (name, value)| {
            language.under(name, value)
        })
    }
}

/// What is known beside the requests, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Known {
    /// The shape of each answer, and its time as the client saw it.
    #[default]
    All,
    /// Errors and times, in the log of a server.
    Errors,
    /// Times, in the log of a server.
    Times,
    /// Nothing, in the log of a server: each request is taken to have had the same short time.
    Requests,
}

impl Known {
    /// What shares are of.
    pub fn shares(self) -> &'static str {
        if self == Self::Requests { "calls" } else { "time" }
    }
}

/// The requests, connections and statements of which readers may keep something each, if a file has fewer bytes: a file may hold a
/// thousand times as many, which compress well, and memory must follow the file.
pub const FEW: u64 = 250_000;

/// Of how many requests a reader of a file may keep something: a recorder writes more than a byte for each.
pub fn most_kept(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len()).max(FEW)
}

/// The most requests of a file, for each of those that readers may keep. More take longer to read than a file of its size may.
const MOST_REQUESTS: u64 = 4;

/// Writes a capture of these records, as a recorder does.
///
/// # Errors
/// If the file is there, or cannot be written.
pub fn write(path: &Path, about: &About, records: &[Record]) -> Result<()> {
    let failed =
        |error| Error::new(ErrorKind::Environment, format!("cannot write {}: {error}", path.display()));
    let mut blocks = Blocks::create(path, about)?;
    for part in records.chunks(PART) {
        let mut block = Writer::default();
        for record in part {
            block.push(record);
        }
        blocks.push(&block.bytes).map_err(failed)?;
    }
    blocks.sync().map_err(failed)
}

/// Records of a block.
const PART: usize = 1_000;

pub(crate) struct Blocks {
    file: File,
    number: u32,
}

impl Blocks {
    /// Begins a file that does not exist yet.
    pub(crate) fn create(path: &Path, about: &About) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let hint = if error.kind() == std::io::ErrorKind::AlreadyExists {
                "name another file, or remove it: a capture is never overwritten"
            } else {
                "name a file in a folder that is there"
            };
            Error::new(ErrorKind::Environment, format!("cannot write {}: {error}", path.display())).hint(hint)
        };
        let mut file = private::create_new(path).map_err(failed)?;
        file.write_all(MAGIC).map_err(failed)?;
        let mut blocks = Self { file, number: 0 };
        let about = serde_json::to_vec(about).map_err(std::io::Error::from).map_err(failed)?;
        blocks.push(&about).map_err(failed)?;
        Ok(blocks)
    }

    pub(crate) fn push(&mut self, records: &[u8]) -> std::io::Result<()> {
        let packed = zstd::bulk::compress(records, 1)?;
        let mut block = Vec::with_capacity(HEADER + packed.len());
        for number in [self.number, records.len() as u32, packed.len() as u32, crc32fast::hash(&packed)] {
            block.extend_from_slice(&number.to_le_bytes());
        }
        block.extend_from_slice(&crc32fast::hash(&block).to_le_bytes());
        block.extend_from_slice(&packed);
        self.number += 1;
        self.file.write_all(&block)
    }

    /// Waits until the file is on the disk.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        self.file.sync_all()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// Whether the recorder ended in order.
    pub complete: bool,
    /// The bytes of a last block that is not complete. They are left out.
    pub left_out: u64,
}

/// Reads a capture, and gives each record to `each`, with what the capture is of.
///
/// # Errors
/// If it is no capture, one of a later version, or a block is damaged; or if it has many more records than bytes.
pub fn read(path: &Path, mut each: impl FnMut(&About, Record)) -> Result<(About, Ending)> {
    let wrong = |why: String| Error::new(ErrorKind::Environment, format!("{}: {why}", path.display()));
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    let kept = most_kept(path);
    let (mut left, most_requests) = (kept.saturating_mul(2), kept.saturating_mul(MOST_REQUESTS));
    let mut requests = 0;
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(unreadable)?);
    let mut first = vec![0; MAGIC.len()];
    let got = fill(&mut file, &mut first).map_err(unreadable)?;
    if got < MAGIC.len() || ![MAGIC, TEXTS, OLD].contains(&&*first) {
        let version = String::from_utf8_lossy(first.strip_prefix(KIND).unwrap_or_default()).trim().to_owned();
        return Err(if first.starts_with(KIND) && got == MAGIC.len() {
            wrong(format!("it is a capture of version {version:?}, and this program reads 1, 2 and 4"))
        } else {
            wrong("it is not a capture".to_owned()).hint("kurabe capture TARGET -o FILE makes one")
        });
    }
    let (mut at, mut about, mut ending) = (MAGIC.len() as u64, None::<About>, Ending::default());
    let mut texts = None;
    for number in 0.. {
        let damaged = || {
            wrong(format!("block {number} at byte {at} is damaged"))
                .hint("copy the file again from where it was made; nothing after this byte can be trusted")
        };
        let mut header = [0; HEADER];
        let got = fill(&mut file, &mut header).map_err(unreadable)?;
        if got < HEADER {
            ending.left_out = got as u64;
            break;
        }
        let field = |n: usize| word(&header, 4 * n);
        let (size, packed) = (field(1), field(2));
        let is_whole = field(4) == crc32fast::hash(header.get(..16).unwrap_or_default());
        if !is_whole
            || field(0) != number
            || size > LARGEST
            || packed > LARGEST + (LARGEST >> 7)
            || ending.complete
        {
            return Err(damaged());
        }
        let mut block = vec![0; packed as usize];
        let got = fill(&mut file, &mut block).map_err(unreadable)?;
        if got < block.len() {
            ending.left_out = (HEADER + got) as u64;
            break;
        }
        if crc32fast::hash(&block) != field(3) {
            return Err(damaged());
        }
        let records = zstd::bulk::decompress(&block, size as usize).map_err(|_| damaged())?;
        let Some(about) = &about else {
            let own: About = serde_json::from_slice(&records).map_err(|_| damaged())?;
            texts = Some(Texts::new(&own.protocol)).filter(|_| first != MAGIC);
            about = Some(About { has_old_checksums: first == OLD, ..own });
            at += (HEADER + block.len()) as u64;
            continue;
        };
        let mut reader = Reader::new(&records);
        while !reader.is_empty() {
            let record = reader.next().ok_or_else(damaged)?;
            ending.complete |= matches!(record, Record::End { .. });
            requests += u64::from(matches!(record, Record::Request(_)));
            if requests > most_requests {
                let what = format!("it has more than {most_requests} requests, many for each of its bytes");
                return Err(wrong(what).hint("no recorder writes such a file: make the capture again"));
            }
            if matches!(record, Record::Open { .. } | Record::Statement { .. } | Record::Close { .. }) {
                left = left.checked_sub(1).ok_or_else(|| {
                    wrong(
                        "it has more connections and statements than bytes, which no recorder writes"
                            .to_owned(),
                    )
                })?;
            }
            each(about, if let Some(texts) = &mut texts { texts.read(record) } else { record });
        }
        at += (HEADER + block.len()) as u64;
    }
    let about = about.ok_or_else(|| wrong("it ends before its first record".to_owned()))?;
    Ok((about, ending))
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
pub(crate) fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Parameter, Request, Value};
    use proptest::prelude::*;

    fn records() -> Vec<Record> {
        let parameter = |value| Parameter::new(23, true, value);
        let request = Request {
            connection: 3,
            at: 5_000,
            time: Some(0),
            literals: vec!["'x'".to_owned()],
            parameters: vec![parameter(Value::Null), parameter(Value::Dropped), parameter(vec![0, 7].into())],
            error: Some("23505".to_owned()),
            rows: 2,
            digest: u64::MAX,
            formats: vec![false, true],
            limit: 100,
            pipelined: true,
            transaction: kurabe_wire::view::Transaction::Open,
            step: kurabe_wire::view::Step::Bound,
            ..Request::default()
        };
        let earlier = Request { at: 4_000, time: None, cut: true, rows: 0, digest: 7, ..request.clone() };
        vec![
            Record::Open { connection: 3, at: 9_000, said: vec![("user".to_owned(), "é".to_owned())] },
            Record::Statement { number: 0, template: "SELECT \0".to_owned() },
            Record::Data { connection: 3, length: 9, bytes: vec![1, 2] },
            Record::Made { connection: 3, values: vec![b"7".to_vec(), Vec::new()] },
            Record::Request(Box::new(request)),
            Record::Request(Box::new(earlier)),
            Record::Close { connection: 3, at: 1 << 40, unreadable: Some("no".to_owned()) },
            Record::End { requests: 2 },
        ]
    }

    /// A capture of several blocks, in a folder.
    fn capture() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.capture");
        let mut blocks = Blocks::create(&path, &About::default()).unwrap();
        for part in records().chunks(3) {
            let mut block = Writer::default();
            for record in part {
                block.push(record);
            }
            blocks.push(&block.bytes).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        (folder, path, bytes)
    }

    fn all(path: &Path) -> Result<(Vec<Record>, Ending)> {
        let mut found = Vec::new();
        read(path, |_, record| found.push(record)).map(|(_, ending)| (found, ending))
    }

    #[test]
    fn what_is_written_is_read() {
        let (_folder, path, _) = capture();
        assert_eq!(all(&path).unwrap(), (records(), Ending { complete: true, left_out: 0 }));
        let again = Blocks::create(&path, &About::default()).map(drop).unwrap_err();
        assert!(again.to_string().contains("never overwritten"), "{again}");
    }

    #[test]
    fn every_cut_leaves_the_records_of_whole_blocks_and_is_said() {
        let (_folder, path, bytes) = capture();
        for end in 0..bytes.len() {
            std::fs::write(&path, &bytes[..end]).unwrap();
            match all(&path) {
                Ok((found, ending)) => {
                    assert!(!ending.complete && records().starts_with(&found), "{end}: {found:?}");
                    assert!(found.len() % 3 == 0, "{end}");
                }
                Err(error) => assert!(end < 200, "{end}: {error}"),
            }
        }
        std::fs::write(&path, [OLD, &bytes[17..]].concat()).unwrap();
        assert!(read(&path, |_, _| ()).unwrap().0.has_old_checksums && all(&path).unwrap().0 == records());
        std::fs::write(&path, [b"kurabe capture 9\n", &bytes[17..]].concat()).unwrap();
        assert!(all(&path).unwrap_err().to_string().contains("version \"9\""));
    }

    #[test]
    fn file_with_many_requests_for_each_byte_is_refused_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.capture");
        let mut blocks = Blocks::create(&path, &About::default()).unwrap();
        let mut block = Writer::default();
        for _ in 0..50_000 {
            block.push(&records()[4]);
        }
        for _ in 0..200 {
            blocks.push(&block.bytes).unwrap();
        }
        let mut given = 0;
        let error = read(&path, |_, _| given += 1).unwrap_err().to_string();
        assert!(error.contains("more than 1000000 requests"), "{error}");
        assert_eq!(given, MOST_REQUESTS * FEW);
    }

    #[test]
    fn file_with_more_connections_than_bytes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.capture");
        let open = Record::Open { connection: 0, at: 0, said: Vec::new() };
        write(&path, &About::default(), &vec![open; 2 * FEW as usize + 1]).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < FEW);
        assert!(read(&path, |_, _| {}).unwrap_err().to_string().contains("more connections"));
    }

    #[test]
    fn no_changed_bit_gives_another_version() {
        let differ = |one: &[u8], other: &[u8]| -> u32 {
            one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        for [one, other] in [[MAGIC, TEXTS], [MAGIC, OLD], [TEXTS, OLD]] {
            assert!(differ(one, other) > 1);
        }
    }

    proptest! {
        #[test]
        fn no_changed_bit_gives_another_record(bit in any::<prop::sample::Index>()) {
            let (_folder, path, mut bytes) = capture();
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            prop_assert!(all(&path).is_err(), "bit {} was not noticed", bit);
        }

        #[test]
        fn any_bytes_are_records_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_empty() && reader.next().is_some() {}
        }
    }
}
