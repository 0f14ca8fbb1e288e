//! Requests of CouchDB: <https://docs.couchdb.org/en/stable/api/index.html>.

use super::commands::{divides, value};
use kurabe_capture::record::Parameter;
use kurabe_core::Result;
use kurabe_protocol::http::{Place, Request, has_id};

/// Methods of requests that are sent again.
const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "POST", "DELETE", "COPY"];
/// What is asked of a database whose answers depend on the server, or on what it chose.
const VOLATILE: [&str; 7] =
    ["_changes", "_explain", "_info", "_local_docs", "_purged_infos", "_search", "_shards"];

/// What is asked of a database or a design document with GET, and changes nothing. A rewrite may become any other request.
const GETS: [&str; 24] = [
    "", "_all_docs", "_auto_purge", "_bulk_get", "_changes", "_design_docs", "_explain", "_index", "_info",
    "_list", "_local_docs", "_nouveau", "_nouveau_info", "_partition", "_purged_infos",
    "_purged_infos_limit", "_revs_limit", "_search", "_search_disk_size", "_search_info", "_security",
    "_shards", "_show", "_view",
];

/// Why a request may change something.
pub(super) fn writes(request: &Request<'_>) -> Option<String> {
    let place = request.place();
    let is_get = ["GET", "HEAD"].contains(&place.method);
    let may_change = place.writes() || is_get && !GETS.contains(&place.endpoint);
    may_change.then(|| format!("{} {} may change documents", place.method, place.endpoint))
}

/// Whether a part of a request would end its line, a word of it, or its head, or a server may read its path as another one.
pub(super) fn is_malformed(request: &Request<'_>) -> bool {
    let path: Vec<&[u8]> = request.path().map(|part| part.bytes().unwrap_or_default()).collect();
    let last = path.len().saturating_sub(1);
    let is_other = |(at, part): (usize, &&[u8])| {
        let lower = String::from_utf8_lossy(part).to_ascii_lowercase().replace("%2e", ".");
        // An empty one is between two slashes.
        part.is_empty() && at > 0 && at < last || lower.split('\\').any(|part| [".", ".."].contains(&part))
    };
    let ends = |(_, field): (&str, &Parameter)| {
        let bytes = field.bytes().unwrap_or_default();
        bytes.iter().any(|byte| divides(*byte) && ![b' ', b'\t'].contains(byte))
    };
    let target = request.target();
    !request.is_exact()
        || request.hides_name()
        || !target.starts_with(b"/")
        || [request.method().as_bytes(), &target].concat().iter().any(|byte| divides(*byte))
        || path.iter().enumerate().any(is_other)
        || request.fields().any(ends)
}

/// Whether a request is not sent again: it is about the server or a database of its own, or its answer does not end.
pub(super) fn is_left_out(request: &Request<'_>) -> bool {
    let place = request.place();
    let is_feed =
        place.endpoint == "_changes" && request.argument("feed").is_some_and(|feed| feed != "normal");
    place.is_of_server() || is_feed || !METHODS.contains(&place.method)
}

/// What a request reads: its document, or the whole database. What it changes is also the database.
pub(super) fn names(request: &Request<'_>, changes: bool) -> Vec<String> {
    let Place { database, document, .. } = request.place();
    // All documents of a database, where it is not known which.
    let (database, all) = (database.to_owned(), format!("{database}/*"));
    match (document, changes) {
        (Some(document), true) => vec![format!("{database}/{document}"), database],
        (Some(document), false) => vec![format!("{database}/{document}"), all],
        (None, true) => vec![all, database],
        (None, false) => vec![database],
    }
}

/// Whether an answer depends on the server: on its sequences, its time, an id that it chose, or when it updates a view.
pub(super) fn is_volatile(request: &Request<'_>) -> bool {
    let place = request.place();
    let is_lazy = request.argument("update").is_some_and(|update| ["lazy", "false"].contains(&update));
    let is_stale = is_lazy || request.argument("stale").is_some();
    let is_conditional = request.fields().any(|(name, _)| name == "If-None-Match");
    let is_info = place.method != "POST" && place.document.is_none() && place.endpoint.is_empty();
    let makes = place.makes_document() || place.endpoint == "_bulk_docs";
    let body = request.body().and_then(Parameter::bytes);
    let has_id = request.chosen_id().is_some() || body.is_some_and(has_id);
    is_stale || is_conditional || is_info || VOLATILE.contains(&place.endpoint) || makes && !has_id
}

