//! Escaping of foreign text: a server's error or version, a process's name, a run file.
//!
//! Control characters in such text could move the terminal's cursor, forge a line of output or hide a part of it. The
//! text is escaped once where it comes in ([`Error`](crate::Error)s escape their own), so that recorded and displayed
//! text is clean.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The text of a file without the byte order mark at its beginning, which some editors write.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The message of a panic.
pub fn of_panic(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The first characters of a text, and an ellipsis in place of the others.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Whether a text is like a pattern, in which these signs stand for any text and any character, and the last one has the next sign
/// stand for itself.
pub fn is_like(text: &str, pattern: &str, [any, one, escape]: [char; 3]) -> bool {
    let (text, mut signs) = (text.chars().collect::<Vec<_>>(), pattern.chars());
    // A sign with whether it stands for itself.
    let pattern: Vec<(char, bool)> = std::iter::from_fn(|| {
        let sign = signs.next()?;
        Some(if sign == escape { (signs.next().unwrap_or(sign), true) } else { (sign, false) })
    })
    .collect();
    let (mut at, mut of) = (0, 0);
    // The last sign of any text, and how much of the text it covers: only that one needs to cover more.
    let mut last: Option<(usize, usize)> = None;
    while let Some(character) = text.get(at) {
        match pattern.get(of) {
            Some((sign, false)) if *sign == any => {
                last = Some((of, at));
                of += 1;
            }
            Some((sign, literal)) if sign == character || (*sign, *literal) == (one, false) => {
                (at, of) = (at + 1, of + 1);
            }
            _ => {
                let Some((before, covered)) = last else { return false };
                last = Some((before, covered + 1));
                (at, of) = (covered + 1, before + 1);
            }
        }
    }
    pattern.get(of..).unwrap_or_default().iter().all(|sign| *sign == (any, false))
}

/// The text with each non-displayable character escaped as in Rust: `
/// `, `\u{1b}`. These are control characters (C0, DEL, C1), line and paragraph separators, and bidirectional formatting characters.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unprintable(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// The same for an owned text.
pub fn into_printable(text: String) -> String {
    match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// A JSON text whose strings are [printable] after parsing. Invalid JSON stays invalid.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| byte < 0x7f && byte != b'\\') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    let mut rest = json.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            // The escape sequences of characters below it are JSON's own.
            if is_unprintable(character) && character >= '\u{7f}' {
                let _ = write!(out, "\\\\u{{{:x}}}", u32::from(character));
            } else {
                out.push(character);
            }
            continue;
        }
        match rest.next() {
            Some(letter @ ('b' | 'f' | 'n' | 'r' | 't')) => out.extend(['\\', '\\', letter]),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                match code.and_then(char::from_u32).filter(|meant| is_unprintable(*meant)) {
                    Some(meant) => {
                        let _ = write!(out, "\\\\u{{{:x}}}", u32::from(meant));
                    }
                    None => out.extend(["\\u", &digits]),
                }
            }
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    Cow::Owned(out)
}

/// Whether a character controls how text is displayed and is not displayed itself.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_like_a_pattern() {
        for (pattern, text, expected) in [
            ("test\\_%", "shop", false),
            ("test\\_%", "test_shop", true),
            ("test\\_%", "testshop", false),
            ("sh_p", "shop", true),
            ("%", "shop", true),
            ("sh%", "shop", true),
            ("%p", "shops", false),
            ("shop", "shops", false),
            ("caf_", "café", true),
            ("%a%a%a%a%a%a%a%a%a%a%b", &"a".repeat(60), false),
            ("100\\%", "100%", true),
            ("100\\%", "1000", false),
        ] {
            assert_eq!(is_like(text, pattern, ['%', '_', '\\']), expected, "{pattern} {text}");
        }
        for (pattern, texts, others) in [
            ("order*", &["order", "orders"][..], &["border", "Order"][..]),
            ("*_log", &["a_log", "_log"], &["a_logs", "log"]),
            ("t?", &["t1", "té"], &["t", "t12"]),
            ("a*b*c", &["abc", "axxbyyc", "abbc"], &["ab", "acb"]),
            ("a\\b", &["a\\b"], &["ab"]),
        ] {
            let is_of = |text: &&str| is_like(text, pattern, ['*', '?', '\0']);
            assert!(texts.iter().all(is_of) && !others.iter().any(is_of), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_control_character(text in any::<String>(), more in "[\u{0}-\u{20}\u{7f}-\u{a0}\u{2020}-\u{2070}\\\\]{0,20}") {
            for text in [text.clone(), more.clone(), text + &more] {
                let shown = printable(&text);
                prop_assert!(!shown.contains(is_unprintable), "{shown:?}");
                prop_assert!(matches!(printable(&shown), Cow::Borrowed(_)));
                let json = serde_json::to_string(&text).unwrap();
                let read: String = serde_json::from_str(&printable_json(&json)).unwrap();
                prop_assert!(!read.contains(is_unprintable), "{read:?}");
                let ascii: String = json.chars().map(|c| if c.is_ascii() { c.to_string() } else {
                    let mut units = [0; 2];
                    let escaped = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
                    escaped.collect::<Vec<_>>().concat()
                }).collect();
                prop_assert_eq!(serde_json::from_str::<String>(&printable_json(&ascii)).unwrap(), read);
            }
        }
    }

    #[test]
    fn printable_text_is_unchanged() {
        for text in ["", "a b", "µ – “ü” 日本 👩‍👧", r"C:\new"] {
            assert!(matches!(printable(text), Cow::Borrowed(_)), "{text}");
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(serde_json::from_str::<String>(&printable_json(&json)).unwrap(), text);
        }
        assert_eq!(printable("a\n\u{1b}[2Jb\u{202e}\u{9b}"), r"a\n\u{1b}[2Jb\u{202e}\u{9b}");
    }

    #[test]
    fn invalid_json_stays_invalid() {
        for text in [r#""\u12"#, r#""\"#, "\"\n\"", r#""\uzzzz""#, "\"\u{1}\""] {
            assert!(serde_json::from_str::<String>(&printable_json(text)).is_err(), "{text:?}");
        }
    }
}
