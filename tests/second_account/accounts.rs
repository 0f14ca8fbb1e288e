//! Two accounts made for the tests: the owner, who runs the program, and the intruder, who has nothing to do with it.

use crate::servers::common::skip;
use crate::support::{KURABE, cache, eventually};
use kurabe_testbed::testing;
use rustix::process::{Pid, geteuid, test_kill_process};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tempfile::TempDir;

/// The prefix of the accounts' names; the number of the process that made them follows.
const PREFIX: &str = "kbt";
/// The account that the system's own services share.
const NOBODY: Account = Account { name: String::new(), uid: 65_534, gid: 65_534 };

/// An account of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl Account {
    pub fn root() -> Self {
        Self { name: "root".to_owned(), uid: 0, gid: 0 }
    }

    pub fn nobody() -> Self {
        Self { name: "nobody".to_owned(), ..NOBODY }
    }

    /// A program as this account, with no group but its own and an empty environment.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
        command.current_dir("/").stdin(Stdio::null());
        if self.uid != 0 {
            // The standard library drops all other groups where root changes the user.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Makes a folder of this account, which others may enter and list.
    pub fn folder(&self, path: &Path) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        chown(path, Some(self.uid), Some(self.gid)).unwrap();
    }
}

/// The accounts, and a folder that all of them can enter. The accounts are removed with the last test that uses them.
pub(super) struct Accounts {
    pub owner: Account,
    pub intruder: Account,
    room: TempDir,
}

impl Accounts {
    /// The accounts of this process; `None`, with a message, without root.
    pub fn get() -> Option<Arc<Self>> {
        static MADE: Mutex<Weak<Accounts>> = Mutex::new(Weak::new());
        if !geteuid().is_root() {
            skip("two accounts can be made by root only");
            return None;
        }
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = made.upgrade().unwrap_or_else(|| Arc::new(Self::make()));
        *made = Arc::downgrade(&found);
        Some(found)
    }

    fn make() -> Self {
        remove_those_of_killed_tests();
        let account = |part: &str| make_account(&format!("{PREFIX}{part}-{}", std::process::id()));
        let mut accounts = Self {
            owner: Account::nobody(),
            intruder: Account::nobody(),
            room: tempfile::Builder::new().prefix("kurabe-second-").tempdir().unwrap(),
        };
        // Each is removed by the value, also if the next one cannot be made.
        accounts.owner = account("own");
        accounts.intruder = account("two");
        let room = accounts.room.path();
        fs::set_permissions(room, Permissions::from_mode(0o755)).unwrap();
        copy(Path::new(KURABE), &room.join("kurabe"));
        // Servers that the distribution lacks are in the tester's home, which others may not enter.
        let cache_of_owner = room.join("cache");
        accounts.owner.folder(&cache_of_owner);
        if let Some(servers) = cache().map(|cache| cache.join("servers")).filter(|path| path.exists()) {
            copy(&servers, &cache_of_owner.join("servers"));
        }
        accounts
    }

    /// A folder that everybody can enter, removed with the accounts.
    pub fn room(&self) -> &Path {
        self.room.path()
    }

