//! What root sees of a running command: its processes, their sockets, and all command lines that there were.

use super::intruder::Address;
use kurabe_os::process::descendants;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A socket that accepts connections.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    /// The name of its process.
    pub program: String,
    pub address: Address,
}

/// A process and all below it.
pub(super) fn tree(first: u32) -> Vec<u32> {
    [vec![first], descendants(first)].concat()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of a process's program.
pub(super) fn name(pid: u32) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let link = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A program that its own loader runs has the loader's name.
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    let loaded = arguments.split('\0').nth(3).filter(|_| link.starts_with("ld-linux"));
    match loaded.and_then(|path| Path::new(path).file_name()) {
        Some(loaded) => loaded.to_string_lossy().into_owned(),
        None => name.trim().to_owned(),
    }
}

/// The user and the group of a process.
pub(super) fn account(pid: u32) -> Option<(u32, u32)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let effective = |label| {
        status.lines().find_map(|line| line.strip_prefix(label))?.split_whitespace().nth(1)?.parse().ok()
    };
    Some((effective("Uid:")?, effective("Gid:")?))
}

/// The folder in which a process works.
pub(super) fn folder(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The sockets of these processes that accept connections, each once.
pub(super) fn listeners(pids: &[u32]) -> Vec<Listener> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for pid in pids {
        let held: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter_map(|link| {
                let link = link.to_string_lossy().into_owned();
                Some(link.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
            })
            .collect();
        let read = |table: &str| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        let tcp = ["tcp", "tcp6"].map(read).concat();
        let unix = read("unix");
        let all = tcp.lines().filter_map(of_tcp).chain(unix.lines().filter_map(of_unix));
        for (inode, address) in all.filter(|(inode, _)| held.contains(inode)) {
            if seen.insert(inode) {
                found.push(Listener { program: name(*pid), address });
            }
        }
    }
    found
}

/// A line of `/proc/net/tcp`: `0: 0100007F:1F90 00000000:0000 0A …`, whose addresses are in the machine's byte order.
fn of_tcp(line: &str) -> Option<(String, Address)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    // 0A: LISTEN.
    if *fields.get(3)? != "0A" {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_le_bytes);
    let address = if address.len() == 8 {
        let ip = Ipv4Addr::from(word(0)?);
        format!("{}:{port}", if ip.is_unspecified() { Ipv4Addr::LOCALHOST } else { ip })
    } else {
        let bytes: Vec<u8> = [0, 8, 16, 24].into_iter().filter_map(word).flatten().collect();
        let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
        format!("[{}]:{port}", if ip.is_unspecified() { Ipv6Addr::LOCALHOST } else { ip })
    };
    Some(((*fields.get(9)?).to_owned(), Address::Tcp(address)))
}

/// A line of `/proc/net/unix`: `… RefCount Protocol Flags Type State Inode Path`.
fn of_unix(line: &str) -> Option<(String, Address)> {
    let mut fields = line.split_whitespace().skip(3);
    let flags = u32::from_str_radix(fields.next()?, 16).ok()?;
    // `__SO_ACCEPTCON`.
    if flags & 0x1_0000 == 0 {
        return None;
    }
    let inode = fields.nth(2)?.to_owned();
    let path = fields.next()?;
    let address = match path.strip_prefix('@') {
        Some(name) => Address::Abstract(name.as_bytes().to_vec()),
        None => Address::Path(path.into()),
    };
    Some((inode, address))
}

/// Shared memory that processes made and that more accounts than their own may use.
pub(super) fn open_memory(pids: &[u32]) -> Vec<String> {
    // `key shmid perms size cpid …`
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let open = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (permissions, maker) =
            (u32::from_str_radix(fields.get(2)?, 8).ok()?, fields.get(4)?.parse().ok()?);
        (pids.contains(&maker) && permissions & 0o077 != 0)
            .then(|| format!("attaches shared memory of {}", name(maker)))
    });
    open.collect()
}

/// Whether a text has a URL with a password.
pub(super) fn has_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| "/?# \"'\n\0".contains(c)).unwrap_or(rest.len());
        let login = rest[..end].rsplit_once('@').and_then(|(login, _)| login.split_once(':'));
        login.is_some_and(|(_, password)| !password.is_empty() && password.chars().any(|c| c != '*'))
    })
}

/// Watches the command lines of all processes, which every account may read.
pub(super) struct CommandLines {
    seen: Arc<Mutex<BTreeSet<Vec<u8>>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CommandLines {
    pub fn watch() -> Self {
        let (seen, ended) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicBool::new(false)));
        let (to, end) = (Arc::clone(&seen), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            let mut looks: BTreeMap<u32, u32> = BTreeMap::new();
            while !end.load(Ordering::Relaxed) {
                let there: BTreeSet<u32> = pids().collect();
                looks.retain(|pid, _| there.contains(pid));
                for pid in there {
                    let look = looks.entry(pid).or_default();
                    *look += 1;
                    // A process executes its last program soon after its start.
                    if *look < 40 || look.is_multiple_of(50) {
                        to.lock().unwrap().extend(fs::read(format!("/proc/{pid}/cmdline")).ok());
                    }
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { seen, ended, thread: Some(thread) }
    }

    /// The command lines that contain this text.
    pub fn with(&self, text: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let lines = seen.iter().map(|line| String::from_utf8_lossy(line).replace('\0', " "));
        lines.filter(|line| line.contains(text)).collect()
    }

    /// Passwords that another account reads in the arguments of programs below this folder, or in any that contain one of
    /// these secrets.
    pub fn passwords(&self, folder: &Path, secrets: &[&str]) -> Vec<String> {
        let of_urls = self.with(&folder.display().to_string()).into_iter().filter(|line| has_password(line));
        let known = secrets.iter().flat_map(|secret| self.with(secret));
        let all: BTreeSet<String> = of_urls.chain(known).collect();
        all.into_iter().map(|line| format!("reads a password in the arguments of: {line}")).collect()
    }
}

impl Drop for CommandLines {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
