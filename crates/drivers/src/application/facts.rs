//! What an application says of itself on `/kv`.

use super::INFO;
use super::session::ApplicationSession;
use kurabe_core::driver::{DurabilityClass, Limits, ServerFacts, Session as _, Setting};
use kurabe_core::{Error, Result};
use serde_json::{Map, Value};

/// What stands behind the name of the engine that an application uses.
const BEHIND: &str = " over HTTP";

/// The engine behind an application, of which its figures speak too, and whose licence may say something of them.
pub(crate) fn engine_behind(engine: &str) -> &str {
    engine.strip_suffix(BEHIND).unwrap_or(engine)
}

/// The page that says it.
const PAGE: &str = "/kv";

pub(super) fn describe(session: &mut ApplicationSession) -> Result<ServerFacts> {
    let mut body = Vec::new();
    session.ask(PAGE, true, &mut body)?;
    read(&body)
}

fn read(body: &[u8]) -> Result<ServerFacts> {
    let about: Map<String, Value> = serde_json::from_slice(body).map_err(|_| {
        Error::unsupported(format!("what answers on {PAGE} is no object in JSON"))
            .hint("is this an application that serves docs/app.openapi.yaml, such as kurabe app?")
    })?;
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
    let told = ["engine", "version", "durability", "experiment"];
    let settings = about
        .iter()
        .filter(|(name, value)| !told.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| {
            Setting::new(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
    Ok(ServerFacts {
        engine: text("engine").map_or_else(|| INFO.engine.to_owned(), |engine| engine + BEHIND),
        version: text("version").unwrap_or_default(),
        client: concat!("kurabe ", env!("CARGO_PKG_VERSION"), ", HTTP/1.1 to an application").to_owned(),
        transport: "TCP".to_owned(),
        // The least promise, where none is known: a figure must not pass for one of a better.
        durability: Some(durability.unwrap_or(DurabilityClass::Memory)),
        durability_settings: Vec::new(),
        settings: settings.collect(),
        limits: Limits::default(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_says_little_promises_little() {
        let facts = read(br#"{"seed": 1, "records": 300}"#).unwrap();
        assert_eq!((facts.engine.as_str(), facts.durability), ("application", Some(DurabilityClass::Memory)));
        assert!(facts.notes.iter().any(|note| note.contains("does not say")), "{:?}", facts.notes);
        let facts =
            read(br#"{"engine": "PostgreSQL", "version": "17", "durability": "synced", "workers": 3}"#);
        let facts = facts.unwrap();
        assert_eq!((facts.engine.as_str(), facts.version.as_str()), ("PostgreSQL over HTTP", "17"));
        assert_eq!((facts.durability, facts.notes.len()), (Some(DurabilityClass::Synced), 1));
        assert_eq!(facts.settings, [Setting::new("workers", "3")]);
        assert_eq!(engine_behind(&facts.engine), "PostgreSQL");
        assert!(read(b"<html>").unwrap_err().to_string().contains("docs/app.openapi.yaml"));
    }
}
