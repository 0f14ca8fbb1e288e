//! `kurabe claims [ID…] [TARGET…]`: tests claims, each by a run that ends when the claim is decided.

use super::announcement::{about, with_starts};
use super::compare::origin;
use super::execute::{Job, Made, execute};
use super::files::{is_output, write};
use super::report;
use super::session::StopRule;
use crate::claims::{Definition, Earlier, Resolved, Work, of_file, on_this_machine, resolve, shipped};
use crate::exit::{self, Exit};
use crate::options::{options, parsed};
use crate::output::Output;
use crate::run_options::WorkloadOptions;
use crate::{places, signals, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::origin::Origin;
use kurabe_core::run::Run;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_record::Store;
use kurabe_report::claim::{Card, Held, Judgement, Reason, Report, json, judge, page, terminal};
use kurabe_report::{Language, analyse};
use kurabe_stats::Decision;
use std::path::PathBuf;
use std::time::Duration;

/// The page in the folder of runs.
const PAGE: &str = "claims.html";

options! {
    /// The options of `kurabe claims` besides those of workloads.
    ClaimsOptions {
        word: Vec<String>,
        file: Option<PathBuf>,
        budget: Option<String>,
        recorded: bool,
        dry_run: bool,
        export_html: Option<PathBuf>,
        export_json: Option<PathBuf>,
        no_html: bool,
        label: Vec<String>,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn claims(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (options, workload) = (&ClaimsOptions::of(matches), &WorkloadOptions::of(matches));
    let (given, ids): (Vec<&String>, Vec<&String>) = options.word.iter().partition(|word| word.contains(':'));
    let given: Vec<String> = given.into_iter().cloned().collect();
    for target in &given {
        kurabe_targets::check_scheme(&TargetUrl::parse(target)?)?;
    }
    let file = options.file.as_ref();
    let all = match file {
        Some(file) => of_file(file, workload)?,
        None => shipped(workload)?,
    };
    let chosen = chosen(&all, &ids)?;
    let budget = parsed("budget", options.budget.as_ref(), units::parse_duration)?;
    if budget.is_some_and(|budget| budget.is_zero()) {
        return Err(Error::usage("--budget 0 is out of range").into());
    }
    let labelled = origin(file.map(PathBuf::as_path), &options.label)?;
    let (dry, recorded) = (options.dry_run, options.recorded);
    if dry && recorded {
        return Err(Error::usage("--recorded measures nothing, so that it has no --dry-run").into());
    }
    let runs_dir = options.runs_dir.as_deref();
    let store = if dry || recorded { places::runs(runs_dir)? } else { places::writable_runs(runs_dir)? };
    let session = Session {
        store,
        given,
        budget,
        labels: labelled.labels,
        write: workload.write,
        html: !options.no_html,
        dry,
        recorded,
        output,
    };
    if dry {
        return session.plan(&chosen);
    }
    if !recorded && let Some(time) = chosen.iter().map(|one| session.time(one)).sum::<Option<Duration>>() {
        let all = units::counted(chosen.len() as u64, "claim");
        output.note(&format!("{all}, at most {}", about(time)));
    }
    let files = Files::of(options, &session.store);
    let (mut cards, mut complete, mut failed) = (Vec::new(), false, None);
    for (at, definition) in chosen.iter().enumerate() {
        if signals::stopped() {
            break;
        }
        let about = &definition.about;
        output.note(&format!("claim {} of {}, {}: {}", at + 1, chosen.len(), about.id, about.claim));
        match session.card(definition) {
            Ok(card) => cards.push(card),
            Err(_) if signals::stopped() => break,
            // The other claims have answers all the same.
            Err(error) => {
                output.error(&error);
                let now = Judgement::without_run(Decision::NotTestable, in_one_line(&error.to_string()));
                cards.push(Card::new(about.clone(), None, now, None));
                failed = failed.or(Some(exit::of(&error)));
            }
        }
        complete = !signals::stopped() && at + 1 == chosen.len();
        // The answers so far are kept, whatever happens next.
        files.write(&report_of(&cards, complete), output.language)?;
    }
    if !cards.is_empty() {
        files.print(&report_of(&cards, complete), output)?;
    }
    Ok(match failed {
        _ if !complete => exit::INTERRUPTED,
        Some(exit) => exit,
        None if cards.iter().any(|card| card.no_longer_holds || has_failures(card)) => exit::FAILED_CELLS,
        None => exit::DONE,
    })
}

fn has_failures(card: &Card) -> bool {
    card.now.has_failures() || card.then.as_ref().is_some_and(Judgement::has_failures)
}

/// The claims that the user named; all without names.
fn chosen<'a>(all: &'a [Definition], ids: &[&String]) -> kurabe_core::Result<Vec<&'a Definition>> {
    if ids.is_empty() {
        return Ok(all.iter().collect());
    }
    let names: Vec<&str> = all.iter().map(|one| one.about.id.as_str()).collect();
    if let Some(unknown) = ids.iter().find(|id| !names.contains(&id.as_str())) {
        return Err(Error::usage(format!("there is no claim '{unknown}'"))
            .hint(units::suggestion(unknown, &names, "there are")));
    }
    Ok(all.iter().filter(|one| ids.iter().any(|id| **id == one.about.id)).collect())
}

/// What is written beside the table.
struct Files {
    html: Option<PathBuf>,
    json: Option<PathBuf>,
}

impl Files {
    fn of(options: &ClaimsOptions, store: &Store) -> Self {
        let html = options.export_html.clone();
        // The folder of runs may not exist if nothing is measured.
        let usual = || Some(store.dir().join(PAGE)).filter(|_| store.dir().is_dir());
        let html = if options.no_html { html } else { html.or_else(usual) };
        Self { html, json: options.export_json.clone() }
    }

    /// Writes page and JSON.
    fn write(&self, made: &Report, language: Language) -> Result<()> {
        if let Some(file) = &self.html {
            write(file, page(made, language).as_bytes())?;
        }
        match &self.json {
            Some(file) if !is_output(file) => write(file, json(made).as_bytes()),
            _ => Ok(()),
        }
    }

    fn print(&self, made: &Report, output: &Output) -> Result<()> {
        if self.json.as_ref().is_some_and(|file| is_output(file)) {
            output.result(&json(made))?;
        } else {
            output.result(&terminal(made, &report::terminal_options(output), output.language))?;
        }
        if let Some(file) = &self.html {
            output.hint(&format!("page: {}", file.display()));
        }
        Ok(())
    }
}

/// What all claims of a call have in common.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct Session<'a> {
    store: Store,
    /// The targets of the user, with passwords.
    given: Vec<String>,
    budget: Option<Duration>,
    labels: Vec<String>,
    /// Whether statements may change existing tables.
    write: bool,
    html: bool,
    dry: bool,
    recorded: bool,
    output: &'a Output,
}

