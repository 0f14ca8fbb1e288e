//! The account of one connection: traffic, round trips, statements.

use crate::registry::Protocol;
use crate::statement::shown;
use crate::tls::TlsRefusal;
use crate::view::{Conversation, Event, Exchange, Step, Stop};
use kurabe_core::text::{cut, printable};
use kurabe_protocol::call::Language;
pub use kurabe_relay::End;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// The maximum number of different statements that are listed for a connection.
const LISTED: usize = 1_000;
/// The maximum length of a listed statement, in characters.
const LONGEST: usize = 2_000;
const NOTES: usize = 20;
/// The maximum number of pieces of the client's stream whose place is remembered until their requests are answered.
const PIECES: usize = 10_000;
/// By what name a client says what it is, and what else it may say at first that is no setting.
const CLIENT: [&str; 3] = ["application_name", "program_name", "driver"];
const SAID: [&str; 4] = ["user", "database", "found_rows", "multi_statements"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// How often the client waited for the server: it had sent something, or expected the server's greeting, and the server
    /// answered. Requests that are sent together are one round trip.
    pub round_trips: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl Traffic {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            round_trips: self.round_trips + other.round_trips,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// It is not, and the relay did not prevent it.
    #[default]
    Plain,
    /// It is not, since the relay refused TLS or removed the server's offer.
    Refused,
    /// It is.
    Tls,
}

/// A statement, and how often it was sent in each way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Its text, or the command.
    pub text: String,
    /// Whether it sets up the connection or asks about the server.
    pub setup: bool,
    /// How often it was sent as a text that is executed at once.
    pub as_text: u64,
    /// How often it was prepared.
    pub prepared: u64,
    /// How often it was executed after that.
    pub executed: u64,
    /// How often it was prepared, bound and executed in one go.
    pub bound: u64,
}

impl Statement {
    /// How often it was executed.
    pub fn executions(&self) -> u64 {
        self.as_text + self.executed + self.bound
    }
}

/// What happened before the application's first own statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connecting {
    pub traffic: Traffic,
    /// The statements in order.
    pub statements: Vec<Statement>,
    pub first_own: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Its number, from 1, in the order of opening.
    pub number: u64,
    pub client: Option<String>,
    pub encryption: Encryption,
    /// Why its statements, or those from some point on, could not be read.
    pub unreadable: Option<String>,
    /// What else was seen.
    pub notes: Vec<String>,
    /// What happened before the first own statement; `None` if none was seen.
    pub connecting: Option<Connecting>,
    pub traffic: Traffic,
    /// Its statements, in the order of their first appearance.
    pub statements: Vec<Statement>,
    /// The number of requests whose statements are not listed, because there are too many different ones.
    pub not_listed: u64,
    pub end: End,
}

/// Keeps the account of a connection while it is open.
pub struct Account {
    connection: Connection,
    /// With the language of its protocol; `None` if bytes and round trips are enough.
    conversation: Option<(Conversation, Language)>,
    began: Instant,
    /// The traffic before each piece of the client's until its first own statement is known.
    pieces: VecDeque<Traffic>,
    refusal: Option<Box<dyn TlsRefusal>>,
    /// A part of the first own statement, if the user named one.
    until: Option<String>,
    /// Whether the client waits for the server.
    is_waiting: bool,
    places: HashMap<String, usize>,
}

impl Account {
    /// The account of a new connection. `until`: the first own statement is the first that contains this text; without it,
    /// the first that is not for setting up the connection.
    pub fn new(
        number: u64,
        protocol: Option<&'static Protocol>,
        refusal: Option<Box<dyn TlsRefusal>>,
        until: Option<String>,
    ) -> Self {
        let connection = Connection { number, ..Connection::default() };
        let conversation = protocol.and_then(|protocol| {
            let language = Language::from_scheme(protocol.schemes.first()?);
            Some(((protocol.view)(language.dialect()), language))
        });
        Self {
            connection,
            conversation,
            began: Instant::now(),
            pieces: VecDeque::new(),
            refusal,
            until,
            // A server that speaks first is waited for.
            is_waiting: true,
            places: HashMap::new(),
        }
    }

