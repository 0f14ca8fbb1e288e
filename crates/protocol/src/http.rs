//! Requests of HTTP: method, path, query, fields and body; and what of `CouchDB` they read or change, by its API:
//! <https://docs.couchdb.org/en/stable/api/index.html>.

use crate::call::{NAME, Parameter};
use std::borrow::Cow;

/// Fields of a request that decide what its answer is. The kind of each is its place here, counted from 1.
pub const FIELDS: [&str; 10] = [
    "Accept", "Accept-Encoding", "Content-Encoding", "Content-Type", "Destination", "If-Match",
    "If-None-Match", "Prefer", "Range", "X-Couch-Full-Commit",
];

pub const BODY: u32 = 0;
/// The kind of the id which a server chose for a document, as its answer has it in JSON.
pub const CHOSEN_ID: u32 = 1 + FIELDS.len() as u32;
/// Value in a path.
const VALUE: u32 = 16;
/// Rest of the path, part of the value before.
const REST: u32 = 17;
/// Argument of the query.
const ARGUMENT: u32 = 18;
/// Argument without a name.
const NAMELESS: u32 = 19;
/// Word in a path.
const WORD: u32 = NAME + 1;
/// Name of an argument.
const KEY: u32 = NAME + 2;
/// Argument that is a word, such as `true`.
const CHOICE: u32 = NAME + 3;

/// Endpoints of a database that are asked with POST, and change nothing.
const READS: [&str; 17] = [
    "_all_docs", "_bulk_get", "_changes", "_design_docs", "_explain", "_find", "_get_missing_revs", "_list",
    "_local_docs", "_missing_revs", "_nouveau", "_nouveau_analyze", "_revs_diff", "_search",
    "_search_analyze", "_show", "_view",
];
/// Databases of a server's own; what else begins so is no database.
const SYSTEM: [&str; 3] = ["_users", "_replicator", "_global_changes"];
/// Digits from which a text of digits and letters a to f is an identifier.
const HEX: usize = 12;
/// Characters from which a text with digits and letters is one.
const LONG: usize = 20;

/// The kind of a field, if it is one of [`FIELDS`].
pub fn field_kind(field: &str) -> Option<u32> {
    (1..).zip(FIELDS).find(|(_, known)| known.eq_ignore_ascii_case(field)).map(|(kind, _)| kind)
}

/// Whether the body of a request names the id of a document.
pub fn has_id(body: &[u8]) -> bool {
    body.windows(5).any(|word| word == b"\"_id\"")
}

/// The parts of a request's line: its method, its path and its query.
pub fn parts(method: &str, target: &str, is_couchdb: bool) -> Vec<Parameter> {
    let part = |kind: u32, text: &str| Parameter::new(kind, false, text.as_bytes());
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let path: Vec<&str> = path.split('/').collect();
    let kinds = if is_couchdb {
        couchdb_kinds(&path)
    } else {
        path.iter().map(|part| if is_identifier(part) { VALUE } else { WORD }).collect()
    };
    let mut parts = vec![part(NAME, method)];
    for (at, (text, kind)) in path.iter().zip(&kinds).enumerate() {
        let is_empty = text.is_empty() && kinds.get(at + 1) != Some(&REST);
        parts.push(part(if is_empty && *kind == VALUE { WORD } else { *kind }, text));
    }
    for one in query.into_iter().flat_map(|query| query.split('&')) {
        let Some((name, value)) = one.split_once('=') else {
            let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-');
            parts.push(part(if one.chars().all(is_name) { KEY } else { NAMELESS }, one));
            continue;
        };
        // Words that decide what is asked for are part of the kind.
        let is_word = matches!(value, "" | "true" | "false") || name.ends_with("feed");
        parts.extend([part(KEY, name), part(if is_word { CHOICE } else { ARGUMENT }, value)]);
    }
    parts
}

