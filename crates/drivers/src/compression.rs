//! Compression of what is sent, by zlib and zstd, as the protocols of MySQL and MongoDB have it.

use crate::prelude::*;
use flate2::{Compress, FlushCompress, Status};
use std::io;

/// A method of compression, with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Zlib(u32),
    Zstd,
}

impl Method {
    /// zlib's default level.
    pub(crate) const ZLIB_LEVEL: u32 = 6;
    /// zstd's default level. A client of MySQL announces the level at which the server is to compress, too.
    pub(crate) const ZSTD_LEVEL: u8 = 3;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zlib(_) => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

/// What compresses.
pub(crate) struct Compressor {
    method: Method,
    coder: Coder,
}

enum Coder {
    Zlib(Compress),
    /// With its output, reused.
    Zstd(zstd::bulk::Compressor<'static>, Vec<u8>),
}

impl Compressor {
    pub(crate) fn new(method: Method) -> Result<Self> {
        let coder = match method {
            Method::Zlib(level) => Coder::Zlib(Compress::new(flate2::Compression::new(level), true)),
            Method::Zstd => Coder::Zstd(
                zstd::bulk::Compressor::new(Method::ZSTD_LEVEL.into()).map_err(|error| refused(&error))?,
                Vec::new(),
            ),
        };
        Ok(Self { method, coder })
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// Appends the compressed content.
    pub(crate) fn append(&mut self, content: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.coder {
            Coder::Zlib(compress) => {
                compress.reset();
                loop {
                    let (read, before) = (compress.total_in() as usize, out.len());
                    out.reserve(content.len() / 2 + 64);
                    match compress.compress_vec(&content[read..], out, FlushCompress::Finish)? {
                        Status::StreamEnd => return Ok(()),
                        _ if out.len() > before => {}
                        _ => return Err(io::Error::other("zlib makes no progress")),
                    }
                }
            }
            Coder::Zstd(compress, packed) => {
                packed.clear();
                packed.reserve(zstd::zstd_safe::compress_bound(content.len()));
                compress.compress_to_buffer(content, packed)?;
                out.extend_from_slice(packed);
                Ok(())
            }
        }
    }
}

/// The error of a library that cannot be set up.
pub(crate) fn refused(error: &io::Error) -> Error {
    Error::new(ErrorKind::Environment, format!("zstd cannot be set up: {error}"))
}
