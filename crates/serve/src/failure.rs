//! Errors as pages.

use crate::page;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kurabe_core::{Error, ErrorKind};
use maud::html;

/// An error that a page shows.
pub(crate) struct Failure(pub(crate) Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// The answer of a page that may fail.
pub(crate) type Answer<T = Response> = std::result::Result<T, Failure>;

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::InUse => StatusCode::CONFLICT,
            ErrorKind::Damaged | ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = html! { pre { (self.0.to_string()) } p { a href="/" { "All runs" } } };
        (status, page::layout("That did not work", &body)).into_response()
    }
}

pub(crate) async fn no_page() -> Failure {
    Failure(Error::new(ErrorKind::NotFound, "there is no such page"))
}

/// Does work that reads files or computes, beside the thread that answers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> kurabe_core::Result<T> + Send + 'static,
) -> Answer<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::new(ErrorKind::Internal, "the work for this page panicked").into()),
    }
}
