//! The pages: which paths there are, and which requests are accepted.

use crate::response::{self, Kind, Response};
use crate::{Application, Connection, Options, Served};
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode, Version};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::observation::Endpoint;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::net::IpAddr;

/// A page that uses the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Which of the served experiments; `None` for the health check.
    pub served: Option<usize>,
    pub operation: &'static str,
    /// Whether it changes the database.
    pub writes: bool,
    /// Whether each request opens its own database connection.
    pub connects_anew: bool,
}

/// What a path leads to.
#[derive(Clone, Debug)]
enum Route {
    /// A page, by its index.
    Page(usize),
    /// A body that never changes.
    Fixed(Kind, Bytes),
    /// An experiment that is not served, and why.
    Unavailable(String),
}

/// All paths.
#[derive(Debug)]
pub(crate) struct Router {
    pub pages: Vec<Page>,
    routes: HashMap<String, Route>,
    hosts: Vec<String>,
    allow_get_writes: bool,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A page that uses the database.
    Page {
        page: usize,
        key: Option<u64>,
    },
    Known(Response),
    /// The request is not accepted.
    Malformed(Response),
}

impl Router {
    pub(crate) fn new(application: &Application) -> Self {
        let health = Page { served: None, operation: "health", writes: false, connects_anew: false };
        let mut pages = vec![health];
        let mut routes = HashMap::from([("/health".to_owned(), Route::Page(0))]);
        let mut paths = vec!["/health".to_owned()];
        for (index, served) in application.served.iter().enumerate() {
            let about = format!("/{}", served.name);
            routes.insert(about.clone(), Route::Fixed(Kind::Json, about_page(application, served)));
            paths.push(about);
            for operation in served.pages.names {
                let path = format!("/{}/{operation}", served.name);
                routes.insert(path.clone(), Route::Page(pages.len()));
                paths.push(path);
                let writes = served.operations().any(|known| known.name == *operation && known.writes);
                let connects_anew = served.pages.connects_anew == Some(*operation);
                pages.push(Page { served: Some(index), operation, writes, connects_anew });
            }
        }
        for (name, reason) in &application.unavailable {
            routes.insert(format!("/{name}"), Route::Unavailable(format!("{name} is not served: {reason}")));
        }
        let list = format!(
            "kurabe {} serves transactions on {}:\n{}\n",
            env!("CARGO_PKG_VERSION"),
            application.target,
            paths.join("\n")
        );
        routes.insert("/".to_owned(), Route::Fixed(Kind::Text, list.into()));
        let Options { hosts, allow_get_writes, .. } = &application.options;
        Self { pages, routes, hosts: hosts.clone(), allow_get_writes: *allow_get_writes }
    }

    /// Decides what a request asks for.
    pub(crate) fn find<B: Body>(&self, request: &Request<B>) -> Wanted {
        if let Err((status, text)) = self.accept(request) {
            return Wanted::Malformed(response::last(response::text(status, text)));
        }
        let (method, path) = (request.method(), request.uri().path());
        let known = match self.routes.get(path) {
            Some(Route::Page(page)) => {
                let writes = self.pages[*page].writes;
                let allowed = if writes { Method::POST } else { Method::GET };
                if *method == allowed || writes && self.allow_get_writes && *method == Method::GET {
                    match key(request.uri().query()) {
                        Ok(key) => return Wanted::Page { page: *page, key },
                        Err(text) => response::text(StatusCode::BAD_REQUEST, text),
                    }
                } else {
                    self.wrong_method(writes)
                }
            }
            _ if !matches!(*method, Method::GET | Method::HEAD) => self.wrong_method(false),
            Some(Route::Fixed(kind, body)) => response::new(StatusCode::OK, *kind, body.clone()),
            Some(Route::Unavailable(reason)) => response::text(StatusCode::NOT_IMPLEMENTED, reason),
            None => self.not_found(path),
        };
        Wanted::Known(known)
    }

