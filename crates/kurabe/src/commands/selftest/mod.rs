//! `kurabe selftest`: plants a known cause on a throwaway server, and checks whether attribution names
//! it.

mod differences;
mod group;
mod kind;
mod lock;
mod plant;
mod relay;
mod trial;
mod wrap;

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::suite::Interleave;
use crate::targets::UP;
use crate::{signals, targets};
use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
use kind::{EMBEDDED, Kind};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_engine::cpu_partition::CpuPartition;
use kurabe_report::attribution::{Attribution, Bottleneck, Confidence};
use kurabe_testbed::Server;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trial::Ground;

/// The engines on which causes are planted, if they are installed.
const ENGINES: [&str; 6] = ["postgres", "mysql", "mariadb", "redis", "memcached", EMBEDDED];
/// The time of each separate trial with planted differences.
const SHORT: Duration = Duration::from_millis(60);
/// The same for interleaved trials, for differences of a few per cent.
const LONGER: Duration = Duration::from_millis(300);
/// The maximum number of reruns of a disturbed trial, …
const AGAIN: u32 = 2;
/// … each after a pause.
const PAUSE: Duration = Duration::from_millis(700);
/// The minimum share of correctly named causes; with fewer the command fails.
const LEAST: f64 = 0.95;

/// An engine, and the settings of its throwaway server: `?name=value&…`, or nothing.
struct Engine {
    name: &'static str,
    settings: String,
}

/// A cause that was planted once, and its attribution.
struct Case {
    kind: Kind,
    engine: &'static str,
    found: Attribution,
    /// The number of reruns because of disturbances.
    again: u32,
}

impl Engine {
    /// The URL of its throwaway server.
    fn url(&self) -> String {
        format!("{UP}:{}{}", self.name, self.settings)
    }
}

impl Case {
    fn right(&self) -> bool {
        self.found.bottleneck == self.kind.expected(self.engine)
    }

    /// Whether anything was named. In a disturbed trial "not known" is correct, and does not
    /// test the rules.
    fn named(&self) -> bool {
        self.found.bottleneck != Bottleneck::Unknown || self.found.disturbed.is_none()
    }

    fn wrong_and_certain(&self) -> bool {
        !self.right() && self.found.confidence == Confidence::High
    }
}

