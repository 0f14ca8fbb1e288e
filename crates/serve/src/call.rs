//! A request that was let in, and answers.

use crate::Shared;
use http_body_util::channel::Channel;
use http_body_util::{Either, Full};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use kurabe_report::Language;
use std::convert::Infallible;
use std::sync::Arc;

/// An answer: a whole text, or events as they come.
pub(crate) type Response = hyper::Response<Either<Full<Bytes>, Channel<Bytes, Infallible>>>;

/// A request that was let in.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    /// The part of the path that names a run, a job, a suite or an experiment; empty in other paths.
    pub(crate) name: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// The values of the query.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    /// The language of the answer.
    pub(crate) fn language(&self) -> Language {
        language(&self.shared, &self.headers)
    }

    /// The fields of the form.
    pub(crate) fn form(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(&self.body).into_owned().collect()
    }
}

/// The language of what is said of runs: that which the page was started with, or the first of the browser's that there is.
pub(crate) fn language(shared: &Shared, headers: &HeaderMap) -> Language {
    let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Browsers send them in the order of preference.
    let mut names = accepted.split(',').filter_map(|tag| tag.trim().split(['-', ';']).next());
    shared.language.or_else(|| names.find_map(Language::named)).unwrap_or_default()
}

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
