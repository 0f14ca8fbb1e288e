//! The offer of TLS in MySQL's greeting. Without it, a client that does not insist connects without TLS.

use crate::decoder::TlsRefusal;

/// Bytes between the version and the flags: zero 1, connection 4, scramble 8, filler 1.
const TO_FLAGS: usize = 14;
/// `CLIENT_SSL` in the second byte of the flags.
const SSL: u8 = 0x08;

/// Clears the flag in passing.
#[derive(Default)]
pub(crate) struct MysqlTls {
    /// Bytes of the server so far, until the flags.
    at: usize,
    /// The position of the zero after the version.
    version_ends: Option<usize>,
    over: bool,
    refused: bool,
}

impl TlsRefusal for MysqlTls {
    fn received(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.over {
                return;
            }
            match (self.at, self.version_ends) {
                // The packet's header.
                (0..4, _) => {}
                // The protocol's version; an error has another first byte.
                (4, _) => self.over = *byte != 10,
                (at, None) => self.version_ends = (*byte == 0).then_some(at),
                (at, Some(end)) if at == end + TO_FLAGS + 1 => {
                    self.refused = *byte & SSL != 0;
                    *byte &= !SSL;
                    self.over = true;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn has_refused(&self) -> bool {
        self.refused
    }
}
