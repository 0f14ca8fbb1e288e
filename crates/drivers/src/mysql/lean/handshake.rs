//! Connection set-up ("Connection Phase").

use super::answer::Agreed;
use super::authentication::{self, Plugin};
use super::compressed::{Framed, ZSTD_LEVEL};
use super::packets::{Packets, push_length};
use super::{COM_QUERY, Connection, Lean};
use crate::charset::Charset;
use crate::mysql::READ_ONLY;
use crate::mysql::config::Config;
use crate::mysql::version::NEEDED;
use crate::prelude::*;
use crate::wire::link::{Query as _, value};
use crate::wire::{Laps, Peer, Place, Stream, Wire, malformed};
use kurabe_core::compression::Compression;
use kurabe_core::driver::Access;
use kurabe_core::statements::Running;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// Capabilities ("Capabilities Flags").
const LONG_PASSWORD: u32 = 1;
pub(super) const FOUND_ROWS: u32 = 1 << 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
/// Packets are in frames that are compressed by zlib, from the end of the handshake.
const COMPRESS: u32 = 1 << 5;
/// The server may request a file of `LOAD DATA LOCAL`. Only rows in memory are sent, in answer to our own statement.
const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
/// The server may send several results for a query, such as `CALL`.
const MULTI_RESULTS: u32 = 1 << 17;
/// The same for prepared statements.
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const CONNECT_ATTRS: u32 = 1 << 20;
const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
pub(super) const DEPRECATE_EOF: u32 = 1 << 24;
/// As [`COMPRESS`], by zstd.
const ZSTD_COMPRESSION: u32 = 1 << 26;
/// MariaDB only, in a separate field: a client may keep the column definitions received at preparation.
const MARIADB_CACHE_METADATA: u32 = 1 << 4;

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
        let ours = greeting.agree(!config.tls.is_off(), options.compression)?;
        if let (Place::Tcp { host, .. }, false) = (&config.place, config.tls.is_off()) {
            let mut request = Vec::new();
            ours.push(&mut request);
            packets.send(&request)?;
            packets =
                packets.rewire(|stream| stream.into_inner().encrypt(&config.tls, host).map(Framed::plain))?;
            times.tls = Some(laps.lap());
        }
        let private = packets.wire.stream().inner().is_private();
        log_in(&mut packets, config, &greeting, ours, private)?;
        times.authenticate = laps.lap();
        packets.wire.stream_mut().compress(options.compression)?;
        let mut lean = Self::over(packets, ours.agreed(), allowed);
        lean.number = greeting.number;
        if config.charset == Charset::Statement {
            lean.simple(COM_QUERY, b"SET NAMES utf8mb4", &mut Reply::new())?;
            times.set_up += laps.lap();
        }
        if options.access == Access::ReadOnly {
            lean.simple(COM_QUERY, READ_ONLY.as_bytes(), &mut Reply::new())?;
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
        self.running = Some(Running::new(options.trial, move || {
            // A server that cannot be reached any more executes nothing for this client that could be ended.
            let _ = end_connection(&config, &ConnectOptions::within(timeout), number);
        }));
        self
    }
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

