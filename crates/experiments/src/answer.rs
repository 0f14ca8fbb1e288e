//! The application's answers, as `docs/app.openapi.yaml` describes them: the record that was read or written, and the
//! number of rows.

use crate::fill;
use crate::prelude::*;
use std::fmt::Display;
use std::io::Write;

/// Appends a record: its key on a separate line, then its data. A numeric key has twenty digits, so that all
/// answers have the same length: ab counts an answer of another length as a failure.
pub(crate) fn record(key: impl Display, data: &[u8], out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = writeln!(out, "{key:0>20}");
    out.extend_from_slice(data);
}

/// The key and the data of a record in the answer to this page.
///
/// # Errors
/// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) if the answer does not begin with a key, or has another key than
/// the requested one.
pub(crate) fn read<'a>(page: &str, body: &'a [u8], asked: Option<u64>) -> Result<(u64, &'a [u8])> {
    let end = body.iter().take(24).position(|byte| *byte == b'\n');
    let key = end.and_then(|end| std::str::from_utf8(&body[..end]).ok()?.parse().ok());
    let (Some(end), Some(key)) = (end, key) else {
        return Err(Error::mismatch(format!("the answer to {page} does not begin with a key")));
    };
    match asked {
        Some(asked) if asked != key => {
            Err(Error::mismatch(format!("requested record {asked}, received record {key}")))
        }
        _ => Ok((key, &body[end + 1..])),
    }
}

/// The last segment of the path of the page that counts rows. With it a client checks that the application stored all
/// rows that it acknowledged.
pub(crate) const COUNT: &str = "count";

/// Counts the rows of a collection. It is served beside the measured operations and is not one of them.
pub(crate) struct Count {
    collection: Arc<Collection>,
    rows: u64,
}

impl Count {
    pub(crate) fn new(collection: &Arc<Collection>) -> Self {
        Self { collection: Arc::clone(collection), rows: 0 }
    }
}

impl Transaction for Count {
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let rows = fill::count(session, &self.collection)?;
        self.rows = rows.ok_or_else(|| Error::unsupported("this database does not count its records"))?;
        Ok(())
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        record(self.rows, &[], out);
    }
}

/// The number on a page that counts rows; `None` if there is none.
///
/// # Errors
/// The application's error, or [`Mismatch`](ErrorKind::Mismatch) if the answer is not a number.
pub(crate) fn ask_count(session: &mut dyn Session, path: &str) -> Result<Option<u64>> {
    let out = match page::get(session, path) {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::NotFound) => {
            return Ok(None);
        }
        out => out?,
    };
    let rows = std::str::from_utf8(&out).ok().and_then(|text| text.trim_end().parse().ok());
    rows.map(Some).ok_or_else(|| Error::mismatch("the application's count is not a number"))
}
