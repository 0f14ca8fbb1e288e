//! Lines of a run file: serialisation, parsing and checksums.

use kurabe_core::run::{Replanned, Resumption, RunEnd, RunHeader, TrialRecord};
use kurabe_core::text::printable_json;
use kurabe_core::{Error, ErrorKind, Result};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// The format that this crate writes, and the only one that it reads.
pub const FORMAT_VERSION: u64 = 3;
/// The minor version that this crate writes. It increases with each addition that an older program may ignore.
pub const MINOR_VERSION: u64 = 5;
/// Features that a file may require of its reader and that this crate supports. An addition that an older program
/// must not ignore gets a name here. Runs that use it list the name in their header.
const FEATURES: [&str; 0] = [];

/// Why a line is rejected.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It was changed after it was written.
    Damaged(String),
    /// It is intact, and a version that this one does not understand wrote it. Contains that version and what it
    /// needs.
    OtherVersion(String),
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    #[serde(rename = "kurabe-run")]
    version: u64,
    minor: u64,
    requires: &'a [&'a str],
    line: u64,
    #[serde(flatten)]
    header: &'a RunHeader,
}

/// The part of the first line that every version of the format has.
#[derive(Deserialize)]
struct Format {
    #[serde(rename = "kurabe-run")]
    version: u64,
    #[serde(default)]
    minor: u64,
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    kurabe: String,
}

/// A line after the header, for writing.
#[derive(Serialize)]
struct WrittenLine<'a> {
    line: u64,
    #[serde(flatten)]
    content: Content<'a>,
}

