//! Tests of all protocols: conversations, in pieces of any size, and any bytes.

mod conversations;

use crate::account::{Account, Connection};
use crate::protocols::mongodb::tests::{self as documents, V};
use crate::registry;
use crate::statement::shown;
use crate::view::tests::{exchanges, seen_by};
use crate::view::{Event, Step, Stop};
use conversations::{FLAGS, client, conversation, greeting, message, packet, postgres, server};
use kurabe_protocol::call::{Language, document, is_quiet};
use proptest::prelude::*;

/// A size of pieces that none exceeds.
const WHOLE: usize = usize::MAX >> 1;

/// What one side sent: whether the client did, and the bytes.
type Said = (bool, Vec<u8>);

/// The requests as `kurabe wire` lists them: position, whether they set up, step, text.
fn requests(scheme: &str, events: &[Event]) -> Vec<String> {
    let request = |one: &&crate::view::Exchange| {
        let step = match one.step {
            Step::Text => "text",
            Step::Prepare => "prepare",
            Step::Execute => "execute",
            Step::Bound => "bound",
        };
        let (text, is_setup) = shown(one, Language::from_scheme(scheme));
        format!("{} {} {step} {text}", one.at, if is_setup { "setup" } else { "own" })
    };
    exchanges(events).iter().map(request).collect()
}

/// What `kurabe wire` says of the conversation of a protocol.
fn listed(scheme: &str) -> Connection {
    let mut account = Account::new(1, registry::of_scheme(scheme), None, None);
    for (is_client, mut bytes) in conversation(scheme) {
        if is_client {
            account.sent(&bytes, &mut Vec::new(), &mut Vec::new());
        } else {
            account.received(&mut bytes);
        }
    }
    account.close();
    account.connection().clone()
}

const SCHEMES: [&str; 6] = ["mysql", "postgres", "redis", "memcached", "mongodb", "couchdb"];

#[test]
fn requests_of_each_protocol_are_read_and_passwords_are_not() {
    let expected: [&[&str]; 6] = [
        &[
            "setup text SET NAMES utf8mb4",
            "own text SELECT 2 FROM t",
            "own prepare SELECT ?",
            "own execute SELECT ?",
            "own text LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            "setup text COM_CHANGE_USER",
            "setup text COM_PING",
        ],
        &[
            "setup text SET a = 1", "own bound SELECT $1", "own prepare SELECT id FROM t",
            "own execute SELECT id FROM t",
        ],
        &[
            "setup text CLIENT SETINFO LIB-NAME redis-py",
            "setup text AUTH",
            "setup text CONFIG SET requirepass",
            "own text SET k",
            "setup text PING",
            "own text GET k",
        ],
        &["setup text version", "own text set a", "own text ms c", "own text mg c"],
        &["setup text hello", "setup text saslStart", "own text insert users"],
        &["setup text GET /", "own text POST /_session?…", "own text PUT /db/1", "own text GET /db/1"],
    ];
    for (scheme, expected) in SCHEMES.into_iter().zip(expected) {
        let seen = viewed(scheme, &conversation(scheme), WHOLE);
        let found = requests(scheme, &seen);
        let without_places: Vec<&str> = found.iter().map(|one| one.split_once(' ').unwrap().1).collect();
        assert_eq!(without_places, expected, "{scheme}");
        let shown = format!("{:?}", listed(scheme));
        assert!(!shown.contains("hunter2"), "{scheme}: {shown}");
        assert!(!seen.iter().any(|one| matches!(one, Event::Unreadable(_))), "{seen:?}");
    }
}

#[test]
fn connection_that_cancels_a_request_of_another_one_is_said_to() {
    let request = message(0, &[80_877_102_u32.to_be_bytes(), [0, 0, 0, 7], [1, 2, 3, 4]].concat());
    let seen = viewed("postgres", &[client(&[&request])], 3);
    assert_eq!(seen, [Event::Note("it cancels a request of another connection".to_owned())]);
}

