//! All authentication methods that these servers use.

use super::common::{connect, once, refusal, with};
use kurabe_core::ErrorKind;
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::Reply;
use kurabe_testbed::{Server, testing};
use std::process::Command;

/// The server's URL for another user.
fn as_user(server: &Server, user: &str, options: &str) -> String {
    let mut url = TargetUrl::parse(server.url()).unwrap();
    (url.user, url.password) = (None, None);
    url.options.remove("get_server_public_key");
    let (scheme, rest) = url.to_string().split_once("//").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let url = format!("{scheme}//{user}@{rest}");
    if options.is_empty() { url } else { with(&url, options) }
}

/// Creates users and procedures with the `mariadb` program, because not all such statements can be prepared.
pub fn administer(server: &Server, sql: &str) {
    administer_by(server, ";", sql);
}

/// As [`administer`], with another delimiter between statements.
pub fn administer_by(server: &Server, delimiter: &str, sql: &str) {
    let socket = server.socket().unwrap().display().to_string();
    let output = Command::new("mariadb")
        .env("MYSQL_PWD", server.password().unwrap())
        .args(["--no-defaults", "--user=root", "--delimiter", delimiter, "--socket", &socket])
        .args(["--execute", sql, "kurabe"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn works(url: &str) {
    for _ in 0..2 {
        let mut session: Box<dyn Session> = connect(url).unwrap_or_else(|e| panic!("{url}: {e}"));
        once(&mut *session, &Operation::Ping, &[]).unwrap();
        session.close().unwrap();
    }
}

pub fn has_mariadb_program() -> bool {
    Command::new("mariadb").arg("--version").output().is_ok()
}

#[test]
fn mysql_authenticates_with_and_without_its_cache() {
    let Some(server) = testing::server_with("mysql", testing_tls) else { return };
    if !has_mariadb_program() {
        return;
    }
    administer(
        &server,
        "CREATE USER full@'%' IDENTIFIED WITH caching_sha2_password BY 'pass word';
         CREATE USER nopass@'%' IDENTIFIED WITH caching_sha2_password BY '';
         GRANT ALL ON kurabe.* TO full@'%'; GRANT ALL ON kurabe.* TO nopass@'%';",
    );
    let socket = format!("socket={}", server.socket().unwrap().display());
    for options in ["get_server_public_key=true", "tls=require", &socket] {
        // Clears the password cache, so that the first of two connections does full authentication.
        administer(&server, "FLUSH PRIVILEGES");
        works(&as_user(&server, "full:pass%20word", options));
    }
    // Over plain TCP a false server could read the password, as MySQL's client says too.
    administer(&server, "FLUSH PRIVILEGES");
    let error = refusal(&as_user(&server, "full:pass%20word", ""));
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("2061")), "{error}");
    works(&as_user(&server, "full:pass%20word", "get_server_public_key=true"));
    works(&as_user(&server, "nopass", ""));
    let error = refusal(&as_user(&server, "full:wrong", "get_server_public_key=true"));
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("1045")), "{error}");
}

fn testing_tls(options: kurabe_testbed::StartOptions) -> kurabe_testbed::StartOptions {
    options.with_tls()
}

#[test]
fn mariadb_authenticates_with_old_and_new_method() {
    let Some(server) = testing::server("mariadb") else { return };
    if !has_mariadb_program() {
        return;
    }
    administer(
        &server,
        "INSTALL SONAME 'auth_ed25519';
         CREATE USER native@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('pass word');
         CREATE USER modern@'%' IDENTIFIED VIA ed25519 USING PASSWORD('pass word');
         GRANT ALL ON kurabe.* TO native@'%'; GRANT ALL ON kurabe.* TO modern@'%';",
    );
    works(&as_user(&server, "native:pass%20word", ""));
    works(&as_user(&server, "modern:pass%20word", ""));
    for user in ["native", "modern"] {
        let error = refusal(&as_user(&server, &format!("{user}:wrong"), ""));
        assert_eq!(error.kind(), ErrorKind::Denied, "{user}: {error}");
    }
}

/// Has the server ask for all passwords over TCP by one method. The socket stays open.
fn set_rules(server: &Server, session: &mut dyn Session, method: &str) {
    let asked = once(session, &super::tables::raw(&["SHOW hba_file"]), &[]).unwrap();
    let file = String::from_utf8(asked.field_bytes(0, 0).unwrap().to_vec()).unwrap();
    let address = TargetUrl::parse(server.url()).unwrap().host.unwrap();
    std::fs::write(file, format!("local all all trust\nhost all all {address}/32 {method}\n")).unwrap();
    once(session, &super::tables::raw(&["SELECT pg_reload_conf()"]), &[]).unwrap();
}

fn socket_url(server: &Server) -> String {
    with(server.url(), &format!("socket={}", server.socket().unwrap().display()))
}

