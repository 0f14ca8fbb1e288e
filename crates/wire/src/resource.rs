//! What a request of HTTP names: its path, the values in it, and what of `CouchDB` it reads or changes.
//!
//! A request's text is its method, a space, and its path with the query: `GET /shop/17?rev=1-a`. API of `CouchDB`:
//! <https://docs.couchdb.org/en/stable/api/index.html>.

use crate::conceal;
use crate::template::{GAP, Split, fingerprint};

/// Fields of a request that decide what its answer is. The parameters of a request are its body, of kind 0, and fields, each of
/// which has a kind that is its place here, counted from 1.
pub const FIELDS: [&str; 10] = [
    "Accept", "Accept-Encoding", "Content-Encoding", "Content-Type", "Destination", "If-Match",
    "If-None-Match", "Prefer", "Range", "X-Couch-Full-Commit",
];

/// The kind of the parameter that is the id which a server chose for a document, as its answer has it in JSON.
pub const CHOSEN_ID: u32 = 1 + FIELDS.len() as u32;

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

/// What a request of `CouchDB` is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    pub method: &'a str,
    /// The database as its path has it; empty, or with `_` before it, if it is the server's own.
    pub database: &'a str,
    /// The document, such as `17` or `_design/x`.
    pub document: Option<&'a str>,
    /// What is asked of the database: `_find`, `_view`, …; empty for a document, or the database itself.
    pub endpoint: &'a str,
    /// What follows `?`.
    pub query: &'a str,
}

impl<'a> Place<'a> {
    /// That of a request's text, or of its template.
    pub fn of(text: &'a str) -> Self {
        let (method, target) = text.split_once(' ').unwrap_or((text, ""));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let (database, rest) = path.split_once('/').unwrap_or((path, ""));
        let mut place = Self { method, database, query, ..Self::default() };
        let rest = match rest.strip_prefix("_partition/") {
            Some(rest) => rest.split_once('/').map_or("_partition", |(_, rest)| rest),
            None => rest,
        };
        let mut parts = rest.split('/');
        let first = parts.next().unwrap_or_default();
        let is_design = first == "_design" || first == "_local";
        // Names after `_design` may be encoded with it.
        let name = if is_design { parts.next().unwrap_or_default() } else { "" };
        if let Some(function) =
            parts.next().filter(|part| first.starts_with("_design") && part.starts_with('_'))
        {
            place.endpoint = function;
        } else if is_design || first.starts_with("_design%") {
            let length = first.len() + if is_design { 1 + name.len() } else { 0 };
            place.document = rest.get(..length);
        } else if first.starts_with('_') {
            place.endpoint = first;
        } else if !first.is_empty() {
            place.document = Some(first);
        }
        place
    }

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

/// Whether the body of a request names the id of a document.
pub fn has_id(body: &[u8]) -> bool {
    body.windows(5).any(|word| word == b"\"_id\"")
}

/// Divides a request's text. Filling the gaps with the literals gives the text again.
pub(crate) fn split(text: &str, is_couchdb: bool) -> Split<'_> {
    let mut found = Split::default();
    let (path, query) = text.find('?').map_or((text, ""), |at| text.split_at(at));
    let (method, path) = path.find('/').map_or((path, ""), |at| path.split_at(at));
    found.template.push_str(method);
    let values = if is_couchdb { of_couchdb(path) } else { path.split('/').map(is_identifier).collect() };
    let mut rest = path;
    for (number, is_value) in values.iter().enumerate() {
        if number > 0 {
            found.template.push('/');
            rest = rest.get(1..).unwrap_or_default();
        }
        // The last value takes what is left: the name of an attachment may have slashes.
        let is_last = number + 1 == values.len();
        let end = if is_last { rest.len() } else { rest.find('/').unwrap_or(rest.len()) };
        let (segment, after) = rest.split_at(end);
        push(&mut found, segment, *is_value && !segment.is_empty());
        rest = after;
    }
    let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-');
    let parts = query.strip_prefix('?').into_iter().flat_map(|query| query.split('&'));
    for (number, part) in parts.enumerate() {
        found.template.push(if number == 0 { '?' } else { '&' });
        match part.find('=') {
            Some(at) => {
                let (name, value) = part.split_at(at + 1);
                found.template.push_str(name);
                // Words that decide what is asked for are part of the kind.
                let is_word = matches!(value, "" | "true" | "false") || name.ends_with("feed=");
                push(&mut found, value, !is_word);
            }
            None => push(&mut found, part, !part.chars().all(is_name)),
        }
    }
    found
}

fn push<'a>(found: &mut Split<'a>, text: &'a str, is_value: bool) {
    if is_value {
        found.template.push(GAP);
        found.literals.push(text);
    } else {
        found.template.push_str(text);
    }
}

