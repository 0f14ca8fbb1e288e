//! `kurabe doctor --messages`: counts the messages between a client and the server until the first reply.

use kurabe_core::driver::ConnectOptions;
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_wire::account::{Connection, Encryption};
use kurabe_wire::registry;
use kurabe_wire::relay::{Options, Relay, Server, Total};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

/// The maximum length of a statement that is shown in full.
const SHOWN: usize = 300;

/// The lines of the report: name and text. The connection goes through a relay. Facts that the driver reads from the
/// server beforehand use a connection that is not counted.
pub(super) fn lines(url: &TargetUrl, endpoint: &Endpoint) -> Result<Vec<(&'static str, String)>> {
    let way = |why: &str| Error::unsupported(format!("messages cannot be counted: {why}"));
    if kurabe_drivers::registry::find(&url.scheme).is_none() {
        return Err(way("there is no driver"));
    }
    if *endpoint == Endpoint::InProcess {
        return Err(way("the database runs in this process"));
    }
    let server = super::wire::server(url)?.server;
    if matches!(server, Server::Unix(_)) {
        return Err(way("the relay supports only TCP connections").hint("name a host in place of the socket"));
    }
    let protocol = registry::of_scheme(&url.scheme);
    let relay = Relay::start(Options {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
        server,
        protocol,
        // Connecting is measured as it is.
        refuse_tls: false,
        until: None,
    })
    .map_err(|e| Error::new(ErrorKind::Environment, format!("the relay could not start: {e}")))?;
    let at = relay.address();
    let through = redirected(url, at);
    // Variables of the environment, too, may name a server.
    if super::wire::server(&through)?.server != at.into() {
        return Err(way("the environment names the server's address").hint("unset PGHOSTADDR"));
    }
    let open = kurabe_drivers::registry::open(&through)?;
    // The first connection includes what a driver asks only once per server.
    let first = open.connect(&ConnectOptions::default())?;
    once(&relay, |seen| seen.connections > 0);
    first.close()?;
    // Closing messages must not count later.
    let before = once(&relay, |seen| seen.open == 0);
    // Statements of the first connection.
    let connection = relay.connections().into_iter().next();
    let mut session = open.connect(&ConnectOptions::default())?;
    let connected = once(&relay, |seen| seen.connections > before.connections);
    let prepared = session.prepare(&Operation::Ping)?;
    session.execute(&prepared, &[], &mut Reply::new())?;
    let answered = relay.total();
    session.release(prepared)?;
    session.close()?;
    let mut lines = vec![
        ("connecting", traffic(&before, &connected)),
        (
            "first request",
            format!("{} (the smallest request of the protocol)", traffic(&connected, &answered)),
        ),
    ];
    if let Some(connection) = connection.filter(|_| protocol.is_some()) {
        lines.push(("its statements", statements(&connection)));
    }
    Ok(lines)
}

/// The URL with the server at another address.
fn redirected(url: &TargetUrl, to: SocketAddr) -> TargetUrl {
    let mut through = TargetUrl { host: Some(to.ip().to_string()), port: Some(to.port()), ..url.clone() };
    for place in ["host", "hostaddr", "port"] {
        through.options.remove(place);
    }
    through
}

/// What the relay has seen once a condition is met. Waits at most a second: clients may keep a connection, or open none.
fn once(relay: &Relay, met: impl Fn(&Total) -> bool) -> Total {
    for _ in 0..100 {
        let seen = relay.total();
        if met(&seen) {
            return seen;
        }
        thread::sleep(Duration::from_millis(10));
    }
    relay.total()
}

fn traffic(before: &Total, after: &Total) -> String {
    let connections = match after.connections - before.connections {
        0 => String::new(),
        n => format!("{}, ", units::counted(n, "connection")),
    };
    let (before, after) = (before.traffic, after.traffic);
    let waits = after.round_trips - before.round_trips;
    format!(
        "{connections}{} {} for the server, {} bytes sent, {} received",
        units::count(waits),
        if waits == 1 { "wait" } else { "waits" },
        units::count(after.sent_bytes - before.sent_bytes),
        units::count(after.received_bytes - before.received_bytes)
    )
}

/// The statements of a connection in one line.
fn statements(connection: &Connection) -> String {
    if connection.encryption == Encryption::Tls {
        return "cannot be read: the connection is encrypted".to_owned();
    }
    let texts: Vec<String> = connection.statements.iter().map(|one| one.text.clone()).collect();
    match (&connection.unreadable, texts.is_empty()) {
        (Some(why), _) => format!("cannot be read: {why}"),
        (None, true) => "none while connecting".to_owned(),
        (None, false) => shown(&texts),
    }
}

fn shown(texts: &[String]) -> String {
    let cut = |text: &String| {
        let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some((at, _)) = text.char_indices().nth(SHOWN) {
            text.truncate(at);
            text.push('…');
        }
        text
    };
    texts.iter().map(cut).collect::<Vec<_>>().join("; ")
}
