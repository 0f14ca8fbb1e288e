//! What the URLs of targets say, before any is opened: the engine, a name, whose options are whose.

use crate::observers;
use kurabe_core::target::{TargetUrl, UP, quoted_word};
use kurabe_core::{Error, Result, units};

/// The option that names the database: `stack:php/mysqli?db=up:mysql`.
pub const DB: &str = "db";

pub use kurabe_core::target::{STACK, names};

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

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::target::without_passwords;

    #[test]
    fn driver_options_reach_driver_and_others_reach_server() {
        let url = TargetUrl::parse("up:mysql?engine=MyISAM&max_connections=300&charset=statement").unwrap();
        let names: Vec<String> = driver_options(&url).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["charset", "engine"]);
    }

    #[test]
    fn recorded_command_contains_no_password() {
        let words =
            ["kurabe", "run", "session", "mysql://bob:hunter2@h/db", "--target=mysql://b:hunter2@h/d", "x:1"];
        let shown = without_passwords(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(shown, ["kurabe", "run", "session", "mysql://bob@h/db", "--target=mysql://b@h/d", "x:1"]);
    }
}
