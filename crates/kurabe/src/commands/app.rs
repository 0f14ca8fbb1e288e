//! `kurabe up app TARGET`: an application in front of a database, for any load generator.

use super::join::{self, First};
use crate::exit::{self, Exit};
use crate::options::{options, parsed};
use crate::output::Output;
use crate::{signals, time};
use anyhow::Result;
use kurabe_app::{Application, Connection, Listening, Options, Outcome, PageSummary, Served};
use kurabe_core::axis::Cell;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{After, Before, ClientSummary, Dataset, Experiment};
use kurabe_core::{Error, ErrorKind, units};
use kurabe_engine::cancellable;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::Target;
use kurabe_experiments::registry::{self, EXPERIMENTS};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The size of a seed from the clock in bits: every JSON parser can represent such numbers exactly.
const SEED_BITS: u32 = 53;

options! {
    /// The options of `kurabe up app`.
    ServedOptions {
        target: Option<String>,
        timeout: Option<String>,
        listen: Option<String>,
        allow_remote: bool,
        allow_other_users: bool,
        host: Vec<String>,
        allow_get_writes: bool,
        header_time: Option<String>,
        idle_time: Option<String>,
        connection: Option<String>,
        pool: Option<String>,
        workers: Option<String>,
        queue: Option<String>,
        experiment: Vec<String>,
        part: Option<String>,
        join: Option<String>,
        set: Vec<String>,
        records: Option<String>,
        seed: Option<String>,
        durability: Option<String>,
    }
}

pub(super) fn app(options: &ServedOptions, output: &Output) -> Result<Exit> {
    let given = AppOptions::new(options)?;
    let stop = signals::watch(exit::INTERRUPTED, output)?;
    time::set_timeout(options.timeout.as_deref())?;
    // Before a server is started and data is loaded.
    kurabe_app::check_address(given.listen)?;
    let url = options.target.clone().unwrap_or_default();
    let mut opened = kurabe_targets::open(
        &[url],
        &kurabe_targets::OpenOptions {
            durability: given.durability,
            ..kurabe_targets::OpenOptions::default()
        },
        output,
    )?;
    let served = match opened.targets.pop() {
        Some(target) => serve(&given, &Arc::new(target), &stop, output),
        None => Err(Error::usage("no target was given").into()),
    };
    opened.close(output);
    served
}

/// What is served, and how.
struct AppOptions {
    listen: SocketAddr,
    options: Options,
    dataset: Dataset,
    durability: Option<DurabilityClass>,
    experiments: Vec<&'static Experiment>,
    /// The first application, whose data this one serves too.
    first: Option<First>,
    /// Whether the user named them. Then all of them must be available.
    named: bool,
    /// Values of axes, by experiment and axis.
    axes: HashMap<(String, String), String>,
}

