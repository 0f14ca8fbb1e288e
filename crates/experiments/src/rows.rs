//! Small rows with integer keys: `(id bigint primary key, data varchar)`. This module loads, reads and writes them.

use crate::answer;
use crate::prelude::*;
use crate::{fill, readback};

/// The version of every row after loading. Writes have higher versions.
pub(crate) const LOADED: u64 = 0;

/// A table of such rows, whose data have at most this many characters.
pub(crate) fn collection(name: String, max: u32) -> Collection {
    let id = Field { name: "id", kind: FieldType::Int };
    let data = Field { name: "data", kind: FieldType::Text { max } };
    Collection::new(name, vec![id, data], vec![0])
}

pub(crate) struct Rows<D> {
    pub(crate) collection: Arc<Collection>,
    pub(crate) data: D,
    /// The number of loaded rows; their keys are 1 to this number.
    pub(crate) records: u64,
}

impl<D: RowData> Rows<D> {
    pub(crate) fn new(name: String, data: D, records: u64) -> Self {
        let collection = collection(name, data.length() as u32);
        Self { collection: Arc::new(collection), data, records }
    }

    pub(crate) fn select(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.collection), fields: vec![1] }
    }

    pub(crate) fn update(&self) -> Operation {
        Operation::Update { collection: Arc::clone(&self.collection), fields: vec![1] }
    }

    pub(crate) fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.collection) }
    }

    /// Rows of a request of the load.
    pub(crate) fn per_request(&self) -> u64 {
        fill::rows_of_a_request(2, self.data.length() as u64).clamp(1, fill::REQUEST_ROWS)
    }

    /// The demand of loading and reading the rows, and of these operations.
    pub(crate) fn demand(&self, operations: Vec<Operation>) -> Demand {
        let length = self.data.length() as u64;
        let row = length + 32;
        Demand {
            operations: [vec![self.select(), self.insert()], operations].concat(),
            value_bytes: length,
            request_bytes: row * self.per_request(),
            parameters: 2 * self.per_request(),
            loaded_bytes: self.records * row,
            client_bytes: 64_000,
            ..Demand::default()
        }
    }

    /// Creates the table, inserts all rows, and checks each.
    pub(crate) fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        namespace.create(&self.collection)?;
        fill::fill(session, &self.collection, self.records, self.per_request(), &mut |row, field, out| {
            let key = row + 1;
            if field == 0 {
                return Ok(Value::Int(key as i64));
            }
            self.data.write(key, LOADED, out);
            fill::text(out)
        })?;
        namespace.analyse(&self.collection)?;
        self.check_count(session, self.records)?;
        let (keys, bytes) = (1..self.records as i64 + 1, self.data.length() as u64);
        readback::numbered(session, &self.collection, &[1], bytes, keys, &mut |key, found| {
            self.data.check(key as u64, LOADED, found.bytes(key)?)
        })
        .map_err(|error| error.context("after loading"))
    }

    /// Checks the number of rows on the server. Returns it; `None` if the server cannot count.
    pub(crate) fn check_count(&self, session: &mut dyn Session, expected: u64) -> Result<Option<u64>> {
        fill::check_count(session, &self.collection, expected, "records")
    }

    /// Reads rows back and compares each, byte for byte, with its expected version. Returns how many it read.
    pub(crate) fn read_back(
        &self,
        session: &mut dyn Session,
        rows: impl Iterator<Item = (u64, u64)>,
    ) -> Result<u64> {
        readback::each(
            session,
            &self.select(),
            self.data.length() as u64,
            rows,
            |(key, _)| [Value::Int(*key as i64)],
            |(key, version), reply| self.check(*key, *version, reply),
        )
        .map_err(|error| error.context("read back"))
    }

    /// Checks the answer to [`Rows::select`]: one row, byte for byte.
    #[inline]
    pub(crate) fn check(&self, key: u64, version: u64, reply: &Reply) -> Result<()> {
        match reply.field_bytes(0, 0) {
            Some(bytes) if reply.rows() == 1 => self.data.check(key, version, bytes),
            _ => Err(readback::wrong_rows(key, reply.rows())),
        }
    }
}

