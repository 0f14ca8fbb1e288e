//! What a recorder learns from HTTP/1.1 (RFC 9112), of `CouchDB` and of applications.
//!
//! The parts of a request are its method, its path and its query, fields that decide what the answer is, and the body. A status from
//! 400 on is an error. Of an answer of `CouchDB`, the elements of its array are its rows; of others, a body is one.

use super::http_body::{Body, Kind};
use super::http_request::{self, Answer, Framing, Head, LONG_LINE, NOT_HTTP, field, start};
use crate::conceal;
use crate::input::Input;
use crate::view::{Event, Exchange, KEPT, Parameter, ReadExchanges, Stop, Transaction, Waiting};
use kurabe_protocol::http::{self, BODY, CHOSEN_ID, Request};
use std::time::Instant;

/// Why it is not known what follows.
const HELD_BACK: &str = "the server answered before it had a body that the client held back";

#[derive(Default)]
pub(crate) struct Http {
    is_couchdb: bool,
    /// Whether the client has said what it is.
    is_named: bool,
    client: Input,
    position: Position,
    current: Option<Current>,
    waiting: Waiting,
    server: Input,
    part: Part,
    answer: Answer,
    /// Whether the body of the last request may follow, or another request.
    is_unsure: bool,
}

struct Current {
    request: Exchange,
    body: Vec<u8>,
    /// Whether the client waits before it sends the body.
    waits: bool,
}

/// What follows of a request.
#[derive(Default)]
enum Position {
    #[default]
    Start,
    Fields(Box<Head>),
    Body(Framing),
}

/// What follows of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Status,
    Fields,
    Body(Framing),
}

impl ReadExchanges for Http {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        if self.is_unsure && !bytes.is_empty() {
            return Err(HELD_BACK.into());
        }
        self.client.push(bytes);
        while self.read_request(now, events)? {}
        Ok(())
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        while self.read(now, events)? {}
        Ok(())
    }

    fn closed(&mut self, now: Instant, events: &mut Vec<Event>) {
        if self.part == Part::Body(Framing::Rest) {
            self.answered(now, events);
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(|()| true, events);
        // Its values may be those of a secret that has not arrived.
        if let Some(Current { mut request, .. }) = self.current.take() {
            cut_values(&mut request);
            events.push(Event::Exchange(Box::new(request)));
        }
    }
}

impl Http {
    pub(crate) fn couchdb() -> Self {
        Self { is_couchdb: true, ..Self::default() }
    }

    /// Reads the next line of a request, or part of its body. Returns whether there may be more.
    fn read_request(&mut self, now: Instant, events: &mut Vec<Event>) -> Result<bool, Stop> {
        if let Position::Body(framing) = &mut self.position {
            match framing.next(&mut self.client)? {
                None => return Ok(false),
                Some(http_request::Part::Bytes(bytes)) => {
                    if let Some(Current { request, body, .. }) = &mut self.current {
                        let kept = bytes.get(..KEPT - body.len()).unwrap_or(bytes);
                        request.cut |= kept.len() < bytes.len();
                        body.extend_from_slice(kept);
                    }
                }
                Some(http_request::Part::End) => {
                    self.position = Position::Start;
                    self.request()?;
                }
            }
            return Ok(true);
        }
        let Some(line) = self.client.line(LONG_LINE)? else { return Ok(false) };
        let text = line.text();
        match std::mem::take(&mut self.position) {
            Position::Fields(head) if text.is_empty() => {
                self.position = Position::Body(head.length.unwrap_or(Framing::Length(0)));
                self.head(*head, now, events);
            }
            Position::Fields(mut head) => {
                field(&mut head, &text)?;
                self.position = Position::Fields(head);
            }
            _ if text.is_empty() => {}
            _ => self.position = Position::Fields(Box::new(start(&line)?)),
        }
        Ok(true)
    }

    fn head(&mut self, head: Head, now: Instant, events: &mut Vec<Event>) {
        if let Some(agent) = head.agent.filter(|_| !std::mem::replace(&mut self.is_named, true)) {
            events.push(Event::Named(agent));
        }
        // Some clients write `?` without a query.
        let target = head.target.strip_suffix('?').filter(|rest| !rest.contains('?'));
        let mut parts = http::parts(&head.method, target.unwrap_or(&head.target), self.is_couchdb);
        let text = Request::read(&parts).map(Request::text).unwrap_or_default();
        parts.extend(head.fields);
        let request = Exchange {
            text,
            parameters: parts,
            cut: head.is_cut,
            pipelined: !self.waiting.is_empty(),
            at: head.at,
            began: Some(now),
            ..Exchange::default()
        };
        self.current = Some(Current { request, body: Vec::new(), waits: head.waits });
    }

    /// A request is complete.
    fn request(&mut self) -> Result<(), Stop> {
        // One that was answered before is not there any more.
        let Some(Current { mut request, body, .. }) = self.current.take() else { return Ok(()) };
        if request.cut || self.is_secret(&request.parameters, &body) {
            cut_values(&mut request);
        } else if !body.is_empty() {
            request.parameters.push(Parameter::new(BODY, false, body));
        }
        self.waiting.push((), request, cut_values)
    }

    /// Whether a request may contain a password: by its words, or since it is about users or settings of the server. What is
    /// compressed cannot be searched.
    fn is_secret(&self, parts: &[Parameter], body: &[u8]) -> bool {
        let Some(request) = Request::read(parts) else { return true };
        let is_packed = request.fields().any(|(name, _)| name == "Content-Encoding");
        let mut values = request.fields().filter_map(|(_, field)| field.bytes()).chain([body]);
        // A checksum of what is read there would confirm a guess.
        let is_of_server = self.is_couchdb && request.place().database.starts_with('_');
        is_of_server || is_packed && !body.is_empty() || values.any(conceal::http)
    }

