//! The trace of another program that a run is a part of.

/// The position of a run in a trace of another program (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub trace_id: [u8; 16],
    /// The span that the run is a child of.
    pub span_id: [u8; 8],
}

impl Parent {
    /// Reads `version-trace-span-flags`, as in the header `traceparent`; `None` if it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let parent = Self { trace_id: bytes(trace)?, span_id: bytes(span)? };
        let valid = bytes::<1>(version)? != [0xff]
            && bytes::<1>(flags).is_some()
            && parent.trace_id != [0; 16]
            && parent.span_id != [0; 8];
        valid.then_some(parent)
    }
}

/// As many bytes from hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut all = [0; N];
    for (byte, at) in all.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_read_as_the_standard_writes_it() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = Parent::parse(text).unwrap();
        assert_eq!((parent.trace_id[..2].to_vec(), parent.span_id[7]), (vec![0x0a, 0xf7], 0x31));
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319ö-b7ad6b7169203331-01",
        ] {
            assert_eq!(Parent::parse(wrong), None, "{wrong}");
        }
    }
}
