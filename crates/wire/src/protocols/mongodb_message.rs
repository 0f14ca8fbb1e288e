//! A message of MongoDB's protocol, made of a command's text and its values, as `mongodb_shape` has them.

use super::mongodb_shape::{CURSOR, DATABASE, DEPTH, ORDER, VALUE, is_plain};
use crate::view::Parameter;
use kurabe_protocol::Header as _;
use kurabe_protocol::mongodb::bson::{ARRAY, DOCUMENT, INT32, INT64, TEXT, is_kind};
use kurabe_protocol::mongodb::frame::{LONGEST, Message, OP_MSG};
use std::borrow::Cow;

/// A field that a text names.
#[derive(Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// 1 for a field of the command.
    pub depth: usize,
    pub name: Cow<'a, str>,
    /// The number of its value, if it is one `?`.
    pub value: Option<usize>,
}

/// The command of a text, its collection, and the fields that it names.
pub fn fields(text: &str) -> (&str, Option<Cow<'_, str>>, Vec<Field<'_>>) {
    let mut reader = Reader { text, at: 0 };
    let command = reader.plain();
    let collection = reader.collection();
    let (mut found, mut depth, mut values) = (Vec::new(), 0_usize, 0);
    while let Some(byte) = reader.peek() {
        if byte == b'"' {
            let Some(name) = reader.quoted() else { break };
            if reader.take(": ") {
                let value = (reader.peek() == Some(b'?')).then_some(values);
                found.push(Field { depth, name, value });
            }
            continue;
        }
        match byte {
            b'?' => values += 1,
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        reader.at += 1;
    }
    (command, collection, found)
}

/// The cursor that an answer opened, from a request's parameters.
pub fn cursor(parameters: &[Parameter]) -> Option<i64> {
    long(parameters.iter().find(|one| one.kind == CURSOR)?)
}

/// The database that a request named, from its parameters.
pub fn database(parameters: &[Parameter]) -> Option<&[u8]> {
    parameters.iter().find(|one| one.kind == DATABASE)?.bytes()
}

/// The cursors that a `getMore` or `killCursors` names.
pub fn cursors(text: &str, parameters: &[Parameter]) -> Vec<i64> {
    let all = match text.split(' ').next() {
        Some("getMore") => 1,
        Some("killCursors") => usize::MAX,
        _ => 0,
    };
    // No cursor has number 0, which stands for a value that is none.
    let number = |one: &Parameter| long(one).filter(|_| one.kind == u32::from(INT64)).unwrap_or(0);
    parameters.iter().filter(|one| one.kind < DATABASE).take(all).map(number).collect()
}

fn long(parameter: &Parameter) -> Option<i64> {
    parameter.bytes()?.try_into().ok().map(i64::from_le_bytes)
}

/// Makes a message of a text and its values: an `OP_MSG` with this number, for this database. `cursor` gives the number of a
/// cursor in place of the recorded one. `None` if the values do not fit the text, or the message would be too long.
pub fn message(
    text: &str,
    parameters: &[Parameter],
    number: u32,
    database: &str,
    cursor: &dyn Fn(i64) -> i64,
) -> Option<Vec<u8>> {
    let own = parameters.iter().position(|one| one.kind >= DATABASE).unwrap_or(parameters.len());
    let (values, more) = parameters[..own].split_at_checked(slots(text))?;
    // Flags, and the kind of the only section, are 0.
    let start = Message::LENGTH + 5;
    let mut writer = Writer { reader: Reader { text, at: 0 }, values, more, out: vec![0; start + 4], cursor };
    writer.command(database)?;
    writer.end(start)?;
    let mut message = writer.out;
    Message::write(&mut message, number, OP_MSG);
    (message.len() <= LONGEST).then_some(message)
}

/// The number of `?` in a text.
fn slots(text: &str) -> usize {
    text.split('"').step_by(2).map(|part| part.matches('?').count()).sum()
}

/// Reads a text.
#[derive(Clone, Copy)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(wanted));
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn plain(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn word(&mut self) -> Option<Cow<'a, str>> {
        if self.peek() == Some(b'"') { self.quoted() } else { Some(Cow::Borrowed(self.plain())) }
    }

    /// The collection after a command, if there is one.
    fn collection(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.text.get(self.at..)?;
        let first = rest.strip_prefix(' ')?.bytes().next()?;
        if rest.starts_with(VALUE) || !(first == b'"' || is_plain(first)) {
            return None;
        }
        self.at += 1;
        self.word()
    }

    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.text.get(self.at..)?.strip_prefix('"')?;
        let end = rest.find('"')?;
        self.at += end + 2;
        let inner = rest.get(..end)?;
        if !inner.contains('\\') {
            return Some(Cow::Borrowed(inner));
        }
        let mut parts = inner.split("\\u");
        let mut name = parts.next()?.to_owned();
        for part in parts {
            name.push(char::from_u32(u32::from_str_radix(part.get(..4)?, 16).ok()?)?);
            name.push_str(part.get(4..)?);
        }
        Some(Cow::Owned(name))
    }
}

