//! `kurabe wire TARGET -- COMMAND`: what any client sends to a server.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::signals;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind};
use kurabe_wire::account::End;
use kurabe_wire::environment::{Environment, environment, through};
use kurabe_wire::registry::{self, Protocol};
use kurabe_wire::relay::{Options, Relay, Server};
use kurabe_wire::render::{self, Report};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::ErrorKind as IoErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two looks at the command and the connections.
const POLL: Duration = Duration::from_millis(20);
/// Time after Ctrl-C until the command is asked to end, if it did not notice Ctrl-C itself.
const ASK: Duration = Duration::from_millis(500);
/// Time after Ctrl-C until the command is killed.
const KILL: Duration = Duration::from_millis(1_500);

pub(super) fn wire(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let relayed = Relayed::prepare(matches, Some("--tls pass forwards TLS"), output)?;
    let Relayed { url, protocol, listen, command, stop, .. } = &relayed;
    let options = Options {
        listen: *listen,
        server: server(url, protocol)?,
        protocol: Some(protocol),
        refuse_tls: text("tls") == "refuse",
        until: matches.get_one::<String>("first").cloned(),
    };
    let relay = start(options, output)?;
    let done = serve(relay, url, protocol, command, text("format"), stop, output);
    relayed.end(output);
    done
}

/// What is relayed: a server, and the command that connects to it.
pub(super) struct Relayed {
    pub(super) url: TargetUrl,
    pub(super) protocol: &'static Protocol,
    pub(super) listen: SocketAddr,
    pub(super) command: Vec<OsString>,
    pub(super) stop: Arc<AtomicBool>,
    started: Option<kurabe_testbed::Server>,
}

impl Relayed {
    /// Reads the command line, and starts the server if it is a throwaway one. `plain`: what else the relay can do about TLS, if
    /// the target's URL must not ask for it.
    pub(super) fn prepare(matches: &ArgMatches, plain: Option<&str>, output: &Output) -> Result<Self> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
        let asked = TargetUrl::parse(text("target"))?;
        let listen = super::app::address(text("listen"), matches.get_flag("allow-remote"))?;
        let is_up = asked.scheme == kurabe_targets::UP;
        if is_up {
            kurabe_targets::check_scheme(&asked)?;
        }
        // Before a server is started.
        let scheme = if is_up { &asked.path } else { &asked.scheme };
        let without_tls = registry::plain_scheme(scheme).filter(|_| text("tls") == "terminate");
        let protocol = protocol(without_tls.unwrap_or(scheme))?;
        if let Some(other) = plain {
            refuse_tls(&asked, other)?;
        }
        let command: Vec<OsString> = matches.get_many("command").into_iter().flatten().cloned().collect();
        let stop = signals::watch(if command.is_empty() { exit::DONE } else { exit::INTERRUPTED }, output)?;
        let started = if is_up {
            signals::wait_for(format!("a throwaway {} to start", asked.path));
            Some(kurabe_targets::up(&asked, None, 0, output)?)
        } else {
            None
        };
        // For any client, each of which reads its own environment.
        let reached = |server| {
            kurabe_targets::reached(&asked, server).map(|url| TargetUrl { ignores_environment: false, ..url })
        };
        let url = started.as_ref().map_or_else(|| Ok(asked.clone()), reached)?;
        Ok(Self { url, protocol, listen, command, stop, started })
    }

    /// Stops the throwaway server.
    pub(super) fn end(self, output: &Output) {
        if let Some(server) = self.started
            && let Err(error) = server.stop()
        {
            output.warning(&error.to_string());
        }
    }
}

pub(super) fn protocol(scheme: &str) -> kurabe_core::Result<&'static Protocol> {
    registry::of_scheme(scheme).ok_or_else(|| {
        let known = registry::schemes().collect::<Vec<_>>().join(", ");
        match registry::plain_scheme(scheme) {
            Some(plain) => {
                Error::usage(format!("{scheme}: the relay speaks no TLS to servers")).hint(format!(
                    "name a port without TLS: {plain}://host:port; or 'kurabe capture' with --tls terminate"
                ))
            }
            None => Error::usage(format!("'{scheme}' is no protocol that can be decoded"))
                .hint(format!("there are: {known}")),
        }
    })
}

