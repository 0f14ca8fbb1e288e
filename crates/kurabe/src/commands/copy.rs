//! `kurabe copy SOURCE TARGET`: from one SQL database to another.

mod page;
mod progress;
mod report;

use super::files::{write, write_private};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::{exposed, signals, timeout};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_copy::casts::{self, UserCasts};
use kurabe_copy::engines;
use kurabe_copy::event::{Event, TableDone};
use kurabe_copy::issue::Accepted;
use kurabe_copy::reject::Rejects;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::sql::Side;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::driver::{ConnectOptions, Support};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind};
use kurabe_targets::Opened;
use progress::Progress;
use report::{described, report, totals};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The largest page of rows: it ends with the row that fills it, and a row may have this size.
const LARGEST_ANSWER: u64 = 1 << 30;

pub(super) fn copy(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let url = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    if matches.get_flag("casts") {
        let mut names = Vec::new();
        for text in [url("source"), url("into")].iter().filter(|text| !text.is_empty()) {
            names.push(engines::of_scheme(text.split(':').next().unwrap_or_default())?.name);
        }
        output.result(&casts::shown(&names))?;
        return Ok(exit::DONE);
    }
    let wanted = wanted(matches)?;
    let stop = signals::watch(exit::INTERRUPTED, output)?;
    let time = timeout::given(matches)?.unwrap_or(timeout::DEFAULT);
    // The server may work on an index, or count the rows of a large table, for as long as it takes.
    let options = ConnectOptions::within(time);
    ConnectOptions { largest_answer: LARGEST_ANSWER, long_replies: true, ..options }.make_default();
    let urls = [read_only(&url("source"))?, url("into")];
    let schemes = urls.each_ref().map(|url| TargetUrl::parse(url).map(|url| engine_of(&url)));
    for scheme in schemes {
        engines::of_scheme(&scheme?)?;
    }
    let opened = kurabe_targets::open(&urls, &kurabe_targets::OpenOptions::default(), output)?;
    let done = work(matches, &opened, &wanted, &stop, output);
    opened.close(output);
    done
}

/// What the command line asks for.
fn wanted(matches: &ArgMatches) -> Result<Wanted> {
    let words = |name: &str| {
        let words = matches.get_many::<String>(name).into_iter().flatten();
        words.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let pairs = |name: &str, between: char| {
        let pair = |word: String| match word.split_once(between) {
            Some((of, what)) if !of.trim().is_empty() && !what.trim().is_empty() => {
                Ok((of.trim().to_owned(), what.trim().to_owned()))
            }
            _ => Err(Error::usage(format!("--{name} {word}: there is no '{between}' between two parts"))),
        };
        let pairs = words(name).into_iter().map(pair).collect::<kurabe_core::Result<Vec<_>>>()?;
        let mut known = HashSet::new();
        match pairs.iter().find(|(of, _)| !known.insert(of.as_str())) {
            Some((of, _)) => Err(Error::usage(format!("--{name}: there are two for {of}"))),
            None => Ok(pairs),
        }
    };
    let mut casts = UserCasts::default();
    if let Some(path) = matches.get_one::<String>("cast-file") {
        let text = fs::read_to_string(path).map_err(|error| file_error(path, &error))?;
        casts.add_file(&text).map_err(|error| error.context(path))?;
    }
    words("cast").iter().try_for_each(|cast| casts.add(cast))?;
    let parts = match (matches.get_flag("schema-only"), matches.get_flag("data-only")) {
        (true, _) => Parts::Schema,
        (_, true) => Parts::Data,
        _ => Parts::All,
    };
    Ok(Wanted {
        tables: words("tables"),
        exclude: words("exclude"),
        rename: pairs("rename", '=')?,
        filters: pairs("where", ':')?,
        leave_out: words("leave-out"),
        accepted: Accepted::parse(words("accept").iter().map(String::as_str))?,
        parts,
        casts,
        ..Wanted::default()
    })
}

fn file_error(path: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Environment, format!("{path}: {error}"))
}

