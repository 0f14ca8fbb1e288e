//! Opening a connection: `hello`, which also begins to authenticate, and authentication
//! (<https://www.mongodb.com/docs/manual/core/authentication/>; the conversation is in MongoDB's specifications,
//! "Authentication").

use super::bson::{Document, Element, Raw};
use super::client::Client;
use super::config::Config;
use super::credential::{Credential, Mechanism};
use super::hello::{Hello, OLDEST};
use super::writer::Writer;
use crate::compression::Compressor;
use crate::prelude::*;
use crate::scram::{Begun, Binding, Hash, Kept, Proved};
use crate::wire::{Laps, Peer, Place, Stream, Wire};

/// The fewest iterations of SCRAM that a client accepts (MongoDB's specifications, "SCRAM-SHA-256").
const MIN_ITERATIONS: u64 = 4_096;

/// A connection whose server has said hello. [`log_in`] follows.
pub(super) struct Reached {
    pub(super) client: Client<Stream>,
    began: Began,
    laps: Laps,
}

/// Connects, and says hello.
pub(super) fn reach(config: &Config, place: &Place, options: &ConnectOptions) -> Result<Reached> {
    let mut laps = Laps::start();
    let limit = config.connect_timeout.min(options.timeout);
    let mut stream = Stream::connect_within(place, options, limit)?;
    let mut times = ConnectTimes { reach: laps.lap(), ..ConnectTimes::default() };
    let hint = |error| with_hint(error, config, place);
    if let (Place::Tcp { host, .. }, false) = (place, config.tls.is_off()) {
        stream = stream.encrypt(&config.tls, host).map_err(hint)?;
        times.tls = Some(laps.lap());
    }
    let is_private = stream.is_private();
    let mut client = Client::new(Wire::new(stream));
    let mut began = greet(&mut client, config, options).map_err(hint)?;
    began.is_private = is_private;
    times.set_up = laps.lap();
    client.times = Some(times);
    Ok(Reached { client, began, laps })
}

/// Authenticates, and makes the connection ready for its first command.
pub(super) fn log_in(reached: Reached, config: &Config, kept: &Kept) -> Result<Client<Stream>> {
    let Reached { mut client, began, mut laps } = reached;
    if let Some(credential) = &config.credential {
        authenticate(&mut client, credential, began, kept)?;
    }
    let round_trips = client.wire.stream().round_trips();
    if let Some(times) = &mut client.times {
        times.round_trips = round_trips;
        times.authenticate = laps.lap();
        times.login = config.credential.as_ref().map_or("", |credential| credential.mechanism.name());
    }
    client.compressor = match client.hello.compressors.first() {
        None => None,
        Some(agreed) => {
            let offered = config.offered(client.offered);
            let method = offered.into_iter().find(|method| method.name() == agreed);
            let unknown =
                || malformed(format!("the server chose compression by {agreed}, which was not offered"));
            Some(Compressor::new(method.ok_or_else(unknown)?)?)
        }
    };
    client.wire.ready();
    Ok(client)
}

/// Says where a connection failed, and what may be the cause.
fn with_hint(error: Error, config: &Config, place: &Place) -> Error {
    let is_plain = config.tls.is_off() && matches!(place, Place::Tcp { .. });
    let hint = match (error.kind(), is_plain) {
        (ErrorKind::ConnectionLost, true) => {
            "is it MongoDB, and still running? A server that requires TLS closes the connection too: tls=true"
        }
        (ErrorKind::ConnectionLost, false) => "is it MongoDB, is it still running, and does it offer TLS?",
        (ErrorKind::Timeout, true) => {
            "is it MongoDB? A server that requires TLS may not answer either: tls=true"
        }
        (ErrorKind::Timeout, false) => "is it MongoDB, and does it offer TLS?",
        (ErrorKind::Protocol, true) => "is it MongoDB? Are host and port right?",
        (ErrorKind::Protocol, false) => {
            "is it MongoDB, and does it offer TLS? Its administrator turns it on (net.tls.mode)"
        }
        (ErrorKind::Denied, _) if error.server_code().is_none() => {
            "name the authority that signed the server's certificate with tlsCAFile=FILE"
        }
        _ => return error,
    };
    error.context(place).hint(hint)
}

/// An authentication that `hello` began.
#[derive(Default)]
pub(super) struct Began {
    scram: Option<Begun>,
    answer: Option<Document>,
    is_private: bool,
}

/// Sends `hello` with the first message of an authentication, which saves a round trip.
pub(super) fn greet<S: Peer>(
    client: &mut Client<S>,
    config: &Config,
    options: &ConnectOptions,
) -> Result<Began> {
    let credential = config.credential.as_ref();
    let scram = match credential.map(|credential| (credential.mechanism, credential)) {
        Some((Mechanism::Scram(hash), credential)) => {
            let user = credential.user.as_deref().unwrap_or_default();
            Some(Begun::new(hash.unwrap_or(Hash::Sha256), user, Binding::None)?)
        }
        _ => None,
    };
    client.offered = options.compression;
    let offered = config.offered(options.compression);
    let answer = client.administer(|out| {
        out.int("hello", 1).bool("helloOk", true).begin("client");
        out.begin("application").text("name", &config.application).end();
        out.begin("driver").text("name", "kurabe").text("version", env!("CARGO_PKG_VERSION")).end();
        out.begin("os").text("type", "Linux").end().end();
        out.texts("compression", offered.iter().map(|method| method.name()));
        let Some(credential) = credential else { return };
        if let (Mechanism::Scram(None), Some(user)) = (credential.mechanism, &credential.user) {
            out.text("saslSupportedMechs", &format!("{}.{user}", credential.source));
        }
        if let Some(begun) = &scram {
            out.begin("speculativeAuthenticate");
            sasl_start(out, mechanism(begun.hash()), begun.message().as_bytes());
            out.text("db", &credential.source).end();
        } else if credential.mechanism == Mechanism::X509 {
            out.begin("speculativeAuthenticate");
            x509(out, credential);
            out.text("db", "$external").end();
        }
    })?;
    let hello = Hello::of(answer);
    let answer = answer.document("speculativeAuthenticate").map(Raw::to_owned);
    if hello.newest_protocol < OLDEST {
        let message = "the server is older than MongoDB 3.6, whose protocol this client speaks";
        return Err(Error::unsupported(message).hint("use a newer server"));
    }
    client.hello = hello;
    Ok(Began { scram, answer, is_private: false })
}

