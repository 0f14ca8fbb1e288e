//! Application stacks as targets: `stack:php/mysqli?db=up:mysql`. The database is opened once for all stacks that name it;
//! each stack has tables of its own there, which are loaded here, as `kurabe up app` loads its tables.

use crate::throwaway::{asks_for_tls, not_started};
use crate::{OpenOptions, Opened, Reporter, UP, engine, open_one, start_error, with_server_affinity};
use kurabe_core::driver::Driver;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Before, Dataset, Experiment};
use kurabe_core::operation::Operation;
use kurabe_core::planned::Work;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::Target;
use kurabe_experiments::registry;
use kurabe_testbed::{Application, Database, Server, StartOptions, Variant};
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The scheme of an application stack: `stack:php/mysqli`.
pub const STACK: &str = "stack";
/// The option that names the database: `stack:php/mysqli?db=up:mysql`.
pub const DB: &str = "db";
/// The experiments that stacks serve.
pub const SERVED: [&str; 3] = ["kv", "connect", "webapp"];
/// The default number of workers of a stack, and the option that sets it.
const WORKERS: (&str, u64) = ("workers", 16);
/// The option of PHP under php-fpm after how many requests a process ends and another one takes its place.
const REQUESTS: &str = "requests";
/// Connections of a worker: the one that it holds, and a new one for a page.
const OF_A_WORKER: u64 = 2;

/// The data that stacks serve.
#[derive(Clone, Debug, Default)]
pub struct StackData {
    /// The experiments. Those that stacks do not serve have no data.
    pub experiments: Vec<String>,
    /// The seed of the data.
    pub seed: u64,
    /// The number of records; `None`: the experiment's default.
    pub records: Option<u64>,
}

/// What a URL names.
pub(crate) struct StackSpec {
    stack: String,
    variant: &'static Variant,
    pub(crate) database: TargetUrl,
    settings: Vec<(String, String)>,
}

impl StackSpec {
    /// Reads `stack:NAME[/VARIANT]?db=URL`.
    pub(crate) fn of(url: &TargetUrl) -> Result<Self> {
        let (stack, variant) = url.path.split_once('/').unwrap_or((&url.path, ""));
        let known: Vec<&str> = kurabe_testbed::stacks().collect();
        let Some(variants) = kurabe_testbed::variants(stack) else {
            let error = Error::usage(format!("stack: there is no stack '{stack}'"));
            return Err(error.hint(units::suggestion(stack, &known, "there are")));
        };
        let database = url.option(DB).filter(|text| !text.is_empty()).ok_or_else(|| {
            Error::usage(format!("stack:{} has no database", url.path)).hint("add one: --db up:mysql")
        })?;
        let database = TargetUrl::parse(database).map_err(|error| error.context("db"))?;
        if database.password.as_ref().is_some_and(|password| !password.expose().is_empty()) {
            return Err(Error::usage("db: a password would be recorded with the stack")
                .hint("leave it out, and set MYSQL_PWD or PGPASSWORD"));
        }
        crate::check_scheme(&database).map_err(|error| error.context("db"))?;
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
                Error::usage(format!("stack:{stack} has no variant '{short}'"))
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
                    return Err(url.wrong(format!("has no option '{name}'")).hint(hint));
                }
            };
            if !value.parse().is_ok_and(|n: u64| (1..=most).contains(&n)) {
                let hint = format!("from 1 to {}", units::count(most));
                return Err(url.wrong(format!("{name}={value} is out of range")).hint(hint));
            }
        }
        Ok(Self { stack: stack.to_owned(), variant, database, settings })
    }

    fn workers(&self) -> u64 {
        let given = self.settings.iter().find(|(name, _)| name == WORKERS.0);
        given.and_then(|(_, value)| value.parse().ok()).unwrap_or(WORKERS.1)
    }

    /// Its name in messages.
    fn name(&self) -> String {
        format!("{STACK}:{}/{}", self.stack, self.variant.name)
    }
}

/// The engine of a database, as variants name it.
fn kind(database: &TargetUrl) -> &str {
    match engine(database) {
        "postgresql" => "postgres",
        other => other,
    }
}

/// The connections that the stacks among these targets need together.
pub(crate) fn connections(urls: &[TargetUrl]) -> u64 {
    let stacks = urls.iter().filter(|url| url.scheme == STACK).filter_map(|url| StackSpec::of(url).ok());
    stacks.map(|asked| OF_A_WORKER * asked.workers()).sum()
}

/// A database that stacks use.
pub(crate) struct StackDatabase {
    /// Its URL, as given.
    url: String,
    target: Target,
    reached: TargetUrl,
    /// The number of stacks that use it.
    stacks: usize,
}

/// A running stack, with its tables. It is dropped before its database's server.
pub(crate) struct RunningStack {
    server: Server,
    /// Dropping it removes the tables.
    fixture: Fixture,
}

