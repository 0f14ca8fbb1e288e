//! What of the Redis driver only a real server shows: what it refuses, what it says of itself, and that it touches
//! nothing that is not its own.

use crate::common::{once, open};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_testbed::{Server, testing};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

fn connect(url: &str) -> Result<Box<dyn Session>> {
    open(url).connect(&ConnectOptions::within(Duration::from_secs(5)))
}

fn refusal(url: &str) -> Error {
    connect(url).map(drop).unwrap_err()
}

/// The server's URL for another user.
fn by(server: &Server, user: &str) -> String {
    server.url().replacen(testing::login(server), user, 1)
}

/// Sends a line to a server behind the driver's back, and gives the first line of the answer; for a string the second.
fn say(server: &Server, line: &str) -> String {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    if first.starts_with('$') && first != "$-1" { lines.next().unwrap() } else { first }
}

fn pieces(name: &str) -> Arc<Collection> {
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 72 } },
        Field { name: "sub", kind: FieldType::Int },
        Field { name: "piece", kind: FieldType::LongBytes },
    ];
    Arc::new(Collection::new(name, fields, vec![0, 1]))
}

fn plain(name: &str) -> Arc<Collection> {
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 72 } },
        Field { name: "data", kind: FieldType::LongBytes },
    ];
    Arc::new(Collection::new(name, fields, vec![0]))
}

#[test]
fn rows_of_several_hashes_go_in_together_or_not_at_all() {
    let Some(server) = testing::server("redis") else { return };
    for options in ["", "?ttl=100"] {
        let driver = open(&format!("{}{options}", server.url()));
        let rows = pieces("kurabe_test_many");
        driver.namespace().unwrap().create(&rows).unwrap();
        let mut session = connect(&format!("{}{options}", server.url())).unwrap();
        let session = session.as_mut();
        // More pairs than a script can hand on at once, over two hashes.
        let count = 3_000;
        let many = Operation::InsertMany { collection: rows.clone(), rows: count };
        let row = |n: usize, first: i64| {
            [Value::Text(if n < 2_000 { "a" } else { "b" }), Value::Int(first + n as i64), Value::Bytes(b"x")]
        };
        let all = |first| (0..count).flat_map(|n| row(n, first)).collect::<Vec<_>>();
        // Once by its text, then by its digest.
        for first in [0, 10_000] {
            assert_eq!(once(session, &many, &all(first)).unwrap().affected(), count as u64);
        }
        let find = Operation::FindEqual { collection: rows.clone(), by: vec![0], fields: vec![1, 2] };
        let found = |session: &mut dyn Session, id| once(session, &find, &[Value::Text(id)]).unwrap();
        let reply = found(session, "b");
        assert_eq!(
            (reply.rows(), reply.field_int(0, 0), reply.field_int(1_000, 0)),
            (2_000, Some(2_000), Some(12_000))
        );
        // The last row of all is there already.
        let error = once(session, &many, &all(7_000 + 3_001 - 1)).unwrap_err();
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("NX")));
        assert_eq!(found(session, "a").rows(), 4_000);
        assert_eq!(found(session, "b").rows(), 2_000);
        // The server forgets the script between two requests.
        assert_eq!(say(&server, "SCRIPT FLUSH"), "+OK");
        assert_eq!(once(session, &many, &all(20_000)).unwrap().affected(), count as u64);
        let update = Operation::Update { collection: rows.clone(), fields: vec![2] };
        let change = |session: &mut dyn Session, sub| {
            once(session, &update, &[Value::Bytes(b"y"), Value::Text("a"), Value::Int(sub)])
                .unwrap()
                .affected()
        };
        assert_eq!((change(session, 5), change(session, 5), change(session, -5)), (1, 1, 0));
        let left = say(&server, "TTL kurabe_test_many~kurabe:a");
        assert_eq!(left == ":-1", options.is_empty(), "{left}");
        driver.namespace().unwrap().remove(&rows.name).unwrap();
    }
}

