//! `kurabe wire TARGET -- COMMAND`: what any client sends to a server.

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::signals;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_drivers::info::{Place, ServerPlace};
use kurabe_wire::account::End;
use kurabe_wire::environment::{Environment, environment, through};
use kurabe_wire::registry::{self, Protocol};
use kurabe_wire::relay::{At, Clients, Listen, Options, Refused, Relay, Server, cannot_listen};
use kurabe_wire::render::{self, Report};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::ErrorKind as IoErrorKind;
use std::os::fd::AsFd;
use std::path::PathBuf;
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

options! {
    /// The server of `kurabe wire` and `kurabe capture`, the command that connects to it, and the relay between them.
    RelayOptions {
        target: Option<String>,
        command: Vec<OsString>,
        listen: Option<String>,
        allow_remote: bool,
        allow_other_users: bool,
        tls: Option<String>,
    }
}

options! {
    /// The options of `kurabe wire` besides.
    WireOptions {
        first: Option<String>,
        format: Option<String>,
    }
}

pub(super) fn wire(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let WireOptions { first, format } = WireOptions::of(matches);
    let relay = RelayOptions::of(matches);
    let relayed = Relayed::prepare(&relay, Some("--tls pass forwards TLS"), output)?;
    let Relayed { url, protocol, listen, .. } = &relayed;
    let options = Options {
        listen: listen.clone(),
        server: server(url)?.server,
        protocol: Some(protocol),
        refuse_tls: relay.tls.as_deref() == Some("refuse"),
        until: first,
    };
    let relay = start(options, output)?;
    let done = serve(relay, &relayed, format.as_deref().unwrap_or_default(), output);
    relayed.end(output);
    done
}

/// What is relayed: a server, and the command that connects to it.
pub(super) struct Relayed {
    pub(super) url: TargetUrl,
    pub(super) protocol: &'static Protocol,
    pub(super) listen: Listen,
    pub(super) command: Vec<OsString>,
    pub(super) stop: Arc<AtomicBool>,
    started: Option<kurabe_testbed::Server>,
}

impl Relayed {
    /// Reads the command line, and starts the server if it is a throwaway one. `plain`: what else the relay can do about TLS, if
    /// the target's URL must not ask for it.
    pub(super) fn prepare(options: &RelayOptions, plain: Option<&str>, output: &Output) -> Result<Self> {
        let asked = TargetUrl::parse(options.target.as_deref().unwrap_or_default())?;
        let is_up = asked.scheme == kurabe_targets::UP;
        if is_up {
            kurabe_targets::check_scheme(&asked)?;
        }
        // Before a server is started.
        let scheme = if is_up { &asked.path } else { &asked.scheme };
        let without_tls =
            registry::plain_scheme(scheme).filter(|_| options.tls.as_deref() == Some("terminate"));
        let protocol = protocol(without_tls.unwrap_or(scheme))?;
        let listen = options.listen.as_deref().unwrap_or_default();
        let at = match listen.strip_prefix("unix:") {
            Some(path) => At::Unix(socket(path, scheme)?),
            None => At::Tcp(super::app::address(listen, options.allow_remote)?),
        };
        let clients = if options.allow_other_users { Clients::All } else { Clients::Own };
        let listen = Listen { at, clients };
        if let Some(other) = plain {
            refuse_tls(&asked, other)?;
        }
        let command = options.command.clone();
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
        let mut url = started.as_ref().map_or_else(|| Ok(asked.clone()), reached)?;
        // Options are of Kurabe's own client: others are told user and database by themselves.
        url.user = url.user.take().or_else(|| url.option("user").map(ToOwned::to_owned));
        if url.path.is_empty() {
            url.path = url.option("dbname").unwrap_or_default().to_owned();
        }
        Ok(Self { url, protocol, listen, command, stop, started })
    }

