//! Writing documents. CouchDB takes a change of a document only from whoever names the revision that it replaces
//! (`_rev`), and answers 409 where another came first.
//!
//! So what an application must do is done here: `Insert` names no revision, and 409 says that the key exists. `Put`,
//! `Update` and `Delete` read the document, write with its revision, and begin again at 409, after a short wait and a bounded
//! number of times:
//! two requests at least, all within the operation's time. The document is read as a whole, as `Update` needs it to keep
//! the fields that it does not change; `HEAD` would name the revision alone, but not on PouchDB Server.

use super::document::{Object, Writer, parse, push_text, push_value};
use super::id;
use super::session::{Buffers, Work};
use super::table::Table;
use crate::prelude::*;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a change is tried while others come first.
const ATTEMPTS: u32 = 100;

/// How a request to write ended.
enum Written {
    Done,
    /// The revision is not the present one.
    Conflict,
}

impl Work<'_> {
    /// Makes the path of the document with this key.
    pub(super) fn address<'v>(&mut self, key: impl Iterator<Item = &'v Value<'v>>) -> Result<()> {
        self.table.document_path(key, self.buffers)
    }

    /// Reads the document at the path; false where there is none.
    pub(super) fn read(&mut self) -> Result<bool> {
        let status = self.client.get(&self.buffers.path)?;
        match status {
            200 => Ok(true),
            _ if self.client.is_no_document(status) => Ok(false),
            _ => Err(self.client.refused(status)),
        }
    }

    pub(super) fn insert(&mut self, row: &[Value<'_>], out: &mut Reply) -> Result<()> {
        self.address_row(row)?;
        self.write_row(row, None)?;
        match self.store()? {
            Written::Done => {
                out.set_affected(1);
                Ok(())
            }
            Written::Conflict => Err(self.client.refused(409)),
        }
    }

    /// Several documents by `_bulk_docs`, whose answer says of each what became of it.
    pub(super) fn insert_each(
        &mut self,
        rows: usize,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let table = self.table;
        let Buffers { id, path, json } = &mut *self.buffers;
        json.clear();
        json.extend_from_slice(b"{\"docs\":[");
        for (n, row) in parameters.chunks(table.collection.fields.len()).enumerate() {
            if n > 0 {
                json.push(b',');
            }
            id.clear();
            for field in &table.collection.key {
                id::push(id, &table.collection.name, &row[*field])?;
            }
            let mut writer = Writer::new(json, None);
            push_text(writer.name("_id"), id);
            push_row(writer, table, row)?;
        }
        json.extend_from_slice(b"]}");
        path.clear();
        path.push_str(&table.path);
        path.push_str("/_bulk_docs");
        let status = self.client.post(path, json)?;
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
        self.address_row(row)?;
        for attempt in 0..ATTEMPTS {
            give_way(attempt);
            let revision = if self.read()? { Some(revision(self.client.answer())?) } else { None };
            self.write_row(row, revision.as_deref())?;
            if let Written::Done = self.store()? {
                out.set_affected(1);
                return Ok(());
            }
        }
        Err(self.too_many())
    }

    pub(super) fn update(
        &mut self,
        fields: &[usize],
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let (changed, key) = parameters.split_at(fields.len());
        self.address(key.iter())?;
        for attempt in 0..ATTEMPTS {
            give_way(attempt);
            if !self.read()? {
                return Ok(());
            }
            let document: Object<'_> = parse(self.client.answer())?;
            self.buffers.json.clear();
            let mut writer = Writer::new(&mut self.buffers.json, document.text("_rev"));
            for &position in &self.table.rest {
                let field = &self.table.collection.fields[position];
                let value = writer.name(field.name);
                match (fields.iter().position(|of| *of == position), document.get(field.name)) {
                    (Some(place), _) => push_value(value, field.kind, &changed[place])?,
                    (None, Some(kept)) => kept.push(value),
                    (None, None) => value.extend_from_slice(b"null"),
                }
            }
            writer.end();
            if let Written::Done = self.store()? {
                out.set_affected(1);
                return Ok(());
            }
        }
        Err(self.too_many())
    }

    pub(super) fn delete(&mut self, key: &[Value<'_>], out: &mut Reply) -> Result<()> {
        self.address(key.iter())?;
        let length = self.buffers.path.len();
        for attempt in 0..ATTEMPTS {
            give_way(attempt);
            self.buffers.path.truncate(length);
            if !self.read()? {
                return Ok(());
            }
            let revision = revision(self.client.answer())?;
            self.buffers.path.push_str("?rev=");
            super::config::escape(&mut self.buffers.path, &revision);
            let status = self.client.delete(&self.buffers.path)?;
            match status {
                200 => {
                    out.set_affected(1);
                    return Ok(());
                }
                409 => {}
                // Another has removed it meanwhile.
                _ if self.client.is_no_document(status) => return Ok(()),
                _ => return Err(self.not_stored(status)),
            }
        }
        Err(self.too_many())
    }

    fn address_row(&mut self, row: &[Value<'_>]) -> Result<()> {
        let table = self.table;
        self.address(table.collection.key.iter().map(|field| &row[*field]))
    }

    fn write_row(&mut self, row: &[Value<'_>], revision: Option<&str>) -> Result<()> {
        self.buffers.json.clear();
        push_row(Writer::new(&mut self.buffers.json, revision), self.table, row)
    }

    fn store(&mut self) -> Result<Written> {
        let status = self.client.put(&self.buffers.path, Some(&self.buffers.json))?;
        match status {
            201 => Ok(Written::Done),
            409 => Ok(Written::Conflict),
            _ => Err(self.not_stored(status)),
        }
    }

    /// 202 means that fewer copies were written than the cluster's quorum asks for: less than what its durability
    /// class says.
    fn not_stored(&self, status: u16) -> Error {
        if status == 202 {
            let message = "the cluster took a write without the quorum of its copies";
            return Error::new(ErrorKind::Server, message).code(status).hint("are all of its nodes up?");
        }
        self.client.refused(status)
    }

    fn too_many(&self) -> Error {
        let name = &self.table.collection.name;
        let message = format!("{name}: others changed the document first {ATTEMPTS} times in a row");
        Error::new(ErrorKind::Server, message).code("conflict")
    }
}

/// From the second conflict on, waits a while that no other waits as well: two that change one document in step would
/// go on in step, and one of them never win.
fn give_way(attempt: u32) {
    if attempt > 1 {
        let most = 1_000_u32 << attempt.min(5);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
        std::thread::sleep(Duration::from_micros(u64::from(now / 7 % most)));
    }
}

/// Writes the fields that are not in the key, and the document's end.
fn push_row(mut writer: Writer<'_>, table: &Table, row: &[Value<'_>]) -> Result<()> {
    for &position in &table.rest {
        let field = &table.collection.fields[position];
        push_value(writer.name(field.name), field.kind, &row[position])?;
    }
    writer.end();
    Ok(())
}

/// The revision of a document that was just read.
fn revision(answer: &[u8]) -> Result<String> {
    let document: Object<'_> = parse(answer)?;
    let revision = document.text("_rev").map(ToOwned::to_owned);
    revision.ok_or_else(|| Error::mismatch("a document came without its revision"))
}
