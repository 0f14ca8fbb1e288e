//! The table of all drivers. Help, docs, the support matrix and the test matrix are generated from it.

use crate::application::facts::engine_behind;
use crate::info::{DriverInfo, ServerPlace};
use crate::prelude::*;
use crate::wire::tls::{Check, Mode, Wanted};
use kurabe_core::run::PublishingClause;
use kurabe_core::target::quoted_word;
use kurabe_core::units;
use rustls::ClientConfig;
use std::sync::Arc;

/// Generates [`DRIVERS`] and [`LEFT_OUT`] from one line per engine.
macro_rules! drivers {
    ($($feature:tt: $schemes:expr, $info:path;)*) => {
        /// The drivers that are built in, in the order in which they are listed.
        pub static DRIVERS: &[&DriverInfo] = &[
            $(#[cfg(feature = $feature)] &$info,)*
            &crate::application::INFO,
            &crate::tcp::INFO,
            &crate::null::INFO,
        ];

        /// The schemes of each engine that is not built in.
        pub static LEFT_OUT: &[&[&str]] = &[$(#[cfg(not(feature = $feature))] &$schemes,)*];

        #[cfg(test)]
        static BUILT_IN: &[(&[&str], &DriverInfo)] = &[$(#[cfg(feature = $feature)] (&$schemes, &$info),)*];
    };
}

// An engine: its Cargo feature, its schemes, its driver.
drivers! {
    "sqlite": ["sqlite"], crate::sqlite::INFO;
    "postgres": ["postgres", "postgresql"], crate::postgres::INFO;
    "mysql": ["mysql", "mariadb"], crate::mysql::INFO;
    "redis": ["redis", "valkey", "rediss", "valkeys"], crate::redis::INFO;
    "mongodb": ["mongodb", "mongodb+srv"], crate::mongodb::INFO;
    "memcached": ["memcached"], crate::memcached::INFO;
    "couchdb": ["couchdb", "couchdbs"], crate::couchdb::INFO;
    "lmdb": ["lmdb"], kurabe_lmdb::INFO;
    "oracle": ["oracle"], kurabe_oracle::INFO;
}

pub fn find(scheme: &str) -> Option<&'static DriverInfo> {
    DRIVERS.iter().copied().find(|driver| driver.schemes.contains(&scheme))
}

/// The licence clause that restricts publishing a target's results: that of its engine, or of the engine behind an
/// application.
pub fn clause(scheme: &str, facts: &ServerFacts) -> Option<PublishingClause> {
    let engine = engine_behind(&facts.engine);
    // The licence is looked up by the engine's own name.
    let own = ServerFacts { engine: engine.to_owned(), ..facts.clone() };
    // A driver may have several engines: "MySQL, MariaDB".
    let of = |driver: &&&DriverInfo| driver.engine.split(", ").any(|name| name == engine);
    let behind = || DRIVERS.iter().find(of)?.clause(&own);
    find(scheme)?.clause(facts).or_else(behind)
}

/// Every scheme, in the order of [`DRIVERS`].
pub fn schemes() -> Vec<&'static str> {
    DRIVERS.iter().flat_map(|driver| driver.schemes.iter().copied()).collect()
}

/// Creates the driver of a target. No connection is opened yet.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) for an unknown scheme or option, with the most similar known one; or the
/// driver's error for the rest of the URL.
pub fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let (driver, url) = checked(url)?;
    (driver.open)(&url)
}

/// How the driver of a target encrypts its connections; `None` if it does not.
///
/// # Errors
/// As [`open`], for what is about TLS.
pub fn tls(url: &TargetUrl) -> Result<Option<Arc<ClientConfig>>> {
    let (driver, url) = checked(url)?;
    Ok((driver.connections.mode)(&url)?.config().cloned())
}

/// The servers that a target's URL names, as its driver reaches them.
///
/// # Errors
/// As [`open`], for what is about the place of the server.
pub fn servers(url: &TargetUrl) -> Result<Vec<ServerPlace>> {
    let (driver, url) = checked(url)?;
    (driver.connections.servers)(&url)
}

/// The driver of a target, and its URL with Kurabe's own options, all of which it knows.
fn checked(url: &TargetUrl) -> Result<(&'static DriverInfo, TargetUrl)> {
    let Some(driver) = find(&url.scheme) else {
        check_built_in(&url.scheme)?;
        let known = schemes();
        let list = format!("known: {}", known.iter().map(|s| format!("{s}:")).collect::<Vec<_>>().join(", "));
        let hint = units::nearest(&url.scheme, &known)
            .map_or_else(|| list.clone(), |near| format!("did you mean '{near}:'? ({list})"));
        let scheme = match quoted_word(&url.scheme) {
            shown if shown.is_empty() => "its scheme".to_owned(),
            _ => format!("'{}:'", url.scheme),
        };
        return Err(Error::usage(format!("no driver for {scheme}")).hint(hint));
    };
    if url.option("client").is_some() {
        return Err(url
            .wrong("has no option 'client'")
            .hint("leave it out: Kurabe's own client is the only one of an engine"));
    }
    // The drivers that know several hosts say so in the form of their URLs.
    let takes_several = driver.url.contains("[,") || driver.url.starts_with("http");
    if !takes_several && url.host.as_ref().is_some_and(|host| host.contains(',')) {
        let hint = format!("name one server, or each as a target of its own: {}://host:port", url.scheme);
        return Err(url.wrong("a target is one server, and the URL names several").hint(hint));
    }
    let url = driver.own_options(url)?;
    let options: Vec<&str> = driver.options.iter().map(|option| option.name).collect();
    url.check_options(&options)?;
    Ok((driver, url))
}

/// How a connection is encrypted where the URL does not say: with a server whose certificate is of the system's authorities
/// and for the host.
///
/// # Errors
/// If the system has no authorities.
pub fn strict_tls() -> Result<Arc<ClientConfig>> {
    let wanted = Wanted { check: Check::Host, ca: None, crl: None, identity: None };
    let mode = Mode::on(wanted)?;
    mode.config().cloned().ok_or_else(|| Error::new(ErrorKind::Internal, "TLS is off"))
}

/// What of a target's URL names a file, a folder or a socket of the client's machine, besides the database itself; `None` if
/// nothing does.
pub fn named_file(url: &TargetUrl) -> Option<String> {
    let driver = find(&url.scheme)?;
    let own = driver.own_options(url).ok()?;
    // A host with a slash is a Unix socket, also among several hosts.
    let is_file = |name: &str, value: &str| match (name, value) {
        ("sslrootcert", "system") => false,
        ("host", hosts) => hosts.contains('/'),
        _ => driver.options.iter().any(|option| option.is_file && option.name == name),
    };
    let option = own.options.iter().find(|(name, value)| is_file(name, value));
    option.map(|(name, value)| format!("{name}={value}")).or(own.host.filter(|hosts| hosts.contains('/')))
}

/// Returns an error if a scheme's engine is not built into this program.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage), with how to build it in.
pub fn check_built_in(scheme: &str) -> Result<()> {
    check_not_among(LEFT_OUT, scheme)
}

fn check_not_among(left_out: &[&[&str]], scheme: &str) -> Result<()> {
    if left_out.iter().all(|schemes| !schemes.contains(&scheme)) {
        return Ok(());
    }
    Err(Error::not_built_in(format!("the driver for '{scheme}:'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::FULL_BUILD;

    fn refused(url: &str) -> String {
        open(&TargetUrl::parse(url).unwrap()).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn misspelt_scheme_or_option_gets_a_suggestion() {
        let error = refused("postgers://db/shop");
        assert!(error.contains("did you mean 'postgres:'?") && error.contains("memcached:"), "{error}");
        let error = refused("sqlserver://db");
        assert!(error.contains("known: sqlite:"), "{error}");
        let error = refused("sqlite:?sychronous=off");
        assert!(error.contains("did you mean 'synchronous'?"), "{error}");
        for scheme in ["memcached", "redis", "mysql", "couchdb", "tcp"] {
            let error = refused(&format!("{scheme}://a:1,b:2/0"));
            assert!(error.contains("names several") && error.contains("one server"), "{scheme}: {error}");
        }
        let error = refused("sqlite:?client=driver");
        assert!(error.contains("no option 'client'") && error.contains("is the only one"), "{error}");
    }

    #[test]
    fn files_and_sockets_in_a_url_are_found() {
        let named = |text: &str| named_file(&TargetUrl::parse(text).unwrap());
        for (text, file) in [
            ("postgres://u@h/d?tls=verify&ca=/x", "ca=/x"),
            ("postgres://u@h/d?sslmode=verify-full&sslrootcert=/x", "sslrootcert=/x"),
            ("postgres://u@/d?host=h,/run/postgresql", "host=h,/run/postgresql"),
            ("postgres://u@h:1,%2Frun%2Fpostgresql:5432/d", "h:1,/run/postgresql:5432"),
            ("mysql://h/d?server_public_key_path=/x", "server_public_key_path=/x"),
            ("mysql://h/d?ssl-ca=/x", "ssl-ca=/x"),
            ("mongodb://h/?tlsCAFile=/x", "tlsCAFile=/x"),
            ("redis://h?socket=/x", "socket=/x"),
            ("couchdbs://h?cert=/x", "cert=/x"),
        ] {
            assert_eq!(named(text).as_deref(), Some(file), "{text}");
        }
        for text in [
            "postgres://u@h1:1,h2:2/d?sslmode=verify-full&sslrootcert=system",
            "postgres://u@/d?host=h&options=-c%20a=/x",
            "mysql://h/d?tls=verify",
            "redis://h/1",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
        // Whatever is described as a file is one.
        for option in DRIVERS.iter().flat_map(|driver| driver.options) {
            let says_so = ["file of ", "path of ", "folder of ", "Unix socket", "(PEM)"];
            let says_so = says_so.iter().any(|words| option.help.contains(words)) && option.name != "host";
            assert!(!says_so || option.is_file, "{}", option.name);
        }
    }

    #[test]
    fn scheme_of_an_engine_that_is_not_built_in_is_refused_with_the_command_that_builds_it() {
        let left_out: &[&[&str]] = &[&["mysql", "mariadb"], &["redis"]];
        let error = check_not_among(left_out, "mariadb").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let text = error.to_string();
        assert!(text.contains("'mariadb:'") && text.contains(FULL_BUILD), "{text}");
        assert_eq!(check_not_among(left_out, "sqlite"), Ok(()));
    }

    #[test]
    fn options_of_other_clients_are_taken_where_their_meaning_is_known() {
        let own = |url: &str| {
            let url = TargetUrl::parse(url).unwrap();
            find(&url.scheme).unwrap().own_options(&url).map(|url| url.to_string())
        };
        for (url, expected) in [
            ("postgres://h/d?pgbouncer=true&connection_limit=1", "postgres://h/d"),
            ("postgres://h/d?sslmode=no-verify", "postgres://h/d?tls=require"),
            (
                "postgres://h/d?sslmode=verify-full&schema=a",
                "postgres://h/d?search_path=a&sslmode=verify-full",
            ),
            ("mysql://h/d?ssl-mode=REQUIRED", "mysql://h/d?ssl-mode=REQUIRED"),
            ("mysql://h/d?sslMode=VERIFY_CA&ssl_ca=/c", "mysql://h/d?ssl-ca=/c&ssl-mode=VERIFY_CA"),
            ("mysql://h/d?ssl=%7B%22rejectUnauthorized%22:true%7D", "mysql://h/d?tls=verify"),
            ("mysql://h/d?tls=skip-verify&parseTime=true", "mysql://h/d?tls=require"),
            ("mysql://h/d?tls=require", "mysql://h/d?tls=require"),
            ("rediss://h?ssl_cert_reqs=CERT_NONE", "rediss://h?tls=require"),
        ] {
            assert_eq!(own(url).unwrap(), expected, "{url}");
        }
        for (url, part) in [
            ("postgres://h/d?sslaccept=lax", "one of: strict, accept_invalid_certs"),
            ("postgres://h/d?ssl=true", "sslmode=verify-full"),
            ("postgres://h/d?schema=a&search_path=b", "contradict"),
            ("postgres://h/d?sslmod=require", "did you mean 'sslmode'?"),
            ("mysql://h/d?sslMode=REQUIRED&ssl-mode=DISABLED", "contradict"),
        ] {
            assert!(refused(url).contains(part), "{url}: {}", refused(url));
        }
        for driver in DRIVERS {
            let own: Vec<&str> = driver.options.iter().map(|option| option.name).collect();
            for row in driver.connections.foreign {
                if let crate::info::Meaning::Is(option, _) = row.meaning {
                    assert!(own.contains(&option), "{}: {option}", row.name);
                }
            }
        }
    }

    #[test]
    fn no_scheme_has_two_drivers_and_no_text_is_missing() {
        let mut all = schemes();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
        for (schemes, driver) in BUILT_IN {
            assert_eq!(*schemes, driver.schemes);
        }
        for driver in DRIVERS {
            assert!(
                !driver.about.is_empty() && driver.url.starts_with(driver.schemes[0]),
                "{}",
                driver.engine
            );
            assert!(driver.options.iter().all(|option| !option.help.is_empty()), "{}", driver.engine);
        }
    }

    #[test]
    fn every_clause_names_its_licence_its_restriction_and_a_source() {
        for driver in DRIVERS {
            let Some(clause) = &driver.benchmark_clause else { continue };
            assert!(!clause.name.is_empty() && !clause.says.is_empty(), "{}", driver.engine);
            assert!(clause.source.starts_with("https://"), "{}", driver.engine);
            // A clause is shown as part of a sentence.
            assert!(!clause.says.ends_with('.'), "{}", driver.engine);
        }
    }
}
