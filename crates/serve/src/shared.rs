//! What all pages share.

use crate::access::Access;
use crate::follow::Followed;
use crate::jobs::Jobs;
use crate::verdicts::Verdicts;
use kurabe_record::{Store, Trusted};
use kurabe_report::Language;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) jobs: Jobs,
    pub(crate) access: Access,
    pub(crate) trusted: Trusted,
    pub(crate) followed: Followed,
    pub(crate) verdicts: Verdicts,
    pub(crate) language: Option<Language>,
    /// Set when the page ends: event streams end too.
    pub(crate) stop: Arc<AtomicBool>,
}
