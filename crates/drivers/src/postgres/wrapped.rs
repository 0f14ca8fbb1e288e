//! Client that uses the `postgres` crate; `?client=driver` selects it.

use super::config::{Config, folder_and_port};
use super::values::{Encoded, Form};
use super::wrapped_tls::{MakeStream, StreamLimits};
use super::{binary, errors};
pub(crate) use crate::clients::POSTGRES as CLIENT;
use crate::prelude::*;
use crate::watchdog::{Watched, within};
use crate::wire::link::{Link, Query};
use crate::wire::{MOST, Place, lost, tls, too_much};
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::private::BytesMut;
use postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{
    Client, SimpleQueryMessage, Statement,
    config::{SslMode, SslNegotiation},
};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

/// A connection of the `postgres` crate. The crate limits neither the time nor the size of a reply, so the stream that
/// it reads from does. For a Unix socket there are no such limits, because the crate does not expose the stream.
pub(crate) struct Wrapped {
    client: Option<Client>,
    stream: Arc<StreamLimits>,
    watched: Watched,
    transport: &'static str,
}

impl Wrapped {
    pub(crate) fn connect(config: &Config, allowed: &ConnectOptions) -> Result<Self> {
        let timeout = allowed.timeout.max(Duration::from_millis(1));
        let mut options = postgres::Config::new();
        options
            .user(&config.user)
            .dbname(&config.database)
            .application_name("kurabe")
            .connect_timeout(timeout)
            .tcp_user_timeout(timeout);
        let settings = settings(config);
        if !settings.is_empty() {
            options.options(&settings);
        }
        if let Some(password) = &config.password {
            options.password(password.expose());
        }
        match &config.place {
            Place::Tcp { host, port } => options.host(host).port(*port).ssl_mode(SslMode::Require),
            Place::Unix(path) => {
                let (folder, port) = folder_and_port(path)
                    .ok_or_else(|| Error::usage("client=driver supports only sockets named .s.PGSQL.PORT"))?;
                options.host_path(folder).port(port).ssl_mode(SslMode::Disable)
            }
        };
        if config.tls.is_off() {
            // "Direct" sends no SSLRequest, so `MakeStream` can wrap the unencrypted stream.
            options.ssl_negotiation(SslNegotiation::Direct);
        }
        // The crate's buffer doubles; while it grows, the old and the new buffer coexist.
        let stream = Arc::new(StreamLimits::new((MOST / 2).saturating_add(allowed.largest_answer)));
        let streams = MakeStream::new(config.tls.config(), Arc::clone(&stream));
        let connect = move || options.connect(streams);
        let client = within(timeout, connect, drop)?
            .ok_or_else(|| config.place.unreachable(&std::io::ErrorKind::TimedOut.into()))?
            .map_err(|e| refused(&e, config))?;
        let ending = Arc::clone(&stream);
        let watched = Watched::new(allowed.reply_timeout(), move || ending.end())?;
        Ok(Self { client: Some(client), stream, watched, transport: config.tls.transport(&config.place) })
    }

    /// Runs one exchange with the server, within the limits.
    fn exchange<T>(&mut self, work: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let closed = || Error::new(ErrorKind::ConnectionLost, "the connection was closed");
        let client = self.client.as_mut().ok_or_else(closed)?;
        self.stream.begin();
        self.watched.exchange(|| work(client))
    }
}

impl Query for Wrapped {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        for message in self.exchange(|client| client.simple_query(sql).map_err(|e| failed(&e)))? {
            match message {
                SimpleQueryMessage::Row(row) => {
                    for column in 0..row.len() {
                        // `get` panics if the text is not UTF-8.
                        match row.try_get(column).map_err(|e| failed(&e))? {
                            Some(text) => out.push_bytes(text.as_bytes()),
                            None => out.push_null(),
                        }
                    }
                    out.end_row();
                }
                SimpleQueryMessage::CommandComplete(rows) => out.set_affected(rows),
                _ => {}
            }
        }
        Ok(())
    }

    fn quit(&mut self) -> Result<()> {
        let Some(client) = self.client.take() else { return Ok(()) };
        self.stream.begin();
        self.watched.exchange(|| client.close().map_err(|e| failed(&e)))
    }

    fn estimate(&mut self, sql: &str) -> Result<RowEstimate> {
        super::estimate::read(self, sql)
    }

    fn transport(&self) -> String {
        self.transport.to_owned()
    }
}

/// Closes the connection within the limits: the crate's own drop waits for its end without a limit.
impl Drop for Wrapped {
    fn drop(&mut self) {
        let _ = self.quit();
    }
}

