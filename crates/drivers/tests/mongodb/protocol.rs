//! The protocol, as a server of the tests sees it.

use super::fake::{Fake, Reaction, Request, alone, cursor, member};
use super::{collection_of, connect, open, run};
use bson::{Bson, Document, doc};
use kurabe_core::compression::Compression;
use kurabe_core::driver::{ConnectOptions, Support};
use kurabe_core::operation::Operation;
use kurabe_core::transfer::Fetch;
use kurabe_core::value::Value;
use kurabe_core::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Much more than a busy machine needs for an exchange.
const SLACK: Duration = Duration::from_secs(20);

fn ok() -> Reaction {
    Reaction::Answer(doc! { "ok": 1.0 })
}

fn written(n: i32) -> Reaction {
    Reaction::Answer(doc! { "n": n, "ok": 1.0 })
}

fn insert() -> Operation {
    Operation::Insert { collection: collection_of("kurabe_a") }
}

fn get() -> Operation {
    Operation::Get { collection: collection_of("kurabe_a"), fields: vec![1] }
}

const ROW: [Value<'static>; 2] = [Value::Int(1), Value::Bytes(b"x")];

fn failed(code: i32, name: &str) -> Document {
    doc! { "ok": 0.0, "errmsg": "it failed", "code": code, "codeName": name }
}

/// The session and the number of a command.
fn number(request: &Request) -> (Document, Option<i64>) {
    let lsid = request.command.get_document("lsid").unwrap().clone();
    (lsid, request.command.get_i64("txnNumber").ok())
}

/// The number of connections on which these requests came.
fn connections(requests: &[Request]) -> usize {
    let mut all: Vec<usize> = requests.iter().map(|request| request.connection).collect();
    all.dedup();
    all.len()
}

#[test]
fn commands_name_their_database_and_session_and_those_of_a_transaction_its_number() {
    let fake = Fake::greeting(
        |fake| member(true, &[fake.address()], None),
        |request| match request.name() {
            "find" => Reaction::Answer(cursor(0, "firstBatch", vec![doc! { "data": "x" }])),
            _ => written(1),
        },
    );
    let driver = open(&fake.url("?readConcernLevel=majority&w=majority"));
    let mut session = connect(driver.as_ref());
    for operation in [Operation::Begin, Operation::Commit, Operation::Begin, Operation::Rollback] {
        // A transaction without a command is none to the server.
        run(session.as_mut(), &operation, &[]).unwrap();
    }
    run(session.as_mut(), &insert(), &ROW).unwrap();
    run(session.as_mut(), &Operation::Begin, &[]).unwrap();
    run(session.as_mut(), &insert(), &ROW).unwrap();
    run(session.as_mut(), &get(), &ROW[..1]).unwrap();
    run(session.as_mut(), &Operation::Commit, &[]).unwrap();
    let [alone, first] = &*fake.requests("insert") else { panic!("{:?}", fake.requests("insert")) };
    assert_eq!(alone.command.get_str("$db").ok(), Some("db"));
    assert_eq!(alone.command.get_document("writeConcern").ok(), Some(&doc! { "w": "majority" }));
    let (lsid, outside) = number(alone);
    assert_eq!(outside, None);
    let (own, begun) = number(first);
    assert_eq!((&own, begun), (&lsid, Some(3)));
    let of = |command: &Document| {
        let is = |name: &str| command.get_bool(name).ok();
        (is("autocommit"), is("startTransaction"), command.contains_key("writeConcern"))
    };
    assert_eq!(of(&first.command), (Some(false), Some(true), false));
    assert_eq!(first.command.get_document("readConcern").ok(), Some(&doc! { "level": "majority" }));
    let [find] = &*fake.requests("find") else { panic!("find") };
    assert_eq!((number(find), of(&find.command)), ((lsid.clone(), Some(3)), (Some(false), None, false)));
    assert!(!find.command.contains_key("readConcern"));
    let [commit] = &*fake.requests("commitTransaction") else { panic!("commit") };
    assert_eq!((number(commit), of(&commit.command)), ((lsid.clone(), Some(3)), (Some(false), None, true)));
    assert_eq!(commit.command.get_str("$db").ok(), Some("admin"));
    assert!(fake.requests("abortTransaction").is_empty());
    // Several documents are inserted in a transaction of their own.
    let many = Operation::InsertMany { collection: collection_of("kurabe_a"), rows: 2 };
    let error = run(session.as_mut(), &many, &[ROW, [Value::Null, Value::Int(1)]].concat()).unwrap_err();
    assert_eq!(error.server_code(), Some("NULL_KEY"));
    run(session.as_mut(), &many, &[ROW, ROW].concat()).unwrap();
    assert_eq!(fake.requests("commitTransaction").len(), 2);
    drop(session);
    // The next connection uses the session again, and numbers go on.
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &Operation::Begin, &[]).unwrap();
    run(session.as_mut(), &insert(), &ROW).unwrap();
    let (again, next) = number(fake.requests("insert").last().unwrap());
    assert!(again == lsid && next > begun, "{next:?}");
    drop(session);
    assert_eq!(fake.requests("abortTransaction").len(), 1);
}