/// Fails if the options of a URL ask for TLS. `other`: what else the relay can do about it.
fn refuse_tls(url: &TargetUrl, other: &str) -> kurabe_core::Result<()> {
    for (option, plain) in [("tls", "off"), ("sslmode", "disable"), ("ssl-mode", "DISABLED")] {
        if url.option(option).is_some_and(|value| !value.eq_ignore_ascii_case(plain)) {
            return Err(url
                .wrong(format!("{option}= has no effect: the client, and not the relay, chooses TLS"))
                .hint(format!("remove {option}=; {other}")));
        }
    }
    Ok(())
}

/// Where the server of a URL listens.
pub(super) fn server(url: &TargetUrl, protocol: &Protocol) -> kurabe_core::Result<Server> {
    if let Some(socket) = url.option("socket") {
        return Ok(Server::Unix(socket.into()));
    }
    let host = url.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
    if host.contains(',') {
        return Err(url.wrong("a relay has one server").hint("name one host"));
    }
    if host.starts_with('/') {
        return Ok(Server::Unix(host.into()));
    }
    Ok(Server::Tcp(host, url.port.unwrap_or(protocol.port)))
}

/// Checks that the server answers.
pub(super) fn check(server: &Server) -> Result<()> {
    signals::wait_for(format!("{server} to answer"));
    kurabe_wire::relay::check(server).map_err(|error| {
        Error::new(ErrorKind::Unreachable, format!("nothing answers at {server}: {error}"))
            .hint("check the address, and whether the server runs")
    })?;
    Ok(())
}

/// Starts the relay, if the server answers.
fn start(options: Options, output: &Output) -> Result<Relay> {
    check(&options.server)?;
    let listen = options.listen;
    let refuses = options.refuse_tls;
    let relay = Relay::start(options).map_err(|error| {
        Error::new(ErrorKind::Environment, format!("cannot listen at {listen}: {error}"))
            .hint("name an address of this host and a free port")
    })?;
    if !refuses {
        output.note("no byte is changed: statements of clients that use TLS cannot be read");
    }
    Ok(relay)
}

/// Relays until the command has ended, or until Ctrl-C without one; then shows what was seen.
fn serve(
    mut relay: Relay,
    url: &TargetUrl,
    protocol: &Protocol,
    command: &[OsString],
    format: &str,
    stop: &AtomicBool,
    output: &Output,
) -> Result<Exit> {
    let shown_url = through(url, relay.address()).to_string();
    let mut shown = 0;
    let status = if command.is_empty() {
        // Formats for programs have nothing else on standard output.
        if format == "text" {
            output.result(&shown_url)?;
        } else {
            output.hint(&shown_url);
        }
        output.note("Ctrl-C ends the relay");
        signals::wait_for("connections to be closed");
        while !stop.load(Ordering::SeqCst) {
            thread::sleep(POLL);
            if format == "text" {
                for connection in relay.ended_from(shown) {
                    output.result(&render::text(&connection))?;
                    shown += 1;
                }
            }
        }
        None
    } else {
        signals::wait_for("the command to end");
        let set = environment(url, relay.address(), &protocol.variables, None);
        Some(run(command, &set, stop)?)
    };
    relay.stop();
    let connections = relay.connections();
    let target = url.to_string();
    let mut report = Report::new(&target, &connections, relay.not_kept());
    report.command_status = status.and_then(|status| status.code());
    show(&report, shown, format, output)?;
    let unreachable = connections.iter().find_map(|connection| match &connection.end {
        End::Unreachable(why) => Some(why.clone()),
        _ => None,
    });
    ended(status, connections.len() as u64, unreachable, stop, output)
}

fn show(report: &Report<'_>, shown: usize, format: &str, output: &Output) -> Result<()> {
    match format {
        "json" => {
            let text = serde_json::to_string_pretty(report).map_err(|error| {
                Error::new(ErrorKind::Internal, format!("the result is no JSON: {error}"))
            })?;
            output.result(&text)?;
        }
        "md" => output.result(&report.markdown())?,
        _ => {
            for connection in report.connections.iter().skip(shown) {
                output.result(&render::text(connection))?;
            }
            output.result(&report.total())?;
        }
    }
    Ok(())
}

