//! Commands of Redis, Valkey and memcached.

use super::{Fields, Translated, name};
use crate::forms::Value;
use crate::rows::{KEY, VALUE, Verb, translated};
use kurabe_protocol::command::Command;

/// The collection of keys that have no name of several.
const KEYS: &str = "keys";
/// From so many characters on, a key of hexadecimal digits alone is no name.
const TOKEN: usize = 16;

/// A command on the row of one key.
pub(super) fn translate(command: &Command<'_>) -> Translated {
    let (words, command): (Vec<&[u8]>, _) = (command.words().collect(), command.name());
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let value = |bytes: &[u8], is_added: bool| (VALUE.to_owned(), text(bytes), is_added);
    let last = words.last().copied().unwrap_or_default();
    let only =
        |words_of_one: usize| if words.len() > words_of_one { Err("several keys at once") } else { Ok(()) };
    let mut columns = Vec::new();
    let (key, verb, fields) = match command {
        "GET" | "GETEX" | "HGETALL" | "mg" => (word(0), Verb::Select, Vec::new()),
        "MGET" | "get" | "gets" => {
            only(1)?;
            (word(0), Verb::Select, Vec::new())
        }
        "gat" | "gats" => {
            only(2)?;
            (last, Verb::Select, Vec::new())
        }
        "SET" if words.iter().skip(2).any(|word| word.eq_ignore_ascii_case(b"XX")) => {
            (word(0), Verb::Update, vec![value(word(1), false)])
        }
        "SET" | "SETNX" | "GETSET" => (word(0), Verb::Put, vec![value(word(1), false)]),
        "MSET" | "SETEX" | "PSETEX" | "set" | "add" | "cas" | "ms" => {
            only(if command == "MSET" { 2 } else { usize::MAX })?;
            (word(0), Verb::Put, vec![value(last, false)])
        }
        "replace" => (word(0), Verb::Update, vec![value(last, false)]),
        "DEL" | "UNLINK" | "GETDEL" => {
            only(1)?;
            (word(0), Verb::Delete, Vec::new())
        }
        "delete" | "md" => (word(0), Verb::Delete, Vec::new()),
        "INCR" | "DECR" | "ma" => (word(0), Verb::Update, vec![value(b"1", true)]),
        "INCRBY" | "DECRBY" | "INCRBYFLOAT" | "incr" | "decr" => {
            (word(0), Verb::Update, vec![value(word(1), true)])
        }
        "HGET" | "HMGET" => {
            let names = words.iter().skip(1).map(|word| field(word));
            columns = names.collect::<Result<_, _>>()?;
            (word(0), Verb::Select, Vec::new())
        }
        "HSET" | "HMSET" | "HSETNX" => {
            (word(0), Verb::Put, written(words.get(1..).unwrap_or_default(), false)?)
        }
        "HINCRBY" | "HINCRBYFLOAT" => {
            (word(0), Verb::Update, written(words.get(1..).unwrap_or_default(), true)?)
        }
        other => return Err(why_not(other)),
    };
    let key = std::str::from_utf8(key).ok().filter(|key| !key.is_empty()).ok_or("a key that is no text")?;
    let (table, id) = divided(key);
    if verb == Verb::Select && columns.is_empty() && command != "HGETALL" {
        columns.push(VALUE.to_owned());
    }
    translated(verb, columns, table, vec![(KEY.to_owned(), id)], fields)
}

/// The fields of a hash with their values.
fn written(words: &[&[u8]], is_added: bool) -> Result<Fields, &'static str> {
    let one = |pair: &[&[u8]]| match pair {
        [name, value] => Ok((field(name)?, text(value), is_added)),
        _ => Err("a field of a hash without a value"),
    };
    words.chunks(2).map(one).collect()
}

/// The name of a field of a hash. One with a digit is the key of something.
fn field(word: &[u8]) -> Result<String, &'static str> {
    let is_name = !word.is_empty() && word.is_ascii() && !word.iter().any(u8::is_ascii_digit);
    is_name.then(|| name(&String::from_utf8_lossy(word))).ok_or("a field of a hash whose name is a value")
}

/// A value. What is no text is one of the same length, and equal for equal bytes.
fn text(bytes: &[u8]) -> Value {
    let replaced = || bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    Value::Text(std::str::from_utf8(bytes).map_or_else(|_| replaced(), str::to_owned).into())
}

/// The collection of a key, and the rest of the key. Parts with a digit are no names: `user:17:cart` is 17 of `user_cart`.
/// Where no part has one, the last is none: `user:bob`.
fn divided(key: &str) -> (String, Value) {
    // Braces say where a cluster keeps a key.
    let bare = key.replace(['{', '}'], "");
    let whole = || (KEYS.to_owned(), Value::Text(key.into()));
    if bare.len() >= TOKEN && bare.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return whole();
    }
    let sign = [':', '/', '|', '_', '-', '.'].into_iter().find(|sign| bare.contains(*sign)).unwrap_or(':');
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    for (place, part) in bare.split(sign).enumerate() {
        let has_digit = part.contains(|c: char| c.is_ascii_digit());
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        match place {
            0 if has_digit && (letters.is_empty() || !letters.chars().all(char::is_alphabetic)) => {
                return whole();
            }
            0 if has_digit => {
                names.push(letters);
                ids.push(part.get(letters.len()..).unwrap_or_default());
            }
            _ if has_digit => ids.push(part),
            _ => names.push(part),
        }
    }
    if ids.is_empty() && names.len() > 1 {
        ids.extend(names.pop());
    }
    match ids.as_slice() {
        [] => whole(),
        // Zeros before a number are its width.
        [one] if let Ok(number) = one.parse::<i64>() => (name(&names.join("_")), Value::Int(number)),
        several => (name(&names.join("_")), Value::Text(several.join(":").into())),
    }
}

/// Why a command is no statement on a row.
fn why_not(command: &str) -> &'static str {
    let begins = |with: &[&str]| with.iter().any(|with| command.starts_with(with));
    match command {
        _ if begins(&["EXPIRE", "PEXPIRE", "TTL", "PTTL", "PERSIST", "TOUCH", "touch"]) => "a time to live",
        _ if begins(&["EVAL", "FCALL", "SCRIPT", "FUNCTION"]) => "a script",
        _ if begins(&["PUBLISH", "SPUBLISH"]) => "a message to subscribers",
        _ if begins(&["Z", "BZ"]) => "a sorted set",
        _ if begins(&[
            "SADD", "SREM", "SMEMBERS", "SISMEMBER", "SMISMEMBER", "SCARD", "SPOP", "SRAND", "SINTER",
            "SUNION", "SDIFF", "SMOVE", "SSCAN",
        ]) =>
        {
            "a set"
        }
        _ if begins(&["L", "BL", "BR", "RPUSH", "RPOP"]) => "a list",
        _ if begins(&["X"]) => "a stream",
        _ => "not a get, insert, update or delete by one key",
    }
}
