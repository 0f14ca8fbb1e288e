//! Compressed packets: frames around the packets of a connection, once it has been opened.
//!
//! Frames of both ends are counted together, from 0 at each command. Packets begin and end anywhere in them.

use crate::compression::{Compressor, Method, refused};
use crate::prelude::*;
use crate::wire::{Peer, malformed, receive_by_read};
use flate2::{Decompress, FlushDecompress};
use kurabe_core::compression::Compression;
use kurabe_protocol::mysql::frame::Compressed;
use kurabe_protocol::{Found, Header as _};
use std::io::{self, IoSlice, Read, Write};
use zstd::stream::raw::{DParameter, Decoder, Operation as _};

/// Shorter content is sent as it is, as MySQL's own clients do (`MIN_COMPRESS_LENGTH`).
const MIN: usize = 50;
/// The most content of a frame that is sent, in bytes. The protocol allows 16 MB.
const PIECE: usize = 1 << 20;
/// Bytes received at once.
const INPUT: usize = 64 * 1024;
/// The memory for decompression that the server may ask for, as a power of 2: the 16 MB of the longest frame.
const LONGEST_WINDOW: u32 = 24;

/// A stream that may be compressed.
pub(crate) struct Framed<S> {
    inner: S,
    frames: Option<Box<Frames>>,
}

impl<S> Framed<S> {
    /// A stream that is not compressed yet.
    pub(super) fn plain(inner: S) -> Self {
        Self { inner, frames: None }
    }

    pub(super) fn inner(&self) -> &S {
        &self.inner
    }

    /// The stream itself, to start TLS on it.
    pub(super) fn into_inner(self) -> S {
        self.inner
    }

    /// Compresses from now on.
    pub(super) fn compress(&mut self, compression: Compression) -> Result<()> {
        let method = match compression {
            Compression::Off => return Ok(()),
            Compression::Zlib => Method::Zlib(Method::ZLIB_LEVEL),
            Compression::Zstd => Method::Zstd,
        };
        let decompressor = match method {
            Method::Zlib(_) => Decompressor::Zlib(Decompress::new(true)),
            Method::Zstd => Decompressor::zstd().map_err(|error| refused(&error))?,
        };
        self.frames = Some(Box::new(Frames::new(Compressor::new(method)?, decompressor)));
        Ok(())
    }
}

impl<S: Peer> Read for Framed<S> {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.frames {
            None => self.inner.read(out),
            Some(frames) => frames.read(&mut self.inner, out),
        }
    }
}

impl<S: Peer> Write for Framed<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.frames {
            None => self.inner.write(bytes),
            Some(frames) => frames.write(&mut self.inner, bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(frames) = &mut self.frames else { return self.inner.write_vectored(slices) };
        // One frame for all: a header of its own would be an incompressible frame.
        let mut together = std::mem::take(&mut frames.together);
        together.clear();
        for slice in slices {
            let room = PIECE - together.len();
            together.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        let written = frames.write(&mut self.inner, &together);
        frames.together = together;
        written
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<S: Peer> Peer for Framed<S> {
    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        match self.frames {
            None => self.inner.receive(most, out),
            Some(_) => receive_by_read(self, most, out),
        }
    }

    #[inline]
    fn begin(&mut self) -> io::Result<()> {
        self.inner.begin()
    }

    fn ready(&mut self) {
        self.inner.ready();
    }

    fn begin_command(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.number = 0;
        }
    }

    fn most(&self) -> u64 {
        self.inner.most()
    }

    fn transport(&self) -> String {
        let inner = self.inner.transport();
        match &self.frames {
            None => inner,
            Some(frames) => format!("{inner}, compressed by {}", frames.compressor.method().name()),
        }
    }
}

/// The frames of a connection.
struct Frames {
    compressor: Compressor,
    decompressor: Decompressor,
    /// The number of the next frame, of either end.
    number: u8,
    /// The frame to send, and parts of its content, put together.
    out: Vec<u8>,
    together: Vec<u8>,
    /// Received bytes, from `start` to `end`.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the current frame that are not decoded yet, …
    coded: usize,
    /// … what they are decoded to, …
    expected: usize,
    /// … and whether they are compressed.
    compressed: bool,
}

impl Frames {
    fn new(compressor: Compressor, decompressor: Decompressor) -> Self {
        Self {
            compressor,
            decompressor,
            number: 0,
            out: Vec::new(),
            together: Vec::new(),
            input: vec![0; INPUT],
            start: 0,
            end: 0,
            coded: 0,
            expected: 0,
            compressed: false,
        }
    }

