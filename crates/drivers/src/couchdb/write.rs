//! Writing documents. A change of a document must name the revision that it replaces (`_rev`); CouchDB answers 409 if
//! another client changed the document first.
//!
//! The driver does what an application must do. `Insert` names no revision, and 409 means that the key exists. `Put`,
//! `Update` and `Delete` read the document and write with its revision. At 409 they try again, after a short wait and a
//! bounded number of times. This takes at least two requests, all within the operation's time. The whole document is
//! read, because `Update` keeps the fields that it does not change; `HEAD` would return the revision alone, but not on
//! PouchDB Server.

use super::document::{Object, Writer, parse, push_text, push_value};
use super::session::Work;
use super::table::Table;
use crate::prelude::*;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of attempts of a change that conflicts.
const ATTEMPTS: u32 = 100;

/// The outcome of a change.
enum Written {
    Done,
    /// The revision is not the current one.
    Conflict,
    /// There is no document.
    Absent,
}

impl Work<'_> {
    /// Reads the document at a path; `false` if it does not exist.
    pub(super) fn read(&mut self, path: &str) -> Result<bool> {
        let status = self.client.get(path)?;
        match status {
            200 => Ok(true),
            _ if self.client.is_no_document(status) => Ok(false),
            _ => Err(self.client.refused(status)),
        }
    }

    pub(super) fn insert(&mut self, row: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let path = self.table.with_id(&self.table.id_of(row)?);
        self.write_row(row, None)?;
        if let Written::Conflict = self.store(&path)? {
            return Err(self.client.refused(409));
        }
        out.set_affected(1);
        Ok(())
    }

    /// Inserts several documents by `_bulk_docs`, whose answer has a result for each.
    pub(super) fn insert_each(
        &mut self,
        rows: usize,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let table = self.table;
        let json = &mut *self.json;
        json.clear();
        json.extend_from_slice(b"{\"docs\":[");
        for (n, row) in parameters.chunks(table.collection.fields.len()).enumerate() {
            if n > 0 {
                json.push(b',');
            }
            let id = table.id_of(row)?;
            let mut writer = Writer::new(json, None);
            push_text(writer.name("_id"), &id);
            push_row(writer, table, row)?;
        }
        json.extend_from_slice(b"]}");
        let status = self.client.post(&format!("{}/_bulk_docs", table.path), json)?;
        if status != 201 {
            return Err(self.not_stored(status));
        }
        let each: Vec<Object<'_>> = parse(self.client.answer())?;
        let refused =
            each.iter().find_map(|said| Some((said.text("error")?, said.text("reason").unwrap_or_default())));
        if let Some((error, reason)) = refused {
            let message =
                format!("{}: of {rows} documents at least one was refused: {reason}", table.collection.name);
            return Err(Error::new(ErrorKind::Server, message).code(error));
        }
        out.set_affected(each.len() as u64);
        Ok(())
    }

    pub(super) fn put(&mut self, row: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let path = self.table.with_id(&self.table.id_of(row)?);
        self.repeat(out, |work| {
            let revision = if work.read(&path)? { Some(revision(work.client.answer())?) } else { None };
            work.write_row(row, revision.as_deref())?;
            work.store(&path)
        })
    }

    pub(super) fn update(
        &mut self,
        fields: &[usize],
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let (changed, key) = parameters.split_at(fields.len());
        let path = self.table.with_key(key)?;
        self.repeat(out, |work| {
            if !work.read(&path)? {
                return Ok(Written::Absent);
            }
            let document: Object<'_> = parse(work.client.answer())?;
            work.json.clear();
            let mut writer = Writer::new(work.json, document.text("_rev"));
            for &position in &work.table.rest {
                let field = &work.table.collection.fields[position];
                let value = writer.name(field.name);
                match (fields.iter().position(|of| *of == position), document.get(field.name)) {
                    (Some(place), _) => push_value(value, field.kind, &changed[place])?,
                    (None, Some(kept)) => kept.push(value),
                    (None, None) => value.extend_from_slice(b"null"),
                }
            }
            writer.end();
            work.store(&path)
        })
    }

    pub(super) fn delete(&mut self, key: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let path = self.table.with_key(key)?;
        self.repeat(out, |work| {
            if !work.read(&path)? {
                return Ok(Written::Absent);
            }
            let mut revised = format!("{path}?rev=");
            super::config::escape(&mut revised, &revision(work.client.answer())?);
            let status = work.client.delete(&revised)?;
            match status {
                200 => Ok(Written::Done),
                409 => Ok(Written::Conflict),
                // Another client removed it meanwhile.
                _ if work.client.is_no_document(status) => Ok(Written::Absent),
                _ => Err(work.not_stored(status)),
            }
        })
    }

    /// Makes a change, and makes it again while changes of other clients conflict with it.
    fn repeat(
        &mut self,
        out: &mut Reply,
        mut change: impl FnMut(&mut Self) -> Result<Written>,
    ) -> Result<()> {
        for attempt in 0..ATTEMPTS {
            give_way(attempt);
            match change(self)? {
                Written::Conflict => {}
                Written::Absent => return Ok(()),
                Written::Done => {
                    out.set_affected(1);
                    return Ok(());
                }
            }
        }
        let message =
            format!("{}: an update conflicted {ATTEMPTS} times in a row", self.table.collection.name);
        Err(Error::new(ErrorKind::Server, message).code("conflict"))
    }

    fn write_row(&mut self, row: &[Value<'_>], revision: Option<&str>) -> Result<()> {
        self.json.clear();
        push_row(Writer::new(self.json, revision), self.table, row)
    }

    fn store(&mut self, path: &str) -> Result<Written> {
        let status = self.client.put(path, Some(self.json.as_slice()))?;
        match status {
            201 => Ok(Written::Done),
            409 => Ok(Written::Conflict),
            _ => Err(self.not_stored(status)),
        }
    }

    /// The error of a failed write. 202 means that fewer copies were written than the quorum requires, so the
    /// durability class does not hold.
    fn not_stored(&self, status: u16) -> Error {
        if status == 202 {
            let message = "the cluster accepted a write without a quorum";
            return Error::new(ErrorKind::Server, message).code(status).hint("are all of its nodes up?");
        }
        self.client.refused(status)
    }
}

/// From the second conflict on, waits a random time. Without jitter, two clients that change one document at the same
/// pace would stay in step, and one of them would always lose.
fn give_way(attempt: u32) {
    if attempt > 1 {
        let most = 1_000_u32 << attempt.min(5);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
        kurabe_reactor::sleep(Duration::from_micros(u64::from(now / 7 % most)));
    }
}

/// Writes the fields that are not in the key, and ends the document.
fn push_row(mut writer: Writer<'_>, table: &Table, row: &[Value<'_>]) -> Result<()> {
    for &position in &table.rest {
        let field = &table.collection.fields[position];
        push_value(writer.name(field.name), field.kind, &row[position])?;
    }
    writer.end();
    Ok(())
}

/// The revision of the document in an answer.
fn revision(answer: &[u8]) -> Result<String> {
    let document: Object<'_> = parse(answer)?;
    let revision = document.text("_rev").map(ToOwned::to_owned);
    revision.ok_or_else(|| Error::mismatch("a document has no revision"))
}
