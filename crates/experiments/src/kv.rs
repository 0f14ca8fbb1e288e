//! E2, single records by key: read one, or add one, as each page of a small web application does.
//!
//! The content of a record follows from its key by a formula that an application in any language, or SQL, can compute
//! ([`Digests`]).

use crate::answer::{self, COUNT, Count};
use crate::axes::{self, CLIENTS, CONNECTION_OR_VIA, no_operation, reads, writes};
use crate::fill::acknowledged_rows;
use crate::ident::{self, hex16};
use crate::prelude::*;
use crate::rows::{How, LOADED, Read, Rows, Write};
use crate::via::{self, Added, PageClient, PageSet, ReadRows, ViaWorkload, path};
use std::io::Write as _;

const READ: &str = "read";
const WRITE: &str = "write";
/// Default number of records before the measurement.
const RECORDS: u64 = 10_000;
/// Characters of a record's data.
const LENGTH: usize = 96;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "kv",
    question: "How many pages a second does an application serve that read, or add, one record?",
    about: "Reads one record of 96 characters by its key, drawn uniformly from 10,000, or adds one under a new key: \
            directly on a database, or through an application (a target http://host:port, or --via) as one page \
            each. As in the published experiments (web_kv.csv).",
    axes: &[AxisInfo { default: &["1", "10", "100"], ..CLIENTS }, CONNECTION_OR_VIA],
    operations: &[
        reads(READ, "read one record by its key", 1_000),
        writes(WRITE, "add one record under a new key", 1_000),
    ],
    metrics: &[],
    chart_axis: "clients",
    answer: Answer::Comparison,
    published: Some("web_kv.csv"),
};

pub(crate) static KV: Experiment = Experiment { plan_via: Some(plan_via), ..Experiment::new(&INFO, &plan) };

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let rows = |part: &str, records: u64| {
        let name = format!("kurabe_{}_kv_{part}", dataset.slot);
        Arc::new(Rows::new(name, Digests { seed: dataset.seed }, records))
    };
    let (loaded, added) = (rows("r", dataset.records.unwrap_or(RECORDS).max(1)), rows("w", 0));
    let demand = loaded.demand(vec![added.select(), added.insert()]);
    let name = loaded.collection.name.clone();
    let facts = vec![("seed", dataset.seed), ("records", loaded.records)];
    let pages = Some(ServedPages { names: &[READ, WRITE, COUNT], facts, ..ServedPages::default() });
    let policy = LoopPolicy { divisible: true, ..axes::policy(cell)? };
    let planned = PlannedCell::new(name, demand, policy, KvWorkload { loaded, added });
    Ok(PlannedCell { pages, stored_bytes: Some(LENGTH as u64), ..planned })
}

fn plan_via(cell: &Cell) -> Result<PlannedCell> {
    let planned = ViaWorkload::plan(&INFO, axes::policy(cell)?, KvPages);
    Ok(PlannedCell { stored_bytes: Some(LENGTH as u64), ..planned })
}

struct KvWorkload {
    loaded: Arc<Rows<Digests>>,
    /// The records that a trial adds; their keys follow the loaded ones.
    added: Arc<Rows<Digests>>,
}

impl KvWorkload {
    /// The keys of the records that a client adds, each with its version.
    fn keys(&self, client: Client) -> impl Iterator<Item = (u64, u64)> + Send + use<> {
        ident::own(self.loaded.records + 1, client).map(|key| (key, LOADED))
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes = acknowledged_rows(done, "records were added")?;
        let counted = self.added.check_count(session, writes)?.unwrap_or(0);
        let keys = done.iter().flat_map(|done| self.keys(done.client).take(done.completed as usize));
        let read_back = self.added.read_back(session, keys)?;
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }
}

impl Workload for KvWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.added.collection)?;
        self.loaded.load(namespace, session)?;
        Ok(DatasetState::default())
    }

    fn before(&self, Before { operation, namespace, .. }: Before<'_>) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.added.collection) } else { Ok(()) }
    }

    fn transaction(&self, name: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        match name {
            READ => Ok(Box::new(Read::new(&self.loaded, Some(&self.added), Bind::Once, client))),
            WRITE => Ok(Box::new(Write::new(&self.added, How::Add, Bind::Once, self.keys(client)))),
            COUNT => Ok(Box::new(Count::new(&self.added.collection))),
            _ => Err(no_operation(INFO.name, name)),
        }
    }

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

