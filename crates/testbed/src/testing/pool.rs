//! Servers that tests use one after the other.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reset::{self, Reset, State};
use crate::{Server, StartOptions, TestbedError, server};

/// Idle servers of one kind. As many tests run at once as there are processors, and some use two servers.
const KEPT: usize = 2;
/// Idle servers with settings of their own, of all kinds: each is of use to few tests.
const KEPT_WITH_SETTINGS: usize = 3;
/// A server whose folder takes more bytes on disk is not used again: its next user would pay for the size.
const LARGEST: u64 = 512 << 20;

/// The servers that no test uses now, the one that was used last at the end.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// A server that one test uses. When the value is dropped, another test may get the server.
///
/// It is like a new server: its databases, users, settings and sessions are those of the start, which is checked before
/// it is handed out. A server that was stopped, killed, restarted, paused, restricted to processors or that ended
/// otherwise, whose user failed, or that cannot be made like a new one, is not used again. Tests that send signals to
/// its processes themselves use [`super::own_server`].
pub struct Lease {
    server: Arc<Server>,
    /// What its next user must find; `None`: there is none.
    reuse: Option<Reuse>,
}

impl Lease {
    /// Stops it and removes its folder, see [`Server::stop`].
    ///
    /// # Errors
    /// Like [`Server::stop`].
    pub fn stop(mut self) -> Result<(), TestbedError> {
        self.reuse = None;
        let server = self.server.clone();
        drop(self);
        Arc::into_inner(server).map_or(Ok(()), Server::stop)
    }
}

impl Deref for Lease {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(f)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(reuse) = self.reuse.take() else { return };
        // A failed test may have left the server in any state, and its own log is of interest.
        if std::thread::panicking() || self.server.was_changed() || self.server.died().is_some() {
            return;
        }
        let mut idle = idle();
        idle.push(Idle { server: self.server.clone(), reuse });
        // Stopped after the lock is released.
        let _too_many = too_many(&mut idle, |idle| &idle.reuse.kind);
        drop(idle);
    }
}

/// A server between two users.
struct Idle {
    server: Arc<Server>,
    reuse: Reuse,
}

/// How another test may use a server.
struct Reuse {
    kind: Kind,
    reset: &'static Reset,
    /// Its state at the start.
    first: State,
}

/// What equal servers share: the engine and all options.
#[derive(Clone, PartialEq, Eq)]
struct Kind {
    options: String,
    with_settings: bool,
}

fn idle() -> MutexGuard<'static, Vec<Idle>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes those that are kept for too few tests.
fn too_many<T>(idle: &mut Vec<T>, kind: impl Fn(&T) -> &Kind) -> Vec<T> {
    let mut of_kind: BTreeMap<String, usize> = BTreeMap::new();
    let mut with_settings = 0;
    // From the last one: those that were used last stay.
    let mut removed = Vec::new();
    for at in (0..idle.len()).rev() {
        let kind = kind(&idle[at]);
        let same = of_kind.entry(kind.options.clone()).or_default();
        *same += 1;
        with_settings += usize::from(kind.with_settings);
        if *same > KEPT || kind.with_settings && with_settings > KEPT_WITH_SETTINGS {
            removed.push(idle.remove(at));
        }
    }
    removed
}

/// Takes an idle server of this kind, or starts one. It never waits for another user.
pub(super) fn lease(engine: &str, options: &StartOptions) -> Result<Lease, TestbedError> {
    let Some((kind, reset)) = reusable(engine, options) else {
        return Ok(Lease { server: Arc::new(server::start(engine, options)?), reuse: None });
    };
    while let Some(Idle { server, reuse }) = take(&kind) {
        match renew(&server, &reuse) {
            Ok(()) => return Ok(Lease { server, reuse: Some(reuse) }),
            Err(why) => super::note(&format!("a {engine} is not used again: {why}")),
        }
    }
    let options = StartOptions { shared: true, ..options.clone() };
    let server = Arc::new(server::start(engine, &options)?);
    let first = state(&server, reset);
    let reuse = match first {
        Ok(first) => Some(Reuse { kind, reset, first }),
        Err(why) => {
            super::note(&format!("a new {engine} is used only once: {why}"));
            None
        }
    };
    Ok(Lease { server, reuse })
}

fn take(kind: &Kind) -> Option<Idle> {
    let mut idle = idle();
    let at = idle.iter().rposition(|idle| idle.reuse.kind == *kind)?;
    Some(idle.remove(at))
}

/// The kind of server with these options, and how it is reset; `None` if only one test can use it.
fn reusable(engine: &str, options: &StartOptions) -> Option<(Kind, &'static Reset)> {
    let reset = reset::of(engine)?;
    let StartOptions { base, programs, password, application, socket_only, tls, .. } = options;
    // Sessions for the reset have no password, and tests that choose a folder look at it.
    let only_one = programs.is_some()
        || password.is_some()
        || application.is_some()
        || *socket_only
        || base.as_deref() != super::memory();
    let spec = options.spec(engine);
    let own_host = spec.settings.iter().any(|(name, _)| name == crate::host::SETTING);
    if only_one || own_host || *tls && !reset.with_tls {
        return None;
    }
    let with_settings = *tls || !options.settings.is_empty();
    Some((Kind { options: serde_json::to_string(&spec).ok()?, with_settings }, reset))
}

/// Makes a used server like a new one, and checks that it is.
fn renew(server: &Server, reuse: &Reuse) -> Result<(), String> {
    if let Some(how) = server.died() {
        return Err(how);
    }
    let bytes = size(server.dir());
    if bytes > LARGEST {
        return Err(format!("it takes {} MB", bytes >> 20));
    }
    (reuse.reset.clean)(server, &reuse.first)?;
    let now = state(server, reuse.reset)?;
    if now == reuse.first {
        return Ok(());
    }
    let names = reuse.first.keys().chain(now.keys());
    let different: Vec<String> = names
        .filter(|name| reuse.first.get(*name) != now.get(*name))
        .map(|name| format!("{name}: {:?} was {:?}", now.get(name), reuse.first.get(name)))
        .collect();
    Err(different.join("; "))
}

/// What tests can change in a server, with what they can change of its process.
fn state(server: &Server, reset: &Reset) -> Result<State, String> {
    let mut state = (reset.state)(server)?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))
        .map_err(|error| format!("its process has no status: {error}"))?;
    for line in status.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        match name {
            "Cpus_allowed_list" => drop(state.insert(name.to_owned(), value.trim().to_owned())),
            "State" if value.trim().starts_with('T') => return Err("it is stopped".to_owned()),
            _ => {}
        }
    }
    Ok(state)
}

/// The bytes on disk of a folder; what is removed meanwhile counts nothing.
fn size(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_of(kinds: &[(&str, bool)]) -> Vec<Kind> {
        let kind = |(options, with_settings): &(&str, bool)| Kind {
            options: (*options).to_owned(),
            with_settings: *with_settings,
        };
        kinds.iter().map(kind).collect()
    }

    #[test]
    fn those_that_were_used_last_are_kept() {
        let mut kinds =
            idle_of(&[("a", false), ("x", true), ("a", false), ("y", true), ("a", false), ("z", true)]);
        let removed = too_many(&mut kinds, |kind| kind);
        assert_eq!(removed.len(), 1);
        assert!(removed[0].options == "a" && kinds[0].options == "x");
        kinds.extend(idle_of(&[("u", true)]));
        let removed = too_many(&mut kinds, |kind| kind);
        assert_eq!(removed.iter().map(|kind| &*kind.options).collect::<Vec<_>>(), ["x"]);
    }
}
