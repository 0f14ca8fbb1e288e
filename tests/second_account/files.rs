//! Files of `copy`, and what commands of root do about files that another account put in their way.

use super::accounts::{Account, Accounts, User};
use super::fixtures::Postgres;
use super::holes::{assert_none, holes};
use super::running::Running;
use super::scene;
use super::throwaway::{engines, server_folders};
use crate::servers::common::{has, skip, tell};
use crate::support::eventually;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn rows_and_statements_that_a_copy_leaves_in_files_are_its_users_alone() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&accounts.owner);
    let Some(server) = Postgres::start(&user) else { return };
    let source = user.signals().join("shop.db").display().to_string();
    if !shop(&user, &source) {
        return;
    }
    let (rejected, leftovers) = (user.at("rejected"), user.at("leftovers"));
    let files = ["--reject", &rejected, "--leftovers", &leftovers];
    let accept = ["--accept", "nul-character=refuse,view"];
    let source = format!("sqlite:{source}");
    let copy =
        user.run(&[&["copy", &source, &server.by_socket()], &files[..], &accept].concat()).output().unwrap();
    assert_eq!(copy.status.code(), Some(4), "{copy:?}");
    assert!(Path::new(&rejected).exists() && Path::new(&leftovers).exists(), "{copy:?}");
    assert_none("copy", &holes(&accounts, &[], &[user.home().to_owned()]));
}

/// Makes a SQLite file with a view and a row that PostgreSQL cannot store; false, with a message, without the means.
pub(super) fn shop(user: &User, path: &str) -> bool {
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
                  c.execute('CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT)'); \
                  c.executemany('INSERT INTO shop VALUES (?, ?)', [(1, 'one'), (2, 'two\\0')]); \
                  c.execute('CREATE VIEW newest AS SELECT max(id) AS id FROM shop'); c.commit()";
    let output = user.program(Path::new("/usr/bin/python3"), &["-c", script, path]).output();
    let made = output.is_ok_and(|output| output.status.success());
    made || skip("there is no python3 with SQLite")
}

/// What another account puts in place of a file that root will write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    /// A symbolic link to a file of root's.
    Link,
    /// A symbolic link to a file that does not exist, in a folder of root's.
    Dangling,
    /// Another name of a file of root's.
    HardLink,
    /// A FIFO that the account reads.
    Fifo,
    /// A file of the account's.
    Own,
    /// A device like `/dev/null`, which root names itself: it stays one.
    Device,
}

const TRAPS: [Trap; 6] = [Trap::Link, Trap::Dangling, Trap::HardLink, Trap::Fifo, Trap::Own, Trap::Device];
/// What the file of root's contains.
const PRECIOUS: &str = "precious\n";

/// A folder like `/tmp`, with traps of the intruder, and a folder of root's that they lead to.
struct Field {
    shared: PathBuf,
    roots: PathBuf,
    intruder: Account,
}

impl Field {
    fn new(accounts: &Accounts, user: &User) -> Self {
        let [shared, roots] = ["shared", "roots"].map(|name| PathBuf::from(user.at(name)));
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        fs::create_dir(&roots).unwrap();
        // Others may enter it and read, and write nothing.
        fs::set_permissions(&roots, Permissions::from_mode(0o755)).unwrap();
        Self { shared, roots, intruder: accounts.intruder.clone() }
    }

