//! Opens the targets of a run.
//!
//! Throwaway servers are supervised by the running program, which must call [`kurabe_testbed::supervisor::run`] if its
//! first argument is [`kurabe_testbed::supervisor::SUBCOMMAND`].

mod observers;
mod remotes;
mod setup;
mod shared;
mod stacks;
mod throwaway;
mod urls;

pub use stacks::{DB, SERVED as SERVED_BY_STACKS, STACK, StackData, with_database};

use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::{ServerFacts, Setting};
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::planned::CacheNeed;
use kurabe_core::remote::RemoteServer;
use kurabe_core::run::TargetRecord;
use kurabe_core::target::TargetUrl;
pub use kurabe_core::target::without_passwords;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_drivers::cached::{self, Cached};
use kurabe_drivers::members::Member;
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::{Restart, Restrict, SecondInstance, Target};
use kurabe_observe::Remote;
use kurabe_testbed::Server;
use shared::REUSED;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throwaway::{
    announce, not_started_url, options_of, restarting, restricting, start, start_twice, up_options,
};
use urls::check_cache;

pub use kurabe_core::target::UP;
pub use shared::SharedServers;
pub use throwaway::{reached, start_error, up, with_server_affinity};
pub use urls::{applications, are_throwaway, check_scheme, engine, names};

/// Messages to the user about targets, and the user's request to stop.
pub trait Reporter {
    /// Shows a note.
    fn note(&self, text: &str);

    /// Shows a warning.
    fn warning(&self, text: &str);

    /// Sets what the program waits for if the user stops it.
    fn wait_for(&self, what: String);

    /// Fails after the user has stopped the program.
    ///
    /// # Errors
    /// [`Interrupted`](ErrorKind::Interrupted).
    fn check(&self) -> Result<()>;
}

/// Open targets, with the throwaway servers among them, which run until this is dropped.
pub struct Opened {
    /// As the engine needs them.
    pub targets: Vec<Target>,
    /// As the run file records them.
    pub records: Vec<TargetRecord>,
    pub reached: Vec<TargetUrl>,
    /// The URL by which the second instance of each is reached; `None`: there is none.
    pub second_reached: Vec<Option<TargetUrl>>,
    /// Servers that a remote observer watches.
    pub observers: Vec<(Endpoint, Remote)>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// Application stacks, which end before the servers of their databases.
    stacks: Vec<stacks::RunningStack>,
    databases: Vec<stacks::StackDatabase>,
    /// The positions of the URLs that could not be opened, with the reasons; only with [`OpenOptions::tolerant`]. They are
    /// none of the targets.
    pub unopened: Vec<(usize, Error)>,
    servers: Vec<Arc<Server>>,
    /// External caches that are leased already, by URL.
    shared: HashSet<String>,
}

/// The default time to live of an item in a throwaway cache, in seconds.
const CACHE_TTL: &str = "3600";

/// What a run requires of its targets.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The durability class of every acknowledged write.
    pub durability: Option<DurabilityClass>,
    /// The minimum number of connections of throwaway servers.
    pub connections: u64,
    /// The cache in front of every target, as given.
    pub cache: Option<String>,
    /// The caches that the cells need in front of each target.
    pub caches: Vec<CacheNeed>,
    /// Whether throwaway servers cache little of their data, so that a cache in front of them can matter.
    pub small_cache: bool,
    /// The second server that `--remote` names, as given.
    pub remote: Option<String>,
    /// The second servers that the cells need beside each target.
    pub remotes: Vec<RemoteServer>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// For each target, whether its A/A control should run on a second instance of its server, if possible.
    pub second_instances: Vec<bool>,
    /// The data that application stacks serve.
    pub stack_data: StackData,
    /// Whether throwaway servers are not started. Only what their drivers know is known of them then.
    pub dry: bool,
    /// The schema and data of throwaway servers: a file, or `copy:` and the URL of a database, as given.
    pub setup: Option<String>,
    /// Whether a target that cannot be opened is left out, and no error.
    pub tolerant: bool,
    /// The throwaway servers that this run shares with others; `None`: it starts its own. Servers with links, caches,
    /// small caches and remotes are always its own.
    pub shared: Option<Arc<SharedServers>>,
}

