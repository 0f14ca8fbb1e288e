//! The pages: which paths there are, and what each is.

use crate::answer::{Answer, Kind};
use crate::{Application, Connection, Served};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::observation::Endpoint;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::net::IpAddr;

/// The page that says whether the database answers.
pub(crate) const HEALTH: usize = 0;

/// A page that asks the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Which of the served experiments; none for [`HEALTH`].
    pub served: Option<usize>,
    /// Its operation.
    pub operation: &'static str,
    /// Whether each of its requests has a database connection of its own.
    pub anew: bool,
}

/// What a path leads to.
#[derive(Clone, Debug)]
enum Route {
    Page(usize),
    /// What is known before the first request.
    Fixed(Kind, Vec<u8>),
    /// An experiment that is not served, and why.
    Absent(String),
}

/// All paths.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub pages: Vec<Page>,
    routes: HashMap<String, Route>,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Ask the database.
    Page { page: usize, key: Option<u64> },
    /// It is known already.
    Known(Answer),
}

impl Catalogue {
    pub(crate) fn new(application: &Application) -> Self {
        let mut pages = vec![Page { served: None, operation: "health", anew: false }];
        let mut routes = HashMap::from([("/health".to_owned(), Route::Page(HEALTH))]);
        let mut paths = vec!["/health".to_owned()];
        for (index, served) in application.served.iter().enumerate() {
            let about = format!("/{}", served.name);
            routes.insert(about.clone(), Route::Fixed(Kind::Json, about_page(application, served)));
            paths.push(about);
            let further = served.pages.further();
            for operation in served.operations.iter().chain(further).copied() {
                let path = format!("/{}/{operation}", served.name);
                routes.insert(path.clone(), Route::Page(pages.len()));
                paths.push(path);
                let anew = served.pages.connects_anew(operation);
                pages.push(Page { served: Some(index), operation, anew });
            }
        }
        for (name, reason) in &application.absent {
            routes.insert(format!("/{name}"), Route::Absent(format!("{name} is not served: {reason}")));
        }
        let list = format!(
            "kurabe {} serves transactions on {}:\n{}\n",
            env!("CARGO_PKG_VERSION"),
            application.target,
            paths.join("\n")
        );
        routes.insert("/".to_owned(), Route::Fixed(Kind::Text, list.into_bytes()));
        Self { pages, routes }
    }

    /// What is wanted by the path and the query of a request.
    pub(crate) fn find(&self, target: &str) -> Wanted {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match self.routes.get(path) {
            Some(Route::Page(page)) => match key(query) {
                Ok(key) => Wanted::Page { page: *page, key },
                Err(answer) => Wanted::Known(answer),
            },
            Some(Route::Fixed(kind, body)) => Wanted::Known(Answer::new(200, *kind, body.clone())),
            Some(Route::Absent(reason)) => Wanted::Known(Answer::says(501, reason)),
            None => Wanted::Known(self.not_found(path)),
        }
    }

    fn not_found(&self, path: &str) -> Answer {
        let experiment = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match self.routes.get(&format!("/{experiment}")) {
            Some(Route::Absent(reason)) => Answer::says(501, reason),
            // What was asked for is not repeated: it is whatever a client sent.
            _ => Answer::says(404, "there is no such page; / lists them"),
        }
    }
}

/// The record that a query names: `key=17`, or nothing.
fn key(query: &str) -> Result<Option<u64>, Answer> {
    if query.is_empty() {
        return Ok(None);
    }
    let key = query.strip_prefix("key=").and_then(|text| text.parse().ok());
    key.map(Some).ok_or_else(|| Answer::says(400, "the only parameter is key, a whole number: ?key=17"))
}

/// What a client must know of an experiment before it can verify answers.
fn about_page(application: &Application, served: &Served) -> Vec<u8> {
    let facts = &application.facts;
    let options = &application.options;
    let connection = match options.connection {
        Connection::PerRequest => "per-request".to_owned(),
        Connection::Kept => "kept".to_owned(),
        Connection::Pool(size) => format!("pool of {size}"),
    };
    let mut about = Map::new();
    about.insert("experiment".to_owned(), json!(served.name));
    about.extend(served.pages.facts().into_iter().map(|(name, number)| (name.to_owned(), json!(number))));
    about.insert("application".to_owned(), json!(concat!("kurabe ", env!("CARGO_PKG_VERSION"))));
    about.insert("engine".to_owned(), json!(facts.engine));
    about.insert("version".to_owned(), json!(facts.version));
    about.insert("client".to_owned(), json!(facts.client));
    about.insert("durability".to_owned(), json!(facts.durability.map(DurabilityClass::name)));
    about.insert("database".to_owned(), place(&application.database));
    about.insert("part".to_owned(), json!(options.part.number));
    about.insert("parts".to_owned(), json!(options.part.of));
    about.insert("seats".to_owned(), json!(options.seats()));
    about.insert("connection".to_owned(), json!(connection));
    about.insert("workers".to_owned(), json!(options.workers));
    about.insert("queue".to_owned(), json!(options.queue));
    let mut body = Value::Object(about).to_string().into_bytes();
    body.push(b'\n');
    body
}

/// Where the database listens, if only this machine reaches it: whoever measures here may look at its processes.
fn place(database: &Endpoint) -> Value {
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

    #[test]
    fn a_database_on_another_machine_is_nobodys_business() {
        let tcp = |host: &str| place(&Endpoint::Tcp { host: host.into(), port: 5 });
        assert_eq!(tcp("127.0.0.1"), json!({ "host": "127.0.0.1", "port": 5 }));
        assert_eq!(tcp("::1"), json!({ "host": "::1", "port": 5 }));
        assert_eq!(tcp("db.example.com"), Value::Null);
        assert_eq!(place(&Endpoint::InProcess), json!("in-process"));
    }

    #[test]
    fn a_key_is_a_whole_number_and_the_only_parameter() {
        assert_eq!(key("").unwrap(), None);
        assert_eq!(key("key=17").unwrap(), Some(17));
        for query in ["key=", "key=-1", "key=1x", "id=1", "key=1&x=2", "key=99999999999999999999"] {
            assert_eq!(key(query).unwrap_err().status, 400, "{query}");
        }
    }
}
