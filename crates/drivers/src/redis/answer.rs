//! Conversion of answers into replies.

use super::plan::{Column, Plan, Verb};
use super::protocol::{Client, Head, unexpected};
use crate::prelude::*;
use crate::wire::Peer;
use kurabe_protocol::resp::number;
use std::ops::Range;

/// The rows of a hash, to be sorted. Redis returns them in any order, so the client sorts them, as an application
/// would.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// The name as a number, if the names are numbers.
    number: i64,
    name: Range<usize>,
    value: Range<usize>,
}

/// Reads the answer to a request into the empty reply.
#[inline]
pub(super) fn read<S: Peer>(
    plan: &Plan,
    client: &mut Client<S>,
    gathered: &mut Gathered,
    out: &mut Reply,
) -> Result<()> {
    let affected = match (plan.verb, client.answer()?) {
        (_, Head::Refused(error)) => return Err(*error),
        (Verb::Ping, Head::Simple) | (Verb::Read, Head::Null) => return Ok(()),
        (Verb::Read, Head::Bulk(bytes)) => {
            let read = plan.form.read(&mut client.wire, bytes, &plan.wanted, out);
            if let Err(error) = read {
                if error.kind() == ErrorKind::Mismatch {
                    client.end_value()?;
                }
                return Err(error.context(&plan.collection));
            }
            client.end_value()?;
            out.end_row();
            return Ok(());
        }
        (Verb::Group, Head::Items(items)) => return gathered.read(plan, client, items / 2, out),
        (Verb::Put, Head::Int(_)) if !plan.scripted => 1,
        (Verb::Add, Head::Null | Head::Int(0 | -1)) => return Err(key_exists(plan)),
        (Verb::Change, Head::Null | Head::Int(-1)) => 0,
        // The number of rows that the script stored.
        (Verb::Add | Verb::Put | Verb::Change, Head::Int(rows)) if plan.scripted => rows as u64,
        (Verb::Add | Verb::Put | Verb::Change, Head::Simple) | (Verb::Add, Head::Int(1)) => plan.rows as u64,
        (Verb::Remove, Head::Int(rows)) => rows as u64,
        (_, other) => return Err(unexpected(&other)),
    };
    out.set_affected(affected);
    Ok(())
}

#[cold]
fn key_exists(plan: &Plan) -> Error {
    let what = if plan.rows > 1 { "one of the rows has" } else { "the row has" };
    Error::new(ErrorKind::Server, format!("{}: {what} a key that already exists", plan.collection)).code("NX")
}

impl Gathered {
    fn read<S: Peer>(
        &mut self,
        plan: &Plan,
        client: &mut Client<S>,
        pairs: usize,
        out: &mut Reply,
    ) -> Result<()> {
        self.bytes.clear();
        self.rows.clear();
        for _ in 0..pairs {
            let start = self.bytes.len();
            client.bulk_into(&mut self.bytes)?;
            let middle = self.bytes.len();
            client.bulk_into(&mut self.bytes)?;
            self.rows.push(Row { number: 0, name: start..middle, value: middle..self.bytes.len() });
            client.wire.check_held(self.bytes.len() + self.rows.len() * size_of::<Row>())?;
        }
        self.sort(plan)?;
        for row in &self.rows {
            for column in &plan.columns {
                match column {
                    Column::Name => match plan.name_kind {
                        Some(FieldType::Int) => out.push_int(row.number),
                        Some(FieldType::Timestamp) => out.push_time(row.number),
                        _ => out.push_bytes(&self.bytes[row.name.clone()]),
                    },
                    Column::Rest(field) => {
                        let mut value = &self.bytes[row.value.clone()];
                        let length = value.len();
                        plan.form
                            .read(&mut value, length, &[*field], out)
                            .map_err(|error| error.context(&plan.collection))?;
                    }
                }
            }
            out.end_row();
        }
        Ok(())
    }

    /// Sorts the rows by name: numbers by value, everything else by bytes.
    fn sort(&mut self, plan: &Plan) -> Result<()> {
        let Self { bytes, rows } = self;
        if matches!(plan.name_kind, Some(FieldType::Int | FieldType::Timestamp)) {
            for row in rows.iter_mut() {
                row.number = number(&bytes[row.name.clone()]).ok_or_else(|| {
                    let what =
                        "a hash contains a name that is not a number, unlike the names of this collection";
                    Error::mismatch(what).context(&plan.collection)
                })?;
            }
            rows.sort_unstable_by_key(|row| row.number);
        } else {
            rows.sort_unstable_by(|a, b| bytes[a.name.clone()].cmp(&bytes[b.name.clone()]));
        }
        Ok(())
    }
}