pub(super) fn selftest(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let number = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let rounds = units::parse_count(number("rounds"))?;
    let time = units::parse_duration(number("duration"))?;
    let engines = engines(matches)?;
    let kinds = chosen(matches, "kind", &Kind::ALL.map(Kind::name))?;
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kinds.contains(&kind.name())).collect();
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    if let Some(text) = matches.get_one::<String>("differences") {
        let slice = match Interleave::parse(number("interleave"))? {
            Interleave::Slices(slice) => Some(slice),
            Interleave::Off => None,
        };
        let separate = matches.get_flag("separate");
        let plan = differences::Plan {
            writes: matches.get_flag("writes"),
            clients: matches
                .get_many::<String>("clients")
                .into_iter()
                .flatten()
                .map(|text| Ok(units::parse_count(text).map_err(|error| error.context("--clients"))?.max(1)))
                .collect::<Result<_>>()?,
            separate,
            records: matches
                .get_one::<String>("records")
                .map(|text| units::parse_count(text).map_err(|error| error.context("--records")))
                .transpose()?,
            slice,
            cpu_partition: slice.and_then(|_| CpuPartition::of_this_machine()),
            comparisons: units::parse_count(text)?,
            rounds: match matches.value_source("rounds") {
                Some(ValueSource::CommandLine) => u32::try_from(rounds).unwrap_or(u32::MAX).max(2),
                _ if separate => crate::suite::ROUNDS,
                _ => differences::ROUNDS,
            },
            effect: crate::suite::until::percentage(number("effect"))?.min(0.5),
            // Short trials suffice for many comparisons, unless the user sets a time.
            time: match matches.value_source("duration") {
                Some(ValueSource::CommandLine) => time,
                _ if slice.is_some() => LONGER,
                _ => SHORT,
            },
        };
        if plan.comparisons == 0 {
            return Err(Error::usage("--differences 0 is out of range").into());
        }
        if separate && engines.iter().any(|engine| engine.name == EMBEDDED) {
            return Err(Error::usage(format!("--separate: {EMBEDDED} has no server"))
                .hint("name the engines, as in: kurabe selftest postgres mariadb")
                .into());
        }
        return Ok(differences::differences(&plan, &engines, &cancel, output)?);
    }
    let mut cases: Vec<Case> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for engine in &engines {
        let server = match start(engine, output) {
            Ok(server) => server,
            Err(error) => {
                left_out.push(format!("{}: {error}", engine.name));
                continue;
            }
        };
        let ground = Ground { engine: engine.name, server: server.as_ref(), time, cancel: &cancel };
        for kind in &kinds {
            if let Err(why) = plant(*kind, &ground, rounds, &mut cases, output) {
                left_out.push(format!("{} on {}: {why}", kind.name(), engine.name));
            }
            if cancel.load(Ordering::SeqCst) {
                break;
            }
        }
        if let Some(Err(error)) = server.map(Server::stop) {
            output.warning(&error.to_string());
        }
        if cancel.load(Ordering::SeqCst) {
            break;
        }
    }
    output.result(&table(&kinds, &cases, &left_out, time))?;
    if cancel.load(Ordering::SeqCst) {
        return Ok(exit::INTERRUPTED);
    }
    let right = cases.iter().filter(|case| case.right()).count();
    let named = cases.iter().filter(|case| case.named()).count();
    let enough = named > 0 && right as f64 >= LEAST * named as f64;
    Ok(if enough && !cases.iter().any(Case::wrong_and_certain) { exit::DONE } else { exit::INTERNAL })
}

