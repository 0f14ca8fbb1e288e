//! A program that serves pages, and ab, which requests them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::shell;

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
    /// Its standard output begins with its address. Where its errors go is the command's.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        let mut line = String::new();
        let said = child.stdout.take().and_then(|out| BufReader::new(out).read_line(&mut line).ok());
        let url = line.trim().to_owned();
        let serving = Self { child, url };
        if said.is_none() || !serving.url.starts_with("http://") {
            return Err(format!("{name} does not serve"));
        }
        Ok(serving)
    }

    /// Seconds of CPU of all its threads, from the scheduler; none of them ends while it serves.
    pub fn cpu(&self) -> Result<f64, String> {
        let folder = format!("/proc/{}/task", self.child.id());
        let tasks = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let of = |path: PathBuf| {
            fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<f64>().ok()
        };
        Ok(tasks.flatten().filter_map(|task| of(task.path())).sum::<f64>() / 1e9)
    }
}

/// A run of ab.
pub struct Ab<'a> {
    pub clients: u32,
    /// One connection for all requests of a client, where the application keeps it.
    pub kept: bool,
    /// Its option `-n` or `-t`, and the value.
    pub length: [&'a str; 2],
    /// The only processor that it uses.
    pub processor: Option<&'a str>,
}

impl Ab<'_> {
    /// Requests a page. Returns requests per second; an error if one failed.
    pub fn drive(&self, page: &str) -> Result<f64, String> {
        let mut ab = Command::new(if self.processor.is_some() { "taskset" } else { "ab" });
        if let Some(processor) = self.processor {
            ab.args(["-c", processor, "ab"]);
        }
        ab.args(["-q", "-c", &self.clients.to_string()]).args(self.length);
        if self.length[0] == "-t" {
            // Otherwise it ends after 50,000.
            ab.args(["-n", "100000000"]);
        }
        if self.kept {
            ab.arg("-k");
        }
        let said = shell::run(ab.arg(page), "ab")?;
        rate(&said).ok_or_else(|| format!("{page} failed:\n{said}"))
    }
}

/// The rate in what ab says, if no request failed.
fn rate(said: &str) -> Option<f64> {
    let line = |name: &str| {
        let value = said.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = line("Failed requests:") != Some(0.0) || line("Non-2xx responses:").is_some();
    if failed { None } else { line("Requests per second:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_with_a_failed_request_is_none() {
        let said = "Complete requests: 10\nFailed requests:        0\nRequests per second:    51.25 [#/sec] (mean)\n";
        assert_eq!(rate(said), Some(51.25));
        assert_eq!(rate(&said.replace(" 0\n", " 1\n")), None);
        assert_eq!(rate(&format!("{said}Non-2xx responses:      3\n")), None);
    }
}
