//! Reads a claims file. Each mistake is an error with its line.

use super::{Definition, Work};
use crate::document::{self, Entry, Node, at, line_of_error, without_lines};
use crate::run_options::{WorkloadOptions, axes_of};
use crate::suite::{self, Request};
use crate::words::{self, percentage};
use kurabe_core::axis::AxisValue;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::Unit;
use kurabe_core::run::RunSpec;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result, units};
use kurabe_drivers::registry as drivers;
use kurabe_experiments::{custom, registry};
use kurabe_report::claim::{About, Range, Side, Test, metrics};
use kurabe_targets::{check_scheme, engine};
use std::path::Path;
use toml::{Table, Value};

/// The keys of a claim beside those of its suite.
const OWN: [&str; 11] = [
    "claim", "year", "source", "published", "fault", "held", "then", "not-testable", "suite", "tolerance",
    "test",
];

/// The tolerance of a claim that two values are equal: measured values never are.
const EQUAL: f64 = 0.05;

/// The keys of a test.
const TEST: [&str; 7] = ["operation", "metric", "subject", "baseline", "at-least", "at-most", "tolerance"];

/// The metric of a test that names none.
const METRIC: &str = "throughput";

/// The claims of a text. `stem` is the name of its file without the extension, `folder` that of the suites that it names.
pub(super) fn claims(
    text: &str,
    stem: &str,
    folder: &Path,
    workload: &WorkloadOptions,
) -> Result<Vec<Definition>> {
    let entries = document::read(text)?;
    if entries.is_empty() {
        return Err(Error::usage("there is no claim in it").hint("a claim is a table: [ours], claim = \"…\""));
    }
    entries.iter().map(|entry| definition(entry, stem, folder, workload)).collect()
}

fn definition(entry: &Entry, stem: &str, folder: &Path, workload: &WorkloadOptions) -> Result<Definition> {
    let id = &entry.key;
    let wrong = |message: String| at(entry.line, Error::usage(message));
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if id.is_empty() || id.len() > 60 || !id.chars().all(plain) {
        return Err(wrong(format!("'{id}' is not a name of a claim: use letters, digits, '.', '_' and '-'")));
    }
    let Some(entries) = entry.node.table() else {
        return Err(wrong(format!("'{id}' is not a table")).hint(format!("write [{id}]")));
    };
    let claim = Claim { id, line: entry.line, entries };
    // Keys of a custom workload stand in its own file.
    let known: Vec<&str> = OWN.iter().chain(&suite::KEYS).copied().collect();
    claim.entries.iter().try_for_each(|entry| known_word(entry, &entry.key, &known, "key"))?;
    let Some(text) = claim.text("claim")? else {
        return Err(wrong(format!("{id} has no text")).hint("write claim = \"…\""));
    };
    let year = match claim.find("year") {
        None => None,
        Some(Entry { node: Node::Value(Value::Integer(year)), .. }) if (1..=9_999).contains(year) => {
            Some(*year as u32)
        }
        Some(entry) => return Err(at(entry.line, Error::usage("'year' is not a year"))),
    };
    let held = match claim.find("held") {
        None => false,
        Some(Entry { node: Node::Value(Value::Boolean(held)), .. }) => *held,
        Some(entry) => return Err(at(entry.line, Error::usage("'held' is neither true nor false"))),
    };
    let about = About {
        id: id.clone(),
        claim: text.trim_end_matches('.').to_owned(),
        year,
        source: claim.text("source")?,
        published: claim.text("published")?,
        fault: claim.text("fault")?,
    };
    let is_work = |entry: &&Entry| {
        let key = entry.key.as_str();
        matches!(key, "test" | "suite" | "then" | "tolerance") || suite::KEYS.contains(&key)
    };
    let work = match claim.text("not-testable")? {
        Some(why) => {
            if let Some(more) = claim.entries.iter().find(is_work) {
                let message = format!("{id} is 'not-testable', so that it has no '{}'", more.key);
                return Err(at(more.line, Error::usage(message)));
            }
            Err(why)
        }
        None => Ok(claim.work(folder, workload)?),
    };
    Ok(Definition { about, suite: stem.to_owned(), held, work })
}

