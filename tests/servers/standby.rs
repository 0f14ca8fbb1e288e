//! A standby of a PostgreSQL server, made by `pg_basebackup`.

use super::common::skip;
use kurabe_testbed::{Server, testing};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A standby, ended with the test. Its primary lives at least as long.
pub(super) struct Standby {
    child: Child,
    port: u16,
    programs: PathBuf,
    _folder: tempfile::TempDir,
    pub(super) primary: Server,
}

impl Standby {
    /// Starts a primary and its standby; `None`, with a message, if PostgreSQL is not installed.
    pub(super) fn start() -> Option<Self> {
        let primary = testing::own_server_with("postgres", |options| {
            options.set("wal_level", "replica").set("max_wal_senders", 4)
        })?;
        // Only such a role may copy a server.
        testing::make_superuser(&primary);
        let programs = primary.program().parent().unwrap().to_owned();
        if !programs.join("pg_basebackup").exists() {
            skip("there is no program pg_basebackup");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // The server refuses to run as root.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let (data, port) = (folder.path().join("data"), free_port());
        let mut backup = unprivileged(programs.join("pg_basebackup").to_str().unwrap());
        backup.args(["--host=127.0.0.1", "--username=kurabe", "--checkpoint=fast", "--no-sync"]);
        backup.env("PGPASSWORD", primary.password().unwrap());
        backup.arg("--write-recovery-conf").arg(format!("--port={}", primary.port())).arg("--pgdata");
        let output = backup.arg(&data).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut server = unprivileged(programs.join("postgres").to_str().unwrap());
        server
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        server.args(["-c", &format!("port={port}")]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = server.stderr(Stdio::null()).spawn().unwrap();
        let standby = Self { child, port, programs, _folder: folder, primary };
        let ready = crate::support::eventually(60, || {
            let recovering = standby.ask("SELECT pg_is_in_recovery()")?;
            (recovering.trim() == "t").then_some(())
        });
        assert!(ready.is_some(), "the standby does not answer");
        Some(standby)
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://{}@127.0.0.1:{}/kurabe", testing::login(&self.primary), self.port)
    }

    /// The answer of `psql`; `None` if the server does not answer.
    pub(super) fn ask(&self, statement: &str) -> Option<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["--no-psqlrc", "--no-align", "--tuples-only", "--command", statement, &self.url()]);
        let output = command.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Waits until the standby has what the primary has now.
    pub(super) fn catch_up(&self) {
        let sql = "SELECT pg_current_wal_lsn()";
        let wanted = super::common::sql(&self.primary, "", sql).unwrap();
        let there = crate::support::eventually(60, || {
            let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{}'", wanted.trim());
            (self.ask(&sql)?.trim() == "t").then_some(())
        });
        assert!(there.is_some(), "the standby does not follow");
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        crate::support::signal(&self.child, "-QUIT");
        let _ = self.child.wait();
    }
}

pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A command that runs as another user than root, which servers refuse.
pub(super) fn unprivileged(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
    command
}
