//! What of the memcached driver only a real server shows.

use crate::common::open;
use kurabe_core::ErrorKind;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_testbed::{Server, StartOptions, testing};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Sends a request to a server behind the driver's back, and gives so many lines of the answer.
fn say(server: &Server, request: &str, lines: usize) -> Vec<String> {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    BufReader::new(stream).lines().take(lines).map(Result::unwrap).collect()
}

#[test]
fn claim_expires_and_is_not_taken_from_another_run() {
    for settings in [&[][..], &[("C", "")]] {
        let choose = |options| {
            settings.iter().fold(options, |options: kurabe_testbed::StartOptions, (name, value)| {
                options.set(*name, value)
            })
        };
        let Some(server) = testing::server_with("memcached", choose) else { return };
        let driver = open(server.url());
        let mut one = driver.namespace().unwrap();
        one.claim("first").unwrap();
        // Seconds that it has left.
        let left = say(&server, "mg kurabe_claim t", 1).remove(0);
        let left: i64 = left.strip_prefix("HD t").unwrap().parse().unwrap();
        assert!((50..=60).contains(&left), "{left}");
        // The same run may reach the server by another target.
        let again = server.url().replace("127.0.0.1", "localhost");
        let mut same = open(&again).namespace().unwrap();
        same.claim("first").unwrap();
        drop(same);
        let error = open(&again).namespace().unwrap().claim("second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
        assert!(error.to_string().contains("run first"), "{error}");
        // It expired, say because this machine slept, and another run has it now.
        assert_eq!(say(&server, "set kurabe_claim 0 60 5\r\nother", 1), ["STORED"]);
        drop(one);
        assert_eq!(say(&server, "get kurabe_claim", 2)[1], "other");
        assert_eq!(say(&server, "delete kurabe_claim", 1), ["DELETED"]);
        driver.namespace().unwrap().claim("third").unwrap();
        assert_eq!(say(&server, "get kurabe_claim", 1), ["END"]);
    }
}

#[test]
fn server_that_speaks_the_binary_protocol_only_is_named_at_once() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new("memcached");
    command.args(["-B", "binary", "-l", "127.0.0.1", "-u", "root", "-p", &port.to_string()]);
    let Ok(mut server) = command.stderr(Stdio::null()).spawn() else { return };
    let began = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err()
        && began.elapsed() < Duration::from_secs(30)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let error = open(&format!("memcached://127.0.0.1:{port}")).describe().map(drop).unwrap_err();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(error.to_string().contains("binary protocol only"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn server_with_tls_or_a_file_of_users_is_used() {
    let Some(server) = testing::server_with("memcached", StartOptions::with_tls) else { return };
    let ca = server.ca().unwrap().display().to_string();
    for options in [format!("ca={ca}"), "tls=require".to_owned()] {
        let driver = open(&format!("{}?{options}", server.url()));
        let facts = driver.describe().unwrap_or_else(|e| panic!("{options}: {e}"));
        assert!(facts.transport.starts_with("TCP with TLS"), "{}", facts.transport);
        driver.namespace().unwrap().claim("with TLS").unwrap();
    }
    let refused = |url: &str| open(url).describe().map(drop).unwrap_err();
    let error = refused(&format!("{}?tls=verify", server.url()));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let error = refused(server.url());
    assert!(error.to_string().contains("tls=require"), "{error}");

    let (before, after) = (testing::login(&server), format!("{}?tls=require", server.url()));
    let url = |user: &str| after.replacen(&format!("{before}@"), user, 1);
    for user in ["kurabe:wrong@", ""] {
        let error = refused(&url(user));
        assert_eq!(error.kind(), ErrorKind::Denied, "{user}: {error}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
}

#[test]
fn server_with_more_keys_than_an_answer_may_have_bytes_is_used() {
    let Some(server) = testing::server("memcached") else { return };
    let mut stream = testing::connected(&server).unwrap();
    // 100,000 lines of the listing, of 300 bytes each: 30 MB.
    for thousand in 0..100 {
        let keys = (0..1_000).map(|n| format!("set {:0240} 0 0 1 noreply\r\nx\r\n", thousand * 1_000 + n));
        stream.write_all(keys.collect::<String>().as_bytes()).unwrap();
    }
    stream.write_all(b"mn\r\n").unwrap();
    assert_eq!(BufReader::new(&stream).lines().next().unwrap().unwrap(), "MN");
    let items = || {
        let stats = say(&server, "stats\r\nquit", 1_000);
        stats.iter().find_map(|line| line.strip_prefix("STAT curr_items ")?.parse::<u64>().ok()).unwrap()
    };
    assert!(items() >= 90_000, "{}", items());
    let driver = open(server.url());
    let mut namespace = driver.namespace().unwrap();
    namespace.claim("many").unwrap();
    let fields = vec![Field { name: "id", kind: FieldType::Int }];
    let collection = Collection::new("kurabe_many", fields, vec![0]);
    // To clear one that exists, keys are listed.
    for _ in 0..2 {
        namespace.create(&collection).unwrap();
    }
    assert!(items() >= 90_000, "keys of others stay: {}", items());
}
