//! A throwaway server, as `kurabe up` starts it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use super::process;
use super::serving::Serving;

/// Ends when this value is dropped, with the server.
pub struct Server {
    up: Serving,
    pub url: String,
    pub host: String,
    pub port: String,
    pub version: String,
    /// Its random password; empty if it has none.
    pub password: String,
    /// Kept open, so that later output does not fail.
    _notes: Option<BufReader<ChildStderr>>,
}

impl Server {
    pub fn start(program: &Path, engine: &str, settings: &[&str]) -> Result<Self, String> {
        // Also ends when we are killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(["up", engine]).args(settings);
        let mut up = Serving::start(command.stderr(Stdio::piped()))
            .map_err(|error| format!("kurabe up {engine}, by setpriv (of util-linux): {error}"))?;
        let mut notes = up.errors();
        let mut lines = notes.iter_mut().flat_map(BufRead::lines).map_while(Result::ok);
        let version = lines.find(|line| line.starts_with(engine)).unwrap_or_default();
        drop(lines);
        let version = version.split(',').next().unwrap_or_default().to_owned();
        let url = up.url.clone();
        let address = url.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.rsplit('@').next());
        let (host, port) = address
            .and_then(|text| text.rsplit_once(':'))
            .map(|(host, port)| (host.to_owned(), port.to_owned()))
            .ok_or_else(|| format!("kurabe up {engine} gave no address"))?;
        let login = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let password =
            login.and_then(|(login, _)| login.split_once(':')).map(|(_, password)| password.to_owned());
        let password = password.unwrap_or_default();
        Ok(Self { up, url, host, port, version, password, _notes: notes })
    }

    /// Its address and its password, for shell commands.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let address = [("URL", &self.url), ("HOST", &self.host), ("PORT", &self.port)];
        let password = ["PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH"].map(|name| (name, &self.password));
        address.into_iter().chain(password).map(|(name, value)| (name, value.clone())).collect()
    }

    /// Seconds of CPU that the server has used.
    pub fn cpu(&self) -> f64 {
        process::cpu_below(self.up.pid())
    }

    /// Pins the server.
    pub fn pin(&self, processors: &str) -> Result<(), String> {
        process::pin_below(self.up.pid(), processors)
    }
}