    /// Sends the content, or the start of it, as a frame; returns how much.
    fn write<S: Peer>(&mut self, to: &mut S, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        self.out.clear();
        self.out.resize(Compressed::LENGTH, 0);
        let mut content = 0;
        if bytes.len() >= MIN {
            self.compressor.append(bytes, &mut self.out)?;
            content = bytes.len();
        }
        // What does not become shorter is sent as it is.
        if content == 0 || self.out.len() - Compressed::LENGTH >= content {
            self.out.truncate(Compressed::LENGTH);
            self.out.extend_from_slice(bytes);
            content = 0;
        }
        let length = self.out.len() - Compressed::LENGTH;
        let header = Compressed { length, sequence: self.number, content };
        self.out[..Compressed::LENGTH].copy_from_slice(&header.bytes());
        self.number = self.number.wrapping_add(1);
        to.write_all(&self.out)?;
        Ok(bytes.len())
    }

    /// Decodes at least a byte; 0 at the end of the connection.
    fn read<S: Peer>(&mut self, from: &mut S, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if self.expected == 0 && self.coded == 0 && !self.header(from)? {
                return Ok(0);
            }
            if self.start == self.end && self.coded > 0 {
                self.fill(from)?;
            }
            let here = &self.input[self.start..self.end.min(self.start + self.coded)];
            // The last bytes of compressed content may be a checksum, which is decoded to nothing.
            let mut none = [0];
            let room = if self.expected == 0 { &mut none[..] } else { &mut *out };
            let (taken, made) = if self.compressed {
                self.decompressor.decompress(here, room)?
            } else {
                let length = here.len().min(room.len());
                room[..length].copy_from_slice(&here[..length]);
                (length, length)
            };
            if made > self.expected || (taken, made) == (0, 0) {
                return Err(invalid("a compressed frame whose content has another length than it says"));
            }
            self.start += taken;
            self.coded -= taken;
            self.expected -= made;
            if made > 0 {
                return Ok(made);
            }
        }
    }

    /// Reads the header of the next frame with content; false at the end of the connection.
    fn header<S: Peer>(&mut self, from: &mut S) -> io::Result<bool> {
        while self.coded == 0 {
            let header = loop {
                match Compressed::find(&self.input[self.start..self.end]) {
                    Found::Header(header) => break header,
                    _ if self.start < self.end => self.fill(from)?,
                    _ if self.receive(from)? == 0 => return Ok(false),
                    _ => {}
                }
            };
            self.start += Compressed::LENGTH;
            let number = header.sequence;
            // A server that closes an idle connection says so in a frame 0 that nobody asked for.
            if number != self.number && number != 0 {
                let expected = self.number;
                let what = format!("compressed frame out of order: number {number}, expected {expected}");
                return Err(invalid(what));
            }
            self.number = number.wrapping_add(1);
            self.coded = header.length;
            self.compressed = header.content > 0;
            self.expected = if self.compressed { header.content } else { header.length };
            if self.compressed {
                self.decompressor.restart()?;
            }
        }
        Ok(true)
    }

    /// Receives more of a frame that has begun.
    fn fill<S: Peer>(&mut self, from: &mut S) -> io::Result<()> {
        match self.receive(from)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn receive<S: Peer>(&mut self, from: &mut S) -> io::Result<usize> {
        if self.start > 0 {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let got = from.read(&mut self.input[self.end..])?;
        self.end += got;
        Ok(got)
    }
}

/// A violation of the protocol, which becomes the error of the connection.
fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, malformed(what))
}

/// What decompresses a frame as it arrives.
enum Decompressor {
    Zlib(Decompress),
    Zstd(Decoder<'static>),
}

impl Decompressor {
    fn zstd() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(LONGEST_WINDOW))?;
        Ok(Self::Zstd(decoder))
    }

    /// Starts the content of another frame.
    fn restart(&mut self) -> io::Result<()> {
        match self {
            Self::Zlib(decompress) => {
                decompress.reset(true);
                Ok(())
            }
            Self::Zstd(decoder) => decoder.reinit(),
        }
    }

    /// Decompresses a part; returns how many bytes were taken and made.
    fn decompress(&mut self, coded: &[u8], out: &mut [u8]) -> io::Result<(usize, usize)> {
        match self {
            Self::Zlib(decompress) => {
                let (taken, made) = (decompress.total_in(), decompress.total_out());
                decompress
                    .decompress(coded, out, FlushDecompress::None)
                    .map_err(|error| invalid(format!("invalid zlib data: {error}")))?;
                let (taken, made) = (decompress.total_in() - taken, decompress.total_out() - made);
                Ok((taken as usize, made as usize))
            }
            Self::Zstd(decoder) => {
                let done = decoder
                    .run_on_buffers(coded, out)
                    .map_err(|error| invalid(format!("invalid zstd data: {error}")))?;
                Ok((done.bytes_read, done.bytes_written))
            }
        }
    }
}

#[cfg(test)]
mod tests;