    /// Takes what the client sent next: gives what the server gets, and what the relay answers itself.
    pub fn sent(&mut self, bytes: &[u8], to_server: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        let is_read = self.conversation.is_some() && self.connection.unreadable.is_none();
        if is_read && self.connection.connecting.is_none() && self.pieces.len() < PIECES {
            self.pieces.push_back(self.connection.traffic);
        }
        let began = self.began;
        self.read(|conversation, events| conversation.sent(bytes, began, events));
        self.connection.traffic.sent_bytes += bytes.len() as u64;
        self.is_waiting = true;
        match &mut self.refusal {
            None => to_server.extend_from_slice(bytes),
            Some(refusal) => {
                refusal.sent(bytes, to_server, to_client);
                self.note_refusal();
            }
        }
        if !to_client.is_empty() {
            self.count(to_client);
        }
    }

    /// Takes what the server sent next, and changes it into what the client gets.
    pub fn received(&mut self, bytes: &mut [u8]) {
        if let Some(refusal) = &mut self.refusal {
            refusal.received(bytes);
            self.note_refusal();
        }
        self.count(bytes);
    }

    /// Ends it. The first end counts.
    pub fn end(&mut self, end: End) {
        if self.connection.end == End::Open {
            self.connection.end = end;
        }
    }