impl Link for Wrapped {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.exchange(|client| client.simple_query("").map(drop).map_err(|e| failed(&e)))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.exchange(|client| client.prepare(sql).map_err(|e| failed(&e)))?;
        match statement.columns().iter().find(|column| !binary::is_read(column.type_().oid())) {
            None => Ok(statement),
            Some(column) => {
                let what = format!(
                    "the binary format of column type {} is not supported with the postgres crate",
                    column.type_()
                );
                Err(Error::unsupported(what).hint("use client=lean, or cast the column to text"))
            }
        }
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let expected = statement.params().len();
        check_parameters("the statement", expected, parameters.len())?;
        let parameters = parameters.iter().map(|value| Parameter(*value));
        let most = self.stream.most;
        self.exchange(|client| {
            let mut rows = client.query_raw(&*statement, parameters).map_err(|e| failed(&e))?;
            while let Some(row) = rows.next().map_err(|e| failed(&e))? {
                for (column, about) in row.columns().iter().enumerate() {
                    match row.try_get::<_, Option<Raw<'_>>>(column).map_err(|e| failed(&e))? {
                        Some(Raw(bytes)) => binary::push(about.type_().oid(), bytes, out)?,
                        None => out.push_null(),
                    }
                }
                out.end_row();
                if out.held() as u64 > most {
                    return Err(too_much(most));
                }
            }
            // The server also counts the rows of a SELECT; they are not affected rows.
            if out.rows() == 0 {
                out.set_affected(rows.rows_affected().unwrap_or(0));
            }
            Ok(())
        })
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        // The crate sends Close when the last copy of a statement is dropped, and does not wait for the reply.
        drop(statement);
        Ok(())
    }
}

#[derive(Debug)]
struct Parameter<'a>(Value<'a>);

impl Parameter<'_> {
    /// Binary if the type has a binary form for this value, else text.
    fn form(&self, kind: &Type) -> Form {
        let form = Form::of(kind.oid());
        if form.encode(&self.0).is_ok() { form } else { Form::Text }
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let encoded: Encoded<'_> = self.form(kind).encode(&self.0)?;
        Ok(match encoded.bytes() {
            None => IsNull::Yes,
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
        })
    }

    fn encode_format(&self, kind: &Type) -> Format {
        if self.form(kind).is_binary() { Format::Binary } else { Format::Text }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Builds the session's settings in the format of libpq's `options`: words separated by spaces, with a backslash as the
/// escape.
fn settings(config: &Config) -> String {
    let mut settings = config.options.clone().unwrap_or_default();
    let named =
        [("search_path", config.search_path.as_deref()), ("synchronous_commit", config.synchronous_commit)];
    for (name, value) in named {
        let Some(value) = value else { continue };
        settings.push_str(" -c ");
        settings.push_str(name);
        settings.push('=');
        for c in value.chars() {
            if c == '\\' || c.is_ascii_whitespace() {
                settings.push('\\');
            }
            settings.push(c);
        }
    }
    settings
}

fn refused(error: &postgres::Error, config: &Config) -> Error {
    if error.as_db_error().is_some() {
        return with_hint(failed(error), config);
    }
    if let Some(refused) = source::<rustls::Error>(error) {
        return tls::failed(refused);
    }
    if let Some(io) = source::<std::io::Error>(error) {
        return config.place.unreachable(io);
    }
    let cause = StdError::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = error.to_string();
    if cause.contains("does not support TLS") {
        return Error::unsupported("the server does not support TLS").hint("remove tls=");
    }
    let kind = if text.contains("authentication") || cause.contains("password") {
        ErrorKind::Denied
    } else {
        ErrorKind::Unreachable
    };
    with_hint(Error::new(kind, format!("{text}{cause}")), config)
}

/// Adds the reason why a password file was ignored, if the password is missing.
pub(crate) fn with_hint(error: Error, config: &Config) -> Error {
    match &config.password_hint {
        Some(hint) if error.kind() == ErrorKind::Denied && config.password.is_none() => {
            error.hint(hint.as_str())
        }
        _ => error,
    }
}

/// Converts the crate's error. Its messages never contain a password.
fn failed(error: &postgres::Error) -> Error {
    if let Some(db) = error.as_db_error() {
        return errors::server(db.code().code(), db.message());
    }
    if let Some(ours) = source::<Error>(error) {
        return ours.clone();
    }
    if let Some(io) = source::<std::io::Error>(error) {
        return lost(io);
    }
    if error.is_closed() {
        return Error::new(ErrorKind::ConnectionLost, "the server closed the connection");
    }
    Error::new(ErrorKind::Protocol, error.to_string())
}

/// Finds the nearest cause of this type.
fn source<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
