//! Opens the targets of a run.
//!
//! Throwaway servers are supervised by the running program, which must call [`kurabe_testbed::supervisor::run`] if its
//! first argument is [`kurabe_testbed::supervisor::SUBCOMMAND`].

mod caches;
mod direct;
mod observers;
mod opened;
mod options;
mod remotes;
mod reporter;
mod same_server;
mod setup;
mod shared;
mod stacks;
mod throwaway;
mod urls;

use caches::check_cache;
use direct::without_server;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_drivers::members::{self, Composite};
use kurabe_engine::prepare::target::{Restart, Restrict, SecondInstance, Target};
use shared::{REUSED, restricting, start_twice};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throwaway::{announce, not_started_url, options_of, restarting};

pub use direct::{OpenedOne, null, open_one};
pub use kurabe_core::target::{UP, without_passwords};
pub use opened::Opened;
pub use options::{OpenOptions, StackData};
pub use reporter::Reporter;
pub use shared::SharedServers;
pub use stacks::SERVED as SERVED_BY_STACKS;
pub use stacks::spec::{check_scheme, with_database};
pub use throwaway::{reached, start_error, up, with_server_affinity};
pub use urls::{DB, STACK, engine, names};

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
    let names = names(&parsed);
    let setups: Vec<Option<String>> =
        parsed.iter_mut().map(|url| setup::taken(url, open_options.setup.as_deref())).collect();
    for (url, setup) in parsed.iter().zip(&setups) {
        setup.as_ref().map_or(Ok(()), |setup| setup::check(setup, url))?;
    }
    let mut opened = Opened { cpu_partition: open_options.cpu_partition.clone(), ..Opened::default() };
    let mut seen = HashSet::new();
    let cache = open_options.cache.as_deref().map(TargetUrl::parse).transpose()?;
    if let Some(cache) = &cache {
        check_cache(cache)?;
    }
    let remote = remotes::given(open_options)?;
    let of_stacks = stacks::spec::connections(&parsed);
    for (at, ((((url, name), whole), observer), setup)) in
        parsed.into_iter().zip(names).zip(&whole).zip(observers).zip(setups).enumerate()
    {
        reporter.check()?;
        let (cache, remote) = (cache.as_ref(), remote.as_ref());
        let one = TargetSpec { at, url, name, whole, observer, setup, cache, remote, of_stacks };
        match opened.open(one, open_options, &mut seen, reporter) {
            Err(error) if open_options.tolerant && error.kind() != ErrorKind::Interrupted => {
                opened.unopened.push((at, error));
            }
            result => result?,
        }
    }
    opened.check_servers(reporter)?;
    Ok(opened)
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
        if url.scheme == STACK {
            all &= stacks::is_throwaway(&url)?;
            continue;
        }
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
        if url.scheme == STACK {
            return Ok(stacks::driver()?.capabilities().is_application);
        }
        // Throwaway servers are databases.
        Ok(url.scheme != UP && kurabe_drivers::registry::open(&url)?.capabilities().is_application)
    };
    urls.iter().map(is_application).collect()
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
    /// What it is loaded with.
    setup: Option<String>,
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
        let TargetSpec { at, url, name, whole, observer, setup, cache, remote, of_stacks } = one;
        let OpenOptions { durability, connections, .. } = *open_options;
        let twice = open_options.second_instance(at);
        let (mut own, mut restart, mut restrict, mut second) = (None, None, None, None);
        let (mut reused, mut start, mut changed) = (false, None, Duration::ZERO);
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
            let shared = open_options.shared_for(&options, setup.is_some());
            let cpu_partition = open_options.cpu_partition.as_ref();
            if shared.is_none_or(|shared| !shared.has_free(&url, &options, cpu_partition)) {
                announce(&url, reporter);
            }
            let ((started, other), took) =
                timed(|| start_twice(&url, &options, twice, shared, cpu_partition))?;
            (reused, start) = (started.reused, (!started.reused).then_some(took));
            let what = (setup.as_deref(), open_options.change(at));
            changed = setup::load_all(what, &url, [Some(&started), other.as_ref()], reporter)?;
            let server = || Arc::clone(&started.server);
            (own, restart) = (Some(server()), Some(restarting(vec![server()])));
            restrict = Some(restricting(&started));
            if let Some(other) = other {
                let (restart, restrict) = (restarting(vec![Arc::clone(&other.server)]), restricting(&other));
                second = Some((self.reached(&url, other.server)?, Some(restart), Some(restrict)));
            }
            self.reached(&url, server())?
        } else {
            url.clone()
        };
        let reached = if open_options.only_reads(at) { options::for_reading(reached) } else { reached };
        reporter.wait_for(format!("{url} to answer"));
        let (mut driver, mut facts, skip_reason) = open_one(&reached).map_err(|error| error.context(&url))?;
        // The run asks for that, and not the user.
        if open_options.only_reads(at) && url.option(options::ACCESS).is_none() {
            facts.read_only = None;
        }
        facts.notes.extend(reused.then(|| REUSED.to_owned()));
        let is_twice = twice && driver.capabilities().is_temporary;
        second = second.or_else(|| is_twice.then(|| (reached.clone(), None, None)));
        let second = second.filter(|_| skip_reason.is_none());
        let second_reached = second.as_ref().map(|(reached, ..)| reached.clone());
        let second = second.map(|(reached, restart, restrict)| {
            let (driver, ..) =
                open_one(&reached).map_err(|error| error.context(format!("the second instance of {url}")))?;
            Ok::<_, Error>(SecondInstance { driver, restart, restrict })
        });
        let second = second.transpose()?;
        if let Some(observer) = observer {
            let observer = observers::named(&observer, &driver.endpoint());
            self.observers.push((driver.endpoint(), observer.map_err(|error| error.context(&url))?));
        }
        let claims = seen.insert(reached.to_string());
        let (mut members, mut missing) = (Vec::new(), Vec::new());
        if let Some(cache) = cache.filter(|_| open_options.has_caches(at)) {
            members = self.caches(cache, open_options, reporter)?;
        }
        if !open_options.remotes.is_empty() {
            let beside = remotes::RemoteContext { url: &url, reached: &reached, given: remote };
            let remotes = self.remotes(&mut *driver, &beside, open_options, reporter)?;
            (members, missing) = (members.into_iter().chain(remotes.members).collect(), remotes.missing);
            restart = own.map(|own| restarting([own].into_iter().chain(remotes.servers).collect()));
        }
        if open_options.has_caches(at) || !open_options.remotes.is_empty() {
            members::add_facts(&mut facts, &members);
            driver = Box::new(Composite::new(driver, members, missing));
        }
        self.targets.push(Target {
            url: whole.to_string(),
            scheme: reached.scheme.clone(),
            publishing: kurabe_drivers::registry::clause(&reached.scheme, &facts),
            claims,
            skip_reason,
            restart,
            second,
            restrict,
            ..direct::with_times(Target::new(name, driver, facts), start)
        });
        self.reached.push(reached);
        self.changed.push(changed);
        self.second_reached.push(second_reached);
        Ok(())
    }
}

/// What this does, and how long it takes.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let began = Instant::now();
    Ok((work()?, began.elapsed()))
}