    /// It is closed: requests that were never answered are listed.
    pub fn close(&mut self) {
        self.read(Conversation::end);
        self.pieces = VecDeque::new();
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn count(&mut self, bytes: &[u8]) {
        self.connection.traffic.received_bytes += bytes.len() as u64;
        self.connection.traffic.round_trips += u64::from(std::mem::take(&mut self.is_waiting));
        let began = self.began;
        self.read(|conversation, events| conversation.received(bytes, began, events));
    }

    fn note_refusal(&mut self) {
        if self.refusal.as_ref().is_some_and(|refusal| refusal.has_refused())
            && self.connection.encryption == Encryption::Plain
        {
            self.connection.encryption = Encryption::Refused;
        }
    }

    fn read(&mut self, read: impl FnOnce(&mut Conversation, &mut Vec<Event>)) {
        let Some((conversation, language)) = &mut self.conversation else { return };
        let (mut events, language) = (Vec::new(), *language);
        read(conversation, &mut events);
        for event in events {
            match event {
                Event::Exchange(exchange) => self.request(&exchange, language),
                Event::Client(said) => {
                    let (names, set): (Vec<_>, Vec<_>) =
                        said.into_iter().partition(|(name, _)| CLIENT.contains(&name.as_str()));
                    for (_, name) in names {
                        self.name(&name);
                    }
                    let set =
                        set.into_iter().map(|(name, _)| name).filter(|name| !SAID.contains(&name.as_str()));
                    let set: Vec<String> = set.collect();
                    if !set.is_empty() {
                        // Settings that others send as statements.
                        self.note(&format!("its start-up message sets {}", set.join(", ")));
                    }
                }
                Event::Named(name) => self.name(&name),
                Event::Note(note) => self.note(&note),
                Event::Unreadable(stop) => {
                    match stop {
                        Stop::Encrypted => self.connection.encryption = Encryption::Tls,
                        Stop::Unreadable(why) => self.connection.unreadable = Some(why.to_owned()),
                    }
                    self.pieces = VecDeque::new();
                }
                Event::Data { .. } | Event::FileWanted { .. } => {}
            }
        }
    }

    fn name(&mut self, name: &str) {
        self.connection.client.get_or_insert_with(|| shortened(name));
    }

    fn note(&mut self, note: &str) {
        if self.connection.notes.len() < NOTES {
            self.connection.notes.push(shortened(note));
        }
    }

    /// The traffic before a request, the oldest of those that were not taken yet.
    fn before(&mut self, request: &Exchange) -> Traffic {
        while self.pieces.get(1).is_some_and(|next| next.sent_bytes <= request.at) {
            self.pieces.pop_front();
        }
        let piece = self.pieces.front().copied().unwrap_or(self.connection.traffic);
        Traffic { sent_bytes: request.at, ..piece }
    }

    fn request(&mut self, request: &Exchange, language: Language) {
        let (text, is_setup) = shown(request, language);
        let text = shortened(&text);
        let is_own = match &self.until {
            Some(part) => text.contains(part.as_str()),
            None => !is_setup,
        };
        let traffic = self.before(request);
        let connection = &mut self.connection;
        if is_own && connection.connecting.is_none() {
            let statements = connection.statements.clone();
            connection.connecting = Some(Connecting { traffic, statements, first_own: text.clone() });
            self.pieces = VecDeque::new();
        }
        let statements = &mut connection.statements;
        let place = match self.places.get(&text) {
            Some(place) => *place,
            None if statements.len() < LISTED => {
                self.places.insert(text.clone(), statements.len());
                statements.push(Statement { text, setup: is_setup, ..Statement::default() });
                statements.len() - 1
            }
            None => {
                connection.not_listed += 1;
                return;
            }
        };
        if let Some(statement) = statements.get_mut(place) {
            let count = match request.step {
                Step::Text => &mut statement.as_text,
                Step::Prepare => &mut statement.prepared,
                Step::Execute => &mut statement.executed,
                Step::Bound => &mut statement.bound,
            };
            *count += 1;
        }
    }
}

/// A text in one line, of limited length.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&printable(&line), LONGEST).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    fn account(scheme: &str, until: Option<&str>) -> Account {
        let protocol = registry::of_scheme(scheme).unwrap();
        Account::new(1, Some(protocol), protocol.refusal.map(|make| make()), until.map(str::to_owned))
    }

    fn send(account: &mut Account, text: &str) {
        account.sent(text.as_bytes(), &mut Vec::new(), &mut Vec::new());
    }

    #[test]
    fn requests_that_are_sent_together_are_one_round_trip() {
        let mut account = account("redis", None);
        send(&mut account, "PING\r\nSELECT 1\r\n");
        account.received(&mut b"+PONG\r\n".to_vec());
        account.received(&mut b"+OK\r\n".to_vec());
        send(&mut account, "GET a\r\n");
        send(&mut account, "GET a\r\n");
        account.received(&mut b"$-1\r\n$-1\r\n".to_vec());
        let connection = account.connection();
        assert_eq!(connection.traffic, Traffic { round_trips: 2, sent_bytes: 30, received_bytes: 22 });
        let connecting = connection.connecting.as_ref().unwrap();
        assert_eq!(connecting.traffic, Traffic { round_trips: 1, sent_bytes: 16, received_bytes: 12 });
        assert_eq!(connecting.first_own, "GET a");
        let texts: Vec<(&str, u64)> =
            connection.statements.iter().map(|one| (one.text.as_str(), one.executions())).collect();
        assert_eq!(texts, [("PING", 1), ("SELECT 1", 1), ("GET a", 2)]);
    }

    #[test]
    fn greeting_and_refused_tls_are_waited_for_and_pushed_messages_are_not() {
        let mut postgres = account("postgres", None);
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        postgres.sent(b"\0\0\0\x08\x04\xd2\x16\x2f", &mut to_server, &mut to_client);
        assert_eq!((to_server.as_slice(), to_client.as_slice()), (b"".as_slice(), b"N".as_slice()));
        assert_eq!(
            postgres.connection().traffic,
            Traffic { round_trips: 1, sent_bytes: 8, received_bytes: 1 }
        );
        assert_eq!(postgres.connection().encryption, Encryption::Refused);
        let mut mysql = account("mysql", None);
        mysql.received(&mut b"\x01\0\0\0\x0a".to_vec());
        mysql.received(&mut b"8\0".to_vec());
        assert_eq!(mysql.connection().traffic.round_trips, 1);
    }

    #[test]
    fn first_own_statement_is_the_named_one() {
        let mut account = account("redis", Some("b"));
        send(&mut account, "GET a\r\n");
        account.received(&mut b"$-1\r\n".to_vec());
        send(&mut account, "GET b\r\n");
        account.close();
        let connecting = account.connection().connecting.clone().unwrap();
        assert_eq!((connecting.first_own.as_str(), connecting.statements.len()), ("GET b", 1));
        assert_eq!(connecting.traffic.round_trips, 1);
    }

    #[test]
    fn number_of_listed_statements_is_bounded() {
        let mut account = account("redis", None);
        for n in 0..LISTED + 5 {
            send(&mut account, &format!("GET {n}\r\n"));
        }
        account.close();
        assert_eq!(account.connection().statements.len(), LISTED);
        assert_eq!(account.connection().not_listed, 5);
    }

    #[test]
    fn control_characters_of_statements_are_escaped() {
        let mut account = account("redis", None);
        send(&mut account, "GET a\u{1b}[2J\r\n");
        account.close();
        assert_eq!(account.connection().statements[0].text, "GET a\\u{1b}[2J");
    }
}
