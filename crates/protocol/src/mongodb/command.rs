//! Commands: documents whose first field says what is asked. Their texts are for people only.

use super::bson::{
    ARRAY, DOCUMENT, Element, INT32, INT64, TEXT, begin, element, elements, end, is_kind, push, push_text,
};
use super::frame::{LONGEST, Message, OP_MSG, Sequences, flag};
use crate::Header as _;
use crate::bytes::word;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The maximum depth of a command, which is that of a document on a server.
const DEPTH: usize = 100;
/// The length from which a text is not written on, in bytes.
const LONGEST_TEXT: usize = 64 << 10;
const DATABASE: &[u8] = b"$db";
/// Fields that drivers add by themselves.
const ADDED: [&[u8]; 4] = [b"lsid", b"$clusterTime", b"txnNumber", b"$readPreference"];
/// Fields of `readConcern` with times of the recorded server.
const TIMES: [&[u8]; 2] = [b"afterClusterTime", b"atClusterTime"];

/// Commands by which drivers set up a connection or ask about the server.
const SETUP: [&str; 18] = [
    "authenticate", "atlasVersion", "buildInfo", "buildinfo", "connectionStatus", "endSessions",
    "getCmdLineOpts", "getLog", "getParameter", "getnonce", "hello", "hostInfo", "isMaster", "ismaster",
    "logout", "ping", "saslContinue", "saslStart",
];

/// Whether a command sets up a connection or asks about the server.
pub fn is_setup(name: &[u8]) -> bool {
    SETUP.iter().any(|one| one.as_bytes() == name)
}

/// The document of a message, with its sequences as lists and without what drivers add, and whether nothing of it is missing.
/// What is cut off is left out.
pub fn merged(document: &[u8], sequences: &Sequences<'_>) -> (Vec<u8>, bool) {
    let mut out = vec![0; 4];
    let own = |field: &Element<'_>| !ADDED.contains(&field.name);
    let mut is_whole = copy(&mut out, document, &own, 0);
    for (name, documents) in sequences {
        let mut rest: &[u8] = documents;
        let list = begin(&mut out, ARRAY, name);
        for place in 0.. {
            let length = word(rest, 0) as usize;
            let Some((one, after)) = rest.split_at_checked(length.max(5)) else { break };
            push(&mut out, DOCUMENT, place.to_string().as_bytes(), one);
            rest = after;
        }
        is_whole &= rest.is_empty();
        if list + 4 == out.len() && !rest.is_empty() {
            // The first one has the names of the others.
            let first = begin(&mut out, DOCUMENT, b"0");
            copy(&mut out, rest, &|_| true, 1);
            end(&mut out, first);
        }
        end(&mut out, list);
    }
    end(&mut out, 0);
    (out, is_whole)
}

/// Appends the elements of a document, as far as they are there. Returns whether all are.
fn copy(out: &mut Vec<u8>, document: &[u8], is_wanted: &dyn Fn(&Element<'_>) -> bool, depth: usize) -> bool {
    let (mut all, mut is_whole) = (elements(document), true);
    for field in all.by_ref().filter(is_wanted) {
        let is_concern = depth == 0 && field.name == b"readConcern" && field.kind == DOCUMENT;
        if is_concern || !field.is_whole && is_nested(&field) && depth < DEPTH {
            let start = begin(out, field.kind, field.name);
            let is_kept = |inner: &Element<'_>| !is_concern || !TIMES.contains(&inner.name);
            is_whole &= copy(out, field.value, &is_kept, depth + 1);
            end(out, start);
        } else if field.is_whole {
            push(out, field.kind, field.name, field.value);
        }
    }
    is_whole && all.has_ended()
}

/// The document of a command on a collection, or on none, without other fields.
pub fn plain(command: &[u8], collection: Option<&str>) -> Vec<u8> {
    let mut out = vec![0; 4];
    match collection {
        Some(name) => push_text(&mut out, command, name.as_bytes()),
        None => push(&mut out, INT32, command, &1_i32.to_le_bytes()),
    }
    end(&mut out, 0);
    out
}

#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    document: &'a [u8],
    first: Element<'a>,
}

