//! Runs of files: pgbench scripts, queries, captures and descriptions of workloads. The run file keeps their text.

use super::Request;
use crate::cli::{PGBENCH, QUERY};
use crate::options::parsed as parsed_option;
use crate::output::Output;
use crate::run_options::{PgbenchOptions, RunOptions, WorkloadOptions};
use crate::settings::parsed;
use crate::words::{word, words};
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};
use kurabe_core::load::{Arrivals, RATE};
use kurabe_core::question::TARGETS;
use kurabe_core::target::{SETUP, TargetUrl, UP};
use kurabe_core::text::without_mark;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, Result, units};
use kurabe_experiments::custom::{self, BUILTIN};
use kurabe_experiments::replay;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// Separates a script's name from its weight.
const WEIGHT: char = '@';
/// The axis of a replay with a cache.
const CACHED: &str = "cached";
/// The maximum weight.
const MAX: u64 = 1_000_000;

/// The custom workload in a suite file, if it contains one, including its value lists.
pub(crate) fn of_suite(
    path: &Path,
    text: &str,
    workload: &WorkloadOptions,
) -> Result<Option<CustomWorkload>> {
    let Ok(table) = text.parse::<Table>() else { return Ok(None) };
    let write = may_write(&named(workload, table.get("targets")), workload);
    if table.contains_key(PGBENCH) {
        return of_table(path, &table, define(workload)?, write).map(Some);
    }
    is_custom(&table).then(|| of_file(path, text, define(workload)?, write)).transpose()
}

/// The workload of the pgbench scripts that a table of a suite names, relative to the suite's folder.
pub(crate) fn of_table(
    path: &Path,
    table: &Table,
    define: BTreeMap<String, String>,
    write: bool,
) -> Result<CustomWorkload> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for script in words(table.get(PGBENCH).unwrap_or(&Value::Boolean(false)), PGBENCH)? {
        let (name, weight) = weighted(&script)?;
        files.push(if BUILTIN.iter().any(|(known, _)| *known == name) {
            builtin(name, weight)?
        } else {
            script_of(&folder.join(name), weight)?
        });
    }
    let count = |key: &str| {
        let text = table.get(key).map(|value| word(value, key)).transpose()?;
        parsed("", key, text, units::parse_count)
    };
    let flag = |key: &str| match table.get(key) {
        None => Ok(false),
        Some(Value::Boolean(set)) => Ok(*set),
        Some(_) => Err(Error::usage(format!("'{key}' is neither true nor false"))),
    };
    let (scale, tries, init, write) =
        (count("scale")?, count("max-tries")?, flag("init")?, flag("write")? || write);
    scripts(files, define, scale, tries, init, write)
}

/// The name of a pgbench script without its weight.
pub(crate) fn without_weight(script: &str) -> String {
    weighted(script).map_or(script, |(name, _)| name).to_owned()
}

/// The keys of a suite's pgbench scripts.
pub(crate) const PGBENCH_KEYS: [&str; 5] = [PGBENCH, "init", "scale", "max-tries", "write"];

/// Whether a file contains a custom workload.
pub(crate) fn is_custom(table: &Table) -> bool {
    ["transaction", "collection", "table"].iter().any(|key| table.contains_key(*key))
}

/// The custom workload in a file, including its value lists. `define` sets its variables; `write`: whether its statements
/// may change existing tables.
pub(crate) fn of_file(
    path: &Path,
    text: &str,
    define: BTreeMap<String, String>,
    write: bool,
) -> Result<CustomWorkload> {
    let mut files = vec![CustomFile { name: path.display().to_string(), text: text.to_owned(), weight: 1 }];
    let folder = path.parent().unwrap_or(Path::new("."));
    for name in custom::value_files(text) {
        let text = read(&folder.join(&name)).map_err(|error| error.context(path.display()))?;
        files.push(CustomFile { name, text, weight: 1 });
    }
    Ok(CustomWorkload::new(Language::Toml, files, define, write))
}

impl Request {
    /// Reads the options of `run pgbench …`.
    pub(crate) fn of_pgbench(options: &RunOptions) -> Result<Self> {
        let RunOptions { pgbench, workload, .. } = options;
        let mut targets = workload.target.iter();
        if let Some(script) = targets.find(|text| is_file_of_sql(text)) {
            return Err(Error::usage(format!("'{script}' is not a target"))
                .hint(format!("a script follows -f: write -f {script}")));
        }
        let mut files = Vec::new();
        for name in &pgbench.script {
            let (name, weight) = weighted(name)?;
            files.push(script_of(Path::new(name), weight)?);
        }
        let flags = [(pgbench.skip_some_updates, "simple-update"), (pgbench.select_only, "select-only")];
        let flags = flags.iter().filter(|(is_given, _)| *is_given).map(|(_, name)| *name);
        for name in pgbench.builtin.iter().map(String::as_str).chain(flags) {
            let (name, weight) = weighted(name)?;
            files.push(builtin(name, weight)?);
        }
        if files.is_empty() {
            files.push(builtin("tpcb-like", 1)?);
        }
        let define = define(workload)?;
        let scale = parsed_option("scale", pgbench.scale.as_ref(), units::parse_count)?;
        let tries = parsed_option("max-tries", pgbench.max_tries.as_ref(), units::parse_count)?;
        let write = may_write(&named(workload, None), workload);
        let custom = Some(scripts(files, define, scale, tries, pgbench.init, write)?);
        Self { custom, ..Self::default() }.with_options(options)?.with_pgbench(options)
    }

