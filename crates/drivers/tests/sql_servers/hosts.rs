//! Several hosts, addresses, services and bound passwords of PostgreSQL.

use super::common::{connect, once, open, refusal, with, with_password};
use super::tables::raw;
use kurabe_core::ErrorKind;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::observation::Endpoint;
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::testing;
use std::net::TcpListener;

/// The first field of a query's answer.
fn value(session: &mut dyn Session, sql: &str) -> String {
    let reply: Reply = once(session, &raw(&[sql]), &[]).unwrap();
    String::from_utf8_lossy(reply.field_bytes(0, 0).unwrap_or_default()).into_owned()
}

#[test]
fn first_host_that_is_wanted_is_the_one_of_the_run() {
    let Some(server) = testing::server("postgres") else { return };
    // A port at which nothing listens, now that it is closed.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (port, login) = (server.port(), testing::login(&server));
    let url = |options: &str| {
        format!(
            "postgres://{login}@127.0.0.1:{closed},127.0.0.1:{port}/kurabe?application_name=mine{options}"
        )
    };
    for options in [
        "",
        "&target_session_attrs=read-write",
        "&target_session_attrs=primary",
        "&target_session_attrs=prefer-standby",
    ] {
        let driver = open(&url(options)).unwrap();
        driver.describe().unwrap_or_else(|e| panic!("{options}: {e}"));
        assert!(matches!(driver.endpoint(), Endpoint::Tcp { port: found, .. } if found == port), "{options}");
        let mut session = driver.connect(&ConnectOptions::default()).unwrap();
        assert_eq!(value(&mut *session, "SHOW application_name"), "mine");
    }
    let error = refusal(&url("&target_session_attrs=standby"));
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    assert!(lines[1].contains("nothing listens") && lines[2].ends_with("it is no standby"), "{lines:?}");
    // A refused user is not tried at the next host.
    let error = refusal(&format!("postgres://nobody:x@127.0.0.1:{port},127.0.0.1:{closed}/kurabe"));
    assert_ne!(error.kind(), ErrorKind::Unreachable, "{error}");
    // An address needs no look-up of the name.
    let by_address = format!("postgres://{login}@nowhere.invalid:{port}/kurabe?hostaddr=127.0.0.1");
    connect(&by_address).unwrap();
}

#[test]
fn password_is_bound_to_the_certificate_if_wanted() {
    let choose = |options: kurabe_testbed::StartOptions| options.with_tls().with_password("secret");
    let Some(server) = testing::server_with("postgres", choose) else { return };
    let url = with_password(server.url(), "secret");
    for (options, works) in [
        ("tls=require&channel_binding=require", true),
        ("tls=require", true),
        ("tls=require&channel_binding=disable", true),
        ("tls=off", true),
        ("tls=off&channel_binding=require", false),
    ] {
        let connected = connect(&with(&url, options)).map(drop);
        assert_eq!(connected.is_ok(), works, "{options}: {connected:?}");
        if let Err(error) = connected {
            assert!(error.to_string().contains("channel_binding=require"), "{error}");
        }
    }
    // More than all buffers hold in both directions, encrypted.
    let driver = open(&with(&url, "tls=require")).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let long = "x".repeat(2_000);
    let prepared = session.prepare(&raw(&["SELECT repeat(", "::text, 2)"])).unwrap();
    let values = vec![Value::Text(&long); 4_000];
    let mut replies: Vec<Reply> = values.iter().map(|_| Reply::new()).collect();
    session.pipeline(&prepared, &values, &mut replies).unwrap();
    let doubled = long.repeat(2);
    assert!(replies.iter().all(|reply| reply.field_bytes(0, 0) == Some(doubled.as_bytes())));
}