/// The known words that the user chose; all if there are none.
fn chosen(matches: &ArgMatches, name: &str, known: &[&'static str]) -> Result<Vec<&'static str>> {
    let words: Vec<&String> = matches.get_many::<String>(name).into_iter().flatten().collect();
    if words.is_empty() {
        return Ok(known.to_vec());
    }
    words.into_iter().map(|word| one_of(word, known)).collect()
}

fn one_of(word: &str, known: &[&'static str]) -> Result<&'static str> {
    known.iter().find(|one| **one == word).copied().ok_or_else(|| {
        Error::usage(format!("unknown engine or cause '{word}'"))
            .hint(format!("there are: {}", known.join(", ")))
            .into()
    })
}

/// The engines that the user chose, with their settings; all if there are none.
fn engines(matches: &ArgMatches) -> Result<Vec<Engine>> {
    let words: Vec<&String> = matches.get_many::<String>("engine").into_iter().flatten().collect();
    if words.is_empty() {
        return Ok(ENGINES.map(|name| Engine { name, settings: String::new() }).into());
    }
    words
        .into_iter()
        .map(|word| {
            let (name, settings) = word.split_at(word.find('?').unwrap_or(word.len()));
            Ok(Engine { name: one_of(name, &ENGINES)?, settings: settings.to_owned() })
        })
        .collect()
}

/// A throwaway server that syncs each commit; `None` for an embedded database.
fn start(engine: &Engine, output: &Output) -> kurabe_core::Result<Option<Server>> {
    if engine.name == EMBEDDED {
        return Ok(None);
    }
    let url = TargetUrl::parse(&engine.url())?;
    let synced = targets::up(&url, Some(DurabilityClass::Synced), 0, output);
    // Not all engines can sync; causes with writes are not planted on the others.
    match synced {
        Ok(server) => Ok(Some(server)),
        Err(_) => targets::up(&url, None, 0, output).map(Some),
    }
}

/// Plants a cause that many times.
fn plant(
    kind: Kind,
    ground: &Ground<'_>,
    rounds: u64,
    cases: &mut Vec<Case>,
    output: &Output,
) -> Result<(), String> {
    if let Some(why) = kind.why_not(ground.engine) {
        return Err(why.to_owned());
    }
    for round in 0..rounds {
        let mut again = 0;
        let found = loop {
            let found = match ground.trial(kind, round) {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error.to_string()),
                Err(_) if ground.cancel.load(Ordering::SeqCst) => return Ok(()),
                // A failure would repeat itself, so its reason is shown with the table.
                Err(error) => return Err(format!("its trial failed: {error}")),
            };
            if found.disturbed.is_none() || again == AGAIN {
                break found;
            }
            again += 1;
            pause(ground.cancel);
        };
        let case = Case { kind, engine: ground.engine, found, again };
        let verdict = match (case.right(), case.named()) {
            (true, _) => "right",
            (false, true) => "WRONG",
            (false, false) => "disturbed",
        };
        output.note(&format!(
            "{} on {}: {} ({}), {verdict}: {}",
            kind.name(),
            ground.engine,
            case.found.bottleneck.name(),
            case.found.confidence.name(),
            case.found.evidence
        ));
        cases.push(case);
    }
    Ok(())
}

fn pause(cancel: &AtomicBool) {
    if !cancel.load(Ordering::SeqCst) {
        std::thread::sleep(PAUSE);
    }
}

/// The results as Markdown.
fn table(kinds: &[Kind], cases: &[Case], left_out: &[String], time: Duration) -> String {
    let engines: Vec<&str> =
        ENGINES.into_iter().filter(|engine| cases.iter().any(|case| case.engine == *engine)).collect();
    let mut text = format!(
        "| planted | must be named | {} |\n|---|---|{}\n",
        engines.join(" | "),
        "---:|".repeat(engines.len())
    );
    for kind in kinds {
        let mut names: Vec<&str> = engines.iter().map(|engine| kind.expected(engine).word()).collect();
        names.sort_unstable();
        names.dedup();
        let cells: Vec<String> = engines
            .iter()
            .map(|engine| {
                let here = || cases.iter().filter(|case| case.kind == *kind && case.engine == *engine);
                let right = || here().filter(|case| case.right());
                let sure = right().filter(|case| case.found.confidence == Confidence::High).count();
                match here().filter(|case| case.named()).count() {
                    0 => "–".to_owned(),
                    all => format!("{} of {all} ({sure} certain)", right().count()),
                }
            })
            .collect();
        let _ = writeln!(text, "| {} | {} | {} |", kind.planted(), names.join(" or "), cells.join(" | "));
    }
    let again: u32 = cases.iter().map(|case| case.again).sum();
    let disturbed = cases.iter().filter(|case| case.found.disturbed.is_some()).count();
    let certain = cases.iter().filter(|case| case.wrong_and_certain()).count();
    let right = cases.iter().filter(|case| case.right()).count();
    let _ = write!(
        text,
        "\nEach trial took {}. {again} trials were repeated because other processes used the CPU; {disturbed} of the trials that \
         count were disturbed. {certain} causes were named wrongly with high confidence.\n",
        units::time(time)
    );
    for why in left_out {
        let _ = writeln!(text, "- left out: {why}");
    }
    let unnamed = cases.iter().filter(|case| !case.named()).count();
    if unnamed > 0 {
        let _ = writeln!(text, "- {unnamed} disturbed trials named nothing; they are not counted");
    }
    for case in cases.iter().filter(|case| !case.right() && case.named()) {
        let _ = writeln!(
            text,
            "- {} on {} was named {}: {}",
            case.kind.name(),
            case.engine,
            case.found.bottleneck.name(),
            case.found.evidence
        );
    }
    let _ = writeln!(text, "\n{right} of {} planted causes named correctly", cases.len() - unnamed);
    text
}
