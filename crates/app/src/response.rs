//! Responses.

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use kurabe_core::{Error, ErrorKind};

/// The time after which a refused client may try again, in seconds.
const RETRY_AFTER: u32 = 1;
const SERVER: &str = "kurabe";

/// A response whose body is in memory.
pub(crate) type Response = hyper::Response<Full<Bytes>>;

/// The type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Json,
    /// A record as it is in the database.
    Record,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json => "application/json",
            Self::Record => "application/octet-stream",
        }
    }
}

pub(crate) fn new(status: StatusCode, kind: Kind, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind.name()));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
    }
    response
}

/// One line of text.
pub(crate) fn text(status: StatusCode, text: &str) -> Response {
    new(status, Kind::Text, format!("{text}\n"))
}

/// A response that ends the connection.
pub(crate) fn last(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An error, with the status that tells a client whether to try again.
pub(crate) fn of_error(error: &Error) -> Response {
    let status = match error.kind() {
        ErrorKind::Unreachable
        | ErrorKind::Denied
        | ErrorKind::InUse
        | ErrorKind::Limit
        | ErrorKind::Server
        | ErrorKind::ConnectionLost
        | ErrorKind::Timeout => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Usage => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    text(status, &error.to_string().replace(['\r', '\n'], " "))
}

/// The last response of a connection as bytes, for what `hyper` does not answer: a line of text.
pub(crate) fn raw(status: StatusCode, text: &str) -> Vec<u8> {
    let retry = if status == StatusCode::SERVICE_UNAVAILABLE {
        format!("Retry-After: {RETRY_AFTER}\r\n")
    } else {
        String::new()
    };
    let (kind, length) = (Kind::Text.name(), text.len() + 1);
    format!(
        "HTTP/1.1 {status}\r\nServer: {SERVER}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         {retry}Connection: close\r\n\r\n{text}\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_database_asks_to_retry_and_wrong_data_does_not() {
        let gone = of_error(&Error::new(ErrorKind::Unreachable, "nothing listens\r\nthere"));
        assert_eq!(gone.status(), 503);
        assert_eq!(gone.headers()[header::RETRY_AFTER], "1");
        let wrong = of_error(&Error::mismatch("record 7 is wrong"));
        assert_eq!(wrong.status(), 500);
        assert!(!wrong.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn raw_response_is_valid_and_closes() {
        let text = String::from_utf8(raw(StatusCode::SERVICE_UNAVAILABLE, "3 are open")).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
        assert!(text.contains("\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"), "{text}");
        assert!(text.contains("Content-Length: 11\r\n") && text.ends_with("\r\n\r\n3 are open\n"), "{text}");
    }
}
