//! PostgreSQL's protocol, version 3 (manual, "Frontend/Backend Protocol").

use crate::bounded::Texts;
use crate::conceal;
use crate::decoder::{Decode, Request, Seen};
use crate::frames::{Framed, Frames, Piece};
use crate::input::KEPT;
use crate::reader::Stop;
use crate::view::Step;
use kurabe_protocol::postgres::frame::{CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, Start, Tagged, frontend};
use kurabe_protocol::postgres::message::{self, Target};
use kurabe_protocol::sql::{Dialect, Statement};

/// Why a stream cannot be read.
pub(super) const NOT_POSTGRES: &str = "the client does not speak PostgreSQL's protocol";

/// The text of a statement whose preparation was not seen.
const UNKNOWN: &str = "a prepared statement";
/// The text of a call of a function.
pub(super) const FUNCTION_CALL: &str = "a function call";

/// Reads what a client sends, and keeps at most `MAX` bytes of each message.
pub(super) enum Requests<const MAX: usize> {
    /// Before the first message that has a tag.
    Start(Frames<Start, MAX>),
    Messages(Frames<Tagged, MAX>),
}

impl<const MAX: usize> Default for Requests<MAX> {
    fn default() -> Self {
        Self::Start(Frames::default())
    }
}

/// What follows in the stream.
pub(super) enum Next<'a> {
    /// A request for encryption, before the first message.
    Encryption,
    /// A request to cancel one of another connection.
    Cancel,
    /// The first message, with settings.
    Start(Framed<Start>),
    /// A part of COPY's data.
    Data(&'a [u8]),
    Message(Framed<Tagged>),
}

impl<const MAX: usize> Requests<MAX> {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Start(start) => start.push(bytes),
            Self::Messages(messages) => messages.push(bytes),
        }
    }

    /// Whether a message with a tag has begun to arrive.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self, Self::Messages(messages) if messages.has_begun())
    }

    /// What follows; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Result<Option<Next<'_>>, Stop> {
        if let Self::Start(start) = self {
            let Some(Piece::Message(first)) = start.next(NOT_POSTGRES, |_, _| false)? else {
                return Ok(None);
            };
            let next = match first.header.code {
                SSL_REQUEST | GSS_REQUEST => return Ok(Some(Next::Encryption)),
                CANCEL_REQUEST => Next::Cancel,
                _ => Next::Start(first),
            };
            *self = Self::Messages(start.rest());
            return Ok(Some(next));
        }
        let Self::Messages(messages) = self else { return Ok(None) };
        let is_data = |header: Tagged, _| header.tag == frontend::COPY_DATA;
        let next = messages.next("a message's length is wrong", is_data)?;
        Ok(next.map(|piece| match piece {
            Piece::Part(_, data) => Next::Data(data),
            Piece::PartsEnd(_) => Next::Data(&[]),
            Piece::Message(message) => Next::Message(message),
        }))
    }
}

/// The decoder.
#[derive(Default)]
pub(crate) struct Postgres {
    requests: Requests<KEPT>,
    /// Whether the server has to say whether it encrypts.
    has_asked: bool,
    statements: Texts<Vec<u8>>,
    /// The statement of each portal.
    portals: Texts<Vec<u8>>,
    /// Portals of the unnamed statement.
    unnamed: bool,
    /// Where the messages of the statement that is bound now begin.
    begins: Option<u64>,
}

impl Decode for Postgres {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.requests.push(bytes);
        while let Some(next) = self.requests.next()? {
            match next {
                Next::Encryption => self.has_asked = true,
                Next::Cancel => {
                    seen.push(Seen::Note("it cancels a request of another connection".to_owned()));
                }
                Next::Start(first) => settings(&first.body, seen),
                Next::Data(_) => {}
                Next::Message(message) => self.message(&message, seen)?,
            }
        }
        Ok(())
    }

    fn received(&mut self, bytes: &[u8], _: &mut Vec<Seen>) -> Result<(), Stop> {
        let has_agreed = std::mem::take(&mut self.has_asked) && matches!(bytes.first(), Some(b'S' | b'G'));
        if has_agreed { Err(Stop::Encrypted) } else { Ok(()) }
    }
}

impl Postgres {
    fn message(&mut self, message: &Framed<Tagged>, seen: &mut Vec<Seen>) -> Result<(), Stop> {
        let at = message.at;
        let mut request = |at: u64, text: String, step: Step, is_setup: bool| {
            seen.push(Seen::Request(Request { at, text, step, is_setup }));
        };
        match message::Request::read(message.header.tag, &message.body).ok_or(NOT_POSTGRES)? {
            message::Request::Query(text) => {
                let text = String::from_utf8_lossy(text);
                request(at, conceal::sql(&text), Step::Text, is_setup(&text));
            }
            message::Request::Parse { name, text, .. } => {
                let text = String::from_utf8_lossy(text);
                let shown = conceal::sql(&text);
                self.statements.insert(name.to_vec(), shown.as_str());
                if name.is_empty() {
                    self.begins = Some(at);
                } else {
                    request(at, shown, Step::Prepare, is_setup(&text));
                }
            }
            message::Request::Bind(bind) => {
                let text = self.statements.get(&bind.statement.to_vec()).cloned();
                self.portals.insert(bind.portal.to_vec(), text.as_deref().unwrap_or(UNKNOWN));
                self.unnamed = bind.statement.is_empty();
                self.begins = self.begins.or(Some(at));
            }
            message::Request::Execute { portal, .. } => {
                let text = self.portals.get(&portal.to_vec()).cloned();
                let text = text.unwrap_or_else(|| UNKNOWN.to_owned());
                let is_setup = is_setup(&text);
                let step = if self.unnamed { Step::Bound } else { Step::Execute };
                request(self.begins.take().unwrap_or(at), text, step, is_setup);
            }
            message::Request::Close(Target::Statement(name)) => self.statements.remove(&name.to_vec()),
            message::Request::Close(Target::Portal(name)) => self.portals.remove(&name.to_vec()),
            message::Request::FunctionCall(_) => request(at, FUNCTION_CALL.to_owned(), Step::Text, false),
            message::Request::Sync => self.begins = None,
            message::Request::Describe(_)
            | message::Request::CopyData(_)
            | message::Request::CopyDone
            | message::Request::CopyFail(_)
            | message::Request::Other(..) => {}
        }
        Ok(())
    }
}

/// Whether a statement sets up the connection or asks about the server.
fn is_setup(text: &str) -> bool {
    Statement::read(text, Dialect::POSTGRES).is_setup()
}

/// The client's name, and what else it sets in its first message.
fn settings(body: &[u8], seen: &mut Vec<Seen>) {
    let mut names = Vec::new();
    for (name, value) in message::settings(body) {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        match &*name {
            "application_name" => seen.push(Seen::Client(value.into_owned())),
            "user" | "database" => {}
            // Settings that others send as statements.
            _ => names.push(name.into_owned()),
        }
    }
    if !names.is_empty() {
        seen.push(Seen::Note(format!("its start-up message sets {}", names.join(", "))));
    }
}
