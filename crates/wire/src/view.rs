//! What a recorder learns from the bytes of a connection: requests with their values, and the shape of each answer.

use crate::bounded::Size;
pub use crate::moment::{Spans, Watch, moment, moment_like};
pub use crate::protocols::redis::lists_without_rows;
pub(crate) use crate::rows::Digest;
pub use crate::rows::{COMPLETE, Rows, are_all, uuid};
use crate::tls::begins_with_tls;
use kurabe_protocol::call::QUIET;
pub use kurabe_protocol::call::{Parameter, Value};
use std::collections::VecDeque;
use std::time::Instant;

/// The maximum size of a request that is kept, in bytes. What is longer is cut off, and said to be.
pub(crate) const KEPT: usize = 1 << 20;
/// The text of a prepared statement whose own was not kept.
pub(crate) const UNKNOWN: &str = "a prepared statement that was not recorded";
/// The maximum size of the requests of a connection that wait for an answer, in bytes.
pub(crate) const WAITING: usize = 16 << 20;

/// Why the rest of a connection is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Encrypted,
    Unreadable(&'static str),
}

impl From<&'static str> for Stop {
    fn from(why: &'static str) -> Self {
        Self::Unreadable(why)
    }
}

impl Stop {
    /// The reason, for people.
    pub fn why(self) -> &'static str {
        match self {
            Self::Encrypted => "the connection is encrypted",
            Self::Unreadable(why) => why,
        }
    }
}

/// What both ends of one connection say to each other. It is fed the bytes of both in pieces of any size, gives the requests with the
/// shapes of their answers, and never fails: of a stream that it cannot read it says so once, with [`Event::Unreadable`].
pub struct Conversation {
    /// `None` once nothing is read any more.
    reader: Option<Box<dyn ReadExchanges>>,
    /// The client's first bytes, until it is known whether TLS begins with them.
    start: Option<Vec<u8>>,
}

/// Reads requests and answers of one protocol, until it stops.
pub(crate) trait ReadExchanges: Send {
    /// The client begins. Of most protocols it does not say what it is.
    fn begins(&mut self, events: &mut Vec<Event>) {
        events.push(Event::Client(Vec::new()));
    }

    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop>;

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop>;

    /// See [`Conversation::watch`].
    fn watch(&mut self, _watch: Watch) {}

    /// See [`Conversation::let_in`].
    fn let_in(&mut self, _capabilities: u32) {}

    fn stopped(&mut self, _events: &mut Vec<Event>) {}

    /// See [`Conversation::closed`].
    fn closed(&mut self, _now: Instant, _events: &mut Vec<Event>) {}

    /// See [`Conversation::end`].
    fn end(&mut self, events: &mut Vec<Event>);
}

impl Conversation {
    /// Of a protocol whose client speaks first.
    pub(crate) fn new(reader: impl ReadExchanges + 'static) -> Self {
        Self { reader: Some(Box::new(reader)), start: Some(Vec::new()) }
    }

    /// Of a protocol whose server speaks first, before any TLS.
    pub(crate) fn after_greeting(reader: impl ReadExchanges + 'static) -> Self {
        Self { reader: Some(Box::new(reader)), start: None }
    }