/// Whether the order of the rows of an answer is the server's. Those of `_bulk_docs` have their ids, and PouchDB Server sends
/// them as it has written them.
pub(super) fn is_unordered(request: &Request<'_>) -> bool {
    ["_find", "_bulk_docs"].contains(&request.place().endpoint)
}

/// Appends a request. The session names its server and its user, and puts its own prefix before the database. A document whose id
/// the server chose gets the id that it got when it was recorded.
pub(super) fn push(out: &mut Vec<u8>, request: &Request<'_>) -> Result<()> {
    let method = request.method();
    out.extend(format!("{method} ").bytes());
    out.extend(request.target());
    out.extend(b" HTTP/1.1\r\n");
    for (name, field) in request.fields() {
        out.extend(format!("{name}: ").bytes());
        out.extend(value(field)?.unwrap_or_default());
        out.extend(b"\r\n");
    }
    let body = request.body().map(value).transpose()?;
    let mut body = body.map(|body| body.unwrap_or_default().to_vec());
    if let (Some(body), Some(id)) = (&mut body, request.chosen_id()) {
        name(body, id);
    }
    if body.is_some() || ["PUT", "POST"].contains(&method) {
        out.extend(format!("Content-Length: {}\r\n", body.as_ref().map_or(0, Vec::len)).bytes());
    }
    out.extend(b"\r\n");
    out.extend(body.unwrap_or_default());
    Ok(())
}