/// The kinds of the parts of a path of `CouchDB`.
fn couchdb_kinds(path: &[&str]) -> Vec<u32> {
    let part = |at: usize| path.get(at).copied().unwrap_or_default();
    let is_word = |at: usize| part(at).starts_with('_');
    let value = match (part(1), part(2)) {
        (database, _) if database.starts_with('_') && !SYSTEM.contains(&database) => {
            return (0..path.len()).map(|at| if at > 1 && !is_word(at) { VALUE } else { WORD }).collect();
        }
        (_, "_partition") => return (0..path.len()).map(|at| if at == 3 { VALUE } else { WORD }).collect(),
        (_, "_index") => path.len(),
        // The name, and of what a function of it is asked for its kind and name.
        (_, "_design") if is_word(4) => 6,
        (_, "_design") => 4,
        (_, design) if design.starts_with("_design") && is_word(3) => 5,
        (_, word) if word.starts_with('_') => 3,
        _ => 2,
    };
    // The name of an attachment may have slashes.
    let kind = |at: usize| if at < value { WORD } else { REST };
    (0..path.len()).map(|at| if at == value { VALUE } else { kind(at) }).collect()
}

/// Whether a part of a path is a value rather than a word: a number, a UUID, digits of a hash, an address.
fn is_identifier(part: &str) -> bool {
    let name = part.split('.').next().unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = |text: &str| {
        text.len() >= HEX && digits > 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let last = name.rsplit(['-', '_', ':']).next().unwrap_or_default();
    is_number(name)
        || is_number(last)
        || is_hex(name)
        || part.contains('@')
        || (part.len() >= LONG && digits > 0)
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    parts: &'a [Parameter],
}

/// The object of a request of `CouchDB`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    pub method: &'a str,
    /// The database as its path has it; empty, or with `_` before it, if it is the server's own.
    pub database: &'a str,
    /// The document, such as `17` or `_design/x`.
    pub document: Option<Cow<'a, str>>,
    /// What is asked of the database: `_find`, `_view`, …; empty for a document, or the database itself.
    pub endpoint: &'a str,
}

impl<'a> Request<'a> {
    /// Parts as a request; `None` if they have no method.
    pub fn read(parts: &'a [Parameter]) -> Option<Self> {
        parts.first().filter(|first| first.kind == NAME && first.bytes().is_some())?;
        Some(Self { parts })
    }

