//! E1, a web session store: write and read one session by its identifier.
//!
//! Each cell has its own collections, so that a read can never find the payload of another cell. Writes add sessions
//! with new identifiers to a collection that is empty when a trial begins. Requests of a site have a collection that holds the
//! loaded sessions when a trial begins.

mod info;
mod request;
mod store;
mod transaction;
mod workload;

use crate::axes::{self};
use crate::prelude::*;
use info::{INFO, READ, REQUEST, WRITE};
use kurabe_core::planned::{MakeWorkload, Work};
use std::sync::{Mutex, PoisonError};
use store::{Format, Layout, PIECE};
use workload::SessionWorkload;

/// Default number of sessions in the store: that of E1.
const RECORDS: u64 = 1_000;
/// The maximum payload of a cell, so that forty cells of a megabyte do not fill a disk.
const STORE_BYTES: u64 = 16_000_000;
/// The minimum number of sessions, so that draws are spread over several.
const MIN_RECORDS: u64 = 16;

pub(crate) static SESSION: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let format = Format::new(cell, dataset.seed)?;
    let payload = cell.number("payload")?;
    let bytes = match cell.get("store-size") {
        Some(AxisValue::Number(bytes)) => Some(*bytes),
        _ => None,
    };
    let usual = || bytes.map_or(RECORDS.min(STORE_BYTES / payload), |bytes| bytes.div_ceil(payload));
    let records = dataset.records.unwrap_or_else(|| usual().max(MIN_RECORDS)).max(1);
    let exponent = cell.word("zipf")?;
    let exponent = exponent
        .parse()
        .map_err(|_| Error::new(ErrorKind::Internal, format!("session: invalid exponent '{exponent}'")))?;
    // Abbreviated, so that the longest fits a name.
    let mut name = format!("kurabe_{}_session_{payload}_", dataset.slot);
    for axis in ["layout", "compress", "encoding", "content", "lengths", "expiry"] {
        name.extend(cell.word(axis)?.chars().take(2));
    }
    name.extend(bytes.map(|bytes| format!("_{bytes}")));
    let read_from = Arc::new(format.collection(format!("{name}_r")));
    let write_to = Arc::new(format.collection(format!("{name}_w")));
    let requested = Arc::new(format.requested(format!("{name}_q")));
    let bind = Bind::parse(cell.word("statement")?)?;
    let stored_bytes = stored_bytes(format)?;
    // What no session is longer than.
    let stored =
        stored_bytes as usize * if format.alike { 1 } else { format.largest().div_ceil(format.payload) };
    let rows = format.rows(stored);
    let value = if format.layout == Layout::Rows { stored.min(PIECE) } else { stored };
    let demand = Demand {
        operations: vec![format.insert(&write_to, rows), format.select(&read_from)],
        capabilities: Vec::from_iter((bind != Bind::Once).then_some(Capability::PreparedStatements)),
        value_bytes: value as u64,
        // Each row adds its identifier, number and time, and a few bytes of framing.
        request_bytes: (stored + rows * 72 + 256) as u64,
        parameters: (rows * write_to.fields.len()) as u64,
        client_bytes: 4 * format.largest() as u64 + 64_000,
        ..Demand::default()
    };
    let mut of_request = request::operations(format.layout, &requested).to_vec();
    of_request.extend(if format.layout == Layout::Rows {
        vec![Operation::Begin, Operation::Commit]
    } else {
        Vec::new()
    });
    let capabilities = Vec::from_iter(format.expires.then_some(Capability::Expiry));
    // Reads and requests have stores of their own, which are loaded when they are measured first.
    let loaded_bytes = records * stored_bytes;
    let of_request = Demand { operations: of_request, capabilities, loaded_bytes, ..Demand::default() };
    let of_read = Demand { loaded_bytes, ..Demand::default() };
    // Cells that wait do not keep the contents of large sessions in memory.
    let make: MakeWorkload = Box::new(move || {
        let [read_from, write_to, requested] = [&read_from, &write_to, &requested].map(Arc::clone);
        let store = format.store();
        Arc::new(SessionWorkload {
            store,
            read_from,
            write_to,
            requested,
            records,
            exponent,
            bind,
            stored_bytes,
        })
    });
    let policy = LoopPolicy { divisible: true, ..axes::policy(cell)? };
    let planned = PlannedCell::of(name, demand, policy, Work::Loop(make));
    let operations = vec![(READ, of_read), (REQUEST, of_request)];
    let pages = Some(ServedPages { names: &[WRITE, READ], ..ServedPages::default() });
    Ok(PlannedCell { stored_bytes: Some(stored_bytes), operations, pages, ..planned })
}

/// Bytes of a stored session, the mean over a few: compressed sizes hardly differ.
fn stored_bytes(format: Format) -> Result<u64> {
    // A plan that must fit a budget is made once for each value that it could leave out.
    static KNOWN: Mutex<Vec<(Format, u64)>> = Mutex::new(Vec::new());
    let format = Format { layout: Layout::Blob, expires: false, ..format };
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bytes)) = known().iter().find(|(one, _)| *one == format) {
        return Ok(*bytes);
    }
    let mut codec = format.codec()?;
    if codec.is_plain() {
        return Ok(format.payload as u64);
    }
    let store = format.store();
    let sample = if format.payload > 50_000 { 1 } else { 8 };
    let mut payload = Vec::new();
    let mut sum = 0;
    for key in 0..sample {
        store.write(key, 0, &mut payload);
        sum += codec.encode(&payload)?.len() as u64;
    }
    known().push((format, sum / sample));
    Ok(sum / sample)
}