/// The content of a line after the header.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content<'a> {
    Trial(&'a TrialRecord),
    Replanned(&'a Replanned),
    Resumed(&'a Resumption),
    End(&'a RunEnd),
}

/// A line after the header, for reading. Not an enum: `flatten` cannot hold all numbers of a histogram.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FoundLine {
    line: u64,
    trial: Option<Box<TrialRecord>>,
    replanned: Option<Replanned>,
    resumed: Option<Resumption>,
    end: Option<RunEnd>,
    #[serde(rename = "crc")]
    _crc: IgnoredAny,
}

/// A line after the header.
pub(crate) enum Line {
    Trial(Box<TrialRecord>),
    Replanned(Replanned),
    Resumed(Resumption),
    End(RunEnd),
}

/// The header as the first line, with its newline.
pub(crate) fn header_line(header: &RunHeader) -> Result<Vec<u8>> {
    let line = HeaderLine {
        version: FORMAT_VERSION,
        minor: MINOR_VERSION,
        requires: &FEATURES,
        line: Chain::default().next(),
        header,
    };
    to_line(&line, Chain::default(), |bytes| parse_header(bytes).map(drop))
}

/// The next line, with its newline.
pub(crate) fn content_line(content: Content<'_>, chain: Chain) -> Result<Vec<u8>> {
    to_line(&WrittenLine { line: chain.next(), content }, chain, |bytes| {
        parse_line(bytes, chain, MINOR_VERSION).map(drop)
    })
}

/// Parses the first line, without its newline; returns its minor version too.
pub(crate) fn parse_header(bytes: &[u8]) -> Result<(RunHeader, u64), Refusal> {
    let Ok(found) = serde_json::from_slice::<Format>(bytes) else {
        return Err(Refusal::Damaged("its first line is not the header of a run".to_owned()));
    };
    let Format { version, minor, requires, kurabe } = found;
    let of = if kurabe.is_empty() { String::new() } else { format!(" {kurabe}") };
    let newer =
        |needs: &str| Refusal::OtherVersion(format!("a newer version of kurabe{of} (needs: {needs})"));
    if version > FORMAT_VERSION {
        return Err(newer(&format!("format {version}")));
    }
    if version < FORMAT_VERSION {
        let older = format!(
            "an older version of kurabe{of} (format {version}; this one reads format {FORMAT_VERSION})"
        );
        return Err(Refusal::OtherVersion(older));
    }
    intact(bytes, Chain::default())?;
    let unknown: Vec<String> =
        requires.into_iter().filter(|feature| !FEATURES.contains(&feature.as_str())).collect();
    if !unknown.is_empty() {
        return Err(newer(&unknown.join(", ")));
    }
    let mut header: RunHeader = parse(bytes).map_err(|why| not_understood(why, minor))?;
    if header.spec.custom.is_some() {
        // The text of a custom workload is run again, and contains newlines.
        let raw = from_slice::<RunHeader>(bytes).map_err(|why| not_understood(why, minor))?;
        header.spec.custom = raw.spec.custom;
    }
    Ok((header, minor))
}

/// Parses the next line, without its newline, of a file whose header has this minor version.
pub(crate) fn parse_line(bytes: &[u8], chain: Chain, minor: u64) -> Result<Line, Refusal> {
    intact(bytes, chain)?;
    let found: FoundLine = parse(bytes).map_err(|why| not_understood(why, minor))?;
    match found {
        FoundLine { line, .. } if line != chain.next() => Err(misplaced(line)),
        FoundLine { trial: Some(trial), replanned: None, resumed: None, end: None, .. } => {
            Ok(Line::Trial(trial))
        }
        FoundLine { replanned: Some(plan), trial: None, resumed: None, end: None, .. } => {
            Ok(Line::Replanned(plan))
        }
        FoundLine { resumed: Some(resumed), trial: None, replanned: None, end: None, .. } => {
            Ok(Line::Resumed(resumed))
        }
        FoundLine { end: Some(end), trial: None, replanned: None, resumed: None, .. } => Ok(Line::End(end)),
        _ => Err(not_understood(
            "it is neither a trial nor a new plan nor a resumption nor an end".to_owned(),
            minor,
        )),
    }
}

/// How a run ended: its last line, without its newline, if it is intact and an end.
pub(crate) fn end_of(before: &[u8], last: &[u8]) -> Option<RunEnd> {
    Chain::behind(before)?.fits(last).then(|| parse::<FoundLine>(last).ok()?.end).flatten()
}

/// Whether a line is complete JSON of any content: an incomplete write is never complete JSON.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn intact(bytes: &[u8], chain: Chain) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Number {
        line: u64,
    }
    if chain.fits(bytes) {
        return Ok(());
    }
    Err(match parse::<Number>(bytes) {
        Ok(Number { line }) if line != chain.next() => misplaced(line),
        _ => Refusal::Damaged("its checksum does not match: it was changed after it was written".to_owned()),
    })
}

fn misplaced(line: u64) -> Refusal {
    Refusal::Damaged(format!("its number is {line}: lines were removed, repeated or moved"))
}

/// An error in an intact line. A line of a newer minor version may contain what this version does not know.
fn not_understood(why: String, minor: u64) -> Refusal {
    if minor > MINOR_VERSION {
        Refusal::OtherVersion(format!(
            "a newer version of kurabe (needs: format {FORMAT_VERSION}.{minor}; {why})"
        ))
    } else {
        Refusal::Damaged(why)
    }
}

/// Parses a line of unknown origin; its texts can be printed safely.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    from_slice(printable_json(text).as_bytes())
}

fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// Serialises a value as one line, and verifies that it can be parsed. A value that JSON cannot represent (a number
/// that is not finite) is rejected now rather than when the run is read.
fn to_line(
    value: &impl Serialize,
    chain: Chain,
    check: impl Fn(&[u8]) -> Result<(), Refusal>,
) -> Result<Vec<u8>> {
    let defect = |why: String| {
        Error::new(ErrorKind::Internal, format!("a record of this run cannot be written: {why}"))
    };
    let object = serde_json::to_vec(value).map_err(|error| defect(error.to_string()))?;
    let line = chain.close(object);
    check(&line[..line.len() - 1]).map_err(|refusal| match refusal {
        Refusal::Damaged(why) | Refusal::OtherVersion(why) => defect(why),
    })?;
    Ok(line)
}