/// The answers so far.
fn report_of(cards: &[Card], complete: bool) -> Report {
    let made = time::since_1970().as_secs();
    let machine = kurabe_observe::machine_facts();
    Report::new(env!("CARGO_PKG_VERSION"), made, machine, complete, cards.to_vec())
}

impl Session<'_> {
    /// The time limits of a claim's runs, with the starts of their servers.
    fn time(&self, definition: &Definition) -> Option<Duration> {
        let Ok(work) = &definition.work else { return Some(Duration::ZERO) };
        let eras = [&work.targets, &work.then].into_iter().filter(|listed| !listed.is_empty());
        // Servers of the claim's time are not those that the user gave.
        let eras = eras.take(if self.given.is_empty() { 2 } else { 1 });
        eras.map(|listed| {
            let urls = resolve(listed, &work.tests, &self.given, &on_this_machine).map(|one| one.urls);
            let urls = urls.unwrap_or_default();
            if urls.is_empty() {
                return Some(Duration::ZERO);
            }
            let limit = self.budget.or(work.request.budget);
            with_starts(limit, &urls)
        })
        .sum()
    }

    /// Answers a claim.
    fn card(&self, definition: &Definition) -> Result<Card> {
        let work = match &definition.work {
            Ok(work) => work,
            Err(why) => {
                let now = Judgement::without_run(Decision::NotTestable, why.as_str());
                let held = definition.held.then_some(Held { run: None });
                return Ok(Card::new(definition.about.clone(), held, now, None));
            }
        };
        let (now, held) = self.answer(definition, work, false)?;
        let held = if definition.held { Some(Held { run: None }) } else { held };
        // Servers of the claim's time are not those that the user gave.
        let then = if work.then.is_empty() || !self.given.is_empty() || signals::stopped() {
            None
        } else {
            Some(self.answer(definition, work, true)?.0)
        };
        Ok(Card::new(definition.about.clone(), held, now, then))
    }

    /// The answer for today's servers or for those of the claim's time, and in which earlier run the claim held.
    fn answer(&self, definition: &Definition, work: &Work, then: bool) -> Result<(Judgement, Option<Held>)> {
        let listed = if then { &work.then } else { &work.targets };
        let info = work.request.find()?.info;
        let label = definition.label(then);
        let earlier = Earlier::find(&self.store, &definition.suite, &label, info.name)?;
        if self.recorded {
            return self.recorded_answer(work, listed, info, &earlier);
        }
        let resolved = resolve(listed, &work.tests, &self.given, &on_this_machine)?;
        if resolved.urls.is_empty() {
            return Ok((not_here(resolved), None));
        }
        let request = self.request(work, &resolved)?;
        let decided =
            |run: &Run| !judge(run, &analyse(run, Some(info)), &resolved.tests).iter().any(|part| part.open);
        let labels = [label].into_iter().chain(self.labels.iter().cloned()).collect();
        let job = Job {
            html: self.html,
            origin: Origin { suite: Some(definition.suite.clone()), labels, git: None },
            dry: self.dry,
            stop_rule: StopRule::Claim(&decided),
            ..Job::of(&request, request.spec()?, self.store.clone())?
        };
        let held = earlier.held(None, &job.spec.targets, info, &resolved);
        let judgement = match execute(&job, self.output) {
            Ok((_, Some(Made { run, summary }))) => {
                Judgement::of(&run, &summary, &resolved.tests, resolved.lacking)
            }
            Ok((_, None)) => Judgement::without_run(Decision::Undecided, "nothing was measured"),
            Err(error) => match self.unusable(&error) {
                Some(why) => Judgement::without_run(Decision::NotTestable, why),
                None => return Err(error),
            },
        };
        Ok((judgement, held))
    }

    /// The suite of a claim on the targets that are here.
    fn request(&self, work: &Work, resolved: &Resolved) -> Result<crate::suite::Request> {
        // As for other custom workloads: throwaway servers hold nothing of the user's.
        let write = self.write || kurabe_targets::are_throwaway(&resolved.urls)?;
        Ok(work.request.clone().on(resolved.urls.clone(), write).within(self.budget))
    }

    /// The answer of the newest complete run.
    fn recorded_answer(
        &self,
        work: &Work,
        listed: &[String],
        info: &'static ExperimentInfo,
        earlier: &Earlier,
    ) -> Result<(Judgement, Option<Held>)> {
        let Some(run) = earlier.run(0) else {
            let why = "there is no complete run of it in the folder of runs";
            return Ok((Judgement::without_run(Decision::NotTestable, why), None));
        };
        let made = &run.header.spec.targets;
        let is_here = |url: &TargetUrl| {
            if made.contains(&url.to_string()) {
                Ok(())
            } else {
                Err("it was not part of the run".to_owned())
            }
        };
        let resolved = resolve(listed, &work.tests, &self.given, &is_here)?;
        if resolved.urls.is_empty() {
            return Ok((not_here(resolved), None));
        }
        let held = earlier.held(Some(0), made, info, &resolved);
        Ok((Judgement::of(&run, &analyse(&run, Some(info)), &resolved.tests, resolved.lacking), held))
    }

    /// Why a claim could not be tested, if the reason is one of its targets and not the program, the machine's storage or
    /// the user.
    fn unusable(&self, error: &anyhow::Error) -> Option<String> {
        let error = error.downcast_ref::<Error>()?;
        let other = match error.kind() {
            ErrorKind::Interrupted | ErrorKind::Internal | ErrorKind::Environment | ErrorKind::Damaged => {
                true
            }
            // Of a throwaway server it says that this machine or user cannot start it in this way.
            ErrorKind::Usage => !self.given.is_empty(),
            _ => false,
        };
        (!other).then(|| in_one_line(&error.to_string()))
    }

    /// Prints what would be run.
    fn plan(&self, chosen: &[&Definition]) -> Result<Exit> {
        let (mut runs, mut most, mut without) = (0_u64, Duration::ZERO, 0_u64);
        for definition in chosen {
            let title = format!("{}: {}", definition.about.id, definition.about.claim);
            self.output.result(&title)?;
            let work = match &definition.work {
                Ok(work) => work,
                Err(why) => {
                    without += 1;
                    self.output.result(&format!("  not testable here: {why}"))?;
                    continue;
                }
            };
            let mut planned = 0;
            let eras = [(&work.targets, false), (&work.then, true)];
            for (listed, then) in eras
                .into_iter()
                .filter(|(listed, then)| !listed.is_empty() && (!then || self.given.is_empty()))
            {
                let resolved = resolve(listed, &work.tests, &self.given, &on_this_machine)?;
                for part in &resolved.lacking {
                    let why = part.why.as_ref().map_or_else(String::new, Reason::to_string);
                    self.output.result(&format!("  not testable here: {}: {why}", part.target))?;
                }
                if resolved.urls.is_empty() {
                    continue;
                }
                let limit = self.request(work, &resolved)?.budget;
                match self.answer(definition, work, then) {
                    Ok((judgement, _)) if judgement.answer == Decision::NotTestable => {
                        for why in judgement.reasons(Language::English) {
                            self.output.result(&format!("  not testable here: {why}"))?;
                        }
                    }
                    Ok(_) => {
                        planned += 1;
                        most += with_starts(limit, &resolved.urls).unwrap_or_default();
                        let limit = limit.map_or_else(|| "no limit".to_owned(), units::time);
                        self.output.result(&format!("  time limit: {limit}"))?;
                    }
                    Err(error) => return Err(error),
                }
            }
            if planned == 0 {
                without += 1;
            }
            runs += planned;
        }
        self.output.result(&format!(
            "{} claims: {runs} runs, at most {}; {without} not testable here",
            chosen.len(),
            about(most)
        ))?;
        Ok(exit::DONE)
    }
}

/// The answer if no test can be made.
fn not_here(resolved: Resolved) -> Judgement {
    Judgement { tests: resolved.lacking, why: None, ..Judgement::without_run(Decision::NotTestable, "") }
}

fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ").replace(":; ", ": ")
}
