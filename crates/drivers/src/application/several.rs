//! Several applications in front of one database: their addresses, and whether they serve the same data.

use super::facts::Reported;
use crate::prelude::*;
use crate::url::place;
use crate::wire::Place;
use kurabe_core::observation::Member;
use serde_json::Value;

/// Members of the description that are equal if applications serve the same data.
const ALIKE: [&str; 6] = ["engine", "seed", "records", "codes", "codes_digest", "inputs"];

/// Parses `host`, or `host:port,host:port`; `usual` is the default port.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if an address is invalid or a duplicate.
pub(super) fn places(host: &str, port: Option<u16>, usual: u16) -> Result<Vec<Place>> {
    if !host.contains(',') {
        return Ok(vec![Place::Tcp { host: host.to_owned(), port: port.unwrap_or(usual) }]);
    }
    let mut places = Vec::new();
    for text in host.split(',') {
        let place = place(text, usual).ok_or_else(|| {
            Error::usage(format!("http: '{text}' is not a host and port"))
                .hint("write http://127.0.0.1:8080,127.0.0.1:8081")
        })?;
        if places.contains(&place) {
            return Err(Error::usage(format!("http: {place} is named twice")));
        }
        places.push(place);
    }
    Ok(places)
}

/// Checks that all applications serve the same data: a write through one must be visible through the others.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the difference.
pub(super) fn agree(reported: &[Reported]) -> Result<()> {
    let Some((first, others)) = reported.split_first() else { return Ok(()) };
    for other in others {
        if let Some(name) = ALIKE.into_iter().find(|name| first.get(*name) != other.get(*name)) {
            let shown = |reported: &Reported| {
                reported.get(name).map_or_else(|| "nothing".to_owned(), Value::to_string)
            };
            let (a, b) = (shown(first), shown(other));
            return Err(Error::usage(format!(
                "http: these applications serve different data: '{name}' is {a} and {b}"
            ))
            .hint(
                "start the second on the first one's data: kurabe up app TARGET --part 2/2 --join http://…",
            ));
        }
    }
    Ok(())
}

/// The endpoint of the application's database, as reported; `None` if it runs within the application.
pub(super) fn database(reported: &Reported) -> Option<Endpoint> {
    let at = match reported.get("database") {
        Some(Value::Object(at)) => at,
        Some(Value::String(word)) if word == "in-process" => return None,
        _ => {
            return Some(Endpoint::Elsewhere(
                "the application does not say where its database listens".to_owned(),
            ));
        }
    };
    if let Some(path) = at.get("socket").and_then(Value::as_str) {
        return Some(Endpoint::Unix(path.into()));
    }
    let host = at.get("host").and_then(Value::as_str);
    let port = at.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    Some(host.zip(port).map_or_else(
        || Endpoint::Elsewhere("the application's database is on another machine".to_owned()),
        |(host, port)| Endpoint::Tcp { host: host.to_owned(), port },
    ))
}

/// The Unix sockets at which further processes of an application listen, such as php-fpm's behind nginx, as reported.
/// They use CPU for it as the one does to which clients connect.
pub(super) fn backends(reported: &Reported) -> Vec<Endpoint> {
    let all = reported.get("backends").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|at| Some(Endpoint::Unix(at.get("socket")?.as_str()?.into()))).collect()
}

/// An application with its further endpoints; the first is the one that clients connect to.
pub(super) fn whole(front: Endpoint, backends: &[Endpoint]) -> Endpoint {
    if backends.is_empty() {
        return front;
    }
    let all = std::iter::once(front).chain(backends.iter().cloned());
    Endpoint::Composite(all.map(|endpoint| Member { endpoint, tier: None }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(json: &str) -> Reported {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn applications_with_different_data_are_refused() {
        let one = r#"{"engine": "MySQL", "seed": 1, "records": 10, "workers": 4}"#;
        agree(&[reported(one), reported(&one.replace('4', "8"))]).unwrap();
        for other in ["\"seed\": 2", "\"seed\": null"] {
            let error = agree(&[reported(one), reported(&one.replace("\"seed\": 1", other))])
                .unwrap_err()
                .to_string();
            assert!(error.contains("'seed' is 1 and") && error.contains("--join"), "{error}");
        }
    }

    #[test]
    fn database_endpoint_is_the_reported_one() {
        let tcp = Endpoint::Tcp { host: "127.0.0.1".into(), port: 33_06 };
        assert_eq!(database(&reported(r#"{"database": {"host": "127.0.0.1", "port": 3306}}"#)), Some(tcp));
        assert_eq!(
            database(&reported(r#"{"database": {"socket": "/run/x"}}"#)),
            Some(Endpoint::Unix("/run/x".into()))
        );
        assert_eq!(database(&reported(r#"{"database": "in-process"}"#)), None);
        for silent in [
            "{}",
            r#"{"database": null}"#,
            r#"{"database": {}}"#,
            r#"{"database": {"host": "a", "port": 99999}}"#,
        ] {
            assert!(matches!(database(&reported(silent)), Some(Endpoint::Elsewhere(_))), "{silent}");
        }
    }

    #[test]
    fn backends_are_observed_with_their_application() {
        let front = Endpoint::Tcp { host: "127.0.0.1".into(), port: 8080 };
        let found = backends(&reported(r#"{"backends": [{"socket": "/run/php.sock"}, {"port": 1}, 7]}"#));
        assert_eq!(found, [Endpoint::Unix("/run/php.sock".into())]);
        let Endpoint::Composite(members) = whole(front.clone(), &found) else { panic!("it is one endpoint") };
        assert_eq!((members.len(), &members[0].endpoint), (2, &front));
        assert_eq!(whole(front.clone(), &backends(&reported("{}"))), front);
    }
}