    /// The URL of the relay for clients. That of a throwaway server has its password, which nobody else knows.
    pub(super) fn for_clients(&self, through: TargetUrl) -> String {
        match self.started {
            Some(_) => TargetUrl { password: self.url.password.clone(), ..through }.exposed(),
            None => through.to_string(),
        }
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

/// The file of a Unix socket: in a folder, PostgreSQL's clients find it by its name.
fn socket(path: &str, scheme: &str) -> kurabe_core::Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| Error::usage(format!("--listen: {error}")))?;
    let wrong = |why: &str| Error::usage(format!("--listen: {}: {why}", path.display()));
    if !scheme.starts_with("postgres") {
        return if path.is_dir() { Err(wrong("it is a folder").hint("name a file in it")) } else { Ok(path) };
    }
    let named = if path.is_dir() { path.join(".s.PGSQL.5432") } else { path.clone() };
    let is_found = named.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL."));
    let hint = "name its folder, or FOLDER/.s.PGSQL.5432";
    if is_found {
        Ok(named)
    } else {
        Err(wrong("no client of PostgreSQL finds a socket of this name").hint(hint))
    }
}

pub(super) fn protocol(scheme: &str) -> kurabe_core::Result<&'static Protocol> {
    registry::of_scheme(scheme).ok_or_else(|| {
        let known = registry::schemes().collect::<Vec<_>>().join(", ");
        match registry::plain_scheme(scheme) {
            Some(plain) => {
                Error::usage(format!("{scheme}: the relay speaks no TLS to servers")).hint(format!(
                    "'kurabe capture' with --tls terminate records it; wire needs a server without TLS, such as a test server's \
                     {plain}://host:port"
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

/// The server that a relay connects to.
#[derive(Debug)]
pub(super) struct Far {
    pub(super) server: Server,
    /// The host that its certificate must be for; `None` for a Unix socket.
    pub(super) certified: Option<String>,
}

/// The server of a URL: the same that its driver connects to.
pub(super) fn server(url: &TargetUrl) -> kurabe_core::Result<Far> {
    let mut servers = kurabe_drivers::registry::servers(url)?;
    let Some(ServerPlace { place, certified }) = servers.pop().filter(|_| servers.is_empty()) else {
        return Err(url.wrong("a relay has one server").hint("name one host"));
    };
    Ok(match place {
        Place::Unix(path) => Far { server: Server::Unix(path), certified: None },
        Place::Tcp { host, port } => Far {
            certified: Some(certified.unwrap_or_else(|| host.clone())),
            server: Server::Tcp(host, port),
        },
    })
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
    let at = options.listen.at.clone();
    let refuses = options.refuse_tls;
    let relay = Relay::start(options).map_err(|error| cannot_listen(&at, &error))?;
    if !refuses {
        output.note("no byte is changed: statements of clients that use TLS cannot be read");
    }
    Ok(relay)
}

/// Relays until the command has ended, or until Ctrl-C without one; then shows what was seen.
fn serve(mut relay: Relay, relayed: &Relayed, format: &str, output: &Output) -> Result<Exit> {
    let Relayed { url, protocol, command, stop, .. } = relayed;
    let shown_url = relayed.for_clients(through(url, relay.at()));
    let (mut shown, mut strangers) = (0, Strangers::default());
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
            strangers.tell(relay.refused(), output);
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
        let set = environment(url, relay.at(), &protocol.variables, None);
        Some(run(command, &set, stop, || strangers.tell(relay.refused(), output))?)
    };
    relay.stop();
    strangers.end(relay.refused(), output);
    let connections = relay.connections();
    let target = url.to_string();
    let mut report = Report::new(&target, &connections, relay.not_kept(), relay.refused().others());
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
        "json" => output.json_result(serde_json::to_string_pretty(report))?,
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
            "the command did not connect to the relay: its address is in KURABE_HOST and KURABE_PORT, or KURABE_SOCKET",
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

/// Tells of connections that the relay refused.
#[derive(Default)]
pub(super) struct Strangers {
    were_told: bool,
}

impl Strangers {
    /// Tells of the first connection of another account, at once: the user's own program may have another one.
    pub(super) fn tell(&mut self, refused: &Refused, output: &Output) {
        if let Some(account) = refused.account()
            && !std::mem::replace(&mut self.were_told, true)
        {
            output.warning(&format!(
                "a connection of another account of this machine (uid {account}) was refused: a client of the relay has the rights of your \
                 connection to the server; --allow-other-users lets all accounts connect"
            ));
        }
    }

    /// Tells what is left at the end.
    pub(super) fn end(&mut self, refused: &Refused, output: &Output) {
        self.tell(refused, output);
        if refused.gone() > 0 {
            output.note(&format!(
                "{} closed by its client before its account was known, of which nothing was forwarded",
                units::counted(refused.gone(), "connection")
            ));
        }
    }
}

/// Runs the command to its end, and calls `meanwhile` every few milliseconds.
pub(super) fn run(
    command: &[OsString],
    environment: &Environment,
    stop: &AtomicBool,
    meanwhile: impl FnMut(),
) -> Result<ExitStatus> {
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
    wait(&mut child, stop, meanwhile).map_err(|error| failed("cannot wait for", error).into())
}

/// Waits for the command. After Ctrl-C, which a terminal sends to it too, it is asked to end, and then killed.
fn wait(child: &mut Child, stop: &AtomicBool, mut meanwhile: impl FnMut()) -> std::io::Result<ExitStatus> {
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
        meanwhile();
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::Endpoint;

    fn place(text: &str) -> kurabe_core::Result<String> {
        let url = TargetUrl::parse(text).unwrap();
        refuse_tls(&url, "--tls pass forwards TLS")?;
        protocol(&url.scheme)?;
        server(&url).map(|far| far.server.to_string())
    }

    #[test]
    fn relay_connects_to_the_server_that_the_driver_connects_to() {
        for (text, expected) in [
            ("mysql://db.example/x", "db.example:3306"),
            ("mysql://root@x/y?socket=/run/m.sock", "/run/m.sock"),
            ("mariadb://root@[::1]:7/y", "[::1]:7"),
            ("postgres://u@[::1]:7/x", "[::1]:7"),
            ("postgresql://u@h/x", "h:5432"),
            ("postgres://u@/y?host=/run/pg&port=5433", "/run/pg/.s.PGSQL.5433"),
            ("postgres://u@x:1/y?host=h", "h:1"),
            ("postgres://u@/y?host=h&port=7", "h:7"),
            ("postgres://u@h/y?hostaddr=192.0.2.1", "192.0.2.1:5432"),
            ("postgres://u@%2Frun%2Fpg:7/y", "/run/pg/.s.PGSQL.7"),
            ("postgres://u@/y?socket=/run/pg/.s.PGSQL.8", "/run/pg/.s.PGSQL.8"),
            ("redis:", "127.0.0.1:6379"),
            ("valkey://h/2?socket=/run/v.sock", "/run/v.sock"),
            ("memcached://h", "h:11211"),
            ("memcached:///run/m.sock", "/run/m.sock"),
            ("memcached://h?socket=/run/m.sock", "/run/m.sock"),
            ("mongodb://h/x", "h:27017"),
            ("mongodb://%2Frun%2Fmongodb.sock/x", "/run/mongodb.sock"),
            ("mongodb://h/x?socket=/run/m.sock", "/run/m.sock"),
            ("couchdb://h", "h:5984"),
            ("http://h:8080/", "h:8080"),
            ("http://h/shop", "h:80"),
        ] {
            let relayed = place(text).unwrap();
            assert_eq!(relayed, expected, "{text}");
            let driver = kurabe_drivers::registry::open(&TargetUrl::parse(text).unwrap()).unwrap();
            let reached = match driver.endpoint() {
                Endpoint::Composite(mut members) => members.remove(0).endpoint,
                one => one,
            };
            let reached = match reached {
                Endpoint::Tcp { host, port } => Server::Tcp(host, port),
                Endpoint::Unix(path) => Server::Unix(path),
                other => panic!("{text}: {other:?}"),
            };
            assert_eq!(reached.to_string(), relayed, "{text}");
        }
        // Where TLS ends at the relay, which asks the server for it.
        for (text, expected, name) in [
            ("rediss://h", "h:6379", "h"),
            ("couchdbs://h", "h:6984", "h"),
            ("https://h", "h:443", "h"),
            ("postgres://u@db.example/y?hostaddr=192.0.2.1", "192.0.2.1:5432", "db.example"),
        ] {
            let far = server(&TargetUrl::parse(text).unwrap()).unwrap();
            assert_eq!((far.server.to_string().as_str(), far.certified.as_deref()), (expected, Some(name)));
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
            ("postgres://u@/x?host=a,b", "name one host"),
            ("postgres://u@a,b/x", "name one host"),
            ("http://a:1,b:2/", "name one host"),
            ("mongodb+srv://h/x", "is no protocol"),
            ("redis://h?sokcet=/x", "did you mean 'socket'"),
        ] {
            let error = place(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
