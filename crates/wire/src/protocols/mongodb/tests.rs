use super::*;
use crate::view::tests::{exchanges, seen_of};
use kurabe_protocol::call::{cursor, document, is_quiet};

#[derive(Clone, Debug)]
pub(crate) enum V {
    Int(i32),
    Long(i64),
    Double(f64),
    Text(String),
    Null,
    Bool(bool),
    Id([u8; 12]),
    Binary(Vec<u8>),
    Regex(String, String),
    Document(Vec<(String, V)>),
    List(Vec<V>),
}

pub(crate) fn int(number: i32) -> V {
    V::Int(number)
}

pub(crate) fn text(text: &str) -> V {
    V::Text(text.to_owned())
}

pub(crate) fn of(fields: &[(&str, V)]) -> V {
    V::Document(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn push(out: &mut Vec<u8>, name: &str, value: &V) {
    let (kind, bytes) = match value {
        V::Double(number) => (1, number.to_le_bytes().to_vec()),
        V::Text(text) => (2, [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()),
        V::Document(_) => (3, bytes(value)),
        V::List(_) => (4, bytes(value)),
        V::Binary(data) => (5, [&(data.len() as u32).to_le_bytes()[..], &[0], data].concat()),
        V::Id(id) => (7, id.to_vec()),
        V::Bool(truth) => (8, vec![u8::from(*truth)]),
        V::Null => (10, Vec::new()),
        V::Regex(pattern, options) => (11, [pattern.as_bytes(), &[0], options.as_bytes(), &[0]].concat()),
        V::Int(number) => (16, number.to_le_bytes().to_vec()),
        V::Long(number) => (18, number.to_le_bytes().to_vec()),
    };
    out.push(kind);
    out.extend(name.as_bytes());
    out.push(0);
    out.extend(bytes);
}

/// The bytes of a document or a list.
pub(crate) fn bytes(value: &V) -> Vec<u8> {
    let mut out = vec![0; 4];
    match value {
        V::Document(fields) => fields.iter().for_each(|(name, value)| push(&mut out, name, value)),
        V::List(all) => all.iter().enumerate().for_each(|(n, value)| push(&mut out, &n.to_string(), value)),
        other => panic!("{other:?}"),
    }
    out.push(0);
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

fn sent(number: u32, answers: u32, code: u32, rest: &[u8]) -> Vec<u8> {
    let length = rest.len() as u32 + 16;
    let words = [length, number, answers, code].into_iter().flat_map(u32::to_le_bytes);
    words.chain(rest.iter().copied()).collect()
}

pub(crate) fn op_msg(number: u32, answers: u32, flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    sent(number, answers, OP_MSG, &[&flags.to_le_bytes()[..], &sections.concat()].concat())
}

pub(crate) fn asked(number: u32, fields: &[(&str, V)]) -> (bool, Vec<u8>) {
    (true, op_msg(number, 0, 0, &[&[0], &bytes(&of(fields))]))
}

pub(crate) fn told(answers: u32, fields: &[(&str, V)]) -> (bool, Vec<u8>) {
    (false, op_msg(1000 + answers, answers, 0, &[&[0], &bytes(&of(fields))]))
}

pub(crate) fn cursor_of(name: &str, rows: &[V], id: i64) -> V {
    of(&[(name, V::List(rows.to_vec())), ("id", V::Long(id)), ("ns", text("shop.items"))])
}

pub(super) fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
    seen_of(Mongodb::default(), conversation, piece)
}

/// A command on the database `shop`.
fn asks(number: u32, fields: &[(&str, V)]) -> (bool, Vec<u8>) {
    asked(number, &[fields, &[("$db", text("shop"))]].concat())
}

pub(crate) fn done(answers: u32, fields: &[(&str, V)]) -> (bool, Vec<u8>) {
    told(answers, &[fields, &[("ok", V::Double(1.0))]].concat())
}

/// What a client says at first, and some commands of each kind.
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    let driver = of(&[("driver", of(&[("name", text("nodejs")), ("version", text("6.1"))]))]);
    let old =
        [&[0; 4][..], b"admin.$cmd\0", &[0; 8], &bytes(&of(&[("isMaster", int(1)), ("client", driver)]))];
    let reply = [&[0; 20][..], &bytes(&of(&[("ok", V::Double(1.0))]))].concat();
    let login = [("saslStart", int(1)), ("payload", text("hunter2")), ("$db", text("admin"))];
    let tagged = |n: i32| of(&[("_id", int(n)), ("tags", V::List(vec![text("a"); n as usize]))]);
    let documents: Vec<u8> = (0..6).flat_map(|n| bytes(&tagged(n % 3))).collect();
    let sequence = [&(documents.len() as u32 + 14).to_le_bytes()[..], b"documents\0", &documents].concat();
    let insert = [("insert", text("items")), ("ordered", V::Bool(true)), ("lsid", of(&[]))];
    let filter =
        of(&[("n", of(&[("$in", V::List(vec![int(1), V::Long(2), V::Null]))])), ("id", V::Id([7; 12]))]);
    let sort = of(&[("n", int(1))]);
    let rows = [of(&[("_id", int(1))]), of(&[("_id", int(2))])];
    let last = [of(&[("_id", int(3)), ("r", V::Regex("a".to_owned(), "i".to_owned()))])];
    let change = of(&[("q", of(&[])), ("u", of(&[("$set", of(&[("a", int(1))]))]))]);
    let one = [("insert", text("my items")), ("documents", V::List(vec![of(&[("_id", int(1))])]))];
    let refused = V::List(vec![of(&[("index", int(0)), ("code", int(11_000))])]);
    let distinct = [("distinct", text("items")), ("key", text("n"))];
    let begins =
        [("startTransaction", V::Bool(true)), ("autocommit", V::Bool(false)), ("txnNumber", V::Long(1))];
    let values = V::List(vec![int(1), text("x"), V::Null, V::Regex(String::new(), String::new())]);
    let commit = [("commitTransaction", int(1)), ("autocommit", V::Bool(false)), ("$db", text("admin"))];
    let delete = bytes(&of(&[("delete", text("items")), ("$db", text("shop"))]));
    let concern = of(&[("level", text("local")), ("afterClusterTime", V::Long(1))]);
    vec![
        (true, sent(1, 0, OP_QUERY, &old.concat())),
        (false, sent(901, 1, 1, &reply)),
        asked(2, &login),
        done(2, &[("payload", text("hunter2"))]),
        (true, op_msg(3, 0, 0, &[&[0], &bytes(&of(&insert)), &[1], &sequence])),
        done(3, &[("n", int(6))]),
        asks(4, &[("find", text("items")), ("filter", filter), ("sort", sort), ("batchSize", int(2))]),
        done(4, &[("cursor", cursor_of("firstBatch", &rows, 77))]),
        asks(5, &[("getMore", V::Long(77)), ("collection", text("items"))]),
        done(5, &[("cursor", cursor_of("nextBatch", &last, 0))]),
        asks(6, &[("update", text("items")), ("updates", V::List(vec![change]))]),
        done(6, &[("n", int(3)), ("nModified", int(2))]),
        asks(7, &one),
        done(7, &[("n", int(0)), ("writeErrors", refused)]),
        asks(8, &[&distinct[..], &begins].concat()),
        done(8, &[("values", values)]),
        asked(9, &commit),
        told(9, &[("ok", V::Double(0.0)), ("errmsg", text("no")), ("code", int(251))]),
        (true, op_msg(10, 0, flag::MORE_TO_COME, &[&[0], &delete])),
        asks(11, &[("count", text("items")), ("query", of(&[])), ("readConcern", concern)]),
        done(11, &[("n", int(4))]),
        asks(12, &[("createUser", text("bob")), ("pwd", text("hunter2"))]),
    ]
}

#[test]
fn requests_have_their_shape_and_values_and_answers_their_rows() {
    // Six documents of two shapes.
    const INSERT: &str =
        r#"insert items {"ordered": ?, "documents": [{"_id": ?, "tags": []}, {"_id": ?, "tags": [?]}]}"#;
    let whole = seen(&conversation(), usize::MAX >> 1);
    assert!(
        !format!("{whole:?}").contains("hunter2") && !format!("{whole:?}").contains("104, 117, 110, 116")
    );
    assert_eq!(whole[0], Event::Client(vec![("driver".to_owned(), "nodejs 6.1".to_owned())]));
    let all = exchanges(&whole);
    let shown: Vec<_> = all.iter().map(|one| (one.text.as_str(), one.rows, one.affected)).collect();
    let expected = [
        ("isMaster", 0, 0),
        ("saslStart", 0, 0),
        (INSERT, 0, 6),
        (r#"find items {"filter": {"n": {"$in": [?]}, "id": ?}, "sort": {"n": ?}, "batchSize": ?}"#, 2, 0),
        ("getMore items ?", 1, 0),
        (r#"update items {"updates": [{"q": {}, "u": {"$set": {"a": ?}}}]}"#, 0, 2),
        (r#"insert "my items" {"documents": [{"_id": ?}]}"#, 0, 0),
        (r#"distinct items {"key": ?, "startTransaction": ?, "autocommit": ?}"#, 4, 0),
        (r#"commitTransaction {"autocommit": ?}"#, 0, 0),
        ("delete items noreply", 0, 0),
        (r#"count items {"query": {}, "readConcern": {"level": ?}}"#, 0, 0),
        ("createUser", 0, 0),
    ];
    assert_eq!(shown, expected);
    let errors: Vec<_> = all.iter().filter_map(|one| one.error.as_deref()).collect();
    assert_eq!(errors, ["11000", "251"]);
    let states: Vec<_> = all[6..9].iter().map(|one| one.transaction).collect();
    assert_eq!(states, [Transaction::None, Transaction::Open, Transaction::None]);
    assert!(
        all[11].cut && all[11].ended.is_none() && all[..11].iter().all(|one| !one.cut && one.ended.is_some())
    );
    let is_setup = |place: &usize| document(&all[*place].parameters).unwrap().is_setup();
    assert!([0, 1].iter().all(is_setup) && ![2, 3, 4].iter().any(is_setup));
    let [insert, find, more] = [2, 3, 4].map(|place: usize| document(&all[place].parameters).unwrap());
    assert_eq!((cursor(&all[3].parameters), more.cursors()), (Some(77), vec![77]));
    assert_eq!((find.database().as_deref(), find.collection().as_deref()), (Some("shop"), Some("items")));
    assert_eq!(more.collection().as_deref(), Some("items"));
    assert!(is_quiet(&all[9].parameters) && !is_quiet(&all[8].parameters));
    // All documents of a sequence are part of the command, and nothing that the driver added.
    let documents = insert.field("documents").unwrap();
    assert_eq!(bson::elements(documents.value).count(), 6);
    assert!(insert.field("lsid").is_none());
    let concern = document(&all[10].parameters).unwrap().field("readConcern").unwrap();
    assert_eq!(bson::elements(concern.value).count(), 1);
    // An answer's own code is an error only if it is no success.
    let modify = asks(1, &[("findAndModify", text("items")), ("new", V::Bool(true))]);
    let change = of(&[("n", int(1)), ("updatedExisting", V::Bool(true))]);
    let answer = done(1, &[("lastErrorObject", change), ("value", of(&[("_id", int(1))])), ("code", int(5))]);
    let events = seen(&[modify, answer], 3);
    let one = exchanges(&events)[0];
    assert_eq!((one.rows, one.affected, &one.error), (1, 1, &None));
}

#[test]
fn documents_that_an_update_made_are_changed_ones() {
    let made = |n| of(&[("index", int(n)), ("_id", int(n))]);
    let answer = [("n", int(3)), ("nModified", int(1)), ("upserted", V::List(vec![made(0), made(2)]))];
    let update = [("update", text("items")), ("updates", V::List(vec![of(&[("upsert", V::Bool(true))])]))];
    assert_eq!(exchanges(&seen(&[asked(1, &update), done(1, &answer)], 3))[0].affected, 3);
}

#[test]
fn last_answer_of_a_cursor_without_an_order_has_the_checksum_of_all_its_documents() {
    let last = |find: &[(&str, V)], first: &[i32], next: &[i32]| {
        let conversation = [
            asked(1, find),
            done(1, &[("cursor", cursor_of("firstBatch", &of_rows(first), 7))]),
            asked(2, &[("getMore", V::Long(7)), ("collection", text("items"))]),
            done(2, &[("cursor", cursor_of("nextBatch", &of_rows(next), 0))]),
        ];
        exchanges(&seen(&conversation, 5))[1].digest
    };
    let find = [("find", text("items"))];
    let whole = last(&find, &[1, 2], &[3]);
    assert_eq!(whole as u32, crate::view::COMPLETE);
    assert_eq!(whole, last(&find, &[3, 1], &[2]));
    assert_ne!(whole, last(&find, &[1, 2], &[4]));
    assert_ne!(whole, last(&find, &[1, 4], &[3]));
    // Of some documents nobody knows which, and what has an order is compared in each answer.
    let some = [("find", text("items")), ("limit", int(3))];
    assert_eq!(last(&some, &[1, 2], &[3]), last(&some, &[9, 9], &[3]));
    let sorted = [("find", text("items")), ("sort", of(&[("n", int(1))]))];
    assert_eq!(last(&sorted, &[1, 2], &[3]), last(&sorted, &[9, 9], &[3]));
}

#[test]
fn order_of_documents_counts_only_where_the_command_has_a_sort() {
    let of = |command: &[(&str, V)], rows: &[V]| {
        let answer = told(1, &[("cursor", cursor_of("firstBatch", rows, 0)), ("ok", int(1))]);
        exchanges(&seen(&[asked(1, command), answer], 5))[0].digest
    };
    let (one, two) = (of_rows(&[1, 2]), of_rows(&[2, 1]));
    let find = [("find", text("items"))];
    assert_eq!(of(&find, &one), of(&find, &two));
    assert_ne!(of(&find, &one), of(&find, &of_rows(&[1, 3])));
    let stage = |name: &str| {
        [("aggregate", text("items")), ("pipeline", V::List(vec![self::of(&[(name, self::of(&[]))])]))]
    };
    assert_eq!(of(&stage("$match"), &one), of(&stage("$match"), &two));
    let (first, other) = (of(&stage("$sort"), &one), of(&stage("$sort"), &two));
    assert!(first != other && first >> 32 == other >> 32);
}

fn of_rows(ids: &[i32]) -> Vec<V> {
    ids.iter().map(|id| of(&[("_id", int(*id))])).collect()
}

#[test]
fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
    let find = asked(1, &[("find", text("items"))]);
    let answer =
        |flags: u32, answers: u32| op_msg(9, answers, flags, &[&[0], &bytes(&of(&[("ok", int(1))]))]);
    let packed = sent(1, 0, OP_COMPRESSED, &[0; 20]);
    let more = asked(1, &[("getMore", V::Long(5)), ("collection", text("a"))]);
    for (conversation, why) in [
        (vec![(true, packed.clone())], COMPRESSED),
        (vec![find.clone(), (false, packed)], COMPRESSED),
        (vec![(true, b"GET / HTTP/1.1\r\n\r\n".to_vec())], NOT_MONGODB),
        (vec![(true, b"\x16\x03\x01\x02\0\x01\xfc\x03".to_vec())], "the connection is encrypted"),
        (
            vec![(true, sent(1, 0, 2002, &[0; 20]))],
            "it sends messages of MongoDB before 3.6, which are not recorded",
        ),
        (vec![(false, answer(0, 1))], "the server answered without a request"),
        (vec![find.clone(), (false, answer(0, 2))], "the server answered another request"),
        (
            vec![more, (false, answer(2, 1))],
            "it reads a cursor without asking for each part, which is not recorded",
        ),
        (vec![find.clone(), (false, answer(4, 1))], "the server does not speak MongoDB's protocol"),
        (
            vec![find, (false, b"HTTP/1.1 400 Bad Request\r\n".to_vec())],
            "the server does not speak MongoDB's protocol",
        ),
    ] {
        let events = seen(&conversation, 4);
        let said = events.iter().filter_map(|event| match event {
            Event::Unreadable(stop) => Some(stop.why()),
            _ => None,
        });
        assert_eq!(said.collect::<Vec<_>>(), [why], "{events:?}");
    }
    // A driver that watches the server is answered again and again.
    let hello = asked(1, &[("hello", int(1))]);
    let stream = [
        hello,
        (false, answer(2, 1)),
        (false, answer(2, 9)),
        (false, answer(0, 9)),
        asked(2, &[("ping", int(1))]),
        (false, answer(0, 2)),
    ];
    let events = seen(&stream, 3);
    assert_eq!(exchanges(&events).len(), 2);
    assert!(!events.iter().any(|event| matches!(event, Event::Unreadable(_))));
}

#[test]
fn long_answer_is_read_without_being_kept() {
    let find = asked(1, &[("find", text("items"))]);
    let rows: Vec<V> = (0..4).map(|n| of(&[("_id", int(n)), ("t", text(&"x".repeat(10_000_000)))])).collect();
    let answer = done(1, &[("cursor", cursor_of("firstBatch", &rows, 0))]);
    let (now, mut events) = (std::time::Instant::now(), Vec::new());
    let mut view = Mongodb::default();
    view.sent(&find.1, now, &mut events).unwrap();
    for part in answer.1.chunks(60_000) {
        view.received(part, now, &mut events).unwrap();
        let kept = view.answer.as_ref().map_or(0, Answer::kept);
        assert!(kept < 200, "{kept}");
    }
    let one = exchanges(&events)[0];
    assert_eq!((one.rows, &one.error), (4, &None));
}

#[test]
fn client_is_said_to_have_begun_also_where_nothing_can_be_read() {
    let greeting = (false, op_msg(1, 0, 0, &[&[0], &bytes(&of(&[("ok", int(1))]))]));
    let encrypted = (true, b"\x16\x03\x01\x02\0\x01\xfc\x03".to_vec());
    for conversation in [greeting, encrypted] {
        let events = seen(&[conversation], 4);
        assert!(matches!(events[..], [Event::Client(_), Event::Unreadable(_)]), "{events:?}");
    }
}

#[test]
fn long_requests_are_cut_and_have_the_text_of_short_ones() {
    let insert = |count: usize| {
        let documents: Vec<u8> = (0..count)
            .flat_map(|n| bytes(&of(&[("_id", int(n as i32)), ("t", text(&"x".repeat(999)))])))
            .collect();
        let sequence =
            [&(documents.len() as u32 + 14).to_le_bytes()[..], b"documents\0", &documents].concat();
        let message = op_msg(1, 0, 0, &[&[0], &bytes(&of(&[("insert", text("items"))])), &[1], &sequence]);
        let events = seen(&[(true, message), asked(2, &[("ping", int(1))])], 50_000);
        let all = exchanges(&events);
        assert_eq!((all.len(), all[1].text.as_str()), (2, "ping"));
        (all[0].text.clone(), all[0].cut, document(&all[0].parameters).unwrap().fields().count())
    };
    let (text, cut, fields) = insert(3);
    assert_eq!((cut, fields), (false, 1));
    // Nothing is kept that could be taken for all of it.
    assert_eq!(insert(3_000), (text, true, 0));
}

#[test]
fn command_deeper_than_a_server_takes_is_cut() {
    let nested = |depth: usize| (0..depth).fold(int(1), |inner, _| of(&[("a", inner)]));
    for (depth, cut) in [(90, false), (120, true)] {
        let events = seen(&[asked(1, &[("find", text("items")), ("filter", nested(depth))])], 1 << 20);
        assert_eq!(exchanges(&events)[0].cut, cut, "{depth}");
    }
}

#[test]
fn commands_of_a_long_pipeline_keep_their_names() {
    let value = "x".repeat(1_000_000);
    let many: Vec<_> = (0..40)
        .map(|number| asks(number, &[("find", text("items")), ("filter", of(&[("a", text(&value))]))]))
        .collect();
    let events = seen(&many, 1 << 16);
    let all = exchanges(&events);
    let is_named =
        |one: &&&Exchange| document(&one.parameters).is_some_and(|command| command.name() == "find");
    assert_eq!(all.iter().filter(is_named).count(), 40);
    assert!(all.iter().filter(|one| one.cut).count() > 20);
}
