//! Tests Kurabe itself on throwaway servers.
//!
//! [`causes`] plants known causes and checks whether attribution names them. [`differences`] compares a server with
//! itself, with and without a known difference, and counts correct verdicts.

pub mod causes;
pub mod differences;

use kurabe_core::durability::DurabilityClass;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use kurabe_targets::{Reporter, UP, up};
use kurabe_testbed::Server;

/// The engine that works within the client.
pub const EMBEDDED: &str = "sqlite";
/// The engines of the self-test, if they are installed.
const ENGINES: [&str; 6] = ["postgres", "mysql", "mariadb", "redis", "memcached", EMBEDDED];

/// An engine, and the settings of its throwaway server.
pub struct Engine {
    pub name: &'static str,
    /// The settings, as `?name=value&…`; may be empty.
    pub settings: String,
}

/// The result of a self-test.
pub struct TestResult {
    /// The counts as Markdown.
    pub table: String,
    /// Whether as many were correct as must be.
    pub passed: bool,
}

impl Engine {
    /// The URL of its throwaway server.
    fn url(&self) -> String {
        format!("{UP}:{}{}", self.name, self.settings)
    }
}

/// The engines of these words, each a name with or without settings (`mariadb?innodb_buffer_pool_size=16M`); all
/// engines if there are none.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if a name is unknown.
pub fn engines(words: &[&str]) -> Result<Vec<Engine>> {
    if words.is_empty() {
        return Ok(ENGINES.map(|name| Engine { name, settings: String::new() }).into());
    }
    let engine = |word: &&str| {
        let (name, settings) = word.split_at(word.find('?').unwrap_or(word.len()));
        Ok(Engine { name: one_of(name, &ENGINES)?, settings: settings.to_owned() })
    };
    words.iter().map(engine).collect()
}

fn one_of(word: &str, known: &[&'static str]) -> Result<&'static str> {
    known.iter().find(|one| **one == word).copied().ok_or_else(|| {
        Error::usage(format!("unknown engine or cause '{word}'"))
            .hint(format!("there are: {}", known.join(", ")))
    })
}

/// A throwaway server that syncs each commit; `None` for an embedded database.
fn start(engine: &Engine, reporter: &dyn Reporter) -> Result<Option<Server>> {
    if engine.name == EMBEDDED {
        return Ok(None);
    }
    let url = TargetUrl::parse(&engine.url())?;
    let synced = up(&url, Some(DurabilityClass::Synced), 0, reporter);
    // Not all engines can sync; causes with writes are not planted on the others.
    match synced {
        Ok(server) => Ok(Some(server)),
        Err(_) => up(&url, None, 0, reporter).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_keep_their_settings_and_unknown_ones_are_rejected() {
        let engines = |words: &[&str]| {
            let urls = |engines: Vec<Engine>| engines.iter().map(Engine::url).collect::<Vec<_>>();
            super::engines(words).map(urls).map_err(|error| error.to_string())
        };
        assert_eq!(engines(&["redis", "mysql?a=1&b=2"]).unwrap(), ["up:redis", "up:mysql?a=1&b=2"]);
        assert_eq!(engines(&[]).unwrap().len(), ENGINES.len());
        assert!(engines(&["posgres"]).unwrap_err().contains("unknown engine or cause 'posgres'"));
    }
}
