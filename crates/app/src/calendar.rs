//! The moment of an answer as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).

use kurabe_core::calendar::date;
use std::time::{SystemTime, UNIX_EPOCH};

/// The present second, written once for all its answers.
#[derive(Debug, Default)]
pub(crate) struct Now {
    second: u64,
    text: String,
}

impl Now {
    pub(crate) fn text(&mut self) -> &str {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if second != self.second || self.text.is_empty() {
            self.second = second;
            self.text = written(second);
        }
        &self.text
    }
}

fn written(second: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = second / 86_400;
    let (year, month, day) = date(days as i64);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize - 1]);
    let time = second % 86_400;
    format!(
        "{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT",
        time / 3_600,
        time / 60 % 60,
        time % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_of_the_standard_is_written_as_the_standard_writes_it() {
        assert_eq!(written(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
