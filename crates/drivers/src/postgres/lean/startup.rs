//! Connection set-up (manual, "Message Flow", "Start-up" and "SSL Session Encryption").

use super::authentication::Channel;
use super::{Lean, answer, authentication, request};
use crate::charset::Charset;
use crate::postgres::config::Config;
use crate::postgres::read_only;
use crate::prelude::*;
use crate::wire::{Laps, Peer, Place, Stream, Wire, malformed, offers_no_tls};
use kurabe_core::driver::Access;
use kurabe_core::statements::Running;
use kurabe_protocol::postgres::frame::{CANCEL_REQUEST, SSL_REQUEST, Tagged, VERSION, backend};
use std::sync::Arc;
use std::time::Duration;

/// How long a request to cancel may take.
const REACHES: Duration = Duration::from_secs(2);

impl Lean<Stream> {
    pub(crate) fn port(&self) -> Option<u16> {
        self.wire.stream().port()
    }

    pub(crate) fn connect(config: &Config, options: &ConnectOptions) -> Result<Self> {
        let mut laps = Laps::start();
        let mut times = ConnectTimes::default();
        let mut wire = reach(config, options, &mut laps, &mut times)?;
        let channel = Channel::of(wire.stream());
        let started = log_in(&mut wire, config, &channel, options.access).and_then(|(took, method)| {
            (times.authenticate, times.login) = (took, method);
            until_ready(&mut wire)
        });
        let Started { read_only, key } = started.map_err(|error| with_hint(error, config, options.access))?;
        let mut lean = Self::over(wire);
        lean.key = key;
        if options.access == Access::ReadOnly {
            lean.state.access = Access::ReadOnly;
            // Reported since PostgreSQL 14.
            if read_only != Some(true) {
                read_only::check(&mut lean)?;
            }
        }
        if config.charset == Charset::Statement {
            lean.simple("SET client_encoding TO 'UTF8'", &mut Reply::new())?;
        }
        // Includes the start of the session's server process.
        times.set_up = laps.lap().saturating_sub(times.authenticate);
        times.round_trips = lean.wire.stream().round_trips();
        lean.times = Some(times);
        lean.wire.ready();
        Ok(lean)
    }

    /// Has the statements of this session ended on the server when nobody waits for them any more.
    pub(crate) fn watch(mut self, config: &Arc<Config>, options: &ConnectOptions) -> Self {
        if let Some(key) = self.key.clone() {
            let (config, timeout) = (Arc::clone(config), options.timeout.min(REACHES));
            self.exchanges.watch(Running::new(options.trial, move || {
                // A server that cannot be reached any more executes nothing for this client that could be ended.
                let _ = cancel_statement(&config, &ConnectOptions::within(timeout), &key);
            }));
        }
        self
    }
}

/// Connects, and encrypts the connection as the target asks for: that of a session, and that of a request to cancel.
fn reach(
    config: &Config,
    options: &ConnectOptions,
    laps: &mut Laps,
    times: &mut ConnectTimes,
) -> Result<Wire<Stream>> {
    let limit = config.connect_timeout.map_or(options.timeout, |limit| limit.min(options.timeout));
    let mut wire = Wire::new(Stream::connect_within(&config.place, options, limit)?);
    times.reach = laps.lap();
    if matches!(config.place, Place::Tcp { .. }) && !config.tls.is_off() {
        request_tls(&mut wire)?;
        wire = Wire::new(wire.into_stream()?.encrypt(&config.tls, config.certified())?);
        times.tls = Some(laps.lap());
    }
    Ok(wire)
}

/// Cancels what the server process of this key executes ("Canceling Requests in Progress").
fn cancel_statement(config: &Config, options: &ConnectOptions, key: &[u8]) -> Result<()> {
    let mut wire = reach(config, options, &mut Laps::start(), &mut ConnectTimes::default())?;
    let mut out = vec![0; 4];
    out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
    out.extend_from_slice(key);
    request::close_message(&mut out, 0)?;
    wire.send(&out)?;
    // It closes the connection when it has sent the signal.
    wire.drain(&[], options.timeout);
    Ok(())
}

