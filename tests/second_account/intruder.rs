//! What the intruder tries by itself: this test program, as its account, reads, writes, signals and connects.

use super::accounts::{Account, Accounts};
use kurabe_testbed::testing;
use rustix::process::{Pid, test_kill_process};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

/// `O_NONBLOCK` of Linux: a FIFO does not hold up who opens it.
const NONBLOCK: i32 = 0o4000;
/// How long a socket may be silent before its first byte, and after it.
const SILENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_millis(300)];
/// Attempts at the same time: most of them wait. No server takes fewer connections.
const AT_ONCE: usize = 64;

/// Where a process listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(String),
    Path(PathBuf),
    /// A Unix socket without a file.
    Abstract(Vec<u8>),
}

/// One thing to try.
#[derive(Debug, Clone)]
pub(super) enum Attempt {
    /// Sends bytes to a socket, and receives its answer.
    Talk(Address, Vec<u8>),
    /// Reads a file.
    Read(PathBuf),
    /// Finds files below a folder that can be read or written, and sockets that can be connected to.
    Walk(PathBuf),
    /// Lists a folder.
    List(PathBuf),
    /// Sends a signal.
    Signal(u32),
}

/// Tries all of it as this account; `None` is what the system or the other side refused.
pub(super) fn tries(account: &Account, attempts: &[Attempt]) -> Vec<Option<Vec<u8>>> {
    // The link leads to the program's file even if its folder may not be entered.
    let mut command = account.command("/proc/self/exe");
    let itself = "second_account::intruder::another_account_reads_what_is_for_all_and_nothing_else";
    testing::rerun(&mut command, itself, "");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines: String = attempts.iter().map(|attempt| attempt.to_line() + "\n").collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut answers = vec![None; attempts.len()];
    let mut known = 0;
    for line in text.lines().filter_map(|line| line.split_once('=').map(|(_, rest)| rest)) {
        let mut words = line.split(' ');
        let (Some(number), Some(how), what) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        known += 1;
        answers[number] = (how == "yes").then(|| from_hex(what.unwrap_or_default()));
    }
    assert!(output.status.success() && known == attempts.len(), "{known} of {}: {text}", attempts.len());
    answers
}

#[test]
fn another_account_reads_what_is_for_all_and_nothing_else() {
    if testing::rerun_input().is_some() {
        return answer_attempts();
    }
    let Some(accounts) = Accounts::get() else { return };
    let folder = accounts.room().join("attempts");
    Account::root().folder(&folder);
    let read = |name: &str, mode: u32| {
        let file = folder.join(name);
        fs::write(&file, "text").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        Attempt::Read(file)
    };
    let answers = tries(&accounts.intruder, &[read("public", 0o644), read("private", 0o600)]);
    assert_eq!(answers, [Some(b"text".to_vec()), None]);
}

/// Makes the attempts that are named on standard input, and prints what each gave.
fn answer_attempts() {
    let lines: Vec<String> = std::io::stdin().lock().lines().map(Result::unwrap).collect();
    let next = Mutex::new(lines.iter().enumerate());
    let work = || {
        loop {
            let taken = next.lock().unwrap().next();
            let Some((number, line)) = taken else { return };
            let answer = match Attempt::from_line(line).make() {
                Some(answer) => format!("\n={number} yes {}\n", hex(&answer)),
                None => format!("\n={number} no\n"),
            };
            std::io::stdout().lock().write_all(answer.as_bytes()).unwrap();
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE.min(lines.len())).for_each(|_| drop(scope.spawn(work))));
}

impl Attempt {
    fn to_line(&self) -> String {
        let path = |path: &Path| hex(path.as_os_str().as_bytes());
        match self {
            Self::Talk(Address::Tcp(address), bytes) => {
                format!("tcp {} {}", hex(address.as_bytes()), hex(bytes))
            }
            Self::Talk(Address::Path(at), bytes) => format!("path {} {}", path(at), hex(bytes)),
            Self::Talk(Address::Abstract(name), bytes) => format!("abstract {} {}", hex(name), hex(bytes)),
            Self::Read(file) => format!("read {}", path(file)),
            Self::Walk(folder) => format!("walk {}", path(folder)),
            Self::List(folder) => format!("list {}", path(folder)),
            Self::Signal(pid) => format!("signal {}", hex(pid.to_string().as_bytes())),
        }
    }