/// The exit code, with the reason if it is not success.
pub(super) fn ended(
    status: Option<ExitStatus>,
    connections: u64,
    unreachable: Option<String>,
    stop: &AtomicBool,
    output: &Output,
) -> Result<Exit> {
    let Some(status) = status else { return Ok(exit::DONE) };
    if stop.load(Ordering::SeqCst) {
        return Ok(exit::INTERRUPTED);
    }
    if connections == 0 {
        output.warning(
            "the command did not connect to the relay: its address is in KURABE_HOST and KURABE_PORT",
        );
    }
    if let Some(why) = unreachable {
        return Err(Error::new(ErrorKind::Unreachable, format!("the server did not answer: {why}")).into());
    }
    if status.success() {
        return Ok(exit::DONE);
    }
    output.error(&anyhow::anyhow!("the command failed: {status}"));
    Ok(exit::FAILED_CELLS)
}

/// Runs the command to its end.
pub(super) fn run(command: &[OsString], environment: &Environment, stop: &AtomicBool) -> Result<ExitStatus> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::usage("no command was given").into());
    };
    let failed = |what: &str, error: std::io::Error| {
        Error::new(ErrorKind::Environment, format!("{what} '{}': {error}", program.display()))
    };
    // Standard output is for the result.
    let stderr = std::io::stderr();
    let errors = stderr.as_fd().try_clone_to_owned().map_err(|e| failed("no output for", e))?;
    let mut prepared = Command::new(program);
    prepared.args(arguments).stdout(Stdio::from(errors));
    for name in &environment.removed {
        prepared.env_remove(name);
    }
    prepared.envs(environment.set.iter().map(|(name, value)| (name, value)));
    let mut child = prepared.spawn().map_err(|error| match error.kind() {
        IoErrorKind::NotFound | IoErrorKind::PermissionDenied => {
            Error::usage(format!("the command '{}' cannot be started: {error}", program.display()))
                .hint("name a program, with its arguments; for a shell's command: -- sh -c '…'")
        }
        _ => failed("cannot start", error),
    })?;
    wait(&mut child, stop).map_err(|error| failed("cannot wait for", error).into())
}

/// Waits for the command. After Ctrl-C, which a terminal sends to it too, it is asked to end, and then killed.
fn wait(child: &mut Child, stop: &AtomicBool) -> std::io::Result<ExitStatus> {
    let mut stopped: Option<Instant> = None;
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::SeqCst) {
            let since = stopped.get_or_insert_with(Instant::now).elapsed();
            if since > KILL {
                child.kill()?;
            } else if since > ASK && !std::mem::replace(&mut asked, true) {
                // It may have ended already.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> kurabe_core::Result<String> {
        let url = TargetUrl::parse(text).unwrap();
        refuse_tls(&url, "--tls pass forwards TLS")?;
        server(&url, protocol(&url.scheme)?).map(|server| server.to_string())
    }

    #[test]
    fn server_of_a_url_has_the_default_port_and_unix_sockets_are_found() {
        for (text, expected) in [
            ("mysql://db.example/x", "db.example:3306"),
            ("postgres://[::1]:7/x", "[::1]:7"),
            ("redis:", "127.0.0.1:6379"),
            ("mysql://root@x/y?socket=/run/m.sock", "/run/m.sock"),
            ("postgres://%2Frun%2Fpg.sock/y", "/run/pg.sock"),
            ("http://h:8080/", "h:8080"),
        ] {
            assert_eq!(place(text).unwrap(), expected);
        }
    }

    #[test]
    fn servers_that_cannot_be_relayed_are_refused_with_the_remedy() {
        for (text, part) in [
            ("sqlite:x", "there are: mysql"),
            ("rediss://h", "redis://host:port"),
            ("https://h", "http://host:port"),
            ("mysql://h/x?tls=require", "--tls pass"),
            ("postgres://h/x?sslmode=require", "remove sslmode="),
            ("mongodb://a:1,b:2/x", "name one host"),
        ] {
            let error = place(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
