//! One keep-alive HTTP connection to a CouchDB server, through the `ureq` crate.
//!
//! A `ureq` agent keeps idle connections in a pool. Each session has its own agent with a pool of one connection, so
//! that a session is one connection, as with the other engines. The first request opens it: HTTP has no greeting, and
//! an application would not send a request only to connect. If the server has closed an idle connection (PouchDB Server
//! does so after five seconds), the next request opens a new one, as in every HTTP client.

use super::config::Config;
use super::connection::{Nowhere, Requests, ToServer};
use super::document::parse;
use super::errors;
use crate::prelude::*;
use serde::Deserialize;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use ureq::http::{Method, Request};
use ureq::unversioned::transport::{Connector as _, RustlsConnector};
use ureq::{Agent, AsSendBody};

/// Size of each of a connection's two buffers, in bytes: enough for every request header and most answers, and 64 MB
/// for a thousand clients.
const BUFFER: usize = 32 * 1024;
/// How long a session may be idle between two requests.
const IDLE: Duration = Duration::from_secs(24 * 3600);

/// A client of one server. It keeps the last answer's body until the next request.
pub(super) struct Client {
    agent: Agent,
    config: Arc<Config>,
    requests: Requests,
    url: String,
    answer: Vec<u8>,
}

impl Client {
    pub(super) fn new(config: &Arc<Config>, options: &ConnectOptions) -> Self {
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // The environment's proxy settings do not apply: the server at this address is measured.
            .proxy(None)
            .user_agent(concat!("kurabe/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .max_idle_age(IDLE)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER);
        if let Some(tls) = &config.tls {
            builder = builder.tls_config(tls.clone());
        }
        let requests = Requests::default();
        let to_server =
            ToServer { place: config.place.clone(), options: *options, requests: requests.clone() };
        let connector = to_server.chain(RustlsConnector::default());
        Self {
            agent: Agent::with_parts(builder.build(), connector, Nowhere),
            config: Arc::clone(config),
            requests,
            url: String::new(),
            answer: Vec::new(),
        }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(super) fn answer(&self) -> &[u8] {
        &self.answer
    }

    pub(super) fn get(&mut self, path: &str) -> Result<u16> {
        self.send(&Method::GET, path, None)
    }

    /// Reads the JSON at a path; any status but 200 is an error.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a mut self, path: &str) -> Result<T> {
        let status = self.get(path)?;
        self.accept(status)?;
        parse(&self.answer)
    }

    /// Returns an error for any status but 200.
    pub(super) fn accept(&self, status: u16) -> Result<()> {
        if status == 200 { Ok(()) } else { Err(self.refused(status)) }
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<u16> {
        self.send(&Method::DELETE, path, None)
    }

    pub(super) fn put(&mut self, path: &str, body: Option<&[u8]>) -> Result<u16> {
        self.send(&Method::PUT, path, Some(body.unwrap_or_default()))
    }

    pub(super) fn post(&mut self, path: &str, body: &[u8]) -> Result<u16> {
        self.send(&Method::POST, path, Some(body))
    }

    /// Sends a request, receives the answer, and returns its status.
    fn send(&mut self, method: &Method, path: &str, body: Option<&[u8]>) -> Result<u16> {
        self.url.clear();
        self.url.push_str(&self.config.base);
        self.url.push_str(path);
        self.answer.clear();
        let mut request = Request::builder().method(method).uri(self.url.as_str());
        if let Some(authorization) = &self.config.authorization {
            request = request.header("authorization", authorization.expose());
        }
        let sent = match body {
            None => self.run(request.body(())),
            Some(body) => self.run(request.header("content-type", "application/json").body(body)),
        };
        sent.map_err(|error| errors::of_ureq(error, &self.config))
    }

    fn run(
        &mut self,
        request: Result<Request<impl AsSendBody>, ureq::http::Error>,
    ) -> Result<u16, ureq::Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut response = self.agent.run(request?)?;
        if let Some(length) = response.body().content_length() {
            // The length may be false, so at most 1 MiB is reserved.
            self.answer.reserve(length.min(1 << 20) as usize);
        }
        response.body_mut().as_reader().read_to_end(&mut self.answer).map_err(ureq::Error::from)?;
        Ok(response.status().as_u16())
    }

    /// The error of an unexpected answer.
    pub(super) fn refused(&self, status: u16) -> Error {
        errors::of_answer(status, &self.answer, &self.config)
    }

    /// Whether the answer reports a missing document, rather than a missing database.
    pub(super) fn is_no_document(&self, status: u16) -> bool {
        status == 404
            && errors::reason(&self.answer).is_some_and(|reason| reason == "missing" || reason == "deleted")
    }

    /// Whether the answer reports that the database (or other requested resource) does not exist.
    pub(super) fn is_absent(&self, status: u16) -> bool {
        status == 404 && errors::reason(&self.answer).is_some()
    }
}

#[cfg(test)]
mod fuzz {
    use super::super::document::Object;
    use super::*;
    use crate::wire::Place;
    use crate::wire::script::Parts;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;
    use std::sync::Mutex;
    use std::thread;

    const WORDS: &[&str] = &[
        "\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\n",
        "HTTP/1.1 301 \r\nLocation: /x\r\n",
        "Content-Length: ",
        "Transfer-Encoding: ",
        "chunked\r\n",
        "gzip, ",
        "Connection: ",
        "close\r\n",
        "18446744073709551615\r\n",
        "0\r\n\r\n",
        "2\r\n{}\r\n",
        "{\"error\":\"a\",\"reason\":\"missing\"}",
        "Content-Encoding: gzip\r\n",
    ];

    /// A server sends the input, or text with words of HTTP, to each connection, and closes it.
    #[test]
    fn any_answer_is_an_answer_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("couchdb.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let answer = Arc::new(Mutex::new(Vec::new()));
        let to_send = Arc::clone(&answer);
        // It ends with the test program.
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let answer = to_send.lock().unwrap().clone();
                let _ = stream.write_all(&answer);
            }
        });
        let url = TargetUrl::parse("couchdb://:@127.0.0.1:5984").unwrap();
        bolero::check!(name = "couchdb-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (_, with_words) = parts.head();
            *answer.lock().unwrap() = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
            let place = Place::Unix(socket.clone());
            let config = Arc::new(Config { place, ..Config::from_url(&url).unwrap() });
            let client = || Client::new(&config, &ConnectOptions::default());
            let _ = client().read::<Object<'_>>("/a");
            let mut client = client();
            if let Ok(status) = client.post("/a", b"{}") {
                let _ = (client.accept(status), client.is_no_document(status), client.is_absent(status));
            }
        });
    }
}
