//! Limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to twice this number, or to the hard limit, where fewer may be open.
pub fn allow_open_files(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return;
    }
    let current = needed.saturating_mul(2).min(limit.maximum.unwrap_or(u64::MAX));
    // What cannot be raised stays: the next file that is opened says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
}

/// What to do where a file cannot grow: raise the limit of a file's size, if this process has one, or else `otherwise`.
pub fn advice_on_growth(otherwise: &str) -> String {
    match getrlimit(Resource::Fsize).current {
        Some(bytes) => format!("raise the limit of a file's size, which is {bytes} bytes here (ulimit -f)"),
        None => otherwise.to_owned(),
    }
}
