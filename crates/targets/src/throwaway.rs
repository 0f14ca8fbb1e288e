//! Starts throwaway servers, as their URLs and the run want them.

use crate::reporter::Reporter;
use crate::urls::{driver_options, engine};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::target::{PROGRAMS, SETUP, TargetUrl, VERSION};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::prepare::target::Restart;
use kurabe_testbed::{Server, StartOptions, TestbedError};
use std::sync::Arc;

/// Starts a throwaway server, with the settings for a durability class if one is requested. Options that its driver
/// does not know are settings of the server, and override those.
///
/// # Errors
/// If a setting is invalid, or the server does not start.
pub fn up(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
    reporter: &dyn Reporter,
) -> Result<Server> {
    start(url, &of_url(url, durability, connections, reporter)?)
}

/// Its start options, which are announced.
pub(crate) fn of_url(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
    reporter: &dyn Reporter,
) -> Result<StartOptions> {
    let options = options_of(url, durability, connections)?;
    announce(url, reporter);
    Ok(options)
}

/// Its start options.
pub(crate) fn options_of(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
) -> Result<StartOptions> {
    let mut options = up_options(url, connections)?;
    options.durability = durability.map(|class| class.name().to_owned());
    Ok(options)
}

pub(crate) fn announce(url: &TargetUrl, reporter: &dyn Reporter) {
    reporter.note(&format!("starting throwaway {} …", url.path));
}

/// Runs `start` with the servers' CPU affinity, if processors are partitioned.
pub fn with_server_affinity<T>(cpu_partition: Option<&CpuPartition>, start: impl FnOnce() -> T) -> T {
    match cpu_partition {
        Some(cpu_partition) => cpu_partition.with_server_affinity(start),
        None => start(),
    }
}

pub(crate) fn start(url: &TargetUrl, options: &StartOptions) -> Result<Server> {
    let server = kurabe_testbed::start(&url.path, options).map_err(|error| not_started(&error))?;
    match url.option(VERSION) {
        Some(wanted) if !is_version(server.version(), wanted) => {
            Err(Error::usage(format!("{url}: the server has version {}, not {wanted}", server.version()))
                .hint("name another folder with programs=, or omit the version"))
        }
        _ => Ok(server),
    }
}

