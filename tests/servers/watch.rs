//! Searches for a password: in texts, in files, and in the processes below a running one.

use kurabe_os::process::descendants;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Larger files, in bytes, are not searched.
const LARGEST: u64 = 1 << 20;

/// A password in every encoding in which it could appear.
pub(super) struct Needles(Vec<String>);

impl Needles {
    pub(super) fn of(passwords: &[&str]) -> Self {
        let mut forms = Vec::new();
        for password in passwords {
            forms.push((*password).to_owned());
            let encoded = |keep: &str, lower: bool| -> String {
                let one = |letter: char| match letter {
                    c if c.is_ascii_alphanumeric() || keep.contains(c) => c.to_string(),
                    c if lower => format!("%{:02x}", c as u32),
                    c => format!("%{:02X}", c as u32),
                };
                password.chars().map(one).collect()
            };
            for keep in ["-", ""] {
                forms.extend([encoded(keep, false), encoded(keep, true)]);
            }
            // In base64 of a longer text (`user:password`) it may begin at any of three offsets; the characters that
            // its neighbours affect are removed.
            for before in 0..3 {
                let mut bytes = vec![0; before];
                bytes.extend(password.bytes());
                let whole = bytes.len() / 3 * 4;
                let start = [0, 2, 3][before];
                forms.push(base64(&bytes)[start..whole].to_owned());
            }
        }
        Self(forms)
    }

    /// The encoding in which the text contains a password, if it does.
    pub(super) fn found(&self, text: &str) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|form| text.contains(form))
    }

    pub(super) fn assert_absent(&self, what: &str, text: &str) {
        if let Some(form) = self.found(text) {
            panic!("{what} contains a password, as '{form}': {text}");
        }
    }

    /// Checks that no file below the directory contains one, in its name or its content.
    pub(super) fn assert_absent_below(&self, folder: &Path) {
        let mut all = files(folder);
        let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
        self.assert_absent("a name of a file", &names.join("\n"));
        // Data files of a server are large and not the tool's.
        all.retain(|path| path.metadata().is_ok_and(|file| file.len() <= LARGEST));
        // As a build without optimisation searches them, megabytes take seconds.
        for some in all.chunks(500) {
            let mut grep = Command::new("grep");
            grep.args(["--text", "--fixed-strings", "--no-messages", "--with-filename"]).env("LC_ALL", "C");
            grep.args(self.0.iter().flat_map(|form| ["-e", form])).arg("--").args(some);
            let found = grep.output().unwrap();
            assert!(found.stdout.is_empty(), "a password is in {}", String::from_utf8_lossy(&found.stdout));
        }
    }
}

/// RFC 4648, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
            << (8 * (3 - group.len()));
        text.extend((0..=group.len()).map(|n| LETTERS[bits >> (18 - 6 * n) & 63] as char));
    }
    text
}

/// Every readable file below a directory: running processes remove some meanwhile.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => all.push(entry.path()),
            _ => {}
        }
    }
    all
}

/// What was found so far in the processes below a running one.
#[derive(Default)]
pub(super) struct Seen {
    /// The programs, by the name that `ps` shows.
    pub(super) programs: BTreeSet<String>,
}

impl Seen {
    /// Inspects every process below the child once: its arguments and its environment; and the child's arguments,
    /// unless they contain the password by design.
    pub(super) fn look(&mut self, child: &Child, itself: bool, needles: &Needles) {
        let read = |pid: u32, file: &str| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let own = read(child.id(), "cmdline");
        if itself {
            needles.assert_absent("the program's command line", &own);
        }
        for pid in descendants(child.id()) {
            let line = read(pid, "cmdline");
            // Between fork and exec a process is a copy of the program with the password in its arguments. These are
            // read first, so that the next reading belongs to the new program.
            if line == own {
                continue;
            }
            let name = read(pid, "comm").trim_end().to_owned();
            needles.assert_absent(&format!("the command line of {name}"), &line);
            needles.assert_absent(&format!("the environment of {name} ({line})"), &read(pid, "environ"));
            self.programs.insert(name);
        }
    }
}

#[test]
#[should_panic = "b.bin:\0 xyzzy%2dPlugh%3a17"]
fn password_is_found_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "nothing").unwrap();
    fs::create_dir(folder.path().join("within")).unwrap();
    fs::write(folder.path().join("within/b.bin"), b"\xff\n\0 xyzzy%2dPlugh%3a17\n").unwrap();
    Needles::of(&["xyzzy-Plugh:17"]).assert_absent_below(folder.path());
}

#[test]
fn password_is_found_plain_encoded_and_within_base64() {
    let needles = Needles::of(&["xyzzy-Plugh:17"]);
    assert_eq!(base64(b"xyzzy-Plugh:17"), "eHl6enktUGx1Z2g6MTc");
    for text in [
        "a xyzzy-Plugh:17.",
        "mysql://me:xyzzy-Plugh%3A17@h",
        "xyzzy%2dPlugh%3a17",
        // base64 of the password, of "me:" with it, of "root:" and of "admin:" with it.
        "eHl6enktUGx1Z2g6MTc=",
        "bWU6eHl6enktUGx1Z2g6MTc=",
        "cm9vdDp4eXp6eS1QbHVnaDoxNw==",
        "YWRtaW46eHl6enktUGx1Z2g6MTc=",
        "YTp4eXp6eS1QbHVnaDoxNw==",
    ] {
        assert!(needles.found(text).is_some(), "{text}");
    }
    assert!(needles.found("xyzzy-plugh:17 xyzzy-Plugh%3A18 cGx1Z2g=").is_none());
}
