//! Conversion of parameters into a request. Keys are written first, because they may be refused.
//!
//! A key is `collection~kurabe:field`. If it has several fields, `:` and `%` in all but the last are written as `%` and two
//! hexadecimal digits, so that different fields never produce the same key. Redis keys may contain any bytes.

use super::plan::{Plan, Verb};
use super::protocol::{push_count, push_length, push_word};
use super::script;
use super::value::Form;
use crate::key;
use crate::prelude::*;
use crate::ttl;
use crate::wire::{Outbox, Peer};
use std::ops::Range;

/// The keys of a request's rows, and their names within hashes.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    rows: Vec<Spot>,
    order: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Spot {
    key: Range<usize>,
    name: Range<usize>,
}

impl Keys {
    /// Writes the keys of all rows.
    ///
    /// # Errors
    /// [`Server`](ErrorKind::Server) if a field of a key is `Null`, or two rows have the same key;
    /// [`Limit`](ErrorKind::Limit) for a value that is too long.
    #[inline]
    pub(super) fn fill(&mut self, plan: &Plan, parameters: &[Value<'_>]) -> Result<()> {
        self.bytes.clear();
        self.rows.clear();
        if plan.verb == Verb::Ping {
            return Ok(());
        }
        for row in 0..plan.rows {
            let row = &parameters[row * plan.width..(row + 1) * plan.width];
            Form::check(plan.rest.iter().map(|position| row[*position]))?;
            let start = self.bytes.len();
            self.bytes.extend_from_slice(plan.prefix.as_bytes());
            for (n, position) in plan.key.iter().enumerate() {
                if n > 0 {
                    self.bytes.push(b':');
                }
                let escaped = n + 1 < plan.key.len();
                key::push(&mut self.bytes, &plan.collection, row[*position], |byte| {
                    escaped && matches!(byte, b':' | b'%')
                })?;
            }
            let middle = self.bytes.len();
            if let Some(name) = plan.name {
                key::push(&mut self.bytes, &plan.collection, row[name], |_| false)?;
            }
            self.rows.push(Spot { key: start..middle, name: middle..self.bytes.len() });
        }
        if plan.rows > 1 && !self.are_distinct() {
            let message = format!("{}: two rows of one request have the same key", plan.collection);
            return Err(Error::new(ErrorKind::Server, message).code("TWICE"));
        }
        Ok(())
    }

    /// Whether all rows have different keys. Rows are usually in order already, shorter numbers first.
    fn are_distinct(&mut self) -> bool {
        let Self { bytes, rows, order } = self;
        let of = |row: &Spot| {
            let (key, name) = (&bytes[row.key.clone()], &bytes[row.name.clone()]);
            (key.len(), key, name.len(), name)
        };
        if rows.is_sorted_by(|a, b| of(a) < of(b)) {
            return true;
        }
        order.clear();
        order.extend(0..rows.len() as u32);
        order.sort_unstable_by(|a, b| of(&rows[*a as usize]).cmp(&of(&rows[*b as usize])));
        order.is_sorted_by(|a, b| of(&rows[*a as usize]) < of(&rows[*b as usize]))
    }

    /// Appends the request; `known` is whether the server has cached the script.
    #[inline]
    pub(super) fn write<'v, S: Peer>(
        &self,
        plan: &Plan,
        parameters: &[Value<'v>],
        known: bool,
        out: &mut Outbox<'_, 'v, S>,
    ) -> Result<()> {
        if plan.scripted {
            return self.write_scripted(plan, parameters, known, out);
        }
        out.text.extend_from_slice(&plan.head);
        for (n, spot) in self.rows.iter().enumerate() {
            push_word(out.text, &self.bytes[spot.key.clone()]);
            self.write_row(plan, spot, &parameters[n * plan.width..(n + 1) * plan.width], out)?;
        }
        out.text.extend_from_slice(&plan.tail);
        Ok(())
    }

    /// Appends a row's name in a hash, and its value.
    #[inline]
    fn write_row<'v, S: Peer>(
        &self,
        plan: &Plan,
        spot: &Spot,
        row: &[Value<'v>],
        out: &mut Outbox<'_, 'v, S>,
    ) -> Result<()> {
        if plan.name.is_some() {
            push_word(out.text, &self.bytes[spot.name.clone()]);
        }
        if matches!(plan.verb, Verb::Add | Verb::Put | Verb::Change) {
            let fields = plan.rest.iter().map(|position| row[*position]);
            push_length(out.text, plan.form.length(fields.clone()));
            plan.form.write(out, fields)?;
            out.text.extend_from_slice(b"\r\n");
        }
        if let Some(Value::Time(micros)) = plan.expires.map(|at| row[at]) {
            push_word(out.text, b"PX");
            push_word(out.text, ttl::remaining_ms(micros).to_string().as_bytes());
        }
        Ok(())
    }

    fn write_scripted<'v, S: Peer>(
        &self,
        plan: &Plan,
        parameters: &[Value<'v>],
        known: bool,
        out: &mut Outbox<'_, 'v, S>,
    ) -> Result<()> {
        let key = |spot: &Spot| &self.bytes[spot.key.clone()];
        let hashes = || self.rows.chunk_by(|a, b| key(a) == key(b));
        let count = hashes().count();
        push_count(out.text, 5 + 2 * count + 2 * self.rows.len());
        if known {
            push_word(out.text, b"EVALSHA");
            push_word(out.text, script::DIGEST);
        } else {
            push_word(out.text, b"EVAL");
            push_word(out.text, script::SOURCE.as_bytes());
        }
        push_word(out.text, count.to_string().as_bytes());
        for rows in hashes() {
            push_word(out.text, key(&rows[0]));
        }
        out.text.extend_from_slice(&plan.tail);
        let mut n = 0;
        for rows in hashes() {
            push_word(out.text, rows.len().to_string().as_bytes());
            for spot in rows {
                self.write_row(plan, spot, &parameters[n * plan.width..(n + 1) * plan.width], out)?;
                n += 1;
            }
        }
        Ok(())
    }
}
