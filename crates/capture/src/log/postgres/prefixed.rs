//! Entries of PostgreSQL's format stderr: lines after `log_line_prefix`, whose parts are found by their forms (manual, "What to
//! Log"). Lines of one message that follow its first begin with a tab; DETAIL, CONTEXT and STATEMENT have a prefix of their own
//! (`send_message_to_server_log` and `append_with_tabs` of `elog.c`).

use super::Line;
use crate::log::lines::{self, LARGEST, Lines};
use kurabe_core::Result;

/// What an entry begins with.
const SEVERITIES: [&str; 12] = [
    "LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4",
    "DEBUG5",
];
/// What belongs to the entry before.
const PARTS: [&str; 7] = ["DETAIL", "HINT", "QUERY", "CONTEXT", "STATEMENT", "LOCATION", "BACKTRACE"];
/// The format does not say which error it was, unless the prefix has `%e`, which looks like other numbers.
const UNKNOWN: &str = "unknown";
/// The length of `2026-11-27 12:00:00`.
const TIME: usize = 19;

/// Whether an entry begins with this line.
pub(super) fn begins(line: &str) -> bool {
    Part::of(line).is_some_and(|part| SEVERITIES.contains(&part.name))
}

pub(super) fn next(lines: &mut Lines) -> Result<Option<Line>> {
    let Some(text) = lines.take()? else { return Ok(None) };
    let Some(first) = Part::of(&text).filter(|part| SEVERITIES.contains(&part.name)) else {
        return Ok(Some(Line::default()));
    };
    let mut line = first.line();
    let (session, mut name, mut said) =
        (line.session_id.clone(), first.name.to_owned(), first.text.to_owned());
    loop {
        let (size, next) = match lines.peek() {
            Some(next) if next.starts_with('\t') => (next.len(), None),
            Some(next) => match Part::of(next) {
                Some(part) if PARTS.contains(&part.name) && part.session() == Some(session.as_str()) => {
                    (0, Some((part.name.to_owned(), part.text.to_owned())))
                }
                _ => break,
            },
            None => break,
        };
        if said.len() + size > LARGEST {
            return Err(lines.wrong("it has an entry of more than 64 MB"));
        }
        let taken = lines.take()?.unwrap_or_default();
        match next {
            None => {
                said.push('\n');
                said.push_str(taken.strip_prefix('\t').unwrap_or(&taken));
            }
            Some((next, text)) => {
                line.say(&name, said);
                (name, said) = (next, text);
            }
        }
    }
    line.say(&name, said);
    Ok(Some(line))
}

impl Line {
    /// Sets a part of the entry.
    fn say(&mut self, name: &str, said: String) {
        match name {
            "DETAIL" => self.detail = said,
            "CONTEXT" => self.context = said,
            "STATEMENT" => self.statement = said,
            "HINT" | "QUERY" | "LOCATION" | "BACKTRACE" => {}
            _ => self.message = said,
        }
    }
}

/// A first line.
struct Part<'a> {
    time: &'a str,
    /// The prefix before and after the time.
    prefix: [&'a str; 2],
    name: &'a str,
    text: &'a str,
}

impl<'a> Part<'a> {
    fn of(line: &'a str) -> Option<Self> {
        if line.starts_with('\t') {
            return None;
        }
        let (before, text) = line.split_once(":  ")?;
        let prefix = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        let name = &before[prefix.len()..];
        if !SEVERITIES.contains(&name) && !PARTS.contains(&name) {
            return None;
        }
        let begin = prefix.as_bytes().windows(TIME).position(is_time)?;
        let clock = begin + TIME;
        let part = |c: char| !(c.is_ascii_digit() || c == '.');
        let mut end = clock + prefix[clock..].find(part)?;
        // The zone, which is a name or a number.
        if let Some(zone) = prefix[end..].strip_prefix(' ') {
            let is_other = |c: char| !(c.is_ascii_alphanumeric() || c == '+' || c == '-');
            end += 1 + zone.find(is_other).unwrap_or(zone.len());
        }
        let prefix = [&prefix[..begin], &prefix[end..]];
        let part = Self { time: &line[begin..end], prefix, name, text };
        part.session().is_some().then_some(part)
    }

