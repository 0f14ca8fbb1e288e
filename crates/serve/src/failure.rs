//! Errors as pages.

use crate::http::{Response, with_status};
use crate::page;
use hyper::StatusCode;
use kurabe_core::{Error, ErrorKind};
use kurabe_report::{Language, Message};
use maud::html;

/// An error that a page shows.
pub(crate) struct Failure(pub(crate) Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// The answer of a page that may fail.
pub(crate) type Answer = std::result::Result<Response, Failure>;

impl Failure {
    pub(crate) fn answer(self, language: Language) -> Response {
        let status = match self.0.kind() {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::InUse => StatusCode::CONFLICT,
            ErrorKind::Damaged | ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body =
            html! { pre { (self.0.to_string()) } p { a href="/" { (Message::AllRuns.text(language)) } } };
        with_status(status, page::layout(language, Message::DidNotWork.text(language), &body))
    }
}
