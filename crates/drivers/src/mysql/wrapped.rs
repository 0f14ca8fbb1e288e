//! Client that uses the `mysql` crate; `?client=driver` selects it.

use super::config::Config;
use super::errors;
use super::estimate::PlanFormat;
use super::lean::{cleartext_refused, several_sets};
pub(crate) use crate::clients::MYSQL as CLIENT;
use crate::prelude::*;
use crate::watchdog::{Watched, within};
use crate::wire::link::{Link, Query};
use crate::wire::{MOST, Place, lost, tls, too_much};
use mysql::consts::CapabilityFlags;
use mysql::error::tls::TlsError;
use mysql::prelude::{Protocol, Queryable as _};
use mysql::{ClientIdentity, Conn, DriverError, OptsBuilder, Params, QueryResult, SslOpts, Statement};
use mysql_common::proto::codec::error::PacketCodecError;
use rustix::net::Shutdown;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

pub(crate) struct Wrapped {
    connection: Conn,
    watched: Watched,
    /// Maximum size of a reply, in bytes.
    most: u64,
    transport: &'static str,
    plans: PlanFormat,
}

impl Wrapped {
    pub(crate) fn connect(config: &Config, allowed: &ConnectOptions) -> Result<Self> {
        let timeout = allowed.timeout.max(Duration::from_millis(1));
        let mut options = OptsBuilder::new()
            .user(Some(&config.user))
            .pass(Some(config.password.expose()))
            .db_name(Some(&config.database))
            .enable_cleartext_plugin(config.cleartext)
            // Otherwise the crate replaces a connection to a local port by one to the Unix socket.
            .prefer_socket(false)
            // A cached statement would not be prepared again on request.
            .stmt_cache_size(0)
            // Count matched rows, even if an update does not change them.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .connect_attrs(Some(HashMap::from([("program_name", "kurabe")])))
            .tcp_connect_timeout(Some(timeout))
            .read_timeout(Some(allowed.reply_timeout().max(timeout)))
            .write_timeout(Some(allowed.reply_timeout().max(timeout)));
        options = match &config.place {
            Place::Unix(path) => options.socket(Some(path.to_string_lossy())),
            Place::Tcp { host, port } => options.ip_or_hostname(Some(host)).tcp_port(*port),
        };
        let ssl = match &config.tls {
            tls::Mode::Off => None,
            tls::Mode::On { wanted, .. } => {
                tls::install_provider();
                Some(ssl_options(wanted))
            }
        };
        // The crate's timeouts apply to single reads, and its name lookup has none.
        let made = within(timeout, move || Conn::new(options.ssl_opts(ssl)), drop)?;
        let connection = made
            .ok_or_else(|| config.place.unreachable(&std::io::ErrorKind::TimedOut.into()))?
            .map_err(|e| refused(e, config))?;
        let socket = own_copy(connection.as_raw_fd());
        let watched = Watched::new(allowed.reply_timeout(), move || {
            if let Some(socket) = &socket {
                let _ = rustix::net::shutdown(socket, Shutdown::Both);
            }
        })?;
        let (transport, plans) = (config.tls.transport(&config.place), PlanFormat::default());
        Ok(Self { connection, watched, most: MOST.saturating_add(allowed.largest_answer), transport, plans })
    }
}

impl Query for Wrapped {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        let Self { connection, watched, most, .. } = self;
        watched.exchange(|| fill(connection.query_iter(sql).map_err(failed)?, *most, out))
    }

    fn quit(&mut self) -> Result<()> {
        // The crate sends COM_QUIT when its connection is dropped, right after this.
        Ok(())
    }

    fn quit_checked(&mut self) -> Result<()> {
        // The crate takes the next reply as the reply to this query, even if it belongs to an earlier request.
        let mut answer = Reply::new();
        self.query("SELECT 'the end'", &mut answer)?;
        if answer.rows() != 1 || answer.field_bytes(0, 0) != Some(b"the end") {
            let message = "the server sent more replies than there were requests";
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        self.quit()
    }

    fn estimate(&mut self, sql: &str) -> Result<RowEstimate> {
        let format = self.plans;
        let (estimate, format) = super::estimate::read(self, format, sql)?;
        self.plans = format;
        Ok(estimate)
    }

    fn transport(&self) -> String {
        self.transport.to_owned()
    }
}

