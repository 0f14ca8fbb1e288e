//! The answer of an application to a request: text, as `docs/app.openapi.yaml` describes it. From the few numbers in
//! it and the known data, the client computes the expected answer and compares it byte for byte.

use super::codes::{Codes, PREFIX};
use super::draws;
use super::user::User;
use crate::prelude::*;
use std::io::Write;

/// The fields of a user that are shown: all but the password.
const SHOWN: [usize; 8] = [0, 1, 3, 4, 5, 6, 7, 8];

/// What a request did, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestResult {
    pub(super) user: u64,
    /// The user's version when it logged in.
    pub(super) version: u64,
    /// The number of its line in the log.
    pub(super) line: u64,
    /// The user's version after the change.
    pub(super) changed: Option<u64>,
    /// The searched prefix.
    pub(super) prefix: Option<[u8; PREFIX]>,
}

/// `user`, a tab, and the fields separated by tabs.
pub(super) fn user(user: &User, out: &mut Vec<u8>) {
    out.extend_from_slice(b"user");
    for position in SHOWN {
        out.push(b'\t');
        // Writing to memory does not fail.
        let _ = match user.field(position) {
            Value::Text(text) => out.write_all(text.as_bytes()),
            Value::Int(n) | Value::Time(n) => write!(out, "{n}"),
            Value::Bool(truth) => write!(out, "{truth}"),
            _ => Ok(()),
        };
    }
    out.push(b'\n');
}

/// `log`, the line's number, the user's, the address and the time, separated by tabs. Address and time are those of
/// `origin`: the line's number, unless clients choose them.
pub(super) fn line(seed: u64, number: u64, origin: u64, user: u64, out: &mut Vec<u8>) {
    let mut address = String::new();
    draws::address(seed, origin, &mut address);
    let _ = writeln!(out, "log\t{number}\t{user}\t{address}\t{}", draws::time(origin));
}

/// The whole answer, for a user with the version of its log-in. `origin`: see [`line`].
pub(super) fn request(
    seed: u64,
    codes: &Codes,
    result: &RequestResult,
    origin: u64,
    logged_in: &User,
    out: &mut Vec<u8>,
) {
    user(logged_in, out);
    line(seed, result.line, origin, result.user, out);
    if let Some(version) = result.changed {
        let _ = writeln!(out, "changed\t{version}");
    }
    let Some(prefix) = result.prefix else { return };
    let towns = codes.of_prefix(&prefix);
    let _ = writeln!(out, "found\t{}\t{}", String::from_utf8_lossy(&prefix), towns.len());
    for town in towns {
        out.extend_from_slice(&town.code);
        for text in [&town.prefecture, &town.city, &town.name, &town.kana] {
            out.push(b'\t');
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'\n');
    }
}

/// Parses the numbers of an answer; the comparison with the expected answer covers the rest.
///
/// # Errors
/// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) if they are missing.
pub(super) fn read(body: &[u8]) -> Result<RequestResult> {
    let wrong = "the answer does not state which user logged in and what was written";
    parse(body).ok_or_else(|| Error::mismatch(wrong))
}

fn parse(body: &[u8]) -> Option<RequestResult> {
    let text = std::str::from_utf8(body).ok()?;
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<&str>>()).peekable();
    let mut parts = |name: &str| lines.next_if(|line| line.first() == Some(&name));
    let number = |parts: &[&str], at: usize| parts.get(at)?.parse::<u64>().ok();
    let (user, line) = (parts("user")?, parts("log")?);
    let changed = match parts("changed") {
        Some(parts) => Some(number(&parts, 1)?),
        None => None,
    };
    let prefix = match parts("found") {
        Some(parts) => {
            let digits: [u8; PREFIX] = parts.get(1)?.as_bytes().try_into().ok()?;
            Some(digits.iter().all(u8::is_ascii_digit).then_some(digits)?)
        }
        None => None,
    };
    let (version, line) = (number(&user, 7)?, number(&line, 1)?);
    Some(RequestResult { user: number(&user, 1)?, version, line, changed, prefix })
}

#[cfg(test)]
mod tests {
    use super::super::codes::Source;
    use super::*;

    #[test]
    fn answer_is_reproduced_from_its_numbers() {
        let codes = Codes::get(&Source::Generated { seed: 9, count: 400 }).unwrap();
        let prefix = codes.towns[7].code[..PREFIX].try_into().unwrap();
        for (changed, prefix) in
            [(None, None), (Some(3), None), (None, Some(prefix)), (Some(8), Some(prefix))]
        {
            let result = RequestResult { user: 5, version: 2, line: 77, changed, prefix };
            let mut user = User::default();
            user.become_version(9, &codes, 5, 2);
            let mut body = Vec::new();
            request(9, &codes, &result, result.line, &user, &mut body);
            assert_eq!(read(&body).unwrap(), result);
            let text = String::from_utf8(body).unwrap();
            assert!(!text.contains(&user.password), "no application shows passwords");
            assert_eq!(text.lines().count(), 2 + usize::from(changed.is_some()) + prefix.map_or(0, |_| 13));
        }
    }

    #[test]
    fn invalid_answer_is_a_mismatch() {
        for body in [
            "",
            "done\n",
            "user\t1\n",
            "user\tx\tn\tf\te\tc\ta\t0\t9\nlog\t1\t1\t10.0.0.1\t5\n",
            "user\t1\tn\tf\te\tc\ta\t0\t9\n",
            "user\t1\tn\tf\te\tc\ta\t0\t9\nlog\t1\t1\t10.0.0.1\t5\nchanged\tx\n",
            "user\t1\tn\tf\te\tc\ta\t0\t9\nlog\t1\t1\t10.0.0.1\t5\nfound\t1234x\t0\n",
        ] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
        assert!(read(b"\xff").is_err());
    }
}