fn mechanism(hash: Hash) -> &'static str {
    match hash {
        Hash::Sha1 => "SCRAM-SHA-1",
        Hash::Sha256 => "SCRAM-SHA-256",
    }
}

fn sasl_start(out: &mut Writer, mechanism: &str, payload: &[u8]) {
    out.int("saslStart", 1).text("mechanism", mechanism).binary("payload", payload);
    out.begin("options").bool("skipEmptyExchange", true).end();
}

fn x509(out: &mut Writer, credential: &Credential) {
    out.int("authenticate", 1).text("mechanism", "MONGODB-X509");
    if let Some(user) = &credential.user {
        out.text("user", user);
    }
}

fn authenticate<S: Peer>(
    client: &mut Client<S>,
    credential: &Credential,
    began: Began,
    kept: &Kept,
) -> Result<()> {
    match credential.mechanism {
        Mechanism::X509 if began.answer.is_some() => Ok(()),
        Mechanism::X509 => on(client, &credential.source, |out| x509(out, credential)).map(drop),
        Mechanism::Plain if began.is_private => {
            let user = credential.user.as_deref().unwrap_or_default();
            let payload = format!("\0{user}\0{}", credential.password.expose());
            let answer = on(client, &credential.source, |out| sasl_start(out, "PLAIN", payload.as_bytes()))?;
            Step::read(answer.raw())?.finish()
        }
        Mechanism::Plain => {
            let message = "PLAIN would send the password in plain text";
            Err(Error::new(ErrorKind::Denied, message).hint("connect with tls=true or over a Unix socket"))
        }
        Mechanism::Scram(hash) => {
            let hash = hash.unwrap_or_else(|| match &client.hello.mechanisms {
                Some(all) if all.iter().any(|name| name == "SCRAM-SHA-256") => Hash::Sha256,
                // A server that does not say has users of SCRAM-SHA-1 at least.
                _ => Hash::Sha1,
            });
            scram(client, credential, began, hash, kept)
        }
    }
}

fn scram<S: Peer>(
    client: &mut Client<S>,
    credential: &Credential,
    opening: Began,
    hash: Hash,
    kept: &Kept,
) -> Result<()> {
    let user = credential.user.as_deref().unwrap_or_default();
    let password = credential.password.expose();
    let digest;
    let password = match hash {
        Hash::Sha1 => {
            digest = format!("{:x}", md5::compute(format!("{user}:mongo:{password}")));
            digest.as_bytes()
        }
        Hash::Sha256 => password.as_bytes(),
    };
    let source = &credential.source;
    let (begun, first) = match (opening.scram, opening.answer) {
        (Some(begun), Some(answer)) if begun.hash() == hash => (begun, answer),
        _ => {
            let begun = Begun::new(hash, user, Binding::None)?;
            let message = begun.message();
            let start = |out: &mut Writer| sasl_start(out, mechanism(hash), message.as_bytes());
            let first = on(client, source, start)?;
            (begun, first)
        }
    };
    let first = Step::read(first.raw())?;
    let proved: Proved = begun.prove(password, first.payload, MIN_ITERATIONS, Some(kept))?;
    let answer = proceed(client, source, first.conversation, proved.message.as_bytes())?;
    let last = Step::read(answer.raw())?;
    proved.check(last.payload)?;
    if last.is_done {
        return Ok(());
    }
    // A server that does not know how to skip this.
    let answer = proceed(client, source, first.conversation, b"")?;
    Step::read(answer.raw())?.finish()
}

fn proceed<S: Peer>(
    client: &mut Client<S>,
    source: &str,
    conversation: i32,
    payload: &[u8],
) -> Result<Document> {
    on(client, source, |out| {
        out.int("saslContinue", 1).int("conversationId", conversation).binary("payload", payload);
    })
}

/// Executes a command of the authentication on the database that defines the user.
fn on<S: Peer>(client: &mut Client<S>, source: &str, fill: impl FnOnce(&mut Writer)) -> Result<Document> {
    client.out.restart(super::frame::HEAD);
    fill(&mut client.out);
    client.out.text("$db", source);
    client.exchange().map(Raw::to_owned)
}

/// An answer of the server in a conversation.
struct Step<'a> {
    conversation: i32,
    payload: &'a [u8],
    is_done: bool,
}

impl<'a> Step<'a> {
    fn read(answer: Raw<'a>) -> Result<Self> {
        match (answer.number("conversationId"), answer.get("payload")?) {
            (Some(conversation), Some(Element::Binary(payload))) => Ok(Self {
                conversation: conversation as i32,
                payload,
                is_done: answer.bool("done") == Some(true),
            }),
            _ => Err(malformed("the server's step of the authentication has no payload")),
        }
    }

    /// Checks that it is the last one.
    fn finish(&self) -> Result<()> {
        if self.is_done { Ok(()) } else { Err(malformed("the server does not end the authentication")) }
    }
}
