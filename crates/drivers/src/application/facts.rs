//! Facts of an application, from the description pages of its experiments.

use super::session::{ApplicationSession, Request};
use crate::prelude::*;
use serde_json::{Map, Value};

/// What stands for the engine where an application names none.
pub(super) const ENGINE: &str = "application";

/// Suffix of the engine's name, for an application.
const BEHIND: &str = " over HTTP";

/// The engine behind an application: the results are about this engine too, so its licence may apply.
pub(crate) fn engine_behind(engine: &str) -> &str {
    engine.strip_suffix(BEHIND).unwrap_or(engine)
}

/// The description pages, of which one is enough. Each is also a setting of the application, so that a plan knows which
/// experiments it serves.
const PAGES: [&str; 3] = ["/webapp", "/kv", "/connect"];
const SERVED: &str = "served";
const NOT_SERVED: &str = "not served";

/// The description that an application reported.
pub(super) type Reported = Map<String, Value>;

/// Requests all description pages: returns the description on the first one that is served, and for each page whether
/// it is served.
pub(super) fn ask(session: &mut ApplicationSession) -> Result<Reported> {
    let mut first: Option<Reported> = None;
    let mut served = Reported::new();
    let mut missing = None;
    for page in PAGES {
        match session.request(page, Request::default()) {
            Ok(body) => {
                let reported = parse(body)?;
                first.get_or_insert(reported);
                served.insert(page.to_owned(), SERVED.into());
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
                served.insert(page.to_owned(), NOT_SERVED.into());
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let none = || missing.unwrap_or_else(|| Error::unsupported("the application has no pages"));
    let mut reported = first.ok_or_else(none)?;
    reported.extend(served);
    Ok(reported)
}

fn parse(body: &[u8]) -> Result<Reported> {
    serde_json::from_slice(body).map_err(|_| {
        Error::unsupported(format!("the answer on {} is not a JSON object", PAGES.join(" or ")))
            .hint("is this an application that serves docs/app.openapi.yaml, such as kurabe up app?")
    })
}

/// The facts of `applications` applications, of which `about` describes the first.
pub(super) fn read(about: &Reported, applications: usize) -> ServerFacts {
    let text = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
    let durability = text("durability").and_then(|name| DurabilityClass::parse(&name).ok());
    let mut notes = vec!["the application keeps its own data, and does not exclude other users".to_owned()];
    if durability.is_none() {
        notes.push(
            "the application does not say how durable an acknowledged write is; Kurabe assumes memory only"
                .to_owned(),
        );
    }
    if applications > 1 {
        notes.push(format!(
            "{applications} applications in front of one database, to which clients are assigned in turn; \
                            the settings are the first one's"
        ));
    }
    let known = ["engine", "version", "durability", "experiment", "database", "backends"];
    let settings = about
        .iter()
        .filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| {
            Setting::new(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
    ServerFacts {
        engine: text("engine").map_or_else(|| ENGINE.to_owned(), |engine| engine + BEHIND),
        version: text("version").unwrap_or_default(),
        client: concat!("kurabe ", env!("CARGO_PKG_VERSION"), ", HTTP/1.1 to an application").to_owned(),
        // The lowest class if none is known, so that the durability is not overstated.
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
    fn unreported_durability_is_memory() {
        let facts = read(&parse(br#"{"seed": 1, "records": 300}"#).unwrap(), 1);
        assert_eq!((facts.engine.as_str(), facts.durability), ("application", Some(DurabilityClass::Memory)));
        assert!(facts.notes.iter().any(|note| note.contains("does not say")), "{:?}", facts.notes);
        let page = br#"{"engine": "PostgreSQL", "version": "17", "durability": "synced", "workers": 3}"#;
        let facts = read(&parse(page).unwrap(), 1);
        assert_eq!((facts.engine.as_str(), facts.version.as_str()), ("PostgreSQL over HTTP", "17"));
        assert_eq!((facts.durability, facts.notes.len()), (Some(DurabilityClass::Synced), 1));
        assert_eq!(facts.settings, [Setting::new("workers", "3")]);
        assert_eq!(engine_behind(&facts.engine), "PostgreSQL");
        assert!(parse(b"<html>").unwrap_err().to_string().contains("docs/app.openapi.yaml"));
    }
}
