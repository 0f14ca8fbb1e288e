//! Programs that serve while others are measured, and the rate that ab says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use super::contest::Ran;

/// A serving program, which ends when this value is dropped.
pub struct Serving {
    child: Child,
    pub url: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It removes its tables when it is stopped.
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

impl Serving {
    /// Its standard output begins with its URL. Where its errors go is the command's.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let mut line = String::new();
        let said = child.stdout.take().and_then(|out| BufReader::new(out).read_line(&mut line).ok());
        let url = line.trim().to_owned();
        let serving = Self { child, url };
        if said.is_none() || !serving.url.contains("://") {
            return Err(format!("{name} does not serve"));
        }
        Ok(serving)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it writes to standard error, if that is a pipe. It must be kept open, so that later output does not fail.
    pub fn errors(&mut self) -> Option<BufReader<ChildStderr>> {
        self.child.stderr.take().map(BufReader::new)
    }

    /// Seconds of CPU of all its threads, from the scheduler; none of them ends while it serves.
    pub fn cpu(&self) -> f64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten();
        let of = |path: PathBuf| {
            fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<f64>().ok()
        };
        tasks.flatten().filter_map(|task| of(task.path())).sum::<f64>() / 1e9
    }
}

/// The rate in what ab says, if no request failed.
pub fn ab_rate(ran: &Ran) -> Option<f64> {
    let failed = ran.after("Failed requests:") != Some(0.0) || ran.said.contains("Non-2xx responses:");
    if failed { None } else { ran.after("Requests per second:") }
}

/// A program that ends with this value.
pub struct Background(Child);

impl Background {
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("{name}: {error}"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of another project, on a free port of this machine.
pub struct Listening {
    pub port: String,
    _server: Background,
}

impl Listening {
    /// `words`: its command, which the port follows. It also ends when we are killed.
    pub fn start(words: &[&str]) -> Result<Self, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| format!("no free port: {error}"))?.port().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).args(words).arg(&port);
        let started = Self { port, _server: Background::start(&mut command)? };
        let until = Instant::now() + Duration::from_secs(10);
        // A connection would be a test of its own to iperf3: its port is taken.
        while TcpListener::bind(format!("127.0.0.1:{}", started.port)).is_ok() {
            if Instant::now() > until {
                return Err(format!("{} does not listen", words.join(" ")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_with_a_failed_request_is_none() {
        let rate = |said: String| ab_rate(&Ran { said, ..Ran::default() });
        let said = "Complete requests: 10\nFailed requests:        0\nRequests per second:    51.25 [#/sec] (mean)\n";
        assert_eq!(rate(said.to_owned()), Some(51.25));
        assert_eq!(rate(said.replace(" 0\n", " 1\n")), None);
        assert_eq!(rate(format!("{said}Non-2xx responses:      3\n")), None);
    }
}
