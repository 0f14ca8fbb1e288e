//! The records of a capture, and their bytes: numbers are LEB128, texts have their length before them.

pub use kurabe_wire::view::{Parameter, Value};
use kurabe_wire::view::{Step, Transaction};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Open {
        /// Its number, from 0 in the order of opening.
        connection: u64,
        /// When, in nanoseconds since the capture began.
        at: u64,
        /// What the client said about itself, by name.
        said: Vec<(String, String)>,
    },
    /// A statement, before its first use.
    Statement {
        number: u64,
        /// Its text, with gaps for values.
        template: String,
    },
    Request(Box<Request>),
    /// Bulk data of the client, part of the connection's next request.
    Data {
        connection: u64,
        length: u64,
        /// The bytes, if they are kept.
        bytes: Vec<u8>,
    },
    /// Values that the server made, part of the answer to the connection's next request.
    Made {
        connection: u64,
        values: Vec<Vec<u8>>,
    },
    /// A connection has ended, or the rest of it is not read.
    Close {
        connection: u64,
        /// When, in nanoseconds since the capture began.
        at: u64,
        /// Why the rest could not be read.
        unreadable: Option<String>,
    },
    /// The recorder has ended in order.
    End {
        requests: u64,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The connection, from 0 in the order of opening.
    pub connection: u64,
    /// When it began, in nanoseconds since the capture did.
    pub at: u64,
    /// How long the answer took, in nanoseconds; `None` if there was none.
    pub time: Option<u64>,
    /// The number of its statement's template.
    pub statement: u64,
    /// What fills the gaps of the template; nothing if values are dropped.
    pub literals: Vec<String>,
    pub step: Step,
    pub parameters: Vec<Parameter>,
    /// The formats of the columns that an execution asks for, where not all are text: whether each is binary, or all if
    /// there is one.
    pub formats: Vec<bool>,
    /// The maximum number of rows of an execution, after which it can go on; 0: all.
    pub limit: u32,
    /// Whether it goes on with an execution that had such a maximum.
    pub goes_on: bool,
    /// Whether values are missing, because they are too long or the statement may contain a password.
    pub cut: bool,
    /// Whether it was sent before an earlier request was answered.
    pub pipelined: bool,
    pub rows: u64,
    /// Rows that were changed or copied.
    pub affected: u64,
    pub error: Option<String>,
    /// The checksum of the rows.
    pub digest: u64,
    pub transaction: Transaction,
}

/// Appends records to the bytes of a block. Times are differences to the one before.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    last: u64,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    fn time(&mut self, at: u64) {
        let difference = at.wrapping_sub(self.last) as i64;
        self.last = at;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }

    pub(crate) fn push(&mut self, record: &Record) {
        match record {
            Record::Open { connection, at, said } => {
                self.bytes.push(0);
                self.number(*connection);
                self.time(*at);
                self.number(said.len() as u64);
                for (name, value) in said {
                    self.text(name.as_bytes());
                    self.text(value.as_bytes());
                }
            }
            Record::Statement { number, template } => {
                self.bytes.push(1);
                self.number(*number);
                self.text(template.as_bytes());
            }
            Record::Request(request) => self.request(request),
            Record::Data { connection, length, bytes } => {
                self.bytes.push(3);
                self.number(*connection);
                self.number(*length);
                self.text(bytes);
            }
            Record::Made { connection, values } => {
                self.bytes.push(6);
                self.number(*connection);
                self.number(values.len() as u64);
                for value in values {
                    self.text(value);
                }
            }
            Record::Close { connection, at, unreadable } => {
                self.bytes.push(4);
                self.number(*connection);
                self.time(*at);
                self.text(unreadable.as_deref().unwrap_or_default().as_bytes());
            }
            Record::End { requests } => {
                self.bytes.push(5);
                self.number(*requests);
            }
        }
    }

    fn request(&mut self, request: &Request) {
        self.bytes.push(2);
        self.number(request.connection);
        self.time(request.at);
        // 0 is no answer.
        self.number(request.time.map_or(0, |time| time + 1));
        self.number(request.statement);
        let (step, transaction) = (request.step as u8, request.transaction as u8);
        // Data that is copied out has a checksum and no rows.
        let has_digest = request.digest > 0 || request.rows > 0;
        let has_formats = !request.formats.is_empty() || request.limit > 0 || request.goes_on;
        let flags = [request.cut, request.pipelined, has_digest, has_formats];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        self.bytes.push(step | transaction << 2 | flags << 4);
        self.number(request.literals.len() as u64);
        for literal in &request.literals {
            self.text(literal.as_bytes());
        }
        self.number(request.parameters.len() as u64);
        for parameter in &request.parameters {
            self.number(u64::from(parameter.kind));
            let format = u8::from(parameter.binary) << 2 | u8::from(parameter.chosen) << 3;
            match &parameter.value {
                Value::Null => self.bytes.push(format),
                Value::Dropped => self.bytes.push(format | 1),
                Value::Bytes(bytes) => {
                    self.bytes.push(format | 2);
                    self.text(bytes);
                }
            }
        }
        if has_formats {
            self.number(u64::from(request.limit) << 1 | u64::from(request.goes_on));
            self.number(request.formats.len() as u64);
            self.bytes.extend(request.formats.iter().map(|binary| u8::from(*binary)));
        }
        self.number(request.rows);
        self.number(request.affected);
        self.text(request.error.as_deref().unwrap_or_default().as_bytes());
        if has_digest {
            self.bytes.extend_from_slice(&request.digest.to_le_bytes());
        }
    }
}

