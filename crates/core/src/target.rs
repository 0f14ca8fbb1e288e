//! Targets: a database and the way to reach it, named by a URL.
//!
//! `scheme://[user[:password]@][host][:port][/path][?option=value&…]`, or `scheme:[path][?options]` without a host
//! (`sqlite:sessions.db`, `null:`, `up:postgres`). IPv6 hosts are in brackets. Percent escapes are decoded.

use crate::error::{Error, Result};
use crate::secret::{Secret, is_secret_name};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fmt::Write as _;

mod foreign;

const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#').add(b'&').add(b'@');
/// The characters that end a password, or a host after it, too.
const IN_PASSWORD: &AsciiSet = &ESCAPED.add(b'/').add(b':');

/// A parsed target URL. It is displayed without its password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetUrl {
    /// The scheme in lower case, which selects the driver.
    pub scheme: String,
    /// The user, if given.
    pub user: Option<String>,
    /// The password, if given. An empty one (`user:@host`) means no password, even if one could be found elsewhere.
    pub password: Option<Secret>,
    /// The host, without brackets.
    pub host: Option<String>,
    pub port: Option<u16>,
    /// What follows the host, without the first `/`; or everything after `scheme:` if there is no host.
    pub path: String,
    /// The options after `?`, sorted by name, without the password and those below.
    pub options: BTreeMap<String, String>,
    /// Whether nothing of the environment fills what the URL leaves open (`environment=ignore`): no variable, no option
    /// file, no password file. So it is with throwaway servers.
    pub ignores_environment: bool,
}

/// The option by which a URL ignores the environment, with its only value.
const ENVIRONMENT: (&str, &str) = ("environment", "ignore");

/// The option that is a URL's password, where the URL has none before the host.
const PASSWORD: &str = "password";

/// The scheme of throwaway servers: `up:postgres`.
pub const UP: &str = "up";

/// The scheme of application stacks: `stack:php/mysqli`.
pub const STACK: &str = "stack";

/// The option of an `up:` URL with the folder of the server's programs: another version, or another build.
pub const PROGRAMS: &str = "programs";

/// The option of an `up:` URL with the version that these programs must have.
pub const VERSION: &str = "version";
/// The option of an `up:` URL with a file of SQL that a throwaway server is loaded with.
pub const SETUP: &str = "setup";

/// A word that there is not, in quotes, if a message may repeat it; otherwise nothing, since it may be part of a password.
pub fn quoted_word(word: &str) -> String {
    if foreign::is_word(word) { format!(" '{word}'") } else { String::new() }
}

/// Whether a URL names a throwaway server, which Kurabe starts, restarts and removes.
pub fn is_throwaway(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(UP))
}

