//! The shape of an answer's body: how many rows it has, and a checksum of what a server does not choose.

use crate::view::Digest;
use std::io::{self, Write};

/// Names of a `CouchDB` answer whose arrays have one element for each row.
const ROWS: [&[u8]; 3] = [b"rows", b"docs", b"results"];
/// Names whose values a server chooses, or that say how it works, where an answer is no document.
const CHOSEN: [&[u8]; 15] = [
    b"adapter", b"backend_adapter", b"bookmark", b"compact_running", b"data_size", b"db_name", b"dbname",
    b"disk_size", b"execution_stats", b"instance_start_time", b"last_seq", b"pending", b"purge_seq",
    b"sizes", b"update_seq",
];
/// The same, of each row of `_changes`.
const CHOSEN_IN_ROWS: &[u8] = b"seq";
/// The longest of these names.
const NAME: usize = 24;
/// The longest id of a document that is kept.
const ID: usize = 512;
/// The depth up to which it is known what is an object: that of the names.
const DEPTH: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// As bytes, which are one row.
    #[default]
    Bytes,
    /// As a document of `CouchDB`, or what became of one.
    Document,
    /// The same, of a document whose id the server may have chosen. The id is kept.
    Made,
    /// As rows, or a description of something, of `CouchDB`.
    Rows,
}

/// A body that is being read, of which at most an id is kept.
#[derive(Default)]
pub(super) struct Body {
    kind: Kind,
    digest: Digest,
    /// If its elements are the rows: how many there are.
    rows: Option<u64>,
    is_empty: bool,
    depth: usize,
    is_object: [bool; DEPTH],
    text: Text,
    /// Whether the next text is a name, and the name that was read last.
    expects_name: bool,
    name: Vec<u8>,
    /// The id of the document, as JSON has it.
    id: Vec<u8>,
    /// The depth of the name whose value is passed over.
    skips: Option<usize>,
    /// The depth of the elements that are rows, and whether the next one has not begun.
    elements: Option<(usize, bool)>,
}

/// Whether a byte is one of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    Escaped,
}

impl Body {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, is_empty: true, ..Self::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = if self.is_empty && self.kind != Kind::Bytes { bytes.trim_ascii_start() } else { bytes };
        let Some(first) = bytes.first() else { return };
        if std::mem::take(&mut self.is_empty) && !b"{[".contains(first) {
            self.kind = Kind::Bytes;
        }
        if self.kind == Kind::Bytes {
            return self.digest.push(bytes);
        }
        for byte in bytes {
            self.json(*byte);
        }
    }

    /// The id of a document that was made.
    pub(super) fn id(&mut self) -> Option<Vec<u8>> {
        let id = std::mem::take(&mut self.id);
        (!id.is_empty() && id.len() <= ID).then_some(id)
    }

    /// The rows, and the checksum.
    pub(super) fn end(mut self, status: u16) -> (u64, u64) {
        self.digest.push(&status.to_be_bytes());
        self.digest.end_row();
        (self.rows.unwrap_or(u64::from(!self.is_empty)), self.digest.value())
    }

    /// Reads a byte of JSON. Of what is no JSON anything may be made, but always the same.
    fn json(&mut self, byte: u8) {
        if self.text != Text::Outside {
            self.text = match (self.text, byte) {
                (Text::Inside, b'"') => Text::Outside,
                (Text::Inside, b'\\') => Text::Escaped,
                _ => Text::Inside,
            };
            if self.expects_name && self.text != Text::Outside && self.name.len() <= NAME {
                self.name.push(byte);
            }
            let is_id =
                self.kind == Kind::Made && self.depth == 1 && !self.expects_name && self.name == b"id";
            if is_id && self.text != Text::Outside && self.id.len() <= ID {
                self.id.push(byte);
            }
            return self.keep(byte);
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        if self.elements == Some((self.depth, true)) && byte != b']' {
            self.elements = Some((self.depth, false));
            self.rows = self.rows.map(|rows| rows + 1);
        }
        match byte {
            b'"' => {
                self.text = Text::Inside;
                if self.expects_name {
                    self.name.clear();
                }
            }
            b':' => {
                self.expects_name = false;
                self.keep(byte);
                if self.skips.is_none() && self.is_chosen() {
                    self.skips = Some(self.depth);
                }
                return;
            }
            b'{' | b'[' => return self.open(byte),
            b',' => {
                self.skips.take_if(|depth| *depth == self.depth);
                self.expects_name = self.is_object.get(self.depth).copied().unwrap_or(false);
                if self.are_rows() {
                    self.digest.end_row();
                    self.elements = Some((self.depth, true));
                    return;
                }
            }
            b'}' | b']' => {
                self.skips.take_if(|depth| *depth == self.depth);
                if self.are_rows() {
                    self.elements = None;
                    self.digest.end_row();
                }
                self.depth = self.depth.saturating_sub(1);
                self.expects_name = false;
            }
            _ => {}
        }
        self.keep(byte);
    }

    fn open(&mut self, byte: u8) {
        self.keep(byte);
        let is_outermost = self.depth == 0;
        let is_named = self.depth == 1 && self.is_object[1] && ROWS.contains(&self.name.as_slice());
        self.depth += 1;
        if let Some(is_object) = self.is_object.get_mut(self.depth) {
            *is_object = byte == b'{';
        }
        self.expects_name = byte == b'{' && self.depth < DEPTH;
        if self.kind == Kind::Rows && byte == b'[' && self.rows.is_none() && (is_outermost || is_named) {
            (self.rows, self.elements) = (Some(0), Some((self.depth, true)));
            self.digest.end_row();
        }
    }

    /// Whether the values at this depth are rows.
    fn are_rows(&self) -> bool {
        self.elements.is_some_and(|(depth, _)| depth == self.depth)
    }

    /// Whether the name that was read last is that of a value that the server chooses.
    fn is_chosen(&self) -> bool {
        let name = self.name.as_slice();
        self.kind == Kind::Rows
            && (self.depth == 1 && CHOSEN.contains(&name)
                || self.elements.is_some_and(|(depth, _)| depth + 1 == self.depth) && name == CHOSEN_IN_ROWS)
    }

    fn keep(&mut self, byte: u8) {
        if self.skips.is_none() {
            self.digest.push(&[byte]);
        }
    }
}

