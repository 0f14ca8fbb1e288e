//! Requests and answers begin with a line of words; a value may follow.

/// The largest value that a server can be set to take (`-I`), in bytes.
pub const MAX: u64 = 1 << 30;

/// The place of a value's size among the words after a command; `None` if no value follows.
pub fn place_of_size(command: &[u8]) -> Option<usize> {
    match command {
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => Some(3),
        b"ms" => Some(1),
        _ => None,
    }
}

/// Appends a request: a command, its words without the size of its value, and its value, if it has one.
pub fn push(out: &mut Vec<u8>, command: &[u8], words: &[&[u8]], value: Option<&[u8]>) {
    let size = value.map_or(0, <[u8]>::len).to_string();
    let place = place_of_size(command).unwrap_or(usize::MAX).min(words.len());
    let (before, after) = words.split_at(place);
    let size = value.is_some().then_some(size.as_bytes());
    out.extend_from_slice(command);
    for word in before.iter().copied().chain(size).chain(after.iter().copied()) {
        out.push(b' ');
        out.extend_from_slice(word);
    }
    out.extend_from_slice(b"\r\n");
    if let Some(value) = value {
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

/// The size of a value. The first versions of `ms` wrote S before it.
pub fn size(word: &[u8]) -> Option<u64> {
    length(word.strip_prefix(b"S").unwrap_or(word))
}

/// A number of at most [`MAX`].
#[inline]
pub fn length(word: &[u8]) -> Option<u64> {
    // `parse` accepts a plus sign too.
    let word = std::str::from_utf8(word).ok().filter(|word| !word.starts_with('+'))?;
    word.parse().ok().filter(|length| *length <= MAX)
}
