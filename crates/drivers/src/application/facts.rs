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
    let about: Map<String, Value> = serde_json::from_slice(&body).map_err(|_| {
        Error::unsupported(format!("what answers on {PAGE} is no object in JSON"))
            .hint("is this an application that serves docs/app.openapi.yaml, such as kurabe app?")
    })?;
    let text = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
    let durability = text("durability").and_then(|name| DurabilityClass::parse(&name).ok());
    let mut notes =
        vec!["the application keeps its data itself, and does not lock out others who use it".to_owned()];
    if durability.is_none() {
        notes.push("the application does not say what an acknowledged write survives".to_owned());
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
        durability,
        durability_settings: Vec::new(),
        settings: settings.collect(),
        limits: Limits::default(),
        notes,
    })
}
