//! The queries of the engines' catalogues, which are data: a file an engine.

use super::engine::Engine;
use super::facts::Others;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A file of queries.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The settings of a session that change how definitions and values are written, read or found, with the values for every
    /// session of a copy. Those that a server lacks are left out.
    #[serde(default)]
    pub(crate) settings: Vec<[String; 2]>,
    /// What the engine has besides tables.
    pub(crate) others: Vec<Others>,
    /// Those of the modules that read its catalogue, by their names there, and lists of words.
    queries: BTreeMap<String, String>,
}

/// The files, by the names of the engines in lower case.
static FILES: LazyLock<BTreeMap<&str, File>> = LazyLock::new(|| {
    let files = [
        ("mysql", include_str!("../../queries/mysql.toml")),
        ("postgresql", include_str!("../../queries/postgresql.toml")),
        ("sqlite", include_str!("../../queries/sqlite.toml")),
    ];
    // Each is a part of the program.
    files.into_iter().map(|(engine, text)| (engine, toml::from_str(text).unwrap_or_default())).collect()
});

/// A query of an engine's catalogue.
pub(super) fn query(engine: &str, name: &str) -> &'static str {
    // A wrong name ends the program: an empty text would make another statement.
    &FILES[engine].queries[name]
}

/// An expression of a column, with its quoted name for each `{x}`; or a query of a table, with its name as a literal.
pub(super) fn expression(engine: &str, name: &str, x: &str) -> String {
    query(engine, name).replace("{x}", x)
}

/// The file of an engine.
pub(crate) fn file(engine: &Engine) -> &'static File {
    &FILES[&*engine.name.to_lowercase()]
}

/// An expression of a column, or a query of a table, of this engine; `None` if it has none of this name.
pub(crate) fn expression_of(engine: &Engine, name: &str, x: &str) -> Option<String> {
    Some(file(engine).queries.get(name)?.replace("{x}", x))
}