impl OpenOptions {
    /// What a run requires. `cache` and `remote` are the URLs as given, with their passwords.
    pub fn of(plan: &Plan, cache: Option<&str>, remote: Option<&str>) -> Self {
        let spec = &plan.spec;
        Self {
            durability: spec.durability,
            connections: plan.connections(),
            cache: cache.map(str::to_owned),
            caches: plan.caches(),
            // A replay has data of its own.
            small_cache: plan.experiment.takes_cache() && spec.custom.is_none(),
            remote: remote.map(str::to_owned),
            remotes: plan.remotes(),
            cpu_partition: spec.slice_ns.and_then(|_| CpuPartition::of_this_machine()),
            second_instances: (0..spec.targets.len())
                .map(|target| plan.wants_second_instance(target))
                .collect(),
            stack_data: StackData {
                experiments: vec![spec.experiment.clone()],
                seed: spec.seed,
                records: spec.records,
            },
            setup: spec.setup.as_ref().map(|setup| setup.from.clone()),
            dry: false,
            tolerant: false,
            shared: None,
        }
    }

    /// Whether the A/A control of a target should run on a second instance of its server. Not behind a cache or with
    /// a remote, since these would be other ones too. Applications and external servers have only one instance.
    fn second_instance(&self, target: usize) -> bool {
        self.second_instances.get(target) == Some(&true) && self.caches.is_empty() && self.remotes.is_empty()
    }
}

impl Opened {
    /// No targets.
    fn none(cpu_partition: Option<CpuPartition>) -> Self {
        Self {
            targets: Vec::new(),
            records: Vec::new(),
            reached: Vec::new(),
            second_reached: Vec::new(),
            observers: Vec::new(),
            cpu_partition,
            stacks: Vec::new(),
            databases: Vec::new(),
            unopened: Vec::new(),
            servers: Vec::new(),
            shared: HashSet::new(),
        }
    }

    /// The caches of one target: a throwaway server per size, or the external one.
    fn caches(
        &mut self,
        url: &TargetUrl,
        open_options: &OpenOptions,
        reporter: &dyn Reporter,
    ) -> Result<Vec<Member>> {
        let throwaway = url.scheme == UP;
        // The size of an external cache cannot be set, and a throwaway one did not exist before.
        let fitting = open_options.caches.iter().filter(|wanted| wanted.capacity.is_some() == throwaway);
        let mut caches = Vec::new();
        for wanted in fitting {
            let reached = if throwaway && open_options.dry {
                not_started_url(url)?
            } else if throwaway {
                let mut server = up_options(url, open_options.connections)?;
                server.room = wanted.capacity;
                reporter.note(&format!("starting throwaway {} as cache {} …", url.path, wanted.name));
                let server = Arc::new(with_server_affinity(open_options.cpu_partition.as_ref(), || {
                    start(url, &server)
                })?);
                let mut reached = self.reached(url, server)?;
                reached.options.entry("ttl".to_owned()).or_insert_with(|| CACHE_TTL.to_owned());
                reached
            } else {
                url.clone()
            };
            let made = if throwaway && open_options.dry {
                without_server(&reached)
            } else {
                open_one(&reached, None)
            };
            let (driver, mut facts, _) = made.map_err(|error| error.context(url))?;
            facts.settings.extend(reached.option("ttl").map(|ttl| Setting::new("ttl", format!("{ttl} s"))));
            let claims = throwaway || self.shared.insert(reached.to_string());
            let (name, role) = (wanted.name.clone(), cached::ROLE);
            caches.push(Member { name, role, driver, facts, ours: throwaway, claims });
        }
        Ok(caches)
    }

    /// Keeps a throwaway server, and returns the URL by which it is reached.
    fn reached(&mut self, url: &TargetUrl, server: Arc<Server>) -> Result<TargetUrl> {
        let reached = throwaway::reached(url, &server)?;
        self.servers.push(server);
        Ok(reached)
    }

