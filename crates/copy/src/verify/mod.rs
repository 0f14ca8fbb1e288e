//! Verification of a copied table, which shares no reader, no expression and no form of values with the copying.
//!
//! Both servers count their rows. Both sides are read whole, by one query each without a key or an order, as the texts that
//! `Dialect::check` has the server write, which [`form`] parses. Each row adds its digest of 128 bits to one of `CHUNKS`
//! sums, that of its key. Equal sums are equal rows, in whatever order they came. Where sums differ, the rows of the first
//! such chunk are read again, to name a row that differs. Where both servers can compute the same digests, `servers` asks them first,
//! and no row is read of a table whose digests are equal.

pub(crate) mod document;
pub mod form;
pub mod servers;

use crate::engines::engine::Engine;
use crate::engines::facts::Documents;
use crate::issue::{Becomes, IssueKind};
use crate::page::Cell;
use crate::plan::TablePlan;
use crate::pool::Halt;
use crate::scan::condition_of;
use crate::script::{literal, quoted};
use crate::sql::{ROWS, Side, text_of};
use crate::state::OfTable;
use form::{Bare, Field, Shape, bare};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result, units};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of sums of a table.
const CHUNKS: usize = 1024;

/// Bytes of rows that are kept to name one that differs.
const KEPT: usize = 64 << 20;

/// Which side of a copy is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The source, with values as the target holds them.
    Source,
    Target,
}

/// How a side of a table is read for verification.
pub struct Checks<'t> {
    table: &'t TablePlan,
    of: Of,
    /// The expressions of the columns.
    pub list: Vec<String>,
    /// The position of the first of them in rows that are read.
    pub first: usize,
    fields: Vec<Field<'t>>,
    /// The columns that name a row: all of them where there is no key.
    key: Vec<usize>,
}

/// The forms of a row's values, one after another, and where each ends.
#[derive(Default)]
pub struct Forms {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Forms {
    fn of(&self, at: usize) -> &[u8] {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from..self.ends[at]]
    }
}

impl<'t> Checks<'t> {
    /// How this side is read.
    pub fn new(engine: &Engine, table: &'t TablePlan, of: Of) -> Result<Self> {
        let all = || (0..table.columns.len()).collect();
        let key = if table.key.is_empty() { all() } else { table.key.clone() };
        let mut checks = Self { table, of, list: Vec::new(), first: 0, fields: Vec::new(), key };
        for column in &table.columns {
            let name = quoted(engine, &column.name);
            let kind = if of == Of::Source { &column.kind } else { &column.mapped.stored };
            let (shape, mut sql) = engine.dialect.check(kind, column.exact, &name);
            // A decimal number in a document of MySQL is a floating-point one where the document is read again.
            let is_kept = engine.dialect.documents(&column.kind, "") != Documents::Rounded;
            let (exact, rounds) = (column.exact && is_kept, column.rounds);
            let mut field = Field { shape, class: column.kind.class, exact, rounds, no_nul: None };
            // The server says which values are meant, as in the plan.
            for (unfit, becomes) in column.mend.iter().filter(|_| of == Of::Source) {
                let other = if let Becomes::Text(text) = becomes { Some(text.as_str()) } else { None };
                match unfit {
                    IssueKind::NulCharacter => field.no_nul = Some(other.unwrap_or_default()),
                    unfit => {
                        let Some(condition) = condition_of(engine, kind, *unfit, &name) else { continue };
                        let text = other.map_or(Ok("NULL".to_owned()), |text| literal(engine, text))?;
                        let is_tagged = shape == Shape::Tagged && other.is_some();
                        let text = if is_tagged { format!("'t' || hex({text})") } else { text };
                        sql = format!("CASE WHEN {condition} THEN {text} ELSE {sql} END");
                    }
                }
            }
            checks.list.push(sql);
            checks.fields.push(field);
        }
        Ok(checks)
    }

    /// The chunk of a row of a reply, and its digest in two halves.
    pub fn digests(&self, reply: &Reply, row: usize, forms: &mut Forms) -> Result<(usize, [u64; 2])> {
        self.forms(&|at| reply.field(row, self.first + at).unwrap_or(Value::Null), forms)?;
        let digests = [0, 1].map(|salt| digest(salt, [&forms.bytes[..]]));
        let chunk = digest(2, self.key.iter().map(|at| forms.of(*at)));
        Ok((chunk as usize % CHUNKS, digests))
    }

