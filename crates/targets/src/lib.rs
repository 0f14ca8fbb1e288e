//! Opens targets: starts throwaway servers, parses URLs, chooses names.
//!
//! Throwaway servers are supervised by the running program, which must call [`kurabe_testbed::supervisor::run`] if its
//! first argument is [`kurabe_testbed::supervisor::SUBCOMMAND`].

mod observers;
mod remotes;
mod shared;

use kurabe_core::driver::Driver;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::{ServerFacts, Setting};
use kurabe_core::observation::Endpoint;
use kurabe_core::planned::CacheNeed;
use kurabe_core::remote::RemoteServer;
use kurabe_core::run::TargetRecord;
use kurabe_core::target::TargetUrl;
pub use kurabe_core::target::without_passwords;
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_drivers::cached::{self, Cached};
use kurabe_drivers::members::Member;
use kurabe_engine::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan;
use kurabe_engine::target::{Restart, Restrict, SecondInstance, Target};
use kurabe_observe::Remote;
use kurabe_testbed::{Server, StartOptions, TestbedError};
use shared::{REUSED, Started};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

pub use shared::SharedServers;

/// The scheme of a throwaway server: `up:postgres`.
pub const UP: &str = "up";

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
    /// The URL by which each is reached.
    pub reached: Vec<TargetUrl>,
    /// Servers that a remote observer watches.
    pub observers: Vec<(Endpoint, Remote)>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// The positions of the URLs that could not be opened, with the reasons; only with [`Wish::tolerant`]. They are
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
pub struct Wish {
    /// The durability class of every acknowledged write.
    pub durability: Option<DurabilityClass>,
    /// The minimum number of connections of throwaway servers.
    pub connections: u64,
    /// The cache in front of every target, as given.
    pub cache: Option<String>,
    /// The caches that the cells need in front of each target.
    pub caches: Vec<CacheNeed>,
    /// The second server that `--remote` names, as given.
    pub remote: Option<String>,
    /// The second servers that the cells need beside each target.
    pub remotes: Vec<RemoteServer>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// For each target, whether its A/A control should run on a second instance of its server, if possible.
    pub second_instances: Vec<bool>,
    /// Whether throwaway servers are not started. Only what their drivers know is known of them then.
    pub dry: bool,
    /// Whether a target that cannot be opened is left out, and no error.
    pub tolerant: bool,
    /// The throwaway servers that this run shares with others; `None`: it starts its own. Servers with links, caches
    /// and remotes are always its own.
    pub shared: Option<Arc<SharedServers>>,
}

impl Wish {
    /// What a run requires. `cache` and `remote` are the URLs as given, with their passwords.
    pub fn of(plan: &Plan, cache: Option<&str>, remote: Option<&str>) -> Self {
        let spec = &plan.spec;
        Self {
            durability: spec.durability,
            connections: plan.connections(),
            cache: cache.map(str::to_owned),
            caches: plan.caches(),
            remote: remote.map(str::to_owned),
            remotes: plan.remotes(),
            cpu_partition: spec.slice_ns.and_then(|_| CpuPartition::of_this_machine()),
            second_instances: (0..spec.targets.len())
                .map(|target| plan.wants_second_instance(target))
                .collect(),
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
            observers: Vec::new(),
            cpu_partition,
            unopened: Vec::new(),
            servers: Vec::new(),
            shared: HashSet::new(),
        }
    }

