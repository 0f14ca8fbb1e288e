//! A command of MongoDB as a text with `?` in place of values, and these. `mongodb_message` makes it of both again.
//!
//! The text is the command, its collection, and the shape of the other fields, such as `find items {"filter": {"_id": ?}}`. A list
//! is written as the different shapes of its elements, each once: `[{"_id": ?}]`. The values are, in order: one for each `?`, those
//! of a list from the first element of each shape; then for each list the shapes of its elements, and the values of the others;
//! then the database, and the cursor that the answer opened.

use crate::view::Parameter;
use kurabe_protocol::bytes::word;
use kurabe_protocol::mongodb::bson::{self, ARRAY, DOCUMENT, Element, NULL, TEXT};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Commands by which drivers set up a connection or ask about the server.
pub(crate) const SETUP: [&str; 18] = [
    "authenticate", "atlasVersion", "buildInfo", "buildinfo", "connectionStatus", "endSessions",
    "getCmdLineOpts", "getLog", "getParameter", "getnonce", "hello", "hostInfo", "isMaster", "ismaster",
    "logout", "ping", "saslContinue", "saslStart",
];

/// Kinds of parameters that are no types of BSON: the shapes of a list's elements (`0x2 1x1`: two of the first, one of the second),
/// the database, and the number of a cursor.
pub(super) const ORDER: u32 = 0;
pub(super) const DATABASE: u32 = 256;
pub(super) const CURSOR: u32 = 257;
/// The longest text, in bytes. A command with a longer one is cut off.
const LONGEST_TEXT: usize = 64 << 10;
/// The maximum number of values of a command.
const VALUES: usize = 100_000;
/// The maximum depth of a command, which is that of a document on a server.
pub(super) const DEPTH: usize = 100;
/// Fields that drivers add by themselves.
const ADDED: [&[u8]; 4] = [b"lsid", b"$clusterTime", b"txnNumber", b"$readPreference"];
/// Those of `readConcern`: times of the recorded server.
const TIMES: [&[u8]; 2] = [b"afterClusterTime", b"atClusterTime"];
/// Commands whose values may be passwords, beside those that set up a connection.
const SECRET: [&str; 6] =
    ["copydb", "copydbgetnonce", "copydbsaslstart", "createUser", "setParameter", "updateUser"];

/// What precedes a command's own value, if that is a document or a list.
pub(super) const VALUE: &str = " of ";

/// What ends the text of a request that has no answer.
pub const QUIET: &str = " noreply";

/// A command with its values.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) text: String,
    /// A value for each `?`.
    values: Vec<Parameter>,
    /// Shapes of elements of lists, and the values of those whose shape an earlier one has.
    more: Vec<Parameter>,
    /// Whether something is missing.
    pub(super) cut: bool,
}

/// The text of a command on a collection without other fields.
pub fn text(command: &str, collection: &str) -> String {
    let mut shape = Shape::default();
    shape.word(command);
    shape.text.push(' ');
    shape.word(collection);
    shape.text
}

impl Shape {
    /// The shape of a command: its document, and sequences of documents by name. `None` if it has no command.
    pub(super) fn of(document: &[u8], sequences: &[(&[u8], &[u8])]) -> Option<Self> {
        let mut shape = Self::default();
        let mut elements = bson::elements(document);
        let first = elements.next()?;
        let command = shape.name(first.name).into_owned();
        shape.word(&command);
        if SETUP.contains(&&*command) || SECRET.contains(&&*command) {
            shape.cut = SECRET.contains(&&*command);
            return Some(shape);
        }
        let collection = if command == "getMore" {
            bson::element(document, "collection").and_then(|one| one.text())
        } else {
            first.text()
        };
        if let Some(collection) = &collection {
            // One that is no UTF-8 cannot be written again.
            shape.cut |= collection.contains(char::REPLACEMENT_CHARACTER);
            shape.text.push(' ');
            shape.word(collection);
        }
        shape.cut |= !first.is_whole;
        if first.kind != TEXT && first.number() != Some(1) {
            shape.text.push_str(if [DOCUMENT, ARRAY].contains(&first.kind) { VALUE } else { " " });
            shape.element(&first, 0, false);
        }
        let (start, mut database) = (shape.text.len(), None);
        let fields = elements.by_ref().filter(|field| {
            database = database.take().or_else(|| field.text().filter(|_| field.name == b"$db"));
            !(ADDED.contains(&field.name)
                || field.name == b"$db"
                || command == "getMore" && field.name == b"collection")
        });
        shape.text.push(' ');
        shape.fields(fields, sequences, 0, false);
        shape.cut |= !elements.has_ended();
        if shape.text.ends_with(" {}") {
            shape.text.truncate(start);
        }
        shape.more.extend(database.map(|name| Parameter::of(DATABASE, false, name.into_bytes())));
        Some(shape)
    }