/// Whether what a program reports has this version, or a later part of it: 15.18 is 15.
fn is_version(reported: &str, wanted: &str) -> bool {
    let mut words = reported.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.any(|word| word == wanted || word.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.')))
}

/// The folder of the server's programs that a URL names.
pub(crate) fn programs(url: &TargetUrl) -> Result<Option<std::path::PathBuf>> {
    let Some(value) = url.option(PROGRAMS) else { return Ok(None) };
    let folder = std::path::PathBuf::from(value);
    if folder.is_absolute() && folder.is_dir() {
        return Ok(Some(folder));
    }
    Err(Error::usage(format!("{url}: {PROGRAMS}={value} is not the path of a folder"))
        .hint("name the folder of the server's programs, from the root: /usr/lib/postgresql/15/bin"))
}

/// The start options from a target's URL.
pub(crate) fn up_options(url: &TargetUrl, connections: u64) -> Result<StartOptions> {
    // Before a server starts, which would repeat it in its log.
    if let Some(name) =
        ["pass", "passwd", "password", "pwd"].into_iter().find(|name| url.option(name).is_some())
    {
        return Err(Error::usage(format!("up:{}: {name}= is no setting of a throwaway server", url.path))
            .hint("leave it out: each has a random password, which 'kurabe up' prints"));
    }
    let program = std::env::current_exe().map_err(|e| {
        Error::new(ErrorKind::Environment, format!("cannot find the path of this program: {e}"))
    })?;
    let mut options = StartOptions::new(program);
    options.connections = connections;
    options.tls = asks_for_tls(url)?;
    let of_driver = driver_options(url);
    for (name, value) in &url.options {
        if name == SETUP {
            return Err(Error::usage(format!("{url}: {SETUP}= is for a target of a run"))
                .hint("load this server with the engine's own program, or with 'kurabe copy'"));
        }
        if name == PROGRAMS {
            options.programs = programs(url)?;
        } else if name != VERSION && !of_driver.iter().any(|(known, _)| known == name) {
            options = options.set(name, value);
        }
    }
    Ok(options)
}

/// Whether its driver is to connect with TLS, which the server has to offer then.
pub(crate) fn asks_for_tls(url: &TargetUrl) -> Result<bool> {
    let mut of_driver = TargetUrl::parse(&format!("{}://127.0.0.1/kurabe", engine(url)))?;
    of_driver.ignores_environment = true;
    of_driver.options.extend(driver_options(url));
    Ok(kurabe_drivers::registry::tls(&of_driver).map_err(|error| error.context(url))?.is_some())
}

/// The URL by which a throwaway server is reached, with the options that belong to its driver. It ignores the environment,
/// which is for the user's servers.
///
/// # Errors
/// None, of a server that was started.
pub fn reached(url: &TargetUrl, server: &Server) -> Result<TargetUrl> {
    let mut reached = TargetUrl::parse(server.url())?;
    reached.ignores_environment = true;
    reached.options.extend(driver_options(url));
    let file = match reached.option("tls") {
        Some("verify") => "ca",
        Some("true") => "tlsCAFile",
        _ => return Ok(reached),
    };
    // An authority of its own has signed its certificate.
    if let Some(ca) = server.ca() {
        reached.options.entry(file.to_owned()).or_insert_with(|| ca.display().to_string());
    }
    Ok(reached)
}

/// A URL like that of a throwaway server that is not started, for its driver.
pub(crate) fn not_started_url(url: &TargetUrl) -> Result<TargetUrl> {
    // What is in a folder of the user's own is known when it is started.
    if let (None, Some(Err(missing))) = (programs(url)?, kurabe_testbed::installed(&url.path)) {
        return Err(
            Error::new(ErrorKind::NotFound, format!("up:{}: {}", url.path, missing.what)).hint(missing.how())
        );
    }
    // Nothing listens at this port: another server at the engine's usual one would not be that of the run.
    let with_path = |path: &str| {
        let mut url_of_it = TargetUrl::parse(&format!("{}://127.0.0.1:1{path}", engine(url)))?;
        url_of_it.ignores_environment = true;
        url_of_it.options.extend(driver_options(url));
        kurabe_drivers::registry::open(&url_of_it).map(|_| url_of_it)
    };
    // The path is a number with some engines, and required with others.
    with_path("/kurabe").or_else(|_| with_path(""))
}

/// A function that restarts throwaway servers, one after the other.
pub(crate) fn restarting(servers: Vec<Arc<Server>>) -> Restart {
    Box::new(move || {
        servers.iter().try_for_each(|server| server.restart().map_err(|error| not_started(&error)))
    })
}

/// Converts an error of starting a throwaway server: an unknown setting, or an unusable target.
pub(crate) fn not_started(error: &TestbedError) -> Error {
    let kind = match error {
        TestbedError::BadOption { .. } | TestbedError::UnknownEngine { .. } => ErrorKind::Usage,
        TestbedError::NotInstalled { .. } => ErrorKind::NotFound,
        TestbedError::Failed { .. } | TestbedError::TimedOut { .. } => ErrorKind::Unreachable,
        TestbedError::Io { .. } | TestbedError::Supervisor { .. } => ErrorKind::Environment,
    };
    start_error(kind, &error.to_string())
}

/// An error from the testbed's text: the first line is the message, the others are a log.
pub fn start_error(kind: ErrorKind, text: &str) -> Error {
    let mut lines = text.lines();
    Error::new(kind, lines.next().unwrap_or_default()).log(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_compared_by_its_parts() {
        for (reported, wanted, same) in [
            ("15.18", "15", true),
            ("15.18 (Debian 15.18-1)", "15.18", true),
            ("15.18", "15.1", false),
            ("150.1", "15", false),
            ("1.6.18", "1.6", true),
        ] {
            assert_eq!(is_version(reported, wanted), same, "{reported} and {wanted}");
        }
    }
}