/// The code of a message that a server, or a pooler before it, does not take.
const PROTOCOL_VIOLATION: &str = "08P01";

/// Adds the reason why a password file was ignored, if the password is missing, or what a pooler does not pass on.
fn with_hint(error: Error, config: &Config, access: Access) -> Error {
    if access == Access::ReadOnly && error.server_code() == Some(PROTOCOL_VIOLATION) {
        return error.hint(
            "a session that only reads is opened with this setting, which a pooler before the server does not pass on: name the \
             server itself, or allow writes with --write",
        );
    }
    match &config.password_hint {
        Some(hint) if error.kind() == ErrorKind::Denied && config.password.is_none() => {
            error.hint(hint.as_str())
        }
        _ => error,
    }
}

fn request_tls<S: Peer>(wire: &mut Wire<S>) -> Result<()> {
    wire.send(&[8_u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat())?;
    let answer = wire.peek(1)?[0];
    wire.consume(1);
    match answer {
        b'S' => Ok(()),
        b'N' => Err(offers_no_tls("ssl = on")),
        // The error message is unauthenticated, so it is not shown (CVE-2024-10977).
        b'E' => Err(Error::new(ErrorKind::Unreachable, "the server refused the connection before TLS")
            .hint("it may have too many connections")),
        _ => Err(malformed("an invalid reply to the TLS request")),
    }
}

/// Sends `StartupMessage` and authenticates; returns the time that authentication took, and its method.
fn log_in<S: Peer>(
    wire: &mut Wire<S>,
    config: &Config,
    channel: &Channel,
    access: Access,
) -> Result<(Duration, &'static str)> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&VERSION.to_be_bytes());
    let settings = [
        ("user", config.user.as_str()),
        ("database", &config.database),
        ("application_name", &config.application_name),
    ];
    // Set here because SET would add a round trip to every connection.
    let encoding = (config.charset == Charset::Connecting).then_some(("client_encoding", "UTF8"));
    let commit = config.synchronous_commit.map(|value| ("synchronous_commit", value));
    let options = config.options.as_deref().map(|value| ("options", value));
    let search_path = config.search_path.as_deref().map(|value| ("search_path", value));
    // RESET ALL returns to what was set here, unlike to what SET changed; and a pooler refuses what it does not know.
    let read_only = (access == Access::ReadOnly).then_some((read_only::SETTING, "on"));
    // The server applies `options` first, at any position, and then the others.
    let all = settings.iter().chain(&encoding).chain(&options).chain(&search_path);
    let all = all.chain(&commit).chain(&read_only);
    for text in all.flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }
    out.push(0);
    request::close_message(&mut out, 0)?;
    wire.send(&out)?;
    authentication::authenticate(wire, config, channel)
}

/// What the server says before it is ready.
#[derive(Default)]
struct Started {
    /// Whether transactions only read, if it says so.
    read_only: Option<bool>,
    /// Its process for this connection, and the key to it.
    key: Option<Vec<u8>>,
}

/// Waits until the server is ready.
fn until_ready<S: Peer>(wire: &mut Wire<S>) -> Result<Started> {
    let mut started = Started::default();
    loop {
        let Tagged { tag, length } = answer::header(wire)?;
        match tag {
            backend::READY_FOR_QUERY => return wire.skip(length).map(|()| started),
            backend::PARAMETER_STATUS => {
                let reported = answer::whole(wire, length, read_only::reported)?;
                started.read_only = reported.or(started.read_only);
            }
            backend::BACKEND_KEY_DATA => started.key = Some(answer::whole(wire, length, <[u8]>::to_vec)?),
            backend::ERROR_RESPONSE => return Err(answer::whole(wire, length, answer::error)??),
            backend::NEGOTIATE_PROTOCOL_VERSION => wire.skip(length)?,
            other => return Err(answer::unexpected(other, " during start-up")),
        }
    }
}

/// Logs in and waits until the server is ready; tests use it with a scripted stream.
#[cfg(test)]
pub(super) fn start<S: Peer>(wire: &mut Wire<S>, config: &Config, channel: &Channel) -> Result<()> {
    log_in(wire, config, channel, Access::ReadWrite)?;
    until_ready(wire).map(drop)
}