    /// The values in the order of files.
    pub(super) fn parameters(&mut self) -> Vec<Parameter> {
        let mut all = std::mem::take(&mut self.values);
        all.append(&mut self.more);
        all
    }

    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = Element<'a>>,
        sequences: &[(&[u8], &[u8])],
        depth: usize,
        is_further: bool,
    ) {
        self.text.push('{');
        let start = self.text.len();
        for field in fields {
            // Of what is cut off, only what is whole is read.
            if !self.has_room(depth) || !field.is_whole && ![DOCUMENT, ARRAY].contains(&field.kind) {
                self.cut = true;
                break;
            }
            self.named(field.name, start);
            if depth == 0 && field.name == b"readConcern" && field.kind == DOCUMENT {
                let is_own: fn(&Element<'_>) -> bool = |field| !TIMES.contains(&field.name);
                self.fields(bson::elements(field.value).filter(is_own), &[], depth + 1, is_further);
            } else {
                self.element(&field, depth + 1, is_further);
            }
        }
        for (name, documents) in sequences {
            self.named(name, start);
            self.list(Sequence(documents), depth + 1, is_further);
        }
        self.text.push('}');
    }

    fn named(&mut self, name: &[u8], start: usize) {
        if self.text.len() > start {
            self.text.push_str(", ");
        }
        let name = self.name(name).into_owned();
        self.quoted(&name);
        self.text.push_str(": ");
    }

    fn list<'a>(&mut self, elements: impl Iterator<Item = Element<'a>>, depth: usize, is_further: bool) {
        self.text.push('[');
        let place = self.more.len();
        self.more.push(Parameter::of(ORDER, false, Vec::new()));
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut order: Vec<(usize, u64)> = Vec::new();
        for element in elements {
            let is_first = known.is_empty();
            if !self.has_room(depth) || !(element.is_whole || is_first && element.kind == DOCUMENT) {
                self.cut = true;
                break;
            }
            let (end, more) = (self.text.len(), self.more.len());
            self.text.push_str(if is_first { "" } else { ", " });
            let start = self.text.len();
            // Only its text says whether its shape is a new one.
            self.element(&element, depth + 1, is_further || !is_first);
            let text = self.text.get(start..).unwrap_or_default();
            let shape = if let Some(shape) = known.get(text) {
                self.text.truncate(end);
                *shape
            } else {
                let shape = known.len();
                known.insert(text.to_owned(), shape);
                if !is_first && !is_further {
                    self.text.truncate(start);
                    self.more.truncate(more);
                    self.element(&element, depth + 1, false);
                }
                shape
            };
            match order.last_mut() {
                Some((last, count)) if *last == shape => *count += 1,
                _ => order.push((shape, 1)),
            }
        }
        let order: Vec<String> = order.iter().map(|(shape, count)| format!("{shape}x{count}")).collect();
        if let Some(first) = self.more.get_mut(place) {
            first.value = order.join(" ").into_bytes().into();
        }
        self.text.push(']');
    }

    /// A value; `is_further`: in an element of a list whose shape an earlier one may have.
    fn element(&mut self, element: &Element<'_>, depth: usize, is_further: bool) {
        match element.kind {
            DOCUMENT | ARRAY => {
                let mut elements = bson::elements(element.value);
                if element.kind == DOCUMENT {
                    self.fields(elements.by_ref(), &[], depth, is_further);
                } else {
                    self.list(elements.by_ref(), depth, is_further);
                }
                self.cut |= !elements.has_ended();
            }
            kind => {
                self.text.push('?');
                let value = match kind {
                    NULL => None,
                    TEXT => {
                        element.value.get(4..).and_then(<[u8]>::split_last).map(|(_, text)| text.to_vec())
                    }
                    _ => Some(element.value.to_vec()),
                };
                let parameter = Parameter::of(kind.into(), kind != TEXT, value);
                if is_further { self.more.push(parameter) } else { self.values.push(parameter) }
            }
        }
    }

    fn has_room(&self, depth: usize) -> bool {
        depth < DEPTH && self.text.len() < LONGEST_TEXT && self.values.len() + self.more.len() < VALUES
    }

    /// A name. One that is no UTF-8 cannot be written again.
    fn name<'a>(&mut self, name: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(name);
        self.cut |= matches!(text, Cow::Owned(_));
        text
    }

    /// A command or a collection, in quotes if it has other characters than most have.
    fn word(&mut self, word: &str) {
        let means_more = [VALUE.trim(), QUIET.trim()].contains(&word);
        if !word.is_empty() && word.bytes().all(is_plain) && !means_more {
            self.text.push_str(word);
        } else {
            self.quoted(word);
        }
    }

    fn quoted(&mut self, name: &str) {
        self.text.push('"');
        for c in name.chars() {
            match c {
                '"' | '\\' | '\0'..='\x1f' | '\x7f' => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
            if self.text.len() > LONGEST_TEXT {
                self.cut = true;
                break;
            }
        }
        self.text.push('"');
    }
}

pub(super) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// The documents of a sequence, as elements.
struct Sequence<'a>(&'a [u8]);

impl<'a> Iterator for Sequence<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let length = word(self.0, 0) as usize;
        if self.0.is_empty() {
            return None;
        }
        let is_whole = (5..=self.0.len()).contains(&length);
        let (value, rest) = self.0.split_at(if is_whole { length } else { self.0.len() });
        self.0 = rest;
        Some(Element { kind: DOCUMENT, name: b"", value, is_whole })
    }
}
