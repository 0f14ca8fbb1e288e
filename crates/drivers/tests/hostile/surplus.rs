//! Surplus replies are detected when a connection is closed.

use super::server::*;
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind};

fn connect(template: &str, port: u16) -> (Box<dyn Driver>, Box<dyn Session>) {
    let driver = open(&url(template, port));
    let session = driver.connect(&ConnectOptions::default()).unwrap();
    (driver, session)
}

/// Pings and closes with checks.
fn ping_and_close(template: &str, port: u16) -> Result<(), Error> {
    let (_driver, mut session) = connect(template, port);
    let ping = session.prepare(&Operation::Ping).unwrap();
    session.execute(&ping, &[], &mut Reply::new()).unwrap();
    session.close_checked()
}

/// URL, replies to the login, reply to a ping, the client's closing message, and the reply to that.
type Engine = (&'static str, Vec<u8>, Vec<u8>, &'static [u8], &'static [u8]);

fn engines() -> [Engine; 4] {
    let empty = [message(b'I', b""), message(b'Z', b"I")].concat();
    [
        (MYSQL, mysql_login(), mysql_ok(1), b"\x01\0\0\0\x01", b""),
        (POSTGRES, postgres_login(), empty, b"X\0\0\0\x04", b""),
        (REDIS, HELLO.to_vec(), b"+PONG\r\n".to_vec(), b"QUIT\r\n", b"+OK\r\n"),
        (MEMCACHED, VERSION.to_vec(), b"MN\r\n".to_vec(), b"quit\r\n", b""),
    ]
}

#[test]
fn connection_with_one_reply_per_request_closes_without_error() {
    let _alone = alone();
    for (template, login, pong, goodbye, farewell) in engines() {
        let port = until_goodbye([&login, &pong, farewell].concat(), goodbye);
        ping_and_close(template, port).unwrap_or_else(|error| panic!("{template}: {error}"));
    }
}

#[test]
fn duplicate_reply_is_protocol_error() {
    let _alone = alone();
    for (template, login, pong, goodbye, farewell) in engines() {
        let port = until_goodbye([&login, &pong, &pong, farewell].concat(), goodbye);
        let error = ping_and_close(template, port).expect_err(template);
        assert_eq!(error.kind(), ErrorKind::Protocol, "{template}: {error}");
        assert!(error.to_string().contains("more than was asked for"), "{template}: {error}");
    }
}

#[test]
fn connection_that_server_does_not_close_is_an_error() {
    let _alone = alone();
    for (template, login, pong, _, farewell) in engines() {
        let port = until_goodbye([&login, &pong, farewell].concat(), b"never sent");
        let error = ping_and_close(template, port).expect_err(template);
        assert_eq!(error.kind(), ErrorKind::Timeout, "{template}: {error}");
    }
}

#[test]
fn unsolicited_messages_are_not_replies() {
    let _alone = alone();
    let idle =
        packet(0, b"\xff\xbf\x0f#08S01The client was disconnected by the server because of inactivity.");
    let unsolicited = [
        idle.clone(),
        [message(b'S', b"TimeZone\0UTC\0"), message(b'N', b"SNOTICE\0\0")].concat(),
        b">1\r\n+x\r\n".to_vec(),
    ];
    for ((template, login, pong, goodbye, farewell), unsolicited) in engines().into_iter().zip(unsolicited) {
        let port = until_goodbye([&login, &pong, &unsolicited, farewell].concat(), goodbye);
        ping_and_close(template, port).unwrap_or_else(|error| panic!("{template}: {error}"));
    }
    // An error before the next request is the reason why that request fails.
    let port = until_goodbye([mysql_login(), mysql_ok(1), idle].concat(), b"\x01\0\0\0\x01");
    let (_driver, mut session) = connect(MYSQL, port);
    let ping = session.prepare(&Operation::Ping).unwrap();
    session.execute(&ping, &[], &mut Reply::new()).unwrap();
    let error = session.execute(&ping, &[], &mut Reply::new()).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::ConnectionLost, Some("4031")), "{error}");
}
