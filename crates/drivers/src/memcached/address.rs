//! How a server is reached: its place, TLS, and a user of its file of users (`-Y`).

use super::protocol::Client;
use crate::prelude::*;
use crate::wire::{Laps, Place, Stream, tls};
use std::io::{Read as _, Write as _};
use std::time::Duration;

/// The variable with the password of a user, where the URL has none.
pub(super) const PASSWORD: &str = "MEMCACHED_PASSWORD";

/// How long the question for the protocol may take.
const ANSWERS: Duration = Duration::from_secs(2);

pub(super) struct Address {
    pub(super) place: Place,
    tls: tls::Mode,
    user: Option<(String, Secret)>,
}

impl Address {
    pub(super) fn new(url: &TargetUrl, place: Place) -> Result<Self> {
        let tls = tls::Mode::from_url(url, false)?;
        tls.check(&place, url)?;
        let variable = || std::env::var(PASSWORD).ok().map(Secret::new);
        let password = url.password.clone().or_else(|| url.user.as_ref().and_then(|_| variable()));
        let user = match (&url.user, &password) {
            (None, None) => None,
            (Some(user), Some(password)) if !user.contains([' ', '\r', '\n']) => {
                Some((user.clone(), password.clone()))
            }
            _ => {
                return Err(url
                    .wrong("a user of memcached has a name without spaces, and a password")
                    .hint("write memcached://user:password@host, for a server with a file of users (-Y)"));
            }
        };
        Ok(Self { place, tls, user })
    }

    /// Connects, and says who it is.
    pub(super) fn connect(&self, options: &ConnectOptions) -> Result<Client<Stream>> {
        let mut laps = Laps::start();
        let mut stream = Stream::connect(&self.place, options)?;
        let mut times = ConnectTimes { reach: laps.lap(), ..ConnectTimes::default() };
        if let (Place::Tcp { host, .. }, false) = (&self.place, self.tls.is_off()) {
            stream = stream.encrypt(&self.tls, host)?;
            times.tls = Some(laps.lap());
        }
        let mut client = Client::new(stream);
        if let Some((user, password)) = &self.user {
            client.log_in(user, password.expose()).map_err(|error| self.explain(error))?;
            times.authenticate = laps.lap();
            times.login = "a file of users (-Y)";
        }
        times.round_trips = client.wire.stream().round_trips();
        client.times = Some(times);
        Ok(client)
    }

    /// Adds the server to an error of its first answer, and why there may be none.
    pub(super) fn explain(&self, error: Error) -> Error {
        let error = match error.kind() {
            ErrorKind::ConnectionLost if self.is_binary() => Error::unsupported(
                "the server speaks memcached's binary protocol only (-B binary, or SASL: -S)",
            )
            .hint("start it without -B and -S; a file of users (-Y) protects it"),
            ErrorKind::ConnectionLost => error.hint("does it need TLS (tls=require)?"),
            _ => error,
        };
        error.context(format!("memcached at {}", self.place))
    }

    /// Whether the server answers in the binary protocol (memcached's `doc/protocol-binary.xml`).
    fn is_binary(&self) -> bool {
        // A request that does nothing.
        const NOOP: [u8; 24] = [0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        const ANSWER: u8 = 0x81;
        let asked = || -> std::io::Result<u8> {
            let stream = Stream::connect_within(&self.place, &ConnectOptions::default(), ANSWERS);
            let mut stream = stream.map_err(std::io::Error::other)?;
            let mut first = [0];
            stream.write_all(&NOOP)?;
            stream.read_exact(&mut first)?;
            Ok(first[0])
        };
        self.tls.is_off() && asked().is_ok_and(|first| first == ANSWER)
    }
}
