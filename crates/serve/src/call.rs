//! A request that was let in.

use crate::shared::Shared;
use hyper::body::Bytes;
use hyper::header::{ACCEPT_LANGUAGE, HeaderMap};
use kurabe_report::Language;
use std::sync::Arc;

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
