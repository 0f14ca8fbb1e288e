//! `kurabe doctor TARGET…` checks targets. `kurabe doctor --runs` checks run files.

use super::{conformance, messages, runs};
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::{places, signals, timeout};
use anyhow::Result;
use kurabe_core::driver::Support;
use kurabe_core::experiment::Dataset;
use kurabe_core::facts::{Limit, Setting};
use kurabe_core::observation::Endpoint;
use kurabe_core::units;
use kurabe_engine::plan::plan_cell;
use kurabe_engine::prepare::target::{OWN_CONNECTIONS, Target};
use kurabe_experiments::registry::EXPERIMENTS;
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

pub(super) fn doctor(options: DoctorOptions, output: &Output) -> Result<Exit> {
    signals::leave_at_once(output)?;
    timeout::set(options.timeout.as_deref())?;
    let mut worst = None;
    if options.runs {
        worst = runs::check(&places::runs(options.runs_dir.as_deref())?, output)?;
    }
    let clients = options.clients.as_ref().map_or(Ok(1), |text| units::parse_count(text))?;
    let mut urls = options.target;
    worst = conformance::check(&options.via, options.db.as_deref(), output)?.or(worst);
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
                "{} free of {} ({}): {verdict} for {} client{}",
                units::count(free),
                units::count(limit.most),
                limit.set_by,
                units::count(clients),
                if clients == 1 { "" } else { "s" }
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
