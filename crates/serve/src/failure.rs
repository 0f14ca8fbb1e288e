//! Errors as pages.

use crate::answer::{Response, with_status};
use crate::page;
use hyper::StatusCode;
use kurabe_core::{Error, ErrorKind};
use kurabe_report::{Language, Message};
use maud::html;

/// The page of an error.
pub(crate) fn answer(error: &Error, language: Language) -> Response {
    let status = match error.kind() {
        ErrorKind::Usage => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::InUse => StatusCode::CONFLICT,
        ErrorKind::Damaged | ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let body = html! { pre { (error.to_string()) } p { a href="/" { (Message::AllRuns.text(language)) } } };
    with_status(status, page::layout(language, Message::DidNotWork.text(language), &body))
}
