//! Poolers before a server: found before anything is locked, and refused if sessions share connections.

use super::common::{skip, sql, tables};
use crate::support::{Place, eventually, signal};
use kurabe_testbed::{Server, testing};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A `PgBouncer` that is ended with the test.
pub(super) struct PgBouncer {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl PgBouncer {
    /// Starts one before the server; `None`, with a message, if the program is missing.
    pub(super) fn start(server: &Server, mode: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\nkurabe = host=127.0.0.1 port={} dbname=kurabe user=kurabe\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = 20\n",
            server.port()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("sh");
        // It refuses to run as root.
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root {
            "exec setpriv --reuid=65534 --regid=65534 --clear-groups pgbouncer"
        } else {
            "exec pgbouncer"
        };
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        command.args([
            "-c",
            &format!(
                "PATH=$PATH:/usr/sbin; command -v pgbouncer >/dev/null || exit 127; {user} {}",
                file.display()
            ),
        ]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let answers = eventually(20, || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            TcpStream::connect(("127.0.0.1", port)).ok().map(|_| true)
        });
        if answers != Some(true) {
            let code = child.wait().unwrap().code();
            assert_eq!(code, Some(127), "PgBouncer does not start");
            skip("there is no program pgbouncer");
            return None;
        }
        Some(Self { child, port, _folder: folder })
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://kurabe@127.0.0.1:{}/kurabe", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        signal(&self.child, "-INT");
        let _ = self.child.wait();
    }
}

#[test]
fn pooler_that_shares_connections_is_refused_before_anything_is_locked() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let run = |url: &str| {
        place.run(&[
            "run",
            "point-read",
            url,
            "--clients",
            "1,4",
            "--records",
            "50",
            "--requests",
            "40",
            "--rounds",
            "1",
        ])
    };
    for mode in ["transaction", "statement"] {
        let Some(pooler) = PgBouncer::start(&server, mode) else { return };
        for answer in [place.run(&["doctor", &pooler.url()]), run(&pooler.url())] {
            let all = format!("{}{}", answer.out, answer.err);
            assert!(answer.code != Some(0), "{mode}: {answer:?}");
            assert!(all.contains("PgBouncer") && all.contains("pool_mode=session"), "{mode}: {answer:?}");
        }
        // The pool still has its connections, and none holds a lock.
        let locks = sql(&server, "", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").unwrap();
        assert_eq!((locks.trim(), tables(&server).unwrap().trim()), ("0", ""), "{mode}");
        let direct = run(server.url());
        assert_eq!(direct.code, Some(0), "{mode}: {direct:?}");
    }
    let Some(pooler) = PgBouncer::start(&server, "session") else { return };
    let answer = run(&pooler.url());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let told = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("the server was not observed: PgBouncer 1."), "{answer:?}");
    assert!(told.contains("stands before it"), "{answer:?}");
    let doctor = place.run(&["doctor", &pooler.url()]);
    assert!(doctor.code == Some(0) && doctor.out.contains("PgBouncer"), "{doctor:?}");
    let doctor = place.run(&["doctor", server.url()]);
    assert!(!doctor.out.contains("PgBouncer"), "{doctor:?}");
}
