//! What the URLs of targets say, before any is opened: the engine, a name, whose options are whose.

use crate::observers;
use kurabe_core::target::{TargetUrl, UP, quoted_word};
use kurabe_core::{Error, Result, units};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The scheme of an application stack: `stack:php/mysqli`.
pub const STACK: &str = "stack";
/// The option that names the database: `stack:php/mysqli?db=up:mysql`.
pub const DB: &str = "db";
/// The option of an `up:` URL with the folder of the server's programs: another version, or another build.
pub(crate) const PROGRAMS: &str = "programs";

/// The option of an `up:` URL with the version that these programs must have.
pub(crate) const VERSION: &str = "version";

/// Rejects unknown schemes of databases and applications.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage), with the most similar known name.
pub(crate) fn check_server(url: &TargetUrl) -> Result<()> {
    if url.scheme != UP {
        let mut url = url.clone();
        observers::taken(&mut url);
        return kurabe_drivers::registry::open(&url).map(drop);
    }
    kurabe_drivers::registry::check_built_in(engine(url))?;
    let known: Vec<&str> = kurabe_testbed::engines().collect();
    if known.contains(&url.path.as_str()) {
        return Ok(());
    }
    let hint = units::nearest(&url.path, &known).map_or_else(
        || {
            format!(
                "there are: {}",
                known.iter().map(|name| format!("up:{name}")).collect::<Vec<_>>().join(", ")
            )
        },
        |near| format!("did you mean up:{near}?"),
    );
    if let Some((engine, version)) = url.path.split_once('@').filter(|(engine, _)| known.contains(engine)) {
        let hint = format!(
            "write up:{engine} for what is installed, or up:{engine}@{version}:FOLDER with the folder of its programs"
        );
        let what = format!("up:{engine}@{version} does not say where its programs are");
        return Err(Error::usage(what).hint(hint));
    }
    // A URL may hold a password.
    if url.path.contains(':') {
        return Err(Error::usage("up: takes the name of an engine, and no URL").hint(hint));
    }
    let name = quoted_word(&url.path);
    let what = if name.is_empty() { " an engine of this name" } else { &name };
    Err(Error::usage(format!("up: cannot start{what}")).hint(hint))
}

/// The options of an `up:` URL that belong to the driver. The others are settings of the server.
pub(crate) fn driver_options(url: &TargetUrl) -> Vec<(String, String)> {
    let known = kurabe_drivers::registry::find(engine(url)).map(|driver| driver.options).unwrap_or_default();
    url.options
        .iter()
        .filter(|(name, _)| known.iter().any(|option| option.name == name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The name of a URL's engine, as drivers are found by: `mysql` of `up:mysql`, `up:mysql@5.5` and `mysql://host`; of a
/// stack, that of its database.
pub fn engine(url: &TargetUrl) -> &str {
    if let Some(database) = url.option(DB).filter(|_| url.scheme == STACK) {
        let (scheme, rest) = database.split_once(':').unwrap_or((database, ""));
        return if scheme == UP { rest.split(['@', '?']).next().unwrap_or_default() } else { scheme };
    }
    if url.scheme == UP { url.path.split('@').next().unwrap_or_default() } else { &url.scheme }
}

/// A short unique name for each target: the engine, then the version, host, port and options by which targets of it differ,
/// then a number.
pub fn names(urls: &[TargetUrl]) -> Vec<String> {
    let short = |url: &TargetUrl| {
        if [UP, STACK].contains(&url.scheme.as_str()) { url.path.clone() } else { url.scheme.clone() }
    };
    let long = |url: &TargetUrl| {
        let others = || urls.iter().filter(|other| short(other) == short(url));
        let differs = |name: &String| others().any(|other| other.options.get(name) != url.options.get(name));
        // A version says more than the folder of its programs.
        let version = url.option(VERSION).filter(|_| differs(&VERSION.to_owned()));
        let is_said = |name: &str| version.is_some() && [VERSION, PROGRAMS].contains(&name);
        let mut name = version.map_or_else(|| short(url), |version| format!("{}@{version}", short(url)));
        if others().any(|other| other.host != url.host) {
            let _ = write!(name, " {}", url.host.as_deref().unwrap_or("localhost"));
        }
        if others().any(|other| other.port != url.port) {
            let _ = url.port.map(|port| write!(name, " :{port}"));
        }
        for (option, value) in url.options.iter().filter(|(name, _)| differs(name) && !is_said(name)) {
            let _ = write!(name, " {option}={}", url.shown_option(option, value));
        }
        name
    };
    let mut used: HashSet<String> = HashSet::new();
    urls.iter()
        .map(|url| {
            let alone = urls.iter().filter(|other| short(other) == short(url)).count() == 1;
            let base = if alone { short(url) } else { long(url) };
            let mut name = base.clone();
            let mut n = 2;
            while !used.insert(name.clone()) {
                name = format!("{base}#{n}");
                n += 1;
            }
            name
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::target::without_passwords;

    fn names_of(urls: &[&str]) -> Vec<String> {
        names(&urls.iter().map(|url| TargetUrl::parse(url).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn driver_options_reach_driver_and_others_reach_server() {
        let url = TargetUrl::parse("up:mysql?engine=MyISAM&max_connections=300&charset=statement").unwrap();
        let names: Vec<String> = driver_options(&url).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["charset", "engine"]);
    }

    #[test]
    fn targets_get_short_unique_names() {
        assert_eq!(names_of(&["sqlite:", "up:postgres"]), ["sqlite", "postgres"]);
        assert_eq!(names_of(&["sqlite:", "sqlite:"]), ["sqlite", "sqlite#2"]);
        assert_eq!(names_of(&["sqlite:", "sqlite:?synchronous=off"]), ["sqlite", "sqlite synchronous=off"]);
        assert_eq!(
            names_of(&["up:mysql@9:/opt/mysql/bin?x=1", "up:mysql@9:/opt/mysql/bin?x=2", "up:redis?y=3"]),
            ["mysql x=1", "mysql x=2", "redis"]
        );
        assert_eq!(
            names_of(&["mysql://a@one/x", "mysql://a@two:3307/x", "mysql://a@two:3307/y", "redis://one"]),
            ["mysql one", "mysql two :3307", "mysql two :3307#2", "redis"]
        );
        assert_eq!(
            names_of(&["up:mysql@8.4:/opt/8/bin", "up:mysql@9.7:/opt/9/bin?x=2", "up:mysql:/opt/own/bin"]),
            ["mysql@8.4", "mysql@9.7 x=2", "mysql programs=/opt/own/bin"]
        );
    }

    #[test]
    fn recorded_command_contains_no_password() {
        let words =
            ["kurabe", "run", "session", "mysql://bob:hunter2@h/db", "--target=mysql://b:hunter2@h/d", "x:1"];
        let shown = without_passwords(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(shown, ["kurabe", "run", "session", "mysql://bob@h/db", "--target=mysql://b@h/d", "x:1"]);
    }
}
