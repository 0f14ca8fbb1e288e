//! Compressed packets: frames around the packets of a connection, once it has been opened.
//!
//! A frame has a header of 7 bytes: the length of its content (3), a number (1), and the length of the content before
//! compression (3), or 0 if it is not compressed (MySQL Source Code Documentation, "Compressed Packet"). Frames of both
//! ends are counted together, from 0 at each command. Packets begin and end anywhere in them.

use crate::prelude::*;
use crate::wire::{Peer, malformed, receive_by_read};
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use kurabe_core::compression::Compression;
use std::io::{self, IoSlice, Read, Write};
use zstd::stream::raw::{DParameter, Decoder, Operation as _};

const HEADER: usize = 7;
/// Shorter content is sent as it is, as MySQL's own clients do (`MIN_COMPRESS_LENGTH`).
const MIN: usize = 50;
/// The most content of a frame that is sent, in bytes. The protocol allows 16 MB.
const PIECE: usize = 1 << 20;
/// Bytes received at once.
const INPUT: usize = 64 * 1024;
/// zlib's default level, which is also that of MySQL's clients.
const ZLIB_LEVEL: u32 = 6;
/// The default level of MySQL's clients (`zstd-compression-level`). It is also agreed for what the server sends.
pub(super) const ZSTD_LEVEL: u8 = 3;
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
        let coder = match compression {
            Compression::Off => return Ok(()),
            Compression::Zlib => Coder::zlib(),
            Compression::Zstd => Coder::zstd().map_err(|error| {
                Error::new(ErrorKind::Environment, format!("zstd cannot be set up: {error}"))
            })?,
        };
        self.frames = Some(Box::new(Frames::new(coder)));
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
            Some(frames) => format!("{inner}, compressed by {}", frames.coder.name()),
        }
    }
}