/// The data of records for a seed: 96 hexadecimal digits, MD5 (RFC 1321) of `seed:key:1`, of `seed:key:2` and of
/// `seed:key:3`, all numbers decimal. Records never change, so they have no versions. MD5 protects nothing here. Every
/// language and every SQL database has it, so that any server of the same pages can fill a table with one statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digests {
    pub(crate) seed: u64,
}

impl RowData for Digests {
    fn length(&self) -> usize {
        LENGTH
    }

    fn write(&self, key: u64, _version: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&data(self.seed, key));
    }

    fn check(&self, key: u64, _version: u64, bytes: &[u8]) -> Result<()> {
        let expected = data(self.seed, key);
        if bytes == expected {
            return Ok(());
        }
        Err(Error::mismatch(if bytes.len() == LENGTH {
            let at = expected.iter().zip(bytes).position(|(a, b)| a != b).unwrap_or(0);
            format!("record {key} was returned with wrong content from byte {at} on")
        } else {
            format!("record {key} was returned with {} bytes instead of {LENGTH}", bytes.len())
        }))
    }
}

fn data(seed: u64, key: u64) -> [u8; LENGTH] {
    let mut out = [0; LENGTH];
    for (part, digits) in out.chunks_exact_mut(32).enumerate() {
        // Two numbers of twenty digits, two colons and a digit always fit.
        let mut text = [0; 48];
        let mut rest = &mut text[..];
        let _ = write!(rest, "{seed}:{key}:{}", part + 1);
        let left = rest.len();
        let digest = md5::compute(&text[..text.len() - left]).0;
        for (half, at) in digest.chunks_exact(8).zip([0, 16]) {
            let word = half.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            hex16(word, digits, at);
        }
    }
    out
}

/// kv through an application.
struct KvPages;

impl PageSet for KvPages {
    type Data = via::Rows;
    fn data(&self, session: &mut dyn Session) -> Result<via::Rows> {
        via::Rows::of(session, &INFO)
    }

    fn client(&self, operation: &str, client: Client, data: Arc<via::Rows>) -> Result<Box<dyn PageClient>> {
        let via::Rows { seed, records } = *data;
        match operation {
            READ => Ok(Box::new(ReadRows::new(path(&INFO, READ), records, client, Digests { seed }))),
            WRITE => Ok(Box::new(Adds { data })),
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn verify(
        &self,
        session: &mut dyn Session,
        data: &via::Rows,
        clients: &[ClientSummary],
        added: &Added,
    ) -> Result<Verification> {
        let notes = clients.iter().filter_map(ClientSummary::notes::<Vec<u64>>);
        let mut keys: Vec<u64> = notes.flatten().copied().collect();
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

/// Asks the application to add records with keys of its choice, which it notes.
struct Adds {
    data: Arc<via::Rows>,
}

impl PageClient for Adds {
    fn draw(&mut self, page: &mut String) {
        page.push_str(&path(&INFO, WRITE));
    }

    fn check(&mut self, path: &str, body: &[u8], recorder: &mut Recorder) -> Result<()> {
        let key = read(self.data.seed, path, body, None)?;
        if key <= self.data.records {
            return Err(Error::mismatch(format!(
                "the application reports record {key} as added, but it existed before"
            )));
        }
        recorder.rows_written(1);
        recorder.notes(Vec::new).push(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seed: u64, key: u64, bytes: &[u8]) -> Result<()> {
        Digests { seed }.check(key, LOADED, bytes)
    }

    #[test]
    fn data_equals_md5sum_output() {
        // printf 7:12:1 | md5sum, and so on.
        let mut out = Vec::new();
        Digests { seed: 7 }.write(12, 0, &mut out);
        let expected = include_str!("../golden/kv_record_seed7_key12.txt");
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expected.trim_end());
        assert!(check(7, 12, &out).is_ok());
    }

    #[test]
    fn wrong_record_flipped_byte_and_short_answer_are_detected() {
        let mut out = Vec::new();
        Digests { seed: 7 }.write(12, 0, &mut out);
        assert!(check(7, 13, &out).is_err() && check(8, 12, &out).is_err());
        assert!(check(7, 12, &out[1..]).unwrap_err().to_string().contains("95 bytes instead of 96"));
        out[40] ^= 1;
        assert!(check(7, 12, &out).unwrap_err().to_string().contains("from byte 40 on"));
    }

    #[test]
    fn the_largest_numbers_fit() {
        assert_ne!(data(u64::MAX, u64::MAX), data(u64::MAX, u64::MAX - 1));
    }
}
