//! Every engine with a real server.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use crate::common::{alive, eventually, send};
use kurabe_testbed::{Server, TestbedError, testing};
use rustix::process::Signal;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream
}

/// The first answer of each engine's protocol: MySQL sends a greeting, the others reply to a request.
fn answers(server: &Server) -> bool {
    let mut stream = connect(server);
    if server.url().starts_with("postgres") {
        stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    } else if server.url().starts_with("couchdb") {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    } else if server.url().starts_with("memcached") {
        // It answers that there was no login.
        stream.write_all(b"version\r\n").unwrap();
    } else if server.url().starts_with("redis") || server.url().starts_with("valkey") {
        stream.write_all(b"PING\r\n").unwrap();
    } else if server.url().starts_with("mongodb") {
        let ping = b"\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
        stream.write_all(b"\x33\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x1e\0\0\0").unwrap();
        stream.write_all(ping).unwrap();
    }
    match stream.read(&mut [0; 1]) {
        Ok(n) => n == 1,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
        Err(error) => panic!("{error}"),
    }
}

/// One body for all engines.
fn starts_and_stops(engine: &str) {
    let (Some(one), Some(two)) = (testing::own_server(engine), testing::server(engine)) else { return };

    // Two servers of an engine do not conflict.
    assert_ne!(one.port(), two.port());
    assert_ne!(one.dir(), two.dir());
    assert!(answers(&one) && answers(&two));
    two.stop().unwrap();
    assert!(answers(&one));

    // Its folder is private: this account's, in which the server's own may enter, but not write.
    assert!(one.url().starts_with(&format!("{engine}://")), "{}", one.url());
    assert!(one.url().contains(&format!("127.0.0.1:{}", one.port())), "{}", one.url());
    let folder = one.dir().metadata().unwrap();
    assert_eq!(folder.permissions().mode() & 0o027, 0, "{:o}", folder.permissions().mode());
    assert_eq!(folder.uid(), rustix::process::geteuid().as_raw());
    assert!(one.log_path().starts_with(one.dir()) && one.log_path().exists());
    assert!(one.version().starts_with(|c: char| c.is_ascii_digit()), "{}", one.version());
    assert_eq!(one.died(), None);
    if let Some(socket) = one.socket() {
        assert!(socket.metadata().unwrap().file_type().is_socket());
        assert!(socket.as_os_str().len() <= 107);
    }
    listens_on_the_loopback_only(&one);
    // A file of shared memory would stay behind if the server were killed.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", one.pid())).unwrap();
    let inside = one.dir().display().to_string();
    let left = |line: &str| line.contains("/dev/shm/") && !line.contains(&inside);
    assert!(!maps.lines().any(left), "{engine}: {maps}");

    // It can be paused.
    one.pause().unwrap();
    assert!(!answers(&one));
    one.resume().unwrap();
    eventually("it answers again", || answers(&one));

    // It can be killed and restarted with the same address.
    let (first, port) = (one.pid(), one.port());
    one.kill_hard().unwrap();
    assert!(!alive(first));
    assert!(one.pause().is_err());
    // Its number may be another process's by now.
    if let Some(lock) = one
        .socket()
        .map(|socket| format!("{}.lock", socket.display()))
        .filter(|lock| Path::new(lock).exists())
    {
        std::fs::write(lock, format!("{}\n", std::process::id())).unwrap();
    }
    one.restart().unwrap();
    assert!(answers(&one));
    assert_eq!(one.port(), port);
    assert_ne!(one.pid(), first);
    assert_eq!(one.died(), None);

    // Its unexpected end is reported.
    send(one.pid(), Signal::KILL);
    eventually("the death is reported", || one.died().is_some());
    one.restart().unwrap();
    assert_eq!(one.died(), None);

    // A paused server can be stopped.
    one.pause().unwrap();
    let (dir, last, supervisor) = (one.dir().to_owned(), one.pid(), one.supervisor_pid());
    drop(one);
    assert!(!dir.exists() && !alive(last) && !alive(supervisor));
}

#[test]
fn mysql_starts_and_stops() {
    starts_and_stops("mysql");
}

#[test]
fn mariadb_starts_and_stops() {
    starts_and_stops("mariadb");
}

#[test]
fn postgres_starts_and_stops() {
    starts_and_stops("postgres");
}

#[test]
fn memcached_starts_and_stops() {
    starts_and_stops("memcached");
}

#[test]
fn redis_starts_and_stops() {
    starts_and_stops("redis");
}

#[test]
fn valkey_starts_and_stops() {
    starts_and_stops("valkey");
}