/// The frames of a connection.
struct Frames {
    coder: Coder,
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
    fn new(coder: Coder) -> Self {
        Self {
            coder,
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
        self.out.resize(HEADER, 0);
        let compressed = bytes.len() >= MIN && self.coder.compress(bytes, &mut self.out)?;
        if !compressed {
            self.out.truncate(HEADER);
            self.out.extend_from_slice(bytes);
        }
        let length = (self.out.len() - HEADER).to_le_bytes();
        let content = if compressed { bytes.len() } else { 0 }.to_le_bytes();
        self.out[..3].copy_from_slice(&length[..3]);
        self.out[3] = self.number;
        self.out[4..HEADER].copy_from_slice(&content[..3]);
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
                self.coder.decompress(here, room)?
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
            while self.end - self.start < HEADER {
                if self.start == self.end && self.receive(from)? == 0 {
                    return Ok(false);
                }
                if self.end - self.start < HEADER {
                    self.fill(from)?;
                }
            }
            let Some(header) = self.input[self.start..].first_chunk::<HEADER>().copied() else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            self.start += HEADER;
            let number = header[3];
            // A server that closes an idle connection says so in a frame 0 that nobody asked for.
            if number != self.number && number != 0 {
                let expected = self.number;
                let what = format!("compressed frame out of order: number {number}, expected {expected}");
                return Err(invalid(what));
            }
            self.number = number.wrapping_add(1);
            let length = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            self.coded = length(&header[..3]);
            let content = length(&header[4..]);
            self.compressed = content > 0;
            self.expected = if self.compressed { content } else { self.coded };
            if self.compressed {
                self.coder.restart()?;
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

/// What compresses and decompresses.
enum Coder {
    Zlib { compress: Compress, decompress: Decompress },
    Zstd { compress: zstd::bulk::Compressor<'static>, decompress: Decoder<'static>, packed: Vec<u8> },
}

impl Coder {
    fn zlib() -> Self {
        let compress = Compress::new(flate2::Compression::new(ZLIB_LEVEL), true);
        Self::Zlib { compress, decompress: Decompress::new(true) }
    }

    fn zstd() -> io::Result<Self> {
        let compress = zstd::bulk::Compressor::new(i32::from(ZSTD_LEVEL))?;
        let mut decompress = Decoder::new()?;
        decompress.set_parameter(DParameter::WindowLogMax(LONGEST_WINDOW))?;
        Ok(Self::Zstd { compress, decompress, packed: Vec::new() })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Zlib { .. } => "zlib",
            Self::Zstd { .. } => "zstd",
        }
    }

    /// Appends the compressed content; false if it is not shorter, and then `out` has a part of it.
    fn compress(&mut self, content: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let before = out.len();
        match self {
            Self::Zlib { compress, .. } => {
                compress.reset();
                out.reserve(content.len());
                let status = compress.compress_vec(content, out, FlushCompress::Finish)?;
                Ok(status == Status::StreamEnd && out.len() - before < content.len())
            }
            Self::Zstd { compress, packed, .. } => {
                packed.clear();
                packed.reserve(zstd::zstd_safe::compress_bound(content.len()));
                compress.compress_to_buffer(content, packed)?;
                out.extend_from_slice(packed);
                Ok(packed.len() < content.len())
            }
        }
    }

    /// Starts the content of another frame.
    fn restart(&mut self) -> io::Result<()> {
        match self {
            Self::Zlib { decompress, .. } => {
                decompress.reset(true);
                Ok(())
            }
            Self::Zstd { decompress, .. } => decompress.reinit(),
        }
    }

    /// Decompresses a part; returns how many bytes were taken and made.
    fn decompress(&mut self, coded: &[u8], out: &mut [u8]) -> io::Result<(usize, usize)> {
        match self {
            Self::Zlib { decompress, .. } => {
                let (taken, made) = (decompress.total_in(), decompress.total_out());
                decompress
                    .decompress(coded, out, FlushDecompress::None)
                    .map_err(|error| invalid(format!("invalid zlib data: {error}")))?;
                let (taken, made) = (decompress.total_in() - taken, decompress.total_out() - made);
                Ok((taken as usize, made as usize))
            }
            Self::Zstd { decompress, .. } => {
                let done = decompress
                    .run_on_buffers(coded, out)
                    .map_err(|error| invalid(format!("invalid zstd data: {error}")))?;
                Ok((done.bytes_read, done.bytes_written))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::script::Script;
    use proptest::prelude::*;

    fn framed(compression: Compression, answers: Vec<u8>, piece: usize) -> Framed<Script> {
        let mut framed = Framed::plain(Script::in_pieces(answers, piece));
        framed.compress(compression).unwrap();
        framed
    }

    /// The frames of these writes, as the other end would send them.
    fn frames(compression: Compression, writes: &[Vec<u8>]) -> Vec<u8> {
        let mut framed = framed(compression, Vec::new(), usize::MAX);
        for bytes in writes {
            framed.write_all(bytes).unwrap();
        }
        framed.inner.sent
    }

    fn read_all(
        compression: Compression,
        answers: Vec<u8>,
        piece: usize,
        room: usize,
    ) -> io::Result<Vec<u8>> {
        let mut framed = framed(compression, answers, piece);
        let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
        loop {
            match framed.read(&mut buffer)? {
                0 => return Ok(all),
                got => all.extend_from_slice(&buffer[..got]),
            }
        }
    }

    const BOTH: [Compression; 2] = [Compression::Zlib, Compression::Zstd];

    proptest! {
        #[test]
        fn what_was_written_is_read_whatever_the_pieces(
            writes in prop::collection::vec((0usize..3_000, any::<u8>(), any::<bool>()), 1..6),
            piece in 1usize..5_000,
            room in 1usize..5_000,
        ) {
            let content = |(length, seed, random): &(usize, u8, bool)| -> Vec<u8> {
                let byte = |at: usize| (at * at + usize::from(*seed)) as u8;
                (0..*length).map(|at| if *random { byte(at) } else { *seed }).collect()
            };
            let writes: Vec<Vec<u8>> = writes.iter().map(content).collect();
            for compression in BOTH {
                let read = read_all(compression, frames(compression, &writes), piece, room).unwrap();
                prop_assert_eq!(&read, &writes.concat());
            }
        }
    }

    #[test]
    fn equal_bytes_are_compressed_and_short_or_random_ones_are_sent_as_they_are() {
        let mut rng = random_bytes();
        for compression in BOTH {
            let equal = frames(compression, &[vec![b'X'; 10_000]]);
            assert!(equal.len() < 200, "{compression}: {}", equal.len());
            assert_eq!(equal[4..7], [0x10, 0x27, 0], "the length before compression");
            let short = frames(compression, &[vec![b'X'; MIN - 1]]);
            assert_eq!((short.len(), &short[..7]), (HEADER + MIN - 1, &[49, 0, 0, 0, 0, 0, 0][..]));
            let random: Vec<u8> = (0..10_000).map(|_| rng()).collect();
            let sent = frames(compression, std::slice::from_ref(&random));
            assert_eq!((sent.len(), &sent[4..7]), (HEADER + random.len(), &[0, 0, 0][..]));
        }
    }

    /// Bytes that do not compress (xorshift, Marsaglia 2003).
    fn random_bytes() -> impl FnMut() -> u8 {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        }
    }

    #[test]
    fn frames_are_numbered_from_each_command_and_checked() {
        let content = [vec![1; 100], vec![2; 100]];
        let both = frames(Compression::Zlib, &content);
        let second = both.len() / 2;
        assert_eq!((both[3], both[second + 3]), (0, 1));
        let mut skipped = both.clone();
        skipped[second + 3] = 2;
        let error = read_all(Compression::Zlib, skipped, usize::MAX, 64).unwrap_err().to_string();
        assert!(error.contains("number 2, expected 1"), "{error}");
        // A command starts anew.
        let mut framed = framed(Compression::Zlib, Vec::new(), usize::MAX);
        framed.write_all(&content[0]).unwrap();
        framed.begin_command();
        framed.write_all(&content[1]).unwrap();
        assert_eq!(framed.inner.sent[second + 3], 0);
    }

    #[test]
    fn frame_with_a_false_length_or_cut_content_is_an_error() {
        for compression in BOTH {
            let right = frames(compression, &[vec![7; 1_000]]);
            for (at, change) in [(4, 1_u8), (4, 0xff), (5, 4)] {
                let mut wrong = right.clone();
                wrong[at] = wrong[at].wrapping_add(change);
                assert!(
                    read_all(compression, wrong, usize::MAX, 100).is_err(),
                    "{compression} {at} {change}"
                );
            }
            for cut in 1..right.len() {
                let error = read_all(compression, right[..cut].to_vec(), usize::MAX, 100).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{compression} {cut}");
            }
        }
    }

    #[test]
    fn parts_of_a_vectored_write_share_a_frame() {
        let mut framed = framed(Compression::Zstd, Vec::new(), usize::MAX);
        let (header, body) = ([1, 2, 3, 4], vec![9; 5_000]);
        let parts = [IoSlice::new(&header), IoSlice::new(&body)];
        assert_eq!(framed.write_vectored(&parts).unwrap(), 5_004);
        let sent = std::mem::take(&mut framed.inner.sent);
        assert!(sent.len() < 100, "{}", sent.len());
        assert_eq!(read_all(Compression::Zstd, sent, 3, 10).unwrap(), [&header[..], &body].concat());
    }

    mod fuzz {
        use super::*;

        #[test]
        fn any_frames_are_read_or_refused() {
            bolero::check!(name = "mysql-compressed-frames").for_each(|input: &[u8]| {
                for compression in BOTH {
                    let _ = read_all(compression, input.to_vec(), 7, 1_000);
                }
            });
        }
    }
}