    pub fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        let Some(reader) = &mut self.reader else { return };
        let read = if let Some(start) = &mut self.start {
            start.extend_from_slice(bytes);
            let Some(is_tls) = begins_with_tls(start) else { return };
            reader.begins(events);
            let start = self.start.take().unwrap_or_default();
            if is_tls { Err(Stop::Encrypted) } else { reader.sent(&start, now, events) }
        } else {
            reader.sent(bytes, now, events)
        };
        self.end_where_it_stops(read, events);
    }

    pub fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        let Some(reader) = &mut self.reader else { return };
        let read = reader.received(bytes, now, events);
        self.end_where_it_stops(read, events);
    }

    /// Says since when the connection is watched. Without it no time is one of the server's clock.
    pub fn watch(&mut self, watch: Watch) {
        if let Some(reader) = &mut self.reader {
            reader.watch(watch);
        }
    }

    /// Reads on as if the client had just been let in, under these capabilities of MySQL.
    pub fn let_in(&mut self, capabilities: u32) {
        self.start = None;
        if let Some(reader) = &mut self.reader {
            reader.let_in(capabilities);
        }
    }

    /// The server has closed the connection, and nothing of what it sent is missing: an answer that ends so is complete.
    pub fn closed(&mut self, now: Instant, events: &mut Vec<Event>) {
        if let Some(reader) = &mut self.reader {
            reader.closed(now, events);
        }
    }

    /// Gives the requests that were never answered, as the connection ends.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        if let Some(mut reader) = self.reader.take() {
            reader.end(events);
        }
    }

    fn end_where_it_stops(&mut self, read: Result<(), Stop>, events: &mut Vec<Event>) {
        if let Err(stop) = read {
            if let Some(reader) = &mut self.reader {
                reader.stopped(events);
            }
            self.end(events);
            events.push(Event::Unreadable(stop));
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client has begun: name and value of what it said about itself, such as `user`.
    Client(Vec<(String, String)>),
    /// A request that was answered, or never will be.
    Exchange(Box<Exchange>),
    /// Bulk data of the client, part of its oldest request without an answer, whose text is `of`.
    Data {
        bytes: Vec<u8>,
        /// The statement.
        of: String,
    },
    /// The server requests a file of the client's, whose first packet has this number.
    FileWanted { sequence: u8 },
    /// What a client calls itself that says so only later.
    Named(String),
    /// Something else worth knowing.
    Note(String),
    /// The rest cannot be read, and why.
    Unreadable(Stop),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// As a text that is executed at once.
    #[default]
    Text,
    /// Prepared under a name, to be executed later.
    Prepare,
    /// Executed after it was prepared under a name.
    Execute,
    /// Prepared, bound and executed in one go.
    Bound,
}

impl Step {
    /// Every way, in the order of its numbers in files.
    pub const ALL: [Self; 4] = [Self::Text, Self::Prepare, Self::Execute, Self::Bound];
}

/// The state of a connection's transaction after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transaction {
    /// The server said nothing: more answers follow.
    #[default]
    Unknown,
    None,
    Open,
    /// One is open, and has failed.
    Failed,
}

impl Transaction {
    /// Every state, in the order of its numbers in files.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::None, Self::Open, Self::Failed];
}

/// A request and the shape of its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The text of a statement; of any other call, whose parts say what it is, a text for people.
    pub text: String,
    pub step: Step,
    /// The parameters of an execution, or the parts of a call that is no statement.
    pub parameters: Vec<Parameter>,
    /// The formats of the columns that an execution asks for, where not all are text: whether each is binary, or all if
    /// there is one.
    pub formats: Vec<bool>,
    /// The maximum number of rows of an execution, after which it can go on; 0: all.
    pub limit: u32,
    /// Whether it goes on with an execution that had such a maximum.
    pub goes_on: bool,
    /// Whether something is missing of text or parameters, because they are too long.
    pub cut: bool,
    /// Whether it was sent before an earlier request was answered.
    pub pipelined: bool,
    /// The number of bytes that the client sent before it.
    pub at: u64,
    /// When its first byte was seen; `None` only while it is made.
    pub began: Option<Instant>,
    /// When its answer was complete; `None` if it never was.
    pub ended: Option<Instant>,
    pub rows: u64,
    /// Rows that the server says were changed or copied.
    pub affected: u64,
    /// The code of the error.
    pub error: Option<String>,
    /// A checksum of the rows, see `Digest`.
    pub digest: u64,
    /// Moments of the server's clock in the answer, and keys that it may have made, in the order in which they came.
    pub made: Vec<Vec<u8>>,
    /// The rows themselves, if they are to be kept.
    pub kept: Option<Rows>,
    /// The number that the server gave to a statement that was prepared.
    pub statement: Option<u32>,
    /// The transaction afterwards.
    pub transaction: Transaction,
}

/// Requests of a connection that wait for an answer, the oldest first, each with what its protocol has to know of it. What
/// exceeds the limit of their size is not kept.
pub(crate) struct Waiting<T = ()> {
    requests: VecDeque<(T, Exchange)>,
    /// The memory of their values and texts, in bytes.
    size: usize,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { requests: VecDeque::new(), size: 0 }
    }
}

