//! The postal codes: generated, or read from the list that Japan Post publishes
//! (<https://www.post.japanpost.jp/zipcode/dl/utf-zip.html>: CSV in UTF-8, the code in the third column, then
//! prefecture, city and town in katakana, then the same in kanji).

use super::names::{NAMES, Word};
use crate::prelude::*;
use kurabe_core::text::without_mark;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The maximum number of generated postal codes.
pub(super) const MAX: u64 = 1_000_000;
/// Digits of a postal code.
pub(super) const DIGITS: usize = 7;
/// Digits of the searched prefix: the length of postal codes before 1998.
pub(super) const PREFIX: usize = 5;
/// Generated codes with the same [`PREFIX`].
const TOGETHER: u64 = 12;
/// The prefixes of generated codes. Those below 001, which belong to no prefecture, are left out.
const PREFIXES: Range<u64> = 100..100_000;
/// The maximum length of a name, and the column's width, in characters.
pub(super) const NAME: usize = 600;
/// The number of cached lists: the cells of a run share one.
const KEPT: usize = 4;

/// A town and its postal code. Several towns may share one code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Town {
    pub(super) code: [u8; DIGITS],
    /// Distinguishes towns with the same code.
    pub(super) number: u64,
    pub(super) prefecture: Box<str>,
    pub(super) city: Box<str>,
    pub(super) name: Box<str>,
    pub(super) kana: Box<str>,
}

#[derive(Debug)]
pub(super) struct Codes {
    pub(super) towns: Vec<Town>,
    /// A 53-bit hash that identifies this list.
    pub(super) digest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Generated { seed: u64, count: u64 },
    File(String),
}

impl Source {
    /// The source that a cell with this many users asks for.
    pub(super) fn of(cell: &Cell, seed: u64, users: u64) -> Self {
        match cell.get("postal-codes") {
            Some(AxisValue::Number(count)) => Self::Generated { seed, count: *count },
            Some(AxisValue::Word(word)) if word != "auto" => Self::File(word.clone()),
            _ => Self::Generated { seed, count: (users * 6 / 5).clamp(1, MAX) },
        }
    }
}

impl Codes {
    /// The list, made once for all cells that share it.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) with the invalid line of a file.
    pub(super) fn get(source: &Source) -> Result<Arc<Self>> {
        static MADE: Mutex<Vec<(Source, Arc<Codes>)>> = Mutex::new(Vec::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, codes)) = made.iter().find(|(known, _)| known == source) {
            return Ok(Arc::clone(codes));
        }
        let towns = match source {
            Source::Generated { seed, count } => generate(*seed, *count),
            Source::File(path) => read_file(path)?,
        };
        let codes = Arc::new(Self { digest: digest(&towns), towns });
        if made.len() == KEPT {
            made.remove(0);
        }
        made.push((source.clone(), Arc::clone(&codes)));
        Ok(codes)
    }

    /// All towns whose code begins with these digits.
    pub(super) fn of_prefix(&self, prefix: &[u8]) -> &[Town] {
        let first = self.towns.partition_point(|town| town.code[..prefix.len()] < *prefix);
        let rest = &self.towns[first..];
        &rest[..rest.partition_point(|town| town.code.starts_with(prefix))]
    }
}

