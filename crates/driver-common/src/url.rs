//! What several engines read from URLs in the same way.

use crate::prelude::*;
use crate::wire::Place;
use std::str::FromStr;

/// An option that is true or false.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) for any other value.
pub fn truth(url: &TargetUrl, name: &str) -> Result<Option<bool>> {
    let wrong = |text: &str| {
        let error = url.wrong(format!("{name}={text} is neither true nor false"));
        error.hint("one of: false, true")
    };
    url.option(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

/// An option that is a number.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) for what is none of this type.
pub fn number<T: FromStr>(url: &TargetUrl, name: &str) -> Result<Option<T>> {
    let wrong = |text: &str| url.wrong(format!("{name}={text} is no such number"));
    url.option(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

/// The first of Kurabe's own options of TLS that a URL has; `theirs` is one of the engine's client that it has.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if it has both.
pub fn own_tls_option(url: &TargetUrl, theirs: Option<&str>) -> Result<Option<&'static str>> {
    let own = ["tls", "ca", "cert", "key"].into_iter().find(|name| url.option(name).is_some());
    match (own, theirs) {
        (Some(own), Some(theirs)) => {
            Err(url.wrong(format!("{own}= and {theirs}= both set TLS")).hint("remove one"))
        }
        _ => Ok(own),
    }
}

/// The parts of `host:port` or `[address]:port`, of which the port may be missing; `None` if a bracket is not closed.
pub fn host_and_port(text: &str) -> Option<(&str, Option<&str>)> {
    let Some(rest) = text.strip_prefix('[') else {
        return Some(text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))));
    };
    match rest.split_once(']')? {
        (host, "") => Some((host, None)),
        (host, after) => Some((host, Some(after.strip_prefix(':')?))),
    }
}

/// The place that `host:port` names; `port`: where none is named. `None` if it is no host or no port.
pub fn place(text: &str, port: u16) -> Option<Place> {
    let (host, named) = host_and_port(text)?;
    let port = named.map_or(Some(port), |named| named.parse().ok().filter(|port| *port != 0))?;
    (!host.is_empty()).then(|| Place::Tcp { host: host.to_owned(), port })
}
