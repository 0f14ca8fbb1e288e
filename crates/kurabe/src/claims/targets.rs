//! Which of a claim's targets are here: the throwaway servers that can be started, and the servers that the user gives.

use kurabe_core::Result;
use kurabe_core::target::TargetUrl;
use kurabe_report::claim::{Part, Side, Test};
use kurabe_targets::{DB, STACK, UP, engine};

/// A claim's targets and tests, as far as they can be tested here.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// The targets of the run, with passwords.
    pub(crate) urls: Vec<String>,
    /// The tests that can be made, which refer to `urls`.
    pub(crate) tests: Vec<Test>,
    /// The tests that cannot be made, with the reasons.
    pub(crate) lacking: Vec<Part>,
}

/// A target that a claim names: its URL here, or why there is none.
type Found = std::result::Result<String, String>;

/// Finds a claim's targets. `given` are the targets of the user; without any, throwaway servers are started. `is_here`
/// says whether a target that nobody gave can be used, or why not.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if a URL is wrong.
pub(crate) fn resolve(
    targets: &[String],
    tests: &[Test],
    given: &[String],
    is_here: &dyn Fn(&TargetUrl) -> std::result::Result<(), String>,
) -> Result<Resolved> {
    let parsed = targets.iter().map(|text| TargetUrl::parse(text)).collect::<Result<Vec<_>>>()?;
    let given =
        given.iter().map(|text| Ok((text.as_str(), TargetUrl::parse(text)?))).collect::<Result<Vec<_>>>()?;
    let found: Vec<Found> = parsed
        .iter()
        .zip(targets)
        .map(|(url, text)| {
            if given.is_empty() {
                return is_here(url).map(|()| text.clone());
            }
            let same = given.iter().find(|(_, other)| engine(other) == engine(url));
            let (text, other) = same.ok_or_else(|| format!("no target of {} was given", engine(url)))?;
            with_options(text, other, url)
        })
        .collect();
    let is_named = tests.iter().any(|test| test.subject.target.is_some());
    let mut urls: Vec<String> = Vec::new();
    // The position of each of the claim's targets among those of the run.
    let mut places: Vec<Option<usize>> = Vec::new();
    for one in &found {
        places.push(one.as_ref().ok().map(|url| {
            urls.push(url.clone());
            urls.len() - 1
        }));
    }
    // A claim about each target is also asked of servers that it does not name, unless it needs settings.
    if !is_named && parsed.iter().all(|url| url.options.is_empty()) {
        let others = given.iter().filter(|(_, url)| !parsed.iter().any(|own| engine(own) == engine(url)));
        urls.extend(others.map(|(text, _)| (*text).to_owned()));
    }
    let mut resolved = Resolved { urls, tests: Vec::new(), lacking: Vec::new() };
    if is_named {
        for test in tests {
            let sides = [Some(&test.subject), test.baseline.as_ref()];
            let sides: Vec<usize> = sides.into_iter().flatten().filter_map(|side| side.target).collect();
            let lacking = sides.iter().find_map(|at| found.get(*at)?.as_ref().err());
            let mut names: Vec<String> = sides.iter().filter_map(|at| parsed.get(*at).map(label)).collect();
            names.dedup();
            match lacking {
                Some(why) => resolved.lacking.push(Part::not_testable(names.join(" : "), test, why.as_str())),
                None => resolved.tests.push(moved(test, &places)),
            }
        }
    } else {
        resolved.tests = tests.to_vec();
        // A server that was not given is not asked for.
        if given.is_empty() {
            for (url, why) in
                parsed.iter().zip(&found).filter_map(|(url, one)| Some((url, one.as_ref().err()?)))
            {
                let test = tests.first().map(|test| Part::not_testable(label(url), test, why.as_str()));
                resolved.lacking.extend(test);
            }
        } else if resolved.urls.is_empty() {
            let first = tests.first().zip(found.iter().find_map(|one| one.as_ref().err()));
            resolved.lacking.extend(first.map(|(test, why)| Part::not_testable("", test, why.as_str())));
        }
    }
    if resolved.tests.is_empty() {
        resolved.urls.clear();
    }
    Ok(resolved)
}

/// A test whose targets have other positions.
fn moved(test: &Test, places: &[Option<usize>]) -> Test {
    let side = |side: &Side| Side {
        target: side.target.and_then(|at| places.get(at).copied().flatten()),
        axes: side.axes.clone(),
    };
    Test { subject: side(&test.subject), baseline: test.baseline.as_ref().map(side), ..test.clone() }
}

/// A claim's target in a report, without its password: `mysql engine=MyISAM`, `mysql@5.5`.
fn label(url: &TargetUrl) -> String {
    let options = url.options.iter().map(|(name, value)| format!("{name}={value}"));
    if url.scheme == STACK {
        return format!("{} on {}", url.path, engine(url));
    }
    let name = if url.scheme == UP { &url.path } else { &url.scheme };
    [name.clone()].into_iter().chain(options).collect::<Vec<_>>().join(" ")
}

/// A given target with the options of the claim's.
fn with_options(text: &str, given: &TargetUrl, own: &TargetUrl) -> Found {
    if own.scheme == STACK {
        return before(text, given, own);
    }
    let driver = kurabe_drivers::registry::find(engine(own));
    let mut text = text.to_owned();
    for (name, value) in &own.options {
        if given.options.contains_key(name) {
            continue;
        }
        let is_of_driver =
            driver.is_some_and(|driver| driver.options.iter().any(|option| option.name == name.as_str()));
        if given.scheme != UP && !is_of_driver {
            return Err(format!("it needs {} with {name}={value}, a setting of the server", engine(own)));
        }
        let sign = if text.contains('?') { '&' } else { '?' };
        text = format!("{text}{sign}{name}={value}");
    }
    Ok(text)
}