    /// Reads the options of `run query …`.
    pub(crate) fn of_query(options: &RunOptions) -> Result<Self> {
        let (custom, options) = queries(options)?;
        let count = custom.files.len();
        let mut request = Self { custom: Some(custom), ..Self::default() }.with_options(&options)?;
        // Named, so that no budget leaves one out, and the comparison is made at each way to execute them.
        let names =
            request.custom.iter().flat_map(|custom| &custom.files).map(|file| file.name.clone()).collect();
        request.axes.insert(QUERY.to_owned(), names);
        for axis in kurabe_experiments::query::axes().iter().filter(|axis| axis.default.len() > 1) {
            let values = axis.default.iter().map(|value| (*value).to_owned()).collect();
            request.axes.entry(axis.name.to_owned()).or_insert(values);
        }
        let targets = request.target_urls().len();
        let compared = [(QUERY, count), (TARGETS, targets)].into_iter().filter(|(_, count)| *count > 1);
        let compared: Vec<&str> = compared.map(|(name, _)| name).collect();
        if compared.is_empty() {
            return Err(Error::usage("one query on one target has nothing to be compared with")
                .hint("name another query (b.sql, or -c 'SELECT …'), or another target"));
        }
        request.compare = request.compare.or_else(|| Some(compared.join(",")));
        Ok(request)
    }

    /// Reads the options of `run replay …`.
    pub(crate) fn of_replay(options: &RunOptions, output: &Output) -> Result<Self> {
        if let Some(capture) = &options.main.capture {
            crate::places::warn_of_file(capture, output);
        }
        let RunOptions { main, workload, settings, .. } = options;
        let path = main.capture.as_ref().ok_or_else(|| Error::usage("no capture was given"))?;
        let urls = named(workload, None);
        let throwaway = are_throwaway(&urls);
        let write = workload.write || throwaway;
        let cache = settings.cache.as_ref().map(|url| url.starts_with("up:"));
        if options.axes.iter().any(|one| one.axis.name == CACHED) && cache.is_none() {
            return Err(
                Error::usage("--cached is for a replay with a cache").hint("name one: --cache up:redis")
            );
        }
        let is_loaded = |url: &String| TargetUrl::parse(url).is_ok_and(|url| url.option(SETUP).is_some());
        let restored = settings.setup.is_some() || !urls.is_empty() && urls.iter().all(is_loaded);
        let around = replay::Around { write, restored, throwaway, throwaway_cache: cache, halves: false };
        let custom = replay::workload(path, around)?;
        if !replay::is_complete(&custom)? {
            output.warning(
                "the recorder of the capture did not end in order: what it recorded last is missing",
            );
        }
        let unknown = replay::unknown_settings(&custom)?;
        if !unknown.is_empty() {
            output.warning(&format!(
                "the capture has settings of sessions that this version does not know, and does not set: {}",
                unknown.join(", ")
            ));
        }
        let schemes = replay::schemes(&custom)?;
        let request = Self { custom: Some(custom), ..Self::default() }.with_options(options)?;
        for target in request.target_urls() {
            let url = TargetUrl::parse(&target)?;
            let engine =
                if url.scheme == UP { url.path.split('@').next().unwrap_or_default() } else { &url.scheme };
            if !schemes.contains(&engine) {
                return Err(Error::usage(format!(
                    "{url} speaks another protocol than the server that was captured ({})",
                    schemes[0]
                ))
                .hint(format!("name a target such as up:{}", schemes[0])));
            }
        }
        Ok(request)
    }
}

