//! memcached, on its port (its text protocol).

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::common::{Reset, State, TIMEOUT, within};
use crate::Server;

pub(super) static RESET: Reset = Reset { with_tls: false, state, clean };

/// A server that has allocated more is not used again: it never returns memory.
const LARGEST: u64 = 32 << 20;
/// A new one starts within this time.
const PATIENCE: Duration = Duration::from_secs(1);

fn state(server: &Server) -> Result<State, String> {
    let mut session = Session::open(server)?;
    let mut state = session.statistics("stats settings")?;
    // The age of the oldest value that was removed.
    state.remove("oldest");
    let mut now = session.statistics("stats")?;
    // The connection that cleaned the server is closed already, and the server may not have seen that yet.
    let _ = within(PATIENCE, "other connections close", || {
        now = session.statistics("stats")?;
        Ok(now.get("curr_connections").is_some_and(|number| number == "1"))
    });
    for name in ["curr_items", "curr_connections"] {
        state.insert(name.to_owned(), now.remove(name).unwrap_or_default());
    }
    Ok(state)
}

fn clean(server: &Server, first: &State) -> Result<(), String> {
    let mut session = Session::open(server)?;
    let s = &mut session;
    let allocated = s.statistics("stats slabs")?.remove("total_malloced").and_then(|text| text.parse().ok());
    if allocated.is_none_or(|bytes: u64| bytes > LARGEST) {
        return Err("it has allocated more memory than a new one".to_owned());
    }
    // Nothing ends others' connections: their owners close them.
    within(PATIENCE, "connections close and values are freed", || {
        s.ask("flush_all")?;
        // Frees what is flushed, which otherwise waits for its next use.
        s.ask("lru_crawler crawl all")?;
        let now = s.statistics("stats")?;
        Ok(["curr_items", "curr_connections"].iter().all(|name| now.get(*name) == first.get(*name)))
    })?;
    s.ask("stats reset").map(drop)
}

struct Session(BufReader<TcpStream>);

impl Session {
    fn open(server: &Server) -> Result<Self, String> {
        let open = || {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Ok(Self(BufReader::new(stream)))
        };
        let mut session = open().map_err(|error: io::Error| format!("port {} ({error})", server.port()))?;
        if let Some(password) = server.password() {
            let user = format!("kurabe {password}");
            match &*session.ask(&format!("set auth 0 0 {}\r\n{user}", user.len()))? {
                "STORED" => {}
                answer => return Err(answer.to_owned()),
            }
        }
        Ok(session)
    }

    fn send(&mut self, command: &str) -> Result<(), String> {
        let sent = self.0.get_mut().write_all(format!("{command}\r\n").as_bytes());
        sent.map_err(|error| format!("{command}: {error}"))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Err("it closed the connection".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn ask(&mut self, command: &str) -> Result<String, String> {
        self.send(command)?;
        self.line()
    }

    fn statistics(&mut self, command: &str) -> Result<State, String> {
        self.send(command)?;
        let mut found = State::new();
        loop {
            let line = self.line()?;
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), value) => {
                    found.insert(name.to_owned(), value.unwrap_or_default().to_owned());
                }
                (Some("END"), ..) => return Ok(found),
                _ => return Err(format!("{command}: {line}")),
            }
        }
    }
}
