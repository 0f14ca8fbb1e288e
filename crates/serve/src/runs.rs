//! The list of runs, and one run.

use crate::answer::{Response, redirect};
use crate::call::Call;
use crate::jobs::{Arguments, Job};
use crate::shared::Shared;
use crate::verdicts::analyse;
use crate::{page, trials};
use hyper::header::HeaderValue;
use kurabe_core::name::FileName;
use kurabe_core::run::{Run, RunHeader};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_experiments::registry;
use kurabe_record::{Entry, RunPath, RunState, RunSummary};
use kurabe_report::{Language, Message, html as report_html, short_commit, timestamp};
use maud::{Markup, html};

/// The columns of the list.
const COLUMNS: [Message; 8] = [
    Message::Compare,
    Message::RunName,
    Message::Experiment,
    Message::TargetList,
    Message::VerdictOf,
    Message::State,
    Message::From,
    Message::Note,
];
/// The most runs in a list. A search finds the others.
const MAX: usize = 200;

/// The run with this exact name. Paths are not accepted: a page shows the runs of its store only.
pub(crate) fn find(shared: &Shared, name: &str) -> Result<RunPath> {
    let found = FileName::parse(name).and_then(|name| shared.store.named(&name));
    found.map_err(|_| {
        Error::new(ErrorKind::NotFound, format!("there is no run '{name}'")).hint("/ lists the runs")
    })
}

pub(crate) fn list(call: &Call) -> Result<Response> {
    let shared = &call.shared;
    let language = call.language();
    let search =
        call.query().into_iter().find(|(name, _)| name == "q").map(|(_, text)| text).unwrap_or_default();
    let entries = shared.store.list()?;
    let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<Row> = entries.iter().map(Row::of).filter(|row| row.has(&words)).collect();
    let verdicts = shared.verdicts.of(found.iter().take(MAX).map(|row| row.entry), language);
    found.iter_mut().zip(verdicts).for_each(|(row, verdict)| row.verdict = verdict);
    Ok(page::layout(language, Message::RunList.text(language), &list_page(shared, &search, &found, language)))
}

/// A run in the list.
struct Row<'a> {
    entry: &'a Entry,
    note: Option<String>,
    /// Its verdict.
    verdict: String,
    /// What a search looks through, in lower case.
    text: String,
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry) -> Self {
        let note = entry.path().note().ok().flatten();
        let mut words = vec![entry.path().name.clone(), note.clone().unwrap_or_default()];
        if let Entry::Run(run) = entry {
            let header = &run.header;
            words.push(header.spec.experiment.clone());
            words.extend(header.spec.targets.iter().cloned());
            words.extend(header.origin.suite.clone());
            words.extend(header.origin.labels.iter().cloned());
            words.extend(
                header
                    .origin
                    .git
                    .iter()
                    .flat_map(|git| [Some(git.commit.clone()), git.branch.clone()])
                    .flatten(),
            );
            words.extend(
                Language::NAMES
                    .map(|name| state(run.state).text(Language::named(name).unwrap_or_default()).to_owned()),
            );
            words.push(timestamp(header.began));
        }
        Self { entry, note, verdict: String::new(), text: words.join(" ").to_lowercase() }
    }

    fn has(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.text.contains(word.as_str()))
    }
}

