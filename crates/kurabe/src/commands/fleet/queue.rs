//! Submitted runs: `kurabe submit`, and `kurabe runs` with `--broker`.

use crate::exit::{self, Exit, OfRunFile};
use crate::output::Output;
use crate::suite::{Request, Several, named_files};
use crate::{cli, places};
use anyhow::Result;
use clap::ArgMatches;
use jiff::Timestamp;
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::name::{Name, RelativePath};
use kurabe_core::sort;
use kurabe_core::target::TargetUrl;
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind};
use kurabe_experiments::registry;
use kurabe_fleet::{Entry, NO_AGENTS, Queue, State, Submission};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The longest part of a run's name in the queue that comes from its suite.
const LONGEST_STEM: usize = 80;

/// The name of this program in a broker's list of connections.
const NAME: &str = "kurabe queue";

fn queue(matches: &ArgMatches) -> Result<Queue> {
    let url = matches.get_one::<String>("broker").map_or("", String::as_str);
    Ok(Queue::connect(&super::broker(url)?, NAME)?)
}

/// Puts a suite into the queue.
pub(crate) fn submit(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let Some(path) = matches.get_one::<PathBuf>("suite") else {
        return Err(Error::usage("no suite was given").into());
    };
    let of = |name: &str| matches.get_one::<String>(name).cloned();
    let run = as_run(path, matches)?;
    let requests: Vec<Request> = match Several::read(path, &run)? {
        Some(several) => several.runs.into_iter().map(|run| run.request).collect(),
        None => vec![Request::of_suite(path, &run)?],
    };
    let mut urls: Vec<String> = Vec::new();
    for request in &requests {
        let spec = request.spec()?;
        super::worker::refuse_files(&spec, registry::of(&spec)?.info())?;
        let more = [&request.cache, &request.remote].into_iter().flatten().cloned();
        urls.extend(request.target_urls().into_iter().chain(more));
        refuse_passwords(request.fleet.iter().map(String::as_str), path)?;
    }
    sort::by(&mut urls, Ord::cmp);
    urls.dedup();
    refuse_passwords(urls.iter().map(String::as_str), path)?;
    let (suite, files) = bundle(path)?;
    for text in files.values() {
        refuse_passwords(text.split(|c: char| c.is_whitespace() || "\"',;()[]{}<>".contains(c)), path)?;
    }
    let shown = |url: &String| TargetUrl::parse(url).map(|url| url.to_string());
    let submission = Submission {
        suite,
        files,
        targets: urls.iter().map(shown).collect::<kurabe_core::Result<_>>()?,
        hosts: hosts(&urls)?,
        agents: of("agents").map(|text| agents(&text)).transpose()?,
        labels: of("agent-label").map_or(Ok(BTreeMap::new()), |text| crate::suite::fleet::labels(&text))?,
        on_lost_agent: of("on-lost-agent")
            .map_or_else(|| Ok(OnLostAgent::default()), |text| OnLostAgent::parse(&text))?,
        define: crate::custom::define(matches)?,
        write: matches.get_flag("write"),
        by: submitter(),
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let stem: String = stem.chars().take(LONGEST_STEM).collect();
    let id = format!("{}-{stem}", Timestamp::now().strftime("%Y%m%d-%H%M%S"));
    let id = Name::nearest(&id).ok_or_else(|| Error::new(ErrorKind::Internal, "a run has no name"))?;
    let queue = queue(matches)?;
    let id = queue.submit(&id, &submission)?;
    output.result(&id)?;
    let waiting = queue.list()?.iter().filter(|entry| entry.id != id && !entry.state.is_over()).count();
    let others = if waiting == 1 { "1 other run waits or runs" } else { "other runs wait or run" };
    let before = if waiting > 1 { format!("{waiting} {others}") } else { others.to_owned() };
    output.note(&if waiting == 0 {
        "submitted; no other run waits".to_owned()
    } else {
        format!("submitted; {before}")
    });
    Ok(exit::DONE)
}

/// The options of `kurabe run -f` with which a worker executes the suite, to check both.
fn as_run(path: &Path, matches: &ArgMatches) -> Result<ArgMatches> {
    let mut words = vec!["kurabe".to_owned(), "run".to_owned(), "-f".to_owned(), path.display().to_string()];
    let mut put = |name: &str, value: Option<&String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    let with_agents =
        matches.get_one::<String>("agents").is_none_or(|text| agents(text).ok() != Some(NO_AGENTS));
    put("fleet", matches.get_one::<String>("broker").filter(|_| with_agents));
    for name in ["agents", "agent-label", "on-lost-agent"] {
        put(name, matches.get_one::<String>(name).filter(|_| with_agents));
    }
    for define in matches.get_many::<String>("define").into_iter().flatten() {
        put("define", Some(define));
    }
    if matches.get_flag("write") {
        words.push("--write".to_owned());
    }
    let parsed = cli::command().try_get_matches_from(words);
    let parsed = parsed.map_err(|error| Error::usage(error.to_string()))?;
    let run = parsed.subcommand_matches("run").cloned();
    run.ok_or_else(|| Error::new(ErrorKind::Internal, "a submitted run has no options").into())
}

fn agents(text: &str) -> kurabe_core::Result<u32> {
    let wrong = || Error::usage(format!("--agents: '{text}' is not a number of agents"));
    text.parse().map_err(|_| wrong())
}

/// Refuses a URL with a password.
fn refuse_passwords<'a>(words: impl Iterator<Item = &'a str>, path: &Path) -> kurabe_core::Result<()> {
    let is_secret = |url: TargetUrl| {
        // The token of a broker.
        let is_token = matches!(&*url.scheme, "nats" | "tls") && url.user.is_some() && url.password.is_none();
        // Servers without a password have an empty one in their URLs.
        is_token
            || url.password.is_some_and(|password| !password.expose().is_empty())
            || url.options.keys().any(|name| name.contains("password"))
    };
    // What is no URL as a whole may contain one, such as an option that is.
    let has_password = |word: &str| TargetUrl::parse(word).is_ok_and(is_secret) || contains_password(word);
    for word in words.filter(|word| word.contains(':')) {
        if has_password(word) {
            return Err(Error::usage(format!("{}: a URL has a password, and passwords are not sent", path.display()))
                .hint("leave it out, and give it to the worker: in its environment (PGPASSWORD, MYSQL_PWD, …) or in \
                       files such as ~/.pgpass"));
        }
    }
    Ok(())
}