    /// Sets a trap of this name as the intruder, and returns its path; `None`, with a message, where it cannot be made.
    fn set(&self, trap: Trap, name: &str) -> Option<PathBuf> {
        let (path, precious) = (self.shared.join(name), self.roots.join(name));
        let sh = |script: &str| {
            let mut command = self.intruder.command("/bin/sh");
            let status = command.args(["-c", script]).arg(&path).arg(&precious).status().unwrap();
            assert!(status.success(), "{trap:?}: {script}");
        };
        if trap != Trap::Dangling {
            fs::write(&precious, PRECIOUS).unwrap();
        }
        match trap {
            Trap::Link | Trap::Dangling => sh("ln -s \"$1\" \"$0\""),
            // Where the system lets nobody link the files of others, it is root's own.
            Trap::HardLink => fs::hard_link(&precious, &path).unwrap(),
            Trap::Fifo => sh("mkfifo -m 666 \"$0\""),
            Trap::Own => sh("umask 0 && printf mine > \"$0\""),
            // One of the test's own: none of the system's is at risk.
            Trap::Device => {
                let made =
                    Command::new("mknod").args(["-m", "666"]).arg(&path).args(["c", "1", "3"]).status();
                if !made.is_ok_and(|made| made.success()) {
                    tell("no device can be made here");
                    return None;
                }
            }
        }
        Some(path)
    }

    /// The intruder reads a FIFO.
    fn reader(&self, path: &Path) -> Child {
        let mut cat = self.intruder.command("/bin/cat");
        cat.arg(path).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What the trap caught.
    fn caught(&self, trap: Trap, name: &str, reader: Option<Child>) -> Option<&'static str> {
        let (path, precious) = (self.shared.join(name), self.roots.join(name));
        let changed = match trap {
            Trap::Dangling => precious.symlink_metadata().is_ok(),
            _ => fs::read_to_string(&precious).unwrap_or_default() != PRECIOUS,
        };
        if changed {
            return Some("root wrote through it");
        }
        if let Some(mut reader) = reader {
            // What was written is read at once; a writer that never comes is not waited for.
            std::thread::sleep(Duration::from_millis(100));
            let _ = reader.kill();
            let mut read = Vec::new();
            let _ = std::io::Read::read_to_end(&mut reader.stdout.take()?, &mut read);
            let _ = reader.wait();
            return (!read.is_empty()).then_some("the other account received what root wrote");
        }
        let meta = path.symlink_metadata().ok()?;
        if trap == Trap::Device {
            let kept = meta.file_type().is_char_device() && meta.mode() & 0o777 == 0o666;
            return (!kept).then_some("root replaced a device by a file");
        }
        let still_theirs = meta.is_file() && meta.uid() == self.intruder.uid;
        (trap == Trap::Own && still_theirs && fs::read_to_string(&path).ok()? != "mine")
            .then_some("root wrote into a file that the other account can read and change")
    }
}

/// A command of root's with a file in a folder where others may make files.
struct Output {
    name: &'static str,
    args: Vec<String>,
}

