//! What an experiment is: a question, its axes, and for each cell a [`Workload`] whose transaction the engine runs.

use crate::axis::{AxisInfo, Cell};
use crate::driver::{Capability, Namespace, Session};
use crate::error::{Error, Result};
use crate::figure::Figure;
use crate::operation::Operation;
use crate::verification::Verification;
use std::time::Duration;

/// A question about databases, with what is varied to answer it.
pub trait Experiment: Sync {
    /// What it is: name, question, axes, operations, charts.
    fn info(&self) -> &'static ExperimentInfo;

    /// The work of one cell.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) or [`Unsupported`](crate::ErrorKind::Unsupported) where the values of the
    /// cell do not go together, with the reason.
    fn workload(&self, cell: &Cell, dataset: &Dataset) -> Result<Box<dyn Workload>>;

    /// The work of one cell on a target that is [an application](crate::driver::Capabilities::is_application): each
    /// transaction is one page of it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the experiment has no such form.
    fn workload_via(&self, cell: &Cell, dataset: &Dataset) -> Result<Box<dyn Workload>> {
        let _ = (cell, dataset);
        let name = self.info().name;
        Err(Error::unsupported(format!("{name} is not driven through an application")))
    }
}

/// What is known of an experiment before it runs. Help, docs, charts and the test matrix come from it.
#[derive(Debug)]
pub struct ExperimentInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, one sentence.
    pub question: &'static str,
    /// What it does, for `kurabe list`: a few sentences.
    pub about: &'static str,
    /// What it varies. The first values of all axes make the baseline cell.
    pub axes: &'static [AxisInfo],
    /// What it measures, each apart.
    pub operations: &'static [OperationInfo],
    /// Which axis is the horizontal one of its charts.
    pub chart_axis: &'static str,
    /// What answers the question: the first finding of its reports.
    pub answer: Answer,
    /// The file of published figures that can be laid under its charts, where there are any.
    pub published: Option<&'static str>,
}

impl ExperimentInfo {
    /// The first value of every axis: the baseline cell, but for the axes whose values are given.
    ///
    /// # Errors
    /// Where a value is none of its axis.
    pub fn baseline(&self, given: &[(&str, &str)]) -> Result<Cell> {
        let value = |axis: &AxisInfo| {
            let given = given.iter().find(|(name, _)| *name == axis.name).map(|(_, text)| *text);
            let text = given.or(axis.default.first().copied()).unwrap_or_default();
            Ok((axis.name.to_owned(), axis.parse(text)?))
        };
        self.axes.iter().map(value).collect::<Result<Vec<_>>>().map(Cell::new)
    }

    /// The names of all operations.
    pub fn operation_names(&self) -> Vec<String> {
        self.operations.iter().map(|operation| operation.name.to_owned()).collect()
    }
}

/// What answers an experiment's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Which target is the fastest, and which values of the axes, and by how much.
    Comparison,
    /// Transactions per second of each target.
    Throughput,
    /// What each value of this axis costs per transaction, compared with its baseline.
    Cost(&'static str),
    /// What each further unit of the chart axis adds to the server's memory, processes and threads.
    Slope,
}

/// Something that an experiment measures apart from the rest: `write`, `read`.
#[derive(Debug)]
pub struct OperationInfo {
    /// Its name.
    pub name: &'static str,
    /// What one such operation is.
    pub about: &'static str,
    /// How many the original experiment made, over all clients: the default number of requests.
    pub requests: u64,
    /// Whether it changes data: whether durability classes matter to it.
    pub writes: bool,
}

/// What all cells of a run share.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The run's seed: every row is a pure function of (seed, key, version).
    pub seed: u64,
    /// How many records the store holds before it is read; `None`: the experiment's own rule.
    pub records: Option<u64>,
    /// Goes into the names of collections, so that two targets on one server do not share them.
    pub slot: usize,
}