/// The text before the digits.
const BEFORE: &[u8] = b",\"crc\":\"";
/// The text after the digits.
const BEHIND: &[u8] = b"\"}";

/// The digits of a checksum: lower-case hexadecimal.
type Digits = [u8; 8];

/// The end of the intact lines of a run file, with the checksum of the last one, which covers that of the previous line.
///
/// A line ends with `,"crc":"xxxxxxxx"}`. The eight digits are the CRC-32 of the eight digits of the previous line (of nothing, for
/// the first line), followed by this line up to its own digits. A changed line and a misplaced line are therefore both detected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chain {
    /// The number of lines.
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The digits of the last line.
    last: Option<Digits>,
}

impl Chain {
    /// The chain after a line that is not verified itself; `None` if it does not end with digits.
    pub(crate) fn behind(line: &[u8]) -> Option<Self> {
        let last = split(line)?.1;
        Some(Self { last: Some(last), ..Self::default() })
    }

    /// The number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.lines + 1
    }

    /// Closes a JSON object as the next line, with its checksum and newline.
    pub(crate) fn close(&self, mut object: Vec<u8>) -> Vec<u8> {
        object.pop();
        object.extend_from_slice(BEFORE);
        let digits = self.digits(&object);
        object.extend_from_slice(&digits);
        object.extend_from_slice(BEHIND);
        object.push(b'\n');
        object
    }

    /// Whether a line, without its newline, is the next one and intact.
    pub(crate) fn fits(&self, line: &[u8]) -> bool {
        split(line).is_some_and(|(content, digits)| digits == self.digits(content))
    }

    /// Advances past a line, without its newline, that fits.
    pub(crate) fn advance(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        self.last = split(line).map(|(_, digits)| digits);
    }

    fn digits(&self, content: &[u8]) -> Digits {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.last.as_ref().map_or(&[], <[u8; 8]>::as_slice));
        crc.update(content);
        let crc = crc.finalize();
        std::array::from_fn(|n| b"0123456789abcdef"[(crc >> (28 - 4 * n) & 15) as usize])
    }
}

/// Splits a line into the part that its checksum covers, and the digits.
fn split(line: &[u8]) -> Option<(&[u8], Digits)> {
    let (content, digits) = line.strip_suffix(BEHIND)?.split_last_chunk()?;
    content.ends_with(BEFORE).then_some((content, *digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_with_any_bit_flipped_does_not_fit() {
        let mut chain = Chain::default();
        let object = format!("{{\"line\":1,\"text\":\"{}\"}}", "0123456789".repeat(40));
        for _ in 0..2 {
            let mut line = chain.close(object.clone().into_bytes());
            line.pop();
            assert!(chain.fits(&line));
            for bit in 0..line.len() * 8 {
                line[bit / 8] ^= 1 << (bit % 8);
                assert!(!chain.fits(&line), "bit {bit}");
                line[bit / 8] ^= 1 << (bit % 8);
            }
            chain.advance(&line);
        }
    }

    #[test]
    fn checksum_is_the_crc_32_of_zip_and_zlib() {
        // CRC-32 of `{"a":1,"crc":"`, then of that line's digits and `{"b":2,"crc":"`: by Python's zlib.crc32.
        let mut chain = Chain::default();
        let first = chain.close(b"{\"a\":1}".to_vec());
        assert_eq!(String::from_utf8_lossy(&first), "{\"a\":1,\"crc\":\"95481bc9\"}\n");
        chain.advance(&first[..first.len() - 1]);
        let second = chain.close(b"{\"b\":2}".to_vec());
        assert_eq!(String::from_utf8_lossy(&second), "{\"b\":2,\"crc\":\"65474daf\"}\n");
    }
}
