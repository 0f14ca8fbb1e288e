//! The client's codecs: a value is compressed and encoded as text before it is stored, and decoded after it is read.
//!
//! Buffers and compressor states are reused from one value to the next.

use crate::prelude::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compressor {
    None,
    /// zlib's deflate at level 6 (gzip's default level).
    Gzip,
    /// Zstandard at level 3, its default.
    Zstd,
    Lz4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Binary,
    Base64,
}

/// A compressor with its reused state.
enum State {
    None,
    Gzip(Compress, Box<Decompress>),
    Zstd(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>),
    Lz4,
}

/// Compresses and encodes, and reverses both. Each client has one.
pub(crate) struct Codec {
    state: State,
    encoding: Encoding,
    length: usize,
    packed: Vec<u8>,
    encoded: Vec<u8>,
}

impl Codec {
    /// A codec for values of `length` bytes.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if a compressor cannot be made (out of memory).
    pub(crate) fn new(compressor: Compressor, encoding: Encoding, length: usize) -> Result<Self> {
        let failed = |e: std::io::Error| Error::new(ErrorKind::Environment, format!("zstd: {e}"));
        let state = match compressor {
            Compressor::None => State::None,
            Compressor::Gzip => {
                State::Gzip(Compress::new(Compression::new(6), true), Box::new(Decompress::new(true)))
            }
            Compressor::Zstd => State::Zstd(
                zstd::bulk::Compressor::new(3).map_err(failed)?,
                zstd::bulk::Decompressor::new().map_err(failed)?,
            ),
            Compressor::Lz4 => State::Lz4,
        };
        Ok(Self { state, encoding, length, packed: Vec::new(), encoded: Vec::new() })
    }

    /// Whether values are stored unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.state, State::None) && self.encoding == Encoding::Binary
    }

    /// The stored form of `value`, valid until the next call.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if a compressor fails.
    pub(crate) fn encode<'a>(&'a mut self, value: &'a [u8]) -> Result<&'a [u8]> {
        let Self { state, packed, encoded, .. } = self;
        let bytes = if pack(state, value, packed)? { &packed[..] } else { value };
        if self.encoding == Encoding::Binary {
            return Ok(bytes);
        }
        encoded.resize(bytes.len().div_ceil(3) * 4, 0);
        let n = STANDARD.encode_slice(bytes, encoded).map_err(|e| internal(&e))?;
        Ok(&encoded[..n])
    }

    /// The value whose stored form is `stored`, valid until the next call.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) if [`Codec::encode`] cannot have made `stored`.
    fn decode<'a>(&'a mut self, stored: &'a [u8]) -> Result<&'a [u8]> {
        let Self { state, encoding, packed, encoded, .. } = self;
        let bytes = if *encoding == Encoding::Base64 {
            encoded.resize(stored.len().div_ceil(4) * 3, 0);
            let n = STANDARD
                .decode_slice(stored, encoded)
                .map_err(|e| Error::mismatch(format!("the returned value is not base64: {e}")))?;
            &encoded[..n]
        } else {
            stored
        };
        if matches!(state, State::None) {
            return Ok(bytes);
        }
        // One byte more than the value may have, so that a longer value is detected rather than truncated.
        packed.resize(self.length + 1, 0);
        let broken = |e: &dyn std::fmt::Display| {
            Error::mismatch(format!("the returned value does not decompress: {e}"))
        };
        let n = match state {
            State::None => 0,
            State::Lz4 => lz4_flex::block::decompress_into(bytes, packed).map_err(|e| broken(&e))?,
            State::Zstd(_, zstd) => zstd.decompress_to_buffer(bytes, packed).map_err(|e| broken(&e))?,
            State::Gzip(_, inflate) => {
                inflate.reset(true);
                let end =
                    inflate.decompress(bytes, packed, FlushDecompress::Finish).map_err(|e| broken(&e))?;
                if end != Status::StreamEnd {
                    return Err(broken(&"unexpected end"));
                }
                inflate.total_out() as usize
            }
        };
        Ok(&packed[..n])
    }

    /// Decodes `stored` into `out`, without a second buffer and without a copy.
    pub(crate) fn decode_into(&mut self, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.is_plain() {
            out.clear();
            out.extend_from_slice(stored);
            return Ok(());
        }
        std::mem::swap(self.decoded(), out);
        let length = self.decode(stored).map(<[u8]>::len);
        std::mem::swap(self.decoded(), out);
        out.truncate(length?);
        Ok(())
    }

    /// The buffer into which [`Codec::decode`] writes.
    fn decoded(&mut self) -> &mut Vec<u8> {
        if matches!(self.state, State::None) { &mut self.encoded } else { &mut self.packed }
    }
}

