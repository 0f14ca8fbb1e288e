//! Plants a known cause on a throwaway server, and checks whether attribution names it.

mod group;
mod kind;
mod lock;
mod plant;
mod trial;
mod wrap;

use crate::{ENGINES, Engine, TestResult, one_of, start};
use kind::Kind;
use kurabe_core::{ErrorKind, Result, units};
use kurabe_report::attribution::{Attribution, Bottleneck, Confidence};
use kurabe_targets::Reporter;
use kurabe_testbed::Server;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trial::Ground;

/// The maximum number of reruns of a disturbed trial, …
const AGAIN: u32 = 2;
/// … each after a pause.
const PAUSE: Duration = Duration::from_millis(700);
/// The minimum share of correctly named causes; with fewer the test fails.
const MIN: f64 = 0.95;

/// A cause that was planted once, and its attribution.
struct Case {
    kind: Kind,
    engine: &'static str,
    found: Attribution,
    /// The number of reruns because of disturbances.
    again: u32,
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

/// Plants the causes with these names (all if there are none) `rounds` times on each engine, in trials of this time,
/// until `cancel` is set.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if a name is unknown.
pub fn test(
    requested: &[&str],
    rounds: u64,
    time: Duration,
    engines: &[Engine],
    cancel: &AtomicBool,
    reporter: &dyn Reporter,
) -> Result<TestResult> {
    let known = Kind::ALL.map(Kind::name);
    let chosen = requested.iter().map(|name| one_of(name, &known)).collect::<Result<Vec<_>>>()?;
    let is_chosen = |kind: &Kind| chosen.is_empty() || chosen.contains(&kind.name());
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(is_chosen).collect();
    let mut cases: Vec<Case> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for engine in engines {
        let server = match start(engine, reporter) {
            Ok(server) => server,
            Err(error) => {
                left_out.push(format!("{}: {error}", engine.name));
                continue;
            }
        };
        let ground = Ground { engine: engine.name, server: server.as_ref(), time, cancel };
        for kind in &kinds {
            if let Err(why) = plant(*kind, &ground, rounds, &mut cases, reporter) {
                left_out.push(format!("{} on {}: {why}", kind.name(), engine.name));
            }
            if cancel.load(Ordering::SeqCst) {
                break;
            }
        }
        if let Some(Err(error)) = server.map(Server::stop) {
            reporter.warning(&error.to_string());
        }
        if cancel.load(Ordering::SeqCst) {
            break;
        }
    }
    let right = cases.iter().filter(|case| case.right()).count();
    let named = cases.iter().filter(|case| case.named()).count();
    let enough = named > 0 && right as f64 >= MIN * named as f64;
    let passed = enough && !cases.iter().any(Case::wrong_and_certain);
    Ok(TestResult { table: table(&kinds, &cases, &left_out, time), passed })
}

/// Plants a cause that many times.
fn plant(
    kind: Kind,
    ground: &Ground<'_>,
    rounds: u64,
    cases: &mut Vec<Case>,
    reporter: &dyn Reporter,
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
            if !ground.cancel.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
            }
        };
        let case = Case { kind, engine: ground.engine, found, again };
        let verdict = match (case.right(), case.named()) {
            (true, _) => "right",
            (false, true) => "WRONG",
            (false, false) => "disturbed",
        };
        reporter.note(&format!(
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
