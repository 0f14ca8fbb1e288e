//! Limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

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

/// Advice to raise the limit of a file's size; empty if this process has none.
pub fn advice_on_file_size() -> String {
    let limit = getrlimit(Resource::Fsize).current;
    limit.map_or_else(String::new, |bytes| {
        format!("raise the limit of a file's size, which is {bytes} bytes here (ulimit -f)")
    })
}

/// Advice on a file that could not be written: `on_full_disk`, or on the limit of its size.
pub fn advice_on_writing(error: &io::Error, on_full_disk: &str) -> String {
    if error.kind() == io::ErrorKind::FileTooLarge { advice_on_file_size() } else { on_full_disk.to_owned() }
}
