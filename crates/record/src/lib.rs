//! The run file: versioned, written during the run, readable after a kill at any time, resumable.
//!
//! A run is a directory, `<runs>/<name>/`, which contains the file `run.jsonl`. Reports are written beside it. The
//! file is JSON Lines:
//!
//! | line | content |
//! |---|---|
//! | first | `{"kurabe-run":3, …}`: the format's version, then a [`RunHeader`](kurabe_core::run::RunHeader) |
//! | one per trial, as it ends | `{"trial":{…}}`: a [`TrialRecord`](kurabe_core::run::TrialRecord) |
//! | when rounds are given up | `{"replanned":{…}}`: a [`Replanned`](kurabe_core::run::Replanned) |
//! | when the run is resumed | `{"resumed":{…}}`: a [`Resumption`](kurabe_core::run::Resumption) |
//! | last, unless the run was killed | `{"end":{…}}`: a [`RunEnd`](kurabe_core::run::RunEnd) |
//!
//! A resumed run continues after its `end`. Each line has its number and a checksum that also covers the previous
//! line. `docs/run-file.md` describes the format, `docs/schema/run.schema.json` is the schema of a line.
//!
//! Every line is appended with one write and made durable (`fdatasync`) before the next trial begins. A kill at any
//! time therefore loses at most the line that was being written. Such a torn line has no newline or is not JSON. It
//! is ignored with a note when the file is read, and truncated when the run is resumed. Any other change makes this
//! run, and no other, [`Damaged`](kurabe_core::ErrorKind::Damaged); the error has file and line.
//!
//! ```no_run
//! # fn main() -> kurabe_core::Result<()> {
//! let store = kurabe_record::Store::open("runs")?;
//! let newest = kurabe_record::read(&store.find("last")?)?;
//! println!("{} has {} trials", newest.run.header.run, newest.run.trials.len());
//! # Ok(())
//! # }
//! ```

mod archive;
mod format;
mod list;
mod path;
mod reader;
mod store;
mod trusted;
mod writer;

pub use archive::{Imported, export, import};
pub use format::{FORMAT_VERSION, MINOR_VERSION};
pub use list::{Entry, RunState, RunSummary};
pub use path::{NOTE_FILE, RUN_FILE, RunPath, is_shown};
pub use reader::{Follower, Recorded, read, read_header};
pub use store::{Resumed, Store};
pub use trusted::Trusted;
pub use writer::Writer;