impl Output {
    fn command(&self, user: &User, file: &Path) -> Command {
        let replaced = |arg: &String| if arg == "FILE" { file.display().to_string() } else { arg.clone() };
        let args: Vec<String> = self.args.iter().map(replaced).collect();
        // Root runs it: a fault must not meet a device of the system.
        assert!(!args.iter().any(|arg| arg.contains("/dev/")), "{args:?}");
        user.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Commands; `FILE` stands for the file.
fn outputs(capture: &str, sqlite: &str, target: &str, rejected: &str) -> Vec<Output> {
    let one = |name, line: &str| Output { name, args: line.split(' ').map(str::to_owned).collect() };
    let run = "run kv null: --requests 20 --rounds 1 --no-html";
    let copy = format!("copy sqlite:{sqlite} {target} --accept nul-character=refuse,view");
    vec![
        one("capture -o", "capture up:redis -o FILE -- true"),
        one("capture model -o", &format!("capture model {capture} -o FILE")),
        one("capture show --export-html", &format!("capture show {capture} --export-html FILE")),
        one("run --export-json", &format!("{run} --export-json FILE")),
        one("run --export-markdown", &format!("{run} --export-markdown FILE")),
        one("report -o", "report --format csv -o FILE"),
        one("runs export -o", "runs export last -o FILE"),
        one("copy --reject", &format!("{copy} --reject FILE")),
        one("copy --leftovers", &format!("{copy} --reject {rejected} --leftovers FILE")),
        one("copy --export-html", &format!("{copy} --reject {rejected} --export-html FILE")),
    ]
}

#[test]
fn root_writes_through_no_link_that_another_account_made() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&Account::root());
    let field = Field::new(&accounts, &user);
    // A run to report and to export, a capture, and a table.
    let first =
        user.run(&["run", "kv", "null:", "--requests", "20", "--rounds", "1", "--no-html"]).output().unwrap();
    assert!(first.status.success(), "{first:?}");
    let (capture, sqlite) = (user.at("a.capture"), user.at("shop.db"));
    let client = "psql -XAtqc 'CREATE TABLE shop (id int PRIMARY KEY)' -c 'INSERT INTO shop VALUES (1)' -c 'SELECT * FROM shop WHERE id = 1'";
    let made =
        user.run(&["capture", "up:postgres", "-o", &capture, "--", "sh", "-ec", client]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    if !shop(&user, &sqlite) {
        return;
    }
    let owner = accounts.user(&accounts.owner);
    let Some(server) = Postgres::start(&owner) else { return };
    let rejected = user.at("rejected");
    let mut found = Vec::new();
    for output in outputs(&capture, &sqlite, &server.by_certificate(), &rejected) {
        let name = output.name.replace([' ', '-'], "");
        let run = |file: &Path| {
            server.psql(&owner, "DROP TABLE IF EXISTS shop").unwrap();
            let _ = fs::remove_file(&rejected);
            ended(&mut output.command(&user, file))
        };
        let plain = field.shared.join(&name);
        assert!(run(&plain) && plain.exists(), "{} writes no file", output.name);
        for trap in TRAPS {
            let name = format!("{name}-{trap:?}");
            let Some(file) = field.set(trap, &name) else { continue };
            let reader = (trap == Trap::Fifo).then(|| field.reader(&file));
            let has_ended = run(&file);
            let caught = field.caught(trap, &name, reader);
            let caught = if has_ended { caught } else { Some("the command waits for the other account") };
            found.extend(caught.map(|what| format!("{} {trap:?}: {what}", output.name)));
        }
    }
    assert_none("outputs of root", &found);
}

/// Whether a command ends by itself.
fn ended(command: &mut Command) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = eventually(60, || child.try_wait().unwrap()).is_some();
    if !ended {
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = eventually(20, || child.try_wait().unwrap());
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

#[test]
fn database_file_and_its_lock_follow_no_link() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&Account::root());
    let field = Field::new(&accounts, &user);
    let mut found = Vec::new();
    for scheme in ["sqlite", "lmdb"].into_iter().take(if cfg!(feature = "full") { 2 } else { 1 }) {
        for suffix in ["", "-kurabe.lock"] {
            for trap in [Trap::Link, Trap::Dangling] {
                let name = format!("{scheme}{suffix}{trap:?}.db");
                let file = field.set(trap, &format!("{name}{suffix}")).unwrap();
                let target = format!("{scheme}:{}", field.shared.join(&name).display());
                let run = user
                    .run(&[
                        "run", "kv", &target, "--requests", "20", "--records", "20", "--rounds", "1",
                        "--no-html",
                    ])
                    .output()
                    .unwrap();
                let caught = field.caught(trap, &format!("{name}{suffix}"), None);
                found
                    .extend(caught.map(|what| {
                        format!("{} {trap:?}: {what} ({:?})", file.display(), run.status.code())
                    }));
            }
        }
    }
    assert_none("files of embedded databases", &found);
}