    /// How an application stack or a throwaway server ended, if one ended unexpectedly.
    pub fn died(&self) -> Option<String> {
        let stacks = self
            .stacks
            .iter()
            .find_map(stacks::RunningStack::died)
            .map(|why| format!("the application: {why}"));
        stacks.or_else(|| {
            self.servers.iter().find_map(|server| server.died()).map(|why| format!("the database: {why}"))
        })
    }

    /// Warns if an application stack, or the database of one, has ended. Trials then failed for that reason.
    pub fn warn_of_ended_stacks(&self, reporter: &dyn Reporter) {
        self.stacks.iter().for_each(stacks::RunningStack::settle);
        if let Some(why) = self.died().filter(|_| !self.stacks.is_empty()) {
            reporter.warning(&why);
        }
    }

    /// Stops the throwaway servers and removes their data. Shared servers go on.
    pub fn close(self, reporter: &dyn Reporter) {
        drop(self.targets);
        for stack in self.stacks {
            stack.stop(reporter);
        }
        drop(self.databases);
        // Other holders were dropped with the targets, except those of shared servers.
        for server in self.servers.into_iter().filter_map(Arc::into_inner) {
            if let Err(error) = server.stop() {
                reporter.warning(&error.to_string());
            }
        }
    }
}

/// Opens all targets in order, sets the requested durability class, if any, and reads their facts. A target that
/// cannot provide the class is opened with a [skip reason](Target::skip_reason).
///
/// # Errors
/// If one cannot be used, unless the options are [tolerant](OpenOptions::tolerant); the message begins with the target.
pub fn open(urls: &[String], open_options: &OpenOptions, reporter: &dyn Reporter) -> Result<Opened> {
    let whole = urls.iter().map(|text| TargetUrl::parse(text)).collect::<Result<Vec<_>>>()?;
    let mut parsed = whole.clone();
    let observers: Vec<Option<String>> = parsed.iter_mut().map(observers::taken).collect();
    for url in &parsed {
        check_scheme(url)?;
    }
    if let Some(setup) = &open_options.setup {
        setup::check(setup, &parsed)?;
    }
    let names = names(&parsed);
    let mut opened = Opened::none(open_options.cpu_partition.clone());
    let mut seen = HashSet::new();
    let cache = open_options.cache.as_deref().map(TargetUrl::parse).transpose()?;
    if let Some(cache) = &cache {
        check_cache(cache)?;
    }
    let remote = remotes::given(open_options)?;
    let of_stacks = stacks::connections(&parsed);
    for (at, (((url, name), whole), observer)) in
        parsed.into_iter().zip(names).zip(&whole).zip(observers).enumerate()
    {
        reporter.check()?;
        let (cache, remote) = (cache.as_ref(), remote.as_ref());
        let one = TargetSpec { at, url, name, whole, observer, cache, remote, of_stacks };
        match opened.open(one, open_options, &mut seen, reporter) {
            Err(error) if open_options.tolerant && error.kind() != ErrorKind::Interrupted => {
                opened.unopened.push((at, error));
            }
            result => result?,
        }
    }
    Ok(opened)
}

/// A target to open.
struct TargetSpec<'a> {
    /// Its position.
    at: usize,
    /// Its URL without the observer.
    url: TargetUrl,
    name: String,
    /// Its URL as given.
    whole: &'a TargetUrl,
    observer: Option<String>,
    cache: Option<&'a TargetUrl>,
    remote: Option<&'a TargetUrl>,
    /// The connections that all stacks need together.
    of_stacks: u64,
}