    /// Refuses requests with a body, and those for another host. A web page that a browser shows could otherwise use
    /// the database through a name of its own that resolves to this machine.
    fn accept<B: Body>(&self, request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
        if !request.body().is_end_stream() {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "requests have no body"));
        }
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|text| text.parse::<Authority>().ok()),
            (None, _) if request.version() == Version::HTTP_10 => return Ok(()),
            _ => None,
        };
        // An absolute URL, as for a proxy, overrides the field.
        let named = request.uri().authority().or(host.as_ref());
        let Some(named) = named.map(Authority::host).filter(|_| host.is_some()) else {
            return Err((StatusCode::BAD_REQUEST, "an HTTP/1.1 request has one valid Host field"));
        };
        if self.is_ours(named) {
            return Ok(());
        }
        Err((
            StatusCode::MISDIRECTED_REQUEST,
            "this host name is not accepted; use the IP address, or start kurabe up app with --host NAME",
        ))
    }

    fn is_ours(&self, host: &str) -> bool {
        let ip = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        ip.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|name| host.eq_ignore_ascii_case(name))
    }

    fn wrong_method(&self, writes: bool) -> Response {
        let (allowed, text) = match (writes, self.allow_get_writes) {
            (false, _) => ("GET", "this page is requested by GET"),
            (true, true) => ("GET, POST", "this page is requested by POST or GET"),
            (true, false) => (
                "POST",
                "this page changes the database: request it by POST, or start kurabe up app with --allow-get-writes",
            ),
        };
        let mut response = response::text(StatusCode::METHOD_NOT_ALLOWED, text);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        response
    }

    fn not_found(&self, path: &str) -> Response {
        let experiment = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match self.routes.get(&format!("/{experiment}")) {
            Some(Route::Unavailable(reason)) => response::text(StatusCode::NOT_IMPLEMENTED, reason),
            // The path is not repeated: it is whatever a client sent.
            _ => response::text(StatusCode::NOT_FOUND, "there is no such page; / lists them"),
        }
    }
}

/// The record that a query names: `key=17`, or nothing.
fn key(query: Option<&str>) -> Result<Option<u64>, &'static str> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let key = query.strip_prefix("key=").and_then(|text| text.parse().ok());
    key.map(Some).ok_or("the only parameter is key, a whole number: ?key=17")
}

/// What a client needs to know of an experiment before it can verify replies.
fn about_page(application: &Application, served: &Served) -> Bytes {
    let facts = &application.facts;
    let options = &application.options;
    let connection = match options.connection {
        Connection::PerRequest => "per-request".to_owned(),
        Connection::Kept => "kept".to_owned(),
        Connection::Pool(size) => format!("pool of {size}"),
    };
    let mut about = Map::new();
    about.insert("experiment".to_owned(), json!(served.name));
    about.extend(served.pages.facts.iter().map(|(name, number)| ((*name).to_owned(), json!(number))));
    for (name, value) in [
        ("application", json!(concat!("kurabe ", env!("CARGO_PKG_VERSION")))),
        ("engine", json!(facts.engine)),
        ("version", json!(facts.version)),
        ("client", json!(facts.client)),
        ("durability", json!(facts.durability.map(DurabilityClass::name))),
        ("database", local_endpoint(&application.database)),
        ("part", json!(options.part.number)),
        ("parts", json!(options.part.of)),
        ("session_slots", json!(options.session_slots())),
        ("connection", json!(connection)),
        ("workers", json!(options.workers)),
        ("queue", json!(options.queue)),
    ] {
        about.insert(name.to_owned(), value);
    }
    format!("{}\n", Value::Object(about)).into()
}