#[test]
fn the_digest_of_the_script_is_the_servers() {
    let Some(server) = testing::server("redis") else { return };
    let driver = open(server.url());
    let rows = pieces("kurabe_test_digest");
    driver.namespace().unwrap().create(&rows).unwrap();
    let mut session = connect(server.url()).unwrap();
    let many = Operation::InsertMany { collection: rows, rows: 1 };
    for n in 0..3 {
        once(session.as_mut(), &many, &[Value::Text("a"), Value::Int(n), Value::Null]).unwrap();
    }
    // One text, and then nothing but digests that the server knew.
    let mut stream = testing::connected(&server).unwrap();
    stream.write_all(b"INFO commandstats\r\nINFO errorstats\r\nQUIT\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.contains("cmdstat_evalsha:calls=2,") && said.contains("cmdstat_eval:calls=1,"), "{said}");
    assert!(!said.contains("NOSCRIPT"), "{said}");
}

#[test]
fn a_row_expires_when_the_url_says_so() {
    let Some(server) = testing::server("redis") else { return };
    let url = format!("{}?ttl=100", server.url());
    let driver = open(&url);
    let rows = plain("kurabe_test_ttl");
    driver.namespace().unwrap().create(&rows).unwrap();
    let mut session = connect(&url).unwrap();
    let row = [Value::Text("a"), Value::Bytes(b"x")];
    once(session.as_mut(), &Operation::Insert { collection: rows.clone() }, &row).unwrap();
    let left: i64 = say(&server, "TTL kurabe_test_ttl~kurabe:a").trim_start_matches(':').parse().unwrap();
    assert!((98..=100).contains(&left), "{left}");
    assert_eq!(say(&server, "GET kurabe_test_ttl~kurabe:a"), "x");
    let facts = driver.describe().unwrap();
    assert!(facts.settings.iter().any(|s| s.name.starts_with("ttl") && s.value == "100 s"), "{facts:?}");
    assert!(facts.notes.iter().any(|note| note.contains("expires 100 s")), "{facts:?}");
}

#[test]
fn only_what_the_marker_knows_is_touched() {
    let Some(server) = testing::server("redis") else { return };
    let driver = open(server.url());
    for line in ["SET users:1 theirs", "SET kurabe_test_b:1 theirs", "SET kurabe_test_ab:1 theirs"] {
        assert_eq!(say(&server, line), "+OK");
    }
    let mut namespace = driver.namespace().unwrap();
    let (ours, foreign) = (plain("kurabe_test_a"), plain("kurabe_test_b"));
    let results = [namespace.create(&foreign), namespace.clear(&foreign), namespace.remove(&foreign.name)];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
        assert!(error.to_string().contains("kurabe_test_b:1"), "{error}");
    }
    namespace.create(&ours).unwrap();
    let mut session = connect(server.url()).unwrap();
    let put = Operation::Put { collection: ours.clone() };
    for n in 0..3_000 {
        once(session.as_mut(), &put, &[Value::Text(&n.to_string()), Value::Bytes(b"x")]).unwrap();
    }
    namespace.clear(&ours).unwrap();
    assert_eq!(say(&server, "DBSIZE"), ":4", "three of theirs, and the marker");
    let prepared = session.prepare(&put).unwrap();
    // Of this driver's own sessions none writes into a collection that is no more.
    let mut same = driver.connect(&ConnectOptions::default()).unwrap();
    let stale = same.prepare(&put).unwrap();
    namespace.remove(&ours.name).unwrap();
    assert!(same.execute(&stale, &[Value::Text("a"), Value::Null], &mut Reply::new()).is_err());
    session.release(prepared).unwrap();
    namespace.finish().unwrap();
    assert_eq!(say(&server, "DBSIZE"), ":3");
    assert_eq!(say(&server, "GET kurabe_test_ab:1"), "theirs");

    assert_eq!(say(&server, "SET kurabe_marker theirs"), "+OK");
    assert_eq!(namespace.list().unwrap_err().kind(), ErrorKind::NotOurs);
    assert_eq!(namespace.create(&ours).unwrap_err().kind(), ErrorKind::NotOurs);
    assert_eq!(say(&server, "GET kurabe_marker"), "theirs");
}

#[test]
fn a_claim_ends_by_itself_and_is_not_taken_from_another() {
    let Some(server) = testing::server("redis") else { return };
    let driver = open(server.url());
    let mut one = driver.namespace().unwrap();
    one.claim("first").unwrap();
    let left: i64 = say(&server, "PTTL kurabe_claim").trim_start_matches(':').parse().unwrap();
    assert!((25_000..=30_000).contains(&left), "{left}");
    // The same run may reach the database by two targets.
    driver.namespace().unwrap().claim("first").unwrap();
    // It ended, say because the server was held still, and somebody else has it now.
    assert_eq!(say(&server, "SET kurabe_claim other"), "+OK");
    drop(one);
    assert_eq!(say(&server, "GET kurabe_claim"), "other");
}

#[test]
fn what_a_user_may_not_read_is_unknown() {
    let Some(server) = testing::server("redis") else { return };
    assert_eq!(say(&server, "ACL SETUSER bob on >secret ~kurabe_* +@all -@admin -info"), "+OK");
    let url = by(&server, "bob:secret");
    let facts = open(&url).describe().unwrap();
    assert_eq!((facts.durability, facts.limits.connections), (None, None));
    assert_eq!(facts.version, server.version(), "from the greeting");
    assert!(
        facts.notes.iter().any(|note| note.contains("unknown") && note.contains("NOPERM")),
        "{:?}",
        facts.notes
    );
    // Beyond that it can be worked with: no right is needed but those on its own keys.
    let driver = open(&url);
    let mut namespace = driver.namespace().unwrap();
    namespace.claim("run").unwrap();
    let rows = plain("kurabe_test_acl");
    namespace.create(&rows).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    once(session.as_mut(), &Operation::Put { collection: rows.clone() }, &[Value::Text("a"), Value::Null])
        .unwrap();
    namespace.remove(&rows.name).unwrap();
    namespace.finish().unwrap();
}

