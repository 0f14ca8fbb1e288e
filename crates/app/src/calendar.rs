//! The time of an answer as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// The present second, written once for all its answers.
#[derive(Debug, Default)]
pub(crate) struct Now {
    second: i64,
    text: String,
}

impl Now {
    pub(crate) fn text(&mut self) -> &str {
        let now = Timestamp::now();
        if now.as_second() != self.second || self.text.is_empty() {
            self.second = now.as_second();
            // The printer refuses years before 0 only.
            self.text = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default();
        }
        &self.text
    }
}