impl AppOptions {
    fn new(given: &ServedOptions) -> Result<Self> {
        let count = |name: &str, text: &Option<String>, most: u64| -> kurabe_core::Result<Option<u64>> {
            match parsed(name, text.as_ref(), units::parse_count)? {
                Some(n) if !(1..=most).contains(&n) => {
                    let text = text.as_deref().unwrap_or_default();
                    Err(Error::usage(format!("--{name} {text} is out of range"))
                        .hint(format!("from 1 to {}", units::count(most))))
                }
                n => Ok(n),
            }
        };
        let time = |name: &str, text: &Option<String>| {
            parsed(name, text.as_ref(), units::parse_duration).map(Option::unwrap_or_default)
        };
        let workers = count("workers", &given.workers, 10_000)?.unwrap_or(16) as usize;
        let pool = count("pool", &given.pool, workers as u64)?;
        let connection = match given.connection.as_deref() {
            Some("per-request") => Connection::PerRequest,
            Some("pool") => Connection::Pool(pool.unwrap_or(workers.div_ceil(2) as u64) as usize),
            _ => Connection::Kept,
        };
        if pool.is_some() && !matches!(connection, Connection::Pool(_)) {
            return Err(Error::usage("--pool requires --connection pool").into());
        }
        let clock = time::since_1970().as_nanos() as u64;
        let first = given.join.as_deref().map(First::ask).transpose()?;
        let experiments: Vec<&Experiment> = match given.experiment.as_slice() {
            [] => EXPERIMENTS.to_vec(),
            chosen => chosen.iter().map(|name| registry::find(name)).collect::<kurabe_core::Result<_>>()?,
        };
        let seed = match (&given.seed, &first) {
            (Some(_), _) => count("seed", &given.seed, 1 << SEED_BITS)?.unwrap_or(1),
            (None, Some(first)) => first.seed(&experiments)?,
            (None, None) => clock >> 10 & ((1 << SEED_BITS) - 1),
        };
        Ok(Self {
            listen: address(given.listen.as_deref().unwrap_or_default(), given.allow_remote)?,
            options: Options {
                part: join::part(given.part.as_deref().unwrap_or_default(), given.join.as_deref())?,
                connection,
                workers,
                queue: count("queue", &given.queue, 1_000_000)?.unwrap_or(1_000) as usize,
                head_time: time("header-time", &given.header_time)?,
                idle_time: time("idle-time", &given.idle_time)?,
                seed,
                hosts: given.host.clone(),
                allow_get_writes: given.allow_get_writes,
                serves_other_users: given.allow_other_users,
            },
            dataset: Dataset { seed, records: count("records", &given.records, 1_000_000_000)?, slot: 0 },
            durability: parsed("durability", given.durability.as_ref(), DurabilityClass::parse)?,
            experiments,
            first,
            named: !given.experiment.is_empty(),
            axes: axes(&given.set)?,
        })
    }

    /// The cell of an experiment to serve: the value that was set, or the first one, of each axis.
    fn cell(&self, experiment: &Experiment) -> kurabe_core::Result<Cell> {
        let info = experiment.info;
        let slots = self.options.session_slots() * self.options.part.of;
        let anew = self.options.connection == Connection::PerRequest;
        let values = info.axes.iter().map(|axis| {
            let set = self.axes.get(&(info.name.to_owned(), axis.name.to_owned()));
            let text = match (set, axis.name) {
                (Some(text), _) => text.clone(),
                // Each session slot is one client of the database.
                (None, "clients") => slots.to_string(),
                (None, "connection") if anew && axis.parse("per-request").is_ok() => "per-request".to_owned(),
                (None, _) => axis.default.first().copied().unwrap_or_default().to_owned(),
            };
            Ok((axis.name.to_owned(), axis.parse(&text).map_err(|e| e.context(info.name))?))
        });
        Ok(Cell::new(values.collect::<kurabe_core::Result<Vec<_>>>()?))
    }
}

/// The address to listen on: only on this machine unless the user allows others.
pub(super) fn address(text: &str, remote: bool) -> kurabe_core::Result<SocketAddr> {
    let address: SocketAddr = text.parse().map_err(|_| {
        Error::usage(format!("--listen: '{text}' is not an address"))
            .hint("write 127.0.0.1:8080 or [::1]:8080")
    })?;
    if address.ip().is_loopback() || remote {
        return Ok(address);
    }
    Err(Error::usage(format!("--listen: other machines can reach {address}, and it has no authentication"))
        .hint("add --allow-remote to allow that"))
}

/// Reads `--set session.payload=10k` options.
fn axes(set: &[String]) -> kurabe_core::Result<HashMap<(String, String), String>> {
    let mut found = HashMap::new();
    for text in set {
        let parts = text.split_once('=').and_then(|(axis, value)| Some((axis.split_once('.')?, value)));
        let Some(((experiment, axis), value)) = parts else {
            return Err(Error::usage(format!("--set: '{text}' is not EXPERIMENT.AXIS=VALUE")));
        };
        let info = registry::find(experiment).map_err(|e| e.context("--set"))?.info;
        let names: Vec<&str> = info.axes.iter().map(|axis| axis.name).collect();
        match axis {
            "clients" => {
                return Err(Error::usage("--set: the number of clients is the number of workers")
                    .hint("write --workers N"));
            }
            "connection" => {
                let what = "--set: the connection mode applies to all experiments";
                return Err(Error::usage(what).hint("write --connection per-request, kept or pool"));
            }
            _ => {}
        }
        if !names.contains(&axis) {
            let error = Error::usage(format!("--set: {experiment} has no axis '{axis}'"));
            return Err(error.hint(units::suggestion(axis, &names, "there are")));
        }
        found.insert((experiment.to_owned(), axis.to_owned()), value.to_owned());
    }
    Ok(found)
}