    fn from_line(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let first = from_hex(words[1]);
        let bytes = || from_hex(words[2]);
        let path = || PathBuf::from(std::ffi::OsString::from_vec(first.clone()));
        let text = || String::from_utf8(first.clone()).unwrap();
        match words[0] {
            "tcp" => Self::Talk(Address::Tcp(text()), bytes()),
            "path" => Self::Talk(Address::Path(path()), bytes()),
            "abstract" => Self::Talk(Address::Abstract(first), bytes()),
            "read" => Self::Read(path()),
            "walk" => Self::Walk(path()),
            "list" => Self::List(path()),
            "signal" => Self::Signal(text().parse().unwrap()),
            other => panic!("{other}"),
        }
    }

    fn make(&self) -> Option<Vec<u8>> {
        match self {
            Self::Talk(Address::Tcp(address), bytes) => {
                let stream = TcpStream::connect(address).ok()?;
                talk(&stream, &stream, bytes, |limit| stream.set_read_timeout(Some(limit)))
            }
            Self::Talk(Address::Path(path), bytes) => on_unix(&UnixStream::connect(path).ok()?, bytes),
            Self::Talk(Address::Abstract(name), bytes) => {
                let address = SocketAddr::from_abstract_name(name).unwrap();
                on_unix(&UnixStream::connect_addr(&address).ok()?, bytes)
            }
            Self::Read(path) => {
                let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path).ok()?;
                let mut content = Vec::new();
                file.take(1 << 16).read_to_end(&mut content).ok()?;
                Some(content)
            }
            Self::List(path) => fs::read_dir(path).ok().map(|entries| {
                let names = entries.flatten().map(|entry| entry.file_name().into_encoded_bytes());
                names.collect::<Vec<_>>().join(&b' ')
            }),
            Self::Walk(path) => {
                let mut found = String::new();
                walk(path, &mut found);
                Some(found.into_bytes())
            }
            Self::Signal(pid) => {
                let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
                test_kill_process(pid).ok().map(|()| Vec::new())
            }
        }
    }
}

fn on_unix(stream: &UnixStream, bytes: &[u8]) -> Option<Vec<u8>> {
    talk(stream, stream, bytes, |limit| stream.set_read_timeout(Some(limit)))
}

/// The answer until the other side closes the connection or says nothing more.
fn talk(
    mut to: impl Write,
    mut from: impl Read,
    bytes: &[u8],
    limit: impl Fn(Duration) -> std::io::Result<()>,
) -> Option<Vec<u8>> {
    let _ = to.write_all(bytes);
    let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
    while answer.len() < 1 << 16 {
        limit(SILENCE[usize::from(!answer.is_empty())]).ok()?;
        match from.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
        }
    }
    Some(answer)
}

/// Adds a line for each thing that can be done to what is there.
fn walk(path: &Path, found: &mut String) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let kind = meta.file_type();
    let mut add = |what: &str| {
        let _ = writeln!(found, "{what} {}", path.display());
    };
    if kind.is_symlink() {
        return;
    }
    if kind.is_socket() {
        if UnixStream::connect(path).is_ok() {
            add("connects to");
        }
    } else if kind.is_dir() {
        let mine = path.join(format!("intruder-{}", std::process::id()));
        if File::create_new(&mine).is_ok() {
            let _ = fs::remove_file(&mine);
            add("makes files in");
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            walk(&entry.path(), found);
        }
    } else {
        if OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path).is_ok() {
            add("reads");
        }
        if OpenOptions::new().append(true).custom_flags(NONBLOCK).open(path).is_ok() {
            add("writes");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}
