//! A file that a capture is made of, which may be a pipe: it is opened once.

use kurabe_core::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// How files of gzip, zstd, xz and bzip2 begin.
const PACKED: [&[u8]; 4] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, 0x37, 0x7a, 0x58], b"BZh"];

#[derive(Debug)]
pub struct Input {
    pub(crate) file: BufReader<File>,
    pub(crate) path: PathBuf,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is compressed.
    pub fn open(path: &Path) -> Result<Self> {
        let failed =
            |error: std::io::Error| Error::usage(format!("{} cannot be read: {error}", path.display()));
        let file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
        let mut input = Self { file, path: path.to_owned() };
        let start = input.file.fill_buf().map_err(failed)?;
        if PACKED.iter().any(|packed| start.starts_with(packed)) {
            return Err(Error::usage(format!("{} is compressed", path.display()))
                .hint("unpack it, or give what unpacks it, such as --from <(zcat FILE)"));
        }
        Ok(input)
    }
}