fn serve(given: &AppOptions, target: &Arc<Target>, stop: &AtomicBool, output: &Output) -> Result<Exit> {
    if let Some(why) = &target.skip_reason {
        return Err(Error::unsupported(why.clone()).context(&target.name).into());
    }
    if target.driver.capabilities().is_application {
        return Err(Error::usage(format!("{} is itself an application", target.name))
            .hint("name the database behind it")
            .into());
    }
    let shown = target.url.clone();
    let Chosen { mut served, unavailable, largest_answer } = choose(given, target, output)?;
    ConnectOptions { largest_answer, ..ConnectOptions::default() }.make_default();
    let name = format!("app-{}", std::process::id());
    signals::wait_for(format!("{} to be loaded", target.name));
    let mut fixture = match &given.first {
        None => {
            let mut fixture = Fixture::open(target, 0, 1, &name).map_err(|e| e.context(&target.name))?;
            fill(&mut served, &mut fixture, stop, output).map_err(|e| e.context(&target.name))?;
            Some(fixture)
        }
        Some(first) => {
            first.agrees(&given.options, &served)?;
            None
        }
    };
    let for_sessions = Arc::clone(target);
    let workloads = served.clone();
    let application = Application {
        connect: Box::new(move |options| for_sessions.driver.connect(options)),
        target: shown,
        facts: target.facts.clone(),
        served,
        unavailable,
        database: target.driver.endpoint(),
        options: given.options.clone(),
    };
    let listening = application.listen(given.listen)?;
    announce(given, &listening, output)?;
    signals::wait_for("requests in progress");
    let outcome = listening.serve(stop);
    signals::wait_for(format!("writes to be verified on {}", target.name));
    output.note(&summary(&outcome));
    let checked = if given.options.part.of > 1 {
        output.note("not verified on the server: with several applications, each knows only its own writes");
        Ok(())
    } else {
        check(&workloads, target, outcome.pages, output)
    };
    if fixture.as_mut().is_some_and(|fixture| fixture.clean_up().is_err()) {
        // The connection may be lost. The clean-up uses a newly opened fixture.
        drop(fixture);
        if let Err(error) = Fixture::open(target, 0, 1, &name) {
            output.warning(&format!(
                "data in {} could not be removed; the next run on it removes it: {error}",
                target.name
            ));
        }
    }
    checked?;
    Ok(exit::DONE)
}