fn digest(towns: &[Town]) -> u64 {
    let part = |digest, bytes: &[u8]| {
        bytes.chunks(8).fold(mix(digest, bytes.len() as u64), |digest, chunk| {
            mix(digest, chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
        })
    };
    let town = |digest, town: &Town| {
        let digest = part(mix(digest, town.number), &town.code);
        [&town.prefecture, &town.city, &town.name, &town.kana]
            .iter()
            .fold(digest, |d, text| part(d, text.as_bytes()))
    };
    towns.iter().fold(0, town) >> 11
}

/// Generates this many distinct codes, spread over the country, a dozen to a prefix.
fn generate(seed: u64, count: u64) -> Vec<Town> {
    let prefixes = count.div_ceil(TOGETHER);
    let all = PREFIXES.end - PREFIXES.start;
    (0..count)
        .map(|n| {
            let (group, within) = (n / TOGETHER, n % TOGETHER);
            // Each group has its own range of prefixes, and draws one of them.
            let (first, next) = (group * all / prefixes, (group + 1) * all / prefixes);
            let prefix = PREFIXES.start + first + mix(seed, group) % (next - first).max(1);
            town(seed, prefix, within, n + 1)
        })
        .collect()
}

fn town(seed: u64, prefix: u64, within: u64, number: u64) -> Town {
    let mut code = [b'0'; DIGITS];
    let mut rest = prefix * 100 + within;
    for digit in code.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let area = (prefix / 100) as u32;
    let prefecture =
        NAMES.prefectures.iter().rev().find(|(first, _)| *first <= area).map_or(("", ""), |(_, name)| *name);
    // Towns of one prefix are in one city.
    let place = |seed: u64, suffixes: &[Word]| {
        let mut rng = Rng::new(seed);
        [&NAMES.heads[..], &NAMES.tails[..], suffixes]
            .map(|words| words[rng.below(words.len() as u64) as usize])
    };
    let city = place(mix(!seed, prefix), &NAMES.cities);
    let town = place(mix(mix(!seed, prefix), within), &NAMES.towns);
    let written = |words: &[Word]| words.iter().map(|(written, _)| *written).collect::<String>().into();
    let read = |words: &[Word]| words.iter().map(|(_, read)| *read).collect::<String>();
    Town {
        code,
        number,
        prefecture: prefecture.0.into(),
        city: written(&city),
        name: written(&town),
        kana: format!("{} {} {}", prefecture.1, read(&city), read(&town)).into(),
    }
}

fn read_file(path: &str) -> Result<Vec<Town>> {
    let wrong =
        |error: std::io::Error| Error::usage(format!("the postal codes {path} cannot be read: {error}"));
    let file = std::fs::File::open(Path::new(path)).map_err(wrong)?;
    read(file).map_err(|error| error.context(path))
}

fn read(from: impl Read) -> Result<Vec<Town>> {
    // Only line feeds end a record, so that the number of a record is that of its line. A carriage return before one
    // belongs to the last column.
    let mut lines = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(from);
    let mut record = csv::ByteRecord::new();
    let mut towns = Vec::new();
    let at = |line: u64, what: &str| Error::usage(format!("line {line}: {what}"));
    while lines
        .read_byte_record(&mut record)
        .map_err(|error| at(lines.position().line(), &error.to_string()))?
    {
        let line = record.position().map_or(0, csv::Position::line);
        towns.push(town_of(&record, towns.len() as u64 + 1).map_err(|what| at(line, &what))?);
        if towns.len() as u64 > MAX {
            return Err(at(line, &format!("more than {MAX} towns")));
        }
    }
    if towns.is_empty() {
        return Err(Error::usage("it contains no postal codes").hint("use Japan Post's utf_ken_all.csv"));
    }
    towns.sort_unstable();
    Ok(towns)
}

/// Parses the town of a line; the error is a clause.
fn town_of(record: &csv::ByteRecord, number: u64) -> Result<Town, String> {
    if record.len() < 9 {
        return Err(format!(
            "{} columns are too few: Japan Post's list has 15, of which 9 are read",
            record.len()
        ));
    }
    let text = |column: usize| -> Result<&str, String> {
        let text = std::str::from_utf8(&record[column]).map_err(|_| {
            format!("column {} is not UTF-8: Japan Post offers this list in two encodings", column + 1)
        })?;
        let text = without_mark(text).trim_end_matches('\r');
        match text.chars().count() {
            0 => Err(format!("column {} is empty", column + 1)),
            long if long > NAME => {
                Err(format!("column {} has {long} characters, more than {NAME}", column + 1))
            }
            _ if text.contains(['\t', '\n', '\r', '\0']) => {
                Err(format!("column {} contains control characters", column + 1))
            }
            _ => Ok(text),
        }
    };
    let digits: Vec<u8> = text(2)?.bytes().filter(|byte| *byte != b'-').collect();
    let code = <[u8; DIGITS]>::try_from(digits).ok().filter(|code| code.iter().all(u8::is_ascii_digit));
    let code = code.ok_or_else(|| "the third column is not a postal code of seven digits".to_owned())?;
    let kana = format!("{} {} {}", text(3)?, text(4)?, text(5)?);
    if kana.chars().count() > NAME {
        return Err(format!("columns 4 to 6 have more than {NAME} characters together"));
    }
    Ok(Town {
        code,
        number,
        prefecture: text(6)?.into(),
        city: text(7)?.into(),
        name: text(8)?.into(),
        kana: kana.into(),
    })
}

#[cfg(test)]
mod tests;