/// The queries of `run query`, and its options without their files and texts, which stand among the targets.
fn queries(options: &RunOptions) -> Result<(CustomWorkload, RunOptions)> {
    let mut options = options.clone();
    let is_query = |word: &String| is_file_of_sql(word) || is_query(word);
    let words: Vec<String> = options.workload.target.iter().filter(|word| is_query(word)).cloned().collect();
    options.workload.target.retain(|word| !is_query(word));
    options.targets.target.value.retain(|word| !is_query(word));
    if options.targets.target.value.is_empty() {
        options.targets.target.source = None;
    }
    let mut queries: Vec<(String, String)> = Vec::new();
    // Files in their order, then texts: of `-c 'SELECT 1' 'SELECT 2'` the first is the option's.
    let (files, texts): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| is_file_of_sql(word));
    let is_known = |(at, word): &(usize, &&String)| files[..*at].contains(word);
    if let Some((_, twice)) = files.iter().enumerate().find(is_known) {
        return Err(Error::usage(format!("{twice} is named twice")));
    }
    for word in files.into_iter().chain(&options.main.query).chain(texts) {
        let (name, text) = if is_file_of_sql(word) {
            let file = Path::new(word)
                .file_name()
                .map_or_else(|| word.clone(), |name| name.to_string_lossy().into_owned());
            (file, read(Path::new(word))?)
        } else {
            ((queries.len() + 1).to_string(), word.clone())
        };
        // Two files of one name are told apart by their folders.
        let is_known = queries.iter().any(|(known, _)| *known == name);
        queries.push((if is_known { word.clone() } else { name }, text));
    }
    if queries.is_empty() {
        return Err(Error::usage("there is no query")
            .hint("name files: kurabe run query up:postgres --data shop.sql a.sql b.sql; or write -c 'SELECT …' -c 'SELECT …'"));
    }
    let write = may_write(&named(&options.workload, None), &options.workload);
    Ok((kurabe_experiments::query::workload(queries, write), options))
}

fn is_file_of_sql(word: &str) -> bool {
    !word.contains(':') && Path::new(word).extension().is_some_and(|end| end == "sql")
}

/// Whether a word of the command line is the text of a query, and no target: a shell's word with spaces.
fn is_query(word: &str) -> bool {
    let begins = ["select", "with", "values", "table", "(", "insert", "update", "delete"];
    let word = word.trim_start().to_ascii_lowercase();
    begins.iter().any(|begin| {
        word.strip_prefix(begin).is_some_and(|rest| *begin == "(" || rest.starts_with(char::is_whitespace))
    })
}

fn script_of(path: &Path, weight: u64) -> Result<CustomFile> {
    Ok(CustomFile { name: path.display().to_string(), text: read(path)?, weight })
}

fn scripts(
    files: Vec<CustomFile>,
    define: BTreeMap<String, String>,
    scale: Option<u64>,
    tries: Option<u64>,
    init: bool,
    write: bool,
) -> Result<CustomWorkload> {
    if files.iter().all(|file| file.weight == 0) {
        return Err(Error::usage("no script has a weight above 0"));
    }
    // As in pgbench, 0 is no limit.
    let max_tries = tries.map(|tries| match tries {
        0 => CustomWorkload::UNLIMITED,
        tries => u32::try_from(tries).unwrap_or(CustomWorkload::UNLIMITED),
    });
    Ok(CustomWorkload { language: Language::Pgbench, files, define, scale, max_tries, init, write })
}

/// The targets of the command line; without any, those of a suite.
fn named(workload: &WorkloadOptions, of_suite: Option<&Value>) -> Vec<String> {
    let urls = [&workload.target, &workload.more_targets, &workload.via].map(Vec::as_slice).concat();
    // What is no list of targets is refused where targets are read.
    let of_suite = || of_suite.and_then(|targets| words(targets, "targets").ok()).unwrap_or_default();
    if urls.is_empty() { of_suite() } else { urls }
}

fn are_throwaway(urls: &[String]) -> bool {
    // An invalid target is refused where targets are read.
    !urls.is_empty() && kurabe_targets::are_throwaway(urls).unwrap_or(false)
}

/// Whether statements may change existing tables: with `--write`, or if all targets are throwaway servers, which hold nothing
/// of the user's.
pub(crate) fn may_write(urls: &[String], workload: &WorkloadOptions) -> bool {
    workload.write || are_throwaway(urls)
}

/// The built-in script of this name, or the only one whose name begins so, as pgbench takes it.
fn builtin(name: &str, weight: u64) -> Result<CustomFile> {
    let mut begin = BUILTIN.iter().filter(|(known, _)| known.starts_with(name));
    if let (Some((known, text)), None) = (begin.next(), begin.next()) {
        return Ok(CustomFile { name: (*known).to_owned(), text: (*text).to_owned(), weight });
    }
    let names: Vec<&str> = BUILTIN.iter().map(|(name, _)| *name).collect();
    Err(Error::usage(format!("pgbench has no script '{name}'"))
        .hint(units::suggestion(name, &names, "there are")))
}

