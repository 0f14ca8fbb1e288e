//! Commands of memcached: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

use super::commands::{divides, words};
use kurabe_core::Result;
use kurabe_protocol::command::Command;
use kurabe_protocol::memcached::{self as protocol, place_of_size};

/// A request with one answer, after those that have none.
pub(super) const SYNC: &[u8] = b"version\r\n";

/// The keys among its words.
pub(super) fn keys(command: Command<'_>) -> impl Iterator<Item = String> {
    let (first, count) = match command.name() {
        "get" | "gets" => (0, usize::MAX),
        "gat" | "gats" => (1, usize::MAX),
        "stats" | "version" | "mn" => (0, 0),
        _ => (0, 1),
    };
    command.words().skip(first).take(count).map(|key| String::from_utf8_lossy(key).into_owned())
}

/// Flags of a meta get that change nothing: neither a time to live, nor whether an item is there, nor who may write it again.
const GET_FLAGS: &[u8] = b"bcfhklOqstv";
/// What statistics are asked for without changing what is counted.
const STATISTICS: [&[u8]; 5] = [b"items", b"slabs", b"sizes", b"settings", b"conns"];

/// Why a command may change something, by its arguments; `None` if it only reads.
pub(super) fn writes(command: &Command<'_>) -> Option<String> {
    let Ok(given) = words(command) else { return Some("its values are not known".to_owned()) };
    let command = command.name();
    let found = match command {
        "mg" => given.iter().skip(1).find(|flag| flag.first().is_none_or(|flag| !GET_FLAGS.contains(flag))),
        // A key and that it is in base64.
        "me" => given.iter().skip(1).find(|flag| **flag != b"b"),
        "stats" => given.iter().find(|what| !STATISTICS.contains(what)),
        _ => return None,
    };
    found.map(|word| format!("{command} with {} may change values", word.escape_ascii()))
}

/// Whether a part of a command would end its line or a word of it.
pub(super) fn is_malformed(command: &Command<'_>) -> bool {
    let has_value = place_of_size(command.name().as_bytes()).is_some();
    let words = command.values().count().saturating_sub(usize::from(has_value));
    let divides = |word: &[u8]| word.iter().any(|byte| divides(*byte));
    command.names().map(str::as_bytes).chain(command.words().take(words)).any(divides)
}

pub(super) fn push(out: &mut Vec<u8>, command: &Command<'_>) -> Result<()> {
    let (mut words, name) = (words(command)?, command.name().as_bytes());
    let value = if place_of_size(name).is_some() { words.pop() } else { None };
    words.extend(command.is_quiet().then_some(&b"noreply"[..]));
    protocol::push(out, name, &words, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::commands::Judged;
    use super::*;
    use kurabe_protocol::call::{Call, Language, Parameter};
    use kurabe_protocol::command::parts;

    #[test]
    fn command_is_judged_by_its_arguments_and_none_holds_another_line() {
        for (text, given, reads, malformed) in [
            ("get", &["a", "b"][..], true, false),
            ("mg", &["a", "v", "t", "Oabc"], true, false),
            ("mg", &["a", "v", "T30"], false, false),
            ("mg", &["a", "N0"], false, false),
            ("mg", &["a", "R30", "v"], false, false),
            ("mg", &["a", "E7"], false, false),
            ("mg", &["a", ""], false, false),
            ("mg", &["T30"], true, false),
            ("me", &["a"], true, false),
            ("gat", &["30", "a"], false, false),
            ("touch", &["a", "30"], false, false),
            ("stats", &[], true, false),
            ("stats", &["items"], true, false),
            ("stats", &["reset"], false, false),
            ("stats", &["detail", "on"], false, false),
            ("get", &["a\r\nset b 0 0 1\r\nx"], true, true),
            ("get", &["a b"], true, true),
            ("get\r\nflush_all", &["a"], false, true),
            ("set", &["a", "0", "0", "x\r\ny"], false, false),
            ("md", &["a"], false, false),
            ("ma", &["a"], false, false),
            ("shutdown", &[], false, false),
        ] {
            let parts = parts([text], given.iter().map(|word| word.as_bytes().to_vec()), false);
            let judged = Judged::read(&Call::Command(Command::read(&parts).unwrap()), Language::Memcached);
            assert_eq!(judged.writes.is_none(), reads, "{text} {given:?}: {judged:?}");
            assert_eq!(judged.is_malformed, malformed, "{text} {given:?}");
        }
        let unknown = Parameter::new(99, false, &b"x"[..]);
        for (language, name) in [(Language::Memcached, "get"), (Language::Redis, "GET")] {
            let parts = [parts([name], [b"a".to_vec()], false), vec![unknown.clone()]].concat();
            let judged = Judged::read(&Call::Command(Command::read(&parts).unwrap()), language);
            assert!(judged.is_malformed, "{name}");
        }
    }
}
