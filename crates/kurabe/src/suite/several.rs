//! Suite files with several runs.
//!
//! Each `[[run]]` names an experiment, or the file of another suite. Where several places have a value, the first of these
//! counts: the command line, the run, the keys above the runs, the run's file, the settings file. A run's own targets
//! precede those of the command line, since an experiment may need targets of its kind.

use super::{KEYS, Request, parse_table, place_targets, text_of};
use crate::cli::PGBENCH;
use crate::document::{self, Entry, Node, at, find, line_of_error, without_lines};
use crate::run_options::{AxisOption, RunOptions, axes_of};
use crate::suite::custom::{self, PGBENCH_KEYS};
use crate::words::{known, word, words};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The key of the runs.
const RUN: &str = "run";
/// The key that says whether runs share throwaway servers.
const SERVERS: &str = "servers";
const SHARED: &str = "shared";
const PER_RUN: &str = "per-run";
/// The keys that hold for all runs.
const COMMON: [&str; 14] = [
    "targets", "duration", "budget", "rounds", "seed", "records", "timeout", "durability", "until", "margin",
    "max-rounds", "interleave", "restarts", "setup",
];
/// The keys of a run besides those of a suite of one run.
const OF_RUN: [&str; 3] = ["name", "file", "define"];

/// The keys that say what a run is of, in the order in which an error names them.
const BASE: [&str; 5] = ["targets", "define", "file", PGBENCH, "experiment"];

/// A suite of several runs.
#[derive(Debug)]
pub(crate) struct Several {
    path: PathBuf,
    /// The runs that were asked for, in the order of the file.
    pub(crate) runs: Vec<SuiteRun>,
    /// Whether the runs share throwaway servers.
    pub(crate) shares_servers: bool,
}

#[derive(Debug)]
pub(crate) struct SuiteRun {
    /// Its name, which no other run of the suite has.
    pub(crate) name: String,
    /// What it runs.
    pub(crate) request: Request,
    /// The line where it begins.
    line: usize,
}

impl Several {
    /// Reads a suite file; `None` if it has no runs of its own, as a suite of one run.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) with file and line if a key or a value is invalid.
    pub(crate) fn read(path: &Path, options: &RunOptions) -> Result<Option<Self>> {
        let text = text_of(path)?;
        // A file that is no TOML is read as a suite of one run, which says so.
        let Ok(entries) = document::read(&text) else { return Ok(None) };
        if find(&entries, RUN).is_none() {
            return Ok(None);
        }
        let read = || {
            let mut common = without_lines(&entries);
            common.remove(RUN);
            let reader = Reader { path, entries: &entries, common, options };
            let shares_servers = reader.common_keys()?;
            let runs = only(reader.runs()?, &options.main.only)?;
            reader.check_options(&runs)?;
            Ok(Self { path: path.to_owned(), runs, shares_servers })
        };
        read().map(Some).map_err(|error: Error| error.context(path.display()))
    }

    /// An error of a run, with the place of the run in the file.
    pub(crate) fn located(&self, run: &SuiteRun, error: Error) -> Error {
        let error = error.context(format!("run '{}'", run.name)).context(format!("line {}", run.line));
        error.context(self.path.display())
    }
}

/// The runs that `--only` names, or all.
fn only(runs: Vec<SuiteRun>, wanted: &[String]) -> Result<Vec<SuiteRun>> {
    if wanted.is_empty() {
        return Ok(runs);
    }
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    for name in wanted {
        known(name, &names, "run").map_err(|error| error.context("--only"))?;
    }
    Ok(runs.into_iter().filter(|run| wanted.contains(&run.name)).collect())
}

struct Reader<'a> {
    path: &'a Path,
    entries: &'a [Entry],
    /// The keys above the runs.
    common: Table,
    options: &'a RunOptions,
}

