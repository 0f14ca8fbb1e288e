//! Transports to a server: TCP, TLS, Unix sockets.

use super::common::{ENGINES, connect, once, open, with};
use kurabe_core::ErrorKind;
use kurabe_core::operation::Operation;
use kurabe_testbed::{StartOptions, testing};

#[test]
fn client_sends_its_certificate_if_server_requests_one() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let ca = server.ca().unwrap().display().to_string();
        let [certificate, key] = server.client_certificate().unwrap().map(|path| path.display().to_string());
        let (user, code) = match engine {
            "postgres" => {
                testing::make_superuser(&server);
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
