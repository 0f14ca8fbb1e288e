//! Moments in answers: times that a server may have taken from its clock while a client was watched.

use std::time::{Duration, Instant, SystemTime};

/// Microseconds by which clocks may differ, and that an answer may take.
const SLACK: i64 = 10_000_000;
/// What time zones, and terms such as `now() + interval '1 hour'`, are multiples of: five minutes.
const STEP: i64 = 300_000_000;
/// The longest time between a moment and the clock: 400 days.
const FAR: i64 = 400 * 86_400_000_000;
/// 2000-01-01 in microseconds since 1970, from which PostgreSQL counts.
const POSTGRES: i64 = 946_684_800_000_000;

/// Spans of a clock, in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    spans: [Option<[i64; 2]>; 2],
}

impl Spans {
    /// The spans of a recording, and of what is going on.
    pub fn new(recorded: Option<[i64; 2]>, own: Option<[i64; 2]>) -> Self {
        let wider = |span: [i64; 2]| [span[0].saturating_sub(SLACK), span[1].saturating_add(SLACK)];
        Self { spans: [recorded.map(wider), own.map(wider)] }
    }

    /// Whether bytes of a value are a time within one of these spans, or a multiple of five minutes from it.
    pub fn have(&self, value: &[u8]) -> bool {
        self.spans != [None; 2] && moments(value).into_iter().flatten().any(|at| self.has(at))
    }

    /// These spans without that of a recording.
    #[must_use]
    pub fn own(self) -> Self {
        Self { spans: [None, self.spans[1]] }
    }

    fn has(&self, at: i64) -> bool {
        self.spans.iter().flatten().any(|[from, to]| {
            let distance = at.saturating_sub(*from);
            distance.abs() < FAR && distance.rem_euclid(STEP) <= to - from
        })
    }
}

/// Since when a connection is watched, and what is asked of its view.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// When watching began, by both clocks, the second in microseconds since 1970.
    pub began: (Instant, i64),
    /// The span of the recording to which answers are compared.
    pub recorded: Option<[i64; 2]>,
    pub keeps_rows: bool,
    /// Whether rows of MySQL's binary form count as those of its text form, to be compared with them.
    pub as_text: bool,
}

impl Watch {
    /// What begins now.
    pub fn now() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { began: (Instant::now(), micros(wall)), recorded: None, keeps_rows: false, as_text: false }
    }

    /// The spans in which a time is one of the server's clock, in the answer to what began then.
    pub fn spans(&self, at: Option<Instant>) -> Spans {
        let (began, wall) = self.began;
        let later = at.map_or(Duration::ZERO, |at| at.saturating_duration_since(began));
        Spans::new(self.recorded, Some([wall, wall.saturating_add(micros(later))]))
    }
}

/// The moment that bytes mean, in microseconds since 1970.
pub fn moment(value: &[u8]) -> Option<i64> {
    moments(value).into_iter().flatten().next()
}

/// A moment in the form of another one; `None` if that has no form of its own, or is a number.
pub fn moment_like(form: &[u8], at: i64) -> Option<Vec<u8>> {
    let zone = |text: &[u8]| {
        text.get(19..)?.iter().position(|byte| matches!(byte, b'+' | b'-' | b'Z')).map(|place| 19 + place)
    };
    if form.len() == 8 {
        return at.checked_sub(POSTGRES).map(|at| at.to_be_bytes().to_vec());
    }
    if form.first().is_some_and(u8::is_ascii_digit) && form.get(4) == Some(&b'-') {
        let own = of_text(form)?;
        let end = zone(form).unwrap_or(form.len());
        // What it is in UTC, and what it says, differ by its zone.
        let said = of_text(form.get(..end)?)?;
        let [year, month, day, hour, minute, second] = fields((at + said - own).div_euclid(1_000_000));
        let mut text =
            format!("{year:04}-{month:02}-{day:02}{}{hour:02}:{minute:02}:{second:02}", char::from(form[10]));
        if form.get(19) == Some(&b'.') {
            let fraction = format!(".{:06}", at.rem_euclid(1_000_000));
            text.push_str(fraction.trim_end_matches('0').trim_end_matches('.'));
        }
        return Some([text.as_bytes(), form.get(end..)?].concat());
    }
    if matches!(form.len(), 7 | 11) && moments(form)[0].is_some() && !form[0].is_ascii_digit() {
        let [year, month, day, hour, minute, second] = fields(at.div_euclid(1_000_000));
        let fraction = (at.rem_euclid(1_000_000) as u32).to_le_bytes();
        let [low, high] = (year as u16).to_le_bytes();
        let date = [low, high, month as u8, day as u8, hour as u8, minute as u8, second as u8];
        return Some(date.iter().chain(fraction.iter().take(form.len() - 7)).copied().collect());
    }
    None
}

