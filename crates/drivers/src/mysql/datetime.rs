//! `DATETIME(6)`, which has no zone and holds UTC here, from and to microseconds since 1970.

use kurabe_core::calendar::date;
use kurabe_core::{Error, ErrorKind, Result};
use std::fmt;

const DAY: i64 = 86_400_000_000;

/// A moment as the protocol writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateTime {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) micros: u32,
}

impl DateTime {
    /// From microseconds since 1970.
    ///
    /// # Errors
    /// Usage, outside of the years 1 to 9999, which the type does not hold.
    pub(crate) fn from_micros(micros: i64) -> Result<Self> {
        let (year, month, day) = date(micros.div_euclid(DAY));
        let rest = micros.rem_euclid(DAY);
        if !(1..=9999).contains(&year) {
            return Err(Error::new(ErrorKind::Usage, "a datetime holds the years 1 to 9999 only"));
        }
        let seconds = rest / 1_000_000;
        Ok(Self {
            year: year as u16,
            month: month as u8,
            day: day as u8,
            hour: (seconds / 3_600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            micros: (rest % 1_000_000) as u32,
        })
    }

    /// From what its `Display` writes, with up to six digits behind the seconds, or none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(' ')?;
        let mut date = date.split('-');
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut time = time.split(':');
        let parsed = Self {
            year: number(date.next())?,
            month: number(date.next())?,
            day: number(date.next())?,
            hour: number(time.next())?,
            minute: number(time.next())?,
            second: number(time.next())?,
            micros: number(Some(&format!("{fraction:0<6}")))?,
        };
        let whole = date.next().is_none() && time.next().is_none() && fraction.len() <= 6;
        whole.then_some(parsed)
    }

    /// To microseconds since 1970 (Howard Hinnant's `days_from_civil`); nothing where it is no moment, such as the
    /// engines' zero date.
    pub(crate) fn micros(self) -> Option<i64> {
        if !(1..=12).contains(&self.month) || !(1..=31).contains(&self.day) {
            return None;
        }
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let month = i64::from(self.month);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * shifted + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        let seconds = i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        Some(days * DAY + seconds * 1_000_000 + i64::from(self.micros))
    }
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
    // What parses numbers takes a sign too.
    text.filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// `2009-02-13 23:31:30.123456`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, micros } = self;
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        let moment = DateTime::from_micros(1_234_567_890_123_456).unwrap();
        let expected =
            DateTime { year: 2009, month: 2, day: 13, hour: 23, minute: 31, second: 30, micros: 123_456 };
        assert_eq!(moment, expected);
        assert_eq!(DateTime::from_micros(-1).unwrap().year, 1969);
        assert_eq!(DateTime::from_micros(951_782_400_000_000).unwrap().day, 29);
        assert!(DateTime::from_micros(i64::MAX).is_err() && DateTime::from_micros(i64::MIN).is_err());
        assert_eq!(DateTime { year: 0, month: 0, day: 0, ..expected }.micros(), None);
        assert_eq!(DateTime::parse("2009-02-13 23:31:30.123456"), Some(expected));
        assert_eq!(DateTime::parse("2009-02-13 23:31:30"), Some(DateTime { micros: 0, ..expected }));
        assert_eq!(DateTime::parse("2009-02-13 23:31:30.5"), Some(DateTime { micros: 500_000, ..expected }));
        for nonsense in
            ["", "2009-02-13", "2009-02-13 23:31", "2009-02-13 23:31:30.1234567", "2009-02-+3 1:1:1"]
        {
            assert_eq!(DateTime::parse(nonsense), None, "{nonsense}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_comes_back(micros in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            let at = DateTime::from_micros(micros).unwrap();
            prop_assert_eq!(at.micros(), Some(micros));
            prop_assert_eq!(DateTime::parse(&at.to_string()), Some(at));
        }
    }
}