impl<'a> Command<'a> {
    /// A document as a command; `None` if it has no field, is not whole, or is deeper than a server takes.
    pub fn read(document: &'a [u8]) -> Option<Self> {
        let first = elements(document).next().filter(|first| first.name != DATABASE)?;
        is_whole(document, 0).then_some(Self { document, first })
    }

    pub fn name(&self) -> Cow<'a, str> {
        self.first.name()
    }

    /// Whether it sets up a connection or asks about the server.
    pub fn is_setup(&self) -> bool {
        is_setup(self.first.name)
    }

    pub fn ends_transaction(&self) -> bool {
        [&b"abortTransaction"[..], b"commitTransaction"].contains(&self.first.name)
    }

    /// The collection that it is about.
    pub fn collection(&self) -> Option<String> {
        if self.first.name == b"getMore" { self.field("collection")?.text() } else { self.first.text() }
    }

    pub fn database(&self) -> Option<String> {
        elements(self.document).find(|field| field.name == DATABASE)?.text()
    }

    /// A field of its own.
    pub fn field(&self, name: &str) -> Option<Element<'a>> {
        element(self.document, name)
    }

    /// Its fields but for the first one and the database.
    pub fn fields(&self) -> impl Iterator<Item = Element<'a>> {
        elements(self.document).skip(1).filter(|field| field.name != DATABASE)
    }

    /// Whether `is_it` holds for a field of it, at any depth.
    pub fn any(&self, is_it: &mut dyn FnMut(&Element<'a>) -> bool) -> bool {
        any(self.document, is_it)
    }

    /// The cursors that a `getMore` or `killCursors` names.
    pub fn cursors(&self) -> Vec<i64> {
        // No cursor has number 0, which stands for a value that is none.
        let number = |one: Element<'_>| one.number().filter(|_| one.kind == INT64).unwrap_or(0);
        match self.first.name {
            b"getMore" => vec![number(self.first)],
            b"killCursors" => {
                let all = self.field("cursors").filter(|field| field.kind == ARRAY).into_iter();
                all.flat_map(|all| elements(all.value)).map(number).collect()
            }
            _ => Vec::new(),
        }
    }

    /// For people: the command, its collection and the names of its other fields, with `?` for each value and the shapes of a
    /// list's elements once each: `find items {"filter": {"_id": ?}}`.
    pub fn text(&self) -> String {
        self.rendered().text
    }

    /// The values that have a `?` in its [text](Self::text), each with the last name before it that is no operator.
    pub fn values(&self) -> Vec<(Cow<'a, str>, Element<'a>)> {
        self.rendered().values
    }

    fn rendered(&self) -> Rendered<'a> {
        let mut out = Rendered::default();
        out.word(&self.name());
        if let Some(collection) = self.collection() {
            out.text.push(' ');
            out.word(&collection);
        }
        if self.first.kind != TEXT && self.first.number() != Some(1) {
            out.text.push_str(if is_nested(&self.first) { OF } else { " " });
            out.element(&self.first);
        }
        let is_get_more = self.first.name == b"getMore";
        let mut others = self.fields().filter(|field| !is_get_more || field.name != b"collection").peekable();
        if others.peek().is_some() {
            out.text.push(' ');
            out.fields(others);
        }
        out
    }

    /// A message that sends it to a database: an `OP_MSG` with this number, which has no answer if `is_quiet`. `cursor` gives the
    /// number of a cursor in place of the recorded one. `None` if it would be too long.
    pub fn message(
        &self,
        number: u32,
        database: &str,
        is_quiet: bool,
        cursor: &dyn Fn(i64) -> i64,
    ) -> Option<Vec<u8>> {
        // Flags, and the kind of the only section, which is 0.
        const BEFORE: usize = Message::LENGTH + 5;
        let mut out = vec![0; BEFORE + 4];
        if is_quiet {
            out[Message::LENGTH..Message::LENGTH + 4].copy_from_slice(&flag::MORE_TO_COME.to_le_bytes());
        }
        let own = |out: &mut Vec<u8>, one: &Element<'_>| match one.number().filter(|_| one.kind == INT64) {
            Some(number) => push(out, INT64, one.name, &cursor(number).to_le_bytes()),
            None => push(out, one.kind, one.name, one.value),
        };
        let name = self.first.name;
        for (place, field) in elements(self.document).enumerate() {
            match field.name {
                DATABASE => {}
                _ if place == 0 && name == b"getMore" => own(&mut out, &field),
                b"cursors" if name == b"killCursors" && field.kind == ARRAY => {
                    let list = begin(&mut out, ARRAY, field.name);
                    elements(field.value).for_each(|one| own(&mut out, &one));
                    end(&mut out, list);
                }
                _ => push(&mut out, field.kind, field.name, field.value),
            }
        }
        push_text(&mut out, DATABASE, database.as_bytes());
        end(&mut out, BEFORE);
        Message::write(&mut out, number, OP_MSG);
        (out.len() <= LONGEST).then_some(out)
    }
}