impl RunningStack {
    /// Stops the application, then removes its tables.
    pub(crate) fn stop(self, reporter: &dyn Reporter) {
        if let Err(error) = self.server.stop() {
            reporter.warning(&error.to_string());
        }
        drop(self.fixture);
    }

    /// How it ended, if it ended unexpectedly.
    pub(crate) fn died(&self) -> Option<String> {
        self.server.died()
    }

    /// Waits, for a short time, for how it ended, if nothing listens at its port any more: its supervisor first ends
    /// the other processes.
    pub(crate) fn settle(&self) {
        let address = (Ipv4Addr::LOCALHOST, self.server.port());
        let until = Instant::now() + Duration::from_secs(10);
        while self.died().is_none() && Instant::now() < until && TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Opened {
    /// Starts a stack, with its database if no earlier one uses it, and returns the application's URL. `connections`: how
    /// many all stacks need.
    pub(crate) fn stack(
        &mut self,
        url: &TargetUrl,
        connections: u64,
        open_options: &OpenOptions,
        reporter: &dyn Reporter,
    ) -> Result<TargetUrl> {
        let asked = StackSpec::of(url)?;
        check_installed(&asked)?;
        let at = self.stack_database(&asked, connections, open_options, reporter)?;
        let database = &mut self.databases[at];
        let slot = database.stacks;
        database.stacks += 1;
        reporter.wait_for(format!("the data of {} to be loaded", asked.name()));
        let run = format!("stack-{}", std::process::id());
        let mut fixture =
            Fixture::open(&database.target, slot, 1, &run).map_err(|error| error.context(&database.url))?;
        // One lease is enough for all stacks on this database.
        database.target.claims = false;
        let (experiments, key_prefixes) =
            load(&database.target, &mut fixture, slot, asked.variant, &open_options.stack_data)?;
        let facts = &database.target.facts;
        let application = Application {
            database: address(&database.reached)?,
            prefix: format!("{}{slot}_", kurabe_core::collection::NAMESPACE_PREFIX),
            experiments,
            key_prefixes,
            engine: facts.engine.clone(),
            version: facts.version.clone(),
            durability: facts.durability.map(|class| DurabilityClass::name(class).to_owned()),
        };
        reporter.note(&format!("starting {} …", asked.name()));
        reporter.wait_for(format!("{} to start", asked.name()));
        let program = std::env::current_exe().map_err(|e| {
            Error::new(ErrorKind::Environment, format!("cannot find the path of this program: {e}"))
        })?;
        let mut options = StartOptions::new(program).set("variant", asked.variant.name);
        options.settings.extend(asked.settings.iter().cloned());
        options.application = Some(application);
        let started = with_server_affinity(open_options.cpu_partition.as_ref(), || {
            kurabe_testbed::start(&asked.stack, &options)
        });
        let server = started.map_err(|error| not_started(&error))?;
        let reached = TargetUrl::parse(server.url())?;
        self.stacks.push(RunningStack { server, fixture });
        Ok(reached)
    }

    /// The position of a stack's database, which is opened if no earlier stack uses it.
    fn stack_database(
        &mut self,
        asked: &StackSpec,
        connections: u64,
        open_options: &OpenOptions,
        reporter: &dyn Reporter,
    ) -> Result<usize> {
        let url = asked.database.to_string();
        if let Some(at) = self.databases.iter().position(|database| database.url == url) {
            return Ok(at);
        }
        let reached = if asked.database.scheme == UP {
            if asks_for_tls(&asked.database)? {
                return Err(Error::unsupported("a stack reaches its throwaway database without TLS")
                    .context(&url)
                    .hint("remove the option"));
            }
            reporter.wait_for(format!("a throwaway {} to start", asked.database.path));
            let server = with_server_affinity(open_options.cpu_partition.as_ref(), || {
                crate::up(&asked.database, open_options.durability, connections, reporter)
            })?;
            let reached = crate::reached(&asked.database, &server)?;
            self.servers.push(Arc::new(server));
            reached
        } else {
            asked.database.clone()
        };
        let (driver, facts, refused) =
            open_one(&reached, open_options.durability).map_err(|error| error.context(&url))?;
        if let Some(why) = refused {
            return Err(Error::unsupported(why).context(&url));
        }
        let target = Target::new(kind(&asked.database).to_owned(), driver, facts);
        self.databases.push(StackDatabase { url, target, reached, stacks: 0 });
        Ok(self.databases.len() - 1)
    }
}

/// Fails if the stack's programs are missing, before a database is started for it.
fn check_installed(asked: &StackSpec) -> Result<()> {
    let found = kurabe_testbed::available_stacks().into_iter().find(|(name, _)| *name == asked.stack);
    match found {
        Some((_, Err(missing))) => {
            let text = format!("{}: {}", asked.name(), missing.what);
            Err(start_error(ErrorKind::NotFound, &text).hint(missing.how))
        }
        _ => Ok(()),
    }
}

/// A URL like that of an application that is not started, for its driver.
pub(crate) fn not_started_url(url: &TargetUrl) -> Result<TargetUrl> {
    check_installed(&StackSpec::of(url)?)?;
    TargetUrl::parse("http://127.0.0.1:1")
}

/// Whether a stack's database is a throwaway server.
pub(crate) fn is_throwaway(url: &TargetUrl) -> Result<bool> {
    Ok(StackSpec::of(url)?.database.scheme == UP)
}

/// Loads the experiments' data, and returns what an application says of each, and the prefixes of keys by the name of
/// the collection.
fn load(
    target: &Target,
    fixture: &mut Fixture,
    slot: usize,
    variant: &Variant,
    data: &StackData,
) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let (namespace, session) = fixture.connections()?;
    let (mut all, mut key_prefixes, mut refused) = (Map::new(), Map::new(), None);
    for name in
        variant.experiments.iter().filter(|name| data.experiments.iter().any(|wanted| wanted == *name))
    {
        let experiment: &dyn Experiment = registry::find(name)?;
        let info = experiment.info();
        let dataset = Dataset { seed: data.seed, records: data.records, slot };
        let planned = experiment.plan(&info.baseline(&[])?, &dataset)?;
        if let Some(reason) = target.refusal(&planned.demand) {
            refused.get_or_insert(Error::unsupported(reason).context(info.name));
            continue;
        }
        let Work::Pages(make) = &planned.work else { continue };
        let pages = make();
        let failed = |error: Error| error.context(format!("loading the data of {name}"));
        let mut state = pages.load(&mut *namespace, &mut *session).map_err(failed)?;
        for operation in info.operations {
            let before = Before {
                operation: operation.name,
                state: &mut state,
                namespace: &mut *namespace,
                session: &mut *session,
            };
            pages.before(before).map_err(failed)?;
        }
        for collection in planned.demand.operations.iter().filter_map(Operation::collection) {
            if let Some(prefix) = namespace.key_prefix(collection).map_err(failed)? {
                key_prefixes.insert(collection.name.clone(), prefix.into());
            }
        }
        let facts = pages.facts().into_iter().map(|(name, number)| (name.to_owned(), Value::from(number)));
        all.insert((*name).to_owned(), Value::Object(facts.collect()));
    }
    if let Some(refused) = refused.filter(|_| all.is_empty()) {
        return Err(refused);
    }
    if all.is_empty() {
        let asked = data.experiments.join(", ");
        return Err(Error::unsupported(format!("variant {} does not serve {asked}", variant.name))
            .hint(format!("it serves {}", variant.experiments.join(", "))));
    }
    Ok((all, key_prefixes))
}

/// Where an application finds its database.
fn address(reached: &TargetUrl) -> Result<Database> {
    let kind = kind(reached);
    let (port, variable) = match kind {
        "postgres" => (5_432, Some("PGPASSWORD")),
        "mysql" | "mariadb" => (3_306, Some("MYSQL_PWD")),
        "mongodb" => (27_017, None),
        "memcached" => (11_211, None),
        _ => (5_984, None),
    };
    let host = reached.host.clone().filter(|_| reached.option("socket").is_none()).ok_or_else(|| {
        Error::unsupported("a stack reaches its database by TCP")
            .hint("name a host: --db mysql://127.0.0.1/shop")
    })?;
    let given = reached.password.as_ref().map(|password| password.expose().to_owned());
    Ok(Database {
        kind: kind.to_owned(),
        host,
        port: reached.port.unwrap_or(port),
        user: reached.user.clone().unwrap_or_default(),
        password: given.or_else(|| std::env::var(variable?).ok()).unwrap_or_default(),
        name: reached.path.clone(),
    })
}

/// Adds the database to a stack's URL that names none; other targets stay.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if either is not a URL.
pub fn with_database(text: &str, database: &str) -> Result<String> {
    let mut url = TargetUrl::parse(text)?;
    if url.scheme != STACK {
        return Ok(text.to_owned());
    }
    let parsed = TargetUrl::parse(database).map_err(|error| error.context("--db"))?;
    if parsed.password.as_ref().is_some_and(|password| !password.expose().is_empty()) {
        return Err(Error::usage("--db: a password would be recorded with the stack")
            .hint("leave it out, and set MYSQL_PWD or PGPASSWORD"));
    }
    url.options.entry(DB.to_owned()).or_insert_with(|| database.to_owned());
    Ok(url.to_string())
}

/// The driver that stacks are reached by, for plans.
pub(crate) fn driver() -> Result<Box<dyn Driver>> {
    kurabe_drivers::registry::open(&TargetUrl::parse("http://127.0.0.1:1")?)
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
