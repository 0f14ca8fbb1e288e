//! Rows of an answer: their checksum, and the values among them that a server makes.
//!
//! A *moment* of the server's clock has no part in a checksum: another server's clock shows another time. Moments, and keys that
//! a statement made (`RETURNING`), are given besides, so that a replay knows its own value of each. What a volatile function gave
//! has no part in it either.

use crate::moment::{Spans, Watch};
use crate::view::Exchange;
use kurabe_protocol::mysql::message::{Form, push_length, text, value};
use kurabe_protocol::sql::{Dialect, Order, Statement, Varies, order};
use std::borrow::Cow;
use std::ops::Range;

/// The lower half of a checksum of all rows of a cursor that gave them in parts and in any order.
pub const COMPLETE: u32 = 1;

/// The longest row that is divided into its values, and the most bytes of rows that are kept.
const LONGEST: usize = 64 << 10;
const MOST_KEPT: usize = 1 << 20;
/// The longest value that a server makes, and the most bytes of these of one answer.
const LONGEST_MADE: usize = 64;
const MOST_MADE: usize = 4 << 10;
/// Of how many values of rows that were read UUIDs are given.
const UUIDS: usize = 4;
/// What stands for a moment in a checksum, for what a volatile function gave, and for a number or a UUID in a loose one.
const MOMENT: &[u8] = b"\xffmoment";
const VOLATILE: &[u8] = b"\xffvolatile";
const KEY: &[u8] = b"\xffkey";

/// MySQL's NULL in the text form of a row.
const NULL: u8 = 0xfb;

/// How the values of a row are divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    #[default]
    Whole,
    /// `DataRow`: a count, and each value behind its length.
    Postgres,
    MysqlText,
    /// With the forms of the columns.
    MysqlBinary(Vec<Form>),
}

/// What is put in the place of a value.
enum Put<'a> {
    Itself,
    Mark(&'static [u8]),
    Other(Cow<'a, [u8]>),
}

impl Layout {
    /// Gives each value that is not NULL: its column, where its length begins, and where it is. Returns the number of columns;
    /// `None`: no row of this layout.
    fn values(&self, row: &[u8], mut each: impl FnMut(usize, usize, Range<usize>)) -> Option<usize> {
        let (mut at, mut columns) = (0, 0);
        match self {
            Self::Whole => return None,
            Self::Postgres => {
                columns = u16::from_be_bytes(*row.first_chunk()?).into();
                at = 2;
                for column in 0..columns {
                    let length = i32::from_be_bytes(*row.get(at..)?.first_chunk()?);
                    let from = at;
                    at += 4;
                    if let Ok(length) = usize::try_from(length) {
                        row.get(at..at.checked_add(length)?)?;
                        each(column, from, at..at + length);
                        at += length;
                    }
                }
            }
            Self::MysqlText => {
                while let Some(first) = row.get(at) {
                    if *first == NULL {
                        at += 1;
                    } else {
                        let (value, next) = text(row, at)?;
                        each(columns, at, next - value.len()..next);
                        at = next;
                    }
                    columns += 1;
                }
            }
            Self::MysqlBinary(forms) => {
                columns = forms.len();
                let nulls = row.get(1..1 + (columns + 9) / 8)?;
                at = 1 + nulls.len();
                for (column, form) in forms.iter().enumerate() {
                    if nulls.get((column + 2) / 8)? >> ((column + 2) % 8) & 1 == 1 {
                        continue;
                    }
                    let (_, bytes, next) = value(row, at, form.kind)?;
                    each(column, at, next - bytes.len()..next);
                    at = next;
                }
            }
        }
        (at == row.len()).then_some(columns)
    }

    /// A row of MySQL's binary form in the text form.
    fn as_text(&self, row: &[u8]) -> Option<Vec<u8>> {
        let Self::MysqlBinary(forms) = self else { return None };
        let mut texts = vec![Some(None); forms.len()];
        self.values(row, |column, _, at| texts[column] = forms[column].text(&row[at]).map(Some))?;
        let mut out = Vec::with_capacity(row.len());
        for text in texts {
            match text? {
                None => out.push(NULL),
                Some(text) => {
                    push_length(&mut out, text.len());
                    out.extend_from_slice(&text);
                }
            }
        }
        Some(out)
    }

    /// Gives the bytes of a row to `push`, with what `put` says in place of values.
    fn written<'a>(
        &self,
        row: &[u8],
        mut put: impl FnMut(usize, &[u8]) -> Put<'a>,
        mut push: impl FnMut(&[u8]),
    ) {
        let mut done = 0;
        let mut out = Vec::new();
        let read = self.values(row, |column, from, at| {
            let value = row.get(at.clone()).unwrap_or_default();
            let put = put(column, value);
            if matches!(put, Put::Itself) {
                return;
            }
            out.extend_from_slice(row.get(done..from).unwrap_or_default());
            match put {
                Put::Mark(mark) => out.extend_from_slice(mark),
                Put::Other(other) => {
                    match self {
                        Self::Postgres => out.extend_from_slice(&(other.len() as u32).to_be_bytes()),
                        _ if at.start > from => push_length(&mut out, other.len()),
                        _ => {}
                    }
                    out.extend_from_slice(&other);
                }
                Put::Itself => {}
            }
            done = at.end;
        });
        if read.is_none() {
            return push(row);
        }
        push(&out);
        push(row.get(done..).unwrap_or_default());
    }
}