    fn forms<'v>(&self, value: &dyn Fn(usize) -> Value<'v>, forms: &mut Forms) -> Result<()> {
        forms.bytes.clear();
        forms.ends.clear();
        for (at, field) in self.fields.iter().enumerate() {
            form::push(field, text_of(value(at)).as_deref(), &mut forms.bytes).map_err(|error| {
                let column = &self.table.columns[at].name;
                error.context(format!("{:?}, {}.{column}", self.of, self.table.name))
            })?;
            forms.ends.push(forms.bytes.len());
        }
        Ok(())
    }

    /// Reads all rows of this side in whatever order they come.
    fn read(
        &self,
        side: &mut Side,
        halt: &Halt<'_>,
        each: &mut dyn FnMut(&Reply, usize) -> Result<()>,
    ) -> Result<()> {
        let table = self.table;
        let (from, filter) = match self.of {
            Of::Source => (table.from.clone(), table.filtered()),
            Of::Target => (quoted(side.engine, &table.to), String::new()),
        };
        let sql = format!("SELECT {} FROM {from} {ROWS}{filter}", self.list.join(", "));
        side.pages(&sql, &[], table.page, &mut |reply| {
            halt.check()?;
            (0..reply.rows()).try_for_each(|row| each(reply, row))
        })
    }

    /// The sums of all rows.
    fn sums(
        &self,
        side: &mut Side,
        halt: &Halt<'_>,
        failed: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Sums> {
        let mut all = Sums { rows: 0, sums: vec![[0; 2]; CHUNKS] };
        let mut forms = Forms::default();
        let done = self.read(side, halt, &mut |reply, row| {
            if failed.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Interrupted, "the other side cannot be read"));
            }
            let (chunk, digests) = self.digests(reply, row, &mut forms)?;
            for (sum, digest) in all.sums[chunk].iter_mut().zip(digests) {
                *sum = sum.wrapping_add(digest);
            }
            all.rows += 1;
            if all.rows.is_multiple_of(1_000) {
                progress(all.rows);
            }
            Ok(())
        });
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done.map(|()| all)
    }

    /// The rows of a chunk, by their keys.
    fn kept(&self, side: &mut Side, halt: &Halt<'_>, chunk: usize) -> Result<Kept> {
        let (mut kept, mut forms) = (Kept::default(), Forms::default());
        self.read(side, halt, &mut |reply, row| {
            if self.digests(reply, row, &mut forms)?.0 == chunk && kept.bytes < KEPT {
                let texts =
                    (0..self.list.len()).map(|at| text_of(reply.field(row, at)?).map(Cow::into_owned));
                let key = self.key.iter().flat_map(|at| forms.of(*at)).copied().collect();
                kept.rows.push((key, texts.collect()));
                kept.bytes += forms.bytes.len();
            }
            Ok(())
        })?;
        Ok(kept)
    }

    /// A value for messages.
    pub fn shown(&self, row: &Row, at: usize) -> String {
        let shape = self.fields[at].shape;
        let Some(text) = row.get(at).and_then(Option::as_deref) else { return "null".to_owned() };
        // Servers write text and bytes in digits.
        let is_quoted = shape == Shape::Hex || shape == Shape::Tagged && !text.starts_with(b"#");
        match bare(shape, text) {
            Some(Bare::Float(number)) => number.to_string(),
            Some(Bare::Bytes(bytes)) if is_quoted => Cell::Bytes(&bytes).shown(),
            Some(Bare::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            None => String::from_utf8_lossy(text).into_owned(),
        }
    }
}

