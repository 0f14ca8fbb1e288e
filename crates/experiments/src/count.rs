//! The page that counts rows. With it a client checks that the application stored all rows that it acknowledged.

use crate::prelude::*;
use crate::{answer, fill};

/// The last segment of its path.
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
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn prepare_input(&mut self) {}

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let rows = fill::count(session, &self.collection)?;
        self.rows = rows.ok_or_else(|| Error::unsupported("this database does not count its records"))?;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Page for Count {
    fn render(&self, out: &mut Vec<u8>) {
        answer::record(self.rows, &[], out);
    }
}

/// The number on such a page; `None` if there is none.
///
/// # Errors
/// The application's error, or [`Mismatch`](ErrorKind::Mismatch) if the answer is not a number.
pub(crate) fn ask(session: &mut dyn Session, path: &str) -> Result<Option<u64>> {
    let out = match page::get(session, path) {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::NotFound) => {
            return Ok(None);
        }
        out => out?,
    };
    let rows = std::str::from_utf8(&out).ok().and_then(|text| text.trim_end().parse().ok());
    rows.map(Some).ok_or_else(|| Error::mismatch("the application's count is not a number"))
}
