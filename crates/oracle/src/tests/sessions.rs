//! Requests of a session and their order, commits and rollbacks, and containment of the crate's panics.

use super::super::link::Link;
use super::super::session::OracleSession;
use super::config;
use super::peer::{Answer, Peer, Request};
use kurabe_core::collection::Field;
use kurabe_driver_common::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ALLOWED: Duration = Duration::from_secs(2);

/// A session on the fake server, without the query for the sort order.
fn session(peer: &Peer, rest: &str) -> OracleSession {
    let config = config(&peer.url(rest));
    config.sorts_by_language.set(false).unwrap();
    let link = Link::connect(&config, ALLOWED).unwrap();
    OracleSession::new(link, &config)
}

fn plain() -> Arc<Collection> {
    let fields = vec![
        Field { name: "id", kind: FieldType::Int },
        Field { name: "word", kind: FieldType::Text { max: 20 } },
    ];
    Arc::new(Collection::new("kurabe_plain", fields, vec![0]))
}

fn with_lob() -> Arc<Collection> {
    let fields =
        vec![Field { name: "id", kind: FieldType::Int }, Field { name: "data", kind: FieldType::LongBytes }];
    Arc::new(Collection::new("kurabe_lob", fields, vec![0]))
}

fn run(session: &mut OracleSession, operation: &Operation, parameters: &[Value<'_>]) -> Result<u64> {
    let prepared = session.prepare(operation)?;
    let mut out = Reply::new();
    let done = session.execute(&prepared, parameters, &mut out);
    session.release(prepared)?;
    done.map(|()| out.affected())
}

fn insert() -> Operation {
    Operation::Insert { collection: plain() }
}

fn many() -> Operation {
    Operation::InsertMany { collection: plain(), rows: 3 }
}

const ROW: [Value<'_>; 2] = [Value::Int(1), Value::Text("one")];
const THREE: [Value<'_>; 6] =
    [Value::Int(1), Value::Text("one"), Value::Int(2), Value::Text(""), Value::Int(3), Value::Null];
const DUPLICATE: Answer = Answer::Error(1, "ORA-00001: unique constraint (SCOTT.SYS_C1) violated");

/// The types of the requests: E(xecute), A(gain), C(ommit), R(ollback), P(ing).
fn order(peer: &Peer) -> String {
    let letter = |request: &Request| match request {
        Request::Execute(_) => 'E',
        Request::Again(_) => 'A',
        Request::Commit => 'C',
        Request::Rollback => 'R',
        Request::Ping => 'P',
        Request::Logoff | Request::Other(_) => '?',
    };
    peer.requests().iter().map(letter).collect()
}

#[test]
fn change_is_committed_and_its_statement_parsed_once() {
    let peer = Peer::start(|_| Answer::Rows(1));
    let mut session = session(&peer, "/shop");
    assert_eq!(run(&mut session, &insert(), &ROW), Ok(1));
    let requests = peer.requests();
    assert_eq!(
        requests,
        [
            Request::Execute("INSERT INTO \"kurabe_plain\" (\"id\", \"word\") VALUES (:1, :2)".to_owned()),
            Request::Commit
        ]
    );
    for _ in 0..3 {
        assert_eq!(run(&mut session, &insert(), &ROW), Ok(1));
    }
    assert_eq!(order(&peer), "ACACAC");
    run(&mut session, &Operation::Ping, &[]).unwrap();
    assert_eq!(order(&peer), "P");
    Box::new(session).close().unwrap();
}

#[test]
fn without_a_statement_cache_each_execution_is_parsed() {
    let peer = Peer::start(|_| Answer::Rows(1));
    let mut session = session(&peer, "/shop?statement_cache=0");
    for _ in 0..3 {
        run(&mut session, &insert(), &ROW).unwrap();
    }
    assert_eq!(order(&peer), "ECECEC");
}

#[test]
fn transaction_commits_once_at_its_end() {
    let peer = Peer::start(|_| Answer::Rows(1));
    let mut session = session(&peer, "/shop");
    run(&mut session, &Operation::Begin, &[]).unwrap();
    for _ in 0..3 {
        run(&mut session, &insert(), &ROW).unwrap();
    }
    run(&mut session, &Operation::Commit, &[]).unwrap();
    assert_eq!(order(&peer), "EAAC");
    run(&mut session, &Operation::Begin, &[]).unwrap();
    run(&mut session, &insert(), &ROW).unwrap();
    run(&mut session, &Operation::Rollback, &[]).unwrap();
    run(&mut session, &insert(), &ROW).unwrap();
    assert_eq!(order(&peer), "ARAC");
}

#[test]
fn many_rows_are_one_request_and_rolled_back_together() {
    let calls = AtomicUsize::new(0);
    let peer =
        Peer::start(
            move |_| if calls.fetch_add(1, Ordering::SeqCst) == 0 { Answer::Rows(3) } else { DUPLICATE },
        );
    let mut session = session(&peer, "/shop");
    assert_eq!(run(&mut session, &many(), &THREE), Ok(3));
    assert_eq!(order(&peer), "EC");
    let error = run(&mut session, &many(), &THREE).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("ORA-00001")));
    assert_eq!(order(&peer), "AR");
}

#[test]
fn within_transaction_many_rows_are_rolled_back_to_savepoint() {
    let peer = Peer::start(|request| match request {
        Request::Execute(sql) if sql.starts_with("INSERT") => DUPLICATE,
        _ => Answer::Rows(0),
    });
    let mut session = session(&peer, "/shop");
    run(&mut session, &Operation::Begin, &[]).unwrap();
    run(&mut session, &many(), &THREE).unwrap_err();
    let requests = peer.requests();
    let texts: Vec<&str> = requests
        .iter()
        .map(|request| match request {
            Request::Execute(sql) => sql.split(' ').next().unwrap_or_default(),
            _ => "?",
        })
        .collect();
    assert_eq!(texts, ["SAVEPOINT", "INSERT", "ROLLBACK"], "{requests:?}");
}

#[test]
fn row_with_lob_is_updated_and_inserted_only_if_missing() {
    let there = Peer::start(|_| Answer::Rows(1));
    let put = Operation::Put { collection: with_lob() };
    let long = vec![7; 100_000];
    let row = [Value::Int(1), Value::Bytes(&long)];
    assert_eq!(run(&mut session(&there, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&there), "EC");
    let absent = Peer::start(|request| {
        Answer::Rows(u64::from(matches!(request, Request::Execute(sql) if sql.starts_with("INSERT"))))
    });
    assert_eq!(run(&mut session(&absent, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&absent), "EEC");
    // Another session inserts the row in between.
    let updates = AtomicUsize::new(0);
    let raced = Peer::start(move |request| match request {
        Request::Execute(sql) if sql.starts_with("INSERT") => DUPLICATE,
        _ => Answer::Rows(u64::from(updates.fetch_add(1, Ordering::SeqCst) > 0)),
    });
    assert_eq!(run(&mut session(&raced, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&raced), "EEAC");
}

#[test]
fn server_error_is_reported_and_session_remains_usable() {
    let calls = AtomicUsize::new(0);
    let peer = Peer::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::Error(1_653, "ORA-01653: unable to extend table SCOTT.kurabe_plain by 128"),
        _ => Answer::Rows(1),
    });
    let mut session = session(&peer, "/shop");
    let error = run(&mut session, &insert(), &ROW).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("ORA-01653")));
    assert!(error.to_string().contains("tablespace is full"), "{error}");
    assert_eq!(run(&mut session, &insert(), &ROW), Ok(1));
}

