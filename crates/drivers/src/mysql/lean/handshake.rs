//! Connection set-up ("Connection Phase").

use super::authentication::{self, Plugin};
use super::compressed::Framed;
use super::packets::{Agreed, Packets};
use super::{Connection, Lean, read_only};
use crate::charset::Charset;
use crate::compression::Method;
use crate::mysql::config::Config;
use crate::mysql::version::NEEDED;
use crate::prelude::*;
use crate::wire::link::{Query as _, value};
use crate::wire::{Laps, Peer, Place, Stream, Wire, malformed, offers_no_tls};
use kurabe_core::compression::Compression;
use kurabe_core::driver::Access;
use kurabe_core::statements::Running;
use kurabe_protocol::mysql::message::{answer, command, push_length};
use kurabe_protocol::mysql::{capability, handshake};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// `utf8mb4_general_ci`, which every version has.
const UTF8MB4: u8 = 45;

/// How long a request to end a statement may take.
const REACHES: Duration = Duration::from_secs(2);

/// How often it is checked whether a statement has ended, and the pause in between.
const CHECKS: u32 = 250;
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum packet that the client accepts. Servers do not enforce it.
const MAX_TAKEN: u32 = 1 << 30;

impl Lean<Connection> {
    /// The number of the connection in the greeting.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.packets.wire.stream().inner().port()
    }

    pub(crate) fn connect(
        config: &Config,
        options: &ConnectOptions,
        allowed: Arc<AtomicUsize>,
    ) -> Result<Self> {
        let mut laps = Laps::start();
        let stream = Framed::plain(Stream::connect(&config.place, options)?);
        let mut packets = Packets::new(Wire::new(stream));
        let reach = laps.lap();
        let greeting = Greeting::read(&mut packets)?;
        let mut times = ConnectTimes { reach, set_up: laps.lap(), ..ConnectTimes::default() };
        let ours = greeting.agree(!config.tls.is_off(), options.compression, options.access)?;
        if let (Place::Tcp { host, .. }, false) = (&config.place, config.tls.is_off()) {
            let mut request = Vec::new();
            ours.push(&mut request);
            packets.send(&request)?;
            packets =
                packets.rewire(|stream| stream.into_inner().encrypt(&config.tls, host).map(Framed::plain))?;
            times.tls = Some(laps.lap());
        }
        let private = packets.wire.stream().inner().is_private();
        let login = log_in(&mut packets, config, &greeting, ours, private);
        times.login = login.map_err(|error| with_notes(error, &config.notes))?;
        times.authenticate = laps.lap();
        packets.wire.stream_mut().compress(options.compression)?;
        let mut lean = Self::over(packets, ours.agreed(), allowed);
        lean.number = greeting.number;
        if config.charset == Charset::Statement {
            lean.simple(command::QUERY, b"SET NAMES utf8mb4", &mut Reply::new())?;
            times.set_up += laps.lap();
        }
        if options.access == Access::ReadOnly {
            for sql in [read_only::READ_ONLY, read_only::TRACKING] {
                lean.simple(command::QUERY, sql.as_bytes(), &mut Reply::new())?;
            }
            lean.packets.state.access = Access::ReadOnly;
            times.set_up += laps.lap();
        }
        times.round_trips = lean.packets.wire.stream().inner().round_trips();
        lean.times = Some(times);
        lean.packets.wire.ready();
        Ok(lean)
    }

    /// Has the statements of this session ended on the server when nobody waits for them any more.
    pub(crate) fn watch(mut self, config: &Arc<Config>, options: &ConnectOptions) -> Self {
        let (config, timeout, number) = (Arc::clone(config), options.timeout.min(REACHES), self.number);
        self.exchanges.watch(Running::new(options.trial, move || {
            // A server that cannot be reached any more executes nothing for this client that could be ended.
            let _ = end_connection(&config, &ConnectOptions::within(timeout), number);
        }));
        self
    }
}

