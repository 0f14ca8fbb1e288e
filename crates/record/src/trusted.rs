//! What a run may name, if somebody else than the user chose it: a form of the page, or a run file that was not made here.
//!
//! A target starts programs (`up:` with `programs=` and settings of servers), opens files and connections, and gets
//! passwords of the environment; a workload has statements, a setup commands of the engine's own program. So there is one
//! judgement of all that a run names, wherever it is from.

use kurabe_core::axis::{AxisInfo, AxisValue};
use kurabe_core::name::FileName;
use kurabe_core::run::{CellRecord, RunSpec};
use kurabe_core::target::{TargetUrl, without_passwords};
use kurabe_core::{Error, Result};
use std::path::{Path, PathBuf};

/// What a run may name.
#[derive(Debug)]
pub struct Trusted {
    /// The targets that the user named: each as it is used, and as it is shown, without its password.
    known: Vec<(String, String)>,
    /// The folder in which it may name SQLite files.
    folder: PathBuf,
    /// Whether it may name anything.
    any: bool,
    /// What the user does to allow more.
    way: String,
}

impl Trusted {
    /// `known`: the targets that the user named. `any`: whether everything is allowed. `way`: how to allow more, for people.
    pub fn new(known: Vec<String>, folder: PathBuf, any: bool, way: impl Into<String>) -> Self {
        let with_shown = |url: String| {
            let shown = TargetUrl::parse(&url).map_or_else(|_| "…".to_owned(), |url| url.to_string());
            (url, shown)
        };
        Self { known: known.into_iter().map(with_shown).collect(), folder, any, way: way.into() }
    }

    /// The known targets, without passwords.
    pub fn shown(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|(_, shown)| shown.as_str())
    }

    /// Whether everything is allowed.
    pub fn allows_all(&self) -> bool {
        self.any
    }

    /// The target that a text names, as it is used: with the password that the user gave.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is not allowed.
    pub fn target(&self, text: &str) -> Result<String> {
        if text.starts_with('-') {
            return Err(Error::usage("a target does not begin with '-'"));
        }
        if let Some((url, _)) = self.known.iter().find(|(url, shown)| url == text || shown == text) {
            return Ok(url.clone());
        }
        if self.any || is_file_in(text, &self.folder) {
            return Ok(text.to_owned());
        }
        let shown = without_passwords([text.to_owned()].into_iter()).join(" ");
        Err(self.refusal(&format!("the target {shown}")))
    }

    /// Checks a value of an axis, which may name a file.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is not allowed.
    pub fn check_value(&self, axis: &AxisInfo, value: &AxisValue) -> Result<()> {
        if !self.any && axis.names_file(value) {
            return Err(self.refusal(&format!("a file in --{}", axis.name)));
        }
        Ok(())
    }

    /// Checks all that a recorded run names, of whose experiment these are the axes; returns its targets as they are used.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) with the first thing that is not allowed.
    pub fn check_recorded(
        &self,
        spec: &RunSpec,
        cells: &[CellRecord],
        axes: &[AxisInfo],
    ) -> Result<Vec<String>> {
        let targets = spec.targets.iter().map(|target| self.target(target)).collect::<Result<Vec<_>>>()?;
        if self.any {
            return Ok(targets);
        }
        for (option, url) in [("cache", &spec.cache), ("remote", &spec.remote)] {
            url.as_deref()
                .map_or(Ok(String::new()), |url| self.target(url))
                .map_err(|error| error.context(format!("--{option}")))?;
        }
        let other = [
            (spec.setup.is_some(), "--setup, whose file or database is loaded"),
            (spec.fleet.is_some(), "--fleet, whose agents get its orders"),
            (spec.custom.is_some(), "a workload of its own, whose statements are executed"),
        ];
        if let Some((_, what)) = other.into_iter().find(|(is_named, _)| *is_named) {
            return Err(self.refusal(what));
        }
        let of_spec =
            spec.axes.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        let of_cells = cells.iter().flat_map(|cell| cell.axes.values());
        for (name, value) in of_spec.chain(of_cells) {
            if let Some(axis) = axes.iter().find(|axis| axis.name == name) {
                self.check_value(axis, value)?;
            }
        }
        Ok(targets)
    }

    fn refusal(&self, what: &str) -> Error {
        Error::usage(format!("not allowed here: {what}")).hint(self.way.clone())
    }
}