#[test]
fn journal_that_another_account_put_beside_a_database_changes_nothing_in_it() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&Account::root());
    let field = Field::new(&accounts, &user);
    let (path, theirs) = (field.shared.join("wages.db"), field.roots.join("theirs.db"));
    let sqlite = |path: &Path, statements: &str| {
        let output = Command::new("sqlite3").arg(path).arg(statements).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    if Command::new("sqlite3").arg("--version").output().is_err() {
        skip("there is no sqlite3");
        return;
    }
    sqlite(&path, "PRAGMA journal_mode = wal; CREATE TABLE wages (n); INSERT INTO wages VALUES (7)");
    fs::copy(&path, &theirs).unwrap();
    // Before the last connection takes the WAL into the database.
    let kept = field.roots.join("kept");
    let script = format!("UPDATE wages SET n = 0;\n.shell cp {}-wal {}\n", theirs.display(), kept.display());
    let script = user.input("script", &script);
    let read = Command::new("sqlite3").arg(&theirs).arg(format!(".read {script}")).status().unwrap();
    assert!(read.success());
    let mut plant = accounts.intruder.command("/bin/cp");
    assert!(plant.arg(&kept).arg(field.shared.join("wages.db-wal")).status().unwrap().success());
    // Engines have a journal beside the file that a link leads to.
    let link = field.roots.join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let [target, linked] = [&path, &link].map(|path| format!("sqlite:{}", path.display()));
    for command in [
        &["run", "kv", &target, "--requests", "20", "--records", "20", "--rounds", "1", "--no-html"][..],
        &["doctor", &target],
        &["doctor", &linked],
    ] {
        let answer = user.run(command).output().unwrap();
        let error = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(error.contains("is of another account than the database"), "{}: {error}", command.join(" "));
    }
    fs::remove_file(field.shared.join("wages.db-wal")).unwrap();
    assert_eq!(sqlite(&path, "SELECT n FROM wages"), "7");
}

#[test]
fn clients_of_a_cache_that_others_write_are_not_executed() {
    let Some(accounts) = Accounts::get() else { return };
    if !has("mysql") {
        return;
    }
    let user = accounts.user(&Account::root());
    let field = Field::new(&accounts, &user);
    let proof = field.shared.join("proof");
    let plant = "mkdir -p \"$0/kurabe/servers/x/bin\" && cd \"$0/kurabe/servers/x/bin\" && for name in mysqldump mysql mariadb-dump mariadb; do \
                 printf '#!/bin/sh\\necho $0 >> %s\\n' \"$1\" > $name && chmod 755 $name; done";
    let mut command = accounts.intruder.command("/bin/sh");
    let status = command.args(["-c", plant]).arg(&field.shared).arg(&proof).status().unwrap();
    assert!(status.success());
    let mut up = Running::start(&mut user.run(&["up", "mysql"]));
    let url = up.first_line();
    let mut run = user.run(&["run", "reload", &url, "--rows", "200", "--rounds", "1", "--no-html"]);
    let ended = run.env_remove("KURABE_CACHE").env("XDG_CACHE_HOME", &field.shared).output().unwrap();
    up.end();
    // It went on to its clients: it has results by some, or names what is missing.
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() || said.contains("mysqldump"), "{said}");
    let executed = fs::read_to_string(&proof).unwrap_or_default();
    assert_eq!(executed, "", "clients that the other account put into the cache");
}