impl TargetUrl {
    /// Parses a target URL.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) with the invalid part. The text is not repeated, since it may contain a
    /// password.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(error) = foreign::refused(text) {
            return Err(error);
        }
        let (scheme, rest) = text.split_once(':').ok_or_else(|| foreign::no_url(text))?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+') {
            return Err(foreign::no_url(""));
        }
        refuse_ambiguous(&scheme, rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self { scheme, options: parse_options(query)?, ..Self::default() };
        if let Some(value) = url.options.remove(ENVIRONMENT.0) {
            if value != ENVIRONMENT.1 {
                let (name, only) = ENVIRONMENT;
                return Err(url.wrong(format!("{name}= has one value")).hint(format!("write {name}={only}")));
            }
            url.ignores_environment = true;
        }
        let Some(rest) = rest.strip_prefix("//") else {
            url.path = decode(rest)?;
            url.split_programs();
            return Ok(url);
        };
        // libpq takes it there too. Behind an unescaped `&` in it, the rest would be an option, and shown.
        url.password = url.options.remove(PASSWORD).map(Secret::new);
        if url.password.is_some() && url.options.values().any(String::is_empty) {
            let what = "an option without a value stands beside password=";
            return Err(url.wrong(what).hint("in a password, write '&' as %26"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        url.path = decode(path)?;
        // The last '@' ends the user part, so that an unescaped '@' in a password does not start the host.
        let host = match authority.rsplit_once('@') {
            None => authority,
            Some((who, host)) => {
                let (user, password) = match who.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (who, None),
                };
                url.user = Some(decode(user)?).filter(|user| !user.is_empty());
                if let Some(password) = password {
                    url.password = Some(Secret::new(decode(password)?));
                }
                host
            }
        };
        url.set_host(host)?;
        Ok(url)
    }

    /// Makes `up:ENGINE?programs=/FOLDER&version=VERSION` of `up:ENGINE@VERSION:/FOLDER`. The version may be missing.
    fn split_programs(&mut self) {
        if self.scheme != UP {
            return;
        }
        // What follows two slashes is no folder but the host of a URL, which may contain a password.
        let folder_of = |path: &&str| !path.starts_with('/');
        let Some((server, folder)) = self.path.split_once(":/").filter(|(_, path)| folder_of(path)) else {
            return;
        };
        let folder = format!("/{folder}");
        let (engine, version) = match server.split_once('@') {
            Some((engine, version)) => (engine.to_owned(), Some(version.to_owned())),
            None => (server.to_owned(), None),
        };
        self.options.insert(PROGRAMS.to_owned(), folder);
        self.options.extend(version.map(|version| (VERSION.to_owned(), version)));
        self.path = engine;
    }

    fn set_host(&mut self, text: &str) -> Result<()> {
        let bad = |what: &str| Error::usage(format!("target {}: {what}", self.scheme.clone() + "://…"));
        // Several hosts with ports are one text that the driver parses.
        let (host, port) = if text.contains(',') {
            (text, None)
        } else if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or_else(|| bad("'[' without ']' in the host"))?;
            if !after.is_empty() && !after.starts_with(':') {
                return Err(bad("only a port may follow ']' in the host"));
            }
            (host, after.strip_prefix(':'))
        } else {
            match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        if let Some(port) = port.filter(|port| !port.is_empty()) {
            let port = port.parse().map_err(|_| {
                bad("the port is not a number from 1 to 65535").hint(
                    "if the text after ':' is part of a password, write '/' in it as %2F, and '?' as %3F",
                )
            })?;
            self.port = Some(port).filter(|port| *port != 0);
        }
        let host = decode(host)?;
        if !host.contains(',') && host.contains(['[', ']']) {
            return Err(bad("brackets in a host enclose an IPv6 address"));
        }
        self.host = Some(host).filter(|host| !host.is_empty());
        Ok(())
    }

    /// An error about this URL.
    pub fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::usage(format!("{}: {what}", self.scheme))
    }

    /// The meaning of an option's value; the first choice if the option is not given.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) for any other value.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T> {
        let given = self.option(name);
        let chosen = choices.iter().find(|(value, _)| given.is_none_or(|given| given == *value));
        chosen.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let values: Vec<&str> = choices.iter().map(|(value, _)| *value).collect();
            self.wrong(format!("{name}={} is unknown", given.unwrap_or_default()))
                .hint(format!("one of: {}", values.join(", ")))
        })
    }

    /// An option's value.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Rejects options that are not in `known`, and suggests the nearest one.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) with the existing options.
    pub fn check_options(&self, known: &[&str]) -> Result<()> {
        match self.options.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(self.no_option(name, known)),
            None => Ok(()),
        }
    }

    /// The error of an option that there is not. Its name is shown only if it is like one that there is, or a word that all
    /// know: after an unescaped `&` it may be the end of a password.
    pub fn no_option(&self, name: &str, known: &[&str]) -> Error {
        let has_value = self.option(name).is_some_and(|value| !value.is_empty());
        let is_like_one = crate::units::nearest(name, known).is_some()
            || foreign::is_option(name)
            || has_value && foreign::is_word(name);
        let what = if is_like_one {
            format!("has no option '{name}'")
        } else {
            let at = self.options.keys().position(|other| other == name).unwrap_or_default();
            format!("has no such option (number {} of {} by name)", at + 1, self.options.len())
        };
        self.wrong(what).hint(crate::units::suggestion(name, known, "known"))
    }

    /// The value of an option as it is displayed: `***`, if it is a secret.
    pub fn shown_option<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if is_secret_name(name) {
            return "***".into();
        }
        // The database of a stack is a URL itself.
        match Self::parse(value) {
            Ok(url) if url.password.is_some() || url.options.keys().any(|name| is_secret_name(name)) => {
                url.to_string().into()
            }
            Err(_) if value.contains('@') && value.contains(':') => "***".into(),
            _ => value.into(),
        }
    }
}

/// The URL without its password. An empty password is shown, since it is no secret.
impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(self.password.as_ref().map(Secret::expose).filter(|password| password.is_empty()), f)
    }
}