#[test]
fn retryable_write_is_sent_once_more_with_its_number_and_others_are_not() {
    for (options, label, sent) in [
        ("?retryWrites=true", true, 2),
        ("?retryWrites=true", false, 2),
        ("?retryWrites=false", true, 1),
        ("", false, 1),
    ] {
        let failures = AtomicUsize::new(0);
        let fake = Fake::greeting(
            |fake| member(true, &[fake.address()], None),
            move |_| match (failures.fetch_add(1, Ordering::SeqCst), label) {
                (0, true) => {
                    let mut error = failed(91, "ShutdownInProgress");
                    error.insert("errorLabels", vec!["RetryableWriteError"]);
                    Reaction::Answer(error)
                }
                (0, false) => Reaction::Close,
                _ => written(1),
            },
        );
        let driver = open(&fake.url(options));
        let mut session = connect(driver.as_ref());
        let done = run(session.as_mut(), &insert(), &ROW);
        let inserts = fake.requests("insert");
        assert_eq!((inserts.len(), connections(&inserts)), (sent, sent), "{options} {label}");
        if sent == 2 {
            assert_eq!(done.unwrap().affected(), 1);
            assert!(number(&inserts[0]) == number(&inserts[1]) && number(&inserts[0]).1 == Some(1));
            run(session.as_mut(), &insert(), &ROW).unwrap();
            assert_eq!(number(&fake.requests("insert")[2]).1, Some(2));
        } else {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::ConnectionLost);
            assert_eq!(number(&inserts[0]).1, None);
        }
    }
    // An error that is final.
    let fake = Fake::greeting(
        |fake| member(true, &[fake.address()], None),
        |_| {
            Reaction::Answer(
                doc! { "n": 0, "writeErrors": [{"code": 11_000, "errmsg": "E11000"}], "ok": 1.0 },
            )
        },
    );
    let driver = open(&fake.url("?retryWrites=true"));
    let error = run(connect(driver.as_ref()).as_mut(), &insert(), &ROW).unwrap_err();
    assert_eq!((error.server_code(), fake.requests("insert").len()), (Some("11000"), 1));
}

#[test]
fn primary_is_found_from_any_member_and_again_when_it_has_changed() {
    // Two members, of which one is the primary; then the other one.
    let (is_first, members) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let start = |own: bool| {
        let (is_first, members) = (Arc::clone(&is_first), Arc::clone(&members));
        Fake::greeting(
            move |_| {
                let members: Vec<String> = members.lock().unwrap().clone();
                let primary = &members[usize::from(!is_first.load(Ordering::SeqCst))];
                member(is_first.load(Ordering::SeqCst) == own, &members, Some(primary))
            },
            |_| ok(),
        )
    };
    let (first, second) = (start(true), start(false));
    members.lock().unwrap().extend([first.address(), second.address()]);
    let driver = open(&first.url("?replicaSet=rs"));
    let pings = || (first.requests("ping").len(), second.requests("ping").len());
    run(connect(driver.as_ref()).as_mut(), &Operation::Ping, &[]).unwrap();
    assert_eq!(pings(), (0, 1));
    is_first.store(true, Ordering::SeqCst);
    run(connect(driver.as_ref()).as_mut(), &Operation::Ping, &[]).unwrap();
    assert_eq!(pings(), (1, 1));
    // A secondary that is named itself is used as it is, for reads that it allows.
    let direct = open(&second.url("?directConnection=true"));
    run(connect(direct.as_ref()).as_mut(), &Operation::Ping, &[]).unwrap();
    assert_eq!(pings(), (1, 2));
    let error = open(&first.url("?replicaSet=other")).connect(&ConnectOptions::default()).err().unwrap();
    assert!(error.to_string().contains("a member of the replica set rs"), "{error}");
}