#[test]
fn postgres_authenticates_with_md5_and_scram() {
    let Some(server) = testing::server("postgres") else { return };
    testing::make_superuser(&server);
    let mut session = connect(&socket_url(&server)).unwrap();
    // The characters of the last one have another normal form (RFC 4013).
    let passwords = [
        ("pass word", "pass%20word", "pass%20word"),
        ("pässwörd", "p%C3%A4ssw%C3%B6rd", "p%C3%A4ssw%C3%B6rd"),
        ("Ⅸ\u{a0}ª", "%E2%85%A8%C2%A0%C2%AA", "IX%20a"),
    ];
    for (at, (password, ..)) in passwords.iter().enumerate() {
        for method in ["md5", "scram-sha-256"] {
            once(
                &mut *session,
                &super::tables::raw(&[&format!("SET password_encryption = '{method}'")]),
                &[],
            )
            .unwrap();
            let role = format!("CREATE ROLE \"{method} {at}\" LOGIN PASSWORD '{password}'");
            once(&mut *session, &super::tables::raw(&[&role]), &[]).unwrap();
        }
    }
    for method in ["md5", "scram-sha-256"] {
        set_rules(&server, &mut *session, method);
        for (at, (_, escaped, normal)) in passwords.iter().enumerate() {
            let user = |password: &str| as_user(&server, &format!("{method}%20{at}:{password}"), "");
            // The server may still be reloading its rules.
            let refused = (0..100).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                connect(&user("wrong")).err()
            });
            let error = refused.unwrap_or_else(|| panic!("{method} {at} accepts any password"));
            assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("28P01")), "{error}");
            if method == "md5" {
                // MD5 knows no normal form.
                works(&user(escaped));
            } else {
                works(&user(normal));
                works(&user(escaped));
            }
        }
    }
}

#[test]
fn password_is_sent_in_plain_text_only_if_url_allows_it() {
    let Some(server) = testing::server_with("mariadb", |options| {
        options.with_tls().set("plugin_load_add", "auth_pam").set("pam_use_cleartext_plugin", "ON")
    }) else {
        return;
    };
    if !has_mariadb_program() {
        return;
    }
    administer(
        &server,
        "CREATE USER pam@'%' IDENTIFIED VIA pam USING 'kurabe_no_such_service'; GRANT ALL ON kurabe.* TO pam@'%'",
    );
    let socket = format!("socket={}", server.socket().unwrap().display());
    let verified = format!("tls=verify&ca={}", server.ca().unwrap().display());
    for options in ["", "tls=require", &socket, &verified] {
        let error = refusal(&as_user(&server, "pam:secret", options));
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, None), "{options}: {error}");
        assert!(error.to_string().contains("enable_cleartext_plugin=true"), "{options}: {error}");
    }
    // Now the server receives the password, and rejects it because PAM has no such service.
    let allowed = format!("{verified}&enable_cleartext_plugin=true");
    let error = refusal(&as_user(&server, "pam:secret", &allowed));
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("1045")), "{error}");
}

#[test]
fn closed_idle_connection_reports_server_error_and_is_not_used_again() {
    let Some(server) = testing::server_with("mysql", |options| options.set("wait_timeout", 1)) else {
        return;
    };
    let mut session = connect(server.url()).unwrap();
    let ping = session.prepare(&Operation::Ping).unwrap();
    let mut ask = || session.execute(&ping, &[], &mut Reply::new());
    ask().unwrap();
    // Without a request, which would restart the server's idle timeout.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let error = ask().unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::ConnectionLost, Some("4031")), "{error}");
    assert!(error.to_string().contains("inactivity"), "{error}");
    assert_eq!(ask().unwrap_err().kind(), ErrorKind::ConnectionLost);
}

#[test]
fn payload_over_server_limit_is_rejected_with_setting() {
    use kurabe_core::value::Value;
    let body = vec![b'x'; 3_000_000];
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server_with(engine, |options| options.set("max_allowed_packet", "2M"))
        else {
            continue;
        };
        let url = server.url();
        let driver = super::common::open(url).unwrap();
        assert_eq!(driver.describe().unwrap().limits.value_bytes.map(|limit| limit.most), Some(2_097_152));
        let mut namespace = driver.namespace().unwrap();
        let table = super::common::table("kurabe_limit");
        namespace.create(&table).unwrap();
        let mut session = connect(url).unwrap();
        let insert = Operation::Insert { collection: table };
        let row = |body| {
            [Value::Text("a"), Value::Bytes(body), Value::Null, Value::Null, Value::Null, Value::Time(0)]
        };
        let error = once(&mut *session, &insert, &row(&body)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{engine}: {error}");
        assert!(error.to_string().contains("max_allowed_packet"), "{engine}: {error}");
        once(&mut *session, &insert, &row(&body[..1_500_000])).unwrap();
        namespace.remove("kurabe_limit").unwrap();
    }
}