/// Verifies a table of which so many rows were inserted or refused. `proven`: the key below which rows were compared while others
/// were written, and their number. `progress` gets the number of rows read so far. Returns their number, and whether the servers' own
/// digests showed that they are the same; or refuses rows that were lost or added, and the first one that differs.
pub fn verify(
    source: &mut Side,
    target: &mut Side,
    table: &TablePlan,
    now: &OfTable,
    proven: Option<(i64, u64)>,
    halt: &Halt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, bool)> {
    let (copied, rejected) = (now.rows, now.rejected);
    if rejected == 0
        && table.rows == copied
        && servers::compare(source, target, table, proven, halt, progress)? == Some(copied)
    {
        return Ok((copied, true));
    }
    let count = |side: &mut Side, from: &str| side.number(&format!("SELECT COUNT(*) FROM {from}"));
    let (from, to) = (format!("{}{}", table.from, table.filtered()), quoted(target.engine, &table.to));
    let counts = [
        ("the source's server counts", count(source, &from)?, rejected),
        ("the target's server counts", count(target, &to)?, 0),
        ("the plan counted", table.rows, rejected),
    ];
    let checks =
        [Checks::new(source.engine, table, Of::Source)?, Checks::new(target.engine, table, Of::Target)?];
    let [of_source, of_target] = &checks;
    let failed = AtomicBool::new(false);
    let [mut ours, theirs] = both(
        || of_source.sums(source, halt, &failed, &mut |_| {}),
        || of_target.sums(target, halt, &failed, progress),
    )?;
    for (chunk, digests) in &now.sums {
        let sums = ours.sums.get_mut(*chunk).into_iter().flatten();
        sums.zip(digests).for_each(|(sum, digest)| *sum = sum.wrapping_sub(*digest));
    }
    let read = [("the source has", ours.rows, rejected), ("the target has", theirs.rows, 0)];
    let other = counts.iter().chain(&read).find(|(_, rows, without)| *rows != copied + without);
    let chunk = (0..CHUNKS).find(|chunk| ours.sums[*chunk] != theirs.sums[*chunk]);
    let mut what = match (other, chunk) {
        (None, None) => return Ok((copied, false)),
        (None, Some(_)) => String::new(),
        (Some((who, rows, _)), _) => {
            format!("{} rows were copied, and {who} {}", units::count(copied), units::count(*rows))
        }
    };
    if let Some(chunk) = chunk {
        let ours = of_source.kept(source, halt, chunk)?;
        let theirs = of_target.kept(target, halt, chunk)?;
        let named = difference(table, [of_source, of_target], &ours, &theirs);
        if !what.is_empty() {
            what.push_str("; ");
        }
        what.push_str(
            &named.unwrap_or_else(|| format!("the rows of {} do not have the same digest", table.name)),
        );
    }
    Err(Error::new(ErrorKind::Mismatch, what)
        .hint("if the source has changed since the copy began, --no-resume copies it again"))
}

/// Reads both sides at the same time. The error of the side that failed first interrupts the other side.
pub fn both<T: Send>(
    source: impl FnOnce() -> Result<T> + Send,
    target: impl FnOnce() -> Result<T>,
) -> Result<[T; 2]> {
    std::thread::scope(|scope| {
        let ours = scope.spawn(source);
        let theirs = target();
        let ours = ours.join().map_err(|_| Error::new(ErrorKind::Internal, "the source's reader failed"))?;
        match (ours, theirs) {
            (Err(error), Err(other)) if error.kind() == ErrorKind::Interrupted => Err(other),
            (ours, theirs) => Ok([ours?, theirs?]),
        }
    })
}

/// The sums of the digests of rows, by chunk.
struct Sums {
    rows: u64,
    sums: Vec<[u64; 2]>,
}

/// A hash of bytes: `SipHash` of the standard library, with the same keys in each process.
fn digest<'b>(salt: u8, parts: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(salt);
    parts.into_iter().for_each(|bytes| hasher.write(bytes));
    hasher.finish()
}

/// The texts of a row's values.
pub type Row = Vec<Option<Vec<u8>>>;

/// The rows of a chunk that differs, with their keys.
#[derive(Default)]
struct Kept {
    rows: Vec<(Vec<u8>, Row)>,
    bytes: usize,
}

/// The first difference between the rows of a chunk. `None` if all that were kept are the same.
fn difference(table: &TablePlan, checks: [&Checks<'_>; 2], ours: &Kept, theirs: &Kept) -> Option<String> {
    let [source, target] = checks;
    let whole = ours.bytes < KEPT && theirs.bytes < KEPT;
    let found: HashMap<&[u8], &Row> = theirs.rows.iter().map(|(key, row)| (&key[..], row)).collect();
    let key_of = |checks: &Checks<'_>, row: &Row| {
        checks.key.iter().map(|at| checks.shown(row, *at)).collect::<Vec<_>>().join(", ")
    };
    let forms = |checks: &Checks<'_>, row: &Row| {
        let mut forms = Forms::default();
        let value = |at: usize| row[at].as_deref().map_or(Value::Null, Value::Bytes);
        // They were read before.
        checks.forms(&value, &mut forms).map(|()| forms).unwrap_or_default()
    };
    for (key, row) in &ours.rows {
        let name = key_of(source, row);
        let Some(other) = found.get(&key[..]) else {
            if whole {
                return Some(format!("row {name} of {} is not on the target", table.name));
            }
            continue;
        };
        let [a, b] = [forms(source, row), forms(target, other)];
        if let Some(at) = (0..row.len()).find(|at| a.of(*at) != b.of(*at)) {
            let [a, b] = [source.shown(row, at), target.shown(other, at)];
            let column = &table.columns[at].name;
            return Some(format!("row {name}, column {column}: {a} on the source, {b} on the target"));
        }
    }
    let known: HashSet<&[u8]> = ours.rows.iter().map(|(key, _)| &key[..]).collect();
    let extra = theirs.rows.iter().find(|(key, _)| !known.contains(&key[..])).filter(|_| whole)?;
    Some(format!("row {} of {} is on the target only", key_of(target, &extra.1), table.name))
}