/// Whether a text contains `//USER:PASSWORD@`.
fn contains_password(text: &str) -> bool {
    text.split("//").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user.replace("%3A", ":").replace("%3a", ":"));
        user.is_some_and(|user| user.split_once(':').is_some_and(|(_, password)| !password.is_empty()))
    })
}

/// The hosts of servers; an empty name for the machine that executes the run.
fn hosts(urls: &[String]) -> kurabe_core::Result<Vec<String>> {
    let mut hosts = Vec::new();
    for url in urls {
        let url = TargetUrl::parse(url)?;
        // An application's database may be on another host.
        let nested = url.options.values().filter_map(|value| TargetUrl::parse(value).ok()?.host);
        let before = hosts.len();
        hosts.extend(url.host.iter().cloned().chain(nested).map(|host| own_or(&host)));
        if hosts.len() == before {
            hosts.push(String::new());
        }
    }
    sort::by(&mut hosts, Ord::cmp);
    hosts.dedup();
    Ok(hosts)
}

/// A host's name; empty for a loopback address.
fn own_or(host: &str) -> String {
    let is_own = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_own { String::new() } else { host.to_ascii_lowercase() }
}

/// The suite's name, and its text with that of the files that it names, by their paths from its folder.
fn bundle(path: &Path) -> kurabe_core::Result<(RelativePath, BTreeMap<RelativePath, String>)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let relative = |file: &Path| {
        let text = file.display().to_string();
        RelativePath::parse(&text).map_err(|_| {
            Error::usage(format!("{}: it names the file {text}, outside its folder", path.display()))
                .hint("only files in the suite's folder, and below it, are sent")
        })
    };
    let suite = relative(Path::new(&name))?;
    let (mut files, mut open) = (BTreeMap::new(), vec![suite.clone()]);
    while let Some(file) = open.pop() {
        if files.contains_key(&file) {
            continue;
        }
        let full = file.below(folder);
        let text = std::fs::read_to_string(&full)
            .map_err(|error| Error::usage(format!("the file {} cannot be read: {error}", full.display())))?;
        let beside = Path::new(&*file).parent().unwrap_or(Path::new(""));
        for named in named_files(&text) {
            open.push(relative(&beside.join(named))?);
        }
        files.insert(file, text);
    }
    Ok((suite, files))
}

/// The user and the host, for other people.
fn submitter() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{user}@{host}")
}