impl Opened {
    /// Opens a target and adds it. `seen` has the URLs by which the earlier ones are reached.
    fn open(
        &mut self,
        one: TargetSpec<'_>,
        open_options: &OpenOptions,
        seen: &mut HashSet<String>,
        reporter: &dyn Reporter,
    ) -> Result<()> {
        let TargetSpec { at, url, name, whole, observer, cache, remote, of_stacks } = one;
        let OpenOptions { durability, connections, .. } = *open_options;
        let twice = open_options.second_instance(at);
        let (mut own, mut restart, mut restrict, mut second) = (None, None, None, None);
        let mut reused = false;
        let dry = open_options.dry && (url.scheme == UP || url.scheme == STACK);
        // The class is that of the stack's database, which was opened with it.
        let durability = durability.filter(|_| url.scheme != STACK);
        let open_one = |reached: &TargetUrl| {
            if dry { without_server(reached) } else { open_one(reached, durability) }
        };
        let reached = if dry && url.scheme == STACK {
            stacks::not_started_url(&url)?
        } else if url.scheme == STACK {
            self.stack(&url, of_stacks, open_options, reporter).map_err(|error| error.context(&url))?
        } else if dry {
            let never = || -> Option<Restart> { Some(Box::new(|| Ok(()))) };
            let unrestricted = || -> Option<Restrict> { Some(Box::new(|_, _| Ok(()))) };
            (restart, restrict) = (never(), unrestricted());
            let reached = not_started_url(&url)?;
            second = twice.then(|| (reached.clone(), never(), unrestricted()));
            reached
        } else if url.scheme == UP {
            reporter.wait_for(format!("a throwaway {} to start", url.path));
            let mut options = options_of(&url, durability, connections)?;
            options.links = !open_options.remotes.is_empty();
            options.small_cache = open_options.small_cache;
            // A server with links or a small cache has other settings than those that runs share, and one with a setup
            // other data.
            let alone = options.links || options.small_cache || open_options.setup.is_some();
            let shared = open_options.shared.as_deref().filter(|_| !alone);
            let cpu_partition = open_options.cpu_partition.as_ref();
            if shared.is_none_or(|shared| !shared.has_free(&url, &options, cpu_partition)) {
                announce(&url, reporter);
            }
            let (started, other) = start_twice(&url, &options, twice, shared, cpu_partition)?;
            let setup = open_options.setup.as_deref();
            setup::load_all(setup, &url, [Some(&started), other.as_ref()], reporter)?;
            let server = Arc::clone(&started.server);
            reused = started.reused;
            own = Some(Arc::clone(&server));
            restart = Some(restarting(vec![Arc::clone(&server)]));
            restrict = Some(restricting(&started));
            let reached = self.reached(&url, server)?;
            if let Some(other) = other {
                let (restart, restrict) = (restarting(vec![Arc::clone(&other.server)]), restricting(&other));
                second = Some((self.reached(&url, other.server)?, Some(restart), Some(restrict)));
            }
            reached
        } else {
            url.clone()
        };
        reporter.wait_for(format!("{url} to answer"));
        let (mut driver, mut facts, skip_reason) = open_one(&reached).map_err(|error| error.context(&url))?;
        if reused {
            facts.notes.push(REUSED.to_owned());
        }
        if twice && driver.capabilities().is_temporary {
            second = Some((reached.clone(), None, None));
        }
        let second = second.filter(|_| skip_reason.is_none());
        let second_reached = second.as_ref().map(|(reached, ..)| reached.clone());
        let second = second.map(|(reached, restart, restrict)| {
            let (driver, ..) =
                open_one(&reached).map_err(|error| error.context(format!("the second instance of {url}")))?;
            Ok::<_, Error>(SecondInstance { driver, restart, restrict })
        });
        let second = second.transpose()?;
        if let Some(observer) = observer {
            let observer =
                observers::named(&observer, &driver.endpoint()).map_err(|error| error.context(&url))?;
            self.observers.push((driver.endpoint(), observer));
        }
        let claims = seen.insert(reached.to_string());
        if !open_options.caches.is_empty() {
            let caches = match cache {
                Some(cache) => self.caches(cache, open_options, reporter)?,
                None => Vec::new(),
            };
            Cached::add_facts(&mut facts, &caches);
            driver = Box::new(Cached::new(driver, caches));
        }
        if !open_options.remotes.is_empty() {
            let beside = remotes::RemoteContext { url: &url, reached: &reached, given: remote };
            let linked = self.linked(driver, &mut facts, &beside, open_options, reporter)?;
            driver = linked.driver;
            let servers = linked.servers;
            restart = own.map(|own| restarting([own].into_iter().chain(servers).collect()));
        }
        self.records.push(TargetRecord {
            name: name.clone(),
            url: whole.to_string(),
            scheme: reached.scheme.clone(),
            publishing: kurabe_drivers::registry::clause(&reached.scheme, &facts),
            facts: facts.clone(),
        });
        self.reached.push(reached);
        self.second_reached.push(second_reached);
        let target = Target { name, driver, facts, claims, skip_reason, restart, second, restrict };
        self.targets.push(target);
        Ok(())
    }
}

