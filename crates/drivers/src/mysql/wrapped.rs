//! The `mysql` crate as it is used by everyone: what `?client=driver` selects.

use super::config::Config;
use super::datetime::DateTime;
use super::errors;
use crate::wire::link::{Link, Query, wrong_parameters};
use crate::wire::{Place, lost, tls};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use mysql::consts::CapabilityFlags;
use mysql::error::tls::TlsError;
use mysql::prelude::{Protocol, Queryable as _};
use mysql::{Conn, DriverError, OptsBuilder, Params, QueryResult, SslOpts, Statement};
use mysql_common::proto::codec::error::PacketCodecError;
use std::collections::HashMap;
use std::time::Duration;

/// The crate and its version, for the facts.
pub(crate) const CLIENT: &str = "mysql crate 26";

/// A connection of the crate's.
pub(crate) struct Wrapped {
    connection: Conn,
    transport: &'static str,
}

impl Wrapped {
    /// Connects.
    pub(crate) fn connect(config: &Config, timeout: Duration) -> Result<Self> {
        let timeout = timeout.max(Duration::from_millis(1));
        let mut options = OptsBuilder::new()
            .user(Some(&config.user))
            .pass(Some(config.password.expose()))
            .db_name(Some(&config.database))
            // Otherwise a connection to a local port becomes one to the Unix socket without a word.
            .prefer_socket(false)
            // A statement that the client remembers would not be prepared when it is asked to be.
            .stmt_cache_size(0)
            // An update that changes nothing has found its row all the same.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .connect_attrs(Some(HashMap::from([("program_name", "kurabe")])))
            .tcp_connect_timeout(Some(timeout))
            .read_timeout(Some(timeout))
            .write_timeout(Some(timeout));
        options = match &config.place {
            Place::Unix(path) => options.socket(Some(path.to_string_lossy())),
            Place::Tcp { host, port } => options.ip_or_hostname(Some(host)).tcp_port(*port),
        };
        let (ssl, transport) = match (&config.tls, &config.place) {
            (tls::Mode::Off, Place::Unix(_)) => (None, "Unix socket"),
            (tls::Mode::Off, Place::Tcp { .. }) => (None, "TCP"),
            (tls::Mode::Require(_), _) => {
                let anyone = SslOpts::default()
                    .with_danger_accept_invalid_certs(true)
                    .with_danger_skip_domain_validation(true);
                (Some(anyone), "TCP with TLS")
            }
            (tls::Mode::Verify { ca, .. }, _) => {
                (Some(SslOpts::default().with_root_cert_path(ca.clone())), "TCP with TLS")
            }
        };
        if ssl.is_some() {
            tls::install_provider();
        }
        let connection = Conn::new(options.ssl_opts(ssl)).map_err(|e| refused(e, config))?;
        Ok(Self { connection, transport })
    }
}

impl Query for Wrapped {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        fill(self.connection.query_iter(sql).map_err(failed)?, out)
    }

    fn quit(&mut self) -> Result<()> {
        // The crate says goodbye when its connection is dropped, right after this.
        Ok(())
    }

    fn transport(&self) -> String {
        self.transport.to_owned()
    }
}

impl Link for Wrapped {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.connection.ping().map_err(failed)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.connection.prep(sql).map_err(failed)
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let expected = usize::from(statement.num_params());
        if expected != parameters.len() {
            return Err(wrong_parameters(expected, parameters.len()));
        }
        let parameters = if parameters.is_empty() {
            Params::Empty
        } else {
            Params::Positional(parameters.iter().map(value).collect::<Result<_>>()?)
        };
        fill(self.connection.exec_iter(&*statement, parameters).map_err(failed)?, out)
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        self.connection.close(statement).map_err(failed)
    }
}

fn value(value: &Value<'_>) -> Result<mysql::Value> {
    Ok(match value {
        Value::Null => mysql::Value::NULL,
        Value::Int(n) => mysql::Value::Int(*n),
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.to_vec()),
        Value::Time(micros) => {
            let t = DateTime::from_micros(*micros)?;
            mysql::Value::Date(t.year, t.month, t.day, t.hour, t.minute, t.second, t.micros)
        }
    })
}

fn fill<P: Protocol>(mut result: QueryResult<'_, '_, '_, P>, out: &mut Reply) -> Result<()> {
    out.set_affected(result.affected_rows());
    for row in result.by_ref() {
        let row = row.map_err(failed)?;
        for column in 0..row.len() {
            match row.as_ref(column) {
                None | Some(mysql::Value::NULL) => out.push_null(),
                Some(mysql::Value::Bytes(bytes)) => out.push_bytes(bytes),
                Some(mysql::Value::Int(n)) => out.push_int(*n),
                Some(mysql::Value::UInt(n)) => out.push_int(i64::try_from(*n).map_err(|_| foreign())?),
                Some(&mysql::Value::Date(year, month, day, hour, minute, second, micros)) => {
                    let moment = DateTime { year, month, day, hour, minute, second, micros };
                    out.push_time(moment.micros().ok_or_else(foreign)?);
                }
                Some(_) => return Err(foreign()),
            }
        }
        out.end_row();
    }
    Ok(())
}

/// A value of a type that no field of ours has.
fn foreign() -> Error {
    Error::unsupported("the reply holds a value that is no text, bytes, whole number or moment")
}

fn refused(error: mysql::Error, config: &Config) -> Error {
    match error {
        mysql::Error::DriverError(DriverError::CouldNotConnect(Some((_, _, kind)))) => {
            config.place.unreachable(&kind.into())
        }
        mysql::Error::DriverError(DriverError::ConnectTimeout | DriverError::Timeout) => {
            config.place.unreachable(&std::io::ErrorKind::TimedOut.into())
        }
        error => failed(error),
    }
}

/// The crate's error as ours. None of its texts holds a password.
fn failed(error: mysql::Error) -> Error {
    match error {
        mysql::Error::MySqlError(error) => errors::server(error.code, &error.message),
        mysql::Error::IoError(error) | mysql::Error::CodecError(PacketCodecError::Io(error)) => lost(&error),
        mysql::Error::DriverError(DriverError::PacketTooLarge) => errors::server(1153, "packet too large"),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            Error::new(ErrorKind::Unsupported, "the server offers no TLS").hint("leave tls= out")
        }
        mysql::Error::DriverError(error @ DriverError::UnknownAuthPlugin(_)) => {
            Error::new(ErrorKind::Denied, error.to_string())
        }
        mysql::Error::TlsError(TlsError::Tls(error)) => tls::failed(&error),
        mysql::Error::CodecError(PacketCodecError::PacketTooLarge) => {
            errors::server(1153, "packet too large")
        }
        error => Error::new(ErrorKind::Protocol, error.to_string()),
    }
}