/// Compresses a value; returns whether it did.
fn pack(state: &mut State, value: &[u8], packed: &mut Vec<u8>) -> Result<bool> {
    let n = match state {
        State::None => return Ok(false),
        State::Lz4 => {
            packed.resize(lz4_flex::block::get_maximum_output_size(value.len()), 0);
            lz4_flex::block::compress_into(value, packed).map_err(|e| internal(&e))?
        }
        State::Zstd(zstd, _) => {
            packed.resize(zstd::zstd_safe::compress_bound(value.len()), 0);
            zstd.compress_to_buffer(value, &mut packed[..]).map_err(|e| internal(&e))?
        }
        State::Gzip(deflate, _) => {
            deflate.reset();
            // Deflate's worst case: stored blocks with 5 bytes for each 16 kB, and the zlib frame.
            packed.resize(value.len() + value.len() / 1_000 + 64, 0);
            let end = deflate.compress(value, packed, FlushCompress::Finish).map_err(|e| internal(&e))?;
            if end != Status::StreamEnd {
                return Err(internal(&"deflate's output was longer than its bound"));
            }
            deflate.total_out() as usize
        }
    };
    packed.truncate(n);
    Ok(true)
}

fn internal(e: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("compressing a value: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Content, Kind};
    use proptest::prelude::*;

    const COMPRESSORS: [Compressor; 4] =
        [Compressor::None, Compressor::Gzip, Compressor::Zstd, Compressor::Lz4];
    const ENCODINGS: [Encoding; 2] = [Encoding::Binary, Encoding::Base64];

    #[test]
    fn every_codec_round_trips_repeatedly() {
        for length in [1, 100, 1_000, 100_000] {
            for kind in [Kind::Text, Kind::Random] {
                let content = Content::new(kind, 1, length);
                for (compressor, encoding) in COMPRESSORS.iter().flat_map(|c| ENCODINGS.map(|e| (*c, e))) {
                    let mut codec = Codec::new(compressor, encoding, length).unwrap();
                    for key in 0..3 {
                        let mut value = Vec::new();
                        content.write(key, 0, &mut value);
                        let stored = codec.encode(&value).unwrap().to_vec();
                        assert!(encoding == Encoding::Binary || stored.is_ascii());
                        assert_eq!(
                            codec.decode(&stored).unwrap(),
                            value,
                            "{compressor:?} {encoding:?} {length}"
                        );
                        let mut out = b"something longer or shorter".to_vec();
                        codec.decode_into(&stored, &mut out).unwrap();
                        assert!(out == value, "{compressor:?} {encoding:?} {length}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_value_never_panics(stored: Vec<u8>, c in 0usize..4, e in 0usize..2) {
            let mut codec = Codec::new(COMPRESSORS[c], ENCODINGS[e], 500).unwrap();
            let _ = codec.decode(&stored);
        }

        #[test]
        fn truncated_value_is_detected(cut in 1usize..400, c in 0usize..4) {
            let content = Content::new(Kind::Text, 1, 2_000);
            let mut value = Vec::new();
            content.write(1, 0, &mut value);
            let mut codec = Codec::new(COMPRESSORS[c], Encoding::Binary, 2_000).unwrap();
            let stored = codec.encode(&value).unwrap().to_vec();
            let decoded = codec.decode(&stored[..stored.len() - cut.min(stored.len())]);
            prop_assert!(decoded.is_err() || content.check(1, 0, decoded.unwrap()).is_err());
        }
    }
}
