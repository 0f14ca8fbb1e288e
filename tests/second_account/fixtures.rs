//! Servers that the accounts run themselves, started without the testbed.

use super::accounts::{Account, User};
use super::running::Running;
use crate::servers::common::skip;
use crate::support::eventually;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A port that is free now.
pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A PostgreSQL server whose Unix socket everybody reaches and knows its clients by their accounts (`peer`), and which takes
/// a client certificate over TCP, as the role `kurabe`.
pub(super) struct Postgres {
    _process: Running,
    folder: PathBuf,
    port: u16,
    role: String,
}

impl Postgres {
    /// Starts one as this user; `None`, with a message, if it is not installed.
    pub fn start(user: &User) -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let folder = PathBuf::from(format!("{}-postgres", user.home().display()));
        user.account.folder(&folder);
        let (data, port, role) = (folder.join("data"), free_port(), user.account.name.clone());
        let at = |name: &str| folder.join(name).into_os_string().into_string().unwrap();
        let initdb = user.program(
            &programs.join("initdb"),
            &[
                "-D",
                data.to_str().unwrap(),
                "-U",
                &role,
                "--auth=peer",
                "--no-sync",
                "--no-locale",
                "-E",
                "UTF8",
            ],
        );
        succeed(initdb);
        let signed = kurabe_testbed::sign("Second account", &["localhost", "127.0.0.1"]).unwrap();
        let ((server, server_key), (client, client_key)) = (signed.server, signed.client);
        let rules = "local all all peer\nhostssl all kurabe 127.0.0.1/32 cert\n".to_owned();
        for (name, text) in [
            ("ca.pem", signed.ca),
            ("server.pem", server),
            ("server.key", server_key),
            ("client.pem", client),
            ("client.key", client_key),
            ("data/pg_hba.conf", rules),
        ] {
            private(&user.account, &folder.join(name), &text);
        }
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            format!("unix_socket_directories={}", folder.display()),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", at("server.pem")),
            format!("ssl_key_file={}", at("server.key")),
            format!("ssl_ca_file={}", at("ca.pem")),
            "fsync=off".to_owned(),
            "shared_buffers=8MB".to_owned(),
        ];
        let mut args = vec!["-D", data.to_str().unwrap()];
        args.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        let process = Running::start(&mut user.program(&programs.join("postgres"), &args));
        let made = Self { _process: process, folder, port, role };
        let ready = || made.psql(user, "SELECT 4711").map(drop);
        eventually(60, ready).expect("PostgreSQL does not start");
        made.psql(user, "CREATE ROLE kurabe LOGIN SUPERUSER").unwrap();
        Some(made)
    }

    /// Executes statements as the role of its user; `None` if the server refuses them.
    pub fn psql(&self, user: &User, statements: &str) -> Option<String> {
        let (host, port) = (self.folder.display().to_string(), self.port.to_string());
        let args = [
            "-XAtqw", "-h", &host, "-p", &port, "-U", &self.role, "-d", "postgres", "-v", "ON_ERROR_STOP=1",
            "-c", statements,
        ];
        let output = user.program(Path::new("/usr/bin/psql"), &args).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Its URL by the Unix socket.
    pub fn by_socket(&self) -> String {
        let socket = self.folder.join(format!(".s.PGSQL.{}", self.port));
        format!("postgres://{}@/postgres?socket={}", self.role, socket.display())
    }

    /// Its URL by the folder of its Unix socket, as libpq writes it.
    pub fn by_folder(&self) -> String {
        format!("postgres://{}@:{}/postgres?host={}", self.role, self.port, self.folder.display())
    }

    /// Its URL over TLS with the client's certificate.
    pub fn by_certificate(&self) -> String {
        let folder = self.folder.display();
        format!(
            "postgres://kurabe@127.0.0.1:{}/postgres?tls=verify&ca={folder}/ca.pem&cert={folder}/client.pem&key={folder}/client.key",
            self.port
        )
    }
}

/// The folder of the newest PostgreSQL's programs.
pub(super) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|folder| folder.join("initdb").exists()).max()
}

/// Writes a file that only this account can read.
fn private(account: &Account, path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    chown(path, Some(account.uid), Some(account.gid)).unwrap();
}

fn succeed(mut command: std::process::Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