/// A checksum of rows: FNV-1a (64 bits) of each row's bytes. They are added up, which gives the upper half; where the statement
/// orders its rows they are chained too, which gives the lower half. Equal upper halves alone are the same rows in another order.
/// Rows that are equal in the keys of their order may come in any: such are chained together. Where rows are divided into values,
/// the chain has the upper 16 bits of the lower half, and the lower 16 are of rows without numbers and UUIDs.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    /// What is known of the rows, and these as they came if they are kept.
    rows: Rows,
    /// How rows come, where they count as others.
    came: Option<Layout>,
    keeps: bool,
    keys: Keys,
    /// The bytes of a row of which it is not known whether it is too long to be divided, and the checksum if it is.
    row: Vec<u8>,
    long: Option<u64>,
    sum: u64,
    chain: u64,
    loose: u64,
    /// The keys of the last rows and their sum.
    group: (Vec<u8>, u64),
    made: Vec<Vec<u8>>,
}

/// What is known of the order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ordered {
    #[default]
    Not,
    /// Each row has its place.
    All,
    /// By columns of the answer.
    By(Vec<usize>),
}

/// Rows of an answer as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    layout: Layout,
    spans: Spans,
    order: Ordered,
    /// Columns that have no part in a checksum, since time or chance makes their values.
    volatile: Vec<usize>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

impl Default for Digest {
    /// Of rows whose order counts.
    fn default() -> Self {
        Self::new(true)
    }
}

impl Digest {
    /// Of rows without values that are known.
    pub(crate) fn new(is_ordered: bool) -> Self {
        let order = if is_ordered { Ordered::All } else { Ordered::Not };
        Self {
            rows: Rows { order, ..Rows::default() },
            came: None,
            keeps: false,
            keys: Keys::None,
            row: Vec::new(),
            long: Some(START),
            sum: 0,
            chain: 0,
            loose: 0,
            group: (Vec::new(), 0),
            made: Vec::new(),
        }
    }

    /// Of the rows that answer a statement; `columns`: their names, if they are known.
    pub(crate) fn for_answer(
        request: &Exchange,
        dialect: Dialect,
        layout: Layout,
        columns: &[String],
        watch: Option<Watch>,
    ) -> Self {
        let text = &request.text;
        let spans = watch.map(|watch| watch.spans(request.began)).unwrap_or_default();
        let order = match order(text, dialect) {
            Order::None => Ordered::Not,
            Order::Unknown => Ordered::All,
            Order::By(keys) => {
                let place = |key: &String| match key.parse::<usize>() {
                    Ok(place) => place.checked_sub(1),
                    Err(_) => only(columns, key),
                };
                let places: Option<Vec<usize>> = keys.iter().map(place).collect();
                places.map_or(Ordered::All, Ordered::By)
            }
        };
        let (volatile, keys) = made_by(text, dialect);
        let keeps = watch.is_some_and(|watch| watch.keeps_rows);
        let is_other = watch.is_some_and(|watch| watch.as_text) && matches!(layout, Layout::MysqlBinary(_));
        let (layout, came) = if is_other { (Layout::MysqlText, Some(layout)) } else { (layout, None) };
        let rows = Rows { layout, spans, order, volatile, ..Rows::default() };
        Self { rows, came, keeps, keys, long: None, ..Self::new(false) }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.long.is_none() {
            self.row.extend_from_slice(bytes);
            if self.row.len() <= LONGEST {
                return;
            }
            self.long = Some(hashed(START, &std::mem::take(&mut self.row)));
            self.keeps = false;
        } else if let Some(hash) = self.long {
            self.long = Some(hashed(hash, bytes));
        }
    }

