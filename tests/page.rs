//! A running `kurabe serve`, and requests to it.

use crate::support::{Answer, Place, eventually, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

/// The token of every page.
pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A running page.
pub(crate) struct Page {
    process: Child,
    pub(crate) address: String,
}

impl Page {
    pub(crate) fn start(place: &Place) -> Self {
        Self::with(place, &["--token", TOKEN, "null:"])
    }

    pub(crate) fn with(place: &Place, args: &[&str]) -> Self {
        let mut process = place.spawn(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no URL: {url}")).to_owned();
        let query = if args.contains(&"none") { String::new() } else { format!("?token={TOKEN}") };
        assert!(url.trim().ends_with(&format!("/{query}")), "{url}");
        Self { process, address }
    }

    /// Status, head and body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, head: &str, body: &str) -> (u16, String, String) {
        self.ask_as(&self.address, method, path, head, body)
    }

    /// As [`ask`](Self::ask), to a host of this name.
    pub(crate) fn ask_as(
        &self,
        host: &str,
        method: &str,
        path: &str,
        head: &str,
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, &bearer(), "");
        (status, body)
    }

    /// Sends a form; returns where the answer leads.
    pub(crate) fn post(&self, path: &str, form: &str) -> (u16, String) {
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        let (status, head, body) = self.ask("POST", path, &(bearer() + kind), form);
        let to =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("location: ").map(str::to_owned));
        (status, to.unwrap_or(body))
    }

    /// Starts a run from the form, and waits until it is in the list.
    pub(crate) fn run(&self, form: &str) -> String {
        let (status, job) = self.post("/new/point-read", form);
        assert!(status == 303 && job.starts_with("/jobs/"), "{status} {job}");
        let run = || {
            let page = self.get(&job).1;
            let rest = page.split_once("href=\"/runs/")?.1;
            Some(rest.split('"').next()?.to_owned())
        };
        eventually(120, run).unwrap_or_else(|| panic!("no run: {}", self.get(&job).1))
    }

    pub(crate) fn wait_for(&self, run: &str, state: &str) -> String {
        let path = format!("/runs/{run}");
        let found = || Some(self.get(&path).1).filter(|page| page.contains(&format!(">{state}</span>")));
        eventually(120, found).unwrap_or_else(|| panic!("{run} is not {state}: {}", self.get(&path).1))
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(mut self) -> Answer {
        signal(&self.process, "-INT");
        let mut answer = Answer::default();
        self.process.stdout.take().unwrap().read_to_string(&mut answer.out).unwrap();
        self.process.stderr.take().unwrap().read_to_string(&mut answer.err).unwrap();
        answer.code = self.process.wait().unwrap().code();
        answer
    }
}

impl Drop for Page {
    /// A failed test leaves no page behind.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The header with the token.
pub(crate) fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

/// A value of a form, each byte of it escaped.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat()
}