    /// A user of the program, with a new home.
    pub fn user(self: &Arc<Self>, account: &Account) -> User {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = self.room().join(format!("home-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        account.folder(&home);
        let programs = PathBuf::from(format!("{}-bin", home.display()));
        account.folder(&programs);
        fs::hard_link(self.room().join("kurabe"), programs.join("kurabe")).unwrap();
        let servers = PathBuf::from(format!("{}-servers", home.display()));
        fs::create_dir(&servers).unwrap();
        fs::set_permissions(&servers, Permissions::from_mode(0o1777)).unwrap();
        User { accounts: Arc::clone(self), account: account.clone(), home }
    }

    /// Root and the owner, each with a new home.
    pub fn users(self: &Arc<Self>) -> [User; 2] {
        [self.user(&Account::root()), self.user(&self.owner)]
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        for account in [&self.owner, &self.intruder].into_iter().filter(|account| account.uid != NOBODY.uid) {
            remove_account(&account.name);
        }
    }
}

/// An account that runs the program, with the umask that most systems have.
pub(super) struct User {
    accounts: Arc<Accounts>,
    pub account: Account,
    home: PathBuf,
}

impl User {
    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn is_root(&self) -> bool {
        self.account.uid == 0
    }

    /// Writes a file that this user may read, outside of its home.
    pub fn input(&self, name: &str, content: &str) -> String {
        let path = format!("{}-{name}", self.home.display());
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        chown(&path, Some(self.account.uid), Some(self.account.gid)).unwrap();
        path
    }

    /// A folder of this user's for what tests and the program tell each other, outside of its home.
    pub fn signals(&self) -> PathBuf {
        let path = PathBuf::from(format!("{}-signals", self.home.display()));
        if !path.exists() {
            self.account.folder(&path);
        }
        path
    }

    /// The path of a file in the user's home.
    pub fn at(&self, name: &str) -> String {
        self.home.join(name).into_os_string().into_string().unwrap()
    }

    /// Kurabe with these arguments.
    pub fn run(&self, args: &[&str]) -> Command {
        self.program(&self.path(), args)
    }

    /// The program's file.
    pub fn path(&self) -> PathBuf {
        self.programs().join("kurabe")
    }

    /// The folder in which throwaway servers have theirs: like `/tmp`, everybody may make files there.
    pub fn servers(&self) -> PathBuf {
        format!("{}-servers", self.home.display()).into()
    }

    /// A folder with the program alone: it tells the processes of this user from those of others.
    pub fn programs(&self) -> PathBuf {
        format!("{}-bin", self.home.display()).into()
    }

    /// Any program in the environment in which this user runs Kurabe.
    pub fn program(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = self.account.command("/bin/sh");
        command.args(["-c", "umask 022 && exec \"$0\" \"$@\""]).arg(program).args(args);
        command.current_dir(&self.home).env("HOME", &self.home).env(testing::SMALL, "1");
        command.env("KURABE_TMP", self.servers()).env("TMPDIR", self.servers());
        let own = self.accounts.room().join("cache");
        // Root's cache has data folders that other tests have made.
        let cache = if self.is_root() { cache().unwrap_or(own) } else { own };
        command.env("KURABE_CACHE", cache);
        command
    }
}

/// Copies a file or folder with its permissions, as hard links where that is possible.
fn copy(from: &Path, to: &Path) {
    let copied =
        |how: &str| Command::new("cp").arg(how).arg(from).arg(to).stderr(Stdio::null()).status().unwrap();
    if !copied("-al").success() {
        let _ = fs::remove_dir_all(to);
        assert!(copied("-a").success(), "{} cannot be copied", from.display());
    }
}

fn make_account(name: &str) -> Account {
    // Another program may hold the lock of the system's list of accounts.
    let made = eventually(30, || {
        let mut command = Command::new("/usr/sbin/useradd");
        command.args(["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", name]);
        command.stderr(Stdio::null()).status().unwrap().success().then_some(())
    });
    made.unwrap_or_else(|| panic!("useradd does not make the account {name}"));
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with(&format!("{name}:"))).unwrap();
    let number = |field| line.split(':').nth(field).unwrap().parse().unwrap();
    Account { name: name.to_owned(), uid: number(2), gid: number(3) }
}

#[expect(clippy::print_stderr, reason = "the test harness shows it")]
fn remove_account(name: &str) {
    let removed = eventually(30, || {
        let output = Command::new("/usr/sbin/userdel").args(["--force", name]).output().ok()?;
        // 6: there is none.
        matches!(output.status.code(), Some(0 | 6)).then_some(())
    });
    if removed.is_none() {
        eprintln!("userdel does not remove the account {name}");
    }
}

/// Removes accounts that tests left which were killed.
fn remove_those_of_killed_tests() {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    for name in accounts.lines().filter_map(|line| line.split(':').next()) {
        let maker = ["own-", "two-"].iter().find_map(|part| name.strip_prefix(PREFIX)?.strip_prefix(part));
        let maker = maker.and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        if maker.is_some_and(|pid| test_kill_process(pid).is_err()) {
            remove_account(name);
        }
    }
}