/// Adds to the error of a login with a wrong password which option files were ignored: one may have the right one.
fn with_notes(error: Error, notes: &[String]) -> Error {
    // ER_ACCESS_DENIED_ERROR and ER_ACCESS_DENIED_NO_PASSWORD_ERROR.
    let is_of_password = matches!(error.server_code(), Some("1045" | "1698"));
    notes.iter().filter(|_| is_of_password).fold(error, |error, note| error.another_hint(note))
}

/// Ends a connection of this user, with its statement, and waits for that: the server closes the socket before. Behind a proxy the number may be that of another's connection, on
/// another server: such a connection has another user, host or database, or executes nothing.
fn end_connection(config: &Config, options: &ConnectOptions, number: u32) -> Result<()> {
    let mut link = Lean::connect(config, options, Arc::default())?;
    let found = value(
        &mut link,
        &format!(
            "SELECT COUNT(*) FROM information_schema.processlist them, information_schema.processlist us \
             WHERE us.id = CONNECTION_ID() AND them.id = {number} AND them.user = us.user AND them.db <=> us.db \
             AND SUBSTRING_INDEX(them.host, ':', 1) = SUBSTRING_INDEX(us.host, ':', 1) \
             AND them.command <> 'Sleep'"
        ),
    )?;
    if found.as_deref() == Some("1") {
        link.query(&format!("KILL {number}"), &mut Reply::new())?;
        let count = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {number}");
        for _ in 0..CHECKS {
            if value(&mut link, &count)?.as_deref() == Some("0") {
                break;
            }
            kurabe_reactor::sleep(PAUSE);
        }
    }
    link.quit()
}

/// Sends the handshake response and authenticates; returns the method.
pub(super) fn log_in<S: Peer>(
    packets: &mut Packets<S>,
    config: &Config,
    greeting: &Greeting,
    ours: Ours,
    private: bool,
) -> Result<&'static str> {
    let plugin = Plugin::named(&greeting.plugin).unwrap_or(Plugin::Native);
    let nonce = plugin.nonce(&greeting.nonce)?;
    let proof = plugin.first_answer(config, nonce, private)?;
    packets.send(&response(config, ours, plugin, &proof)?)?;
    authentication::finish(packets, config, plugin, nonce.to_vec(), private)
}

/// The server's first packet (`Protocol::HandshakeV10`).
#[derive(Debug)]
pub(super) struct Greeting {
    /// The server's number of this connection.
    number: u32,
    capabilities: u32,
    mariadb: u32,
    /// The data for the authentication method, as sent.
    nonce: Vec<u8>,
    plugin: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ours {
    capabilities: u32,
    mariadb: u32,
}

impl Greeting {
    /// Reads the greeting, or the error of a server that has too many connections or rejects the client's address.
    pub(super) fn read<S: Peer>(packets: &mut Packets<S>) -> Result<Self> {
        packets.next()?;
        match packets.first()? {
            handshake::Greeting::VERSION => {}
            answer::ERR => return Err(packets.error()?),
            other => return Err(Error::unsupported(format!("protocol version {other}")).hint(NEEDED)),
        }
        let greeting = Self::parse(packets.rest()?).ok_or_else(|| malformed("a truncated greeting"))?;
        packets.skip_rest()?;
        Ok(greeting)
    }

    fn parse(payload: &[u8]) -> Option<Self> {
        let greeting = handshake::Greeting::read(payload)?;
        // The second part is at least 13 bytes long.
        let second = usize::from(greeting.nonce_length).saturating_sub(8).max(13);
        let (nonce, rest) = greeting.rest.split_at_checked(second).unwrap_or((greeting.rest, &[]));
        let plugin = if greeting.capabilities & capability::PLUGIN_AUTH == 0 {
            &b"mysql_native_password"[..]
        } else {
            rest.split(|b| *b == 0).next()?
        };
        Some(Self {
            number: greeting.connection,
            capabilities: greeting.capabilities,
            mariadb: greeting.mariadb,
            nonce: [&greeting.nonce, nonce].concat(),
            plugin: plugin.to_vec(),
        })
    }

