//! What an application says of itself on the page of an experiment that is driven through it.

use super::INFO;
use super::client::Request;
use super::session::ApplicationSession;
use crate::prelude::*;
use serde_json::{Map, Value};

/// What stands behind the name of the engine that an application uses.
const BEHIND: &str = " over HTTP";

/// The engine behind an application, of which its figures speak too, and whose licence may say something of them.
pub(crate) fn engine_behind(engine: &str) -> &str {
    engine.strip_suffix(BEHIND).unwrap_or(engine)
}

/// The pages that say it; one is enough. Each is a setting of the application too, so that a plan knows what it may ask for.
const PAGES: [&str; 3] = ["/webapp", "/kv", "/connect"];
const SERVED: &str = "served";
const NOT_SERVED: &str = "not served";

/// What an application said.
pub(super) type Reported = Map<String, Value>;

/// Asks it on all its experiments' pages: what the first one that it serves says, and of each whether it is served.
pub(super) fn ask(session: &mut ApplicationSession) -> Result<Reported> {
    let mut first: Option<Reported> = None;
    let mut served = Reported::new();
    let mut missing = None;
    for page in PAGES {
        match session.request(page, Request::default()) {
            Ok(body) => {
                let told = parse(body)?;
                first.get_or_insert(told);
                served.insert(page.to_owned(), SERVED.into());
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
                served.insert(page.to_owned(), NOT_SERVED.into());
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match (first, missing) {
        (Some(mut told), _) => {
            told.extend(served);
            Ok(told)
        }
        (None, missing) => Err(missing.unwrap_or_else(|| Error::unsupported("the application has no pages"))),
    }
}

fn parse(body: &[u8]) -> Result<Reported> {
    serde_json::from_slice(body).map_err(|_| {
        Error::unsupported(format!("what answers on {} is no object in JSON", PAGES.join(" or ")))
            .hint("is this an application that serves docs/app.openapi.yaml, such as kurabe app?")
    })
}

/// The facts of so many applications, of which this is the first.
pub(super) fn read(about: &Reported, applications: usize) -> ServerFacts {
    let text = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
    let durability = text("durability").and_then(|name| DurabilityClass::parse(&name).ok());
    let mut notes =
        vec!["the application keeps its data itself, and does not lock out others who use it".to_owned()];
    if durability.is_none() {
        notes.push(
            "the application does not say what an acknowledged write survives, and is taken to promise nothing"
                .to_owned(),
        );
    }
    if applications > 1 {
        notes.push(format!(
            "{applications} applications before one database, which clients are dealt out to in turn; \
                            the settings are the first one's"
        ));
    }
    let told = ["engine", "version", "durability", "experiment", "database"];
    let settings = about
        .iter()
        .filter(|(name, value)| !told.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| {
            Setting::new(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
    ServerFacts {
        engine: text("engine").map_or_else(|| INFO.engine.to_owned(), |engine| engine + BEHIND),
        version: text("version").unwrap_or_default(),
        client: concat!("kurabe ", env!("CARGO_PKG_VERSION"), ", HTTP/1.1 to an application").to_owned(),
        transport: "TCP".to_owned(),
        // The least promise, where none is known: a figure must not pass for one of a better.
        durability: Some(durability.unwrap_or(DurabilityClass::Memory)),
        settings: settings.collect(),
        notes,
        ..ServerFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_says_little_promises_little() {
        let facts = read(&parse(br#"{"seed": 1, "records": 300}"#).unwrap(), 1);
        assert_eq!((facts.engine.as_str(), facts.durability), ("application", Some(DurabilityClass::Memory)));
        assert!(facts.notes.iter().any(|note| note.contains("does not say")), "{:?}", facts.notes);
        let told = br#"{"engine": "PostgreSQL", "version": "17", "durability": "synced", "workers": 3}"#;
        let facts = read(&parse(told).unwrap(), 1);
        assert_eq!((facts.engine.as_str(), facts.version.as_str()), ("PostgreSQL over HTTP", "17"));
        assert_eq!((facts.durability, facts.notes.len()), (Some(DurabilityClass::Synced), 1));
        assert_eq!(facts.settings, [Setting::new("workers", "3")]);
        assert_eq!(engine_behind(&facts.engine), "PostgreSQL");
        assert!(parse(b"<html>").unwrap_err().to_string().contains("docs/app.openapi.yaml"));
    }
}