/// What a cell needs of its target: compared with what the driver supports and with the server's limits when the
/// run is planned, before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Every operation that the transaction, the load and the check prepare.
    pub operations: Vec<Operation>,
    /// What its driver must be able to do beside them: a target without one of these has no such cell.
    pub capabilities: Vec<Capability>,
    /// The largest single value, in bytes.
    pub value_bytes: u64,
    /// The largest request or answer, values together, in bytes.
    pub request_bytes: u64,
    /// The most parameters of one request.
    pub parameters: u64,
    /// Connections open at once.
    pub connections: u64,
    /// Bytes that the load puts into the store.
    pub loaded_bytes: u64,
    /// Bytes of memory that each client holds.
    pub client_bytes: u64,
    /// What the target must have said of itself.
    pub settings: Vec<NeededSetting>,
}

/// A setting that a target must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededSetting {
    /// Its name, as the target tells it.
    pub name: String,
    /// The value that it must have.
    pub value: String,
    /// How it comes to have it, a clause: "start it with …".
    pub remedy: String,
}

/// The work of one cell on one target.
pub trait Workload: Send + Sync {
    /// What it needs.
    fn demand(&self) -> Demand;

    /// How many clients run it at once.
    fn clients(&self) -> usize;

    /// Whether each transaction opens its own connection and closes it.
    fn connection_per_request(&self) -> bool;

    /// How many connections all clients share, each transaction taking one and giving it back; `None` where there is no
    /// such pool. A transaction in a pool is attached to each connection that it takes, and detached from it.
    fn pool(&self) -> Option<usize> {
        None
    }

    /// Which connections' cost to the server is asked; `None` where that is not the question.
    fn footprint(&self) -> Option<Footprint> {
        None
    }

    /// Whether its trials may be interleaved with those of other cells: not where what one leaves behind decides what the next one finds, as
    /// in a cache.
    fn can_interleave(&self) -> bool {
        true
    }

    /// How many transactions of this operation one trial may have, where each changes a record that no other of the trial
    /// changes, so that every change can be read back; `None` where they never run out of records.
    fn capacity(&self, operation: &str) -> Option<Capacity> {
        let _ = operation;
        None
    }

    /// How many requests one transaction sends before it awaits their answers. Each counts as a request of its own,
    /// and its service time is that of them all.
    fn pipeline(&self) -> u64 {
        1
    }

    /// Further transactions that an application serves beside the operations: by them a client that is not the
    /// application can hold it to what it said.
    fn further_pages(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether an application opens a connection of its own for each request of this operation or further page, whatever it
    /// does for others.
    fn connects_anew(&self, operation: &str) -> bool {
        let _ = operation;
        false
    }

    /// What a client has to know to verify an application's answers: names and numbers.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether every answer of a transaction that only reads is compared with what it must be. A user's own workload may
    /// not say what that is.
    fn verifies_reads(&self) -> bool {
        true
    }

    /// Mean bytes handed to the database for one record, after compression and encoding.
    fn stored_bytes(&self) -> Option<u64>;

    /// Names the data that [`Workload::load`] makes: cells with the same name on one target share it.
    fn data(&self) -> String;

    /// Makes the collections and fills them: deterministic, called once per run for each [`Workload::data`].
    ///
    /// # Errors
    /// The server's error, or a mismatch between what was sent and what the server counts.
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()>;

    /// Makes ready for one trial of an operation: say, empties the collection that it writes to. Not measured.
    ///
    /// # Errors
    /// The server's error.
    fn before(&self, operation: &str, namespace: &mut dyn Namespace, session: &mut dyn Session)
    -> Result<()>;

    /// The transaction of one client.
    ///
    /// # Errors
    /// Where the client's buffers cannot be made.
    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>>;

    /// Checks on the server, after a trial, that what the clients were told is true: reads back what they wrote, and has the
    /// server count it where it can. Not measured. `done` holds each client's transactions, warm-up included.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch) where it is not true; or the server's error.
    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Verification>;

    /// Figures of the trial that [`Workload::after`] has just checked which not every trial has.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}

/// Connections whose cost to the server a trial asks. A server that is ours is started anew before such a trial: many
/// keep what they needed once for their next connections, so that an earlier trial's would cost this one's nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// So many, opened beside the clients' own once these have warmed up, that stand idle until the trial ends.
    Idle(usize),
    /// Those of the clients, which work.
    Clients,
}

/// How many transactions one trial may have where each record is changed at most once.
///
/// Records are dealt out to clients in turn: of n records and c clients, each has n/c, and the first n mod c have one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Records that a trial may change.
    pub records: u64,
    /// Requests for each record: 20 where one request in 20 changes one.
    pub requests_per_record: u64,
}