/// Sends the handshake response and authenticates.
pub(super) fn log_in<S: Peer>(
    packets: &mut Packets<S>,
    config: &Config,
    greeting: &Greeting,
    ours: Ours,
    private: bool,
) -> Result<()> {
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
            10 => {}
            0xff => return Err(packets.error()?),
            other => return Err(Error::unsupported(format!("protocol version {other}")).hint(NEEDED)),
        }
        let greeting = Self::parse(&packets.rest()?[1..]).ok_or_else(|| malformed("a truncated greeting"))?;
        packets.skip_rest()?;
        Ok(greeting)
    }

    /// Version (up to 0), thread (4), nonce (8), filler (1), capabilities (2), character set (1), status (2),
    /// capabilities (2), nonce length (1), filler (6), MariaDB's capabilities (4), nonce, plugin (up to 0).
    fn parse(body: &[u8]) -> Option<Self> {
        let version = body.iter().position(|b| *b == 0)?;
        let (fixed, rest) = body.get(version + 1..)?.split_first_chunk::<31>()?;
        let capabilities = u32::from_le_bytes([fixed[13], fixed[14], fixed[18], fixed[19]]);
        // MySQL sets this bit, and leaves MariaDB's field empty.
        let of_mariadb = capabilities & LONG_PASSWORD == 0;
        let mariadb = u32::from_le_bytes([fixed[27], fixed[28], fixed[29], fixed[30]]);
        // The second part is at least 13 bytes long.
        let second = usize::from(fixed[20]).saturating_sub(8).max(13);
        let (nonce, rest) = rest.split_at_checked(second).unwrap_or((rest, &[]));
        let nonce = [&fixed[4..12], nonce].concat();
        let plugin = if capabilities & PLUGIN_AUTH == 0 {
            &b"mysql_native_password"[..]
        } else {
            rest.split(|b| *b == 0).next()?
        };
        let mariadb = if of_mariadb { mariadb } else { 0 };
        let number = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        Some(Self { number, capabilities, mariadb, nonce, plugin: plugin.to_vec() })
    }

    /// The capabilities to use: those that both sides support.
    pub(super) fn agree(&self, tls: bool, compression: Compression) -> Result<Ours> {
        let needed = PROTOCOL_41 | SECURE_CONNECTION;
        if self.capabilities & needed != needed {
            return Err(Error::unsupported("the server is older than MySQL 4.1").hint(NEEDED));
        }
        if tls && self.capabilities & TLS == 0 {
            return Err(Error::unsupported("the server does not support TLS").hint("remove tls="));
        }
        let compress = match compression {
            Compression::Off => 0,
            Compression::Zlib => COMPRESS,
            Compression::Zstd => ZSTD_COMPRESSION,
        };
        if self.capabilities & compress != compress {
            return Err(Error::unsupported(format!(
                "the server does not offer compression by {compression}"
            ))
            .hint("MySQL 8.0.18 and newer: protocol_compression_algorithms; MariaDB has zlib only"));
        }
        let wanted = needed
            | LONG_PASSWORD
            // Count matched rows, even if an update does not change them.
            | FOUND_ROWS
            | LONG_FLAG
            | CONNECT_WITH_DB
            | TRANSACTIONS
            | LOCAL_FILES
            | MULTI_RESULTS
            | PS_MULTI_RESULTS
            | PLUGIN_AUTH
            | CONNECT_ATTRS
            | PLUGIN_AUTH_LENENC
            | DEPRECATE_EOF
            | compress
            | if tls { TLS } else { 0 };
        Ok(Ours { capabilities: wanted & self.capabilities, mariadb: MARIADB_CACHE_METADATA & self.mariadb })
    }
}

impl Ours {
    /// The part that affects the format of replies.
    pub(super) fn agreed(self) -> Agreed {
        Agreed {
            no_eof: self.capabilities & DEPRECATE_EOF != 0,
            cached_columns: self.mariadb & MARIADB_CACHE_METADATA != 0,
            compressed: self.capabilities & (COMPRESS | ZSTD_COMPRESSION) != 0,
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
    if ours.has(PLUGIN_AUTH_LENENC) {
        push_length(&mut out, proof.len());
    } else {
        out.push(u8::try_from(proof.len()).map_err(|_| Error::usage("the password is too long"))?);
    }
    out.extend_from_slice(proof);
    if ours.has(CONNECT_WITH_DB) {
        text(&mut out, &config.database)?;
    }
    if ours.has(PLUGIN_AUTH) {
        text(&mut out, plugin.name())?;
    }
    if ours.has(CONNECT_ATTRS) {
        let mut attributes = Vec::new();
        for text in ["program_name", "kurabe", "_client_version", env!("CARGO_PKG_VERSION")] {
            push_length(&mut attributes, text.len());
            attributes.extend_from_slice(text.as_bytes());
        }
        push_length(&mut out, attributes.len());
        out.extend_from_slice(&attributes);
    }
    if ours.has(ZSTD_COMPRESSION) {
        out.push(ZSTD_LEVEL);
    }
    Ok(out)
}