    /// Reads the next line or part of an answer. Returns whether there may be more.
    fn read(&mut self, now: Instant, events: &mut Vec<Event>) -> Result<bool, Stop> {
        if let Part::Body(framing) = &mut self.part {
            match framing.next(&mut self.server).map_err(|_| NOT_HTTP)? {
                None => return Ok(false),
                Some(http_request::Part::Bytes(bytes)) => self.answer.push(bytes),
                Some(http_request::Part::End) => self.answered(now, events),
            }
            return Ok(true);
        }
        if self.server.waiting().is_empty() {
            return Ok(false);
        }
        if self.part == Part::Status && self.waiting.is_empty() && self.current.is_none() {
            return Err("the server answered without a request".into());
        }
        let line = self.server.line(NOT_HTTP)?;
        let Some(line) = line else { return Ok(self.looks_right().then_some(false).ok_or(NOT_HTTP)?) };
        let text = line.text();
        match self.part {
            Part::Status => {
                let (version, rest) = text.split_once(' ').ok_or(NOT_HTTP)?;
                let code = rest.split(' ').next().filter(|code| code.len() == 3);
                let status = code.and_then(|code| code.parse().ok()).filter(|status| *status >= 100);
                self.answer = Answer { status: status.ok_or(NOT_HTTP)?, ..Answer::default() };
                self.part = Part::Fields;
                if !version.starts_with("HTTP/1.") {
                    return Err(NOT_HTTP.into());
                }
            }
            Part::Fields if text.is_empty() => self.begin()?,
            Part::Fields => self.answer.field(&text)?,
            Part::Body(_) => {}
        }
        Ok(true)
    }

    /// Whether the beginning of a line may be one of an answer.
    fn looks_right(&self) -> bool {
        let start = self.server.waiting();
        let length = start.len().min(7);
        self.part != Part::Status || start.get(..length) == b"HTTP/1.".get(..length)
    }

    /// The fields of an answer are complete: a body follows, or nothing.
    fn begin(&mut self) -> Result<(), Stop> {
        let Answer { status, length, is_chunked, is_coded, .. } = self.answer;
        if status == 101 {
            return Err("the connection has changed its protocol after an upgrade".into());
        }
        if status < 200 {
            self.part = Part::Status;
            return Ok(());
        }
        if self.waiting.is_empty() {
            self.hurry()?;
        }
        let request = self.waiting.first().and_then(|request| Request::read(&request.parameters));
        let place = request.ok_or(NOT_HTTP)?.place();
        if place.method == "CONNECT" && status < 300 {
            return Err("the connection is a tunnel".into());
        }
        let kind = if !self.is_couchdb {
            Kind::Bytes
        } else if place.makes_document() {
            Kind::Made
        } else if place.is_document() {
            Kind::Document
        } else {
            Kind::Rows
        };
        let has_none = place.method == "HEAD" || matches!(status, 204 | 304);
        self.answer.body = Some(Body::new(kind));
        self.part = Part::Body(match length {
            _ if has_none => Framing::Length(0),
            _ if is_chunked => Framing::Chunk,
            Some(length) if !is_coded => Framing::Length(length),
            _ => Framing::Rest,
        });
        Ok(())
    }

    /// The request that is being read is answered although its body has not arrived.
    fn hurry(&mut self) -> Result<(), Stop> {
        let Some(Current { mut request, body, waits }) = self.current.take() else { return Ok(()) };
        // A client that held it back may send it now, or another request.
        let has_body = !body.is_empty() || request.cut || !self.client.waiting().is_empty();
        self.is_unsure = waits && !has_body;
        cut_values(&mut request);
        self.waiting.push((), request, cut_values)
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) {
        let mut answer = std::mem::take(&mut self.answer);
        self.part = Part::Status;
        let Some(((), mut request)) = self.waiting.pop() else { return };
        (request.ended, request.transaction) = (Some(now), Transaction::None);
        let asked = Request::read(&request.parameters);
        let is_change = match asked.map_or("", Request::method) {
            "PUT" | "PATCH" | "DELETE" | "COPY" => answer.status < 300,
            "POST" => matches!(answer.status, 201 | 202),
            _ => false,
        };
        if answer.status >= 400 {
            request.error = Some(answer.status.to_string());
        } else {
            // A replay gives the document that id, by which later requests name it.
            let has_id =
                asked.and_then(Request::body).is_some_and(|body| body.bytes().is_none_or(http::has_id));
            let mut body = answer.end();
            let id = body.as_mut().and_then(Body::id).filter(|_| !has_id && !request.cut);
            request.parameters.extend(id.map(|id| Parameter::new(CHOSEN_ID, false, id)));
            let (rows, digest) = body.map_or((1, 0), |body| body.end(answer.status));
            // What its bytes are made of is not known.
            let is_unknown = answer.is_packed && rows > 0;
            request.rows = if is_unknown { 1 } else { rows };
            request.digest = if is_unknown || request.cut { 0 } else { digest };
            request.affected = u64::from(is_change);
        }
        events.push(Event::Exchange(Box::new(request)));
    }
}

/// Leaves out the fields and the body of a request.
fn cut_values(request: &mut Exchange) {
    request.parameters.retain(Request::is_of_line);
    request.cut = true;
}

#[cfg(test)]
pub(super) mod tests;
