//! Servers that tests, and the programs that they start, use one after the other.
//!
//! A pool listens at a Unix socket of an abstract name. Each connection is a lease: the user sends the options, and then
//! the requests that a supervisor takes. The lease ends with the connection, however the user ends.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::net::sockopt::socket_peercred;

use super::reset;
use super::reset::common::{Reset, State};
use super::small::memory;
use crate::spec::Spec;
use crate::supervisor::{Report, Request};
use crate::{Server, StartOptions, TestbedError, affinity, server};

/// Idle servers of one kind. One more test than processors runs at once, and most runs of a program use two servers, some
/// a second time as a remote.
const KEPT: usize = 6;
/// Idle servers with settings of their own, of all kinds: each is of use to few tests.
const KEPT_WITH_SETTINGS: usize = 18;
/// A server whose folder takes more bytes on disk is not used again: its next user would pay for the size.
const LARGEST: u64 = 512 << 20;

/// The servers that no test uses now, the one that was used last at the end.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// A server between two users.
struct Idle {
    server: Server,
    reuse: Reuse,
}

/// A server with a user.
struct Lease {
    server: Server,
    /// What its next user must find; `None`: there is none.
    reuse: Option<Reuse>,
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

/// The parent of the folders of servers in a pool.
fn base() -> PathBuf {
    memory().map_or_else(|| crate::folder::base(&StartOptions::new("").spec("")), Path::to_owned)
}

/// Prints on the real standard error how the servers of tests are used, for those who look for the reason of a start.
fn note(what: &str) {
    if std::env::var_os(crate::supervisor::COUNT).is_some() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = std::io::stderr().write_all(format!("{test}: {what}\n").as_bytes());
    }
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

/// Connects to a pool of this user's. An abstract name has no permissions: everybody may connect to it, and take it first.
pub(super) fn connect(name: &str) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    if is_own(&stream) { Ok(stream) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Whether a process of this user is at the other end.
fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    socket_peercred(stream).is_ok_and(|peer| peer.uid.as_raw() == own)
}

/// Listens as a pool, in a thread. The supervisors of its servers are this program.
pub(super) fn listen(name: &str, supervisor_program: PathBuf) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    let serve_all = move || {
        for stream in listener.incoming().flatten().filter(is_own) {
            let program = supervisor_program.clone();
            // Without a thread the connection is closed, and its user reports that.
            let _ = thread::Builder::new().name("lease".to_owned()).spawn(move || serve(stream, &program));
        }
    };
    thread::Builder::new().name("pool".to_owned()).spawn(serve_all).map(drop)
}

/// Serves one lease.
fn serve(stream: UnixStream, supervisor_program: &Path) {
    let Ok(input) = stream.try_clone() else { return };
    let out = Arc::new(Mutex::new(stream));
    let mut lines = BufReader::new(input).lines().map_while(Result::ok);
    let Some(spec) = lines.next().and_then(|line| serde_json::from_str::<Spec>(&line).ok()) else { return };
    let mut lease = match lease(&spec, supervisor_program) {
        Ok(Some(lease)) => lease,
        Ok(None) => return report(&out, &Report::Done),
        Err(error) => return report(&out, &Report::Failed(error)),
    };
    let news = out.clone();
    lease.server.when_it_dies(Some(Box::new(move |how| report(&news, &Report::Died(how.to_owned())))));
    report(&out, &Report::Ready(lease.server.facts()));
    // As long as nobody watched it.
    if let Some(how) = lease.server.died() {
        report(&out, &Report::Died(how));
    }
    let mut runs = true;
    for request in lines.map_while(|line| serde_json::from_str(&line).ok()) {
        if request == Request::Discard {
            lease.reuse = None;
            report(&out, &Report::Done);
            continue;
        }
        if request == Request::Keep {
            // It would bring the data of this user back.
            lease.reuse = None;
        }
        let done = lease.server.request(request);
        runs = matches!(request, Request::Restart | Request::Resume | Request::Keep) && done.is_ok();
        report(&out, &done.unwrap_or_else(Report::Failed));
    }
    lease.server.when_it_dies(None);
    if runs {
        lease.end();
    }
}

