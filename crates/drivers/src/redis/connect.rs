//! Opening a connection: `HELLO 3`, with the password if there is one, and `SELECT`, in one write.

use super::config::Config;
use super::errors;
use super::protocol::{Client, Head, Node, push_request};
use crate::prelude::*;
use crate::reported::Reported;
use crate::wire::{Laps, Peer, Stream};

/// Connects, and returns the server's answer to `HELLO` too.
pub(super) fn connect(config: &Config, options: &ConnectOptions) -> Result<(Client<Stream>, Reported)> {
    let mut laps = Laps::start();
    let mut stream = Stream::connect(&config.place, options)?;
    let mut times = ConnectTimes { reach: laps.lap(), ..ConnectTimes::default() };
    if !config.tls.is_off() {
        stream = stream.encrypt(&config.tls, config.host())?;
        times.tls = Some(laps.lap());
    }
    let mut client = Client::new(stream);
    let greeting = hello(&mut client, config)?;
    // `HELLO` contains the password, so authentication and session set-up are one round trip.
    times.set_up = laps.lap();
    times.login = if config.password.is_some() { "HELLO … AUTH" } else { "" };
    times.round_trips = client.wire.stream().round_trips();
    client.times = Some(times);
    client.wire.ready();
    Ok((client, greeting))
}

/// Sends `HELLO` and `SELECT`. Source: <https://redis.io/docs/latest/commands/hello/>.
pub(super) fn hello<S: Peer>(client: &mut Client<S>, config: &Config) -> Result<Reported> {
    let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
    if let Some(password) = &config.password {
        let user = config.user.as_deref().unwrap_or("default");
        words.extend([b"AUTH", user.as_bytes(), password.expose().as_bytes()]);
    }
    let mut request = Vec::new();
    push_request(&mut request, &words);
    let database = config.database.to_string();
    if config.database != 0 {
        push_request(&mut request, &[b"SELECT", database.as_bytes()]);
    }
    let sent = client.wire.send(&request);
    // A server that refuses the connection sends an error and closes it before it reads anything.
    let node = match (client.whole(), sent) {
        (Ok(node), Ok(())) => node,
        (Err(error), Ok(())) => return Err(plain(error)),
        (Err(error), Err(_)) if error.server_code().is_some() => return Err(plain(error)),
        (_, Err(error)) => return Err(error),
    };
    let greeting: Reported = node.pairs().collect();
    if greeting.get("proto").is_none_or(|version| version != "3") {
        return Err(errors::too_old());
    }
    if config.database != 0 {
        match client.answer()? {
            Head::Simple => {}
            Head::Refused(error) => return Err(*error),
            other => return Err(super::protocol::unexpected(&other)),
        }
    }
    Ok(greeting)
}

/// Replaces an error of `HELLO`: a server that does not know the command repeats it, including the password.
fn plain(error: Error) -> Error {
    match (error.server_code(), error.kind()) {
        (Some("ERR"), ErrorKind::Server) => errors::too_old(),
        (None, ErrorKind::ConnectionLost) => {
            error.hint("a proxy such as twemproxy closes the connection at HELLO: name the server itself")
        }
        _ => error,
    }
}

/// Reads the answer to `INFO`: lines of `name:value`.
pub(super) fn lines(node: &Node) -> Reported {
    let text = node.text();
    text.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::script::Script;
    use kurabe_core::target::TargetUrl;

    fn greeted(url: &str, answer: &str) -> (Result<Reported>, String) {
        let config = Config::from_url(&TargetUrl::parse(url).unwrap()).unwrap();
        let mut client = Client::new(Script::new(answer.as_bytes().to_vec()));
        let result = hello(&mut client, &config);
        (result, String::from_utf8(client.wire.stream().sent.clone()).unwrap())
    }

    const GREETING: &str = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n";

    #[test]
    fn password_and_database_are_sent_with_hello() {
        let answer = format!("{GREETING}+OK\r\n");
        let (greeting, sent) = greeted("redis://bob:pw@h/2", &answer);
        assert_eq!(greeting.unwrap().text("server"), "redis");
        assert_eq!(
            sent,
            "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n"
        );
    }

    #[test]
    fn refusals_are_reported_without_the_password() {
        for (answer, kind) in [
            ("-WRONGPASS invalid username-password pair or user is disabled.\r\n", ErrorKind::Denied),
            ("-NOAUTH HELLO must be called with the client already authenticated\r\n", ErrorKind::Denied),
            ("-DENIED Redis is running in protected mode\r\n", ErrorKind::Denied),
            ("-ERR max number of clients reached\r\n", ErrorKind::Limit),
            (
                "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `hunter2`\r\n",
                ErrorKind::Unsupported,
            ),
            ("-NOPROTO unsupported protocol version\r\n", ErrorKind::Unsupported),
            ("*2\r\n+proto\r\n:2\r\n", ErrorKind::Unsupported),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", ErrorKind::Protocol),
            ("", ErrorKind::ConnectionLost),
        ] {
            let error = greeted("redis://:hunter2@h", answer).0.unwrap_err();
            assert_eq!(error.kind(), kind, "{answer}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let no_database = format!("{GREETING}-ERR DB index is out of range\r\n");
        assert_eq!(greeted("redis://h/99", &no_database).0.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
