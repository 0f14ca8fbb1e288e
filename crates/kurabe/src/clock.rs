//! The time since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
