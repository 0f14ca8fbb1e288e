//! Lines of a run file: serialisation and parsing.

use crate::chain::Chain;
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
