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

/// Appends a request: an array of words.
pub fn push(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[inline]
pub fn number(word: &[u8]) -> Option<i64> {
    // `parse` accepts a plus sign too.
    std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the specification's examples.
    #[test]
    fn each_kind_of_line_is_read_and_what_is_none_is_refused() {
        for (line, expected) in [
            ("+OK", Line::Simple),
            (",1.23", Line::Simple),
            ("#t", Line::Simple),
            ("(3492890328409238509324850943850943825024385", Line::Simple),
            ("-ERR unknown", Line::Error(b"ERR unknown")),
            (":-5", Line::Int(-5)),
            ("_", Line::Null),
            ("$-1", Line::Null),
            ("*-1", Line::Null),
            ("$5", Line::Text(5)),
            ("=15", Line::Text(15)),
            ("!21", Line::LongError(21)),
            ("*3", Line::Items(3)),
            ("~5", Line::Items(5)),
            ("%2", Line::Pairs(2)),
            (">4", Line::Push(4)),
            ("|1", Line::Attributes(1)),
        ] {
            assert_eq!(Line::read(line.as_bytes()), Some(expected), "{line}");
        }
        for line in ["", "HTTP/1.1 400", ":", ":1x", "$-2", "$?", "$17179869185", "*-5", "_x"] {
            assert_eq!(Line::read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn only_whole_numbers_in_range_are_parsed() {
        for (word, expected) in [
            (&b"-1"[..], Some(-1)),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"9223372036854775808", None),
            (b"", None),
            (b"+1", None),
            (b"1 ", None),
        ] {
            assert_eq!(number(word), expected, "{word:?}");
        }
    }
}