/// Where the database listens, if only this machine reaches it: a client here may then observe its processes.
fn local_endpoint(database: &Endpoint) -> Value {
    let local = |host: &str| host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match database {
        Endpoint::InProcess => json!("in-process"),
        Endpoint::Tcp { host, port } if local(host) => json!({ "host": host, "port": port }),
        Endpoint::Unix(path) => json!({ "socket": path }),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Empty;

    fn router(hosts: &[&str], allow_get_writes: bool) -> Router {
        let page = |operation, writes| Page { served: None, operation, writes, connects_anew: false };
        let routes = [
            ("/", Route::Fixed(Kind::Text, Bytes::new())),
            ("/kv/read", Route::Page(0)),
            ("/kv/write", Route::Page(1)),
            ("/session", Route::Unavailable("session is not served: no reason".to_owned())),
        ];
        Router {
            pages: vec![page("read", false), page("write", true)],
            routes: routes.map(|(path, route)| (path.to_owned(), route)).into(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            allow_get_writes,
        }
    }

    /// The status of a request; 0 for a page that uses the database.
    fn status(router: &Router, method: &str, uri: &str, hosts: &[&str], version: Version) -> u16 {
        let mut request = Request::builder().method(method).uri(uri).version(version);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        match router.find(&request.body(Empty::<Bytes>::new()).unwrap()) {
            Wanted::Page { .. } => 0,
            Wanted::Known(response) | Wanted::Malformed(response) => response.status().as_u16(),
        }
    }

    #[test]
    fn writes_are_post_and_get_only_if_allowed() {
        for (allow, method, path, expected) in [
            (false, "GET", "/kv/read", 0),
            (false, "POST", "/kv/read", 405),
            (false, "HEAD", "/kv/read", 405),
            (false, "POST", "/kv/write", 0),
            (false, "GET", "/kv/write", 405),
            (false, "HEAD", "/kv/write", 405),
            (true, "POST", "/kv/write", 0),
            (true, "GET", "/kv/write", 0),
            (true, "HEAD", "/kv/write", 405),
            (true, "PUT", "/kv/write", 405),
            (false, "HEAD", "/", 200),
            (false, "POST", "/", 405),
            (false, "GET", "/nothing", 404),
            (false, "GET", "/session", 501),
            (false, "GET", "/session/read", 501),
        ] {
            let found = status(&router(&[], allow), method, path, &["localhost"], Version::HTTP_11);
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn host_is_an_address_localhost_or_a_given_name() {
        let router = router(&["bench.example"], false);
        for (uri, hosts, expected) in [
            ("/kv/read", &["127.0.0.1:8080"][..], 0),
            ("/kv/read", &["[::1]:8080"], 0),
            ("/kv/read", &["LocalHost"], 0),
            ("/kv/read", &["Bench.example:80"], 0),
            ("/kv/read", &["evil.example"], 421),
            ("/kv/read", &["127.0.0.1.evil.example:8080"], 421),
            ("http://evil.example/kv/read", &["localhost"], 421),
            ("http://localhost/kv/read", &["evil.example"], 0),
            ("/kv/read", &[], 400),
            ("/kv/read", &["localhost", "evil.example"], 400),
            ("/kv/read", &["a b"], 400),
        ] {
            assert_eq!(status(&router, "GET", uri, hosts, Version::HTTP_11), expected, "{uri} {hosts:?}");
        }
        assert_eq!(status(&router, "GET", "/kv/read", &[], Version::HTTP_10), 0);
        assert_eq!(status(&router, "GET", "/kv/read", &["evil.example"], Version::HTTP_10), 421);
    }

    #[test]
    fn remote_database_is_not_reported() {
        let tcp = |host: &str| local_endpoint(&Endpoint::Tcp { host: host.into(), port: 5 });
        assert_eq!(tcp("127.0.0.1"), json!({ "host": "127.0.0.1", "port": 5 }));
        assert_eq!(tcp("::1"), json!({ "host": "::1", "port": 5 }));
        assert_eq!(tcp("db.example.com"), Value::Null);
        assert_eq!(local_endpoint(&Endpoint::InProcess), json!("in-process"));
    }

    #[test]
    fn key_is_a_whole_number_and_the_only_parameter() {
        assert_eq!(key(None).unwrap(), None);
        assert_eq!(key(Some("")).unwrap(), None);
        assert_eq!(key(Some("key=17")).unwrap(), Some(17));
        for query in ["key=", "key=-1", "key=1x", "id=1", "key=1&x=2", "key=99999999999999999999"] {
            assert!(key(Some(query)).is_err(), "{query}");
        }
    }
}
