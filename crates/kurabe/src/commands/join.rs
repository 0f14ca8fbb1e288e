//! Several applications of one database: the first loads the data, the others join it.

use kurabe_app::{Options, Part, Served};
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::Experiment;
use kurabe_core::page;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use serde_json::{Map, Value};
use std::cell::RefCell;

/// The maximum number of applications of one database.
const MAX: usize = 1_000;

/// Reads `--part K/N`, and checks it against `--join`.
pub(super) fn part(text: &str, join: Option<&str>) -> Result<Part> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    let Some((number, of)) = numbers.filter(|(k, n)| (1..=*n).contains(k) && *n <= MAX) else {
        return Err(Error::usage(format!("--part: '{text}' is not K/N"))
            .hint("write 1/2 for the first of two, 2/2 for the other"));
    };
    match (number, join) {
        (1, Some(_)) => Err(Error::usage("--join is not valid for the first part, which loads the data")
            .hint("add --part 2/2")),
        (2.., None) => Err(Error::usage(format!("--part {text} serves the data that the first part loaded"))
            .hint("add its URL: --join http://127.0.0.1:8080")),
        _ => Ok(Part { number, of }),
    }
}

/// The first application, which loaded the data.
pub(super) struct First {
    url: String,
    session: RefCell<Box<dyn Session>>,
}

impl First {
    /// Connects to it.
    pub(super) fn ask(text: &str) -> Result<Self> {
        let url = TargetUrl::parse(text).map_err(|error| error.context("--join"))?;
        let driver = kurabe_drivers::registry::open(&url).map_err(|error| error.context("--join"))?;
        if !driver.capabilities().is_application {
            return Err(Error::usage(format!("--join: {url} is not an application"))
                .hint("write http://127.0.0.1:8080"));
        }
        let session = driver.connect(&ConnectOptions::default()).map_err(|error| error.context("--join"))?;
        Ok(Self { url: url.to_string(), session: RefCell::new(session) })
    }

    /// Its description of an experiment.
    fn about(&self, experiment: &str) -> Result<Map<String, Value>> {
        let body = page::get(&mut **self.session.borrow_mut(), &format!("/{experiment}"))
            .map_err(|error| error.context(&self.url).context("--join"))?;
        serde_json::from_slice(&body)
            .map_err(|_| Error::usage(format!("--join: {} does not describe {experiment}", self.url)))
    }

    /// The seed of its data, from its description of one of these experiments.
    pub(super) fn seed(&self, experiments: &[&'static Experiment]) -> Result<u64> {
        for experiment in experiments {
            let about = self.about(experiment.info.name);
            if let Some(seed) = about.ok().and_then(|about| about.get("seed").and_then(Value::as_u64)) {
                return Ok(seed);
            }
        }
        Err(Error::usage(format!("--join: {} does not report the seed of its data", self.url))
            .hint("check that it is kurabe up app with the same experiments, or give both the same --seed"))
    }

    /// Checks that both applications serve the same data, with distinct clients.
    pub(super) fn agrees(&self, options: &Options, served: &[Served]) -> Result<()> {
        for served in served {
            let about = self.about(served.name)?;
            let of_ours = [
                ("parts", options.part.of as u64, "give both the same N in --part K/N"),
                (
                    "session_slots",
                    options.session_slots() as u64,
                    "give both the same --workers, --connection and --pool",
                ),
            ];
            let of_data = &served.pages.facts;
            let of_data =
                of_data.iter().map(|(name, n)| (*name, *n, "give both the same --records, --seed and --set"));
            for (name, ours, hint) in of_ours.into_iter().chain(of_data) {
                let theirs = about.get(name).and_then(Value::as_u64);
                if theirs != Some(ours) {
                    let theirs = theirs.map_or_else(|| "not known".to_owned(), |n| n.to_string());
                    return Err(Error::usage(format!(
                        "--join: {} of {} is {theirs} at {} and {ours} here",
                        name, served.name, self.url
                    ))
                    .hint(hint));
                }
            }
            if about.get("part").and_then(Value::as_u64) != Some(1) {
                return Err(Error::usage(format!("--join: {} is not the first part", self.url)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_has_valid_range_and_only_first_loads() {
        assert_eq!(part("1/1", None).unwrap(), Part::WHOLE);
        assert_eq!(part("1/2", None).unwrap(), Part { number: 1, of: 2 });
        assert_eq!(part("2/2", Some("http://a")).unwrap(), Part { number: 2, of: 2 });
        for (text, join) in [
            ("2/2", None),
            ("1/2", Some("http://a")),
            ("3/2", Some("x")),
            ("0/2", None),
            ("2", None),
            ("a/b", None),
            ("1/1001", None),
        ] {
            assert!(part(text, join).unwrap_err().to_string().starts_with("--"), "{text}");
        }
    }
}