/// Lists submitted runs.
pub(crate) fn list(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let entries = queue(matches)?.list()?;
    let mut text = String::new();
    if super::super::store::is_json(matches) {
        for entry in &entries {
            let _ = writeln!(text, "{}", json!(entry));
        }
    } else if entries.is_empty() {
        output.note("no run was submitted within the last 30 days");
    } else {
        let width = entries.iter().map(|entry| entry.id.len()).max().unwrap_or(0);
        for entry in &entries {
            let on = if entry.targets.is_empty() {
                String::new()
            } else {
                format!(" on {}", entry.targets.join(" "))
            };
            // What others wrote may have line breaks, which would look like further runs.
            let line = format!("{:width$}  {}{on}, by {}", entry.id, state(&entry.state), entry.by);
            let _ = writeln!(text, "{}", printable(&line));
        }
    }
    if !text.is_empty() {
        output.result(&text)?;
    }
    Ok(exit::DONE)
}

/// A state, for people.
fn state(state: &State) -> String {
    let time = |seconds: u64| {
        let time =
            Timestamp::from_second(i64::try_from(seconds).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX);
        time.strftime("%Y-%m-%d %H:%M UTC").to_string()
    };
    match state {
        State::Queued { attempts: 0 } => "queued".to_owned(),
        State::Queued { attempts } => format!("queued again (attempts: {attempts})"),
        State::Running { worker, since, attempt: 1 } => {
            format!("running since {}, worker {worker}", time(*since))
        }
        State::Running { worker, since, attempt } => {
            format!("running since {}, worker {worker}, attempt {attempt}", time(*since))
        }
        State::Ended { at, code: 0, .. } => format!("done {}", time(*at)),
        State::Ended { at, code, error, .. } => {
            let why = error.as_ref().map_or_else(String::new, |error| format!(" ({error})"));
            format!("ended {} with exit code {code}{why}", time(*at))
        }
        State::Failed { at, why } => format!("failed {} ({why})", time(*at)),
        State::Cancelled { at } => format!("cancelled {}", time(*at)),
    }
}

/// The submitted runs that the user named, all found before anything is done.
fn named(queue: &Queue, matches: &ArgMatches) -> Result<Vec<Entry>> {
    let words = matches.get_many::<String>("run").into_iter().flatten();
    words.map(|word| Ok(queue.find(word).map_err(OfRunFile)?)).collect()
}

/// Copies the runs of ended submissions into the folder of runs.
pub(crate) fn fetch(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (queue, store) = (queue(matches)?, places::writable_runs(matches)?);
    for entry in named(&queue, matches)? {
        let State::Ended { runs, files, .. } = &entry.state else {
            let why = format!("{} has no results: it is {}", entry.id, state(&entry.state));
            let error = Error::new(ErrorKind::NotFound, why);
            let error = if entry.state.is_over() { error } else { error.hint("wait for its end") };
            return Err(OfRunFile(error).into());
        };
        if runs.is_empty() {
            let said = queue.output(&entry)?;
            let error = Error::new(ErrorKind::NotFound, format!("{} recorded no run; it printed:", entry.id));
            return Err(OfRunFile(error.log(said.lines())).into());
        }
        let files = queue.fetch(&entry, files, store.dir())?;
        for run in runs {
            output.result(run)?;
        }
        for page in files.iter().filter(|file| file.extension().is_some_and(|name| name == "html")) {
            output.hint(&format!("report: {}", page.display()));
        }
    }
    Ok(exit::DONE)
}

/// Cancels submitted runs.
pub(crate) fn cancel(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let queue = queue(matches)?;
    for entry in named(&queue, matches)? {
        queue.cancel(&entry.id)?;
        output.note(&format!("cancelled {}", entry.id));
    }
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_in_any_url_of_a_text_is_found() {
        for text in [
            "postgres://me:pw@db/x",
            "stack:php/mysqli?db=mysql://u:p@h/x",
            "nats://u:p@h:4222",
            "nats://token@h:4222",
            "mysql://h/x?sslpassword=y",
        ] {
            let refused = refuse_passwords(std::iter::once(text), Path::new("s.toml")).unwrap_err();
            assert!(refused.to_string().contains("passwords are not sent"), "{text}");
        }
        for text in [
            "postgres://me@db:5432/x",
            "up:postgres",
            "a: b",
            "http://h/?q=a:b@c",
            "# see me@db: x",
            "redis://:@h",
        ] {
            refuse_passwords(std::iter::once(text), Path::new("s.toml")).unwrap();
        }
    }

    #[test]
    fn hosts_of_servers_are_found_and_loopback_is_the_workers_own() {
        let found =
            |urls: &[&str]| hosts(&urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>()).unwrap();
        assert_eq!(found(&["postgres://me@DB.example:5433/x", "memcached://db.example"]), ["db.example"]);
        assert_eq!(found(&["up:postgres", "redis://127.0.0.1:6379"]), [""]);
        assert_eq!(found(&["stack:php/mysqli?db=mysql://h2/x", "redis://h1"]), ["h1", "h2"]);
    }
}