#[test]
fn position_of_a_request_is_that_of_its_first_byte() {
    let found = requests("postgres", &viewed("postgres", &postgres(), WHOLE));
    let sent: Vec<usize> = postgres().iter().filter(|said| said.0).map(|said| said.1.len()).collect();
    let before = sent[..3].iter().sum::<usize>();
    assert_eq!(found[0], format!("{before} setup text SET a = 1"));
    // The request begins with the message that has its text.
    assert_eq!(found[1], format!("{} own bound SELECT $1", before + sent[3]));
}

#[test]
fn clients_tell_their_names() {
    for (scheme, name) in [
        ("mysql", "libx 9.1"),
        ("postgres", "psql"),
        ("redis", "redis-py"),
        ("mongodb", "nodejs 6.1"),
        ("couchdb", "curl/8"),
    ] {
        assert_eq!(listed(scheme).client.as_deref(), Some(name), "{scheme}");
    }
}

#[test]
fn encrypted_connections_are_named_and_nothing_is_read_of_them() {
    let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03GET / HTTP/1.1\r\n\r\n";
    let encrypted = |scheme: &str, said: &[Said]| {
        let seen = viewed(scheme, said, 3);
        assert_eq!(seen.last(), Some(&Event::Unreadable(Stop::Encrypted)), "{scheme}: {seen:?}");
        assert!(exchanges(&seen).is_empty(), "{scheme}: {seen:?}");
    };
    for scheme in ["postgres", "redis", "memcached", "mongodb", "couchdb"] {
        encrypted(scheme, &[client(&[hello])]);
    }
    let ssl = packet(1, &[&(FLAGS | 1 << 11).to_le_bytes()[..], &[0; 28]].concat());
    encrypted("mysql", &[server(&[&greeting(FLAGS | 1 << 11)]), client(&[&ssl, hello])]);
    let request = message(0, &80_877_103_u32.to_be_bytes());
    encrypted("postgres", &[client(&[&request]), server(&[b"S"]), client(&[hello])]);
}