/// A claim's stack before a given database.
fn before(text: &str, given: &TargetUrl, own: &TargetUrl) -> Found {
    if given.password.as_ref().is_some_and(|password| !password.expose().is_empty()) {
        return Err("a stack's database is named without a password: set MYSQL_PWD or PGPASSWORD".to_owned());
    }
    let database = TargetUrl::parse(own.option(DB).unwrap_or_default()).map_err(|error| error.to_string())?;
    let mut url = own.clone();
    url.options.insert(DB.to_owned(), with_options(text, given, &database)?);
    Ok(url.to_string())
}

/// Whether a target can be used on this machine: a throwaway server that can be started, or an embedded database, or an
/// application stack with such a database.
pub(crate) fn on_this_machine(url: &TargetUrl) -> std::result::Result<(), String> {
    let why = |missing: kurabe_testbed::Missing| format!("{}; {}", missing.what, missing.how());
    if url.scheme == UP {
        let unknown = || Err(format!("Kurabe has no throwaway server '{}' here", url.path));
        return kurabe_testbed::installed(&url.path)
            .map_or_else(unknown, |found| found.map(drop).map_err(why));
    }
    if url.scheme == STACK {
        let stack = url.path.split('/').next().unwrap_or_default();
        if let Some(Err(missing)) = kurabe_testbed::installed_stack(stack) {
            return Err(why(missing));
        }
        let database = url.option(DB).unwrap_or_default();
        return TargetUrl::parse(database)
            .map_err(|error| error.to_string())
            .and_then(|database| on_this_machine(&database));
    }
    let form = kurabe_drivers::registry::find(&url.scheme).map(|driver| (driver.engine, driver.url));
    kurabe_drivers::registry::open(url).map(drop).map_err(|error| match form {
        Some((engine, form)) => format!("it needs {engine}, and no target of it was given: {form}"),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::metric::Unit;
    use kurabe_report::claim::Range;
    use kurabe_stats::Decision;

    fn test(sides: [Option<usize>; 2]) -> Test {
        let side = |target| Side { target, ..Side::default() };
        Test {
            operation: None,
            metric: "throughput".to_owned(),
            unit: Unit::PerSecond,
            subject: side(sides[0]),
            baseline: Some(side(sides[1])),
            claimed: Range { at_least: Some(1.0), at_most: None, tolerance: 0.0 },
        }
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    fn of(targets: &[&str], tests: &[Test], given: &[&str]) -> Resolved {
        // Only Oracle is not here.
        let is_here = |url: &TargetUrl| if engine(url) == "oracle" { Err("none".to_owned()) } else { Ok(()) };
        resolve(&texts(targets), tests, &texts(given), &is_here).unwrap()
    }

    #[test]
    fn given_server_takes_the_place_of_the_throwaway_one_with_its_options() {
        let both = [test([Some(0), Some(1)])];
        let targets = ["up:mysql", "up:mysql?charset=statement"];
        let found = of(&targets, &both, &["mysql://u:secret@h/d?tls=require"]);
        let expected =
            ["mysql://u:secret@h/d?tls=require", "mysql://u:secret@h/d?tls=require&charset=statement"];
        assert_eq!((found.urls, found.lacking), (texts(&expected), vec![]));
        // A server's own setting cannot be given to a server of the user.
        let found = of(&["up:mysql?innodb_buffer_pool_size=8M"], &[test([None, None])], &["mysql://h/d"]);
        assert!(
            found.urls.is_empty()
                && found.lacking[0].why.as_ref().unwrap().to_string().contains("innodb_buffer"),
            "{found:?}"
        );
        let found = of(&["up:mysql?innodb_buffer_pool_size=8M"], &[test([None, None])], &["up:mysql"]);
        assert_eq!(found.urls, ["up:mysql?innodb_buffer_pool_size=8M"]);
    }

    #[test]
    fn test_whose_target_is_missing_is_not_testable_and_others_are_made() {
        let tests = [test([Some(0), Some(1)]), test([Some(0), Some(2)]), test([Some(2), Some(2)])];
        let found = of(&["up:mysql", "oracle:", "up:redis"], &tests, &[]);
        assert_eq!(found.urls, ["up:mysql", "up:redis"]);
        assert_eq!((found.lacking.len(), found.lacking[0].answer), (1, Decision::NotTestable));
        let places: Vec<_> = found.tests.iter().map(|test| test.subject.target).collect();
        assert_eq!(places, [Some(0), Some(1)]);
        let found = of(&["up:mysql", "oracle:"], &tests[..1], &[]);
        assert!(found.urls.is_empty() && found.tests.is_empty() && found.lacking.len() == 1, "{found:?}");
    }

    #[test]
    fn claim_about_each_target_is_asked_of_given_ones_only() {
        let each = [test([None, None])];
        let found = of(&["up:mysql", "up:postgres"], &each, &["postgres://h/d", "up:couchdb"]);
        assert_eq!((found.urls, found.lacking), (texts(&["postgres://h/d", "up:couchdb"]), vec![]));
        let found = of(&["up:mysql", "oracle:"], &each, &[]);
        assert_eq!((found.urls.len(), found.lacking.len()), (1, 1));
    }

    #[test]
    fn message_about_a_missing_target_contains_no_password() {
        let found = of(&["oracle://u:secret@h/s"], &[test([None, None])], &[]);
        assert!(!format!("{:?}", found.lacking).contains("secret"), "{:?}", found.lacking);
    }
}