/// What unpacks it writes into it.
impl Write for Body {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(kind: Kind, text: &str) -> (u64, u64) {
        let mut body = Body::new(kind);
        body.push(text.as_bytes());
        body.end(200)
    }

    #[test]
    fn rows_are_counted_and_what_a_server_chooses_is_not_compared() {
        for (text, rows) in [
            ("", 0),
            ("true", 1),
            (r#"{"ok":true}"#, 1),
            (r#"{"total_rows":2,"rows":[ ],"x":[1,2]}"#, 0),
            (r#"{"docs":[{"a":[1,{"rows":[1,2,3]}],"b":"],[\",{"},{}],"bookmark":"x"}"#, 2),
            (r#"[{"ok":true},{"id":"b","error":"conflict"}, null]"#, 3),
        ] {
            assert_eq!(of(Kind::Rows, text).0, rows, "{text}");
        }
        let rows = |text: &str| of(Kind::Rows, text).1;
        let changes = |seq: &str, id: &str| {
            rows(&format!(r#"{{"results":[{{"seq":{seq},"id":"{id}"}}],"last_seq":{seq},"pending":0}}"#))
        };
        assert_eq!(changes("1", "a"), changes("\"7-abc,{\"", "a"));
        assert_eq!(changes("1", "a"), changes("[1, {\"x\":2}]", "a"));
        assert_ne!(changes("1", "a"), changes("1", "b"));
        assert_eq!(
            rows("{\"doc_count\":1,\"sizes\":{\"file\":7}}"),
            rows("{ \"doc_count\": 1,\n \"sizes\": {\"file\":8}}\n")
        );
        assert_ne!(rows("{\"doc_count\":1}"), rows("{\"doc_count\":2}"));
        // Of a document everything counts, and the spaces of its texts.
        let document = |text: &str| of(Kind::Document, text);
        assert_ne!(document(r#"{"sizes":1}"#), document(r#"{"sizes":2}"#));
        assert_ne!(document(r#"{"a":"b c"}"#), document(r#"{"a":"bc"}"#));
        assert_eq!(document(r#"{"docs":[1,2]}"#).0, 1);
        // The same rows in another order have the same upper half.
        let (one, other) = (rows(r#"{"docs":[{"a":1},{"a":2}]}"#), rows(r#"{"docs":[{"a":2},{"a":1}]}"#));
        assert!(one != other && one >> 32 == other >> 32);
        assert_ne!(of(Kind::Bytes, "a b"), of(Kind::Bytes, "ab"));
    }

    #[test]
    fn id_of_a_document_that_was_made_is_kept() {
        let id = |kind, text: &str| {
            let mut body = Body::new(kind);
            body.push(text.as_bytes());
            body.id()
        };
        let answer = r#"{"ok":true, "id" : "a\"b","x":{"id":"c"},"rev":"1-a"}"#;
        assert_eq!(id(Kind::Made, answer).as_deref(), Some(&br#"a\"b"#[..]));
        assert_eq!(id(Kind::Made, r#"{"ok":true,"x":"id"}"#), None);
        assert_eq!(id(Kind::Document, answer), None);
    }

    proptest! {
        #[test]
        fn pieces_of_any_text_make_the_same(text in r#"[\[\]{}:," \\arows1]{0,60}"#, cut in 0_usize..60) {
            let cut = cut.min(text.len());
            for kind in [Kind::Bytes, Kind::Document, Kind::Rows] {
                let mut body = Body::new(kind);
                body.push(&text.as_bytes()[..cut]);
                body.push(&text.as_bytes()[cut..]);
                prop_assert_eq!(body.end(200), of(kind, &text));
            }
        }
    }
}
