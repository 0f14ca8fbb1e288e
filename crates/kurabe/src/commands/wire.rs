//! `kurabe doctor --wire`: counts the messages between a client and the server until the first reply.

use crate::relay::{Relay, Seen};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::Reply;
use kurabe_core::{Error, Result, units};

/// The transport name of in-process databases.
const IN_PROCESS: &str = "in process";
/// The maximum length of a statement that is shown in full.
const SHOWN: usize = 300;

/// The lines of the report: name and text. The connection goes through a relay. Facts that the driver reads from the
/// server beforehand use a connection that is not counted.
pub(super) fn lines(url: &TargetUrl, transport: &str) -> Result<Vec<(&'static str, String)>> {
    let way = |why: &str| Error::unsupported(format!("messages cannot be counted: {why}"));
    let Some(driver) = kurabe_drivers::registry::find(&url.scheme) else {
        return Err(way("there is no driver"));
    };
    if transport == IN_PROCESS {
        return Err(way("the database runs in this process"));
    }
    if url.option("socket").is_some() {
        return Err(way("the relay supports only TCP connections").hint("remove socket="));
    }
    let (Some(host), Some(port)) = (&url.host, url.port) else {
        return Err(way("the URL has no host and port")
            .hint(format!("give both: {}://host:port/…", driver.schemes.first().unwrap_or(&"scheme"))));
    };
    let relay = Relay::open(host, port)?;
    let through = TargetUrl { host: Some("127.0.0.1".to_owned()), port: Some(relay.port()), ..url.clone() };
    let open = kurabe_drivers::registry::open(&through)?;
    // The first connection includes what a driver asks only once per server.
    let first = open.connect(&ConnectOptions::default())?;
    relay.met(0);
    first.close()?;
    let before = relay.after_goodbyes();
    let mut session = open.connect(&ConnectOptions::default())?;
    let connected = relay.met(before.connections);
    let prepared = session.prepare(&Operation::Ping)?;
    session.execute(&prepared, &[], &mut Reply::new())?;
    let answered = relay.seen();
    session.release(prepared)?;
    session.close()?;
    let mut lines = vec![
        ("connecting", traffic(&before, &connected)),
        (
            "first request",
            format!("{} (the smallest request of the protocol)", traffic(&connected, &answered)),
        ),
    ];
    // Statements of the first connection.
    if let Some(statements) = driver.statements.map(|read| read(&before.first_bytes)) {
        lines.push((
            "its statements",
            statements.map_or_else(
                || "cannot be read: the connection is encrypted".to_owned(),
                |texts| {
                    if texts.is_empty() { "none while connecting".to_owned() } else { shown(&texts) }
                },
            ),
        ));
    }
    Ok(lines)
}

fn traffic(before: &Seen, after: &Seen) -> String {
    let [connections, waits, sent, received] = [
        after.connections - before.connections,
        after.waits - before.waits,
        after.sent - before.sent,
        after.received - before.received,
    ];
    let connections = match connections {
        0 => String::new(),
        1 => "1 connection, ".to_owned(),
        n => format!("{n} connections, "),
    };
    format!(
        "{connections}{} {} for the server, {} bytes sent, {} received",
        units::count(waits),
        if waits == 1 { "wait" } else { "waits" },
        units::count(sent),
        units::count(received)
    )
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
