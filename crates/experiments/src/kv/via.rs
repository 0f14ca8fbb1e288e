//! kv through an application: each transaction is one page, and each answer is checked.

use super::{Digests, INFO, LENGTH, READ, WRITE};
use crate::answer;
use crate::defect::no_operation;
use crate::prelude::*;
use crate::rows::LOADED;
use crate::via::{Added, PageClient, PageSet, ReadRows, Rows, path};

pub(super) struct KvPages;

impl PageSet for KvPages {
    type Data = Rows;
    /// The keys of the added records.
    type Acknowledged = Vec<u64>;

    const INFO: &'static ExperimentInfo = &INFO;
    const CLIENT_BYTES: u64 = 64_000;
    const STORED_BYTES: Option<u64> = Some(LENGTH as u64);

    fn data(&self, session: &mut dyn Session) -> Result<Rows> {
        Rows::of(session, &INFO)
    }

    fn client(&self, operation: &str, client: Client, data: Arc<Rows>) -> Result<Box<dyn PageClient>> {
        let Rows { seed, records } = *data;
        match operation {
            READ => {
                let compare = move |key, data: &[u8]| Digests { seed }.check(key, LOADED, data);
                Ok(Box::new(ReadRows::new(path(&INFO, READ), records, client, compare)))
            }
            WRITE => Ok(Box::new(Write { data, keys: Vec::new() })),
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn verify(
        &self,
        session: &mut dyn Session,
        data: &Rows,
        acknowledged: &[&Vec<u64>],
        added: &Added,
    ) -> Result<Verification> {
        let mut keys: Vec<u64> = acknowledged.iter().copied().flatten().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let counted = added.verify(session, ["records", "keys"], keys.len())?;
        for key in &keys {
            let path = format!("{}?key={key}", path(&INFO, READ));
            let body = page::get(session, &path)?;
            read(data.seed, &path, &body, Some(*key)).map_err(|error| error.context("read back"))?;
        }
        let (writes, read_back) = (added.rows, keys.len() as u64);
        Ok(Verification { writes, records: read_back, counted, read_back, ..Verification::default() })
    }
}

/// Compares an answer with the expected record, of this key if one was named. Returns the key.
fn read(seed: u64, path: &str, body: &[u8], asked: Option<u64>) -> Result<u64> {
    let (key, data) = answer::read(path, body, asked)?;
    Digests { seed }.check(key, LOADED, data)?;
    Ok(key)
}

/// Asks the application to add records with keys of its choice.
struct Write {
    data: Arc<Rows>,
    /// The keys of the added records.
    keys: Vec<u64>,
}

impl PageClient for Write {
    fn draw(&mut self, page: &mut String) {
        page.push_str(&path(&INFO, WRITE));
    }

    fn check(&mut self, path: &str, body: &[u8]) -> Result<()> {
        let key = read(self.data.seed, path, body, None)?;
        if key <= self.data.records {
            return Err(Error::mismatch(format!(
                "the application reports record {key} as added, but it existed before"
            )));
        }
        self.keys.push(key);
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.keys.len() as u64
    }

    fn notes(&mut self) -> Option<Notes> {
        Some(Box::new(std::mem::take(&mut self.keys)))
    }
}
