//! What the URL of a stack names: `stack:php/mysqli?db=up:mysql`.

use crate::urls::{DB, STACK, check_server, engine};
use kurabe_core::target::{TargetUrl, quoted_word};
use kurabe_core::{Error, Result, units};
use kurabe_testbed::Variant;

/// The default number of workers of a stack, and the option that sets it.
const WORKERS: (&str, u64) = ("workers", 16);
/// The option of PHP under php-fpm after how many requests a process ends and another one takes its place.
const REQUESTS: &str = "requests";
/// Connections of a worker: the one that it holds, and a new one for a page.
const OF_A_WORKER: u64 = 2;

/// What a URL names.
pub(crate) struct StackSpec {
    pub(super) stack: String,
    pub(super) variant: &'static Variant,
    pub(crate) database: TargetUrl,
    pub(super) settings: Vec<(String, String)>,
}

impl StackSpec {
    /// Reads `stack:NAME[/VARIANT]?db=URL`.
    pub(crate) fn of(url: &TargetUrl) -> Result<Self> {
        let (stack, variant) = url.path.split_once('/').unwrap_or((&url.path, ""));
        let known: Vec<&str> = kurabe_testbed::stacks().collect();
        let Some(variants) = kurabe_testbed::variants(stack) else {
            let error = Error::usage(format!("stack: there is no stack{}", quoted_word(stack)));
            return Err(error.hint(units::suggestion(stack, &known, "there are")));
        };
        let database = url.option(DB).filter(|text| !text.is_empty()).ok_or_else(|| {
            Error::usage(format!("stack:{} has no database", url.path)).hint("add one: --db up:mysql")
        })?;
        let database = without_password(database, "db")?;
        check_scheme(&database).map_err(|error| error.context("db"))?;
        let kind = kind(&database);
        let able = |variant: &&Variant| variant.databases.contains(&kind);
        let names = |variants: &[&Variant]| variants.iter().map(|variant| variant.name).collect::<Vec<_>>();
        let of_database: Vec<&Variant> = variants.iter().filter(able).collect();
        // php-fpm is the only way in which PHP is run.
        let short = variant.strip_prefix("fpm-").unwrap_or(variant);
        let found = if short.is_empty() {
            of_database.first().copied()
        } else {
            let unknown = || {
                let all: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
                Error::usage(format!("stack:{stack} has no variant{}", quoted_word(short)))
                    .hint(units::suggestion(short, &all, "there are"))
            };
            let chosen = variants.iter().find(|variant| variant.name == short).ok_or_else(unknown)?;
            Some(chosen).filter(able)
        };
        let variant = found.ok_or_else(|| {
            let hint = match names(&of_database)[..] {
                [] => {
                    let mut all: Vec<&str> =
                        variants.iter().flat_map(|variant| variant.databases).copied().collect();
                    all.sort_unstable();
                    all.dedup();
                    format!("its variants use {}", all.join(", "))
                }
                ref some => format!("for {kind} there are: {}", some.join(", ")),
            };
            Error::unsupported(format!("stack:{} cannot use {kind}", url.path)).hint(hint)
        })?;
        let settings: Vec<(String, String)> =
            url.options.iter().filter(|(name, _)| *name != DB).map(|(k, v)| (k.clone(), v.clone())).collect();
        for (name, value) in &settings {
            let most = match name.as_str() {
                name if name == WORKERS.0 => 1_000,
                REQUESTS if stack == "php" => u64::from(u32::MAX),
                _ => {
                    let known = if stack == "php" { format!(", {REQUESTS}") } else { String::new() };
                    let hint = format!("known: {DB}, {}{known}", WORKERS.0);
                    return Err(url.wrong(format!("has no option{}", quoted_word(name))).hint(hint));
                }
            };
            if !value.parse().is_ok_and(|n: u64| (1..=most).contains(&n)) {
                let hint = format!("from 1 to {}", units::count(most));
                return Err(url.wrong(format!("{name}={value} is out of range")).hint(hint));
            }
        }
        Ok(Self { stack: stack.to_owned(), variant, database, settings })
    }

    pub(super) fn workers(&self) -> u64 {
        let given = self.settings.iter().find(|(name, _)| name == WORKERS.0);
        given.and_then(|(_, value)| value.parse().ok()).unwrap_or(WORKERS.1)
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        format!("{STACK}:{}/{}", self.stack, self.variant.name)
    }
}

