//! One keep-alive HTTP connection to a CouchDB server.
//!
//! The first request opens it: HTTP has no greeting, and an application would not send a request only to connect. If the
//! server has closed an idle connection (PouchDB Server does so after five seconds), the next request opens a new one, as
//! in every HTTP client.

use super::config::Config;
use super::document::parse;
use super::errors;
use crate::http::Connection;
use crate::prelude::*;
use crate::wire::push_number;
use serde::Deserialize;
use std::sync::Arc;

/// A client of one server. It keeps the last answer's body until the next request.
pub(super) struct Client {
    config: Arc<Config>,
    connection: Connection,
    /// The last request's header section.
    head: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    pub(super) fn new(config: &Arc<Config>, options: &ConnectOptions) -> Self {
        let connection = Connection::new(&config.server, options);
        Self { config: Arc::clone(config), connection, head: Vec::new(), answer: Vec::new() }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(super) fn answer(&self) -> &[u8] {
        &self.answer
    }

    pub(super) fn get(&mut self, path: &str) -> Result<u16> {
        self.send("GET ", path, None)
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
        self.send("DELETE ", path, None)
    }

    pub(super) fn put(&mut self, path: &str, body: Option<&[u8]>) -> Result<u16> {
        self.send("PUT ", path, Some(body.unwrap_or_default()))
    }

    pub(super) fn post(&mut self, path: &str, body: &[u8]) -> Result<u16> {
        self.send("POST ", path, Some(body))
    }

    /// Sends a request, receives the answer, and returns its status.
    fn send(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> Result<u16> {
        let Self { config, connection, head, answer } = self;
        write(config, method, path, body.map(<[u8]>::len), head);
        let answered = connection.request(head, body.unwrap_or_default(), answer);
        answered.map(|answer| answer.status).map_err(|error| errors::of_exchange(error, config))
    }

    /// Returns an error if the server sent unrequested data.
    pub(super) fn check_rest(&mut self) -> Result<()> {
        self.connection.check_rest().map_err(|error| errors::of_exchange(error, &self.config))
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

/// A message is one request of HTTP, which becomes one of this client's.
impl RawMessages for Client {
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        let Self { config, connection, head, .. } = self;
        adopt(config, messages, head)?;
        connection.exchange_raw(head, receive).map_err(|error| errors::of_exchange(error, config))
    }

    fn flags(&mut self) -> u32 {
        0
    }

    fn database(&mut self) -> Option<&str> {
        None
    }
}

/// Replaces the contents of `out` by a request that has neither server nor user, with those of this client. Its database has this
/// client's prefix before its name.
fn adopt(config: &Config, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let end = request.windows(2).position(|end| end == b"\r\n").unwrap_or(request.len());
    let (line, rest) = request.split_at(end);
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, [b'/', path @ ..], _] = words.as_slice() else {
        return Err(Error::new(ErrorKind::Internal, "a request without a path"));
    };
    out.clear();
    for part in [*method, b" ", config.path("").as_bytes(), path, config.fields.as_bytes()] {
        out.extend_from_slice(part);
    }
    push_user(config, out);
    out.extend_from_slice(rest.get(2..).unwrap_or_default());
    Ok(())
}

/// Appends the user's header field, if there is a user.
fn push_user(config: &Config, out: &mut Vec<u8>) {
    if let Some(authorization) = &config.authorization {
        for part in ["Authorization: ", authorization.expose(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Replaces the contents of `out` by a header section. `length` is that of the body, if the method has one.
fn write(config: &Config, method: &str, path: &str, length: Option<usize>, out: &mut Vec<u8>) {
    out.clear();
    for part in [method, path, &config.fields, "Accept: application/json\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    push_user(config, out);
    if let Some(length) = length {
        out.extend_from_slice(b"Content-Type: application/json\r\nContent-Length: ");
        push_number(out, length as u64);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_host_user_and_length() {
        let config = Config::from_url(&TargetUrl::parse("couchdb://al:p%3Aw@db:1234").unwrap()).unwrap();
        let agent = concat!("User-Agent: kurabe/", env!("CARGO_PKG_VERSION"));
        let same = format!(
            " HTTP/1.1\r\nHost: db:1234\r\n{agent}\r\nAccept: application/json\r\nAuthorization: Basic YWw6cDp3\r\n"
        );
        let mut out = b"before".to_vec();
        write(&config, "GET ", "/a", None, &mut out);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), format!("GET /a{same}\r\n"));
        write(&config, "PUT ", "/a", Some(12), &mut out);
        let expected = format!("PUT /a{same}Content-Type: application/json\r\nContent-Length: 12\r\n\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn request_of_another_client_has_this_server_user_and_prefix() {
        let config =
            Config::from_url(&TargetUrl::parse("couchdb://al:p%3Aw@db:1234/test/").unwrap()).unwrap();
        let mut out = b"before".to_vec();
        adopt(&config, b"PUT /shop/a?x HTTP/1.1\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{}", &mut out)
            .unwrap();
        let agent = concat!("User-Agent: kurabe/", env!("CARGO_PKG_VERSION"));
        let expected = format!(
            "PUT /test%2Fshop/a?x HTTP/1.1\r\nHost: db:1234\r\n{agent}\r\nAuthorization: Basic YWw6cDp3\r\nAccept: */*\r\n\
             Content-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
        assert!(adopt(&config, b"OPTIONS * HTTP/1.1\r\n\r\n", &mut out).is_err());
    }
}
