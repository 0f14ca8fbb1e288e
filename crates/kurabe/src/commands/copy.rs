//! `kurabe copy SOURCE TARGET`: from one SQL database to another.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::{signals, targets, timeout};
use anyhow::Result;
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kurabe_copy::engines;
use kurabe_copy::issue::Accepted;
use kurabe_copy::plan::{Plan, Wanted};
use kurabe_copy::run::{Copy, Event, Step, TableDone, refusal};
use kurabe_copy::sql::Side;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_targets::Opened;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The largest page of rows: it ends with the row that fills it, and a row may have this size.
const LARGEST_ANSWER: u64 = 1 << 30;

pub(super) fn copy(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let words = |name: &str| {
        let words = matches.get_many::<String>(name).into_iter().flatten();
        words.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let accepted = Accepted::parse(words("accept").iter().map(String::as_str))?;
    let wanted = Wanted { tables: words("tables"), accepted, ..Wanted::default() };
    let stop = signals::watch(exit::INTERRUPTED, output)?;
    let time = timeout::given(matches)?.unwrap_or(timeout::DEFAULT);
    // The server may work on an index, or count the rows of a large table, for as long as it takes.
    let options = ConnectOptions::within(time);
    ConnectOptions { largest_answer: LARGEST_ANSWER, long_replies: true, ..options }.make_default();
    let url = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let urls = [read_only(&url("source"))?, url("into")];
    let schemes = urls.each_ref().map(|url| TargetUrl::parse(url).map(|url| engine_of(&url)));
    for scheme in schemes {
        engines::of_scheme(&scheme?)?;
    }
    let opened = targets::open(&urls, &targets::Wish::default(), output)?;
    let done = work(matches, &opened, &wanted, &stop, output);
    opened.close(output);
    done
}

/// The scheme of the engine: that of a throwaway server is its name.
fn engine_of(url: &TargetUrl) -> String {
    if url.scheme == targets::UP { url.path.clone() } else { url.scheme.clone() }
}

/// The source's URL, with the option by which its driver opens it for reading only, where it has one.
fn read_only(text: &str) -> Result<String> {
    let url = TargetUrl::parse(text)?;
    let options =
        kurabe_drivers::registry::find(&url.scheme).map(|driver| driver.options).unwrap_or_default();
    if url.option("access").is_some() || !options.iter().any(|option| option.name == "access") {
        return Ok(text.to_owned());
    }
    let between = if text.contains('?') { '&' } else { '?' };
    Ok(format!("{text}{between}access=read"))
}

fn work(
    matches: &ArgMatches,
    opened: &Opened,
    wanted: &Wanted,
    stop: &AtomicBool,
    output: &Output,
) -> Result<Exit> {
    let [from, to] = opened.targets.as_slice() else {
        return Err(Error::usage("a copy has a source and a target").into());
    };
    let [from_url, to_url] = opened.reached.as_slice() else {
        return Err(Error::usage("a copy has a source and a target").into());
    };
    let place = |url: &TargetUrl| {
        (url.host.clone(), url.port, url.path.clone(), url.options.get("search_path").cloned())
    };
    if from_url.scheme == to_url.scheme && place(from_url) == place(to_url) {
        return Err(Error::usage("source and target are the same database").into());
    }
    let side =
        |target: &kurabe_engine::target::Target, url: &TargetUrl, name: &str| -> kurabe_core::Result<Side> {
            let session = target.driver.connect(&ConnectOptions::default()).map_err(|e| e.context(name))?;
            Ok(Side { session, engine: engines::of_scheme(&url.scheme)?, name: name.to_owned() })
        };
    let name = |at: usize| opened.records.get(at).map_or_else(String::new, |record| record.url.clone());
    let mut copy = Copy {
        source: side(from, from_url, &name(0))?,
        target: side(to, to_url, &name(1))?,
        stop,
        begun: false,
    };
    signals::wait_for("the tables to be read");
    let plan = copy.plan(wanted)?;
    let dry = matches.get_flag("dry-run");
    output.result(&described(&plan, &wanted.accepted, &copy, dry))?;
    if let Some(what) = copy.source.engine.hinders(&mut copy.source)? {
        output.note(what);
    }
    let refused = refusal(&plan, &wanted.accepted);
    if dry {
        return Ok(exit::DONE);
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    let named = |error: Error| error.context(&copy.target.name);
    let mut namespace = to.driver.namespace().map_err(named)?;
    namespace.claim("copy").map_err(named)?;
    signals::wait_for("the current rows to be copied");
    let mut progress = Progress::new(*output);
    let done =
        copy.run(&plan, &mut *namespace, matches.get_flag("no-resume"), &mut |event| progress.show(&event));
    progress.bar.finish_and_clear();
    match done {
        Ok(done) => {
            output.result(&totals(&done))?;
            Ok(exit::DONE)
        }
        Err(error) => {
            if copy.begun && error.kind() != ErrorKind::NotOurs {
                output.hint("what was copied is kept: the same command continues, --no-resume begins again");
            }
            Err(error.into())
        }
    }
}

/// What will be made, and what does not map.
fn described(plan: &Plan, accepted: &Accepted, copy: &Copy<'_>, dry: bool) -> String {
    let rows: u64 = plan.tables.iter().map(|table| table.rows).sum();
    let mut text = format!(
        "{} to {}: {}, {}\n",
        copy.source.name,
        copy.target.name,
        many(plan.tables.len(), "table"),
        many(rows as usize, "row")
    );
    let width = plan.tables.iter().map(|table| table.name.chars().count()).max().unwrap_or(0);
    // Writing to a String cannot fail.
    for table in &plan.tables {
        let key = match table.key.as_slice() {
            [] => "no key: not continued within the table".to_owned(),
            key => {
                let names: Vec<&str> = key.iter().map(|at| table.columns[*at].name.as_str()).collect();
                format!("key {}", names.join(", "))
            }
        };
        let mut parts = vec![many(table.rows as usize, "row"), key];
        if !table.indexes.is_empty() {
            parts.push(many_of(table.indexes.len(), "index", "indexes"));
        }
        if !table.foreign.is_empty() {
            parts.push(many(table.foreign.len(), "foreign key"));
        }
        let _ = writeln!(text, "  {:<width$}  {}", table.name, parts.join(" · "));
    }
    if !plan.issues.is_empty() {
        text.push_str("does not map:\n");
        for issue in &plan.issues {
            let state = if accepted.has(issue.kind, &issue.object) { "accepted" } else { "refused " };
            let _ = writeln!(text, "  {state} {:<17} {}: {}", issue.kind.name(), issue.object, issue.detail);
        }
    }
    if dry {
        text.push_str(&plan.statements());
    }
    text
}

fn many(count: usize, noun: &str) -> String {
    many_of(count, noun, &format!("{noun}s"))
}

fn many_of(count: usize, one: &str, more: &str) -> String {
    format!("{} {}", units::count(count as u64), if count == 1 { one } else { more })
}

fn totals(done: &[TableDone]) -> String {
    let rows: u64 = done.iter().map(|table| table.rows).sum();
    let copied: u64 = done.iter().map(|table| table.copied).sum();
    let bytes: u64 = done.iter().map(|table| table.bytes).sum();
    let time: Duration = done.iter().map(|table| table.copy).sum();
    let rest: Duration = done.iter().map(|table| table.verify + table.index).sum();
    format!(
        "{} verified: both servers count them, and the digests of all values are equal; {} copied in {} ({} rows/s, \
         {}/s); comparing and indexes took {}",
        many(rows as usize, "row"),
        units::count(copied),
        units::time(time),
        units::count((copied as f64 / time.as_secs_f64().max(1e-9)) as u64),
        units::size((bytes as f64 / time.as_secs_f64().max(1e-9)) as u64),
        units::time(rest),
    )
}

/// Progress: a line redrawn in place on a terminal, a line per table elsewhere.
struct Progress {
    output: Output,
    bar: ProgressBar,
}

impl Progress {
    fn new(output: Output) -> Self {
        let live = output.live && !output.quiet;
        let drawn = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, drawn);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self { output, bar }
    }

    fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Resumed => self.output.note("continuing an unfinished copy"),
            Event::Progress { table, step, rows } => {
                self.bar.set_length(table.rows);
                self.bar.set_position(*rows);
                let what = match step {
                    Step::Copy => "copying",
                    Step::Verify => "comparing",
                    Step::Index => "making indexes of",
                };
                self.bar.set_message(format!("{what} {}", table.name));
            }
            Event::Table(done) => {
                let text = format!(
                    "{}: {}, copied in {}, compared in {}, indexes in {}",
                    done.name,
                    many(done.rows as usize, "row"),
                    units::time(done.copy),
                    units::time(done.verify),
                    units::time(done.index)
                );
                self.bar.suspend(|| self.output.note(&text));
            }
        }
    }
}