/// A claim's table.
struct Claim<'a> {
    id: &'a str,
    line: usize,
    entries: &'a [Entry],
}

impl Claim<'_> {
    fn find(&self, key: &str) -> Option<&Entry> {
        document::find(self.entries, key)
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        self.find(key).map(text_of).transpose()
    }

    fn work(&self, folder: &Path, workload: &WorkloadOptions) -> Result<Work> {
        let (base, custom) = match self.find("suite") {
            Some(entry) => suite_file(entry, folder, workload)?,
            None => (Table::new(), None),
        };
        let request = |own: &Table| {
            let mut table = base.clone();
            let own = own.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
            table.extend(own.map(|(key, value)| (key.clone(), value.clone())));
            if custom.is_none() && !table.contains_key("experiment") {
                return Err(Error::usage(format!("{} has no experiment", self.id)).hint(
                    "write experiment = \"session\", suite = \"FILE.toml\", or not-testable = \"why\"",
                ));
            }
            Request::of_claim(&table, custom.clone())
        };
        let made = request(&without_lines(self.entries)).map_err(|error| {
            let unknown = |entry: &&Entry| text_of(entry).is_ok_and(|name| registry::find(&name).is_err());
            let unknown = self.find("experiment").filter(|_| custom.is_none()).filter(unknown);
            let one = || {
                line_of_error(self.entries, &error, |key| key == "experiment", |own| request(own).map(drop))
            };
            at(unknown.map(|entry| entry.line).or_else(one).unwrap_or(self.line), error)
        })?;
        let spec = made.spec().map_err(|error| at(self.line, error))?;
        let info = made.find()?.info;
        let targets = made.target_urls();
        let line = self.find("targets").map_or(self.line, |entry| entry.line);
        targets.iter().try_for_each(|text| check_target(text)).map_err(|error| at(line, error))?;
        let tests = self.tests(info, &spec, &targets)?;
        let then = self.then(&targets, &tests)?;
        Ok(Work { request: made, targets, then, tests })
    }

    /// The servers of the claim's time.
    fn then(&self, targets: &[String], tests: &[Test]) -> Result<Vec<String>> {
        let Some(entry) = self.find("then") else { return Ok(Vec::new()) };
        let wrong = |message: &str| Err(at(entry.line, Error::usage(message.to_owned())));
        let urls = match entry.node.value() {
            Value::String(text) => vec![text],
            Value::Array(values) => {
                let urls: Option<Vec<String>> =
                    values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
                match urls {
                    Some(urls) => urls,
                    None => return wrong("'then' is not a list of targets"),
                }
            }
            _ => return wrong("'then' is not a list of targets"),
        };
        for text in &urls {
            TargetUrl::parse(text).map_err(|error| at(entry.line, error))?;
        }
        let named = tests.iter().any(|test| test.subject.target.is_some());
        if named && urls.len() != targets.len() {
            return wrong("'then' needs a target for each of 'targets', in the same order");
        }
        Ok(urls)
    }

    fn tests(&self, info: &ExperimentInfo, spec: &RunSpec, targets: &[String]) -> Result<Vec<Test>> {
        let missing = || {
            at(self.line, Error::usage(format!("{} has no test", self.id)))
                .hint(format!("write [[{}.test]] with subject, and at-least or at-most", self.id))
        };
        let entry = self.find("test").ok_or_else(missing)?;
        let tables: Vec<(usize, &[Entry])> = match &entry.node {
            Node::Table(entries) => vec![(entry.line, entries)],
            Node::Array(values) => {
                let table = |(line, node): &'_ (usize, Node)| match node {
                    Node::Table(_) => Ok(*line),
                    _ => Err(at(*line, Error::usage("'test' is not a table"))),
                };
                let lines = values.iter().map(table).collect::<Result<Vec<_>>>()?;
                lines.into_iter().zip(values.iter().filter_map(|(_, node)| node.table())).collect()
            }
            Node::Value(_) => return Err(at(entry.line, Error::usage("'test' is not a table"))),
        };
        if tables.is_empty() {
            return Err(missing());
        }
        let tolerance = self.find("tolerance").map(tolerance).transpose()?;
        let reader = Reader { info, spec, targets, tolerance };
        tables.into_iter().map(|(line, entries)| reader.test(line, entries)).collect()
    }
}

