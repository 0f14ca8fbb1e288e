//! Conversations of Redis, as views see them.

use super::*;
use crate::view::WAITING;
use crate::view::tests::{exchanges, seen_of, told, words};

fn asked(words: &[&str]) -> (bool, Vec<u8>) {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = std::iter::once(format!("*{}\r\n", words.len())).chain(words).collect();
    (true, words.concat().into_bytes())
}

/// Requests of each kind with their answers.
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    vec![
        asked(&["hello", "3", "AUTH", "bob", "hunter2"]),
        told("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"),
        asked(&["SET", "a", "1"]),
        asked(&["MGET", "a", "b", "c", "d", "e"]),
        told("+OK\r\n|1\r\n+ttl\r\n:3\r\n*5\r\n$1\r\n1\r\n_\r\n$-1\r\n$0\r\n\r\n*2\r\n:1\r\n:2\r\n"),
        told(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"),
        asked(&["MULTI"]),
        asked(&["INCRBY", "a", "4"]),
        asked(&["EXEC"]),
        told("+OK\r\n+QUEUED\r\n*1\r\n:5\r\n"),
        asked(&["LPUSH", "a", "x"]),
        told("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        asked(&["config", "set", "requirepass", "hunter2"]),
        told("+OK\r\n"),
        (true, b"PING\r\n".to_vec()),
        told("+PONG\r\n"),
        asked(&["DEL", "a"]),
        told(":1\r\n"),
        asked(&["GET", "a"]),
    ]
}

#[test]
fn requests_have_their_words_and_answers_their_shape() {
    let whole = seen_of(Redis::default(), &conversation(), usize::MAX >> 1);
    assert!(!format!("{whole:?}").contains("hunter2"));
    let all = exchanges(&whole);
    let shown: Vec<_> = all.iter().map(|one| (one.text.as_str(), words(one).len(), one.rows)).collect();
    let expected = [
        ("HELLO ?", 1, 2),
        ("SET ?", 2, 0),
        ("MGET ?", 5, 5),
        ("MULTI", 0, 0),
        ("INCRBY ?", 2, 0),
        ("EXEC", 0, 1),
        ("LPUSH ?", 2, 0),
        ("CONFIG SET ?", 1, 0),
        ("PING", 0, 0),
        ("DEL ?", 1, 0),
        ("GET ?", 1, 0),
    ];
    assert_eq!(shown, expected);
    let states: Vec<_> = all[3..6].iter().map(|one| one.transaction).collect();
    assert_eq!(states, [Transaction::Open, Transaction::Open, Transaction::None]);
    assert_eq!((all[6].error.as_deref(), all[9].affected), (Some("WRONGTYPE"), 1));
    assert!(all[2].pipelined && !all[1].pipelined && all[7].cut && all[10].ended.is_none());
}

#[test]
fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
    let ends = [
        vec![asked(&["SUBSCRIBE", "news"]), told("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")],
        vec![asked(&["GET", "a"]), told("HTTP/1.1 400 Bad Request\r\n\r\n")],
        vec![(true, b"*x\r\n".to_vec())],
        vec![told("+OK\r\n")],
        vec![asked(&["GET", "a"]), told("$x\r\n"), asked(&["GET", "b"])],
    ];
    for conversation in ends {
        let events = seen_of(Redis::default(), &conversation, 4);
        let unreadable = events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count();
        assert_eq!(unreadable, 1, "{events:?}");
    }
}

#[test]
fn requests_that_are_never_answered_are_kept_up_to_a_limit() {
    let many = (0..300_000).map(|_| &b"PING\r\n"[..]).collect::<Vec<_>>().concat();
    let events = seen_of(Redis::default(), &[(true, many)], 1 << 16);
    let kept = exchanges(&events).len();
    assert!(matches!(events.last(), Some(Event::Unreadable(_))) && kept < 263_000, "{kept}");
    let large = [&b"*2\r\n$3\r\nGET\r\n$1000000\r\n"[..], &vec![b'x'; 1_000_000], b"\r\n"].concat();
    let events = seen_of(Redis::default(), &[(true, large.repeat(40))], 1 << 16);
    let bytes: usize = exchanges(&events).iter().flat_map(|one| words(one)).map(<[u8]>::len).sum();
    assert!(exchanges(&events).len() == 40 && (10_000_000..=WAITING).contains(&bytes), "{bytes}");
}