fn list_page(shared: &Shared, search: &str, found: &[Row<'_>], language: Language) -> Markup {
    let jobs = shared.jobs.running();
    let say = |message: Message| message.text(language);
    html! {
        @if !jobs.is_empty() {
            h2 { (say(Message::RunningHere)) }
            ul class="plain" {
                @for job in &jobs { li { a href={ "/jobs/" (job.id) } { code { (job.command) } } } }
            }
        }
        form method="get" action="/" role="search" {
            input type="search" name="q" value=(search) aria-label=(say(Message::Search)) placeholder=(say(Message::SearchFor));
            " " button { (say(Message::Search)) }
        }
        @if found.is_empty() {
            @let dir = shared.store.dir().display().to_string();
            p { (page::with_code(language, Message::NoRuns, &dir)) a href="/new" { (say(Message::StartOne)) } }
        } @else {
            form method="get" action="/compare" {
                div class="box runs" { table {
                    thead { tr {
                        @for column in COLUMNS { th { (say(column)) } }
                    } }
                    tbody { @for row in found.iter().take(MAX) { (one_row(row, language)) } }
                } }
                p { button { (say(Message::CompareChosen)) } " " span class="soft" { (say(Message::OldestFirst)) } }
            }
            @if found.len() > MAX {
                @let count = (found.len() - MAX).to_string();
                p class="soft" { (Message::OlderRuns.with(language, &[("count", &count)])) }
            }
        }
    }
}

fn one_row(row: &Row<'_>, language: Language) -> Markup {
    let name = &row.entry.path().name;
    let note = row.note.as_deref().unwrap_or_default();
    html! {
        @match row.entry {
            Entry::Run(run) => {
                tr {
                    td { input type="checkbox" name="run" value=(name) aria-label={ (Message::Compare.text(language)) " " (name) }; }
                    td { a href={ "/runs/" (page::in_url(name)) } { (name) } br; span class="soft" { (timestamp(run.header.began)) } }
                    td { (run.header.spec.experiment) }
                    td class="wrap" { (run.header.spec.targets.join(" ")) }
                    td class="wrap said" lang=(language.name()) { (row.verdict) }
                    td class=[(run.state == RunState::Running).then_some("running")] { (state(run.state).text(language)) }
                    td { (origin(run)) }
                    td class="wrap" { (note) }
                }
            }
            Entry::Unreadable { error, .. } => {
                tr {
                    td {}
                    td { (name) }
                    td class="wrap failed" colspan="5" { (error.to_string()) }
                    td class="wrap" { (note) }
                }
            }
        }
    }
}

fn state(state: RunState) -> Message {
    match state {
        RunState::Complete => Message::Complete,
        RunState::Incomplete => Message::Stopped,
        RunState::Running => Message::Running,
    }
}

fn origin(run: &RunSummary) -> Markup {
    let origin = &run.header.origin;
    html! {
        @if let Some(suite) = &origin.suite { a href={ "/history/" (page::in_url(suite)) } { (suite) } " " }
        @for label in &origin.labels { (label) " " }
        @if let Some(git) = &origin.git { code { (short_commit(&git.commit)) } }
    }
}

pub(crate) fn one(call: &Call) -> Result<Response> {
    let (shared, name, language) = (&call.shared, &call.name, call.language());
    let path = find(shared, name)?;
    match Entry::of(path.clone()) {
        Entry::Run(summary) => {
            let run = kurabe_record::read(&path)?.run;
            Ok(page::layout(language, name, &one_page(shared, &path, &run, summary.state, language)))
        }
        Entry::Unreadable { error, .. } => Err(error),
    }
}

fn one_page(shared: &Shared, path: &RunPath, run: &Run, now: RunState, language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    let targets = run.header.spec.targets.join(" ");
    let of = [("experiment", &*run.header.spec.experiment), ("targets", &targets)];
    let url = format!("/runs/{}", page::in_url(&path.name));
    let field = |action: &str| shared.access.field(&format!("{url}/{action}"));
    let note = path.note().ok().flatten().unwrap_or_default();
    let job = shared.jobs.of_run(&path.name).filter(Job::is_running);
    html! {
        p class="meta" {
            (Message::RunOn.with(language, &of)) " · " (timestamp(run.header.began)) " · "
            span id="state" class=[(now == RunState::Running).then_some("running")] { (say(state(now))) }
        }
        @match now {
            RunState::Running => {
                @if job.is_some() {
                    form method="post" action={ (url) "/stop" } { (field("stop")) button { (say(Message::StopRun)) } }
                } @else {
                    p class="soft" { (say(Message::StopElsewhere)) }
                }
            }
            RunState::Incomplete => form method="post" action={ (url) "/resume" } {
                (field("resume"))
                button class="go" { (say(Message::ResumeRun)) }
            },
            RunState::Complete => {}
        }
        @if !run.trials.is_empty() && now != RunState::Running {
            p class="meta" { a href={ (url) "/report" } { (say(Message::ReportPage)) } }
            iframe id="report" src={ (url) "/report" } title=(say(Message::Report)) {}
        }
        (trials::panel(&format!("{url}/events"), now == RunState::Running, run, language))
        h2 { (say(Message::Note)) }
        form method="post" action={ (url) "/note" } {
            (field("note"))
            textarea name="note" aria-label=(say(Message::Note)) { (note) }
            button { (say(Message::SaveNote)) }
        }
        @if run.trials.is_empty() {
            p class="soft" { (say(Message::NothingYet)) }
        } @else if now == RunState::Running {
            p { a href={ (url) "/report" } { (say(Message::ReportSoFar)) } }
        }
        h2 { (say(Message::Command)) }
        pre { (kurabe_report::command_line(&run.header.command)) }
    }
}

pub(crate) fn report(call: &Call) -> Result<Response> {
    let run = kurabe_record::read(&find(&call.shared, &call.name)?)?.run;
    let summary = analyse(&run).in_language(call.language());
    let text = report_html::render(&summary, &report_html::Options::default());
    // The report forbids itself everything but its own style and script.
    Ok(page::document(text, HeaderValue::from_static("frame-ancestors 'self'")))
}

pub(crate) fn note(call: &Call) -> Result<Response> {
    let text = call.form().into_iter().find(|(name, _)| name == "note").map(|(_, text)| text);
    let text = text.ok_or_else(|| Error::usage("the form has no note"))?;
    find(&call.shared, &call.name)?.set_note(&text)?;
    Ok(redirect(&format!("/runs/{}", page::in_url(&call.name))))
}

pub(crate) fn stop(Call { shared, name, .. }: &Call) -> Result<Response> {
    let job = shared.jobs.of_run(name).ok_or_else(|| {
        Error::usage(format!("the run '{name}' was not started from this page"))
            .hint("stop it where it was started, with Ctrl-C")
    })?;
    job.stop()?;
    Ok(redirect(&format!("/runs/{}", page::in_url(name))))
}

/// Resumes a run. What its file names is judged as what a form names: somebody else may have made it.
pub(crate) fn resume(Call { shared, name, .. }: &Call) -> Result<Response> {
    let start = |path: RunPath| {
        let RunHeader { spec, cells, .. } = kurabe_record::read_header(&path)?;
        let experiment = spec.custom.is_none().then(|| registry::find(&spec.experiment)).transpose()?;
        let axes = experiment.map_or(&[][..], |experiment| experiment.info.axes);
        let targets = shared.trusted.check_recorded(&spec, &cells, axes)?;
        let mut arguments = Arguments::new(["run", "--resume", &path.name]);
        for target in targets {
            arguments.push_url(target);
        }
        if shared.trusted.allows_all() {
            arguments.push("--trust");
        }
        arguments.push("--log-format=json");
        shared.jobs.start(&arguments)
    };
    let job = find(shared, name).and_then(start).map_err(|error| error.context("resume"))?;
    Ok(redirect(&format!("/jobs/{job}")))
}
