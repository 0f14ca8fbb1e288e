//! Transports to a server: TCP, TLS, Unix sockets.

use super::common::{ENGINES, connect, once, open, refusal, with, with_password};
use kurabe_core::ErrorKind;
use kurabe_core::operation::Operation;
use kurabe_relay::Relay;
use kurabe_testbed::{StartOptions, testing};
use std::sync::Arc;

#[test]
fn tls_is_used_if_requested_and_certificate_is_verified() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, |options| options.with_tls().with_password("secret"))
        else {
            continue;
        };
        let ca = server.ca().unwrap().display().to_string();
        let url = with_password(server.url(), "secret");
        for option in ["tls=require".to_owned(), format!("tls=verify&ca={ca}")] {
            let url = with(&url, &option);
            let facts = open(&url).unwrap().describe().unwrap_or_else(|e| panic!("{engine} {option}: {e}"));
            assert!(facts.transport.starts_with("TCP with TLS"), "{engine} {option}: {}", facts.transport);
            let mut session = connect(&url).unwrap();
            once(&mut *session, &Operation::Ping, &[]).unwrap();
            session.close().unwrap();
        }
        let error = refusal(&with(&url, "tls=verify"));
        assert_eq!(error.kind(), ErrorKind::Denied, "{engine}: {error}");
        assert!(error.to_string().contains("ca=FILE"), "{engine}: {error}");
        let facts = open(&with(&url, "tls=off")).unwrap().describe().unwrap();
        assert_eq!(facts.transport, "TCP", "{engine}");
    }
}

#[test]
fn required_tls_fails_with_server_without_tls() {
    // MySQL and MariaDB create a certificate by default.
    let Some(server) = testing::server("postgres") else { return };
    let error = refusal(&with(server.url(), "tls=require"));
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("does not support TLS"), "{error}");
}

#[test]
fn named_unix_socket_is_used() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let Some(socket) = server.socket() else { panic!("{engine} has no socket") };
        let url = with(server.url(), &format!("socket={}", socket.display()));
        let facts = open(&url).unwrap().describe().unwrap_or_else(|e| panic!("{url}: {e}"));
        assert_eq!(facts.transport, "Unix socket");
        let error = refusal(&url.replace(".sock", ".nothing").replace(".s.PGSQL.", ".nothing/.s.PGSQL."));
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{engine}: {error}");
    }
}

#[test]
fn client_sends_its_certificate_if_server_requests_one() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let ca = server.ca().unwrap().display().to_string();
        let [certificate, key] = server.client_certificate().unwrap().map(|path| path.display().to_string());
        let (user, code) = match engine {
            "postgres" => {
                let hba = server.ca().unwrap().with_file_name("data").join("pg_hba.conf");
                std::fs::write(hba, "local all all trust\nhostssl all all 127.0.0.1/32 cert\n").unwrap();
                let socket = with(server.url(), &format!("socket={}", server.socket().unwrap().display()));
                let reload = super::tables::raw(&["SELECT pg_reload_conf()"]);
                once(&mut *connect(&socket).unwrap(), &reload, &[]).unwrap();
                ("kurabe", "28000")
            }
            _ if !super::methods::has_mariadb_program() => continue,
            _ => {
                let made = "CREATE USER shows@'%' REQUIRE X509; GRANT ALL ON kurabe.* TO shows@'%'";
                super::methods::administer(&server, made);
                ("shows:", "1045")
            }
        };
        let (scheme, _) = server.url().split_once("://").unwrap();
        let url = format!("{scheme}://{user}@127.0.0.1:{}/kurabe", server.port());
        let own = format!("ca={ca}&cert={certificate}&key={key}");
        let mut ways = vec![
            (format!("tls=verify&ca={ca}"), own.clone()),
            ("tls=require".to_owned(), format!("tls=require&cert={certificate}&key={key}")),
        ];
        if engine == "postgres" {
            ways.push((
                format!("sslmode=verify-ca&sslrootcert={ca}"),
                format!("sslmode=verify-full&sslrootcert={ca}&sslcert={certificate}&sslkey={key}"),
            ));
        }
        for (without, showing) in &ways {
            // The server may still be reloading its rules.
            let error = (0..100)
                .find_map(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    connect(&with(&url, without)).err()
                })
                .unwrap();
            assert_eq!(
                (error.kind(), error.server_code()),
                (ErrorKind::Denied, Some(code)),
                "{engine}: {error}"
            );
            let mut session =
                connect(&with(&url, showing)).unwrap_or_else(|e| panic!("{engine} {showing}: {e}"));
            once(&mut *session, &Operation::Ping, &[]).unwrap();
            session.close().unwrap();
        }
        let error = open(&with(&url, &format!("cert={ca}&key={key}"))).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

#[test]
fn only_sslmode_verify_full_checks_host_name() {
    let Some(server) = testing::server_with("postgres", StartOptions::with_tls) else { return };
    let ca = server.ca().unwrap().display().to_string();
    // This loopback address is not in the certificate.
    let elsewhere = server.url().replace("127.0.0.1", "127.0.0.2");
    let listen = ([127, 0, 0, 2], 0).into();
    let to = kurabe_relay::Server::local(server.port());
    let relay = Relay::start(listen, to, |_| Arc::new(kurabe_relay::Through)).unwrap();
    let port = relay.address().port();
    let elsewhere = elsewhere.replace(&format!(":{}", server.port()), &format!(":{port}"));
    let url = with(&elsewhere, &format!("sslrootcert={ca}"));
    connect(&with(&url, "sslmode=verify-ca")).unwrap_or_else(|error| panic!("{error}"));
    let error = refusal(&with(&url, "sslmode=verify-full"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    // Anybody can have a certificate of the system's authorities.
    let error = refusal(&with(&elsewhere, "sslmode=verify-ca&sslrootcert=system"));
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    // No certificate authority of this system signed the certificate.
    let error = refusal(&with(server.url(), "sslmode=verify-full&sslrootcert=system"));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[test]
fn target_sets_postgres_session_settings() {
    let Some(server) = testing::server("postgres") else { return };
    let mut session = connect(server.url()).unwrap();
    once(&mut *session, &super::tables::raw(&["CREATE SCHEMA \"my shop\""]), &[]).unwrap();
    let options =
        "search_path=%22my%20shop%22,public&options=-c%20work_mem%3D7MB%20-c%20application_name%3Da\\%20b";
    let url = with(server.url(), options);
    let driver = open(&url).unwrap();
    let mut namespace = driver.namespace().unwrap();
    let table = super::common::table("kurabe_schema");
    namespace.create(&table).unwrap();
    let mut session = connect(&url).unwrap();
    let found = super::tables::raw(&[
        "SELECT schemaname, current_setting('work_mem') FROM pg_tables WHERE tablename = 'kurabe_schema'",
    ]);
    let found = once(&mut *session, &found, &[]).unwrap();
    let field = |n| found.field_bytes(0, n).map(String::from_utf8_lossy);
    assert_eq!((field(0).as_deref(), field(1).as_deref()), (Some("my shop"), Some("7MB")));
    namespace.remove("kurabe_schema").unwrap();
    namespace.finish().unwrap();
}