/// Reads the records of a block. `None` from a method: the bytes are no records.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    last: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, last: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.slice()?.to_vec()).ok()
    }

    fn time(&mut self) -> Option<u64> {
        let folded = self.number()?;
        let difference = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        self.last = self.last.wrapping_add(difference as u64);
        Some(self.last)
    }

    /// A number of parts that may be there.
    fn many<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.bytes.len())?;
        (0..count).map(|_| one(self)).collect()
    }

    pub(crate) fn next(&mut self) -> Option<Record> {
        Some(match self.byte()? {
            0 => Record::Open {
                connection: self.number()?,
                at: self.time()?,
                said: self.many(|reader| Some((reader.text()?, reader.text()?)))?,
            },
            1 => Record::Statement { number: self.number()?, template: self.text()? },
            2 => Record::Request(Box::new(self.request()?)),
            3 => Record::Data {
                connection: self.number()?,
                length: self.number()?,
                bytes: self.slice()?.to_vec(),
            },
            4 => Record::Close {
                connection: self.number()?,
                at: self.time()?,
                unreadable: Some(self.text()?).filter(|why| !why.is_empty()),
            },
            5 => Record::End { requests: self.number()? },
            6 => Record::Made {
                connection: self.number()?,
                values: self.many(|reader| Some(reader.slice()?.to_vec()))?,
            },
            _ => return None,
        })
    }

    fn request(&mut self) -> Option<Request> {
        let (connection, at) = (self.number()?, self.time()?);
        let (time, statement, flags) = (self.number()?.checked_sub(1), self.number()?, self.byte()?);
        let literals = self.many(Self::text)?;
        let parameters = self.many(|reader| {
            let kind = u32::try_from(reader.number()?).ok()?;
            let format = reader.byte()?;
            let value = match format & 3 {
                0 => Value::Null,
                1 => Value::Dropped,
                _ => Value::Bytes(reader.slice()?.to_vec()),
            };
            Some(Parameter { kind, chosen: format & 8 != 0, binary: format & 4 != 0, value })
        })?;
        let (mut fetch, mut formats) = (0, Vec::new());
        if flags & 1 << 7 != 0 {
            fetch = self.number()?;
            formats = self.many(|reader| Some(reader.byte()? != 0))?;
        }
        let (rows, affected, error) = (self.number()?, self.number()?, self.text()?);
        let digest = if flags & 1 << 6 != 0 {
            let (digest, rest) = self.bytes.split_first_chunk()?;
            self.bytes = rest;
            u64::from_le_bytes(*digest)
        } else {
            0
        };
        Some(Request {
            connection,
            at,
            time,
            statement,
            literals,
            step: *Step::ALL.get(usize::from(flags & 3))?,
            parameters,
            formats,
            limit: u32::try_from(fetch >> 1).ok()?,
            goes_on: fetch & 1 == 1,
            cut: flags & 1 << 4 != 0,
            pipelined: flags & 1 << 5 != 0,
            rows,
            affected,
            error: Some(error).filter(|code| !code.is_empty()),
            digest,
            transaction: *Transaction::ALL.get(usize::from(flags >> 2 & 3))?,
        })
    }
}