impl Reader<'_> {
    /// Checks the keys above the runs. Returns whether runs share their throwaway servers.
    fn common_keys(&self) -> Result<bool> {
        let all: Vec<&str> = COMMON.into_iter().chain([SERVERS, RUN]).collect();
        for Entry { key, line, .. } in self.entries {
            let key = key.as_str();
            if !all.contains(&key) && (KEYS.contains(&key) || OF_RUN.contains(&key)) {
                let error = Error::usage(format!("'{key}' cannot hold for all runs"));
                return Err(at(*line, error.hint("write it below the [[run]] that it belongs to")));
            }
            known(key, &all, "key").map_err(|error| at(*line, error))?;
        }
        let Some(servers) = find(self.entries, SERVERS) else { return Ok(false) };
        let shares = word(&servers.node.value(), SERVERS).and_then(|text| match text.as_str() {
            SHARED => Ok(true),
            PER_RUN => Ok(false),
            other => {
                Err(Error::usage(format!("'{SERVERS}' is neither '{SHARED}' nor '{PER_RUN}': '{other}'"))
                    .hint(format!(
                        "'{SHARED}' keeps throwaway servers for the next runs, '{PER_RUN}' starts new ones"
                    )))
            }
        });
        shares.map_err(|error| at(servers.line, error))
    }

    fn runs(&self) -> Result<Vec<SuiteRun>> {
        let Some(entry) = find(self.entries, RUN) else { return Ok(Vec::new()) };
        let tables: Option<Vec<(usize, &[Entry])>> = match &entry.node {
            Node::Array(runs) => runs.iter().map(|(line, run)| Some((*line, run.table()?))).collect(),
            Node::Table(_) | Node::Value(_) => None,
        };
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            let error = Error::usage(format!("'{RUN}' is not a list of runs"))
                .hint("write [[run]], and below it experiment = \"session\"");
            return Err(at(entry.line, error));
        };
        let mut read: Vec<SuiteRun> = Vec::new();
        for (line, entries) in tables {
            let run = self.run(line, entries)?;
            if let Some(other) = read.iter().find(|other| other.name == run.name) {
                let error = Error::usage(format!(
                    "two runs are named '{}', here and in line {}",
                    run.name, other.line
                ));
                let key = if find(entries, "name").is_some() { "another" } else { "one of them a" };
                let error = error.hint(format!("give {key} name: name = \"{}-2\"", run.name));
                return Err(at(run.line, error));
            }
            read.push(run);
        }
        Ok(read)
    }

    /// Reads a run that begins in a line.
    fn run(&self, line: usize, entries: &[Entry]) -> Result<SuiteRun> {
        let table = without_lines(entries);
        let line_of = |key: &str| find(entries, key).map_or(line, |entry| entry.line);
        let name = name(&table).map_err(|error| at(line_of("name"), error))?;
        let read = |table: &Table| self.request(table).and_then(|request| request.spec().map(|_| request));
        let request = read(&table).map_err(|error| {
            let is_base = |key: &str| BASE.contains(&key) || PGBENCH_KEYS.contains(&key);
            let base: Table = table.clone().into_iter().filter(|(key, _)| is_base(key)).collect();
            let message = error.to_string();
            let place = if read(&base).err().is_some_and(|error| error.to_string() == message) {
                let named = |key: &&&str| base.contains_key(**key) && message.contains(**key);
                BASE.iter().find(named).map(|key| line_of(key))
            } else {
                line_of_error(entries, &error, is_base, |table| read(table).map(drop))
            };
            at(place.unwrap_or(line), error.context(format!("run '{name}'")))
        })?;
        Ok(SuiteRun { name, request, line })
    }

    /// What a run's table, the keys above it and the command line ask for.
    fn request(&self, table: &Table) -> Result<Request> {
        let scripts = if table.contains_key(PGBENCH) { &PGBENCH_KEYS[..] } else { &PGBENCH_KEYS[..1] };
        let keys: Vec<&str> = KEYS.into_iter().chain(OF_RUN).chain(scripts.iter().copied()).collect();
        for key in table.keys() {
            known(key, &keys, "key")?;
        }
        if table.contains_key(PGBENCH) && (table.contains_key("experiment") || table.contains_key("file")) {
            return Err(Error::usage("the run has pgbench scripts and an experiment or a file")
                .hint("leave one of them out"));
        }
        let mut request = match (table.get("experiment"), table.get("file")) {
            (Some(name), None) => {
                if table.contains_key("define") {
                    return Err(Error::usage("'define' sets variables, and an experiment has none")
                        .hint("only a custom workload has variables: file = \"workload.toml\""));
                }
                let alone = Table::from_iter([("experiment".to_owned(), name.clone())]);
                parse_table(&alone, None, self.options.defaults.clone())?
            }
            (None, None) if table.contains_key(PGBENCH) => {
                let write = custom::may_write(&self.targets(table, Vec::new())?, &self.options.workload);
                let custom = custom::of_table(self.path, table, self.define(table)?, write)?;
                let alone = Table::from_iter([(PGBENCH.to_owned(), table[PGBENCH].clone())]);
                parse_table(&alone, Some(custom), self.options.defaults.clone())?
            }
            (None, Some(file)) => self.of_file(&word(file, "file")?, table)?,
            (Some(_), Some(_)) => {
                return Err(
                    Error::usage("the run has an experiment and a file").hint("leave one of them out")
                );
            }
            (None, None) => {
                return Err(Error::usage("the run has no experiment")
                    .hint("write experiment = \"session\", pgbench = [\"browse.sql\"], or file = \"other-suite.toml\""));
            }
        };
        let info = request.find()?.info;
        let of_file = std::mem::take(&mut request.targets);
        request.overlay(info, &self.common)?;
        request.overlay(info, table)?;
        if table.contains_key("setup") || self.common.contains_key("setup") {
            request.companions.place_setup(self.path);
        }
        let names: Vec<&str> = axes_of(info).map(|axis| axis.name).collect();
        for given in self.given_axes().filter(|given| names.contains(&given.axis.name)) {
            request.axes.insert(given.axis.name.to_owned(), given.values(given.axis));
        }
        request.settings(info, "--", self.options.chosen.clone())?;
        request.targets = self.targets(table, of_file)?;
        for url in &request.targets {
            let checked = TargetUrl::parse(url).and_then(|url| kurabe_targets::check_scheme(&url));
            checked.map_err(|error| error.context("targets"))?;
        }
        Ok(request)
    }

    /// The targets of a run; `of_file` are those that its file names.
    fn targets(&self, table: &Table, of_file: Vec<String>) -> Result<Vec<String>> {
        let named = |targets: &Value| {
            let mut targets = words(targets, "targets")?;
            place_targets(&mut targets, self.path);
            Ok::<_, Error>(targets)
        };
        let targets = if let Some(own) = table.get("targets") {
            named(own)?
        } else {
            let common = self.common.get("targets").map(named).transpose()?;
            let mut request = Request { targets: common.unwrap_or(of_file), ..Request::default() };
            request.targets(&self.options.targets, false)?;
            request.targets
        };
        if targets.is_empty() {
            return Err(Error::usage("the run has no targets").hint(
                "write targets = [\"sqlite:\", \"up:postgres\"] in it, or above the first [[run]] for all runs",
            ));
        }
        Ok(targets)
    }

    /// The request of another suite file, of one run.
    fn of_file(&self, name: &str, run: &Table) -> Result<Request> {
        let path = self.path.parent().unwrap_or(Path::new(".")).join(name);
        let read = || {
            let text = text_of(&path)?;
            let table = document::table(&text)?;
            if table.contains_key(RUN) {
                return Err(Error::usage("it has several runs itself").hint("name one of a single run"));
            }
            let define = self.define(run)?;
            let custom = if custom::is_custom(&table) {
                let targets = table.get("targets").map(|targets| words(targets, "targets")).transpose()?;
                let write = custom::may_write(
                    &self.targets(run, targets.unwrap_or_default())?,
                    &self.options.workload,
                );
                Some(custom::of_file(&path, &text, define, write)?)
            } else if run.contains_key("define") {
                return Err(Error::usage("it has no variables").hint("leave out 'define'"));
            } else {
                None
            };
            let mut request = parse_table(&table, custom, self.options.defaults.clone())?;
            request.companions.place_setup(&path);
            place_targets(&mut request.targets, &path);
            Ok(request)
        };
        read().map_err(|error: Error| error.context(path.display()).context("file"))
    }

    /// The variables that a run and the command line set.
    fn define(&self, run: &Table) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        if let Some(define) = run.get("define") {
            let define = define.as_table().ok_or_else(|| {
                Error::usage("'define' is not a table").hint("write define = { rows = 1000 }")
            })?;
            for (name, value) in define {
                all.insert(name.clone(), word(value, name)?);
            }
        }
        all.extend(custom::define(&self.options.workload)?);
        Ok(all)
    }

    /// The axes that the user chose, not the settings file.
    fn given_axes(&self) -> impl Iterator<Item = &AxisOption> {
        self.options.axes.iter().filter(|given| !given.is_default)
    }

    /// Refuses options that no run can use.
    fn check_options(&self, runs: &[SuiteRun]) -> Result<()> {
        let mut axes = BTreeSet::new();
        for run in runs {
            axes.extend(axes_of(run.request.find()?.info).map(|axis| axis.name));
        }
        let mut given = self.given_axes().map(|given| given.axis.name);
        if let Some(axis) = given.find(|axis| !axes.contains(axis)) {
            return Err(Error::usage(format!("--{axis}: no run of the suite has this axis")));
        }
        let is_custom = |run: &SuiteRun| run.request.custom.is_some();
        if !custom::define(&self.options.workload)?.is_empty() && !runs.iter().any(is_custom) {
            return Err(
                Error::usage("--define: no run has variables").hint("only custom workloads have variables")
            );
        }
        Ok(())
    }
}

/// The name of a run: its own, or that of its experiment or file.
fn name(table: &Table) -> Result<String> {
    let stem = |file: String| {
        Path::new(&file).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let name = match (table.get("name"), table.get("experiment"), table.get("file")) {
        (Some(name), ..) => word(name, "name")?,
        (None, Some(experiment), _) => word(experiment, "experiment")?,
        (None, None, Some(file)) => stem(word(file, "file")?),
        (None, None, None) => match table.get(PGBENCH).map(|scripts| words(scripts, PGBENCH)).transpose()? {
            Some(scripts) => stem(custom::without_weight(scripts.first().map_or("", String::as_str))),
            None => return Ok("?".to_owned()),
        },
    };
    let plain = |character: char| character.is_alphanumeric() || "._-".contains(character);
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        return Err(Error::usage(format!("'{name}' is not a name of a run"))
            .hint("use letters, digits, '.', '_' and '-', at most 100 bytes"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
