//! Short names of targets, from the parts of their URLs that differ.

use super::{PROGRAMS, STACK, TargetUrl, UP, VERSION};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A short unique name for each target: the engine, then the version, user, host, port, database and options by which
/// targets of it differ. Only equal URLs have a number.
pub fn names(urls: &[TargetUrl]) -> Vec<String> {
    let mut used: HashSet<String> = HashSet::new();
    let unique = |base: String| {
        let numbered = (2..).map(|n| format!("{base}#{n}"));
        let mut all = std::iter::once(base.clone()).chain(numbered);
        all.find(|name| used.insert(name.clone())).unwrap_or(base)
    };
    urls.iter().map(|url| long(url, urls)).map(unique).collect()
}

/// What a target is called if no other has the same engine.
fn short(url: &TargetUrl) -> &str {
    if [UP, STACK].contains(&url.scheme.as_str()) { &url.path } else { &url.scheme }
}

fn long(url: &TargetUrl, urls: &[TargetUrl]) -> String {
    let others = || urls.iter().filter(|other| short(other) == short(url));
    let differs = |name: &str| others().any(|other| other.options.get(name) != url.options.get(name));
    // A version says more than the folder of its programs.
    let version = url.option(VERSION).filter(|_| differs(VERSION));
    let is_said = |name: &str| version.is_some() && [VERSION, PROGRAMS].contains(&name);
    let mut name =
        version.map_or_else(|| short(url).to_owned(), |version| format!("{}@{version}", short(url)));
    let mut add = |part: &str| {
        let _ = if part.is_empty() { Ok(()) } else { write!(name, " {part}") };
    };
    let parts: [fn(&TargetUrl) -> String; 3] = [
        |url| url.user.as_ref().map_or_else(String::new, |user| format!("{user}@")),
        |url| url.host.clone().unwrap_or_else(|| "localhost".to_owned()),
        |url| url.port.map_or_else(String::new, |port| format!(":{port}")),
    ];
    for part in parts.into_iter().filter(|part| others().any(|other| part(other) != part(url))) {
        add(&part(url));
    }
    let mut paths = others().map(|other| &*other.path).filter(|path| *path != url.path).peekable();
    if paths.peek().is_some() {
        // The file's name says it, if no other file has it.
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let is_own = paths.all(|path| file(path) != file(&url.path));
        add(&if is_own { file(&url.path) } else { url.path.clone() });
    }
    for (option, value) in url.options.iter().filter(|(option, _)| differs(option) && !is_said(option)) {
        add(&format!("{option}={}", url.shown_option(option, value)));
    }
    name
}