/// Which parts of a path of `CouchDB`, divided by `/`, are values. The last one may have several parts.
fn of_couchdb(path: &str) -> Vec<bool> {
    let parts: Vec<&str> = path.split('/').collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let is_word = |at: usize| part(at).starts_with('_');
    let words = match (part(1), part(2)) {
        (database, _) if database.starts_with('_') && !SYSTEM.contains(&database) => {
            return parts.iter().enumerate().map(|(at, part)| at > 1 && !part.starts_with('_')).collect();
        }
        (_, "_partition") => {
            let design = if part(4) == "_design" { 8 } else { 5 };
            return (0..parts.len().min(design)).map(|at| at == 3).collect();
        }
        (_, "_index") => return vec![false],
        // The name, and of what a function of it is asked for its kind and name.
        (_, "_design") if is_word(4) => 6,
        (_, "_design") => 4,
        (_, design) if design.starts_with("_design") && is_word(3) => 5,
        (_, word) if word.starts_with('_') => 3,
        _ => 2,
    };
    (0..parts.len().min(words + 1)).map(|at| at >= words).collect()
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

/// What may be kept of a request that may contain a password: `None` if nothing speaks for one, else its path up to where that
/// is, and its method.
pub(crate) fn concealed(text: &str, template: &str) -> Option<String> {
    if !conceal::http(text.as_bytes()) {
        return None;
    }
    let (path, query) = template.split_once('?').unwrap_or((template, ""));
    let parts: Vec<&str> = path.split('/').collect();
    let kept = parts.iter().position(|part| conceal::http(part.as_bytes())).unwrap_or(parts.len());
    let mut shown = parts.get(..=kept).unwrap_or(&parts).join("/");
    if kept + 1 < parts.len() {
        shown.push_str("/…");
    }
    let names =
        query.split('&').filter_map(|part| part.split_once('=')).map(|(name, _)| format!("{name}={GAP}"));
    let names: Vec<String> = names.collect();
    if !query.is_empty() {
        shown = format!("{shown}?{}", names.join("&"));
    }
    Some(fingerprint(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Dialect, split};
    use proptest::prelude::*;

    fn kind(text: &str, dialect: Dialect) -> String {
        fingerprint(&split(text, dialect).template)
    }

    #[test]
    fn requests_of_one_kind_have_one_fingerprint() {
        for (text, expected) in [
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
            assert_eq!(kind(text, Dialect::Couchdb), expected);
        }
        for (text, expected) in [
            ("GET /api/v1/items/17/parts?page=2&all", "GET /api/v1/items/?/parts?page=?&all"),
            ("GET /o/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "GET /o/?"),
            ("GET /u/bob@example.org/order-12.json", "GET /u/?/?"),
            ("GET /t/feedface/9b2d7e0f4a61", "GET /t/feedface/?"),
            ("GET /?123", "GET /??"),
            ("OPTIONS *", "OPTIONS *"),
        ] {
            assert_eq!(kind(text, Dialect::Http), expected);
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
            let place = Place::of(text);
            assert_eq!(
                (place.database, place.document, place.endpoint),
                (database, document, endpoint),
                "{text}"
            );
            assert_eq!(place.writes(), writes, "{text}");
        }
    }

    #[test]
    fn passwords_are_not_kept_and_the_kind_of_request_is() {
        for (text, expected) in [
            ("GET /a?q=1", None),
            ("GET /a?access_token=hunter2&b=1", Some("GET /a?access_token=?&b=?")),
            ("POST /reset-p%61ssword/hunter2", Some("POST /reset-p%61ssword/…")),
            ("GET /fetch?url=http://bob:hunter2@h/", Some("GET /fetch?url=?")),
            ("GET /a?pwd=hunter2&hunter2", Some("GET /a?pwd=?")),
        ] {
            let template = split(text, Dialect::Http).template;
            assert_eq!(concealed(text, &template).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn gaps_filled_with_literals_are_the_text(text in "(GET|POST )?[/a-c1?&=_%.]{0,40}(_design/)?[/a1?&=]{0,9}") {
            for dialect in [Dialect::Http, Dialect::Couchdb] {
                let found = split(&text, dialect);
                let mut literals = found.literals.iter();
                let filled: String = found.template.chars().map(|c| if c == GAP { (*literals.next().unwrap()).to_owned() } else { c.to_string() }).collect();
                prop_assert_eq!(filled, text.as_str());
                prop_assert!(literals.next().is_none());
                let _ = (Place::of(&text), Place::of(&found.template), concealed(&text, &found.template));
            }
        }
    }
}