    pub fn method(self) -> &'a str {
        self.parts.first().map_or("", Parameter::text)
    }

    /// The parts of its path, between slashes.
    pub fn path(self) -> impl Iterator<Item = &'a Parameter> {
        self.parts.iter().filter(|one| matches!(one.kind, WORD | VALUE | REST))
    }

    /// The argument of this name in the query.
    pub fn argument(self, name: &str) -> Option<&'a str> {
        let at = self.parts.iter().position(|one| one.kind == KEY && one.text() == name)?;
        self.parts.get(at + 1).filter(|one| matches!(one.kind, CHOICE | ARGUMENT)).map(Parameter::text)
    }

    /// The parts with its fields, each with the field's name.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, &'a Parameter)> {
        let name = |one: &Parameter| FIELDS.get((one.kind as usize).checked_sub(1)?).copied();
        self.parts.iter().filter_map(move |one| Some((name(one)?, one)))
    }

    pub fn body(self) -> Option<&'a Parameter> {
        self.parts.iter().find(|one| one.kind == BODY)
    }

    /// The id that a server chose for its document.
    pub fn chosen_id(self) -> Option<&'a [u8]> {
        self.parts.iter().find(|one| one.kind == CHOSEN_ID)?.bytes()
    }

    /// Values in path and query, each with the name that is before it, and without the rest of the path.
    pub fn values(self) -> impl Iterator<Item = (&'a str, &'a Parameter)> {
        let mut name = "";
        self.parts.iter().skip(1).filter_map(move |one| match one.kind {
            VALUE | ARGUMENT | NAMELESS => Some((name, one)),
            WORD | KEY if !one.text().is_empty() => {
                name = one.text();
                None
            }
            _ => None,
        })
    }

    /// Path and query, as they are sent.
    pub fn target(self) -> Vec<u8> {
        let mut target = Vec::new();
        self.write(&mut target, |one| one.bytes().unwrap_or_default());
        target
    }

    pub fn path_text(self) -> String {
        self.path().map(Parameter::text).collect::<Vec<_>>().join("/")
    }

    pub fn has_query(self) -> bool {
        self.parts.iter().any(|one| matches!(one.kind, KEY | NAMELESS))
    }

    /// Whether a server of `CouchDB` divides its line into these parts, and each other part is a field, the body or the chosen id.
    pub fn is_exact(self) -> bool {
        let target = self.target();
        let (line, rest): (Vec<_>, Vec<_>) = self.parts.iter().partition(|one| Self::is_of_line(one));
        // A fragment is no part of a target.
        let found = std::str::from_utf8(&target).ok().filter(|target| !target.contains('#'));
        let is_read_back =
            found.is_some_and(|target| parts(self.method(), target, true).iter().eq(line.iter().copied()));
        is_read_back && rest.iter().all(|one| one.kind <= CHOSEN_ID)
    }

    /// Whether percent-encoding hides a name from this program: one in the query, or the `_` of an endpoint.
    pub fn hides_name(self) -> bool {
        let is_hidden = |start: &[u8]| start.eq_ignore_ascii_case(b"%5f");
        self.parts.iter().any(|one| match one.kind {
            KEY | CHOICE => one.text().contains('%'),
            WORD | VALUE | REST => one.bytes().and_then(|bytes| bytes.get(..3)).is_some_and(is_hidden),
            _ => false,
        })
    }

    /// Whether a part is of its line, and of no field or body.
    pub fn is_of_line(part: &Parameter) -> bool {
        part.is_name() || (VALUE..=NAMELESS).contains(&part.kind)
    }

    /// For people, with a `?` for each value: `GET /shop/??rev=?`.
    pub fn text(self) -> String {
        let mut text = format!("{} ", self.method()).into_bytes();
        self.write(&mut text, |one| if one.is_name() { one.bytes().unwrap_or_default() } else { b"?" });
        String::from_utf8_lossy(&text).into_owned()
    }

    fn write(self, out: &mut Vec<u8>, shown: impl Fn(&'a Parameter) -> &'a [u8]) {
        let (mut is_first, mut sign) = (true, b'?');
        for one in self.parts.iter().skip(1) {
            let bytes = shown(one);
            match one.kind {
                // One sign stands for all of a value.
                REST if bytes == b"?" => continue,
                WORD | VALUE | REST if !std::mem::take(&mut is_first) => out.push(b'/'),
                KEY | NAMELESS => out.push(std::mem::replace(&mut sign, b'&')),
                CHOICE | ARGUMENT => out.push(b'='),
                WORD | VALUE | REST => {}
                _ => continue,
            }
            out.extend_from_slice(bytes);
        }
    }

    /// Text for people of a request with a secret: the path up to the first secret part, and the names of the query.
    pub fn text_before(self, is_secret: impl Fn(&str) -> bool) -> String {
        let (mut shown, mut is_hidden) = (Vec::new(), false);
        for (one, next) in self.parts.iter().zip(self.parts.iter().skip(1).map(Some).chain([None])) {
            match one.kind {
                WORD | VALUE | REST if is_hidden => {}
                NAME | VALUE | REST => shown.push(one.clone()),
                WORD => {
                    shown.push(one.clone());
                    is_hidden = is_secret(one.text());
                    let is_more = next.is_some_and(|next| matches!(next.kind, WORD | VALUE | REST));
                    shown.extend((is_hidden && is_more).then(|| Parameter::new(WORD, false, "…".as_bytes())));
                }
                // Other characters may be those of a value, which has `=` within it.
                KEY if next.is_some_and(|next| matches!(next.kind, CHOICE | ARGUMENT))
                    && one
                        .text()
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_.-[]".contains(&byte)) =>
                {
                    shown.extend([one.clone(), Parameter { kind: ARGUMENT, ..Parameter::default() }]);
                }
                _ => {}
            }
        }
        Request { parts: &shown }.text()
    }

    /// The database, the document and the endpoint of `CouchDB` in its path.
    pub fn place(self) -> Place<'a> {
        let path: Vec<&str> = self.path().map(Parameter::text).skip(1).collect();
        let (database, rest) = path.split_first().map_or(("", &[][..]), |(database, rest)| (*database, rest));
        let mut place = Place { method: self.method(), database, ..Place::default() };
        let rest = match rest {
            ["_partition", _, rest @ ..] if !rest.is_empty() => rest,
            ["_partition", ..] => &rest[..1],
            rest => rest,
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        let first = part(0);
        let is_design = first == "_design" || first == "_local";
        // Names after `_design` may be encoded with it.
        let function = part(if is_design { 2 } else { 1 });
        if first.starts_with("_design") && function.starts_with('_') {
            place.endpoint = function;
        } else if is_design {
            place.document = rest.get(1).map(|name| format!("{first}/{name}").into());
        } else if first.starts_with("_design%") {
            place.document = Some(first.into());
        } else if first.starts_with('_') {
            place.endpoint = first;
        } else if !first.is_empty() {
            place.document = Some(first.into());
        }
        place
    }
}

