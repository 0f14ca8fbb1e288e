//! The environment that fills what a target's URL leaves open: variables, and the files that engines' own clients read.

use crate::prelude::*;
use std::cell::OnceCell;
use std::env::{self, VarError};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// The environment of a target. A URL may ignore it, as those of throwaway servers do: then it is empty.
pub struct Environment {
    is_empty: bool,
    unreadable: OnceCell<String>,
}

impl Environment {
    /// The environment of this target.
    pub fn for_url(url: &TargetUrl) -> Self {
        Self { is_empty: url.ignores_environment, unreadable: OnceCell::new() }
    }

    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// A variable. One that is not UTF-8 is reported by [`check`](Self::check).
    pub fn get(&self, name: &str) -> Option<String> {
        if self.is_empty {
            return None;
        }
        match env::var(name) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                let _ = self.unreadable.set(name.to_owned());
                None
            }
        }
    }

    /// The result of reading a configuration, unless a variable that it needed could not be read.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) with the variable's name.
    pub fn check<T>(&self, read: Result<T>) -> Result<T> {
        match self.unreadable.get() {
            Some(name) => Err(Error::usage(format!("the variable {name} is not UTF-8"))
                .hint("write the value in UTF-8, or what it sets into the URL")),
            None => read,
        }
    }
}

/// The bytes of a file of settings, in which a comment of another encoding hides nothing, without a byte order mark; `None`
/// if there is no such file.
///
/// # Errors
/// The operating system's, if the file is there and cannot be read.
pub fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(all) => Ok(Some(all.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(all))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A part of a file's line as text.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) with its place, if it is not UTF-8.
pub fn text(part: &[u8], place: impl fmt::Display) -> Result<&str> {
    str::from_utf8(part)
        .map_err(|_| Error::usage(format!("{place}: it is not UTF-8")).hint("write the line in UTF-8"))
}
