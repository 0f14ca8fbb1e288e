//! `kurabe list`.

use crate::catalogue;

pub(super) fn text() -> String {
    format!("{}\n{}", catalogue::experiments(), catalogue::targets())
}