#[test]
fn user_without_a_password_is_let_in() {
    let Some(server) = testing::server("redis") else { return };
    assert_eq!(say(&server, "ACL SETUSER bob on nopass ~* +@all"), "+OK");
    assert_eq!(say(&server, "ACL SETUSER ann on >secret ~* +@all"), "+OK");
    for user in ["bob", "bob:"] {
        let mut session = connect(&by(&server, user)).unwrap();
        once(session.as_mut(), &Operation::Ping, &[]).unwrap();
    }
    let error = refusal(&by(&server, "ann"));
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("WRONGPASS")), "{error}");
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let choose =
        |options: kurabe_testbed::StartOptions| options.with_password("hunter2").set("maxclients", 3);
    let Some(server) = testing::server_with("redis", choose) else { return };
    let with = |who: &str| server.url().replacen("//", &format!("//{who}@"), 1);
    for (url, kind, code) in [
        (server.url().to_owned(), ErrorKind::Denied, "NOAUTH"),
        (with(":wrong-hunter"), ErrorKind::Denied, "WRONGPASS"),
        (with("nobody:hunter2"), ErrorKind::Denied, "WRONGPASS"),
        (format!("{}/99", with(":hunter2")), ErrorKind::NotFound, "ERR"),
    ] {
        let error = refusal(&url);
        assert_eq!((error.kind(), error.server_code()), (kind, Some(code)), "{error}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
    let sessions: Vec<_> = (0..3).map_while(|_| connect(&with(":hunter2")).ok()).collect();
    let error = refusal(&with(":hunter2"));
    assert_eq!(error.kind(), ErrorKind::Limit, "{error} after {}", sessions.len());
}

#[test]
fn a_full_memory_is_a_limit_and_the_session_goes_on() {
    let Some(server) = testing::server_with("redis", |options| options.set("maxmemory", "3mb")) else {
        return;
    };
    let driver = open(server.url());
    let rows = plain("kurabe_test_full");
    driver.namespace().unwrap().create(&rows).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let put = Operation::Put { collection: rows.clone() };
    let long = vec![1; 1_000_000];
    let full = (0..9).find_map(|n| {
        once(session.as_mut(), &put, &[Value::Text(&n.to_string()), Value::Bytes(&long)]).err()
    });
    let error = full.expect("nine megabytes do not go into three");
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("OOM")), "{error}");
    once(session.as_mut(), &Operation::Ping, &[]).unwrap();
    driver.namespace().unwrap().remove(&rows.name).unwrap();
}

#[test]
fn what_is_no_redis_is_an_error_and_no_hang() {
    for (answer, kind) in [
        (&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], ErrorKind::Protocol),
        (
            b"-DENIED Redis is running in protected mode because protected mode is enabled\r\n",
            ErrorKind::Denied,
        ),
        (b"", ErrorKind::ConnectionLost),
        (b"$5\r\nhel", ErrorKind::ConnectionLost),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(answer);
        });
        let error = refusal(&format!("redis://127.0.0.1:{port}"));
        assert_eq!(error.kind(), kind, "{error}");
        server.join().unwrap();
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    assert_eq!(refusal(&format!("redis://127.0.0.1:{port}")).kind(), ErrorKind::Timeout);
    drop(silent);
    let error = refusal(&format!("redis://127.0.0.1:{port}"));
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("nothing listens"), "{error}");
}

#[test]
fn nodes_of_clusters_and_sentinels_are_refused_by_name() {
    let Some(server) = testing::own_server_with("redis", |options| options.set("cluster-enabled", "yes"))
    else {
        return;
    };
    let error = open(server.url()).describe().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("node of a cluster"), "{error}");
    // A Sentinel is the same program, with a file of its own that it writes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sentinel.conf");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::fs::write(&file, format!("port {port}\nbind 127.0.0.1\n")).unwrap();
    let mut sentinel = std::process::Command::new(server.program())
        .arg(&file)
        .arg("--sentinel")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let url = format!("redis://127.0.0.1:{port}");
    let error = loop {
        match open(&url).describe() {
            Err(error)
                if error.kind() == ErrorKind::Unreachable && sentinel.try_wait().unwrap().is_none() =>
            {
                std::thread::yield_now();
            }
            described => break described.unwrap_err(),
        }
    };
    sentinel.kill().unwrap();
    sentinel.wait().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(
        error.to_string().contains("Sentinel") && error.to_string().contains("GET-MASTER-ADDR"),
        "{error}"
    );
}
