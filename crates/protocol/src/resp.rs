//! RESP, versions 2 and 3, of Redis and Valkey: <https://redis.io/docs/latest/develop/reference/protocol-spec/>. Requests are
//! arrays of texts; answers begin with a line that has their type.

/// The maximum announced length. A server can allow more, but does not send such answers.
const MAX: u64 = 1 << 34;

/// The first line of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A value that ends with the line, such as `OK`.
    Simple,
    Int(i64),
    Error(&'a [u8]),
    Null,
    /// A text of this length in bytes follows, then the end of a line.
    Text(u64),
    /// The same, of an error.
    LongError(u64),
    /// This many values follow, of an array or a set.
    Items(u64),
    /// This many pairs of values follow.
    Pairs(u64),
    /// This many values follow that no request asks for.
    Push(u64),
    /// This many pairs follow, and then the value whose attributes they are.
    Attributes(u64),
}

impl<'a> Line<'a> {
    /// Reads a line, without its end; `None` if no value begins so.
    #[inline]
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let (kind, rest) = line.split_first()?;
        let length = || u64::try_from(number(rest)?).ok().filter(|length| *length <= MAX);
        Some(match kind {
            b'+' | b',' | b'#' | b'(' => Self::Simple,
            b'-' => Self::Error(rest),
            b':' => Self::Int(number(rest)?),
            // The null of RESP2, which some servers still use.
            b'$' | b'*' if rest == b"-1" => Self::Null,
            b'_' if rest.is_empty() => Self::Null,
            b'$' | b'=' => Self::Text(length()?),
            b'!' => Self::LongError(length()?),
            b'*' | b'~' => Self::Items(length()?),
            b'%' => Self::Pairs(length()?),
            b'>' => Self::Push(length()?),
            b'|' => Self::Attributes(length()?),
            _ => return None,
        })
    }
}

/// A whole number.
#[inline]
pub fn number(word: &[u8]) -> Option<i64> {
    // `parse` accepts a plus sign too.
    std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'))?.parse().ok()
}
