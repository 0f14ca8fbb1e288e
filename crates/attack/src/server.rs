//! Real servers for attacks, started once by `kurabe up` and shared.

use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::process;

/// The engines whose servers are started.
pub const ENGINES: [&str; 7] = ["mysql", "mariadb", "postgres", "redis", "memcached", "couchdb", "mongodb"];

/// A running server; dropping it ends it.
pub struct Server {
    up: Child,
    /// Its engine, as named by `kurabe up`.
    pub engine: String,
    pub url: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    use_by_one: Mutex<()>,
    /// Kept open, so that later output does not fail.
    _notes: Option<BufReader<ChildStderr>>,
}

/// A server that is being started, so that several start at once.
pub struct Starting {
    up: Child,
    engine: String,
}

impl Starting {
    /// Begins to start one. It ends with the calling thread, even if that is killed.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub fn new(program: &Path, engine: &str, folder: &Path, settings: &[&str]) -> Result<Self, String> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(["up", engine]).args(settings);
        command.env("KURABE_RUNS", folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let up = command.spawn().map_err(|error| format!("setpriv (util-linux): {error}"))?;
        Ok(Self { up, engine: engine.to_owned() })
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// If `kurabe up` prints no address: the engine may not be installed.
    pub fn ready(mut self) -> Result<Server, String> {
        let mut url = String::new();
        if let Some(out) = self.up.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut url);
        }
        let mut notes = self.up.stderr.take().map(BufReader::new);
        let url = url.trim().to_owned();
        let Some(port) = port_of(&url) else {
            let mut said = String::new();
            if let Some(notes) = &mut notes {
                let _ = notes.read_line(&mut said);
            }
            let _ = self.up.kill();
            let _ = self.up.wait();
            return Err(format!("kurabe up {}: {}", self.engine, said.trim()));
        };
        let use_by_one = Mutex::new(());
        Ok(Server { up: self.up, engine: self.engine, url, port, use_by_one, _notes: notes })
    }
}

impl Server {
    /// Waits until no other attack uses it, since two runs cannot use one database at once.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.use_by_one.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL with another port.
    pub fn through(&self, port: u16) -> String {
        self.url.replacen(&format!(":{}", self.port), &format!(":{port}"), 1)
    }

    /// The password in its URL; empty if there is none.
    pub fn password(&self) -> &str {
        let login = self.url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        login.and_then(|(login, _)| login.split_once(':')).map_or("", |(_, password)| password)
    }

    /// A connection that is logged in, if its protocol has lines.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        let password = self.password();
        let (request, answer) = match self.engine.as_str() {
            "redis" | "valkey" => (format!("AUTH {password}\r\n"), "+OK\r\n"),
            "memcached" => {
                let user = format!("kurabe {password}");
                (format!("set auth 0 0 {}\r\n{user}\r\n", user.len()), "STORED\r\n")
            }
            _ => return Ok(stream),
        };
        stream.write_all(request.as_bytes())?;
        stream.read_exact(&mut vec![0; answer.len()])?;
        Ok(stream)
    }

    /// Removes all keys, which attacks may have left. Only attacks use this server.
    pub fn empty(&self) {
        let command: &[u8] = match self.engine.as_str() {
            "redis" | "valkey" => b"FLUSHALL\r\n",
            "memcached" => b"flush_all\r\n",
            _ => return,
        };
        if let Ok(mut stream) = self.connect() {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let _ = stream.write_all(command).and_then(|()| stream.read(&mut [0; 64]));
        }
    }

    /// The number of the process of `kurabe up`.
    pub fn pid(&self) -> u32 {
        self.up.id()
    }

    /// The scheme of its URL.
    pub fn scheme(&self) -> &str {
        self.url.split(':').next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::send(self.up.id(), Signal::TERM);
        let began = Instant::now();
        while matches!(self.up.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

pub fn port_of(url: &str) -> Option<u16> {
    let place = url.split_once("://")?.1.split('/').next()?;
    place.rsplit_once(':')?.1.parse().ok()
}