impl Link for Wrapped {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        let Self { connection, watched, .. } = self;
        watched.exchange(|| connection.ping().map_err(failed))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let Self { connection, watched, .. } = self;
        watched.exchange(|| connection.prep(sql).map_err(failed))
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let expected = usize::from(statement.num_params());
        check_parameters("the statement", expected, parameters.len())?;
        let parameters = if parameters.is_empty() {
            Params::Empty
        } else {
            Params::Positional(parameters.iter().map(value).collect::<Result<_>>()?)
        };
        let Self { connection, watched, most, .. } = self;
        watched.exchange(|| fill(connection.exec_iter(&*statement, parameters).map_err(failed)?, *most, out))
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        self.connection.close(statement).map_err(failed)
    }
}

fn value(value: &Value<'_>) -> Result<mysql::Value> {
    Ok(match value {
        Value::Null => mysql::Value::NULL,
        Value::Int(n) => mysql::Value::Int(*n),
        Value::Bool(truth) => mysql::Value::Int(i64::from(*truth)),
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.to_vec()),
        Value::Time(micros) => {
            let t = DateTime::from_micros(*micros)?;
            mysql::Value::Date(t.year, t.month, t.day, t.hour, t.minute, t.second, t.micros)
        }
    })
}

fn ssl_options(wanted: &tls::Wanted) -> SslOpts {
    let identity = wanted.identity.as_ref();
    SslOpts::default()
        .with_root_cert_path(wanted.ca.clone())
        .with_danger_accept_invalid_certs(wanted.check == tls::Check::Nothing)
        .with_danger_skip_domain_validation(wanted.check != tls::Check::Host)
        .with_client_identity(
            identity.map(|files| ClientIdentity::new(files.certificate.clone(), files.key.clone())),
        )
}

/// Duplicates one of this process's descriptors to shut its socket down; `None` if the kernel does not support that.
fn own_copy(descriptor: RawFd) -> Option<OwnedFd> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()
}

fn fill<P: Protocol>(mut result: QueryResult<'_, '_, '_, P>, most: u64, out: &mut Reply) -> Result<()> {
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
                    let time = DateTime { year, month, day, hour, minute, second, micros };
                    out.push_time(time.micros().ok_or_else(foreign)?);
                }
                Some(_) => return Err(foreign()),
            }
        }
        out.end_row();
        if out.held() as u64 > most {
            return Err(too_much(most));
        }
    }
    // `CALL` ends with a result without rows.
    while let Some(mut set) = result.iter() {
        if !set.columns().as_ref().is_empty() {
            return Err(several_sets());
        }
        if let Some(Err(error)) = set.next() {
            return Err(failed(error));
        }
    }
    Ok(())
}

/// The error for a value of a type that Kurabe's fields do not have.
fn foreign() -> Error {
    Error::unsupported("the reply has a value that is not text, bytes, an integer or a timestamp")
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

/// Converts the crate's error. Its messages never contain a password.
fn failed(error: mysql::Error) -> Error {
    match error {
        mysql::Error::MySqlError(error) => errors::server(error.code, &error.message),
        mysql::Error::IoError(error) | mysql::Error::CodecError(PacketCodecError::Io(error)) => lost(&error),
        mysql::Error::DriverError(DriverError::PacketTooLarge) => errors::server(1153, "packet too large"),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            Error::unsupported("the server does not support TLS").hint("remove tls=")
        }
        mysql::Error::DriverError(DriverError::CleartextPluginDisabled) => cleartext_refused(),
        mysql::Error::DriverError(DriverError::UnknownAuthPlugin(name)) if name == "mysql_clear_password" => {
            cleartext_refused()
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