/// The scheme of the engine: that of a throwaway server is its name.
fn engine_of(url: &TargetUrl) -> String {
    if url.scheme == kurabe_targets::UP { url.path.clone() } else { url.scheme.clone() }
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
    let [_, to] = opened.targets.as_slice() else {
        return Err(Error::usage("a copy has a source and a target").into());
    };
    let pair = || Ok::<_, Error>((side(opened, 0)?, side(opened, 1)?));
    let (source, target) = pair()?;
    let open_source = || side(opened, 0);
    let mut copy = Copy { open_source: Some(&open_source), ..Copy::new(source, target, stop) };
    let jobs = matches.get_one::<u16>("jobs").copied().unwrap_or(1);
    let mut more = (1..jobs).map(|_| pair()).collect::<kurabe_core::Result<Vec<_>>>()?;
    signals::wait_for("the tables to be read");
    let plan = copy.plan(wanted, &mut more)?;
    let dry = matches.get_flag("dry-run");
    let json = matches.get_one::<String>("report").is_some_and(|format| format == "json");
    if let Some(path) = matches.get_one::<String>("leftovers") {
        let text = plan.left_text(copy.target.engine);
        write_private(Path::new(path), text.as_bytes())?;
    }
    let refused = plan.refusal(&wanted.accepted);
    let tried = if dry { Some(copy.try_out(&plan)?) } else { None };
    let both = [copy.source.name.clone(), copy.target.name.clone()];
    let page = matches.get_one::<String>("export-html");
    let written = |done: &[TableDone], outcome: &str| match page {
        None => Ok(()),
        Some(path) => {
            let text = page::page(&report(&plan, wanted, &both, done, ""), outcome);
            write(Path::new(path), text.as_bytes())
        }
    };
    if dry || refused.is_some() {
        written(
            &[],
            &refused.as_ref().map_or_else(|| "Nothing was copied: --dry-run.".to_owned(), Error::to_string),
        )?;
    }
    if json && (dry || refused.is_some()) {
        let mut report = report(&plan, wanted, &both, &[], &plan.statements());
        let tried = tried
            .iter()
            .flatten()
            .map(|(object, why)| serde_json::json!({ "object": object, "why": why.to_string() }));
        report["refused_by_target"] = tried.collect();
        output.result(&format!("{report:#}"))?;
    } else if !json {
        output.result(&described(&plan, &wanted.accepted, &copy, tried.as_deref()))?;
    }
    if let Some(what) = copy.source.engine.dialect.hinders(&mut copy.source)? {
        output.note(what);
    }
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
    let rejects = match matches.get_one::<String>("reject") {
        None => None,
        Some(path) => {
            exposed::warn_of_file(Path::new(path), output);
            Some(Rejects::open(Path::new(path))?)
        }
    };
    let how = How {
        restart: matches.get_flag("no-resume"),
        truncate: matches.get_flag("truncate-target"),
        keep: matches.get_flag("keep-record"),
        more,
        reject: rejects.as_ref(),
    };
    let mut progress = Progress::new(*output, &plan);
    let (mut shown, mut on_page, mut tables) = (Ok(()), Ok(()), Vec::new());
    let done = copy.run(&plan, &mut *namespace, how, &mut |event| match event {
        Event::Done(done) => {
            progress.bar.finish_and_clear();
            let text = if json {
                format!("{:#}", report(&plan, wanted, &both, done, ""))
            } else {
                totals(&plan, done)
            };
            shown = output.result(&text);
            on_page = written(done, &totals(&plan, done));
        }
        event => {
            if let Event::Table(done) = &event {
                tables.push(done.clone());
            }
            progress.show(&event);
        }
    });
    progress.bar.finish_and_clear();
    shown?;
    if let Err(error) = &done {
        if json {
            let mut report = report(&plan, wanted, &both, &tables, "");
            report["error"] = error.to_string().into();
            output.result(&format!("{report:#}"))?;
        }
        on_page = on_page.and_then(|()| written(&tables, &error.to_string()));
    }
    on_page?;
    ended(done, copy.begun, output)
}

/// The exit code of a copy, which can be continued if it has begun.
fn ended(done: kurabe_core::Result<Vec<TableDone>>, begun: bool, output: &Output) -> Result<Exit> {
    match done {
        Ok(done) if done.iter().any(|table| table.rejected > 0) => Ok(exit::FAILED_CELLS),
        Ok(_) => Ok(exit::DONE),
        Err(error) => {
            if begun && error.kind() != ErrorKind::NotOurs {
                output.hint("what was copied is kept: the same command continues, --no-resume begins again");
            }
            Err(error.into())
        }
    }
}

/// A new session of the source or the target.
fn side(opened: &Opened, at: usize) -> kurabe_core::Result<Side> {
    let missing = || Error::usage("a copy has a source and a target");
    let (target, url) = opened.targets.get(at).zip(opened.reached.get(at)).ok_or_else(missing)?;
    let name = opened.records.get(at).map_or_else(String::new, |record| record.url.clone());
    if let Support::No(why) = target.driver.capabilities().own_sessions {
        return Err(Error::unsupported(why).context(&name));
    }
    let session = target.driver.connect(&ConnectOptions::default()).map_err(|error| error.context(&name))?;
    Ok(Side { session, engine: engines::of_scheme(&url.scheme)?, name })
}
