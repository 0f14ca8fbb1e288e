//! What is answered, and how it is written.

use crate::calendar::Now;
use kurabe_core::{Error, ErrorKind};
use std::io::Write;

/// How long a client that is refused should wait, in seconds.
const RETRY_AFTER: u32 = 1;

/// An answer without the head that its connection gives it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub kind: Kind,
    pub body: Vec<u8>,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Json,
    /// A record as it is in the database.
    Record,
}

impl Answer {
    pub(crate) fn new(status: u16, kind: Kind, body: Vec<u8>) -> Self {
        Self { status, kind, body }
    }

    /// A line for people.
    pub(crate) fn says(status: u16, text: &str) -> Self {
        Self::new(status, Kind::Text, format!("{text}\n").into_bytes())
    }

    /// An error, with the status that tells a client whether to come again.
    pub(crate) fn of_error(error: &Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Unreachable
            | ErrorKind::Denied
            | ErrorKind::InUse
            | ErrorKind::Limit
            | ErrorKind::Server
            | ErrorKind::ConnectionLost
            | ErrorKind::Timeout => 503,
            ErrorKind::Usage => 400,
            ErrorKind::NotFound => 404,
            ErrorKind::Unsupported => 501,
            _ => 500,
        };
        Self::says(status, &error.to_string().replace(['\r', '\n'], " "))
    }

    /// Replaces what is in `out` by the head and, unless only the head was asked for, the body.
    pub(crate) fn write(&self, now: &mut Now, ending: Ending, head_only: bool, out: &mut Vec<u8>) {
        out.clear();
        let kind = match self.kind {
            Kind::Text => "text/plain; charset=utf-8",
            Kind::Json => "application/json",
            Kind::Record => "application/octet-stream",
        };
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "HTTP/1.1 {} {}\r\nServer: kurabe\r\nDate: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n",
            self.status,
            reason(self.status),
            now.text(),
            self.body.len(),
        );
        match self.status {
            503 => {
                let _ = write!(out, "Retry-After: {RETRY_AFTER}\r\n");
            }
            405 => out.extend_from_slice(b"Allow: GET\r\n"),
            _ => {}
        }
        out.extend_from_slice(match ending {
            Ending::Stays => b"\r\n",
            // Clients of HTTP/1.0 want to be told.
            Ending::StaysOld => b"Connection: keep-alive\r\n\r\n",
            Ending::Closes | Ending::Refuses => b"Connection: close\r\n\r\n",
        });
        if !head_only {
            out.extend_from_slice(&self.body);
        }
    }
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Stays,
    StaysOld,
    Closes,
    /// It closes, and what else comes before the client has noticed is not looked at.
    Refuses,
}

/// RFC 9110, section 15.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_gone_asks_to_come_again_and_a_wrong_answer_does_not() {
        let gone = Answer::of_error(&Error::new(ErrorKind::Unreachable, "nothing listens\r\nthere"));
        let mut out = Vec::new();
        gone.write(&mut Now::default(), Ending::Closes, false, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
        assert!(
            text.contains("\r\nRetry-After: 1\r\n") && text.contains("\r\nConnection: close\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\n\r\nnothing listens\\r\\nthere\n"), "{text}");
        assert_eq!(Answer::of_error(&Error::mismatch("record 7 is wrong")).status, 500);
    }

    #[test]
    fn only_the_head_has_the_length_of_the_body_and_no_body() {
        let mut out = Vec::new();
        Answer::says(200, "ok").write(&mut Now::default(), Ending::StaysOld, true, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\r\nContent-Length: 3\r\n") && text.ends_with("keep-alive\r\n\r\n"), "{text}");
    }
}