/// Reads the suite file that a claim names: its keys, and the custom workload in it, if there is one.
fn suite_file(
    entry: &Entry,
    folder: &Path,
    workload: &WorkloadOptions,
) -> Result<(Table, Option<kurabe_core::custom::CustomWorkload>)> {
    let path = folder.join(text_of(entry)?);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        at(entry.line, Error::usage(format!("the suite {} cannot be read: {error}", path.display())))
    })?;
    let custom =
        crate::suite::custom::of_suite(&path, &text, workload).map_err(|error| at(entry.line, error))?;
    let table = document::table(&text).map_err(|error| error.context(path.display()))?;
    if let Some(custom) = &custom {
        // Mistakes in the workload have places in its own file.
        custom::experiment(custom)?;
    }
    Ok((table, custom))
}

/// Refuses a target that no machine could have. One that this machine or this build lacks is not testable here, and so is
/// an engine without an address (`oracle:`), which stands for a target that the user gives.
fn check_target(text: &str) -> Result<()> {
    let url = TargetUrl::parse(text)?;
    let is_given = text.strip_suffix(':').is_some_and(|name| drivers::find(name).is_some());
    if is_given || drivers::check_built_in(engine(&url)).is_err() { Ok(()) } else { check_scheme(&url) }
}

/// What a test may refer to.
struct Reader<'a> {
    info: &'a ExperimentInfo,
    spec: &'a RunSpec,
    targets: &'a [String],
    tolerance: Option<f64>,
}

impl Reader<'_> {
    fn test(&self, line: usize, entries: &[Entry]) -> Result<Test> {
        for entry in entries {
            known_word(entry, &entry.key, &TEST, "key")?;
        }
        let find = |key: &str| document::find(entries, key);
        let operation = find("operation").map(|entry| {
            let name = text_of(entry)?;
            let known: Vec<&str> = self.spec.operations.iter().map(String::as_str).collect();
            known_word(entry, &name, &known, "operation")?;
            Ok::<_, Error>(name)
        });
        let operation = operation.transpose()?;
        let known = metrics(self.info);
        let metric = find("metric").map(|entry| {
            let name = text_of(entry)?;
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            known_word(entry, &name, &names, "metric")?;
            Ok::<_, Error>(name)
        });
        let metric = metric.transpose()?.unwrap_or_else(|| METRIC.to_owned());
        let unit = known.iter().find(|(name, _)| *name == metric).map_or(Unit::Count, |(_, unit)| *unit);
        let subject = find("subject").map(|entry| self.side(entry)).transpose()?.unwrap_or_default();
        let baseline = find("baseline").map(|entry| self.side(entry)).transpose()?;
        if let Some((entry, side)) = find("baseline").zip(baseline.as_ref()) {
            let wrong = |message: &str| Err(at(entry.line, Error::usage(message.to_owned())));
            if !side.axes.keys().eq(subject.axes.keys()) || side.target.is_some() != subject.target.is_some()
            {
                return wrong("'subject' and 'baseline' do not name the same axes");
            }
            if *side == subject {
                return wrong("'subject' and 'baseline' are the same cell");
            }
        }
        let unit_of_bounds = if baseline.is_some() { Unit::Ratio } else { unit };
        let bound = |key: &str| find(key).map(|entry| bound(entry, unit_of_bounds)).transpose();
        let (at_least, at_most) = (bound("at-least")?, bound("at-most")?);
        if at_least.is_none() && at_most.is_none() {
            return Err(at(line, Error::usage("the test claims nothing")).hint("add at-least or at-most"));
        }
        if at_least.zip(at_most).is_some_and(|(low, high)| low > high) {
            return Err(at(line, Error::usage("'at-least' is greater than 'at-most'")));
        }
        let equal = at_least.is_some() && at_least == at_most;
        let usual = self.tolerance.unwrap_or(if equal { EQUAL } else { 0.0 });
        let tolerance = find("tolerance").map(tolerance).transpose()?.unwrap_or(usual);
        Ok(Test {
            operation,
            metric,
            unit,
            subject,
            baseline,
            claimed: Range { at_least, at_most, tolerance },
        })
    }

    fn side(&self, entry: &Entry) -> Result<Side> {
        let Some(entries) = entry.node.table() else {
            return Err(at(entry.line, Error::usage(format!("'{}' is not a table", entry.key)))
                .hint(format!("write {} = {{ layout = \"rows\" }}", entry.key)));
        };
        let mut side = Side::default();
        for entry in entries {
            let text = text_of(entry)?;
            if entry.key == "target" {
                let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
                known_word(entry, &text, &targets, "target")?;
                side.target = self.targets.iter().position(|target| *target == text);
                continue;
            }
            let known: Vec<_> = axes_of(self.info).collect();
            let names: Vec<&str> = known.iter().map(|axis| axis.name).chain(["target"]).collect();
            known_word(entry, &entry.key, &names, "axis")?;
            let Some(axis) = known.into_iter().find(|axis| axis.name == entry.key) else { continue };
            let value: AxisValue = axis.parse(&text).map_err(|error| at(entry.line, error))?;
            let measured = self.spec.axes.get(&entry.key).is_some_and(|values| values.contains(&value));
            if !measured {
                let message = format!("{} {} is not measured", entry.key, axis.show(&value));
                return Err(at(entry.line, Error::usage(message))
                    .hint(format!("add it: axes = {{ {} = [\"{text}\", …] }}", entry.key)));
            }
            side.axes.insert(entry.key.clone(), value);
        }
        Ok(side)
    }
}