#[test]
fn hostile_lengths_are_refused_or_waited_for_without_memory() {
    let long = u32::MAX.to_be_bytes();
    for (scheme, bytes) in [
        ("postgres", [&message(0, b"\0\x03\0\0\0")[..], b"Q", &long].concat()),
        ("postgres", message(0, b"\0\x03\0\0\0").into_iter().chain(*b"Q\0\0\0\x03").collect()),
        ("postgres", long.to_vec()),
        ("mongodb", [&long[..], &[0; 12]].concat()),
        ("redis", b"*9223372036854775807\r\n$9223372036854775807\r\nGET".to_vec()),
        ("redis", b"*2\r\n$-9223372036854775808\r\n".to_vec()),
        ("memcached", b"set a 0 0 18446744073709551615\r\nx".to_vec()),
        ("couchdb", b"PUT / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\nx".to_vec()),
        ("couchdb", b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx".to_vec()),
        ("mysql", b"\xff\xff\xff\x01".to_vec()),
    ] {
        let seen = viewed(scheme, &[(true, bytes), (true, vec![b'x'; 300_000])], 4_096);
        assert!(seen.len() <= 3, "{scheme}: {seen:?}");
    }
}

/// What a replay compares of the answer to a request: rows, changes, error, checksum.
fn compared(scheme: &str, asked: Said, told: Said) -> (u64, u64, Option<String>, u64) {
    let events = viewed(scheme, &[asked, told], WHOLE);
    let one = exchanges(&events)[0];
    assert!(one.ended.is_some(), "{scheme}: {events:?}");
    (one.rows, one.affected, one.error.clone(), one.digest)
}

/// The same of an answer as text; of HTTP it is a body, and an empty one is an error.
fn answered(scheme: &str, request: &str, body: &str) -> (u64, u64, Option<String>, u64) {
    let is_http = ["couchdb", "http"].contains(&scheme);
    let told = match (is_http, body) {
        (false, _) => body.to_owned(),
        (true, "") => "HTTP/1.1 500 Random\r\nContent-Length: 0\r\n\r\n".to_owned(),
        (true, _) => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
    };
    let asked = if is_http { format!("{request} HTTP/1.1\r\n\r\n") } else { request.to_owned() };
    compared(scheme, client(&[asked.as_bytes()]), server(&[told.as_bytes()]))
}

#[test]
fn what_a_server_chooses_and_an_order_that_means_nothing_are_not_compared() {
    let info = |number: u8| format!(r#"{{"doc_count":3,"update_seq":"{number}-x"}}"#);
    for (scheme, request, one, other) in [
        ("redis", "SMEMBERS k\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
        ("memcached", "gets a\r\n", "VALUE a 0 1 1\r\nx\r\nEND\r\n", "VALUE a 0 1 2\r\nx\r\nEND\r\n"),
        ("memcached", "mg a v t\r\n", "VA 1 t-1\r\nx\r\n", "VA 1 t7\r\nx\r\n"),
        ("couchdb", "GET /shop", &info(1), &info(2)),
    ] {
        assert_eq!(answered(scheme, request, one), answered(scheme, request, other), "{scheme} {request}");
    }
}

/// Words that excuse answers of SQL stand in keys and fields. A wrong answer has another value, a row less, one twice, another order
/// where there is one, another count, or an error in its place.
#[test]
fn every_planted_wrong_answer_of_protocols_without_sql_is_seen() {
    let texts: [(&str, &str, &str, &[&str]); 14] = [
        (
            "redis",
            "LRANGE now 0 -1\r\n",
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            &[
                "*2\r\n$1\r\na\r\n$1\r\nc\r\n",
                "*1\r\n$1\r\na\r\n",
                "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nb\r\n",
                "*2\r\n$1\r\nb\r\n$1\r\na\r\n",
                "*2\r\n$1\r\na\r\n$-1\r\n",
                "-ERR limit\r\n",
            ],
        ),
        (
            "redis",
            "SMEMBERS random\r\n",
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            &["*2\r\n$1\r\na\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nb\r\n"],
        ),
        (
            "redis",
            "GET uuid\r\n",
            "$2\r\nab\r\n",
            &["$2\r\nac\r\n", "$1\r\na\r\n", "$-1\r\n", "+ab\r\n", "-WRONGTYPE x\r\n"],
        ),
        ("redis", "EXEC\r\n", "*0\r\n", &["*-1\r\n", "$-1\r\n", "*1\r\n$-1\r\n"]),
        ("redis", "INCR rand\r\n", ":7\r\n", &[":8\r\n", ":-7\r\n", "$-1\r\n", "-ERR rand\r\n"]),
        (
            "memcached",
            "get now limit\r\n",
            "VALUE now 0 1\r\na\r\nVALUE limit 0 1\r\nb\r\nEND\r\n",
            &[
                "VALUE now 0 1\r\na\r\nVALUE limit 0 1\r\nc\r\nEND\r\n",
                "VALUE now 1 1\r\na\r\nVALUE limit 0 1\r\nb\r\nEND\r\n",
                "VALUE now 0 1\r\na\r\nEND\r\n",
                "VALUE now 0 1\r\na\r\nVALUE limit 0 1\r\nb\r\nVALUE limit 0 1\r\nb\r\nEND\r\n",
                "END\r\n",
                "SERVER_ERROR random\r\n",
            ],
        ),
        (
            "memcached",
            "gets a\r\n",
            "VALUE a 0 1 1\r\nx\r\nEND\r\n",
            &["VALUE a 0 1 1\r\ny\r\nEND\r\n", "VALUE a 1 1 1\r\nx\r\nEND\r\n"],
        ),
        ("memcached", "mg a v t\r\n", "VA 1 t-1\r\nx\r\n", &["VA 1 t-1\r\ny\r\n"]),
        ("memcached", "delete a\r\n", "DELETED\r\n", &["NOT_FOUND\r\n"]),
        ("memcached", "incr uuid 1\r\n", "7\r\n", &["8\r\n", "NOT_FOUND\r\n", "CLIENT_ERROR x\r\n"]),
        (
            "memcached",
            "set rand 0 0 1\r\na\r\n",
            "STORED\r\n",
            &["NOT_STORED\r\n", "EXISTS\r\n", "ERROR\r\n"],
        ),
        (
            "couchdb",
            "GET /limit/_all_docs?order=random",
            r#"{"rows":[{"id":"now"},{"id":"b"}]}"#,
            &[
                r#"{"rows":[{"id":"now"},{"id":"c"}]}"#,
                r#"{"rows":[{"id":"now"}]}"#,
                r#"{"rows":[{"id":"now"},{"id":"b"},{"id":"b"}]}"#,
                r#"{"rows":[{"id":"b"},{"id":"now"}]}"#,
                "",
            ],
        ),
        ("couchdb", "GET /shop/a", r#"{"update_seq":"1-x"}"#, &[r#"{"update_seq":"2-x"}"#, "{}"]),
        ("http", "GET /now/limit", "ab", &["ac", "a", "abb", ""]),
    ];
    for (scheme, request, right, wrong) in texts {
        assert_eq!(answered(scheme, request, right), answered(scheme, request, right));
        for wrong in wrong {
            let of = |body| answered(scheme, request, body);
            assert_ne!(of(right), of(wrong), "{scheme} {request}: {wrong}");
        }
    }
    let row = |n: i32| documents::of(&[("now", documents::int(n))]);
    let find = [("find", documents::text("limit")), ("sort", documents::of(&[("rand", documents::int(1))]))];
    let rows = |rows: &[V]| documents::done(1, &[("cursor", documents::cursor_of("firstBatch", rows, 0))]);
    let of = |told: Said| compared("mongodb", documents::asked(1, &find), told);
    let right = of(rows(&[row(1), row(2)]));
    for wrong in [&[row(1), row(3)][..], &[row(1)], &[row(1), row(2), row(2)], &[row(2), row(1)], &[]] {
        assert_ne!(right, of(rows(wrong)), "{wrong:?}");
    }
    assert_ne!(right, of(documents::told(1, &[("ok", documents::int(0)), ("code", documents::int(2))])));
    let update = [("update", documents::text("uuid")), ("updates", V::List(Vec::new()))];
    let counted = |n: i32, modified: i32| {
        let told = documents::done(1, &[("n", documents::int(n)), ("nModified", documents::int(modified))]);
        compared("mongodb", documents::asked(1, &update), told)
    };
    assert!(counted(2, 2) != counted(2, 1) && counted(2, 2) != counted(3, 2));
}

/// The conversations of the other tests are the corpus' first inputs; this writes them where they are missing.
#[test]
fn corpus_has_the_conversations() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocols/__fuzz__");
    let setups = SCHEMES.map(|scheme| (scheme, conversation(scheme)));
    let all = setups.into_iter().map(|one| ("conversation", one));
    for (name, (scheme, said)) in all.chain(conversations().map(|one| ("requests", one))) {
        let mut input = Vec::new();
        for (is_client, bytes) in said {
            for part in bytes.chunks(0x7f) {
                input.push(part.len() as u8 | if is_client { 0 } else { 0x80 });
                input.extend_from_slice(part);
            }
        }
        let file = folder.join(format!("wire-{scheme}/corpus/{name}"));
        if std::env::var_os("KURABE_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &input).unwrap();
        }
        assert_eq!(std::fs::read(&file).unwrap(), input, "{}: KURABE_BLESS=1 writes it", file.display());
    }
}

fn conversations() -> [(&'static str, Vec<Said>); 6] {
    use super::{http, memcached, mongodb, mysql, postgres, redis};
    [
        ("mysql", mysql::tests::conversation()),
        ("postgres", postgres::tests::conversation()),
        ("redis", redis::tests::conversation()),
        ("memcached", memcached::tests::conversation()),
        ("mongodb", mongodb::tests::conversation()),
        ("couchdb", http::tests::conversation()),
    ]
}

/// What a view sees of a conversation, in pieces of at most this size.
fn viewed(scheme: &str, conversation: &[Said], piece: usize) -> Vec<Event> {
    let view = registry::of_scheme(scheme).unwrap().view;
    seen_by(view(Language::from_scheme(scheme).dialect()), conversation, piece)
}

/// Checks that the same is seen of a conversation in pieces of this size, and that it says once where it stops.
fn survives_pieces(scheme: &str, conversation: &[Said], piece: usize) {
    let whole = viewed(scheme, conversation, WHOLE);
    assert_eq!(viewed(scheme, conversation, piece), whole, "{scheme}");
    let ends = whole.iter().filter(|one| matches!(one, Event::Unreadable(_))).count();
    assert!(ends <= 1, "{scheme}: {whole:?}");
}

const REDIS_WORDS: &[&str] = &[
    "*", "$", ":", "+", "-", ">", "%", "|", "_", "1", "2", "3", "9", "\r\n", "\r\n", "GET",
    "*1\r\n$4\r\nPING\r\n",
];

const MEMCACHED_WORDS: &[&str] = &[
    "set", " ", " ", "\r\n", "\r\n", "get", "mg", "VALUE", "2", "-1", "END", "HD", "noreply", "q",
    "quit\r\n", "get a\r\n", "END\r\n", "VA 2\r\nab\r\n",
];

const HTTP_WORDS: &[&str] = &[
    "GET /a HTTP/1.1\r\n",
    "HEAD / HTTP/1.1\r\n",
    "PUT /db/1?a=%",
    " HTTP/1.1\r\n",
    "\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 404 \r\n",
    "Content-Length: ",
    "3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "0\r\n\r\n",
    "2\r\n{}\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: x\r\n",
    "{\"rows\":[",
    "18446744073709551615\r\n",
    "ffffffffffffffff\r\n",
    "é\u{0}",
    "x",
];

proptest! {
    #[test]
    fn what_is_seen_does_not_depend_on_pieces(piece in 1_usize..40) {
        for (scheme, of_view) in conversations() {
            survives_pieces(scheme, &of_view, piece);
            survives_pieces(scheme, &conversation(scheme), piece);
        }
    }

    #[test]
    fn lie_in_a_conversation_is_read_alike_in_pieces_and_ends_it_once_at_most(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        lie in prop::collection::vec(any::<u8>(), 1..6),
        (is_near, is_cut) in any::<(bool, bool)>(),
        piece in 1_usize..40,
    ) {
        for (scheme, mut conversation) in conversations() {
            let which = which.index(conversation.len());
            let bytes = &mut conversation[which].1;
            // Most lengths are at the beginning.
            let at = at.index(if is_near { bytes.len().min(64) } else { bytes.len() });
            bytes.splice(at..(at + lie.len()).min(bytes.len()), lie.iter().copied());
            bytes.truncate(if is_cut { at + lie.len() } else { usize::MAX });
            survives_pieces(scheme, &conversation, piece);
        }
    }

    #[test]
    fn conversation_of_a_protocols_words_is_read_alike_in_pieces(
        words in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..40), 1..20),
        piece in 1_usize..40,
    ) {
        for (scheme, of) in [
            ("redis", REDIS_WORDS), ("memcached", MEMCACHED_WORDS), ("couchdb", HTTP_WORDS), ("http", HTTP_WORDS),
        ] {
            let said = words.iter().map(|said| said.iter().flat_map(|word| word.get(of).as_bytes().to_vec()));
            let conversation: Vec<Said> = said.enumerate().map(|(turn, said)| (turn % 2 == 0, said.collect())).collect();
            survives_pieces(scheme, &conversation, piece);
        }
    }

    #[test]
    fn refusing_tls_changes_nothing_else(piece in 1_usize..40, offers in any::<bool>()) {
        let make = |scheme: &str| registry::of_scheme(scheme).unwrap().refusal.unwrap()();
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        let mut refusal = make("postgres");
        let request = message(0, &80_877_103_u32.to_be_bytes());
        let start = message(0, b"\0\x03\0\0user\0bob\0\0");
        let rest = [start, message(b'Q', &request)].concat();
        let all = if offers { [&request[..], &rest].concat() } else { rest.clone() };
        for part in all.chunks(piece) {
            refusal.sent(part, &mut sent, &mut answers);
        }
        prop_assert_eq!((&sent, answers.as_slice()), (&rest, if offers { b"N".as_slice() } else { b"" }));
        prop_assert_eq!(refusal.has_refused(), offers);
        let mut refusal = make("mysql");
        let with = if offers { FLAGS | 1 << 11 } else { FLAGS };
        let mut greeted = [greeting(with), packet(1, &[0xff; 60])].concat();
        for part in greeted.chunks_mut(piece) {
            refusal.received(part);
        }
        prop_assert_eq!(greeted, [greeting(FLAGS), packet(1, &[0xff; 60])].concat());
        prop_assert_eq!(refusal.has_refused(), offers);
    }
}

mod fuzz {
    use super::*;

    /// Reads any bytes as a conversation: a byte with the side and the length of what it says, again and again.
    fn any_conversation(input: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        let mut rest = input;
        while let Some((head, after)) = rest.split_first() {
            let (part, next) = after.split_at(usize::from(head & 0x7f).min(after.len()));
            said.push((head & 0x80 == 0, part.to_vec()));
            rest = next;
        }
        said
    }

    /// Any conversation is read, and alike in pieces; nothing that is refused changes the rest.
    fn survives(scheme: &str, input: &[u8]) {
        let conversation = any_conversation(input);
        survives_pieces(scheme, &conversation, 1);
        let Some(make) = registry::of_scheme(scheme).unwrap().refusal else { return };
        let (mut refusal, mut sent, mut answers) = (make(), Vec::new(), Vec::new());
        let mut all = 0;
        for (is_client, mut bytes) in conversation {
            if is_client {
                all += bytes.len();
                refusal.sent(&bytes, &mut sent, &mut answers);
            } else {
                refusal.received(&mut bytes);
            }
        }
        // At most the beginning of one more request for encryption is held back.
        assert!(sent.len() + 8 * answers.len() <= all && all < sent.len() + 8 * answers.len() + 8);
    }

    #[test]
    fn any_conversation_of_mysql_is_read() {
        bolero::check!(name = "wire-mysql").for_each(|input: &[u8]| survives("mysql", input));
    }

    #[test]
    fn any_conversation_of_postgres_is_read() {
        bolero::check!(name = "wire-postgres").for_each(|input: &[u8]| survives("postgres", input));
    }

    #[test]
    fn any_conversation_of_redis_is_read() {
        bolero::check!(name = "wire-redis").for_each(|input: &[u8]| survives("redis", input));
    }

    #[test]
    fn any_conversation_of_memcached_is_read() {
        bolero::check!(name = "wire-memcached").for_each(|input: &[u8]| survives("memcached", input));
    }

    #[test]
    fn any_conversation_of_mongodb_is_read() {
        bolero::check!(name = "wire-mongodb").for_each(|input: &[u8]| {
            survives("mongodb", input);
            // Requests that were read are made again.
            let whole = viewed("mongodb", &any_conversation(input), WHOLE);
            for one in exchanges(&whole).into_iter().filter(|one| !one.cut) {
                let command = document(&one.parameters).unwrap();
                let is_quiet = is_quiet(&one.parameters);
                let made = command.message(1, "d", is_quiet, &|cursor| cursor).unwrap();
                assert_eq!(exchanges(&viewed("mongodb", &[(true, made)], WHOLE))[0].text, one.text);
            }
        });
    }

    #[test]
    fn any_conversation_of_couchdb_is_read() {
        bolero::check!(name = "wire-couchdb").for_each(|input: &[u8]| survives("couchdb", input));
    }

    #[test]
    fn any_conversation_of_http_is_seen() {
        bolero::check!(name = "wire-http").for_each(|input: &[u8]| survives("http", input));
    }
}
