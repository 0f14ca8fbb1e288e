//! Conversion of the server's errors. Codes are the server's
//! (<https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>).

use super::bson::{Element, Raw};
use crate::prelude::*;

/// Length limit of a message, in characters: some servers repeat the command.
const LONGEST: usize = 300;

#[cold]
pub(super) fn of_answer(answer: Raw<'_>) -> Error {
    let code = answer.number("code").unwrap_or(0) as i32;
    server(code, answer.text("codeName").unwrap_or("Error"), answer.text("errmsg").unwrap_or_default())
}

/// The number of documents that a write matched.
///
/// # Errors
/// The first of a document, or of the write concern.
#[inline]
pub(super) fn written(answer: Raw<'_>) -> Result<u64> {
    if let Some(Element::Array(errors)) = answer.get("writeErrors")?
        && let Some(Element::Document(first)) = errors.values().next()
    {
        return Err(of_write(first));
    }
    concern(answer)?;
    answer.size("n").ok_or_else(|| malformed("mongodb: the answer to a write has no count"))
}

/// Checks that an answer has no error of the write concern, which one whose status is success may have.
pub(super) fn concern(answer: Raw<'_>) -> Result<()> {
    match answer.get("writeConcernError")? {
        Some(Element::Document(error)) => Err(of_write(error)),
        _ => Ok(()),
    }
}

#[cold]
fn of_write(error: Raw<'_>) -> Error {
    let code = error.number("code").unwrap_or(0) as i32;
    server(code, error.text("codeName").unwrap_or("Write"), error.text("errmsg").unwrap_or_default())
}

/// The error of an error response.
pub(super) fn server(code: i32, name: &str, message: &str) -> Error {
    let (kind, hint) = kind(code);
    let message = if message.is_empty() { name } else { message };
    let end = message.char_indices().nth(LONGEST).map_or(message.len(), |(at, _)| at);
    let message = message[..end].trim_end_matches('.');
    let error = Error::new(kind, format!("the server answered: {message}"));
    if code == 0 { error.code(name) } else { error.code(code) }.hint(hint)
}

fn kind(code: i32) -> (ErrorKind, &'static str) {
    match code {
        18 | 11 => (ErrorKind::Denied, "check user, password and authSource"),
        13 | 8000 => (ErrorKind::NotPermitted, "the user needs the role readWrite on this database"),
        26 => (ErrorKind::NotFound, ""),
        50 | 202 | 262 => (ErrorKind::Timeout, ""),
        10_334 | 17_419 | 17_420 | 10_003 => {
            (ErrorKind::Limit, "a document holds at most 16 MB: use a smaller payload")
        }
        14_031 => (ErrorKind::Limit, "the server's disk is full"),
        10_107 | 13_435 | 11_602 => (ErrorKind::ConnectionLost, "the primary has changed"),
        91 | 11_600 | 6 | 7 | 89 | 9_001 => (ErrorKind::ConnectionLost, ""),
        79 | 100 => (ErrorKind::Limit, "the replica set does not have the members that w= requires"),
        20 => (ErrorKind::Unsupported, ""),
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bson::Document;
    use super::*;

    #[test]
    fn server_error_has_its_code_and_a_hint() {
        let error =
            server(17_419, "BSONObjectTooLarge", "Resulting document after update is larger than 16777216");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("17419")));
        assert!(error.to_string().contains("smaller payload"), "{error}");
        assert_eq!(server(11_000, "DuplicateKey", "E11000").kind(), ErrorKind::Server);
        assert_eq!(server(13, "Unauthorized", "not authorized").kind(), ErrorKind::NotPermitted);
        assert!(server(2, "BadValue", &"long ".repeat(1_000)).to_string().len() < 400);
    }

    #[test]
    fn write_errors_in_an_answer_are_errors() {
        let answer = |fill: fn(&mut super::super::writer::Writer)| {
            let document = Document::of(|out| {
                out.int("n", 1);
                fill(out);
                out.int("ok", 1);
            });
            written(document.raw())
        };
        assert_eq!(answer(|_| ()), Ok(1));
        let error = answer(|out| {
            out.begin_array("writeErrors").begin("0").int("index", 0).int("code", 11_000);
            out.text("errmsg", "E11000 duplicate key").end().end();
        })
        .unwrap_err();
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("11000")));
        let error = answer(|out| {
            out.begin("writeConcernError").int("code", 100);
            out.text("codeName", "UnsatisfiableWriteConcern").end();
        })
        .unwrap_err();
        assert!(error.to_string().contains("members that w= requires"));
        assert!(written(Document::default().raw()).is_err());
    }
}
