//! What a session sends and in what order, what it commits and takes back, and that it survives the crate's panics.

use super::super::link::Link;
use super::super::session::OracleSession;
use super::config;
use super::peer::{Answer, Asked, Peer};
use crate::prelude::*;
use kurabe_core::collection::Field;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const ALLOWED: Duration = Duration::from_secs(2);

/// A session on the peer; not asked how it sorts, which takes a query.
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

/// The kinds of what was asked: E(xecute), A(gain), C(ommit), R(ollback), P(ing).
fn order(peer: &Peer) -> String {
    let letter = |asked: &Asked| match asked {
        Asked::Execute(_) => 'E',
        Asked::Again(_) => 'A',
        Asked::Commit => 'C',
        Asked::Rollback => 'R',
        Asked::Ping => 'P',
        Asked::Logoff | Asked::Other(_) => '?',
    };
    peer.asked().iter().map(letter).collect()
}

#[test]
fn a_change_is_committed_and_its_statement_parsed_once() {
    let peer = Peer::start(|_| Answer::Rows(1));
    let mut session = session(&peer, "/shop");
    assert_eq!(run(&mut session, &insert(), &ROW), Ok(1));
    let asked = peer.asked();
    assert_eq!(
        asked,
        [
            Asked::Execute("INSERT INTO \"kurabe_plain\" (\"id\", \"word\") VALUES (:1, :2)".to_owned()),
            Asked::Commit
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
fn a_transaction_commits_once_at_its_end() {
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
fn many_rows_are_one_request_and_are_taken_back_together() {
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
fn within_a_transaction_many_rows_are_taken_back_to_a_savepoint() {
    let peer = Peer::start(|asked| match asked {
        Asked::Execute(sql) if sql.starts_with("INSERT") => DUPLICATE,
        _ => Answer::Rows(0),
    });
    let mut session = session(&peer, "/shop");
    run(&mut session, &Operation::Begin, &[]).unwrap();
    run(&mut session, &many(), &THREE).unwrap_err();
    let asked = peer.asked();
    let texts: Vec<&str> = asked
        .iter()
        .map(|asked| match asked {
            Asked::Execute(sql) => sql.split(' ').next().unwrap_or_default(),
            _ => "?",
        })
        .collect();
    assert_eq!(texts, ["SAVEPOINT", "INSERT", "ROLLBACK"], "{asked:?}");
}

#[test]
fn a_row_with_a_lob_is_updated_and_inserted_only_where_there_is_none() {
    let there = Peer::start(|_| Answer::Rows(1));
    let put = Operation::Put { collection: with_lob() };
    let long = vec![7; 100_000];
    let row = [Value::Int(1), Value::Bytes(&long)];
    assert_eq!(run(&mut session(&there, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&there), "EC");
    let absent = Peer::start(|asked| {
        Answer::Rows(u64::from(matches!(asked, Asked::Execute(sql) if sql.starts_with("INSERT"))))
    });
    assert_eq!(run(&mut session(&absent, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&absent), "EEC");
    // Another session adds it in between.
    let updates = AtomicUsize::new(0);
    let raced = Peer::start(move |asked| match asked {
        Asked::Execute(sql) if sql.starts_with("INSERT") => DUPLICATE,
        _ => Answer::Rows(u64::from(updates.fetch_add(1, Ordering::SeqCst) > 0)),
    });
    assert_eq!(run(&mut session(&raced, "/shop"), &put, &row), Ok(1));
    assert_eq!(order(&raced), "EEAC");
}

#[test]
fn an_error_is_the_servers_in_words_and_the_session_goes_on() {
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
fn a_wrong_password_is_denied_and_not_repeated() {
    let peer = Peer::denying(1_017, "ORA-01017: invalid credential or not authorized; logon denied");
    let error = Link::connect(&config(&peer.url("/shop")), ALLOWED).err().unwrap();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("ORA-01017")));
    let text = error.to_string();
    assert!(text.contains("check the user and the password") && !text.contains("hunter2"), "{text}");
    let peer = Peer::denying(28_000, "ORA-28000: The account is locked.");
    let error = Link::connect(&config(&peer.url("/shop")), ALLOWED).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

/// Executes on a peer that answers like this; gives the error, and what comes of the next call.
fn ends(answer: Answer, operation: &Operation, row: &[Value<'_>]) -> (Error, Error) {
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
fn a_panic_of_the_crate_is_an_error_and_the_process_goes_on() {
    for (operation, row) in [(insert(), &ROW[..]), (many(), &THREE[..])] {
        let (first, second) = ends(Answer::BatchErrors, &operation, row);
        assert_eq!(first.kind(), ErrorKind::Protocol, "{first}");
        let text = first.to_string();
        assert!(text.contains("oracledb crate") && text.contains("not yet implemented"), "{text}");
        assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    }
}

#[test]
fn an_answer_that_is_none_or_no_answer_at_all() {
    let (first, second) = ends(Answer::Nonsense, &insert(), &ROW);
    assert_eq!(first.kind(), ErrorKind::Protocol, "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    let (first, second) = ends(Answer::End, &insert(), &ROW);
    assert_eq!(first.kind(), ErrorKind::ConnectionLost, "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
    // Twice the time allowed: once for the answer, once for the answer to the interrupt.
    let (first, second) = ends(Answer::Silence, &insert(), &ROW);
    assert!(matches!(first.kind(), ErrorKind::Timeout | ErrorKind::ConnectionLost), "{first}");
    assert_eq!(second.kind(), ErrorKind::ConnectionLost, "{second}");
}

#[test]
fn asking_for_durability_is_one_statement_when_connecting() {
    let peer = Peer::start(|_| Answer::Rows(0));
    let mut config = config(&peer.url("/shop"));
    config.sorts_by_language.set(true).unwrap();
    config.wait_for_redo = Some(true);
    Link::connect(&config, ALLOWED).unwrap();
    let expected =
        "ALTER SESSION SET NLS_COMP = BINARY NLS_SORT = BINARY COMMIT_LOGGING = IMMEDIATE COMMIT_WAIT = WAIT";
    assert_eq!(peer.asked().first(), Some(&Asked::Execute(expected.to_owned())));
}
