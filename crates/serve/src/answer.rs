//! Answers.

use http_body_util::channel::Channel;
use http_body_util::{Either, Full};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use std::convert::Infallible;

/// An answer: a whole text, or events as they come.
pub(crate) type Response = hyper::Response<Either<Full<Bytes>, Channel<Bytes, Infallible>>>;

/// An answer of this type.
pub(crate) fn of_type(kind: &'static str, text: String) -> Response {
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from(text))));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// An answer of plain text.
pub(crate) fn text(text: String) -> Response {
    of_type("text/plain; charset=utf-8", text)
}

/// An answer that leads to another page.
pub(crate) fn redirect(to: &str) -> Response {
    let mut answer = with_status(StatusCode::SEE_OTHER, text(String::new()));
    // A path that no header can hold is no path of a page.
    let to = HeaderValue::from_str(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, to);
    answer
}

/// The answer with another status.
pub(crate) fn with_status(status: StatusCode, mut answer: Response) -> Response {
    *answer.status_mut() = status;
    answer
}
