//! A throwaway server, as `kurabe up` starts it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::process;

/// Ends when this value is dropped: the supervisor of the server notices that `kurabe up` has ended.
pub struct Server {
    up: Child,
    pub url: String,
    pub host: String,
    pub port: String,
    pub version: String,
    /// Kept open, so that later output does not fail.
    _notes: Option<BufReader<ChildStderr>>,
}

impl Server {
    pub fn start(program: &Path, engine: &str, settings: &[&str]) -> Result<Self, String> {
        // Also ends when we are killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(program).args(["up", engine]).args(settings);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut up = command
            .spawn()
            .map_err(|error| format!("setpriv (of util-linux), for kurabe up {engine}: {error}"))?;
        let mut url = String::new();
        let stdout = up.stdout.take();
        stdout.and_then(|out| BufReader::new(out).read_line(&mut url).ok());
        let url = url.trim().to_owned();
        let mut notes = up.stderr.take().map(BufReader::new);
        let mut lines = notes.iter_mut().flat_map(BufRead::lines).map_while(Result::ok);
        let version = lines.find(|line| line.starts_with(engine)).unwrap_or_default();
        drop(lines);
        let version = version.split(',').next().unwrap_or_default().to_owned();
        let address = url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
        let address = address.map(|text| text.rsplit('@').next().unwrap_or_default().to_owned());
        let address =
            address.and_then(|text| text.rsplit_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())));
        let Some((host, port)) = address else {
            let _ = up.kill();
            let _ = up.wait();
            return Err(format!("kurabe up {engine} gave no address"));
        };
        Ok(Self { up, url, host, port, version, _notes: notes })
    }

    /// Its address, for shell commands.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![("URL", self.url.clone()), ("HOST", self.host.clone()), ("PORT", self.port.clone())]
    }

    /// Seconds of CPU that the server has used.
    pub fn cpu(&self) -> f64 {
        process::cpu_below(self.up.id())
    }

    /// Pins the server.
    pub fn pin(&self, processors: &str) -> Result<(), String> {
        process::pin_below(self.up.id(), processors)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}