/// Whether a target is a SQLite file of a plain name in this folder.
fn is_file_in(text: &str, folder: &Path) -> bool {
    let Ok(url) = TargetUrl::parse(text) else { return false };
    let path = Path::new(&url.path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return false;
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let is_in = matches!((parent.canonicalize(), folder.canonicalize()), (Ok(parent), Ok(folder)) if parent == folder);
    // A link may lead anywhere.
    let is_plain = path.symlink_metadata().map_or(true, |meta| meta.is_file());
    url.scheme == "sqlite" && url.options.is_empty() && FileName::parse(name).is_ok() && is_in && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::axis::Cell;
    use kurabe_core::axis::{AxisKind, FreeText};
    use kurabe_core::custom::{CustomWorkload, Language};
    use kurabe_core::fleet::FleetSpec;
    use kurabe_core::run::Setup;

    fn trusted(folder: &Path, any: bool) -> Trusted {
        let known = ["sqlite:", "up:postgres", "up:memcached", "postgres://me:pw@h/db"].map(str::to_owned);
        Trusted::new(known.to_vec(), folder.to_owned(), any, "name it")
    }

    #[test]
    fn only_targets_that_the_user_named_are_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let targets = trusted(dir, false);
        for (text, url) in [
            ("sqlite:", "sqlite:"),
            ("up:postgres", "up:postgres"),
            ("postgres://me@h/db", "postgres://me:pw@h/db"),
        ] {
            assert_eq!(targets.target(text).unwrap(), url);
        }
        assert!(targets.shown().all(|shown| !shown.contains("pw")));
        let inside = format!("sqlite:{}/mine.db", dir.display());
        assert_eq!(targets.target(&inside).unwrap(), inside);
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("x.db"), dir.join("link.db")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.join("there")).unwrap();
        let at = |name: &str| format!("sqlite:{}/{name}", dir.display());
        for text in [
            "sqlite:/tmp/other.db",
            "sqlite:x.db",
            "postgres://me:other@h/db2",
            "up:postgres?archive_command=touch",
            "up:postgres?programs=/tmp/x",
            "up:postgres?setup=/tmp/x.sql",
            "up:postgres:/tmp/x",
            "stack:php/mysqli?db=up:mysql%3Finit_file=/x",
            "postgres://me@h/db?observe=evil",
            "null:",
            "up:mysql",
            "",
            "--runs-dir=/",
            "sqlite:..",
            &at("../x.db"),
            &at("link.db"),
            &at("there/x.db"),
            &at(".jobs"),
            &at("x.db?synchronous=off"),
            "lmdb:/tmp/x",
        ] {
            assert!(targets.target(text).is_err(), "{text}");
        }
        let error = targets.target("postgres://me:hunter2@h/x").unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("name it"), "{error}");
        assert_eq!(trusted(dir, true).target("null:").unwrap(), "null:");
    }

    #[test]
    fn everything_that_a_recorded_run_names_is_judged() {
        const AXES: &[AxisInfo] =
            &[AxisInfo::new("codes", "", AxisKind::choice(&[("auto", "")]).or_text(FreeText::File("")), &[])];
        let folder = tempfile::tempdir().unwrap();
        let plain = RunSpec::new("webapp", ["sqlite:", "postgres://me@h/db"]);
        let custom =
            CustomWorkload::new(Language::Capture, Vec::new(), std::collections::BTreeMap::new(), true);
        let setup = |from: &str| Some(Setup { from: from.to_owned(), digest: None });
        let axes = |word: &str| [("codes".to_owned(), vec![AxisValue::Word(word.to_owned())])].into();
        let cell = |word: &str| {
            let axes = Cell::new([("codes".to_owned(), AxisValue::Word(word.to_owned()))]);
            vec![CellRecord { axes, ..CellRecord::default() }]
        };
        let with = |change: &dyn Fn(&mut RunSpec)| {
            let mut spec = plain.clone();
            change(&mut spec);
            spec
        };
        let named: Vec<(RunSpec, Vec<CellRecord>, &str)> = vec![
            (with(&|spec| spec.targets[1] = "up:postgres?programs=/x".to_owned()), vec![], "programs=/x"),
            (with(&|spec| spec.cache = Some("up:memcached?programs=/x".to_owned())), vec![], "--cache"),
            (with(&|spec| spec.remote = Some("postgres://evil/x".to_owned())), vec![], "--remote"),
            (with(&|spec| spec.setup = setup("/x.sql")), vec![], "--setup"),
            (with(&|spec| spec.setup = setup("copy:postgres://h/d")), vec![], "--setup"),
            (with(&|spec| spec.fleet = Some(FleetSpec::default())), vec![], "--fleet"),
            (with(&|spec| spec.custom = Some(custom.clone())), vec![], "a workload of its own"),
            (with(&|spec| spec.axes = axes("/etc/passwd")), vec![], "--codes"),
            (plain.clone(), cell("/etc/passwd"), "--codes"),
        ];
        let trust = trusted(folder.path(), false);
        for (spec, cells, what) in &named {
            let error = trust.check_recorded(spec, cells, AXES).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert!(trusted(folder.path(), true).check_recorded(spec, cells, AXES).is_ok());
        }
        let harmless = with(&|spec| {
            spec.cache = Some("up:memcached".to_owned());
            spec.axes = axes("auto");
        });
        let urls = trust.check_recorded(&harmless, &cell("auto"), AXES).unwrap();
        assert_eq!(urls, ["sqlite:", "postgres://me:pw@h/db"]);
    }
}