#[test]
fn mongodb_starts_and_stops() {
    starts_and_stops("mongodb");
}

#[test]
fn couchdb_starts_and_stops() {
    starts_and_stops("couchdb");
}

/// Asserts that every TCP socket of the server's process is bound to 127.0.0.1.
fn listens_on_the_loopback_only(server: &Server) {
    const LISTEN: &str = "0A";
    let links = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let held: Vec<String> = links
        .filter_map(|entry| Some(std::fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    let mut listening = 0;
    for table in ["tcp", "tcp6"] {
        for line in
            std::fs::read_to_string(format!("/proc/{}/net/{table}", server.pid())).unwrap().lines().skip(1)
        {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == LISTEN && held.contains(&format!("socket:[{}]", fields[9])) {
                assert!(fields[1].starts_with("0100007F:"), "{line}");
                listening += 1;
            }
        }
    }
    assert_eq!(listening, 1);
}

#[test]
fn bad_setting_shows_server_log() {
    for (engine, key, value) in [
        ("postgres", "shared_buffers", "many"),
        ("mariadb", "no-such-setting", "1"),
        ("mysql", "no-such-setting", "1"),
        ("redis", "no-such-setting", "1"),
    ] {
        if !crate::common::installed(engine) {
            continue;
        }
        let base = crate::common::base();
        let error =
            kurabe_testbed::start(engine, &crate::common::options().set(key, value).in_folder(base.path()))
                .unwrap_err();
        let TestbedError::Failed { log, .. } = &error else { panic!("{error}") };
        assert!(log.contains(key), "{log}");
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0, "{engine} left something");
    }
}

#[test]
fn settings_fixed_at_creation_reach_mysql_and_mariadb() {
    for engine in ["mysql", "mariadb"] {
        let choose = |options: kurabe_testbed::StartOptions| {
            options.set("innodb_page_size", "8k").set("lower-case-table-names", 1)
        };
        // InnoDB refuses a data folder with pages of another size.
        let Some(server) = testing::server_with(engine, choose) else { continue };
        assert!(answers(&server), "{engine}");
    }
}

#[test]
fn server_with_changed_listen_address_is_rejected() {
    for (engine, key) in
        [("memcached", "l"), ("postgres", "listen_addresses"), ("mysql", "bind-address"), ("redis", "bind")]
    {
        if crate::common::installed(engine) {
            let error =
                kurabe_testbed::start(engine, &crate::common::options().set(key, "0.0.0.0")).unwrap_err();
            assert!(matches!(error, TestbedError::BadOption { .. }), "{error}");
        }
    }
}

#[test]
fn password_of_a_server_is_hidden_after_every_start() {
    for engine in ["postgres", "mysql", "mariadb", "redis", "couchdb"] {
        let password = if engine == "couchdb" { "pass\"word\\" } else { "pass'word\\" };
        let Some(server) = testing::server_with(engine, |options| options.with_password(password)) else {
            continue;
        };
        if engine == "couchdb" {
            // The testbed writes it, and the server replaces it by a hash.
            eventually("the password is hashed", || {
                let files = std::fs::read_dir(server.dir()).unwrap().flatten();
                !files
                    .filter_map(|file| std::fs::read_to_string(file.path()).ok())
                    .any(|text| text.contains("word\\"))
            });
        }
        hides_the_password(&server, "word\\");
        if engine == "redis" {
            server.restart().unwrap();
            hides_the_password(&server, "word\\");
        }
    }
}

/// Asserts that the password is in no argument list of the server, and in no file of its folder.
fn hides_the_password(server: &Server, password: &str) {
    let args = std::fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    let holds = |bytes: &[u8]| bytes.windows(password.len()).any(|window| window == password.as_bytes());
    assert!(!holds(&args));
    for entry in std::fs::read_dir(server.dir()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            assert!(!holds(&std::fs::read(entry.path()).unwrap()), "{}", entry.path().display());
        }
    }
}

#[test]
fn each_restart_begins_with_the_data_that_were_kept() {
    for engine in ["postgres", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let marker = server.dir().join("data/marker");
        std::fs::write(&marker, "kept").unwrap();
        server.keep_data().unwrap();
        assert!(answers(&server), "{engine}");
        for _ in 0..2 {
            std::fs::write(&marker, "changed").unwrap();
            server.restart().unwrap();
            assert!(answers(&server), "{engine}");
            assert_eq!(std::fs::read_to_string(&marker).unwrap(), "kept", "{engine}");
        }
    }
}
