//! The head of a request: what is asked for, and whether the connection stays.

use crate::answer::{Answer, Ending};

/// The longest head, in bytes.
pub(crate) const MOST: usize = 8 * 1024;
/// The most header fields.
const FIELDS: usize = 64;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub method: Method,
    /// The path and what follows `?`.
    pub target: String,
    /// What becomes of the connection as far as the client is asked.
    pub ending: Ending,
    /// How many bytes it took.
    pub length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

/// Reads a head from the bytes that have come so far; nothing if more are needed.
///
/// # Errors
/// The answer to what is no request, or to one that is not taken; the connection closes after it.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<Head>, Answer> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(&bytes[..bytes.len().min(MOST)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= MOST => return Err(too_long()),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(too_long()),
        Err(httparse::Error::Version) => {
            return Err(Answer::says(505, "only HTTP/1.0 and HTTP/1.1 are spoken here"));
        }
        Err(error) => return Err(Answer::says(400, &format!("this is no HTTP request: {error}"))),
    };
    let old = request.version == Some(0);
    let mut stays = !old;
    let mut hosts = 0;
    for field in request.headers.iter() {
        let name = field.name;
        if name.eq_ignore_ascii_case("connection") {
            for word in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    stays = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") && old {
                    stays = true;
                }
            }
        } else if name.eq_ignore_ascii_case("host") {
            hosts += 1;
        } else if name.eq_ignore_ascii_case("transfer-encoding")
            || name.eq_ignore_ascii_case("content-length") && field.value.trim_ascii() != b"0"
        {
            return Err(Answer::says(413, "a request has no body here"));
        }
    }
    if hosts > 1 || hosts == 0 && !old {
        return Err(Answer::says(400, "a request of HTTP/1.1 names its host, once"));
    }
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => Method::Other,
    };
    let target = request.path.unwrap_or_default();
    // The absolute form, which proxies send.
    let target = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let ending = match (stays, old) {
        (false, _) => Ending::Closes,
        (true, true) => Ending::StaysOld,
        (true, false) => Ending::Stays,
    };
    Ok(Some(Head { method, target: target.to_owned(), ending, length }))
}

fn too_long() -> Answer {
    Answer::says(431, &format!("a request's head has at most {MOST} bytes and {FIELDS} fields here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str) -> Head {
        read(text.as_bytes()).unwrap().unwrap()
    }

    fn refused(text: &str) -> u16 {
        read(text.as_bytes()).unwrap_err().status
    }

    #[test]
    fn a_connection_stays_as_each_version_has_it() {
        for (text, ending) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ending::Stays),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", Ending::Closes),
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: te, close\r\n\r\n", Ending::Closes),
            ("GET / HTTP/1.0\r\n\r\n", Ending::Closes),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", Ending::StaysOld),
        ] {
            assert_eq!(head(text).ending, ending, "{text}");
        }
    }

    #[test]
    fn a_head_ends_where_it_ends_and_the_next_begins() {
        let text = "GET /kv/read?key=7 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n";
        let head = head(text);
        assert_eq!((head.method, head.target.as_str()), (Method::Get, "/kv/read?key=7"));
        assert!(text[head.length..].starts_with("GET / "));
        assert_eq!(super::read(&text.as_bytes()[..head.length - 1]).unwrap(), None);
    }

    #[test]
    fn a_proxy_may_name_the_whole_url() {
        assert_eq!(head("GET http://a:80/kv HTTP/1.1\r\nHost: a\r\n\r\n").target, "/kv");
        assert_eq!(head("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n").target, "/");
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_status() {
        assert_eq!(refused("\u{16}\u{3}\u{1}\0 hello"), 400);
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(refused("PRI * HTTP/2.0\r\n\r\n"), 505);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"), 413);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 413);
        assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(MOST))), 431);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100))), 431);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_head_that_is_cut_is_never_complete(cut in 0usize..52) {
            let text = b"GET /kv/read HTTP/1.1\r\nHost: a\r\nAccept: text/*\r\n\r\n";
            prop_assert_eq!(read(&text[..cut.min(text.len() - 1)]).unwrap(), None);
        }
    }
}