/// The inverse of [`seconds`].
fn fields(seconds: i64) -> [i64; 6] {
    let (days, of_day) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    [year, month, day, of_day / 3_600, of_day / 60 % 60, of_day % 60]
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The moments that bytes may mean, in microseconds since 1970.
fn moments(value: &[u8]) -> [Option<i64>; 2] {
    match value {
        // Eight bytes of PostgreSQL, or of MySQL since 1970.
        [first, .., last] if value.len() == 8 && (*first == 0 || *last == 0) => {
            let bytes = <[u8; 8]>::try_from(value).unwrap_or_default();
            [i64::from_be_bytes(bytes).checked_add(POSTGRES), since_1970(i64::from_le_bytes(bytes))]
        }
        [first, ..] if first.is_ascii_digit() => [of_text(value), None],
        // MySQL's binary date: year, month, day, hour, minute, second, microseconds.
        [low, 0x07 | 0x08, month @ 1..=12, day @ 1..=31, rest @ ..] if [3, 7].contains(&rest.len()) => {
            let part = |at: usize| rest.get(at).copied().unwrap_or(0).into();
            let fraction =
                rest.get(3..).and_then(<[u8]>::first_chunk).map_or(0, |it| u32::from_le_bytes(*it));
            let year = i64::from(value[1]) << 8 | i64::from(*low);
            let seconds = seconds([year, (*month).into(), (*day).into(), part(0), part(1), part(2)]);
            [Some(seconds * 1_000_000 + i64::from(fraction)), None]
        }
        _ => [None, None],
    }
}

/// A number of seconds, milliseconds or microseconds since 1970.
fn since_1970(number: i64) -> Option<i64> {
    match number {
        1_000_000_000..10_000_000_000 => Some(number * 1_000_000),
        1_000_000_000_000..10_000_000_000_000 => Some(number * 1_000),
        1_000_000_000_000_000..10_000_000_000_000_000 => Some(number),
        _ => None,
    }
}

/// The moment of a text: a date and time with or without a zone, a number since 1970, the id of an entry of a stream.
fn of_text(text: &[u8]) -> Option<i64> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    let first = digits(text);
    if matches!(first, 10 | 13 | 16) && text.len() <= 40 {
        let rest = text.get(first..)?;
        let is_whole = rest.is_empty()
            || matches!(rest.first(), Some(b'.' | b'-'))
                && rest.len() > 1
                && digits(&rest[1..]) == rest.len() - 1;
        return since_1970(number(text.get(..first)?)?).filter(|_| is_whole);
    }
    if !(19..=40).contains(&text.len()) || first != 4 {
        return None;
    }
    let mut fields = [0; 6];
    for (n, field) in fields.iter_mut().enumerate() {
        let (from, size) = if n == 0 { (0, 4) } else { (2 + 3 * n, 2) };
        let part = text.get(from..from + size)?;
        let before = if n == 0 { b'-' } else { text[from - 1] };
        let fits: &[u8] = match n {
            0..3 => b"-",
            3 => b" T",
            _ => b":",
        };
        if !fits.contains(&before) || digits(part) != size {
            return None;
        }
        *field = number(part)?;
    }
    let mut rest = text.get(19..).unwrap_or_default();
    let mut fraction = 0;
    if rest.first() == Some(&b'.') {
        let count = digits(&rest[1..]);
        let shown = rest.get(1..=count.min(6))?;
        fraction = number(shown)? * 10_i64.pow(6 - shown.len() as u32);
        rest = rest.get(1 + count..)?;
    }
    let offset = match rest {
        [] | [b'Z'] => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let shown: Vec<u8> = zone.iter().copied().filter(|byte| *byte != b':').collect();
            let hours = number(shown.get(..2)?)?;
            let minutes = shown.get(2..4).map_or(Some(0), number)?;
            (hours * 60 + minutes) * 60 * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    Some((seconds(fields) - offset) * 1_000_000 + fraction)
}

/// Seconds since 1970 of a year, month, day, hour, minute and second ("days from civil", by the proleptic Gregorian calendar).
fn seconds([year, month, day, hour, minute, second]: [i64; 6]) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-28 21:57:44.5 UTC.
    const AT: i64 = 1_795_903_064_500_000;

    #[test]
    fn moment_is_found_in_every_form_and_other_values_are_none() {
        let spans = Spans::new(None, Some([AT - 1_000_000, AT + 1_000_000]));
        let postgres = (AT - POSTGRES).to_be_bytes();
        for value in [
            &b"2026-11-28 21:57:44.5+00"[..],
            b"2026-11-28 21:57:44",
            b"2026-11-28T23:57:44.500001+02:00",
            b"2026-11-28T21:57:44Z",
            // An hour later, and in another zone.
            b"2026-11-28 22:57:44",
            b"2026-11-29 03:27:44+0530",
            b"1795903064",
            b"1795903064500",
            b"1795903064500-7",
            b"1795903064.25",
            &postgres,
            &[0xea, 7, 11, 28, 21, 57, 44],
            &[0xea, 7, 11, 28, 21, 57, 44, 0x20, 0xa1, 7, 0],
        ] {
            assert!(spans.have(value), "{}", value.escape_ascii());
        }
        for value in [
            &b"2026-11-28 21:50:00"[..],
            b"2024-11-28 21:57:44",
            b"2026-11-28",
            b"1795903",
            b"17959030645",
            b"1795903064x",
            b"2026-11-28 21:57",
            b"2026-11-28 21:57:44 and",
            b"",
            b"21:57:44",
            &[0xea, 7, 11, 28],
            &(AT + 150_000_000 - POSTGRES).to_be_bytes(),
        ] {
            assert!(!spans.have(value), "{}", value.escape_ascii());
        }
        for form in [
            &b"2020-02-29T23:57:44.5+02:00"[..],
            b"2020-02-29 21:57:44.1",
            b"2020-02-29 21:57:44.1-0330",
            &postgres,
            &[0xe4, 7, 2, 29, 1, 2, 3, 1, 0, 0, 0],
        ] {
            assert_eq!(moment(&moment_like(form, AT).unwrap()), Some(AT), "{}", form.escape_ascii());
        }
        assert_eq!(moment_like(b"2020-01-01 00:00:00", AT), Some(b"2026-11-28 21:57:44".to_vec()));
        assert!(moment_like(b"1795903064500-7", AT).is_none() && moment_like(b"1795903064", AT).is_none());
        assert!(!Spans::default().have(b"2026-11-28 21:57:44"));
    }
}