impl<T> Waiting<T> {
    /// # Errors
    /// If more wait than can be kept, even without their values, which `cut` leaves out.
    pub(crate) fn push(
        &mut self,
        known: T,
        mut request: Exchange,
        cut: fn(&mut Exchange),
    ) -> Result<(), Stop> {
        if self.size + request.size() > WAITING {
            cut(&mut request);
        }
        self.size += request.size();
        self.requests.push_back((known, request));
        let is_full = self.requests.len() > WAITING / 64 || self.size > 2 * WAITING;
        if is_full { Err(Stop::Unreadable("too many requests wait for answers")) } else { Ok(()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&Exchange> {
        self.requests.front().map(|(_, request)| request)
    }

    pub(crate) fn first_mut(&mut self) -> Option<(&T, &mut Exchange)> {
        self.requests.front_mut().map(|(known, request)| (&*known, request))
    }

    /// What is known of each.
    pub(crate) fn known(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.requests.iter().map(|(known, _)| known)
    }

    /// Takes away the request that was sent last, if this is known of it.
    pub(crate) fn pop_last(&mut self, is_known: impl Fn(&T) -> bool) -> Option<(T, Exchange)> {
        self.requests.back().filter(|(known, _)| is_known(known))?;
        let (known, request) = self.requests.pop_back()?;
        self.size -= request.size();
        Some((known, request))
    }

    /// The oldest request of those of which this is known.
    pub(crate) fn oldest(&self, is_known: impl Fn(&T) -> bool) -> Option<&Exchange> {
        self.requests.iter().find(|(known, _)| is_known(known)).map(|(_, request)| request)
    }

    /// The request that was sent last of those of which this is known.
    pub(crate) fn last(&self, is_known: impl Fn(&T) -> bool) -> Option<&Exchange> {
        self.requests.iter().rev().find(|(known, _)| is_known(known)).map(|(_, request)| request)
    }

    pub(crate) fn pop(&mut self) -> Option<(T, Exchange)> {
        let (known, request) = self.requests.pop_front()?;
        self.size -= request.size();
        Some((known, request))
    }

    /// Gives those of which this is known, as the connection ends.
    pub(crate) fn end(&mut self, is_request: impl Fn(&T) -> bool, events: &mut Vec<Event>) {
        let requests = self.requests.drain(..).filter(|(known, _)| is_request(known));
        events.extend(requests.map(|(_, request)| Event::Exchange(Box::new(request))));
        self.size = 0;
    }
}

impl Exchange {
    /// Leaves out the values. Names stay, and whether there is no answer.
    pub(crate) fn cut_values(&mut self) {
        self.parameters.retain(|one| one.is_name() || one.kind == QUIET);
        self.cut = true;
    }
}

impl Size for Exchange {
    /// About its memory: its members, its values and its text.
    fn size(&self) -> usize {
        let values = self.parameters.iter().map(|one| one.bytes().map_or(0, <[u8]>::len) + 32);
        200 + self.text.len() + values.sum::<usize>()
    }
}

/// Passes on bulk data of the client, which is part of its oldest request.
pub(crate) fn push_data(data: &[u8], request: Option<&Exchange>, events: &mut Vec<Event>) {
    if let Some(Event::Data { bytes, .. }) = events.last_mut() {
        bytes.extend_from_slice(data);
    } else if !data.is_empty() {
        let of = request.map(|request| request.text.clone()).unwrap_or_default();
        events.push(Event::Data { bytes: data.to_vec(), of });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kurabe_protocol::command::Command;
    use std::sync::OnceLock;

    /// The time of all that was answered.
    static SOME: OnceLock<Instant> = OnceLock::new();

    /// What is seen of a conversation in pieces of this size: whether the client speaks, and what it says.
    pub(crate) fn seen_of(
        reader: impl ReadExchanges + 'static,
        conversation: &[(bool, Vec<u8>)],
        piece: usize,
    ) -> Vec<Event> {
        seen_by(Conversation::new(reader), conversation, piece)
    }

    pub(crate) fn seen_by(
        mut view: Conversation,
        conversation: &[(bool, Vec<u8>)],
        piece: usize,
    ) -> Vec<Event> {
        let (now, mut events) = (*SOME.get_or_init(Instant::now), Vec::new());
        for (is_client, bytes) in conversation {
            for piece in bytes.chunks(piece) {
                if *is_client {
                    view.sent(piece, now, &mut events);
                } else {
                    view.received(piece, now, &mut events);
                }
            }
        }
        view.end(&mut events);
        events
    }

    /// What a client says as text, and what a server does.
    pub(crate) fn asked(text: &str) -> (bool, Vec<u8>) {
        (true, text.as_bytes().to_vec())
    }

    pub(crate) fn told(text: &str) -> (bool, Vec<u8>) {
        (false, text.as_bytes().to_vec())
    }

    /// The words of a request behind the name of its command.
    pub(crate) fn words(one: &Exchange) -> Vec<&[u8]> {
        Command::read(&one.parameters).unwrap().words().collect()
    }

    pub(crate) fn exchanges(events: &[Event]) -> Vec<&Exchange> {
        events
            .iter()
            .filter_map(|event| if let Event::Exchange(one) = event { Some(&**one) } else { None })
            .collect()
    }
}