    /// A text with the end of its line, which may be a moment.
    pub(crate) fn push_text(&mut self, text: &[u8], spans: Spans) {
        let value = text.strip_suffix(b"\r\n").unwrap_or(text);
        if spans.have(value) {
            self.push(MOMENT);
            if are_all(&self.made) {
                self.made.push(value.to_vec());
            }
        } else {
            self.push(text);
        }
    }

    pub(crate) fn end_row(&mut self) {
        let is_whole = self.rows.layout == Layout::Whole;
        if let Some(hash) = self.long {
            self.long = is_whole.then_some(START);
            return self.add(hash, hash, &[]);
        }
        let row = std::mem::take(&mut self.row);
        let row = self.came.as_ref().and_then(|came| came.as_text(&row)).unwrap_or(row);
        let (mut hash, mut loose, mut keys) = (START, START, Vec::new());
        let size: usize = self.made.iter().map(Vec::len).sum();
        let mut left = MOST_MADE.saturating_sub(size);
        let Self { rows: Rows { spans, order, volatile, .. }, keys: made_keys, made, .. } = self;
        let put = |column: usize, value: &[u8]| {
            if let Ordered::By(columns) = order
                && columns.contains(&column)
            {
                keys.extend_from_slice(&(value.len() as u32).to_be_bytes());
                keys.extend_from_slice(value);
            }
            // What a function gave is never a time of the recording.
            let is_volatile = volatile.contains(&column);
            let is_moment = if is_volatile { spans.own().have(value) } else { spans.have(value) };
            let may_be_key = *made_keys == Keys::All || *made_keys == Keys::Volatile && is_volatile;
            let is_made =
                is_moment || may_be_key && is_key(value) || made.len() < UUIDS && uuid(value).is_some();
            if is_made && value.len() <= left.min(LONGEST_MADE) {
                left -= value.len();
                made.push(value.to_vec());
            }
            if is_volatile {
                Put::Mark(VOLATILE)
            } else if is_moment {
                Put::Mark(MOMENT)
            } else {
                Put::Itself
            }
        };
        self.rows.layout.written(&row, put, |bytes| hash = hashed(hash, bytes));
        let put = |column, value: &[u8]| {
            let is_left_out = volatile.contains(&column) || spans.have(value) || is_key(value);
            if is_left_out { Put::Mark(KEY) } else { Put::Itself }
        };
        self.rows.layout.written(&row, put, |bytes| loose = hashed(loose, bytes));
        self.add(hash, loose, &keys);
        if self.keeps {
            self.rows.bytes.extend_from_slice(&row);
            self.rows.ends.push(self.rows.bytes.len());
            self.keeps = self.rows.bytes.len() <= MOST_KEPT;
        }
        self.row = row;
        self.row.clear();
    }

    fn add(&mut self, hash: u64, loose: u64, keys: &[u8]) {
        self.sum = self.sum.wrapping_add(hash);
        self.loose = self.loose.wrapping_add(loose);
        match self.rows.order {
            Ordered::Not => {}
            Ordered::All => self.chain = chained(self.chain, hash),
            Ordered::By(_) if self.group.0 == keys => self.group.1 = self.group.1.wrapping_add(hash),
            Ordered::By(_) => {
                self.chain = chained(self.chain, self.group.1);
                self.group = (keys.to_vec(), hash);
            }
        }
    }