    /// The process (`%p`) in brackets, or else the first number; or else the session (`%c`).
    fn session(&self) -> Option<&'a str> {
        let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let bracketed = || {
            self.prefix
                .into_iter()
                .flat_map(|part| part.split('[').skip(1))
                .find_map(|rest| rest.split_once(']').map(|(word, _)| word).filter(is_number))
        };
        let between = |c: char| !(c.is_ascii_alphanumeric() || c == '.');
        let words = || self.prefix.into_iter().flat_map(move |part| part.split(between));
        let is_session = |word: &&str| {
            word.split_once('.').is_some_and(|(began, process)| {
                let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
                began.len() == 8 && !process.is_empty() && is_hex(began) && is_hex(process)
            })
        };
        bracketed().or_else(|| words().find(is_session)).or_else(|| words().find(is_number))
    }

    fn named(&self, names: &[&str]) -> Option<&'a str> {
        self.prefix.into_iter().flat_map(|part| part.split([' ', ',', ';'])).find_map(|word| {
            let (name, value) = word.split_once('=')?;
            names
                .contains(&name.trim_start_matches(['[', '(', ':']))
                .then(|| value.trim_end_matches([']', ')', ':']))
        })
    }

    fn line(&self) -> Line {
        // `user@database`, as Debian's prefix has it.
        let words = self.prefix.into_iter().flat_map(|part| part.split([' ', ',', ':']));
        let joined = words.filter_map(|word| word.split_once('@')).find(|(user, _)| !user.is_empty());
        let user = self.named(&["user", "usr", "u"]).or(joined.map(|(user, _)| user));
        let database =
            self.named(&["db", "database", "dbname", "d"]).or(joined.map(|(_, database)| database));
        let known =
            |word: Option<&str>| word.filter(|word| *word != "[unknown]").unwrap_or_default().to_owned();
        Line {
            timestamp: self.time.to_owned(),
            user: known(user),
            dbname: known(database),
            session_id: self.session().unwrap_or_default().to_owned(),
            error_severity: self.name.to_owned(),
            state_code: UNKNOWN.to_owned(),
            ..Line::default()
        }
    }
}

/// Whether these bytes are as `2026-11-27 12:00:00`.
fn is_time(bytes: &[u8]) -> bool {
    let form = b"0000-00-00 00:00:00";
    bytes.iter().zip(form).all(|(byte, of)| if *of == b'0' { byte.is_ascii_digit() } else { byte == of })
        && std::str::from_utf8(bytes).is_ok_and(|text| lines::time(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_prefix_are_found_by_their_forms() {
        for (prefix, expected) in [
            ("2026-11-27 12:00:00.123 UTC [42] ", "2026-11-27 12:00:00.123 UTC|42||"),
            ("2026-11-27 12:00:00.123 CET [42] app@shop ", "2026-11-27 12:00:00.123 CET|42|app|shop"),
            ("2026-11-27 12:00:00 UTC:10.0.0.7(5011):app@shop:[42]:", "2026-11-27 12:00:00 UTC|42|app|shop"),
            (
                "2026-11-27 12:00:00 +03 [42]: [7-1] user=app,db=shop,app=psql,client=::1 ",
                "2026-11-27 12:00:00 +03|42|app|shop",
            ),
            ("[42] 2026-11-27 12:00:00.5 UTC [unknown]@[unknown] ", "2026-11-27 12:00:00.5 UTC|42||"),
            ("2026-11-27 12:00:00.1 UTC 6927e0f0.2a ", "2026-11-27 12:00:00.1 UTC|6927e0f0.2a||"),
        ] {
            let text = format!("{prefix}LOG:  statement: SELECT 'ERROR:  none'");
            let part = Part::of(&text).unwrap_or_else(|| panic!("{text}"));
            let line = part.line();
            let found = [part.time, &line.session_id, &line.user, &line.dbname].join("|");
            assert_eq!(found, expected, "{prefix}");
            assert_eq!((part.name, part.text), ("LOG", "statement: SELECT 'ERROR:  none'"));
        }
        // The end of a character of several bytes is no place to cut.
        let accented = "2026-11-27 12:00:00 UTC [4] éLOG:  x";
        assert_eq!(Part::of(accented).map(|part| part.name), Some("LOG"));
        for none in [
            "LOG:  no prefix",
            "\t2026-11-27 12:00:00 UTC [4] LOG:  within a value",
            "2026-11-27 12:00:00 UTC LOG:  x",
        ] {
            assert!(Part::of(none).is_none(), "{none}");
        }
    }
}
