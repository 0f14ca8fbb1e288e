//! Short names of targets, from the parts of their URLs that differ.

use super::{PROGRAMS, STACK, TargetUrl, UP, VERSION};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A short unique name for each target: the engine, then the version, user, host, port, database and options that tell
/// targets of it apart. Only equal URLs have a number.
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
    if is_started(url) { &url.path } else { &url.scheme }
}

/// Whether a run starts it, so that its URL names no server.
fn is_started(url: &TargetUrl) -> bool {
    [UP, STACK].contains(&url.scheme.as_str())
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
    if is_started(url) && others().any(|other| !is_started(other)) {
        add("throwaway");
    }
    if !is_started(url) {
        let named: Vec<&TargetUrl> = others().filter(|other| !is_started(other)).collect();
        let host = |url: &TargetUrl| url.host.clone().unwrap_or_else(|| "localhost".to_owned());
        // Users and ports are said where hosts and databases do not tell all of them apart.
        let count = |has_user: bool, has_port: bool| {
            let part = |url: &&TargetUrl| {
                let user = url.user.as_ref().filter(|_| has_user);
                (user.cloned(), host(url), url.port.filter(|_| has_port), url.path.clone())
            };
            named.iter().map(part).collect::<HashSet<_>>().len()
        };
        let has_port = count(true, false) < count(true, true);
        let has_user = count(false, has_port) < count(true, has_port);
        let mut server = String::new();
        if let (true, Some(user)) = (has_user, &url.user) {
            let _ = write!(server, "{user}@");
        }
        if named.iter().any(|other| host(other) != host(url)) {
            server += &host(url);
        }
        if let (true, Some(port)) = (has_port, url.port) {
            let _ = write!(server, ":{port}");
        }
        add(&server);
        let mut paths = named.iter().map(|other| &*other.path).filter(|path| *path != url.path).peekable();
        if paths.peek().is_some() {
            // The file's name says it, if no other file has it.
            let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let is_own = paths.all(|path| file(path) != file(&url.path));
            add(&if is_own { file(&url.path) } else { url.path.clone() });
        }
    }
    for (option, value) in url.options.iter().filter(|(option, _)| differs(option) && !is_said(option)) {
        add(&format!("{option}={}", url.shown_option(option, value)));
    }
    name
}