    /// All rows are there: where they have no order, the lower half says so.
    pub(crate) fn complete(&mut self) {
        if self.rows.order == Ordered::Not {
            self.chain = u64::from(COMPLETE);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        let half = |whole: u64| whole >> 32 ^ whole & u64::from(u32::MAX);
        let chain = if self.group.1 == 0 { self.chain } else { chained(self.chain, self.group.1) };
        if self.rows.layout == Layout::Whole {
            return half(self.sum) << 32 | half(chain);
        }
        let quarter = |whole: u64| (half(whole) >> 16 ^ half(whole)) & 0xffff;
        half(self.sum) << 32 | quarter(chain) << 16 | quarter(self.loose)
    }

    /// Enters what was seen of the rows into their request.
    pub(crate) fn end(self, request: &mut Exchange) {
        request.digest = self.value();
        request.made.extend(self.made);
        request.kept = self.keeps.then_some(self.rows);
    }
}

/// Whether the values that a server made, and that are given with an answer, are all that it has of them.
pub fn are_all(made: &[Vec<u8>]) -> bool {
    made.iter().map(Vec::len).sum::<usize>() + LONGEST_MADE <= MOST_MADE
}

/// The place of the only column of a name.
fn only(columns: &[String], key: &str) -> Option<usize> {
    let mut found = columns.iter().enumerate().filter(|(_, name)| name.eq_ignore_ascii_case(key));
    found.next().filter(|_| found.next().is_none()).map(|(place, _)| place)
}

fn chained(chain: u64, hash: u64) -> u64 {
    chain.wrapping_mul(PRIME).wrapping_add(hash)
}

impl Rows {
    /// Gives each value that is not NULL, and its column.
    pub fn values(&self, mut each: impl FnMut(usize, &[u8])) {
        self.each(|row| {
            let _ = self.layout.values(row, |column, _, at| each(column, row.get(at).unwrap_or_default()));
        });
    }

    /// Whether the rows have no order, or are ordered by a column of which this is true.
    pub fn are_ordered_by(&self, is_one: impl Fn(usize) -> bool) -> bool {
        match &self.order {
            Ordered::Not => true,
            Ordered::All => false,
            Ordered::By(columns) => columns.iter().any(|column| is_one(*column)),
        }
    }

    pub fn are_ordered(&self) -> bool {
        self.order != Ordered::Not
    }

    /// Whether two rows that follow each other have the same values in this number of last columns.
    pub fn have_ties(&self, last: usize) -> bool {
        let (mut before, mut found) = (None, false);
        self.each(|row| {
            let mut values: Vec<(usize, Vec<u8>)> = Vec::new();
            let push = |column: usize, _: usize, at: Range<usize>| {
                values.push((column, row.get(at).unwrap_or_default().to_vec()));
            };
            // NULL is none of the values.
            let columns = self.layout.values(row, push).unwrap_or(0);
            values.retain(|(column, _)| column + last >= columns);
            found |= before.as_ref() == Some(&values);
            before = Some(values);
        });
        found
    }

    /// The checksum of the rows with other values, by column.
    pub fn digest_with<'a>(&self, other: impl Fn(usize, &[u8]) -> Option<Cow<'a, [u8]>>) -> u64 {
        let (layout, order, volatile) = (self.layout.clone(), self.order.clone(), self.volatile.clone());
        let rows = Self { layout, spans: self.spans, order, volatile, ..Self::default() };
        let mut digest = Digest { rows, long: None, ..Digest::new(false) };
        self.each(|row| {
            let put = |column, value: &[u8]| other(column, value).map_or(Put::Itself, Put::Other);
            self.layout.written(row, put, |bytes| digest.push(bytes));
            digest.end_row();
        });
        digest.value()
    }

    fn each(&self, mut each: impl FnMut(&[u8])) {
        let mut from = 0;
        for end in &self.ends {
            each(self.bytes.get(from..*end).unwrap_or_default());
            from = *end;
        }
    }
}

/// Whether a value may be a key: a whole number as a text or in four or eight bytes, or a UUID.
fn is_key(value: &[u8]) -> bool {
    let is_number = !value.is_empty() && value.len() <= 20 && value.iter().all(u8::is_ascii_digit);
    let is_binary =
        matches!(value.len(), 4 | 8 | 16) && !value.iter().all(|byte| (b' '..=b'~').contains(byte));
    is_number || is_binary || uuid(value).is_some()
}