/// Sends a message to the user; ignores errors if it has ended.
fn report(out: &Mutex<UnixStream>, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

impl Lease {
    /// Keeps the server for its next user, if there can be one.
    fn end(self) {
        let Self { server, reuse: Some(reuse) } = self else { return };
        if server.died().is_some() {
            return;
        }
        let mut idle = idle();
        idle.push(Idle { server, reuse });
        // Stopped after the lock is released.
        let too_many = too_many(&mut idle, |idle| &idle.reuse.kind);
        drop(idle);
        for Idle { reuse, .. } in too_many {
            note(&format!("an idle server is one too many: {}", reuse.kind.options));
        }
    }
}

/// Takes an idle server of this kind, or starts one. It never waits for another user. `None` if only one user can have
/// such a server.
fn lease(spec: &Spec, supervisor_program: &Path) -> Result<Option<Lease>, TestbedError> {
    let Some((kind, reset)) = reusable(spec) else { return Ok(None) };
    let engine = &spec.engine;
    while let Some(Idle { server, reuse }) = take(&kind) {
        match renew(&server, &reuse) {
            Ok(()) => return Ok(Some(Lease { server, reuse: Some(reuse) })),
            Err(why) => note(&format!("a {engine} is not used again: {why}")),
        }
    }
    let spec = Spec { shared: true, ..spec.clone() };
    let server = server::start_own(supervisor_program, None, &spec)?;
    let first = state(&server, reset);
    let reuse = match first {
        Ok(first) => Some(Reuse { kind, reset, first }),
        Err(why) => {
            note(&format!("a new {engine} is used only once: {why}"));
            None
        }
    };
    Ok(Some(Lease { server, reuse }))
}

fn take(kind: &Kind) -> Option<Idle> {
    let mut idle = idle();
    let at = idle.iter().rposition(|idle| idle.reuse.kind == *kind)?;
    Some(idle.remove(at))
}

/// The kind of server with these options, and how it is reset; `None` if only one user can have it.
fn reusable(spec: &Spec) -> Option<(Kind, &'static Reset)> {
    let reset = reset::of(&spec.engine)?;
    let Spec { password, application, socket_only, tls, base, .. } = spec;
    // Few tests choose a password, and who chooses a folder looks at it.
    let only_one = password.is_some()
        || application.is_some()
        || *socket_only
        || base.as_ref() != Some(&self::base())
        || spec.settings.iter().any(|(name, _)| name == crate::host::SETTING);
    if only_one || *tls && !reset.with_tls {
        return None;
    }
    let small = StartOptions { small_files: spec.small_files, ..StartOptions::new("") };
    let with_settings = *tls || spec.settings != small.spec(&spec.engine).settings;
    // Not the order of different ones.
    let mut kind = spec.clone();
    kind.settings.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some((Kind { options: serde_json::to_string(&kind).ok()?, with_settings }, reset))
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
    if let Some(cpus) = affinity::own() {
        affinity::restrict(server.pid(), &cpus, false).map_err(|error| error.to_string())?;
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
        // One more than is kept of a kind, with others between, the oldest first.
        let plain = (0..=KEPT).flat_map(|_| [("a", false), ("b", false)]).collect::<Vec<_>>();
        let mut kinds = idle_of(&plain[..=2 * KEPT]);
        let removed = too_many(&mut kinds, |kind| kind);
        assert_eq!(removed.iter().map(|kind| &*kind.options).collect::<Vec<_>>(), ["a"]);
        assert_eq!(&*kinds[0].options, "b", "the newest are kept");
        // With settings of their own, all kinds count together.
        let names: Vec<String> = (0..=KEPT_WITH_SETTINGS).map(|n| format!("x{n}")).collect();
        let own: Vec<(&str, bool)> = names.iter().map(|name| (&**name, true)).collect();
        kinds.extend(idle_of(&own));
        let removed = too_many(&mut kinds, |kind| kind);
        assert_eq!(removed.iter().map(|kind| &*kind.options).collect::<Vec<_>>(), ["x0"]);
    }
}
