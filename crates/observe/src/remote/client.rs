//! The run's side: requests samples from an agent.

use super::channel::{Channel, Token};
use super::{Answer, RemoteSample, Request, boot};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The timeout for a connection and for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An agent on another host.
#[derive(Clone, Debug)]
pub struct Remote {
    host: String,
    port: u16,
    token: Token,
}

/// One trial that an agent observes.
pub(crate) struct RemoteMonitor {
    channel: Channel,
    /// Whether it runs on the same machine as this program, in another network namespace.
    pub(crate) here: bool,
}

impl Remote {
    /// The agent at this address.
    pub fn new(host: impl Into<String>, port: u16, token: Token) -> Self {
        Self { host: host.into(), port, token }
    }

    /// Its address, for messages.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Checks that the agent is reachable, and that it can observe the server at this host and port.
    ///
    /// # Errors
    /// Why not, as a clause.
    pub fn try_out(&self, host: &str, port: u16) -> Result<(), String> {
        self.begin(host, port)?.end().map(drop)
    }

    pub(crate) fn begin(&self, host: &str, port: u16) -> Result<RemoteMonitor, String> {
        let about = |why: String| format!("the agent at {}: {why}", self.address());
        let stream = self.connect().map_err(about)?;
        let mut channel = Channel::open(stream, &self.token).map_err(about)?;
        channel.send(&Request::Begin { host: host.to_owned(), port }).map_err(about)?;
        match channel.receive().map_err(about)? {
            Some(Answer::Begun { boot: theirs }) => {
                let here = theirs.is_some() && theirs == boot();
                Ok(RemoteMonitor { channel, here })
            }
            Some(Answer::Not(why)) => Err(about(why)),
            _ => Err(about("it closed the connection".to_owned())),
        }
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let addresses: Vec<_> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| format!("cannot resolve its address: {error}"))?
            .collect();
        let mut last = "it has no address".to_owned();
        for address in addresses {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(stream) => {
                    let set = stream
                        .set_read_timeout(Some(TIMEOUT))
                        .and_then(|()| stream.set_write_timeout(Some(TIMEOUT)))
                        .and_then(|()| stream.set_nodelay(true));
                    return set.map(|()| stream).map_err(|error| error.to_string());
                }
                Err(error) => {
                    last = match error.kind() {
                        std::io::ErrorKind::ConnectionRefused => {
                            "nothing listens there; start 'kurabe observe' on the server's host".to_owned()
                        }
                        _ => format!("cannot connect: {error}"),
                    }
                }
            }
        }
        Err(last)
    }
}

impl RemoteMonitor {
    pub(crate) fn end(mut self) -> Result<RemoteSample, String> {
        self.channel.send(&Request::End)?;
        match self.channel.receive()? {
            Some(Answer::Ended(seen)) => Ok(*seen),
            Some(Answer::Not(why)) => Err(why),
            _ => Err("it closed the connection".to_owned()),
        }
    }
}
