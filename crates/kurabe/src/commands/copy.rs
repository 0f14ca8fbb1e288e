//! `kurabe copy SOURCE TARGET`: from one SQL database to another.

mod progress;
mod report;

use super::files::{refuse_database, refuse_one_for_two, write_private};
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::{places, signals, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_copy::casts::{self, UserCasts};
use kurabe_copy::engines;
use kurabe_copy::event::{Event, TableDone};
use kurabe_copy::issue::Accepted;
use kurabe_copy::page::PageSize;
use kurabe_copy::reject::Rejects;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::sql::Side;
use kurabe_copy::verify::Of;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::driver::{ConnectOptions, Support};
use kurabe_core::target::TargetUrl;
use kurabe_core::text::without_mark;
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

options! {
    /// The options of `kurabe copy`.
    CopyOptions {
        source: Option<String>,
        into: Option<String>,
        tables: Vec<String>,
        exclude: Vec<String>,
        rename: Vec<String>,
        filters: Vec<String> = "where",
        schema_only: bool,
        data_only: bool,
        truncate_target: bool,
        keep_record: bool,
        accept: Vec<String>,
        cast: Vec<String>,
        cast_file: Option<String>,
        casts: bool,
        leave_out: Vec<String>,
        leftovers: Option<String>,
        reject: Option<String>,
        jobs: Option<u16>,
        report: Option<String>,
        export_html: Option<String>,
        dry_run: bool,
        no_resume: bool,
        timeout: Option<String>,
    }
}

pub(super) fn copy(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = &CopyOptions::of(matches);
    let [source, into] = [&options.source, &options.into].map(|url| url.clone().unwrap_or_default());
    if options.casts {
        let mut names = Vec::new();
        for text in [&source, &into].into_iter().filter(|text| !text.is_empty()) {
            names.push(engines::of_scheme(text.split(':').next().unwrap_or_default())?.name);
        }
        output.result(&casts::shown(&names))?;
        return Ok(exit::DONE);
    }
    let wanted = wanted(options)?;
    let stop = signals::watch(exit::INTERRUPTED, output)?;
    let time =
        options.timeout.as_deref().map(time::parse_timeout).transpose()?.unwrap_or(time::DEFAULT_TIMEOUT);
    // The server may work on an index, or count the rows of a large table, for as long as it takes.
    ConnectOptions { largest_answer: LARGEST_ANSWER, long_replies: true, ..ConnectOptions::within(time) }
        .make_default();
    let urls = [read_only(&source)?, into];
    let schemes = urls.each_ref().map(|url| TargetUrl::parse(url).map(|url| engine_of(&url)));
    for scheme in schemes {
        engines::of_scheme(&scheme?)?;
    }
    let opened = kurabe_targets::open(&urls, &kurabe_targets::OpenOptions::default(), output)?;
    let done = work(options, &opened, &wanted, &stop, output);
    opened.close(output);
    done
}

/// What the command line asks for.
fn wanted(options: &CopyOptions) -> Result<Wanted> {
    let words = |words: &[String]| {
        let words = words.iter().map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let pairs = |name: &str, given: &[String], between: char| {
        let pair = |word: String| match word.split_once(between) {
            Some((of, what)) if !of.trim().is_empty() && !what.trim().is_empty() => {
                Ok((of.trim().to_owned(), what.trim().to_owned()))
            }
            _ => Err(Error::usage(format!("--{name} {word}: there is no '{between}' between two parts"))),
        };
        let pairs = words(given).into_iter().map(pair).collect::<kurabe_core::Result<Vec<_>>>()?;
        let mut known = HashSet::new();
        match pairs.iter().find(|(of, _)| !known.insert(of.as_str())) {
            Some((of, _)) => Err(Error::usage(format!("--{name}: there are two for {of}"))),
            None => Ok(pairs),
        }
    };
    let mut casts = UserCasts::default();
    if let Some(path) = &options.cast_file {
        let text = fs::read_to_string(path)
            .map_err(|error| Error::new(ErrorKind::Environment, format!("{path}: {error}")))?;
        casts.add_file(without_mark(&text)).map_err(|error| error.context(path))?;
    }
    words(&options.cast).iter().try_for_each(|cast| casts.add(cast))?;
    let parts = match (options.schema_only, options.data_only) {
        (true, _) => Parts::Schema,
        (_, true) => Parts::Data,
        _ => Parts::All,
    };
    // A row that the target refuses is found by halves of its page.
    let rows = if options.reject.is_some() { 2_000 } else { PageSize::default().rows };
    Ok(Wanted {
        page: PageSize { rows, ..PageSize::default() },
        tables: words(&options.tables),
        exclude: words(&options.exclude),
        rename: pairs("rename", &options.rename, '=')?,
        filters: pairs("where", &options.filters, ':')?,
        leave_out: words(&options.leave_out),
        accepted: Accepted::parse(words(&options.accept).iter().map(String::as_str))?,
        parts,
        casts,
        rejects: options.reject.is_some(),
    })
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

/// Refuses files to write that hold a database, or that are one file.
fn check_files(options: &CopyOptions) -> Result<()> {
    let named = [&options.leftovers, &options.reject, &options.export_html];
    let files: Vec<&Path> = named.into_iter().flatten().map(Path::new).collect();
    files.iter().try_for_each(|file| refuse_database(file))?;
    Ok(refuse_one_for_two(&files)?)
}

fn work(
    options: &CopyOptions,
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
    check_files(options)?;
    let open = |of: Of| side(opened, usize::from(of == Of::Target));
    let mut copy = Copy { open: Some(&open), ..Copy::new(source, target, stop) };
    let jobs = options.jobs.unwrap_or(1);
    let mut more = (1..jobs).map(|_| pair()).collect::<kurabe_core::Result<Vec<_>>>()?;
    signals::wait_for("the tables to be read");
    let plan = copy.plan(wanted, &mut more)?;
    let dry = options.dry_run;
    let json = options.report.as_deref() == Some("json");
    if let Some(path) = &options.leftovers {
        let text = plan.left_text(copy.target.engine);
        write_private(Path::new(path), text.as_bytes())?;
    }
    let refused = plan.refusal(&wanted.accepted);
    let tried = if dry { Some(copy.try_out(&plan)?) } else { None };
    let both = [copy.source.name.clone(), copy.target.name.clone()];
    let page = options.export_html.as_ref();
    let written = |done: &[TableDone], outcome: &str| match page {
        None => Ok(()),
        Some(path) => {
            let text = report::page(&report(&plan, wanted, &both, done, ""), outcome);
            write_private(Path::new(path), text.as_bytes())
        }
    };
    if dry || refused.is_some() {
        let outcome = refused.as_ref().map(Error::to_string);
        written(&[], outcome.as_deref().unwrap_or("Nothing was copied: --dry-run."))?;
    }
    if json && (dry || refused.is_some()) {
        let mut report = report(&plan, wanted, &both, &[], &plan.statements());
        let refused = tried.iter().flatten();
        let object =
            |(object, why): &(String, Error)| serde_json::json!({ "object": object, "why": why.to_string() });
        report["refused_by_target"] = refused.map(object).collect();
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
    let rejects = options.reject.as_ref().map(|path| {
        places::warn_of_file(Path::new(path), output);
        Rejects::open(Path::new(path))
    });
    let rejects = rejects.transpose()?;
    let how = How {
        restart: options.no_resume,
        truncate: options.truncate_target,
        keep: options.keep_record,
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
    let name = target.url.clone();
    if let Support::No(why) = target.driver.capabilities().own_sessions {
        return Err(Error::unsupported(why).context(&name));
    }
    let session = target.driver.connect(&ConnectOptions::default()).map_err(|error| error.context(&name))?;
    Ok(Side { session, engine: engines::of_scheme(&url.scheme)?, name })
}
