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
pub(crate) fn parse_requests(info: &ExperimentInfo, text: &str) -> Result<BTreeMap<String, u64>> {
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
pub(crate) fn time(name: &str, text: &str) -> Result<Duration> {
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

pub(crate) fn arrivals(name: &str) -> Result<Arrivals> {
    Arrivals::ALL.into_iter().find(|arrivals| arrivals.name() == name).ok_or_else(|| {
        Error::usage(format!("--arrivals: unknown value '{name}'"))
            .hint(format!("one of: {}", Arrivals::ALL.map(Arrivals::name).join(", ")))
    })
}

pub(crate) fn known(name: &str, names: &[&str], what: &str) -> Result<()> {
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

/// Reads `5%`, `5 %`, `5` or `0.05` as 0.05. A number without a unit is in per cent from 1 on, as `--budget 5` is in
/// seconds.
pub(crate) fn percentage(text: &str) -> Result<f64> {
    let number = text.trim().strip_suffix('%').map_or(text, str::trim).trim();
    let in_percent = text.contains('%');
    match number
        .parse::<f64>()
        .map(|number| if in_percent || number >= 1.0 { number / 100.0 } else { number })
    {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(Error::usage(format!("'{text}' is not a margin")).hint("from 0.1% to 100%, such as 5%")),
    }
}

/// Reads labels: `rack=a,zone=b`.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if one has no name, or comes twice.
pub(crate) fn agent_labels(text: &str) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for part in text.split(',') {
        let label = part.split_once('=').filter(|(name, _)| !name.trim().is_empty());
        let Some((name, value)) = label else {
            return Err(
                Error::usage(format!("'{part}' is not a label")).hint("write NAME=VALUE, as in rack=a")
            );
        };
        if all.insert(name.trim().to_owned(), value.trim().to_owned()).is_some() {
            return Err(Error::usage(format!("the label {} is given twice", name.trim())));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_shares_or_percentages() {
        for text in ["5%", "5 %", "5", "0.05", " 5.0% "] {
            assert_eq!(percentage(text), Ok(0.05), "{text}");
        }
        assert_eq!((percentage("1"), percentage("0.5%")), (Ok(0.01), Ok(0.005)));
        for text in ["", "5 percent", "-1%", "-5", "0", "101%", "101", "NaN", "inf%"] {
            assert!(percentage(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_have_names_and_values() {
        let found = agent_labels("rack=a, zone = b").unwrap();
        assert_eq!(
            found.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>(),
            ["rack:a", "zone:b"]
        );
        for wrong in ["", "rack", "=a", "rack=a,rack=b"] {
            assert!(agent_labels(wrong).is_err(), "{wrong}");
        }
    }
}