/// The text of an entry; numbers as they are written.
fn text_of(entry: &Entry) -> Result<String> {
    match &entry.node {
        Node::Value(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Node::Value(Value::Integer(number)) => Ok(number.to_string()),
        Node::Value(Value::Float(number)) => Ok(number.to_string()),
        Node::Value(Value::Datetime(time)) => Ok(time.to_string()),
        _ => Err(at(entry.line, Error::usage(format!("'{}' is not a text", entry.key)))),
    }
}

fn known_word(entry: &Entry, word: &str, known: &[&str], what: &str) -> Result<()> {
    words::known(word, known, what).map_err(|error| at(entry.line, error))
}

fn tolerance(entry: &Entry) -> Result<f64> {
    let text = text_of(entry)?;
    if matches!(text.as_str(), "0" | "0%") {
        return Ok(0.0);
    }
    percentage(&text).map_err(|error| at(entry.line, error.context("tolerance")))
}

/// A positive bound: a number, or a text with a unit: `12.5MB`, `3ms`.
fn bound(entry: &Entry, unit: Unit) -> Result<f64> {
    let text = text_of(entry)?;
    let number = match (&entry.node, unit) {
        (Node::Value(Value::String(_)), Unit::Bytes) => units::parse_size(&text).map(|bytes| bytes as f64),
        (Node::Value(Value::String(_)), Unit::Nanoseconds) => {
            units::parse_duration(&text).map(|time| time.as_nanos() as f64)
        }
        // A rate, or a mean of counts, may have a part.
        (Node::Value(Value::String(_)), Unit::PerSecond | Unit::Count) => {
            text.parse::<f64>().or_else(|_| units::parse_count(&text).map(|count| count as f64))
        }
        (_, Unit::Share) if text.ends_with('%') => percentage(&text),
        _ => text.parse::<f64>().map_err(|_| Error::usage(format!("'{text}' is not a number"))),
    };
    let number = number.map_err(|error| at(entry.line, error.context(&entry.key)))?;
    if number > 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err(at(entry.line, Error::usage(format!("'{}' is not a positive number", entry.key))))
    }
}

#[cfg(test)]
mod tests;
