//! Conversion of the user's texts, from the command line or a suite file, to values.

use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::Arrivals;
use kurabe_core::{Error, Result, units};
use std::collections::BTreeMap;
use std::time::Duration;
use toml::Value;

/// The targets of a text: `stack:php/mysqli,stack:php/pdo` are two, `http://a:1,http://b:2` are several applications of
/// one database and one target: `http://a:1,b:2`.
pub(crate) fn split_targets(text: &str) -> Result<Vec<String>> {
    match text.strip_prefix("stack:") {
        Some(rest) => Ok(rest.split(",stack:").map(|one| format!("stack:{one}")).collect()),
        None => one_target(text).map(|one| vec![one]),
    }
}

/// Converts `http://a:1,http://b:2`, several applications of one database, to one target: `http://a:1,b:2`.
fn one_target(text: &str) -> Result<String> {
    let of_scheme = |scheme: &'static str| Some((scheme, text.strip_prefix(scheme)?));
    let Some((scheme, rest)) = ["http://", "https://"].into_iter().find_map(of_scheme) else {
        return Ok(text.to_owned());
    };
    let split = |part: &'_ str| {
        let (host, path) = part.split_once('/').unwrap_or((part, ""));
        (host.to_owned(), path.trim_matches('/').to_owned())
    };
    let parts: Vec<(String, String)> = rest.split(&format!(",{scheme}")).map(split).collect();
    let [(_, path), others @ ..] = parts.as_slice() else { return Ok(text.to_owned()) };
    if others.is_empty() {
        return Ok(text.to_owned());
    }
    if others.iter().any(|(_, other)| other != path) {
        return Err(Error::usage("several applications of one database need the same path")
            .hint("write http://host:port,http://host:port"));
    }
    let hosts: Vec<&str> = parts.iter().map(|(host, _)| host.as_str()).collect();
    Ok(format!("{scheme}{}/{path}", hosts.join(",")).trim_end_matches('/').to_owned())
}

/// `5000` for every operation, or `write=1000,read=10000`.
pub(super) fn parse_requests(info: &ExperimentInfo, text: &str) -> Result<BTreeMap<String, u64>> {
    let names: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    let number = |text: &str| match units::parse_count(text)? {
        0 => Err(Error::usage("the number of requests is 0").hint("use at least 1")),
        n => Ok(n),
    };
    if !text.contains('=') {
        let n = number(text)?;
        return Ok(names.iter().map(|name| ((*name).to_owned(), n)).collect());
    }
    text.split(',')
        .map(|part| {
            let (name, n) = part.split_once('=').ok_or_else(|| {
                Error::usage(format!("'{part}' is not operation=N"))
                    .hint(format!("operations: {}", names.join(", ")))
            })?;
            known(name.trim(), &names, "operation")?;
            Ok((name.trim().to_owned(), number(n)?))
        })
        .collect()
}

/// A time. Without a unit it is in seconds, unless milliseconds are as likely.
pub(super) fn time(name: &str, text: &str) -> Result<Duration> {
    let time = units::parse_duration(text)?;
    let plain = text.trim().ends_with(|c: char| c.is_ascii_digit());
    let doubtful = match name {
        "slo" => plain,
        "duration" => plain && time >= Duration::from_secs(100),
        _ => false,
    };
    if doubtful {
        let text = text.trim();
        return Err(Error::usage(format!("'{text}' has no unit")).hint(format!("write {text}ms or {text}s")));
    }
    Ok(time)
}

pub(super) fn arrivals(name: &str) -> Result<Arrivals> {
    Arrivals::ALL.into_iter().find(|arrivals| arrivals.name() == name).ok_or_else(|| {
        Error::usage(format!("--arrivals: unknown value '{name}'"))
            .hint(format!("one of: {}", Arrivals::ALL.map(Arrivals::name).join(", ")))
    })
}

pub(super) fn known(name: &str, names: &[&str], what: &str) -> Result<()> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(Error::usage(format!("unknown {what} '{name}'")).hint(units::suggestion(name, names, "there are")))
}

pub(crate) fn word(value: &Value, key: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(n) => Ok(n.to_string()),
        Value::Float(n) => Ok(n.to_string()),
        _ => Err(Error::usage(format!("'{key}' is neither a string nor a number"))),
    }
}

pub(crate) fn words(value: &Value, key: &str) -> Result<Vec<String>> {
    match value {
        Value::Array(values) => values.iter().map(|value| word(value, key)).collect(),
        single => Ok(vec![word(single, key)?]),
    }
}