/// A UUID: as a text, or in 16 bytes with a version and the usual variant (RFC 9562).
pub fn uuid(value: &[u8]) -> Option<[u8; 16]> {
    if let Ok(bytes) = <[u8; 16]>::try_from(value) {
        return ((1..=8).contains(&(bytes[6] >> 4)) && bytes[8] >> 6 == 2).then_some(bytes);
    }
    let is_sign = |(at, byte): (usize, &u8)| {
        if [8, 13, 18, 23].contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    if value.len() != 36 || !value.iter().enumerate().all(is_sign) {
        return None;
    }
    let digits = std::str::from_utf8(value).ok()?.replace('-', "");
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// In which columns numbers and UUIDs may be keys that the server made for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    None,
    All,
    Volatile,
}

/// The columns of the answer to a statement whose values time or chance makes, and in which keys may be.
fn made_by(text: &str, dialect: Dialect) -> (Vec<usize>, Keys) {
    let has = |words: &[&str]| {
        let is_there = |word: &&str| {
            text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        words.iter().any(is_there)
    };
    // Most statements have no call, and no word that is one.
    let bare = ["returning", "current", "local", "user", "utc", "xmin", "xmax", "ctid", "now'"];
    if !text.contains(['(', '@']) && !has(&bare) {
        return (Vec::new(), Keys::None);
    }
    let statement = Statement::read(text, dialect);
    let varies = statement.varies() == Some(Varies::Values);
    let volatile = if varies { statement.volatile_columns() } else { None };
    let keys = if statement.begins(&["insert", "merge", "replace", "with"]) {
        let is_told = statement.tokens().iter().any(|token| token.is("returning"));
        if is_told { Keys::All } else { Keys::None }
    } else if volatile.is_some() {
        Keys::Volatile
    } else if varies && has(&["nextval", "currval", "lastval", "insert_id", "uuid"]) {
        Keys::All
    } else {
        Keys::None
    };
    (volatile.unwrap_or_default(), keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::mysql::message::kind;
    use std::time::{Duration, Instant};

    /// A row of PostgreSQL.
    fn row(values: &[&str]) -> Vec<u8> {
        let mut row = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            row.extend((value.len() as u32).to_be_bytes());
            row.extend(value.bytes());
        }
        row
    }

    fn digest(text: &str, columns: &[&str], rows: &[&[&str]]) -> Digest {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let (began, wall) = (Instant::now(), 1_795_903_064_000_000);
        let watch = Watch { began: (began, wall), recorded: None, keeps_rows: true, as_text: false };
        let (text, began) = (text.to_owned(), Some(began + Duration::from_secs(1)));
        let request = Exchange { text, began, ..Exchange::default() };
        let mut digest =
            Digest::for_answer(&request, Dialect::POSTGRES, Layout::Postgres, &columns, Some(watch));
        for values in rows {
            digest.push(&row(values));
            digest.end_row();
        }
        digest
    }

    #[test]
    fn rows_that_are_equal_in_their_order_s_keys_may_come_in_any() {
        let of = |text: &str, rows: &[&[&str]]| digest(text, &["a", "b"], rows).value();
        let (one, other) =
            ([&["1", "x"][..], &["1", "y"], &["2", "z"]], [&["1", "y"][..], &["1", "x"], &["2", "z"]]);
        let wrong = [&["1", "x"][..], &["2", "z"], &["1", "y"]];
        for text in [
            "SELECT a, b FROM t ORDER BY a",
            "SELECT a, b FROM t ORDER BY t.a DESC",
            "SELECT a, b FROM t ORDER BY 1",
        ] {
            assert_eq!(of(text, &one), of(text, &other), "{text}");
            assert_ne!(of(text, &one), of(text, &wrong), "{text}");
        }
        for text in [
            "SELECT a, b FROM t ORDER BY c",
            "SELECT a, b FROM t ORDER BY a, b",
            "SELECT a, b FROM t ORDER BY abs(a)",
        ] {
            assert_ne!(of(text, &one), of(text, &other), "{text}");
            assert_eq!(of(text, &one) >> 32, of(text, &other) >> 32, "{text}");
        }
        assert_eq!(of("SELECT a, b FROM t", &one), of("SELECT a, b FROM t", &wrong));
    }

    #[test]
    fn moments_have_no_part_in_a_checksum_and_are_given() {
        let of = |at: &str, name: &str| digest("SELECT at, name FROM t", &[], &[&[at, name]]);
        let (one, other) = (of("2026-11-28 21:57:44.12+00", "x"), of("2026-11-28 21:57:45+00", "x"));
        assert_eq!(
            (one.value(), &one.made[..]),
            (other.value(), &[b"2026-11-28 21:57:44.12+00".to_vec()][..])
        );
        assert_ne!(one.value(), of("2026-11-28 21:57:44.12+00", "y").value());
        assert_ne!(one.value(), of("2025-11-28 21:50:00.12+00", "x").value());
    }

    #[test]
    fn columns_beside_a_volatile_one_have_their_part_in_a_checksum() {
        let of = |at: &str, value: &str| {
            let text = "SELECT now(), v AS random FROM t WHERE id = 2";
            digest(text, &[], &[&[at, value]]).value()
        };
        let one = of("2020-01-01 00:00:00+00", "5");
        assert_eq!(one, of("2021-01-01 00:00:07+00", "5"));
        assert_ne!(one, of("2020-01-01 00:00:00+00", "6"));
        assert_ne!(one >> 32, of("2021-01-01 00:00:00+00", "7") >> 32);
        // Only what the function gave is a key that the server made.
        let made = |text: &str| digest(text, &[], &[&["8", "7"]]).made;
        assert_eq!(made("SELECT v, nextval('s') FROM t"), [b"7".to_vec()]);
        assert!(made("SELECT now(), v FROM t").contains(&b"8".to_vec()));
    }

    #[test]
    fn made_keys_are_given_and_rows_with_recorded_ones_have_the_recorded_checksum() {
        let text = "INSERT INTO t (name) VALUES ('x') RETURNING id, name";
        let (recorded, own) = (digest(text, &[], &[&["7", "x"]]), digest(text, &[], &[&["8", "x"]]));
        assert_eq!((&recorded.made, &own.made), (&vec![b"7".to_vec()], &vec![b"8".to_vec()]));
        assert_ne!(recorded.value(), own.value());
        assert_eq!(recorded.value() & 0xffff, own.value() & 0xffff);
        let rows = own.rows;
        let put = |column, value: &[u8]| (column == 0 && value == b"8").then_some(Cow::Borrowed(&b"7"[..]));
        assert_eq!(rows.digest_with(put), recorded.value());
        assert_ne!(rows.digest_with(|_, _| None), recorded.value());
        assert!(digest("SELECT id FROM t", &[], &[&["7"]]).made.is_empty());
    }

    #[test]
    fn rows_of_mysql_are_divided_by_their_types() {
        let mut found = Vec::new();
        let forms =
            [kind::LONG, kind::DATETIME, 0xfd, kind::LONGLONG].map(|kind| Form { kind, ..Form::default() });
        let layout = Layout::MysqlBinary(forms.to_vec());
        // The second column is NULL.
        let row = [&[0, 0b1000, 7, 0, 0, 0, 2][..], b"ab", &9_u64.to_le_bytes()].concat();
        layout.values(&row, |column, _, at| found.push((column, row[at].to_vec()))).unwrap();
        assert_eq!(found, [(0, vec![7, 0, 0, 0]), (2, b"ab".to_vec()), (3, 9_u64.to_le_bytes().to_vec())]);
        let mut found = Vec::new();
        let row = b"\x017\xfb\x02ab";
        Layout::MysqlText.values(row, |column, _, at| found.push((column, row[at].to_vec()))).unwrap();
        assert_eq!(found, [(0, b"7".to_vec()), (2, b"ab".to_vec())]);
        // The byte that stands for NULL is one of a value too.
        let two = |keys: [&[u8]; 2]| {
            let bytes = [&b"\x01x\x02"[..], keys[0], b"\x01x\x02", keys[1]].concat();
            Rows { layout: Layout::MysqlText, bytes, ends: vec![5, 10], ..Rows::default() }
        };
        assert!(two([b"\xfba", b"\xfba"]).have_ties(1) && !two([b"\xfba", b"\xfbb"]).have_ties(1));
    }
}