/// Gives a document an id, after its other members: where a server puts one, since a revision may depend on their order.
fn name(document: &mut Vec<u8>, id: &[u8]) {
    let Some(end) = document.iter().rposition(|byte| *byte == b'}') else { return };
    let is_empty = document[..end].trim_ascii_end().ends_with(b"{");
    let start: &[u8] = if is_empty { b"" } else { b"," };
    document.splice(end..end, [start, b"\"_id\":\"", id, b"\""].concat());
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::http::{BODY, CHOSEN_ID, parts};

    /// The parts of a request with this line.
    fn parts_of(line: &str) -> Vec<Parameter> {
        let (method, target) = line.split_once(' ').unwrap();
        parts(method, target, true)
    }

    #[test]
    fn requests_are_told_apart_by_what_they_change_and_whether_they_can_be_sent_again() {
        for (text, writes, left_out) in [
            ("GET /shop/17", false, false),
            ("PUT /shop/17", true, false),
            ("POST /shop/_find", false, false),
            ("POST /shop/_bulk_docs", true, false),
            ("GET /shop/_changes?since=0", false, false),
            ("GET /shop/_changes?feed=longpoll&since=0", false, true),
            ("POST /_session", true, true),
            ("GET /", false, true),
            ("GET /_users/bob", false, true),
            ("CONNECT …", true, true),
            ("GET /shop/_design/x/_rewrite/y", true, false),
            ("GET /shop/_design/x/_show/y", false, false),
            ("GET /shop/_design/x/_update/y", true, false),
            ("GET /shop/_temp_view", true, false),
            ("POST /shop/_purge", true, false),
            ("POST /shop/_compact", true, false),
            ("POST /shop/_bulk_get", false, false),
            ("POST /shop/_all_docs", false, false),
            ("POST /shop/_design/x/_view/y", false, false),
            ("POST /shop/_design/x/_update/y", true, false),
            ("PATCH /shop/17", true, true),
            ("get /shop/17", true, true),
        ] {
            let parts = parts_of(text);
            let request = Request::read(&parts).unwrap();
            assert_eq!(
                (super::writes(&request).is_some(), is_left_out(&request)),
                (writes, left_out),
                "{text}"
            );
        }
    }

    #[test]
    fn request_that_holds_another_one_is_malformed() {
        let other = "x\r\n\r\nDELETE /shop HTTP/1.1";
        for (text, kind, value, malformed) in [
            ("GET /shop/17", 1, "application/json", false),
            ("GET /shop/17", 1, other, true),
            ("POST /shop/_find", 0, other, false),
            ("GET /shop/17 HTTP/1.1\r\n\r\nDELETE /shop", 1, "", true),
            ("GET /shop/ 17", 1, "", true),
            ("POST /shop/_find/../_bulk_docs", 0, "{}", true),
            ("POST /shop/_find/%2E%2e/_bulk_docs", 0, "{}", true),
            ("GET //shop", 1, "", true),
            ("GET shop", 1, "", true),
            ("GET /shop/17#", 1, "", true),
            ("GET /shop/%5fdesign/x/%5Frewrite/y", 1, "", true),
            ("GET /shop/_design/x/%5frewrite/y", 1, "", true),
            ("GET /%5fusers/bob", 1, "", true),
            ("GET /shop/_changes?fee%64=continuous", 1, "", true),
            ("GET /shop/a%2Fb%5f?rev=1%2d", 1, "", false),
            ("PUT /shop/17", 99, "x", true),
        ] {
            let mut parts = parts_of(text);
            parts.push(Parameter::new(kind, false, value.as_bytes()));
            assert_eq!(is_malformed(&Request::read(&parts).unwrap()), malformed, "{text}: {value}");
        }
        // Whatever a file has as one part of a path.
        for part in ["_find/../_bulk_docs", "..", "%2e.", "a\\..\\b", "17 HTTP/1.1"] {
            let mut parts = parts_of("POST /shop");
            parts.push(Parameter { value: part.as_bytes().into(), ..parts[2].clone() });
            assert!(is_malformed(&Request::read(&parts).unwrap()), "{part}");
        }
        // Parts that are divided elsewhere than their line.
        let (base, key) = (parts_of("POST /shop"), parts_of("GET /shop?x"));
        let part = |text: &str| Parameter::new(base[2].kind, false, text.as_bytes());
        let divided = [
            vec![base[0].clone(), base[1].clone(), part("shop?"), part("_find")],
            [&base[..], &[key[3].clone(), part("_find")]].concat(),
        ];
        for parts in divided {
            let request = Request::read(&parts).unwrap();
            assert!(super::writes(&request).is_none() && is_malformed(&request), "{}", request.text());
        }
    }

    #[test]
    fn change_of_a_document_races_with_readers_of_it_and_of_its_database_only() {
        let races = |change: &str, read: &str| {
            let (change, read) = (parts_of(change), parts_of(read));
            let changed = names(&Request::read(&change).unwrap(), true);
            names(&Request::read(&read).unwrap(), false).iter().any(|name| changed.contains(name))
        };
        for (read, expected) in [
            ("GET /shop/a?rev=1", true),
            ("PUT /shop/a", true),
            ("GET /shop/b", false),
            ("POST /shop/_find", true),
            ("GET /other/_all_docs", false),
        ] {
            assert_eq!(races("PUT /shop/a", read), expected, "{read}");
        }
        assert!(
            races("POST /shop/_bulk_docs", "GET /shop/b") && !races("POST /shop/_bulk_docs", "GET /other/b")
        );
    }

    #[test]
    fn request_is_sent_with_its_fields_and_the_length_of_its_body() {
        let parameter = |kind, text: &str| Parameter::new(kind, false, text.as_bytes());
        let of = |line: &str, given: Vec<Parameter>| {
            let (mut out, parts) = (Vec::new(), [parts_of(line), given].concat());
            push(&mut out, &Request::read(&parts).unwrap()).unwrap();
            String::from_utf8(out).unwrap()
        };
        let found = of("PUT /a/b", vec![parameter(BODY, "{}"), parameter(6, "1-x")]);
        assert_eq!(found, "PUT /a/b HTTP/1.1\r\nIf-Match: 1-x\r\nContent-Length: 2\r\n\r\n{}");
        let made = |body: &str| of("POST /a", vec![parameter(BODY, body), parameter(CHOSEN_ID, "1")]);
        assert!(made("{ }").ends_with("Content-Length: 12\r\n\r\n{ \"_id\":\"1\"}"));
        assert!(made("{\"a\":1}").ends_with("{\"a\":1,\"_id\":\"1\"}"));
        assert_eq!(of("PUT /a", Vec::new()), "PUT /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(of("GET /a", Vec::new()), "GET /a HTTP/1.1\r\n\r\n");
        let path = "/a/_design/x/_view/y?key=%22a%22&reduce=false&z";
        assert_eq!(of(&format!("GET {path}"), Vec::new()), format!("GET {path} HTTP/1.1\r\n\r\n"));
    }
}
