//! Application stacks as targets: `stack:php/mysqli?db=up:mysql`. The database is opened once for all stacks that name it;
//! each stack has tables of its own there, which are loaded here, as `kurabe up app` loads its tables.

pub(crate) mod running;
pub(crate) mod spec;

use crate::direct::open_one;
use crate::opened::Opened;
use crate::options::{OpenOptions, StackData};
use crate::reporter::Reporter;
use crate::stacks::running::{RunningStack, StackDatabase};
use crate::stacks::spec::{StackSpec, kind};
use crate::throwaway::{self, asks_for_tls, not_started, start_error, with_server_affinity};
use kurabe_core::driver::Driver;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Before, Dataset, Experiment};
use kurabe_core::operation::Operation;
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_driver_common::environment::Environment;
use kurabe_drivers::info::{Place, ServerPlace};
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::Target;
use kurabe_experiments::registry;
use kurabe_testbed::{Application, Database, StartOptions, Variant};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The experiments that stacks serve.
pub const SERVED: [&str; 3] = ["kv", "connect", "webapp"];

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
            let mut started = asked.database.clone();
            // The application's driver may know no login.
            if let Some((name, value)) = kurabe_testbed::without_login(&started.path) {
                started.options.insert(name.to_owned(), value.to_owned());
            }
            let server = with_server_affinity(open_options.cpu_partition.as_ref(), || {
                throwaway::up(&started, open_options.durability, connections, reporter)
            })?;
            let reached = throwaway::reached(&asked.database, &server)?;
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
    match kurabe_testbed::installed_stack(&asked.stack) {
        Some(Err(missing)) => {
            let text = format!("{}: {}", asked.name(), missing.what);
            Err(start_error(ErrorKind::NotFound, &text).hint(missing.how()))
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
        let experiment: &Experiment = registry::find(name)?;
        let info = experiment.info;
        let dataset = Dataset { seed: data.seed, records: data.records, slot };
        let planned = (experiment.plan)(&info.baseline(&[])?, &dataset)?;
        if let Some(reason) = target.refusal(&planned.demand) {
            refused.get_or_insert(Error::unsupported(reason).context(info.name));
            continue;
        }
        let Some(pages) = &planned.pages else { continue };
        let workload = planned.workload()?;
        let failed = |error: Error| error.context(format!("loading the data of {name}"));
        let mut state = workload.load(&mut *namespace, &mut *session).map_err(failed)?;
        for operation in info.operations {
            let before = Before {
                operation: operation.name,
                state: &mut state,
                namespace: &mut *namespace,
                session: &mut *session,
            };
            workload.before(before).map_err(failed)?;
        }
        for collection in planned.demand.operations.iter().filter_map(Operation::collection) {
            if let Some(prefix) = namespace.key_prefix(collection).map_err(failed)? {
                key_prefixes.insert(collection.name.clone(), prefix.into());
            }
        }
        let facts = pages.facts.iter().map(|(name, number)| ((*name).to_owned(), Value::from(*number)));
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
    let variable = match kind {
        "postgres" => Some("PGPASSWORD"),
        "mysql" | "mariadb" => Some("MYSQL_PWD"),
        _ => None,
    };
    let mut servers = kurabe_drivers::registry::servers(reached)?;
    let Some(ServerPlace { place: Place::Tcp { host, port }, .. }) =
        servers.pop().filter(|_| servers.is_empty())
    else {
        return Err(Error::unsupported("a stack reaches its database by TCP, on one server")
            .hint("name a host: --db mysql://127.0.0.1/shop"));
    };
    let environment = Environment::for_url(reached);
    let given = reached.password.as_ref().map(|password| password.expose().to_owned());
    Ok(Database {
        kind: kind.to_owned(),
        host,
        port,
        user: reached.user.clone().unwrap_or_default(),
        password: environment.check(Ok(given.or_else(|| environment.get(variable?))))?.unwrap_or_default(),
        name: reached.path.clone(),
    })
}

/// The driver that stacks are reached by, for plans.
pub(crate) fn driver() -> Result<Box<dyn Driver>> {
    kurabe_drivers::registry::open(&TargetUrl::parse("http://127.0.0.1:1")?)
}