impl TargetUrl {
    /// The URL with its password: for the user who starts a throwaway server, and for programs that get it by a pipe. It must be
    /// neither recorded nor an argument.
    pub fn exposed(&self) -> String {
        struct Exposed<'a>(&'a TargetUrl);
        impl fmt::Display for Exposed<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(self.0.password.as_ref().map(Secret::expose), f)
            }
        }
        Exposed(self).to_string()
    }

    fn write(&self, password: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        // What is at a socket has no host, and is a server all the same: its path is no file.
        let at_socket = self.option("socket").is_some() && !self.path.is_empty();
        let has_host = self.host.is_some() || self.user.is_some() || self.port.is_some();
        if has_host || password.is_some() || at_socket {
            f.write_str("//")?;
            if self.user.is_some() || password.is_some() {
                let user = self.user.as_deref().unwrap_or_default();
                write!(f, "{}", utf8_percent_encode(user, ESCAPED))?;
                if let Some(password) = password {
                    write!(f, ":{}", utf8_percent_encode(password, IN_PASSWORD))?;
                }
                f.write_str("@")?;
            }
            match &self.host {
                Some(host) if host.contains(':') && !host.contains(',') => write!(f, "[{host}]")?,
                // A Unix socket's path as host contains the character that would end the host.
                Some(host) => f.write_str(&host.replace('/', "%2F"))?,
                None => {}
            }
            if let Some(port) = self.port {
                write!(f, ":{port}")?;
            }
            if !self.path.is_empty() {
                f.write_str("/")?;
            }
        }
        write!(f, "{}", utf8_percent_encode(&self.path, ESCAPED))?;
        let mut sign = '?';
        let has_secret = self.options.keys().any(|name| is_secret_name(name));
        for (name, value) in &self.options {
            // Behind a password with an unescaped `&`, its rest is an option without a value.
            let name = if has_secret && value.is_empty() { "***" } else { name };
            let value = self.shown_option(name, value);
            write!(
                f,
                "{sign}{}={}",
                utf8_percent_encode(name, ESCAPED),
                utf8_percent_encode(&value, ESCAPED)
            )?;
            sign = '&';
        }
        if self.ignores_environment {
            write!(f, "{sign}{}={}", ENVIRONMENT.0, ENVIRONMENT.1)?;
        }
        Ok(())
    }
}

fn parse_options(query: &str) -> Result<BTreeMap<String, String>> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn decode(text: &str) -> Result<String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| Error::usage("the target's percent escapes are not UTF-8"))
}

/// Refuses a URL whose user part may contain an unescaped `/` or `?`. Such a character ends the host, so that the rest of
/// a password would be read, and displayed, as path or option. So it is with a user and a password behind one slash, behind
/// three, or behind none.
fn refuse_ambiguous(scheme: &str, rest: &str) -> Result<()> {
    let begins_host = rest.strip_prefix("//");
    let (authority, after) = match begins_host {
        Some(rest) => rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let path = after.split('?').next().unwrap_or_default();
    let names_user = path.split_once(':').is_some_and(|(_, after)| after.contains('@'));
    if names_user && scheme == UP {
        return Err(Error::usage("up: takes the name of an engine, and no URL")
            .hint("write up:postgres, or the URL alone"));
    }
    if names_user && authority.is_empty() {
        return Err(Error::usage(format!("a target of '{scheme}:' names its user after '//'"))
            .hint(format!("write {scheme}://user@host; a ':' in a path is %3A, and a '@' is %40")));
    }
    // Without a password there is nothing to hide: `postgres://host/db?user=me@here`. What precedes a path with '@' may be one.
    let is_in_path = begins_host.is_some() && path.contains('@') && !["http", "https"].contains(&scheme);
    if !is_in_path && (!after.contains('@') || !authority.contains([':', '@'])) {
        return Ok(());
    }
    Err(Error::usage(format!("target {scheme}://…: '@' follows the '/' or '?' that ends the host")).hint(
        "special characters are percent-encoded, in a user or password '/' as %2F, '?' as %3F, '#' as %23, '@' as %40, \
         ':' as %3A, '%' as %25; in a path or option '@' as %40",
    ))
}

/// The name of an option or of a form with its sign, and the target behind it: `--setup=copy:URL`.
fn target_in(word: &str) -> (&str, &str) {
    let text = match word.split_once('=') {
        Some((option, text)) if option.starts_with("--") => text,
        _ => word,
    };
    let text = text.strip_prefix("copy:").unwrap_or(text);
    word.split_at(word.len() - text.len())
}

/// What of a word of the command line may be displayed: without its password, if it is a target; `…`, if it may contain
/// one and cannot be read.
fn shown_word(word: &str) -> Cow<'_, str> {
    let (before, text) = target_in(word);
    match TargetUrl::parse(text) {
        Ok(url) if url.password.is_some() || url.options.keys().any(|name| is_secret_name(name)) => {
            format!("{before}{url}").into()
        }
        Err(_) if foreign::may_hold_secret(text) => format!("{before}…").into(),
        _ => word.into(),
    }
}

/// Removes the passwords in targets from command-line arguments, and those arguments that cannot be read and may contain
/// one.
pub fn without_passwords(words: impl Iterator<Item = String>) -> Vec<String> {
    words.map(|word| shown_word(&word).into_owned()).collect()
}

/// A text without the secrets in these words, which it may repeat.
pub fn without_words(text: &str, words: &[String]) -> String {
    let mut out = text.to_owned();
    for word in words {
        let shown = shown_word(word);
        if shown == *word {
            continue;
        }
        let ((_, target), (_, shown)) = (target_in(word), target_in(&shown));
        for form in [target, &crate::text::printable(target)].into_iter().filter(|form| !form.is_empty()) {
            out = out.replace(form, shown);
        }
    }
    out
}

#[cfg(test)]
mod tests;

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