impl Capacity {
    /// Requests that a client may make in one trial, warm-up included.
    pub fn of_client(&self, index: usize, count: usize) -> u64 {
        share(self.records, index, count).saturating_mul(self.requests_per_record)
    }
}

/// The part of `n` that falls to a client where it is dealt out in turn.
pub fn share(n: u64, index: usize, count: usize) -> u64 {
    let count = count.max(1) as u64;
    n / count + u64::from((index as u64) < n % count)
}

/// Which client a transaction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its number, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Seeds what it draws: differs between rounds, cells, operations and clients; equal between targets.
    pub seed: u64,
    /// The number of its trial, from 1. It goes up from trial to trial on the same data.
    pub trial: u64,
}

impl Client {
    /// The version before the first that this client writes. A record has a higher version in each later trial, so that no
    /// write repeats what is there already, and one that never happened cannot be taken for one that did.
    pub fn base_version(&self) -> u64 {
        /// More than the transactions of any client.
        const VERSIONS: u64 = 1 << 32;
        self.trial * VERSIONS
    }
}

/// What a client completed in a trial, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The client.
    pub client: Client,
    /// Its completed transactions.
    pub completed: u64,
    /// Rows that the server acknowledged to have added ([`Transaction::rows_written`]).
    pub rows_written: u64,
}

/// One client's unit of application work. The engine calls `attach`, then `draw`, `run` and `check` in turn.
pub trait Transaction: Send {
    /// Prepares on a new session what is prepared once. Called again for each new connection.
    ///
    /// # Errors
    /// The server's error.
    fn attach(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Gives back what [`Transaction::attach`] prepared, before the connection goes back to its pool.
    ///
    /// # Errors
    /// The server's error.
    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// The measured phase begins: what there was before was warm-up, which is in no figure.
    fn warmed_up(&mut self) {}

    /// Chooses what the next `run` asks for and makes what it writes: what in an application is there already when
    /// the request begins, so it is not timed.
    fn draw(&mut self);

    /// Chooses this record: in place of [`Transaction::draw`], where a client of an application names one.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) where the transaction chooses itself.
    fn choose(&mut self, key: u64) -> Result<()> {
        let _ = key;
        Err(Error::usage("this page chooses its record itself"))
    }

    /// Does the work: this is what is timed. Allocates nothing.
    ///
    /// # Errors
    /// The server's error.
    fn run(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Compares the answer of the last `run` with what it must be; not in its time, but in the client's CPU figure.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch): the trial fails.
    fn check(&mut self) -> Result<()>;

    /// Appends what the last `run` read or wrote, in the form that `docs/app.openapi.yaml` describes: the body of an
    /// application's answer. Called after a `check` that found all right.
    fn answer(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"done\n");
    }

    /// The time that named parts of all runs so far took together, where a transaction has parts. The names are of
    /// [`FIGURES`](crate::figure::FIGURES).
    fn parts(&self) -> &[(&'static str, Duration)] {
        &[]
    }

    /// Rows that the server has acknowledged so far: what it must count after the trial. Reads leave it at 0.
    fn rows_written(&self) -> u64 {
        0
    }

    /// How often it was begun again after an error that asks for it, so far; each time within the `run` that it was.
    fn retries(&self) -> u64 {
        0
    }
}

/// When a trial's measured phase ends: at whichever of `requests` and `duration` comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// So many transactions, over all clients.
    pub requests: Option<u64>,
    /// So long after its start.
    pub duration: Option<Duration>,
    /// Not before this time, though all requests be made.
    pub least: Option<Duration>,
}