fn is_nested(element: &Element<'_>) -> bool {
    [DOCUMENT, ARRAY].contains(&element.kind)
}

/// Whether a document and those in it end where they say, and none is too deep.
fn is_whole(document: &[u8], depth: usize) -> bool {
    let mut all = elements(document);
    let is_whole = |one: Element<'_>| {
        one.is_whole
            && is_kind(one.kind)
            && (!is_nested(&one) || depth < DEPTH && is_whole(one.value, depth + 1))
    };
    all.by_ref().all(is_whole) && all.has_ended()
}

fn any<'a>(document: &'a [u8], is_it: &mut dyn FnMut(&Element<'a>) -> bool) -> bool {
    elements(document).any(|one| is_it(&one) || is_nested(&one) && any(one.value, is_it))
}

/// The word between a command's name and its own value, if that is a document or a list.
const OF: &str = " of ";

/// A text, and the values that it has a `?` for.
#[derive(Default)]
struct Rendered<'a> {
    text: String,
    values: Vec<(Cow<'a, str>, Element<'a>)>,
    /// The last name that is no operator.
    name: Cow<'a, str>,
}

impl<'a> Rendered<'a> {
    fn has_room(&self) -> bool {
        self.text.len() < LONGEST_TEXT
    }

    fn element(&mut self, element: &Element<'a>) {
        match element.kind {
            DOCUMENT => self.fields(elements(element.value)),
            ARRAY => self.list(element.value),
            _ => {
                self.text.push('?');
                self.values.push((self.name.clone(), *element));
            }
        }
    }

    fn fields(&mut self, fields: impl Iterator<Item = Element<'a>>) {
        self.text.push('{');
        let start = self.text.len();
        for field in fields {
            if !self.has_room() {
                break;
            }
            self.text.push_str(if self.text.len() > start { ", " } else { "" });
            let name = field.name();
            self.quoted(&name);
            if !name.starts_with('$') {
                self.name = name;
            }
            self.text.push_str(": ");
            self.element(&field);
        }
        self.text.push('}');
    }

    fn list(&mut self, list: &'a [u8]) {
        self.text.push('[');
        let mut known: HashSet<String> = HashSet::new();
        for element in elements(list) {
            if !self.has_room() {
                break;
            }
            let (end, values, name) = (self.text.len(), self.values.len(), self.name.clone());
            self.text.push_str(if known.is_empty() { "" } else { ", " });
            let start = self.text.len();
            // Only its text says whether its shape is a new one.
            self.element(&element);
            let shape = self.text.get(start..).unwrap_or_default();
            if known.contains(shape) {
                self.text.truncate(end);
                self.values.truncate(values);
                self.name = name;
            } else {
                known.insert(shape.to_owned());
            }
        }
        self.text.push(']');
    }

    /// A command or a collection, in quotes if it has other characters than most have.
    fn word(&mut self, word: &str) {
        self.name = Cow::Owned(word.to_owned());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        // Two hyphens begin a comment where the text is read as a statement.
        let is_plain = word.bytes().all(is_plain) && !word.contains("--");
        if !word.is_empty() && is_plain && word != OF.trim() {
            self.text.push_str(word);
        } else {
            self.quoted(word);
        }
    }

    fn quoted(&mut self, name: &str) {
        self.text.push('"');
        for c in name.chars().take_while(|_| self.text.len() <= LONGEST_TEXT).collect::<Vec<_>>() {
            match c {
                '"' | '\\' | '\0'..='\x1f' | '\x7f' => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}
