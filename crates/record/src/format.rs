//! Lines of a run file, to bytes and back.

use kurabe_core::run::{RunEnd, RunHeader, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the format that this crate writes, and the only one that it reads.
pub const FORMAT_VERSION: u64 = 1;

#[derive(Serialize)]
struct HeaderLine<'a> {
    #[serde(rename = "kurabe-run")]
    version: u64,
    #[serde(flatten)]
    header: &'a RunHeader,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "kurabe-run")]
    version: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenLine<'a> {
    Trial(&'a TrialRecord),
    End(&'a RunEnd),
}

/// A line behind the header.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Trial(Box<TrialRecord>),
    End(RunEnd),
}

/// The first line, with its newline.
pub(crate) fn header_line(header: &RunHeader) -> Result<Vec<u8>> {
    line(&HeaderLine { version: FORMAT_VERSION, header }, |bytes| parse_header(bytes).map(drop))
}

/// A trial's line, with its newline.
pub(crate) fn trial_line(trial: &TrialRecord) -> Result<Vec<u8>> {
    line(&WrittenLine::Trial(trial), |bytes| parse_line(bytes).map(drop))
}

/// The last line, with its newline.
pub(crate) fn end_line(end: &RunEnd) -> Result<Vec<u8>> {
    line(&WrittenLine::End(end), |bytes| parse_line(bytes).map(drop))
}

/// Reads the first line, without its newline. The error says what is wrong with it.
pub(crate) fn parse_header(bytes: &[u8]) -> Result<RunHeader, String> {
    let Version { version } =
        serde_json::from_slice(bytes).map_err(|_| "its first line does not begin a run".to_owned())?;
    if version != FORMAT_VERSION {
        return Err(format!(
            "it is written in format {version}, and this version of Kurabe reads format {FORMAT_VERSION} only"
        ));
    }
    parse(bytes)
}

/// Reads any other line, without its newline.
pub(crate) fn parse_line(bytes: &[u8]) -> Result<Line, String> {
    parse(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// A value as one line that is known to be readable: what JSON cannot hold (a figure that is not a number) must be
/// refused now, not found when the run is read.
fn line(value: &impl Serialize, check: impl Fn(&[u8]) -> Result<(), String>) -> Result<Vec<u8>> {
    let defect = |why: String| {
        Error::new(ErrorKind::Internal, format!("a record of this run cannot be written: {why}"))
    };
    let mut bytes = serde_json::to_vec(value).map_err(|error| defect(error.to_string()))?;
    check(&bytes).map_err(defect)?;
    bytes.push(b'\n');
    Ok(bytes)
}
