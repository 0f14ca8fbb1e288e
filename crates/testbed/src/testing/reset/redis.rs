//! Redis and Valkey, on their Unix socket (the protocol RESP 2).

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::net::UnixStream;

use super::common::{Reset, State, changed, connect, until};
use crate::Server;

pub(super) static RESET: Reset = Reset { with_tls: true, state, clean };

const SETTING: &str = "setting ";

fn state(server: &Server) -> Result<State, String> {
    let mut session = Session::open(server)?;
    let mut state = settings(&mut session)?;
    for what in ["DBSIZE", "ROLE", "ACL LIST", "FUNCTION LIST", "PUBSUB CHANNELS"] {
        let value = session.ask(&what.split(' ').collect::<Vec<_>>())?;
        // Of the role, only the kind: the rest counts what was written.
        let value = if what == "ROLE" { value.into_iter().take(1).collect() } else { value };
        state.insert(what.to_owned(), value.join("\n"));
    }
    let keyspace = session.ask(&["INFO", "keyspace"])?.concat();
    state.insert("keys".to_owned(), keyspace);
    state.insert("sessions".to_owned(), sessions(&mut session)?.to_string());
    Ok(state)
}

fn settings(session: &mut Session) -> Result<State, String> {
    let words = session.ask(&["CONFIG", "GET", "*"])?;
    let pairs = words.chunks_exact(2);
    Ok(pairs.map(|pair| (format!("{SETTING}{}", pair[0]), pair[1].clone())).collect())
}

fn sessions(session: &mut Session) -> Result<usize, String> {
    Ok(session.ask(&["CLIENT", "LIST"])?.concat().lines().count())
}

fn clean(server: &Server, first: &State) -> Result<(), String> {
    let mut session = Session::open(server)?;
    let s = &mut session;
    for kind in ["normal", "pubsub", "replica"] {
        s.ask(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"])?;
    }
    s.ask(&["CLIENT", "UNPAUSE"])?;
    s.ask(&["REPLICAOF", "NO", "ONE"])?;
    for (name, value) in changed(first, &settings(s)?, SETTING) {
        s.ask(&["CONFIG", "SET", &name, &value])?;
    }
    for user in s.ask(&["ACL", "USERS"])? {
        if user != "default" {
            s.ask(&["ACL", "DELUSER", &user])?;
        }
    }
    for statement in [
        &["FLUSHALL", "SYNC"][..],
        &["SCRIPT", "FLUSH", "SYNC"],
        &["FUNCTION", "FLUSH", "SYNC"],
        &["SLOWLOG", "RESET"],
        &["LATENCY", "RESET"],
        &["ACL", "LOG", "RESET"],
        &["CONFIG", "RESETSTAT"],
        &["MEMORY", "PURGE"],
    ] {
        s.ask(statement)?;
    }
    until("its sessions end", || Ok(sessions(s)? == 1))
}

struct Session(BufReader<UnixStream>);

impl Session {
    fn open(server: &Server) -> Result<Self, String> {
        let mut session = Self(BufReader::new(connect(server)?));
        if let Some(password) = server.password() {
            session.ask(&["AUTH", password]).map_err(|_| "it refuses its password")?;
        }
        Ok(session)
    }

    /// Sends a statement; returns all values of the answer in their order.
    fn ask(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let mut statement = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(statement, "${}\r\n{word}\r\n", word.len());
        }
        let mut values = Vec::new();
        let asked = self.0.get_mut().write_all(statement.as_bytes()).and_then(|()| self.read(&mut values));
        match asked {
            Ok(None) => Ok(values),
            Ok(Some(why)) => Err(format!("{}: {why}", words.join(" "))),
            Err(error) => Err(format!("{}: {error}", words.join(" "))),
        }
    }

    /// Reads a value; returns an error of the server.
    fn read(&mut self, values: &mut Vec<String>) -> io::Result<Option<String>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.trim_end();
        let Some((kind, rest)) = line.split_at_checked(1) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        // NULL has the length -1.
        let length: usize = rest.parse().unwrap_or(0);
        match kind {
            "-" => return Ok(Some(rest.to_owned())),
            "*" => {
                for _ in 0..length {
                    if let Some(why) = self.read(values)? {
                        return Ok(Some(why));
                    }
                }
            }
            "$" if !rest.starts_with('-') => {
                let mut value = vec![0; length + 2];
                self.0.read_exact(&mut value)?;
                values.push(String::from_utf8_lossy(&value[..length]).into_owned());
            }
            "$" => values.push(String::new()),
            _ => values.push(rest.to_owned()),
        }
        Ok(None)
    }
}