/// Reads uniformly drawn rows of the loaded ones, or a named row.
pub(crate) struct Read<D> {
    rows: Arc<Rows<D>>,
    /// The source of rows with higher keys, which a client may name.
    added: Option<Arc<Rows<D>>>,
    statement: Statement,
    reply: Reply,
    rng: Rng,
    key: u64,
    named: bool,
}

impl<D: RowData> Read<D> {
    pub(crate) fn new(rows: &Arc<Rows<D>>, added: Option<&Arc<Rows<D>>>, bind: Bind, client: Client) -> Self {
        Self {
            rows: Arc::clone(rows),
            added: added.map(Arc::clone),
            statement: Statement::new(rows.select(), bind),
            reply: Reply::new(),
            rng: Rng::new(client.seed),
            key: 0,
            named: false,
        }
    }

    fn was_loaded(&self) -> bool {
        (1..=self.rows.records).contains(&self.key)
    }
}

impl<D: RowData> Transaction for Read<D> {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.detach(session)
    }

    #[inline]
    fn prepare_input(&mut self) {
        self.key = 1 + self.rng.below(self.rows.records);
        self.named = false;
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let parameters = [Value::Int(self.key as i64)];
        match &self.added {
            // Such a row is requested rarely, to verify that it exists.
            Some(added) if self.named && !self.was_loaded() => {
                Statement::new(added.select(), Bind::PerRequest)
                    .execute(session, &parameters, &mut self.reply)
            }
            _ => self.statement.execute(session, &parameters, &mut self.reply),
        }
    }

    #[inline]
    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        if self.named && self.reply.rows() == 0 && !self.was_loaded() {
            return Err(absent(self.key));
        }
        self.rows.check(self.key, LOADED, &self.reply)
    }

    fn set_key(&mut self, key: u64) -> Result<()> {
        // Keys are signed on the server.
        self.key = i64::try_from(key).map_err(|_| absent(key))? as u64;
        self.named = true;
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        answer::record(self.key, self.reply.field_bytes(0, 0).unwrap_or_default(), out);
    }
}

/// No such record was ever reported.
fn absent(key: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("record {key} does not exist"))
}

/// What a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The data of an existing row.
    Change,
    /// A new row.
    Add,
}

/// Writes the rows of its client, each with the key and the version that `draws` yields.
pub(crate) struct Write<D, I> {
    rows: Arc<Rows<D>>,
    how: How,
    statement: Statement,
    reply: Reply,
    draws: I,
    key: u64,
    data: Vec<u8>,
}

impl<D: RowData, I> Write<D, I> {
    pub(crate) fn new(rows: &Arc<Rows<D>>, how: How, bind: Bind, draws: I) -> Self {
        let operation = if how == How::Add { rows.insert() } else { rows.update() };
        Self {
            rows: Arc::clone(rows),
            how,
            statement: Statement::new(operation, bind),
            reply: Reply::new(),
            draws,
            key: 0,
            data: Vec::new(),
        }
    }
}

impl<D: RowData, I: Iterator<Item = (u64, u64)> + Send> Transaction for Write<D, I> {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    #[inline]
    fn prepare_input(&mut self) {
        // A failed transaction counts too: the answer may have been lost after the row was stored.
        if let Some((key, version)) = self.draws.next() {
            self.key = key;
            self.rows.data.write(key, version, &mut self.data);
        }
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let (key, data) = (Value::Int(self.key as i64), fill::text(&self.data)?);
        let parameters = if self.how == How::Add { [key, data] } else { [data, key] };
        self.statement.execute(session, &parameters, &mut self.reply)
    }

    #[inline]
    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        match self.how {
            How::Change => acknowledged_change(&self.reply, self.key)?,
            How::Add => fill::acknowledged(&self.reply, format_args!("added record {}", self.key))?,
        }
        recorder.rows_written(1);
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        answer::record(self.key, &self.data, out);
    }
}

/// Checks that the server acknowledged one change.
#[inline]
pub(crate) fn acknowledged_change(reply: &Reply, key: u64) -> Result<()> {
    fill::acknowledged(reply, format_args!("the change of row {key}"))
}