impl Place<'_> {
    /// Whether it is about the server, or a database of the server's own.
    pub fn is_of_server(&self) -> bool {
        self.database.is_empty() || self.database.starts_with('_')
    }

    /// Whether it may change something.
    pub fn writes(&self) -> bool {
        match self.method {
            "GET" | "HEAD" | "OPTIONS" => false,
            "POST" => !READS.contains(&self.endpoint),
            _ => true,
        }
    }

    /// Whether the answer of a request that succeeds is one document, or says what became of one.
    pub fn is_document(&self) -> bool {
        self.document.is_some() || self.makes_document()
    }

    /// Whether it makes a document, whose id is in the body or is chosen by the server.
    pub fn makes_document(&self) -> bool {
        self.method == "POST" && self.endpoint.is_empty() && self.document.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str, is_couchdb: bool) -> String {
        let (method, target) = line.split_once(' ').unwrap();
        Request::read(&parts(method, target, is_couchdb)).unwrap().text()
    }

    #[test]
    fn text_of_a_request_with_a_secret_has_no_encoded_name() {
        let parts = parts("GET", "/shop/17?token%3Dhunter2=x&limit=5", true);
        assert_eq!(Request::read(&parts).unwrap().text_before(|_| false), "GET /shop/??limit=?");
    }

    #[test]
    fn requests_of_one_kind_have_one_text() {
        for (line, expected) in [
            ("GET /", "GET /"),
            ("GET /shop/", "GET /shop/"),
            ("PUT /shop/17?rev=1-abc&new_edits=false", "PUT /shop/??rev=?&new_edits=false"),
            ("GET /shop/a%2Fb/photo/of it.png", "GET /shop/?"),
            (
                "GET /shop/_design/x/_view/by_day?key=%221%22&reduce=false",
                "GET /shop/_design/x/_view/by_day?key=?&reduce=false",
            ),
            ("POST /shop/_design/x/_update/count/17", "POST /shop/_design/x/_update/count/?"),
            ("GET /shop/_design%2Fx/_view/y", "GET /shop/_design%2Fx/_view/y"),
            ("GET /shop/_design/x/logo.png", "GET /shop/_design/x/?"),
            ("GET /shop/_local/abc", "GET /shop/_local/?"),
            ("GET /shop/_partition/p1/_design/x/_view/y", "GET /shop/_partition/?/_design/x/_view/y"),
            ("GET /shop/_changes?feed=continuous&since=7", "GET /shop/_changes?feed=continuous&since=?"),
            ("GET /_users/org.couchdb.user:bob", "GET /_users/?"),
            ("PUT /_node/_local/_config/admins/bob", "PUT /_node/_local/_config/?/?"),
        ] {
            assert_eq!(text(line, true), expected);
        }
        for (line, expected) in [
            ("GET /api/v1/items/17/parts?page=2&all", "GET /api/v1/items/?/parts?page=?&all"),
            ("GET /o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "GET /o/?"),
            ("GET /u/bob@example.org/order-12.json", "GET /u/?/?"),
            ("GET /t/feedface/9b2d7e0f4a61", "GET /t/feedface/?"),
            ("GET /?123", "GET /??"),
            ("OPTIONS *", "OPTIONS *"),
        ] {
            assert_eq!(text(line, false), expected);
        }
    }

    #[test]
    fn place_is_that_which_a_request_reads_or_changes() {
        for (text, database, document, endpoint, writes) in [
            ("GET /", "", None, "", false),
            ("POST /_session", "_session", None, "", true),
            ("PUT /shop", "shop", None, "", true),
            ("POST /shop", "shop", None, "", true),
            ("GET /shop/17/att?rev=1", "shop", Some("17"), "", false),
            ("DELETE /shop/_design/x?rev=1", "shop", Some("_design/x"), "", true),
            ("PUT /shop/_design%2Fx", "shop", Some("_design%2Fx"), "", true),
            ("PUT /shop/_local/x", "shop", Some("_local/x"), "", true),
            ("POST /shop/_design/x/_view/y", "shop", None, "_view", false),
            ("POST /shop/_design/x/_update/y/17", "shop", None, "_update", true),
            ("POST /shop/_partition/p/_find", "shop", None, "_find", false),
            ("POST /shop/_bulk_docs", "shop", None, "_bulk_docs", true),
        ] {
            let (method, target) = text.split_once(' ').unwrap();
            let parts = parts(method, target, true);
            let place = Request::read(&parts).unwrap().place();
            assert_eq!(
                (place.database, place.document.as_deref(), place.endpoint),
                (database, document, endpoint),
                "{text}"
            );
            assert_eq!(place.writes(), writes, "{text}");
        }
    }

    #[test]
    fn values_are_named_after_what_is_before_them_and_arguments_are_found() {
        let parts = parts("GET", "/shop/_design/x/_view/y?key=%227%22&feed=normal&reduce=false&z", true);
        let request = Request::read(&parts).unwrap();
        let values: Vec<_> = request.values().map(|(name, value)| (name, value.text())).collect();
        assert_eq!(values, [("key", "%227%22")]);
        assert_eq!((request.argument("feed"), request.argument("z")), (Some("normal"), None));
        let parts = super::parts("GET", "/shop/17/a/b.txt?123", true);
        let request = Request::read(&parts).unwrap();
        let values: Vec<_> = request.values().map(|(name, value)| (name, value.text())).collect();
        assert_eq!(values, [("shop", "17"), ("shop", "123")]);
    }

    /// Words of targets, which are put together in any way.
    const PIECES: [&str; 14] =
        ["/", "a", "_design", "17", "?", "&", "=", "_", ".", "%2F", "feed=", "true", "é", "_partition/"];

    #[test]
    fn target_of_a_request_is_that_of_its_parts() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut target = String::from("/");
            for _ in 0..8 {
                // A linear congruential generator: any pieces will do.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                target.push_str(PIECES[(state >> 33) as usize % PIECES.len()]);
            }
            for is_couchdb in [true, false] {
                let parts = parts("GET", &target, is_couchdb);
                let request = Request::read(&parts).unwrap();
                assert_eq!(request.target(), target.as_bytes());
                let _ = (request.place(), request.text());
            }
        }
    }
}
