//! `kurabe doctor TARGET…` checks targets, `kurabe doctor --runs` run files, and `kurabe doctor --via URL` what an application does not
//! do as docs/app.openapi.yaml says.

use super::messages;
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::words::split_targets;
use crate::{places, signals, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::driver::Support;
use kurabe_core::experiment::Dataset;
use kurabe_core::facts::{Limit, Setting};
use kurabe_core::observation::Endpoint;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_engine::plan::plan_cell;
use kurabe_engine::prepare::target::{OWN_CONNECTIONS, Target};
use kurabe_experiments::conformance::{self, Check, Outcome};
use kurabe_experiments::registry::EXPERIMENTS;
use kurabe_record::{Entry, Recorded, RunState, Store};
use kurabe_targets::{OpenOptions, SERVED_BY_STACKS, StackData};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

options! {
    /// The options of `kurabe doctor`.
    DoctorOptions {
        target: Vec<String>,
        runs: bool,
        clients: Option<String>,
        timeout: Option<String>,
        via: Vec<String>,
        db: Option<String>,
        messages: bool,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn doctor(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = DoctorOptions::of(matches);
    signals::leave_at_once(output)?;
    time::set_timeout(options.timeout.as_deref())?;
    let mut worst = None;
    if options.runs {
        worst = check_runs(&places::runs(options.runs_dir.as_deref())?, output)?;
    }
    let clients = options.clients.as_ref().map_or(Ok(1), |text| units::parse_count(text))?;
    let mut urls = options.target;
    worst = check_applications(&options.via, options.db.as_deref(), output)?.or(worst);
    if urls.is_empty() && !options.runs && options.via.is_empty() {
        urls.push("sqlite:".to_owned());
    }
    for url in &urls {
        match kurabe_targets::open(std::slice::from_ref(url), &kurabe_targets::OpenOptions::default(), output)
        {
            Ok(opened) => {
                for (target, reached) in opened.targets.iter().zip(&opened.reached) {
                    let wire = options.messages.then(|| {
                        messages::lines(reached, &target.driver.endpoint())
                            .unwrap_or_else(|e| vec![("wire", e.to_string())])
                    });
                    let (mut text, fits) =
                        examine(target, &wire.unwrap_or_default(), clients, output.verbose);
                    for (server, remote) in &opened.observers {
                        let Endpoint::Tcp { host, port } = server else { continue };
                        let value = match remote.try_out(host, *port) {
                            Ok(()) => format!("by the agent of '{}'", remote.name()),
                            Err(why) => format!("no: {why}"),
                        };
                        let _ = writeln!(text, "  {:<15} {value}", "observed");
                    }
                    output.list(&text)?;
                    if !fits {
                        worst = Some(exit::TARGET);
                    }
                }
                opened.close(output);
            }
            Err(error) => {
                let error = error.into();
                output.error(&error);
                worst = Some(exit::of(&error));
            }
        }
    }
    Ok(worst.unwrap_or(exit::DONE))
}

/// The server's facts, after what was asked about the wire, and whether it has connections for that many clients.
fn examine(target: &Target, wire: &[(&'static str, String)], clients: u64, verbose: bool) -> (String, bool) {
    let facts = &target.facts;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<15} {value}");
    };
    let by = if target.driver.endpoint() == Endpoint::InProcess { "" } else { "by " };
    line("reachable", &format!("yes, {by}{}", facts.transport));
    line("version", &format!("{} {}", facts.engine, facts.version));
    line("client", &facts.client);
    if let Some(nanoseconds) = facts.round_trip_ns {
        line("round trip", &units::time(Duration::from_nanos(nanoseconds)));
    }
    for (name, value) in wire {
        line(name, value);
    }
    match facts.durability {
        None => line("durability", "unknown: see the notes"),
        Some(class) => line("durability", &format!("{class}: {}", class.promise())),
    }
    let shown = |settings: &[Setting]| {
        let each = settings.iter().map(|setting| format!("{} = {}", setting.name, setting.value));
        if verbose { each.collect() } else { folded(each) }
    };
    for setting in shown(&facts.durability_settings) {
        line("", &setting);
    }
    for (n, setting) in shown(&facts.settings).iter().enumerate() {
        line(if n == 0 { "settings" } else { "" }, setting);
    }
    let mut fits = true;
    let limits = &facts.limits;
    if let Some(limit) = &limits.connections {
        let used = limits.connections_in_use.unwrap_or(0);
        let free = limit.most.saturating_sub(used);
        fits = clients.saturating_add(OWN_CONNECTIONS) <= free;
        let verdict = if fits { "enough" } else { "too few" };
        line(
            "connections",
            &format!(
                "{} free of {} ({}): {verdict} for {}",
                units::count(free),
                units::count(limit.most),
                limit.set_by,
                units::counted(clients, "client")
            ),
        );
    }
    let mut most = |name: &str, limit: &Option<Limit>, show: fn(u64) -> String| {
        if let Some(limit) = limit {
            line(name, &format!("{} ({})", show(limit.most), limit.set_by));
        }
    };
    most("largest value", &limits.value_bytes, units::size);
    most("largest request", &limits.request_bytes, units::size);
    most("parameters", &limits.parameters, units::count);
    most("prepared", &limits.prepared_statements, |most| format!("{} statements more", units::count(most)));
    let writes = match (&facts.read_only, &facts.no_tables) {
        (Some(why), _) => Some(format!("reads only: {why}")),
        (None, Some(why)) => Some(format!("existing tables only: {why}")),
        (None, None) => None,
    };
    match writes {
        Some(why) => {
            line("access", &why);
            line(
                "",
                "what uses tables that are there can be run: pgbench's and sysbench's scripts, custom workloads, estimate --data",
            );
        }
        None if verbose => available(target).iter().for_each(|(name, answer)| line(name, answer)),
        None => {
            for (name, experiments) in summed_up(&available(target)) {
                for (n, some) in folded(experiments.into_iter()).iter().enumerate() {
                    line(if n == 0 { name } else { "" }, some);
                }
            }
            line("", "'kurabe doctor -v' has the values of each, with reasons");
        }
    }
    for caution in kurabe_drivers::caution::cautions(facts, 0) {
        line("caution", &caution);
    }
    for note in &facts.notes {
        line("note", note);
    }
    (format!("{}\n{text}", target.name), fits)
}

/// The width of lines of several things.
const FOLD: usize = 100;

/// Things in as few lines as they fit into.
fn folded(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for one in all {
        match lines.last_mut().filter(|line| line.len() + one.len() + 2 <= FOLD) {
            Some(line) => *line = format!("{line}, {one}"),
            None => lines.push(one),
        }
    }
    lines
}

/// The experiments that a target supports with all their values, with some, and with none.
fn summed_up(lines: &[(&'static str, String)]) -> Vec<(&'static str, Vec<String>)> {
    let mut all: [(&'static str, Vec<String>); 3] =
        [("available", Vec::new()), ("in part", Vec::new()), ("not available", Vec::new())];
    let mut others = Vec::new();
    for (name, answer) in lines {
        let is_part = answer.split(' ').nth(1) == Some("not");
        let experiment = answer.split([' ', ':']).next().unwrap_or_default().to_owned();
        let at = match *name {
            "available" => 0,
            "not available" if is_part => 1,
            "not available" => 2,
            _ => {
                others.push((*name, vec![answer.clone()]));
                continue;
            }
        };
        if !all[at].1.contains(&experiment) {
            all[at].1.push(experiment);
        }
    }
    all.into_iter().chain(others).filter(|(_, some)| !some.is_empty()).collect()
}

/// For each experiment, the axis values that the target does not support, with all other axes at their first values.
fn available(target: &Target) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for experiment in EXPERIMENTS {
        let info = experiment.info;
        let mut problems = Vec::new();
        let mut values = 0;
        for axis in info.axes {
            let words: Vec<&str> = match &axis.kind {
                kind if kind.is_choice() => kind.words.iter().map(|(word, _)| *word).collect(),
                _ => axis.default.to_vec(),
            };
            for word in words {
                values += 1;
                // Enough records for the clients of every axis; nothing is loaded.
                let dataset = Dataset { seed: 1, records: Some(1_000), slot: 0 };
                let made = info.baseline(&[(axis.name, word)]).and_then(|cell| {
                    let is_application = target.driver.capabilities().is_application;
                    plan_cell(experiment, &cell, &dataset, is_application)
                });
                let reason = match made {
                    Ok(planned) => target.refusal(&planned.demand),
                    Err(error) => Some(error.to_string()),
                };
                problems.extend(reason.map(|reason| (format!("{} {word}", axis.name), reason)));
            }
        }
        let whole = problems.len() == values && problems.iter().all(|(_, reason)| *reason == problems[0].1);
        if let Some((_, reason)) = problems.first().filter(|_| whole) {
            lines.push(("not available", format!("{}: {reason}", info.name)));
        } else if problems.is_empty() {
            lines.push(("available", format!("{}: all {values} axis values", info.name)));
        } else {
            let problem = |(value, reason)| format!("{} not with {value}: {reason}", info.name);
            lines.extend(problems.into_iter().map(|found| ("not available", problem(found))));
        }
    }
    if let Support::No(reason) = target.driver.capabilities().prepared_statements {
        lines.push(("statements", reason));
    }
    lines
}

/// Reads every line of every run and prints a line per run. Returns an exit code if one cannot be read.
pub(super) fn check_runs(store: &Store, output: &Output) -> Result<Option<Exit>> {
    let entries = store.list()?;
    let width = entries.iter().map(|entry| entry.path().name.len()).max().unwrap_or(0);
    let mut counts = BTreeMap::new();
    let mut text = String::new();
    for entry in &entries {
        let (state, about) = run_state(entry);
        *counts.entry(state).or_insert(0_u64) += 1;
        let _ = writeln!(text, "{:width$}  {state}: {about}", entry.path().name);
    }
    let total: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let runs = if entries.len() == 1 { "run" } else { "runs" };
    let _ = write!(text, "{} {runs} in {}", entries.len(), store.dir().display());
    let _ = writeln!(text, "{}{}", if total.is_empty() { "" } else { ": " }, total.join(", "));
    output.list(&text)?;
    let unreadable = counts.keys().any(|state| !matches!(*state, "whole" | "torn" | "running"));
    Ok(unreadable.then_some(exit::RUN_FILE))
}

/// The state of a run file in one word, and the details.
fn run_state(entry: &Entry) -> (&'static str, String) {
    let recorded = match kurabe_record::read(entry.path()) {
        Ok(recorded) => recorded,
        Err(error) if error.kind() == ErrorKind::Damaged => return ("damaged", error.to_string()),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return ("of another version", error.to_string());
        }
        Err(error) => return ("unreadable", error.to_string()),
    };
    let Recorded { run, torn, .. } = &recorded;
    let trials = units::counted(run.trials.len() as u64, "trial");
    if matches!(entry, Entry::Run(summary) if summary.state == RunState::Running) {
        return ("running", trials);
    }
    match torn {
        Some(torn) => ("torn", format!("{trials}; {torn}")),
        None if run.end.as_ref().is_some_and(|end| end.complete) => ("whole", format!("complete, {trials}")),
        None => ("whole", format!("stopped, {trials}")),
    }
}

/// The number of records of a stack that is checked.
const STACK_RECORDS: u64 = 1_000;

/// Checks every application of `--via`. Returns the exit code of the worst.
pub(super) fn check_applications(
    via: &[String],
    database: Option<&str>,
    output: &Output,
) -> Result<Option<Exit>> {
    let urls = via.iter().map(|text| split_targets(text)).collect::<kurabe_core::Result<Vec<_>>>()?.concat();
    let urls = urls.into_iter().map(|url| match database {
        Some(database) => kurabe_targets::with_database(&url, database),
        None => Ok(url),
    });
    let urls = urls.collect::<kurabe_core::Result<Vec<String>>>()?;
    if urls.is_empty() {
        return Ok(None);
    }
    if kurabe_targets::applications(&urls)?.contains(&false) {
        return Err(Error::usage("--via: this is not an application")
            .hint("write http://host:port or stack:php")
            .into());
    }
    let experiments = SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect();
    let stack_data = StackData { experiments, seed: 1, records: Some(STACK_RECORDS) };
    // All at once, so that stacks share their database.
    let open_options = OpenOptions { stack_data, tolerant: true, ..OpenOptions::default() };
    let mut opened = kurabe_targets::open(&urls, &open_options, output)?;
    let mut errors: Vec<Error> = Vec::new();
    let mut conforms = true;
    for target in &opened.targets {
        match conformance::check(&*target.driver) {
            Ok(checks) => {
                conforms &= !checks.iter().any(|check| matches!(check.outcome, Outcome::Wrong(_)));
                output.result(&shown(&target.name, &checks))?;
            }
            Err(error) => errors.push(error.context(&target.name)),
        }
    }
    errors.extend(opened.died().map(|why| kurabe_targets::start_error(ErrorKind::ConnectionLost, &why)));
    errors.extend(std::mem::take(&mut opened.unopened).into_iter().map(|(_, error)| error));
    opened.close(output);
    let mut worst = (!conforms).then_some(exit::TARGET);
    for error in errors {
        let error = error.into();
        output.error(&error);
        worst = Some(exit::of(&error));
    }
    Ok(worst)
}

/// The checks, a line each, and their number.
fn shown(name: &str, checks: &[Check]) -> String {
    let mut text = format!("{name}\n");
    let (mut right, mut wrong) = (0, 0);
    for Check { what, outcome } in checks {
        let (word, why) = match outcome {
            Outcome::Right => {
                right += 1;
                ("ok", "")
            }
            Outcome::Wrong(why) => {
                wrong += 1;
                ("WRONG", why.as_str())
            }
            Outcome::Absent(why) => ("absent", why.as_str()),
        };
        let colon = if why.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "  {word:<8}{what}{colon}{why}");
    }
    let _ = write!(text, "  {right} as docs/app.openapi.yaml says, {wrong} not");
    text
}