#[test]
fn programs_and_data_of_a_cache_that_others_write_are_not_used() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&Account::root());
    let field = Field::new(&accounts, &user);
    let cache = field.shared.join("kurabe");
    let proof = field.roots.join("proof");
    let script = format!("#!/bin/sh\ntouch {}\n", proof.display());
    let plant = field.shared.join("planted");
    let sh = "mkdir -p \"$0/servers/mysql-sid/lib64\" \"$0/servers/mysql-sid/usr/sbin\" \"$0/servers/valkey-trixie/lib64\" \"$0/servers/valkey-trixie/usr/bin\" && \
              printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\" && for file in servers/ferretdb-users servers/mysql-sid/lib64/ld-linux-x86-64.so.2 \
              servers/mysql-sid/usr/sbin/mysqld servers/valkey-trixie/lib64/ld-linux-x86-64.so.2 servers/valkey-trixie/usr/bin/valkey-server; do cp \"$2\" \"$0/$file\"; done && \
              ln -s \"$3\" \"$0/templates\"";
    let mut command = accounts.intruder.command("/bin/sh");
    command.args([
        OsStr::new("-c"),
        OsStr::new(sh),
        cache.as_os_str(),
        OsStr::new(&script),
        plant.as_os_str(),
        field.roots.as_os_str(),
    ]);
    assert!(command.status().unwrap().success());
    let mut found = Vec::new();
    for engine in ["mongodb", "mysql", "valkey", "postgres"] {
        let mut up = user.run(&["up", engine]);
        up.env_remove("KURABE_CACHE").env("XDG_CACHE_HOME", &field.shared);
        let mut up = Running::start(&mut up);
        up.first_line();
        up.end();
        let there: Vec<_> =
            fs::read_dir(&field.roots).unwrap().flatten().map(|entry| entry.file_name()).collect();
        if !there.is_empty() {
            found.push(format!(
                "up {engine}: root's folder has {there:?}, by what the other account put into the cache"
            ));
            for name in there {
                let path = field.roots.join(name);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
    }
    assert_none("a cache that others write", &found);
}

/// A server of each family.
const RESTARTED: [&str; 5] = ["postgres", "mariadb", "redis", "memcached", "couchdb"];

/// Files of a server's folder that root writes or changes.
const OF_SERVERS: [&str; 13] = [
    ".kurabe-testbed", ".server.json", ".new-server", "server.log", "prepare.log", "tmp", "ca.pem",
    "server.pem", "server.key", "password", "init.sql", "pg_hba.conf", "server.conf",
];

/// The server's own account replaces all that it can replace in the server's folder by links; then root restarts the server
/// and ends it.
#[test]
fn restart_of_a_server_follows_no_link_in_its_folder() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&Account::root());
    let before = server_folders(&user);
    let engines = engines().into_iter().filter(|engine| RESTARTED.contains(engine));
    let targets: Vec<String> = engines.map(|engine| format!("up:{engine}")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let brief = [
        "--requests", "20", "--records", "20", "--clients", "1", "--rounds", "6", "--restarts", "1",
        "--no-html",
    ];
    let run = user.run(&[&["run", "kv"], &targets[..], &brief].concat());
    let run = Running::start_to_pause(&user, run);
    let roots = PathBuf::from(user.at("roots"));
    fs::create_dir(&roots).unwrap();
    let mut planted = Vec::new();
    for pid in scene::tree(run.id()) {
        let Some((uid, gid)) = scene::account(pid).filter(|(uid, _)| *uid != 0) else { continue };
        let account = Account { name: "the server".to_owned(), uid, gid };
        let of_server = |folder: &PathBuf| scene::folder(pid).is_some_and(|at| at.starts_with(folder));
        for folder in
            server_folders(&user).into_iter().filter(|folder| !before.contains(folder) && of_server(folder))
        {
            for name in OF_SERVERS {
                let precious = roots.join(format!(
                    "{}-{}-{name}",
                    scene::name(pid),
                    folder.file_name().unwrap().display()
                ));
                if precious.exists() {
                    continue;
                }
                fs::write(&precious, PRECIOUS).unwrap();
                fs::set_permissions(&precious, Permissions::from_mode(0o600)).unwrap();
                let script = "mv \"$0\" \"$0.moved\"; ln -s \"$1\" \"$0\"";
                let mut command = account.command("/bin/sh");
                command.args(["-c", script]).arg(folder.join(name)).arg(&precious).stderr(Stdio::null());
                let set = command.status().unwrap().success();
                planted.push((precious, set));
            }
        }
    }
    let answer = run.finish();
    // Servers of which the account could replace nothing are restarted.
    assert!(planted.iter().any(|(_, set)| *set) || answer.code == Some(0), "{answer:?}");
    let mut found = Vec::new();
    for (precious, _) in planted {
        let name = precious.file_name().unwrap().display().to_string();
        let Ok(meta) = precious.symlink_metadata() else {
            found.push(format!("root removes the file behind the link {name}"));
            continue;
        };
        if fs::read_to_string(&precious).unwrap_or_default() != PRECIOUS {
            found.push(format!("root writes through the link {name}"));
        }
        if meta.uid() != 0 || meta.mode() & 0o777 != 0o600 {
            found.push(format!("root gives away the file behind the link {name}"));
        }
    }
    assert_none("folders of servers", &found);
}