#[test]
fn set_without_a_primary_is_given_up_in_time_with_the_reasons() {
    let secondary = Fake::greeting(|fake| member(false, &[fake.address()], None), |_| ok());
    let single = Fake::greeting(alone, |_| ok());
    let url =
        format!("mongodb://{},{}/db?serverSelectionTimeoutMS=200", secondary.address(), single.address());
    let error = open(&url).connect(&ConnectOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    for part in ["no primary was found", "it is a secondary", "it is in no replica set"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert!(secondary.requests("hello").len() > 1, "it may elect a primary");
}

#[test]
fn reads_go_to_the_members_that_the_preference_allows() {
    let members = Arc::new(Mutex::new(Vec::new()));
    let start = |is_primary| {
        let members = Arc::clone(&members);
        Fake::greeting(
            move |_| member(is_primary, &members.lock().unwrap(), None),
            |request| match request.name() {
                "find" => Reaction::Answer(cursor(0, "firstBatch", vec![doc! { "data": "x" }])),
                _ => written(1),
            },
        )
    };
    let (primary, secondary) = (start(true), start(false));
    members.lock().unwrap().extend([primary.address(), secondary.address()]);
    let driver = open(&primary.url("?readPreference=secondary"));
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &insert(), &ROW).unwrap();
    run(session.as_mut(), &get(), &ROW[..1]).unwrap();
    run(session.as_mut(), &Operation::Begin, &[]).unwrap();
    run(session.as_mut(), &get(), &ROW[..1]).unwrap();
    session.close_checked().unwrap();
    let finds = |fake: &Fake| -> Vec<Option<Document>> {
        let all = fake.requests("find").into_iter();
        all.map(|request| request.command.get_document("$readPreference").ok().cloned()).collect()
    };
    assert_eq!(finds(&secondary), [Some(doc! { "mode": "secondary" })]);
    assert_eq!(finds(&primary), [None]);
    assert_eq!((primary.requests("insert").len(), secondary.requests("insert").len()), (1, 0));
    let error = open(&primary.url("?readPreference=secondary&readPreferenceTags=dc:a"));
    let error = error.connect(&ConnectOptions::default()).err().unwrap();
    assert!(error.to_string().contains("no member of the replica set fits"), "{error}");
}

#[test]
fn operation_that_nobody_waits_for_is_killed() {
    let (killed, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let fake = {
        let (killed, asked) = (Arc::clone(&killed), Arc::clone(&asked));
        Fake::greeting(alone, move |request| match request.name() {
            "currentOp" => {
                asked.lock().unwrap().push(request.command.clone());
                Reaction::Answer(doc! { "inprog": [{"opid": 4_711, "op": "query"}], "ok": 1.0 })
            }
            "killOp" => {
                killed.store(request.command.get_i32("op").ok() == Some(4_711), Ordering::SeqCst);
                ok()
            }
            _ => Reaction::Nothing,
        })
    };
    let driver = open(&fake.url(""));
    let mut session = driver.connect(&ConnectOptions::within(Duration::from_millis(500))).unwrap();
    let started = Instant::now();
    let error = run(session.as_mut(), &get(), &ROW[..1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(killed.load(Ordering::SeqCst) && started.elapsed() < SLACK, "{:?}", started.elapsed());
    let lsid = number(&fake.requests("find")[0]).0;
    let asked = asked.lock().unwrap();
    assert_eq!((asked[0].get("lsid.id"), asked[0].get_bool("$ownOps").ok()), (lsid.get("id"), Some(true)));
    let error = run(session.as_mut(), &Operation::Ping, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
}

#[test]
fn cursor_is_read_to_its_end_and_killed_where_it_is_not() {
    let fake = Fake::greeting(alone, |request| match request.name() {
        "find" => Reaction::Answer(cursor(5, "firstBatch", vec![doc! { "_id": 1, "data": "a" }])),
        "getMore" if request.command.get_i64("getMore").ok() == Some(5) => {
            Reaction::Answer(cursor(6, "nextBatch", vec![doc! { "_id": 2_i64, "data": "b" }]))
        }
        "getMore" => Reaction::Answer(cursor(0, "nextBatch", vec![doc! { "_id": 3_i64, "data": 1.5 }])),
        _ => ok(),
    });
    let driver = open(&fake.url(""));
    let mut session = connect(driver.as_ref());
    let collection = collection_of("kurabe_a");
    let mut ids = Vec::new();
    let all = session.read_rows(&collection, &[0], Fetch::Rows(1), &mut |row| {
        ids.push(format!("{:?}", row[0]));
        Ok(())
    });
    assert_eq!((all.unwrap().rows, ids.join(" ").as_str()), (3, "Int(1) Int(2) Int(3)"));
    let more = fake.requests("getMore");
    let parts = |request: &Request| {
        (
            request.command.get_str("collection").unwrap().to_owned(),
            request.command.get_i32("batchSize").unwrap(),
        )
    };
    assert_eq!(parts(&more[0]), ("kurabe_a".to_owned(), 1));
    // The third row has a value that Kurabe never wrote; the first stops the reader.
    let range = Operation::FindRange { collection: collection.clone(), by: 0, fields: vec![1] };
    let error = run(session.as_mut(), &range, &[Value::Int(1), Value::Int(9)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    assert!(fake.requests("killCursors").is_empty(), "it had ended");
    let stopped = session.read_rows(&collection, &[0], Fetch::Whole, &mut |_| Err(Error::usage("enough")));
    assert_eq!(stopped.unwrap_err().to_string(), "enough");
    let killed = fake.requests("killCursors");
    assert_eq!(killed[0].command.get_array("cursors").ok(), Some(&vec![Bson::Int64(5)]));
}

#[test]
fn answers_that_do_not_fit_the_requests_are_noticed() {
    let fake = Fake::greeting(alone, |_| Reaction::Astray(doc! { "ok": 1.0 }));
    let driver = open(&fake.url(""));
    let mut session = connect(driver.as_ref());
    let error = run(session.as_mut(), &Operation::Ping, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    assert!(error.to_string().contains("answer to another request"), "{error}");
    // A duplicate is noticed by the next request, or at the end.
    let fake = Fake::greeting(alone, |_| Reaction::Twice(doc! { "ok": 1.0 }));
    let driver = open(&fake.url(""));
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &Operation::Ping, &[]).unwrap();
    let error = session.close_checked().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    let fake = Fake::greeting(alone, |request| match request.name() {
        "insert" => Reaction::Twice(doc! { "n": 1, "ok": 1.0 }),
        _ => ok(),
    });
    let driver = open(&fake.url(""));
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &insert(), &ROW).unwrap();
    let error = run(session.as_mut(), &insert(), &ROW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[test]
fn both_ends_compress_as_agreed_and_not_the_greeting() {
    for (options, compression, agreed, number) in [
        ("?compressors=zstd,zlib", Compression::Off, "zstd", Some(3)),
        ("?compressors=snappy,zlib", Compression::Off, "zlib", Some(2)),
        ("", Compression::Zlib, "zlib", Some(2)),
        ("", Compression::Zstd, "zstd", Some(3)),
        ("?compressors=zlib", Compression::Off, "", None),
    ] {
        let long = "long text ".repeat(10_000);
        let rows = vec![doc! { "data": long.as_str() }];
        let fake = Fake::greeting(
            move |fake| {
                let mut hello = alone(fake);
                if !agreed.is_empty() {
                    hello.insert("compression", vec![agreed]);
                }
                hello
            },
            move |_| Reaction::Answer(cursor(0, "firstBatch", rows.clone())),
        );
        let driver = open(&fake.url(options));
        let connect = ConnectOptions { compression, ..ConnectOptions::default() };
        let mut session = driver.connect(&connect).unwrap();
        let reply = run(session.as_mut(), &get(), &ROW[..1]).unwrap();
        assert!(reply.field_bytes(0, 0) == Some(long.as_bytes()), "{options} {compression}");
        let compressors = |name: &str| fake.requests(name)[0].compressor;
        assert_eq!((compressors("hello"), compressors("find")), (None, number), "{options} {compression}");
        assert_eq!(driver.supports_compression(Compression::Zstd) == Support::Native, agreed == "zstd");
    }
    // A server that answers by what was not offered.
    let fake = Fake::greeting(
        |fake| {
            let mut hello = alone(fake);
            hello.insert("compression", vec!["snappy"]);
            hello
        },
        |_| ok(),
    );
    let error = open(&fake.url("?compressors=zstd")).connect(&ConnectOptions::default()).err().unwrap();
    assert!(error.kind() == ErrorKind::Protocol && error.to_string().contains("snappy"), "{error}");
}

#[test]
fn servers_that_are_too_old_are_refused() {
    let fake = Fake::greeting(|_| doc! { "ismaster": true, "maxWireVersion": 5, "ok": 1.0 }, |_| ok());
    let error = open(&fake.url("")).connect(&ConnectOptions::default()).err().unwrap();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("3.6"), "{error}");
}