/// Writes a command.
struct Writer<'a> {
    reader: Reader<'a>,
    values: &'a [Parameter],
    more: &'a [Parameter],
    out: Vec<u8>,
    cursor: &'a dyn Fn(i64) -> i64,
}

impl Writer<'_> {
    fn command(&mut self, database: &str) -> Option<()> {
        let command = self.reader.word()?.into_owned();
        let collection = self.reader.collection().map(Cow::into_owned);
        let is_get_more = command == "getMore";
        if self.reader.take(VALUE) || self.reader.text.get(self.reader.at..)?.starts_with(" ?") {
            self.reader.take(" ");
            self.value(command.as_bytes(), false, is_get_more, 0)?;
        } else if let Some(name) = &collection {
            self.scalar(command.as_bytes(), u32::from(TEXT), Some(name.as_bytes()))?;
        } else {
            self.scalar(command.as_bytes(), u32::from(INT32), Some(&1_i32.to_le_bytes()))?;
        }
        if let Some(name) = collection.filter(|_| is_get_more) {
            self.scalar(b"collection", u32::from(TEXT), Some(name.as_bytes()))?;
        }
        if self.reader.take(" ") {
            self.fields(false, &command, 0)?;
        }
        self.scalar(b"$db", u32::from(TEXT), Some(database.as_bytes()))
    }

    /// The fields of a document, up to its closing brace.
    fn fields(&mut self, is_further: bool, command: &str, depth: usize) -> Option<()> {
        self.reader.take("{").then_some(())?;
        while !self.reader.take("}") {
            self.reader.take(", ");
            let name = self.reader.quoted()?.into_owned();
            self.reader.take(": ").then_some(())?;
            let has_cursors = depth == 0 && command == "killCursors" && name == "cursors";
            self.value(name.as_bytes(), is_further, has_cursors, depth + 1)?;
        }
        Some(())
    }

    fn value(&mut self, name: &[u8], is_further: bool, is_cursor: bool, depth: usize) -> Option<()> {
        if depth > DEPTH + 1 || self.out.len() > LONGEST {
            return None;
        }
        match self.reader.peek()? {
            b'?' => {
                self.reader.at += 1;
                let from = if is_further { &mut self.more } else { &mut self.values };
                let (one, rest) = from.split_first()?;
                *from = rest;
                match long(one).filter(|_| is_cursor && one.kind == u32::from(INT64)) {
                    Some(number) => self.scalar(name, one.kind, Some(&(self.cursor)(number).to_le_bytes())),
                    None => self.scalar(name, one.kind, one.bytes()),
                }
            }
            b'{' => {
                let start = self.begin(DOCUMENT, name);
                self.fields(is_further, "", depth)?;
                self.end(start)
            }
            b'[' => {
                self.reader.at += 1;
                let start = self.begin(ARRAY, name);
                self.list(is_further, is_cursor, depth)?;
                self.end(start)
            }
            _ => None,
        }
    }

    /// The elements of a list, up to its closing bracket.
    fn list(&mut self, is_further: bool, is_cursor: bool, depth: usize) -> Option<()> {
        let (order, more) = self.more.split_first()?;
        let order = std::str::from_utf8(order.bytes().filter(|_| order.kind == ORDER)?).ok()?;
        self.more = more;
        let (mut shapes, mut next, mut place) = (Vec::new(), self.reader.at, 0_u64);
        for run in order.split(' ').filter(|run| !run.is_empty()) {
            let (shape, count) = run.split_once('x')?;
            let (shape, count): (usize, u64) = (shape.parse().ok()?, count.parse().ok()?);
            for _ in 0..count {
                let is_new = shape == shapes.len();
                if is_new {
                    self.reader.at = next;
                    self.reader.take(", ");
                    shapes.push(self.reader.at);
                } else {
                    self.reader.at = *shapes.get(shape)?;
                }
                self.value(place.to_string().as_bytes(), is_further || !is_new, is_cursor, depth + 1)?;
                next = if is_new { self.reader.at } else { next };
                place += 1;
            }
        }
        self.reader.at = next;
        self.reader.take("]").then_some(())
    }

    fn scalar(&mut self, name: &[u8], kind: u32, value: Option<&[u8]>) -> Option<()> {
        let kind = u8::try_from(kind).ok().filter(|kind| is_kind(*kind))?;
        self.out.push(kind);
        self.out.extend(name);
        self.out.push(0);
        let value = value.unwrap_or_default();
        if kind == TEXT {
            self.out.extend((u32::try_from(value.len()).ok()? + 1).to_le_bytes());
        }
        self.out.extend(value);
        if kind == TEXT {
            self.out.push(0);
        }
        Some(())
    }

    fn begin(&mut self, kind: u8, name: &[u8]) -> usize {
        self.out.push(kind);
        self.out.extend(name);
        self.out.extend([0; 5]);
        self.out.len() - 4
    }

    /// Ends a document, whose length is at `start`.
    fn end(&mut self, start: usize) -> Option<()> {
        self.out.push(0);
        let length = u32::try_from(self.out.len() - start).ok()?;
        self.out.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
        Some(())
    }
}
