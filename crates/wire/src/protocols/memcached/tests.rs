//! Conversations of memcached, as views see them.

use super::*;
use crate::view::tests::{asked, exchanges, seen_of, told, words};

fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
    seen_of(Memcached::default(), conversation, piece)
}

/// Requests of each kind with their answers.
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    vec![
        asked("set login 0 0 12\r\nbob hunter22\r\n"),
        told("CLIENT_ERROR authentication failure\r\n"),
        asked("set login 0 0 11\r\nbob hunter2\r\n"),
        told("STORED\r\n"),
        asked("set a 5 0 4\r\n1\r\n2\r\n"),
        told("STORED\r\n"),
        asked("get a b c\r\nadd a 0 0 1 noreply\r\nx\r\nincr n 2\r\n"),
        told("VALUE a 5 4\r\n1\r\n2\r\nVALUE c 0 0\r\n\r\nEND\r\n7\r\n"),
        asked("cas a 0 60 2 99\r\nok\r\n"),
        told("EXISTS\r\n"),
        asked("mg a v t\r\nms b 3 T9\r\nabc\r\nmn\r\n"),
        told("VA 4 t-1\r\n1\r\n2\r\nHD\r\nMN\r\n"),
        asked("delete a\r\nstats\r\n"),
        told("NOT_FOUND\r\nSTAT pid 1\r\nSTAT uptime 2\r\nEND\r\n"),
        asked("set long 0 0 x\r\n"),
    ]
}

#[test]
fn requests_have_their_words_and_answers_their_shape() {
    let whole = seen(&conversation(), usize::MAX >> 1);
    assert!(!format!("{whole:?}").contains("hunter2"));
    let all = exchanges(&whole);
    let shown: Vec<_> =
        all.iter().map(|one| (one.text.as_str(), words(one).len(), one.rows, one.affected)).collect();
    let expected = [
        ("set ?", 3, 0, 0),
        ("set ?", 3, 0, 1),
        ("set ?", 4, 0, 1),
        ("get ?", 3, 2, 0),
        ("add ? noreply", 4, 0, 0),
        ("incr ?", 2, 0, 1),
        ("cas ?", 5, 0, 0),
        ("mg ?", 3, 1, 0),
        ("ms ?", 3, 0, 1),
        ("mn", 0, 0, 0),
        ("delete ?", 1, 0, 0),
        ("stats", 0, 2, 0),
    ];
    assert_eq!(shown, expected);
    assert!(all[0].cut && all[1].cut && !all[2].cut);
    assert!(all[4].pipelined && all[5].pipelined && !all[3].pipelined);
    assert_eq!(words(all[2])[3], b"1\r\n2");
    assert!(Command::read(&all[4].parameters).unwrap().is_quiet());
    assert!(matches!(whole.last(), Some(Event::Unreadable(_))), "{whole:?}");
}

#[test]
fn key_may_be_the_name_of_a_flag_and_nothing_is_read_after_quit() {
    let events = seen(
        &[asked("mg q v\r\n"), told("VA 1\r\nx\r\n"), asked("quit\r\nwatch\r\n"), asked("watch\r\n")],
        3,
    );
    assert_eq!(exchanges(&events).len(), 1, "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::Unreadable(_))), "{events:?}");
}

#[test]
fn dump_of_keys_has_a_row_for_each_and_what_follows_is_read() {
    let events = seen(
        &[
            asked("lru_crawler metadump all\r\nget a\r\n"),
            told("key=a exp=-1 la=1\r\nkey=END exp=0\r\nEND\r\nEND\r\n"),
        ],
        3,
    );
    let all: Vec<_> = exchanges(&events).iter().map(|one| (one.text.as_str(), one.rows)).collect();
    assert_eq!(all, [("lru_crawler ?", 2), ("get ?", 0)]);
}

#[test]
fn command_of_an_administrator_or_one_that_the_server_refuses_does_not_end_the_reading() {
    for (command, answer, rows) in [
        ("slabs reassign 1 2", "BUSY currently processing reassign request", 0),
        ("cache_memlimit 64", "OK", 0),
        ("lru mode flat", "OK", 0),
        ("no_such command", "ERROR", 0),
        ("stats cachedump 1 2", "ITEM a [1 b; 0 s]\r\nITEM END [1 b; 0 s]\r\nEND", 2),
        ("stats detail dump", "PREFIX p get 1 hit 0 set 0 del 0\r\nEND", 1),
    ] {
        let answer = told(&format!("{answer}\r\nEND\r\n"));
        let events =
            seen(&[asked(&format!("{command}\r\nslabs automove 1 noreply\r\nget a\r\n")), answer], 3);
        let all: Vec<_> = exchanges(&events).iter().map(|one| (one.rows, one.ended.is_some())).collect();
        assert_eq!(all, [(rows, true), (0, true), (0, true)], "{command}: {events:?}");
    }
}

#[test]
fn what_follows_quit_is_not_kept() {
    let (now, mut events, mut view) = (Instant::now(), Vec::new(), Memcached::default());
    for text in ["quit\r\n"].into_iter().chain(std::iter::repeat_n("get a\r\n", 10_000)) {
        view.sent(text.as_bytes(), now, &mut events).unwrap();
    }
    assert!(view.client.waiting().len() < 10, "{}", view.client.waiting().len());
}

#[test]
fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
    for conversation in [
        vec![asked("watch\r\n"), told("OK\r\n")],
        vec![asked("no_such command\r\n"), told("ANSWER 1\r\n")],
        vec![asked("get a\r\n"), told("HTTP/1.1 400 Bad Request\r\n\r\n")],
        vec![(true, vec![0x80, 0, 0, 1])],
        vec![asked("mg a v q\r\nmn\r\n"), told("MN\r\n")],
        vec![asked("get a\r\n"), told("VALUE a 0 2\r\nabcd\r\nEND\r\n")],
        vec![asked("get a\r\n"), told("VALUE a 0 -2\r\n")],
        vec![told("STORED\r\n")],
        vec![asked("set a 0 0 99999999999\r\n")],
    ] {
        let events = seen(&conversation, 4);
        let unreadable = events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count();
        assert_eq!(unreadable, 1, "{events:?}");
    }
}
