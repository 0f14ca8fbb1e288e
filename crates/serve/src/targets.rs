//! The targets that a form may name: those that the page was started with, and SQLite files in its folder of runs.

use kurabe_core::name::FileName;
use kurabe_core::target::{TargetUrl, without_passwords};
use kurabe_core::{Error, Result};
use std::path::Path;

/// The targets of a page.
pub(crate) struct Targets {
    /// Each as it is used, and as it is shown, without its password.
    known: Vec<(String, String)>,
    /// Whether a form may name any other.
    any: bool,
}

impl Targets {
    pub(crate) fn new(known: Vec<String>, any: bool) -> Self {
        let with_shown = |url: String| {
            let shown = TargetUrl::parse(&url).map_or_else(|_| "…".to_owned(), |url| url.to_string());
            (url, shown)
        };
        Self { known: known.into_iter().map(with_shown).collect(), any }
    }

    /// What the form suggests.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|(_, shown)| shown.as_str())
    }

    /// Whether a form may name any target, and any file.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// The target that a form names, as a run takes it. `folder`: that of runs.
    pub(crate) fn find(&self, text: &str, folder: &Path) -> Result<String> {
        if text.starts_with('-') {
            return Err(Error::usage("a target does not begin with '-'"));
        }
        if let Some((url, _)) = self.known.iter().find(|(url, shown)| url == text || shown == text) {
            return Ok(url.clone());
        }
        if self.any || is_file_in(text, folder) {
            return Ok(text.to_owned());
        }
        let shown = without_passwords([text.to_owned()].into_iter()).join(" ");
        Err(Error::usage(format!("this page was not started with the target {shown}"))
            .hint("start it with the target: kurabe serve TARGET…, or with --allow-any-target"))
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

    #[test]
    fn form_names_only_what_the_page_was_started_with() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let known =
            || vec!["sqlite:".to_owned(), "up:postgres".to_owned(), "postgres://me:pw@h/db".to_owned()];
        let targets = Targets::new(known(), false);
        for (text, url) in [
            ("sqlite:", "sqlite:"),
            ("up:postgres", "up:postgres"),
            ("postgres://me@h/db", "postgres://me:pw@h/db"),
        ] {
            assert_eq!(targets.find(text, dir).unwrap(), url);
        }
        assert!(targets.shown().all(|shown| !shown.contains("pw")));
        let inside = format!("sqlite:{}/mine.db", dir.display());
        assert_eq!(targets.find(&inside, dir).unwrap(), inside);
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("x.db"), dir.join("link.db")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.join("there")).unwrap();
        let at = |name: &str| format!("sqlite:{}/{name}", dir.display());
        for text in [
            "sqlite:/tmp/other.db",
            "sqlite:x.db",
            "postgres://me:other@h/db2",
            "up:postgres?archive_command=touch",
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
            assert!(targets.find(text, dir).is_err(), "{text}");
        }
        assert!(!targets.find("postgres://me:hunter2@h/x", dir).unwrap_err().to_string().contains("hunter2"));
        assert_eq!(Targets::new(known(), true).find("null:", dir).unwrap(), "null:");
    }
}
