//! The lines of a log.

use crate::input::Input;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kurabe_core::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// The maximum size of a line, and of an entry of several, in bytes.
pub(super) const LARGEST: usize = 64 << 20;

/// The lines of a file, one of which may be looked at before it is taken.
pub(super) struct Lines {
    file: BufReader<File>,
    path: PathBuf,
    next: Option<String>,
    /// Whether lines end with a carriage return, which is part of a value otherwise.
    is_crlf: Option<bool>,
    /// Whether the next line, and one that was taken, has bytes that are no UTF-8 and became others.
    is_next_lossy: bool,
    is_lossy: bool,
}

impl Lines {
    pub(super) fn new(input: Input) -> Result<Self> {
        let Input { file, path } = input;
        let mut lines = Self { file, path, next: None, is_crlf: None, is_next_lossy: false, is_lossy: false };
        lines.advance()?;
        lines.next = lines.next.map(|line| line.trim_start_matches('\u{feff}').to_owned());
        Ok(lines)
    }

    /// The next line without its end; `None` at the end of the file.
    pub(super) fn peek(&self) -> Option<&str> {
        self.next.as_deref()
    }

    pub(super) fn take(&mut self) -> Result<Option<String>> {
        let taken = self.next.take();
        self.is_lossy |= self.is_next_lossy;
        self.advance()?;
        Ok(taken)
    }

    /// Takes the next lines up to one within which all quotation marks are closed, or before one that `begins` an entry: then one
    /// is missing.
    pub(super) fn take_quoted(&mut self, begins: impl Fn(&str) -> bool) -> Result<Option<String>> {
        let Some(mut text) = self.take()? else { return Ok(None) };
        let marks = |text: &str| text.matches('"').count() % 2;
        let mut open = marks(&text);
        while open == 1 && self.peek().is_some_and(|line| !begins(line)) {
            let Some(more) = self.take()? else { break };
            open ^= marks(&more);
            text.push('\n');
            text.push_str(&more);
            if text.len() > LARGEST {
                return Err(self.wrong("it has an entry of more than 64 MB"));
            }
        }
        Ok(Some(text))
    }

    /// Whether bytes of the lines that were taken since the last call are lost.
    pub(super) fn has_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_lossy)
    }

    pub(super) fn wrong(&self, why: &str) -> Error {
        Error::usage(format!("{}: {why}", self.path.display()))
    }

    fn advance(&mut self) -> Result<()> {
        let mut line = Vec::new();
        let mut limited = self.file.by_ref().take(LARGEST as u64);
        let got = limited
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", self.path.display())))?;
        if got == LARGEST {
            return Err(self.wrong("it has a line of more than 64 MB"));
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let is_crlf = *self.is_crlf.get_or_insert(line.ends_with(b"\r"));
        let line = line.strip_suffix(b"\r").filter(|_| is_crlf).unwrap_or(line);
        self.is_next_lossy = std::str::from_utf8(line).is_err();
        self.next = (got > 0).then(|| String::from_utf8_lossy(line).into_owned());
        Ok(())
    }
}

/// The fields of a line of comma-separated values (RFC 4180).
pub(super) fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// A time of a log in nanoseconds since 1970: `2026-11-27 12:00:00.123 UTC`, with `T` between date and time, `Z` or `+01:00` behind it, or
/// `261127 12:00:00`. A zone with a name is taken for UTC, since no use of these times depends on it but the date that is shown.
pub(super) fn time(text: &str) -> Option<u64> {
    let (date, rest) = text.trim().split_once(['T', ' '])?;
    let rest = rest.trim_start();
    let date = match date.len() {
        6 => format!("20{}-{}-{}", date.get(..2)?, date.get(2..4)?, date.get(4..)?),
        _ => date.to_owned(),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    if date.len() != 10 || clock.matches(':').count() != 2 {
        return None;
    }
    // An hour may have one digit.
    let pad = if clock.find(':') == Some(1) { "0" } else { "" };
    let time: DateTime = format!("{date}T{pad}{clock}").parse().ok()?;
    let zone = zone.trim();
    let offset = match zone.chars().next() {
        Some(sign @ ('+' | '-')) => {
            let digits: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            let number = |digits: &str| digits.parse::<i64>().ok();
            let minutes = 60 * number(digits.get(..2)?)? + digits.get(2..4).map_or(Some(0), number)?;
            if sign == '+' { minutes } else { -minutes }
        }
        _ => 0,
    };
    let at = time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond();
    let at = u64::try_from(at - i128::from(offset) * 60_000_000_000).ok();
    at.filter(|_| !zone.contains(char::is_whitespace))
}

/// A decimal number of units, of so many nanoseconds each, in nanoseconds. A year is the maximum.
pub(super) fn duration(text: &str, nanoseconds: f64) -> Option<u64> {
    const YEAR: f64 = 365.0 * 86_400e9;
    let time = text.parse::<f64>().ok()? * nanoseconds;
    (0.0..=YEAR).contains(&time).then(|| time.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_logs_are_those_of_the_calendar() {
        let seconds = |text: &str| time(text).map(|at| (at / 1_000_000) as f64 / 1e3);
        // By `date -u -d … +%s`.
        for (text, expected) in [
            ("2024-02-29 12:00:00.500 UTC", 1_709_208_000.5),
            ("2000-03-01T00:00:00Z", 951_868_800.0),
            ("2026-11-27 09:05:07.25 +05:30", 1_795_770_307.25 - 19_800.0),
            ("261127  9:05:07", 1_795_770_307.0),
            ("261127  9:05:07.250000", 1_795_770_307.25),
            ("1970-01-01 00:00:00 GMT", 0.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in [
            "", "now", "2026-11-27 12:00", "2026-11-27 12", "20261127 12:00:00", "2026-13-01 00:00:00",
            "2026-11-27", "2026-11-27 25:00:00", "é6-11-27 00:00:00", "2026-11-27 12:00:00 +é",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