/// Rejects unknown schemes before any server is started.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage), with the most similar known name.
pub fn check_scheme(url: &TargetUrl) -> Result<()> {
    if url.scheme == STACK { StackSpec::of(url).map(drop) } else { check_server(url) }
}

/// The engine of a database, as variants name it.
pub(super) fn kind(database: &TargetUrl) -> &str {
    match engine(database) {
        "postgresql" => "postgres",
        other => other,
    }
}

/// The URL of a database that `option` names, which must have no password.
fn without_password(database: &str, option: &str) -> Result<TargetUrl> {
    let url = TargetUrl::parse(database).map_err(|error| error.context(option))?;
    if url.password.as_ref().is_some_and(|password| !password.expose().is_empty()) {
        return Err(Error::usage(format!("{option}: a password would be recorded with the stack"))
            .hint("leave it out, and set MYSQL_PWD or PGPASSWORD"));
    }
    Ok(url)
}

/// The connections that the stacks among these targets need together.
pub(crate) fn connections(urls: &[TargetUrl]) -> u64 {
    let stacks = urls.iter().filter(|url| url.scheme == STACK).filter_map(|url| StackSpec::of(url).ok());
    stacks.map(|asked| OF_A_WORKER * asked.workers()).sum()
}

/// Adds the database to a stack's URL that names none; other targets stay.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) if either is not a URL.
pub fn with_database(text: &str, database: &str) -> Result<String> {
    let mut url = TargetUrl::parse(text)?;
    if url.scheme != STACK {
        return Ok(text.to_owned());
    }
    without_password(database, "--db")?;
    url.options.entry(DB.to_owned()).or_insert_with(|| database.to_owned());
    Ok(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Result<StackSpec> {
        StackSpec::of(&TargetUrl::parse(url).unwrap())
    }

    #[test]
    fn variant_fits_the_database_and_defaults_to_the_first_that_does() {
        for (url, name) in [
            ("stack:php?db=up:mysql", "stack:php/mysqli"),
            ("stack:php?db=postgres://a@h/d", "stack:php/pdo"),
            ("stack:php/pg-persistent?db=up:postgres", "stack:php/pg-persistent"),
            ("stack:php/fpm-pdo-persistent?db=up:mariadb", "stack:php/pdo-persistent"),
            ("stack:java/hikari?db=up:mysql&workers=4", "stack:java/hikari"),
            ("stack:php/mysqli?db=up:mysql@5.5", "stack:php/mysqli"),
        ] {
            assert_eq!(asked(url).unwrap().name(), name, "{url}");
        }
        for (url, part) in [
            (
                "stack:php/mysqli?db=up:postgres",
                "for postgres there are: pdo, pdo-persistent, pg, pg-persistent",
            ),
            ("stack:php/mysql?db=up:mysql", "did you mean"),
            ("stack:phq?db=up:mysql", "no stack 'phq'"),
            ("stack:php/mysqli", "--db up:mysql"),
            ("stack:php?db=up:redis", "cannot use redis"),
            ("stack:php?db=up:mysql&worker=4", "no option 'worker'"),
            ("stack:php?db=up:mysql&workers=0", "out of range"),
            ("stack:php?db=up:mysql&requests=0", "out of range"),
            ("stack:java?db=up:mysql&requests=1", "has no option 'requests'"),
            ("stack:php?db=mysql://a:hunter2@h/d", "MYSQL_PWD"),
        ] {
            let error = asked(url).err().unwrap().to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn database_is_added_to_stacks_only() {
        let added = with_database("stack:php/mysqli", "mysql://a@h/d?tls=off").unwrap();
        assert_eq!(asked(&added).unwrap().database.to_string(), "mysql://a@h/d?tls=off");
        assert_eq!(with_database("stack:php", "up:mysql@5.5").unwrap(), "stack:php?db=up:mysql%405.5");
        assert_eq!(with_database("http://a:1", "up:mysql").unwrap(), "http://a:1");
        assert_eq!(with_database("stack:php?db=up:mariadb", "up:mysql").unwrap(), "stack:php?db=up:mariadb");
        assert!(with_database("stack:php", "mysql://a:hunter2@h/d").is_err());
    }
}