/// The null target, on which the tool's own overhead is measured.
///
/// # Errors
/// If this program was built without it.
pub fn null() -> Result<Target> {
    let (driver, facts, skip_reason) = open_one(&TargetUrl::parse("null:")?, None)?;
    Ok(Target { skip_reason, ..Target::new("null", driver, facts) })
}

/// A driver, the server's facts, and the reason if it cannot provide the durability class.
pub type OpenedOne = (Box<dyn Driver>, ServerFacts, Option<String>);

/// Opens a target that is not a throwaway server.
///
/// # Errors
/// If it cannot be used, or reports another durability class than was set.
pub fn open_one(url: &TargetUrl, durability: Option<DurabilityClass>) -> Result<OpenedOne> {
    let mut driver = kurabe_drivers::registry::open(url)?;
    let skip_reason = match durability.map(|class| driver.require_durability(class)) {
        None | Some(Ok(())) => None,
        Some(Err(error)) if error.kind() == ErrorKind::Unsupported => Some(error.to_string()),
        Some(Err(error)) => return Err(error),
    };
    let began = Instant::now();
    let mut facts = driver.describe()?.printable();
    if began.elapsed() > SLOW_DESCRIPTION {
        facts.round_trip_ns =
            round_trip(&*driver).filter(|time| *time >= LONG).map(|time| time.as_nanos() as u64);
    }
    if let Some(class) = durability
        && skip_reason.is_none()
        && facts.durability != Some(class)
    {
        let found = facts.durability.map_or("unknown", DurabilityClass::name);
        let why = format!("the durability class should be '{class}', but the server reports '{found}'");
        return Err(Error::new(ErrorKind::Server, why));
    }
    Ok((driver, facts, skip_reason))
}

/// A server that describes itself faster is not far: that takes a dozen round trips.
const SLOW_DESCRIPTION: Duration = Duration::from_millis(50);

/// A round trip from which on waiting for it dominates the load of data.
const LONG: Duration = Duration::from_millis(5);

/// The shortest of a few round trips; `None` if the database has none, or does not answer.
fn round_trip(driver: &dyn Driver) -> Option<Duration> {
    if driver.endpoint() == Endpoint::InProcess || driver.capabilities().is_application {
        return None;
    }
    let mut session = driver.connect(&ConnectOptions::default()).ok()?;
    let ping = session.prepare(&Operation::Ping).ok()?;
    let mut reply = Reply::new();
    let mut shortest: Option<Duration> = None;
    for _ in 0..3 {
        let began = Instant::now();
        session.execute(&ping, &[], &mut reply).ok()?;
        shortest = Some(shortest.unwrap_or(Duration::MAX).min(began.elapsed()));
    }
    let _ = session.close();
    shortest
}

/// A throwaway server's driver without the server, of which nothing is known but its engine.
fn without_server(url: &TargetUrl) -> Result<OpenedOne> {
    let driver = kurabe_drivers::registry::open(url)?;
    let engine = kurabe_drivers::registry::find(&url.scheme).map_or("", |info| info.engine).to_owned();
    Ok((driver, ServerFacts { engine, ..ServerFacts::default() }, None))
}
