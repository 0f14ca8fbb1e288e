//! Conversion between `DATETIME(6)`, which has no time zone and is UTC here, and microseconds since 1970.

use jiff::SignedDuration;
use jiff::civil;
use kurabe_core::{Error, Result};
use std::fmt;

/// 1970-01-01 00:00:00.
const EPOCH: civil::DateTime = civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A timestamp as the protocol represents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime {
    /// 1 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999.
    pub micros: u32,
}

impl DateTime {
    /// Converts microseconds since 1970.
    ///
    /// # Errors
    /// Usage, outside the years 1 to 9999, the range of the type.
    pub fn from_micros(micros: i64) -> Result<Self> {
        let known = EPOCH.checked_add(SignedDuration::from_micros(micros)).ok();
        let Some(at) = known.filter(|at| at.year() >= 1) else {
            return Err(Error::usage("a datetime must be in the years 1 to 9999"));
        };
        let parts = [at.month(), at.day(), at.hour(), at.minute(), at.second()];
        let [month, day, hour, minute, second] = parts.map(i8::unsigned_abs);
        let (year, nanos) = (at.year().unsigned_abs(), at.subsec_nanosecond().unsigned_abs());
        Ok(Self { year, month, day, hour, minute, second, micros: nanos / 1_000 })
    }

    /// Parses the format of `Display`, with up to six fractional digits.
    pub fn parse(text: &str) -> Option<Self> {
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

    /// Converts to microseconds since 1970; `None` for an invalid date, such as the engines' zero date.
    pub fn micros(self) -> Option<i64> {
        let small = |part: u8| i8::try_from(part).ok();
        let nanos = i32::try_from(self.micros.checked_mul(1_000)?).ok()?;
        let date =
            civil::Date::new(i16::try_from(self.year).ok()?, small(self.month)?, small(self.day)?).ok()?;
        let time =
            civil::Time::new(small(self.hour)?, small(self.minute)?, small(self.second)?, nanos).ok()?;
        i64::try_from(date.to_datetime(time).duration_since(EPOCH).as_micros()).ok()
    }
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
    // `parse` accepts a leading sign too.
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
    fn known_timestamps_are_converted() {
        let at = DateTime::from_micros(1_234_567_890_123_456).unwrap();
        let expected =
            DateTime { year: 2009, month: 2, day: 13, hour: 23, minute: 31, second: 30, micros: 123_456 };
        assert_eq!(at, expected);
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
        fn timestamps_round_trip(micros in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            let at = DateTime::from_micros(micros).unwrap();
            prop_assert_eq!(at.micros(), Some(micros));
            prop_assert_eq!(DateTime::parse(&at.to_string()), Some(at));
        }
    }
}
