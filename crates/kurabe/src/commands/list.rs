//! `kurabe list`: what there is to run, and where.

use crate::catalogue;

pub(super) fn text() -> String {
    format!("{}\n{}", catalogue::experiments(), catalogue::targets())
}