/// The experiments that can be served, and the others with the reason.
struct Chosen {
    served: Vec<Served>,
    unavailable: Vec<(&'static str, String)>,
    /// The largest reply of the database to any of them.
    largest_answer: u64,
}

fn choose(given: &AppOptions, target: &Target, output: &Output) -> Result<Chosen> {
    let mut chosen = Chosen { served: Vec::new(), unavailable: Vec::new(), largest_answer: 0 };
    for experiment in &given.experiments {
        let info = experiment.info;
        let planned = match (experiment.plan)(&given.cell(experiment)?, &given.dataset) {
            Ok(planned) => match (target.refusal(&planned.demand), &planned.pages) {
                (Some(reason), _) => Err(reason),
                (None, Some(pages)) => Ok((pages.clone(), planned)),
                (None, None) => Err("it has no pages".to_owned()),
            },
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(error.to_string()),
            Err(error) => return Err(error.context(info.name).into()),
        };
        match planned {
            Ok((pages, planned)) => {
                chosen.largest_answer = chosen.largest_answer.max(planned.demand.request_bytes);
                chosen.served.push(Served {
                    name: info.name,
                    operations: info.operations,
                    pages,
                    workload: planned.workload()?,
                    state: Arc::default(),
                });
            }
            Err(reason) if given.named => return Err(Error::unsupported(reason).context(info.name).into()),
            Err(reason) => {
                output.note(&format!("{} is not available: {reason}", info.name));
                chosen.unavailable.push((info.name, reason));
            }
        }
    }
    Ok(chosen)
}

/// Loads the data of every experiment.
fn fill(
    served: &mut [Served],
    fixture: &mut Fixture,
    stop: &AtomicBool,
    output: &Output,
) -> kurabe_core::Result<()> {
    let (namespace, session) = fixture.connections()?;
    let session = &mut cancellable(session, stop);
    for served in served {
        output.note(&format!("loading the data of {} …", served.name));
        let loaded = served.workload.load(namespace, session);
        let mut state =
            loaded.map_err(|error| error.context(format!("loading the data of {}", served.name)))?;
        for operation in served.operations().map(|operation| operation.name) {
            served.workload.before(Before { operation, state: &mut state, namespace, session })?;
        }
        served.state = Arc::new(state);
    }
    Ok(())
}

fn announce(given: &AppOptions, listening: &Listening, output: &Output) -> kurabe_core::Result<()> {
    let address = listening.address();
    output.result(&format!("http://{address}"))?;
    if !address.ip().is_loopback() {
        output.warning("other machines can reach this address, and there is no authentication");
    }
    output.note(&format!(
        "{} workers, a queue of {}, at most {}; / lists the pages; Ctrl-C stops",
        given.options.workers,
        units::count(given.options.queue as u64),
        units::counted(listening.most_connections() as u64, "connection")
    ));
    Ok(())
}

/// A summary in one line.
fn summary(outcome: &Outcome) -> String {
    let mut text = format!("{} requests answered", units::count(outcome.answered));
    for (n, what) in [
        (outcome.failed, "failed"),
        (outcome.refused, "refused because the queue was full"),
        (outcome.malformed, "malformed"),
    ] {
        if n > 0 {
            let _ = write!(text, ", {} {what}", units::count(n));
        }
    }
    if let Some(own) = outcome.own_cpu_us() {
        let _ = write!(text, "; {own:.1} µs of CPU each, without the database client");
    }
    if let Some(mean) = outcome.mean_wait() {
        let [mean, longest] = [mean, outcome.longest_wait].map(units::time);
        let _ = write!(text, "; they waited {mean} for a worker on average, {longest} at most");
    }
    text
}

/// Verifies the clients' writes on the database, as after a trial.
fn check(served: &[Served], target: &Target, summaries: Vec<PageSummary>, output: &Output) -> Result<()> {
    let mut pages: BTreeMap<(usize, &'static str), (u64, Vec<ClientSummary>)> = BTreeMap::new();
    for PageSummary { served, operation, done, failed } in summaries {
        let (all_failed, all_done) = pages.entry((served, operation)).or_default();
        *all_failed += failed;
        all_done.push(done);
    }
    pages.retain(|_, (_, done)| done.iter().any(|client| client.rows_written > 0));
    for ((experiment, operation), (failed, done)) in pages {
        let Served { name, workload, state, .. } = &served[experiment];
        let name = format!("{name} {operation}");
        if failed > 0 {
            let n = units::count(failed);
            output.note(&format!(
                "{name}: not verified on the server: the outcome of {n} failed requests is unknown"
            ));
            continue;
        }
        let found = target.driver.connect(&ConnectOptions::default()).and_then(|mut session| {
            workload.after(After { operation, state, session: &mut *session, clients: &done })
        });
        match found {
            Ok(checked) => {
                output.note(&format!(
                    "{name}: {}",
                    kurabe_report::verified_writes(&checked.verification, kurabe_report::Language::English)
                ));
            }
            Err(error) if error.kind() == ErrorKind::Mismatch => return Err(error.context(name).into()),
            Err(error) => output.warning(&format!("{name}: could not be verified on the server: {error}")),
        }
    }
    Ok(())
}