#[test]
fn wrong_password_is_denied_and_not_shown() {
    let peer = Peer::denying(1_017, "ORA-01017: invalid credential or not authorized; logon denied");
    let error = Link::connect(&config(&peer.url("/shop")), ALLOWED).err().unwrap();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("ORA-01017")));
    let text = error.to_string();
    assert!(text.contains("check the user and the password") && !text.contains("hunter2"), "{text}");
    let peer = Peer::denying(28_000, "ORA-28000: The account is locked.");
    let error = Link::connect(&config(&peer.url("/shop")), ALLOWED).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

/// Executes on a fake server with this reply; returns the error, and that of the next call.
fn errors_of(answer: Answer, operation: &Operation, row: &[Value<'_>]) -> (Error, Error) {
    let peer = Peer::start(move |_| answer.clone());
    let mut session = session(&peer, "/shop");
    let began = Instant::now();
    let first = run(&mut session, operation, row).unwrap_err();
    let second = run(&mut session, operation, row).unwrap_err();
    drop(session);
    assert!(began.elapsed() < ALLOWED * 4, "{:?}", began.elapsed());
    (first, second)
}

#[test]
fn panic_of_the_crate_becomes_an_error() {
    for (operation, row) in [(insert(), &ROW[..]), (many(), &THREE[..])] {
        let (first, second) = errors_of(Answer::BatchErrors, &operation, row);
        assert_eq!(first.kind(), ErrorKind::Protocol, "{first}");
        let text = first.to_string();
        assert!(text.contains("oracledb crate") && text.contains("not yet implemented"), "{text}");
        assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    }
}

#[test]
fn invalid_or_missing_reply_is_an_error() {
    let (first, second) = errors_of(Answer::Nonsense, &insert(), &ROW);
    assert_eq!(first.kind(), ErrorKind::Protocol, "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    let (first, second) = errors_of(Answer::End, &insert(), &ROW);
    assert_eq!(first.kind(), ErrorKind::ConnectionLost, "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    // Twice the timeout: once for the reply, once for the reply to the interrupt.
    let (first, second) = errors_of(Answer::Silence, &insert(), &ROW);
    assert!(matches!(first.kind(), ErrorKind::Timeout | ErrorKind::ConnectionLost), "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
}

#[test]
fn required_durability_is_one_statement_when_connecting() {
    let peer = Peer::start(|_| Answer::Rows(0));
    let mut config = config(&peer.url("/shop"));
    config.sorts_by_language.set(true).unwrap();
    config.wait_for_redo = Some(true);
    Link::connect(&config, ALLOWED).unwrap();
    let expected =
        "ALTER SESSION SET NLS_COMP = BINARY NLS_SORT = BINARY COMMIT_LOGGING = IMMEDIATE COMMIT_WAIT = WAIT";
    assert_eq!(peer.requests().first(), Some(&Request::Execute(expected.to_owned())));
}