/// A script's name and weight: `mine.sql@3`.
fn weighted(name: &str) -> Result<(&str, u64)> {
    let Some((file, weight)) = name.rsplit_once(WEIGHT) else { return Ok((name, 1)) };
    match weight.parse() {
        Ok(weight) if weight <= MAX => Ok((file, weight)),
        _ => Err(Error::usage(format!("'{weight}' is not a script weight"))
            .hint(format!("write script.sql@3; a file name with '{WEIGHT}' needs a weight"))),
    }
}

/// The variables that the command line sets.
pub(crate) fn define(workload: &WorkloadOptions) -> Result<BTreeMap<String, String>> {
    workload
        .define
        .iter()
        .map(|text| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(Error::usage(format!("--define {text} is not name=value"))),
        })
        .collect()
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map(|text| without_mark(&text).to_owned())
        .map_err(|e| Error::usage(format!("the file {} cannot be read: {e}", path.display())))
}

impl Request {
    /// Adds pgbench's own options to the request: `-c -C -j -T -t -R -M` and `--max-tries`, as its manual defines them.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if a value is invalid, or if an option and its equivalent are given.
    pub(super) fn with_pgbench(mut self, options: &RunOptions) -> Result<Self> {
        let PgbenchOptions { client, jobs, time, transactions, rate_limit, protocol, .. } = &options.pgbench;
        // By their names in pgbench's manual, each with our option that it replaces.
        let replaced = [
            (client, "client", "clients"),
            (jobs, "jobs", "threads"),
            (time, "time", "duration"),
            (transactions, "transactions", "requests"),
            (rate_limit, "rate-limit", "rate"),
            (protocol, "protocol", "statement"),
        ];
        for (text, theirs, ours) in replaced {
            if text.is_some() && options.is_given(ours) {
                return Err(Error::usage(format!("pgbench's --{theirs} and --{ours} are the same"))
                    .hint(format!("leave out --{ours}")));
            }
        }
        let count =
            |name: &str, text: &Option<String>| parsed_option(name, text.as_ref(), units::parse_count);
        if let Some(clients) = count("client", client)? {
            self.axes.insert("clients".to_owned(), vec![clients.to_string()]);
        }
        if let Some(jobs) = jobs {
            self.threads = Some(ClientThreads::parse(jobs).map_err(|error| error.context("--jobs"))?);
        }
        if let Some(time) = parsed_option("time", time.as_ref(), units::parse_duration)? {
            self.duration = Some(time);
        }
        if let Some(each) = count("transactions", transactions)? {
            self.requests_of_each_client(each)?;
        }
        if let Some(rate) = rate_limit {
            self.axes.insert(RATE.name.to_owned(), vec![rate.clone()]);
            // "The rate is targeted by starting transactions along a Poisson-distributed schedule time line."
            self.arrivals = self.arrivals.or(Some(Arrivals::Poisson));
            // An open loop has other default clients, and pgbench's is one.
            self.axes.entry("clients".to_owned()).or_insert_with(|| vec!["1".to_owned()]);
        }
        if options.pgbench.connect {
            self.axes.insert("connection".to_owned(), vec!["per-request".to_owned()]);
        }
        let statement = match protocol.as_deref() {
            None => None,
            Some("prepared") => Some("once"),
            Some("extended") => Some("per-request"),
            Some(_) => Some("literal"),
        };
        if let Some(statement) = statement {
            self.axes.insert("statement".to_owned(), vec![statement.to_owned()]);
        }
        Ok(self)
    }

    /// Refuses, as pgbench does, tries without a limit in trials that nothing but a number of requests ends.
    pub(super) fn check_tries(&self) -> Result<()> {
        let is_unlimited =
            self.custom.as_ref().is_some_and(|custom| custom.max_tries == Some(CustomWorkload::UNLIMITED));
        let ends = self.requests.is_empty() || self.duration.is_some() || self.slo.is_some();
        if is_unlimited && !ends {
            return Err(Error::usage("--max-tries 0 has no limit, and nothing but a number of requests ends a trial")
                .hint("add a duration (-T 10, --duration 10s) or a limit of the latency (--slo 100ms), or a number of tries"));
        }
        Ok(())
    }

    /// Sets the requests of a trial from those of each client, as pgbench counts them.
    fn requests_of_each_client(&mut self, each: u64) -> Result<()> {
        let clients = match self.axes.get("clients").map(Vec::as_slice) {
            None => 1,
            Some([one]) => units::parse_count(one)?,
            Some(_) => {
                return Err(Error::usage(
                    "--transactions is a number for each client, and --clients has several values",
                )
                .hint("give the number of all clients: --requests"));
            }
        };
        let all = each.checked_mul(clients).filter(|all| *all > 0);
        let all = all.ok_or_else(|| Error::usage(format!("--transactions {each} is out of range")))?;
        let operations = self.find()?.info.operations.iter();
        self.requests = operations.map(|operation| (operation.name.to_owned(), all)).collect();
        Ok(())
    }
}