    /// The caches of one target: a throwaway server per size, or the external one.
    fn caches(&mut self, url: &TargetUrl, wish: &Wish, reporter: &dyn Reporter) -> Result<Vec<Member>> {
        let throwaway = url.scheme == UP;
        // The size of an external cache cannot be set, and a throwaway one did not exist before.
        let fitting = wish.caches.iter().filter(|wanted| wanted.capacity.is_some() == throwaway);
        let mut caches = Vec::new();
        for wanted in fitting {
            let reached = if throwaway && wish.dry {
                not_started_url(url)?
            } else if throwaway {
                let mut server = up_options(url, wish.connections)?;
                server.room = wanted.capacity;
                reporter.note(&format!("starting throwaway {} as cache {} …", url.path, wanted.name));
                let server =
                    Arc::new(with_server_affinity(wish.cpu_partition.as_ref(), || start(url, &server))?);
                let mut reached = self.reached(url, server)?;
                reached.options.entry("ttl".to_owned()).or_insert_with(|| CACHE_TTL.to_owned());
                reached
            } else {
                url.clone()
            };
            let made =
                if throwaway && wish.dry { without_server(&reached) } else { open_one(&reached, None) };
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
        let mut reached = TargetUrl::parse(server.url())?;
        reached.options.extend(driver_options(url));
        self.servers.push(server);
        Ok(reached)
    }

    /// Stops the throwaway servers and removes their data. Shared servers go on.
    pub fn close(self, reporter: &dyn Reporter) {
        drop(self.targets);
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
/// If one cannot be used, unless the wish is [tolerant](Wish::tolerant); the message begins with the target.
pub fn open(urls: &[String], wish: &Wish, reporter: &dyn Reporter) -> Result<Opened> {
    let whole = urls.iter().map(|text| TargetUrl::parse(text)).collect::<Result<Vec<_>>>()?;
    let mut parsed = whole.clone();
    let observers: Vec<Option<String>> = parsed.iter_mut().map(observers::taken).collect();
    for url in &parsed {
        check_scheme(url)?;
    }
    let names = names(&parsed);
    let mut opened = Opened::none(wish.cpu_partition.clone());
    let mut seen = HashSet::new();
    let cache = wish.cache.as_deref().map(TargetUrl::parse).transpose()?;
    if let Some(cache) = &cache {
        check_cache(cache)?;
    }
    let remote = remotes::given(wish)?;
    for (at, (((url, name), whole), observer)) in
        parsed.into_iter().zip(names).zip(&whole).zip(observers).enumerate()
    {
        reporter.check()?;
        let one = One { at, url, name, whole, observer, cache: cache.as_ref(), remote: remote.as_ref() };
        match opened.open(one, wish, &mut seen, reporter) {
            Err(error) if wish.tolerant && error.kind() != ErrorKind::Interrupted => {
                opened.unopened.push((at, error));
            }
            result => result?,
        }
    }
    Ok(opened)
}

/// A target to open.
struct One<'a> {
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
}

impl Opened {
    /// Opens a target and adds it. `seen` has the URLs by which the earlier ones are reached.
    fn open(
        &mut self,
        one: One<'_>,
        wish: &Wish,
        seen: &mut HashSet<String>,
        reporter: &dyn Reporter,
    ) -> Result<()> {
        let One { at, url, name, whole, observer, cache, remote } = one;
        let Wish { durability, connections, .. } = *wish;
        let twice = wish.second_instance(at);
        let (mut own, mut restart, mut restrict, mut second) = (None, None, None, None);
        let mut reused = false;
        let dry = wish.dry && url.scheme == UP;
        let open_one = |reached: &TargetUrl| {
            if dry { without_server(reached) } else { open_one(reached, durability) }
        };
        let reached = if dry {
            let never = || -> Option<Restart> { Some(Box::new(|| Ok(()))) };
            let unrestricted = || -> Option<Restrict> { Some(Box::new(|_, _| Ok(()))) };
            (restart, restrict) = (never(), unrestricted());
            let reached = not_started_url(&url)?;
            second = twice.then(|| (reached.clone(), never(), unrestricted()));
            reached
        } else if url.scheme == UP {
            reporter.wait_for(format!("a throwaway {} to start", url.path));
            let mut options = options_of(&url, durability, connections)?;
            options.links = !wish.remotes.is_empty();
            // A server with links has other settings than those that runs share.
            let shared = wish.shared.as_deref().filter(|_| !options.links);
            let cpu_partition = wish.cpu_partition.as_ref();
            if shared.is_none_or(|shared| !shared.has_free(&url, &options, cpu_partition)) {
                announce(&url, reporter);
            }
            let (started, other) = start_twice(&url, &options, twice, shared, cpu_partition)?;
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
        let second = second.filter(|_| skip_reason.is_none()).map(|(reached, restart, restrict)| {
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
        if !wish.caches.is_empty() {
            let caches = match cache {
                Some(cache) => self.caches(cache, wish, reporter)?,
                None => Vec::new(),
            };
            Cached::add_facts(&mut facts, &caches);
            driver = Box::new(Cached::new(driver, caches));
        }
        if !wish.remotes.is_empty() {
            let beside = remotes::Beside { url: &url, reached: &reached, given: remote };
            let linked = self.linked(driver, &mut facts, &beside, wish, reporter)?;
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
    let facts = driver.describe()?.printable();
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

/// A throwaway server's driver without the server, of which nothing is known but its engine.
fn without_server(url: &TargetUrl) -> Result<OpenedOne> {
    let driver = kurabe_drivers::registry::open(url)?;
    let engine = kurabe_drivers::registry::find(&url.scheme).map_or("", |info| info.engine).to_owned();
    Ok((driver, ServerFacts { engine, ..ServerFacts::default() }, None))
}

/// A URL like that of a throwaway server that is not started, for its driver.
fn not_started_url(url: &TargetUrl) -> Result<TargetUrl> {
    let found = kurabe_testbed::available().into_iter().find(|(engine, _)| *engine == url.path);
    if let Some((_, Err(missing))) = found {
        return Err(
            Error::new(ErrorKind::NotFound, format!("up:{}: {}", url.path, missing.what)).hint(missing.how)
        );
    }
    let with_path = |path: &str| {
        let mut url_of_it = TargetUrl::parse(&format!("{}://127.0.0.1{path}", url.path))?;
        url_of_it.options.extend(driver_options(url));
        kurabe_drivers::registry::open(&url_of_it).map(|_| url_of_it)
    };
    // The path is a number with some engines, and required with others.
    with_path("/kurabe").or_else(|_| with_path(""))
}

/// Whether all targets are throwaway servers or temporary files, which hold nothing of the user's.
///
/// # Errors
/// If a URL is invalid.
pub fn are_throwaway(urls: &[String]) -> Result<bool> {
    let mut all = true;
    for text in urls {
        let mut url = TargetUrl::parse(text)?;
        observers::taken(&mut url);
        all &= url.scheme == UP || kurabe_drivers::registry::open(&url)?.capabilities().is_temporary;
    }
    Ok(all)
}

/// Which targets are applications, without opening any.
///
/// # Errors
/// If a URL is invalid.
pub fn applications(urls: &[String]) -> Result<Vec<bool>> {
    let is_application = |text: &String| {
        let mut url = TargetUrl::parse(text)?;
        observers::taken(&mut url);
        // Throwaway servers are databases.
        Ok(url.scheme != UP && kurabe_drivers::registry::open(&url)?.capabilities().is_application)
    };
    urls.iter().map(is_application).collect()
}

/// Rejects unknown schemes before any server is started.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage), with the most similar known name.
pub fn check_scheme(url: &TargetUrl) -> Result<()> {
    if url.scheme != UP {
        let mut url = url.clone();
        observers::taken(&mut url);
        return kurabe_drivers::registry::open(&url).map(drop);
    }
    kurabe_drivers::registry::check_built_in(&url.path)?;
    let known: Vec<&str> = kurabe_testbed::engines().collect();
    if known.contains(&url.path.as_str()) {
        return Ok(());
    }
    let hint = units::nearest(&url.path, &known).map_or_else(
        || {
            format!(
                "there are: {}",
                known.iter().map(|name| format!("up:{name}")).collect::<Vec<_>>().join(", ")
            )
        },
        |near| format!("did you mean up:{near}?"),
    );
    // A URL may hold a password.
    if url.path.contains(':') {
        return Err(Error::usage("up: takes the name of an engine, and no URL").hint(hint));
    }
    Err(Error::usage(format!("up: cannot start '{}'", url.path)).hint(hint))
}

/// Starts a throwaway server, with the settings for a durability class if one is requested. Options that its driver
/// does not know are settings of the server, and override those.
///
/// # Errors
/// If a setting is invalid, or the server does not start.
pub fn up(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
    reporter: &dyn Reporter,
) -> Result<Server> {
    start(url, &of_url(url, durability, connections, reporter)?)
}

/// Its start options, which are announced.
fn of_url(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
    reporter: &dyn Reporter,
) -> Result<StartOptions> {
    let options = options_of(url, durability, connections)?;
    announce(url, reporter);
    Ok(options)
}

/// Its start options.
fn options_of(
    url: &TargetUrl,
    durability: Option<DurabilityClass>,
    connections: u64,
) -> Result<StartOptions> {
    let mut options = up_options(url, connections)?;
    options.durability = durability.map(|class| class.name().to_owned());
    Ok(options)
}

fn announce(url: &TargetUrl, reporter: &dyn Reporter) {
    reporter.note(&format!("starting throwaway {} …", url.path));
}

/// Starts a server, and a second instance at the same time if needed; or takes them from the shared ones.
fn start_twice(
    url: &TargetUrl,
    options: &StartOptions,
    twice: bool,
    shared: Option<&SharedServers>,
    cpu_partition: Option<&CpuPartition>,
) -> Result<(Started, Option<Started>)> {
    let start = || match shared {
        Some(shared) => shared.take(url, options, cpu_partition),
        None => with_server_affinity(cpu_partition, || start(url, options)).map(Started::new),
    };
    if !twice {
        return Ok((start()?, None));
    }
    thread::scope(|scope| {
        let other =
            thread::Builder::new().name("start".to_owned()).spawn_scoped(scope, start).map_err(|e| {
                Error::new(ErrorKind::Limit, format!("no thread could be started for the server: {e}"))
            })?;
        let server = start();
        let other = other
            .join()
            .map_err(|_| Error::new(ErrorKind::Internal, "the thread that starts a server panicked"))?
            .map_err(|error| error.context("the second instance"));
        Ok((server?, Some(other?)))
    })
}

/// Runs `start` with the servers' CPU affinity, if processors are partitioned.
pub fn with_server_affinity<T>(cpu_partition: Option<&CpuPartition>, start: impl FnOnce() -> T) -> T {
    match cpu_partition {
        Some(cpu_partition) => cpu_partition.with_server_affinity(start),
        None => start(),
    }
}

fn start(url: &TargetUrl, options: &StartOptions) -> Result<Server> {
    kurabe_testbed::start(&url.path, options).map_err(|error| not_started(&error))
}

/// The start options from a target's URL.
fn up_options(url: &TargetUrl, connections: u64) -> Result<StartOptions> {
    let program = std::env::current_exe().map_err(|e| {
        Error::new(ErrorKind::Environment, format!("cannot find the path of this program: {e}"))
    })?;
    let mut options = StartOptions::new(program);
    options.connections = connections;
    let of_driver = driver_options(url);
    for (name, value) in &url.options {
        if !of_driver.iter().any(|(known, _)| known == name) {
            options = options.set(name, value);
        }
    }
    Ok(options)
}

/// Rejects targets that are not caches, before any server is started.
fn check_cache(url: &TargetUrl) -> Result<()> {
    check_scheme(url).map_err(|error| error.context("--cache"))?;
    let caches: Vec<&str> = kurabe_testbed::caches().collect();
    let name = if url.scheme == UP { url.path.as_str() } else { url.scheme.trim_end_matches('s') };
    if caches.iter().any(|cache| *cache == name || cache.trim_end_matches('s') == name) {
        return Ok(());
    }
    Err(Error::usage(format!("--cache: {name} is not a cache"))
        .hint(format!("there are: {}", caches.join(", "))))
}

/// A function that restarts throwaway servers, one after the other.
fn restarting(servers: Vec<Arc<Server>>) -> Restart {
    Box::new(move || {
        servers.iter().try_for_each(|server| server.restart().map_err(|error| not_started(&error)))
    })
}

/// A function that restricts a throwaway server to processors.
fn restricting(started: &Started) -> Restrict {
    let Started { server, restricted, .. } = started.clone();
    Box::new(move |cpus, pinned| {
        restricted.store(true, Ordering::Relaxed);
        let failed = |error: TestbedError| Error::new(ErrorKind::Environment, error.to_string());
        server.restrict(cpus, pinned).map_err(failed)
    })
}

/// Converts an error of starting a throwaway server: an unknown setting, or an unusable target.
fn not_started(error: &TestbedError) -> Error {
    let kind = match error {
        TestbedError::BadOption { .. } | TestbedError::UnknownEngine { .. } => ErrorKind::Usage,
        TestbedError::NotInstalled { .. } => ErrorKind::NotFound,
        TestbedError::Failed { .. } | TestbedError::TimedOut { .. } => ErrorKind::Unreachable,
        TestbedError::Io { .. } | TestbedError::Supervisor { .. } => ErrorKind::Environment,
    };
    start_error(kind, &error.to_string())
}

/// An error from the testbed's text: the first line is the message, the others are a log.
pub fn start_error(kind: ErrorKind, text: &str) -> Error {
    let mut lines = text.lines();
    Error::new(kind, lines.next().unwrap_or_default()).log(lines)
}

/// The options of an `up:` URL that belong to the driver. The others are settings of the server.
fn driver_options(url: &TargetUrl) -> Vec<(String, String)> {
    let known = kurabe_drivers::registry::find(&url.path).map(|driver| driver.options).unwrap_or_default();
    url.options
        .iter()
        .filter(|(name, _)| known.iter().any(|option| option.name == name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A short unique name for each target: the engine, then its options if they differ, then a number.
pub fn names(urls: &[TargetUrl]) -> Vec<String> {
    let short = |url: &TargetUrl| if url.scheme == UP { url.path.clone() } else { url.scheme.clone() };
    let long = |url: &TargetUrl| {
        let options: Vec<String> =
            url.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if options.is_empty() { short(url) } else { format!("{} {}", short(url), options.join(" ")) }
    };
    let mut used: HashSet<String> = HashSet::new();
    urls.iter()
        .map(|url| {
            let alone = urls.iter().filter(|other| short(other) == short(url)).count() == 1;
            let base = if alone { short(url) } else { long(url) };
            let mut name = base.clone();
            let mut n = 2;
            while !used.insert(name.clone()) {
                name = format!("{base}#{n}");
                n += 1;
            }
            name
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(urls: &[&str]) -> Vec<String> {
        names(&urls.iter().map(|url| TargetUrl::parse(url).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn driver_options_reach_driver_and_others_reach_server() {
        let url = TargetUrl::parse("up:mysql?engine=MyISAM&max_connections=300&client=driver").unwrap();
        let names: Vec<String> = driver_options(&url).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["client", "engine"]);
    }

    #[test]
    fn targets_get_short_unique_names() {
        assert_eq!(names_of(&["sqlite:", "up:postgres"]), ["sqlite", "postgres"]);
        assert_eq!(names_of(&["sqlite:", "sqlite:"]), ["sqlite", "sqlite#2"]);
        assert_eq!(names_of(&["sqlite:", "sqlite:?synchronous=off"]), ["sqlite", "sqlite synchronous=off"]);
    }

    #[test]
    fn recorded_command_contains_no_password() {
        let words =
            ["kurabe", "run", "session", "mysql://bob:hunter2@h/db", "--target=mysql://b:hunter2@h/d", "x:1"];
        let shown = without_passwords(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(shown, ["kurabe", "run", "session", "mysql://bob@h/db", "--target=mysql://b@h/d", "x:1"]);
    }
}
