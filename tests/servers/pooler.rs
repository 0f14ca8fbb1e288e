//! Poolers before a server: found before anything is locked, and refused if sessions share connections.

use super::common::{skip, sql, tables};
use crate::support::{Answer, Place, eventually, signal};
use kurabe_testbed::{Server, testing};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
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
        let named = Path::new("/usr/sbin/pgbouncer");
        Self::start_program(if named.exists() { named } else { Path::new("pgbouncer") }, server, mode, "")
    }

    /// The same of a program, with more settings.
    fn start_program(program: &Path, server: &Server, mode: &str, settings: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\nkurabe = host=127.0.0.1 port={} dbname=kurabe user=kurabe password={}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {mode}\ndefault_pool_size = 20\n{settings}",
            server.port(),
            server.password().unwrap()
        );
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        // It refuses to run as root. Another user may not enter the folder of the program.
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.args(["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let answers = eventually(20, || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            TcpStream::connect(("127.0.0.1", port)).ok().map(|_| true)
        });
        if answers != Some(true) {
            child.wait().unwrap();
            let found = Command::new(program).arg("--version").output();
            assert!(found.is_err(), "PgBouncer does not start");
            skip("there is no program pgbouncer");
            return None;
        }
        Some(Self { child, port, _folder: folder })
    }

    /// The answer of the pooled server, by PostgreSQL's own client: it gets the connection that was used last.
    fn ask(&self, statement: &str) -> String {
        let mut command = Command::new("psql");
        command.args(["--no-psqlrc", "--no-align", "--tuples-only", "--command", statement, &self.url()]);
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
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
            "run", "point-read", url, "--clients", "1,4", "--records", "50", "--requests", "40", "--rounds",
            "1", "--verbose",
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
        run(server.url()).success();
    }
    let Some(pooler) = PgBouncer::start(&server, "session") else { return };
    let answer = run(&pooler.url()).success();
    let told = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("the server was not observed: PgBouncer 1."), "{answer:?}");
    assert!(told.contains("stands before it"), "{answer:?}");
    place.run(&["doctor", &pooler.url()]).success().out_has("PgBouncer");
    let script = place.file("reads.sql", "SELECT 1;");
    let reads = ["run", "pgbench", "-f", &script, &pooler.url(), "--requests", "5", "--rounds", "1"];
    place.run(&reads).exit_code(3).err_has("a pooler before the server does not pass on");
    place.run(&[&reads[..], &["--write"]].concat()).success();
    let doctor = place.run(&["doctor", server.url()]);
    assert!(!doctor.out.contains("PgBouncer"), "{doctor:?}");
}

#[test]
fn pooler_that_keeps_prepared_statements_is_used_and_others_keep_their_settings() {
    let Some(server) = testing::server("postgres") else { return };
    let Some(program) = testing::new_pgbouncer() else {
        skip("there is no PgBouncer of 1.21 or newer in the cache (cargo xtask setup)");
        return;
    };
    let place = Place::new();
    let brief = ["--clients", "1,4", "--records", "50", "--requests", "40", "--rounds", "1"];
    let run = |urls: &[&str]| place.run(&[&["run", "point-read"], urls, &brief[..]].concat());
    // Without its help, a statement is on a connection that another session gets.
    {
        let pooler =
            PgBouncer::start_program(&program, &server, "transaction", "max_prepared_statements = 0\n")
                .unwrap();
        place.run(&["doctor", &pooler.url()]).exit_code(3).err_has("max_prepared_statements");
        assert_eq!(pooler.ask("SELECT count(*) FROM pg_prepared_statements"), "0");
    }
    let pooler =
        PgBouncer::start_program(&program, &server, "transaction", "max_prepared_statements = 50\n").unwrap();
    place.run(&["doctor", &pooler.url()]).success().out_has("in transaction mode");
    // A second run, straight at the database, would be refused: the transaction holds the lease.
    let (child, _) = place.spawn_to_trial(
        &[&["run", "point-read", &pooler.url()], &brief[..4], &["--requests", "60", "--rounds", "8"]]
            .concat(),
        1,
    );
    run(&[server.url()]).exit_code(3).err_has("another run");
    place.go_on(1);
    Answer::at_end_of(child).success();
    // One run may use both ways.
    run(&[&pooler.url(), server.url()]).success();
    // What needs a session of its own is refused by name.
    let copied = format!("sqlite:{}", place.at("copied.db"));
    place.run(&["copy", &pooler.url(), &copied]).exit_code(3).err_has("shares the connections");
    let with = format!("{}?search_path=public", pooler.url());
    place.run(&["doctor", &with]).exit_code(3);
    // Nothing of ours is left on the connections that others get.
    let left = "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), \
                (SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT IN ('client_encoding', \
                'application_name', 'DateStyle', 'TimeZone', 'IntervalStyle', 'standard_conforming_strings'))";
    assert_eq!(pooler.ask(left), "0|0");
    assert_eq!(tables(&server).unwrap().trim(), "");
}