    /// The capabilities to use: those that both sides support.
    pub(super) fn agree(&self, tls: bool, compression: Compression, access: Access) -> Result<Ours> {
        let needed = capability::PROTOCOL_41 | capability::SECURE_CONNECTION;
        if self.capabilities & needed != needed {
            return Err(Error::unsupported("the server is older than MySQL 4.1").hint(NEEDED));
        }
        if tls && self.capabilities & capability::SSL == 0 {
            return Err(offers_no_tls("ssl_cert and ssl_key"));
        }
        let compress = match compression {
            Compression::Off => 0,
            Compression::Zlib => capability::COMPRESS,
            Compression::Zstd => capability::ZSTD_COMPRESSION,
        };
        if self.capabilities & compress != compress {
            return Err(Error::unsupported(format!(
                "the server does not offer compression by {compression}"
            ))
            .hint("MySQL 8.0.18 and newer: protocol_compression_algorithms; MariaDB has zlib only"));
        }
        let wanted = needed
            | capability::LONG_PASSWORD
            // Count matched rows, even if an update does not change them.
            | capability::FOUND_ROWS
            | capability::LONG_FLAG
            | capability::CONNECT_WITH_DB
            | capability::TRANSACTIONS
            // Only rows in memory are sent, in answer to our own statement.
            | capability::LOCAL_FILES
            | capability::MULTI_RESULTS
            | capability::PS_MULTI_RESULTS
            | capability::PLUGIN_AUTH
            | capability::CONNECT_ATTRS
            | capability::PLUGIN_AUTH_LENENC
            | capability::DEPRECATE_EOF
            | compress
            | if access == Access::ReadOnly { capability::SESSION_TRACK } else { 0 }
            | if tls { capability::SSL } else { 0 };
        Ok(Ours {
            capabilities: wanted & self.capabilities,
            mariadb: capability::MARIADB_CACHE_METADATA & self.mariadb,
        })
    }
}

impl Ours {
    /// The part that affects the format of replies.
    pub(super) fn agreed(self) -> Agreed {
        Agreed {
            no_eof: self.capabilities & capability::DEPRECATE_EOF != 0,
            cached_columns: self.mariadb & capability::MARIADB_CACHE_METADATA != 0,
            compressed: self.capabilities & (capability::COMPRESS | capability::ZSTD_COMPRESSION) != 0,
        }
    }

    fn has(self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }

    /// Appends the first 32 bytes of the response, which are also the TLS request (`Protocol::SSLRequest`).
    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.to_le_bytes());
        out.extend_from_slice(&MAX_TAKEN.to_le_bytes());
        out.push(UTF8MB4);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.mariadb.to_le_bytes());
    }
}

/// `Protocol::HandshakeResponse41`.
fn response(config: &Config, ours: Ours, plugin: Plugin, proof: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(256);
    ours.push(&mut out);
    let text = |out: &mut Vec<u8>, text: &str| {
        if text.contains('\0') {
            return Err(Error::usage("a user or database name contains a zero byte"));
        }
        out.extend_from_slice(text.as_bytes());
        out.push(0);
        Ok(())
    };
    text(&mut out, &config.user)?;
    if ours.has(capability::PLUGIN_AUTH_LENENC) {
        push_length(&mut out, proof.len());
    } else {
        out.push(u8::try_from(proof.len()).map_err(|_| Error::usage("the password is too long"))?);
    }
    out.extend_from_slice(proof);
    if ours.has(capability::CONNECT_WITH_DB) {
        text(&mut out, &config.database)?;
    }
    if ours.has(capability::PLUGIN_AUTH) {
        text(&mut out, plugin.name())?;
    }
    if ours.has(capability::CONNECT_ATTRS) {
        let mut attributes = Vec::new();
        for text in ["program_name", "kurabe", "_client_version", env!("CARGO_PKG_VERSION")] {
            push_length(&mut attributes, text.len());
            attributes.extend_from_slice(text.as_bytes());
        }
        push_length(&mut out, attributes.len());
        out.extend_from_slice(&attributes);
    }
    if ours.has(capability::ZSTD_COMPRESSION) {
        out.push(Method::ZSTD_LEVEL);
    }
    Ok(out)
}
