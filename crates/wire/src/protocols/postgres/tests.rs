//! Conversations of PostgreSQL, as views see them.

use super::*;
use crate::view::tests::{exchanges, seen_of};
use proptest::prelude::*;

/// A message; the first one has no kind.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    let kind: &[u8] = if kind == 0 { b"" } else { &[kind] };
    [kind, &length, body].concat()
}

pub(crate) fn messages(all: &[(u8, &[u8])]) -> Vec<u8> {
    all.iter().flat_map(|(kind, body)| message(*kind, body)).collect()
}

fn row(value: &[u8]) -> Vec<u8> {
    message(b'D', &[b"\0\x01\0\0\0\x01", value].concat())
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// A conversation: whether the client speaks, and what it says. After the manual's "Message Flow".
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    let start = b"\0\x03\0\0user\0bob\0application_name\0shop\0\0";
    let bind = b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0";
    let failed = b"SERROR\0VERROR\0C23505\0Mno\0\0";
    let prepare = b"s\0SELECT a FROM t WHERE b = $1 ORDER BY a\0\0\x01\0\0\0\x17";
    let types = b"\0\x02\0\0\0\x17\0\0\0\x19";
    let (x, y) = (b"\0\x01\0\0\0\x01x", b"\0\x01\0\0\0\x01y");
    let one = b"\0\0\0\0\0\x01\0\0\0\x01x\0\0";
    let all = b"\0\0\0\0\0";
    vec![
        (true, message(0, start)),
        (false, messages(&[(b'R', b"\0\0\0\0"), (b'S', b"a\0b\0"), (b'Z', b"I")])),
        (true, message(b'Q', b"BEGIN\0")),
        (false, messages(&[(b'C', b"BEGIN\0"), (b'Z', b"T")])),
        (true, messages(&[(b'P', prepare), (b'D', b"Ss\0"), (b'S', b"")])),
        (false, messages(&[(b'1', b""), (b't', types), (b'T', b"\0\0"), (b'Z', b"T")])),
        (true, messages(&[(b'B', bind), (b'E', all), (b'S', b"")])),
        (false, messages(&[(b'2', b""), (b'D', x), (b'D', y), (b'C', b"SELECT 2\0"), (b'Z', b"T")])),
        (true, message(b'Q', b"COPY t FROM STDIN\0")),
        (false, message(b'G', b"\0\0\x01\0\0")),
        (true, messages(&[(b'd', b"1\n"), (b'd', b"2\n"), (b'c', b"")])),
        (false, messages(&[(b'C', b"COPY 2\0"), (b'Z', b"T")])),
        (true, messages(&[(b'P', b"\0INSERT 1\0\0\0"), (b'B', one), (b'E', all), (b'E', all), (b'S', b"")])),
        (false, messages(&[(b'1', b""), (b'2', b""), (b'E', failed), (b'Z', b"E")])),
        (true, message(b'Q', b"ROLLBACK\0")),
    ]
}

fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
    seen_of(Postgres::new(Dialect::POSTGRES), conversation, piece)
}

#[test]
fn requests_are_seen_with_values_and_the_shapes_of_their_answers() {
    let events = seen(&conversation(), usize::MAX);
    let said = [("user".to_owned(), "bob".to_owned()), ("application_name".to_owned(), "shop".to_owned())];
    assert_eq!(events[0], Event::Client(said.to_vec()));
    let data = events
        .iter()
        .find_map(|event| if let Event::Data { bytes, .. } = event { Some(&bytes[..]) } else { None });
    assert_eq!(data, Some(&b"1\n2\n"[..]));
    let found = exchanges(&events);
    let shape = |one: &&Exchange| {
        (one.text.clone(), one.step, one.rows, one.affected, one.error.clone(), one.transaction)
    };
    let shapes: Vec<_> = found.iter().map(shape).collect();
    let select = "SELECT a FROM t WHERE b = $1 ORDER BY a".to_owned();
    let error = |code: &str| Some(code.to_owned());
    assert_eq!(
        shapes,
        [
            ("BEGIN".to_owned(), Step::Text, 0, 0, None, Transaction::Open),
            (select.clone(), Step::Prepare, 0, 0, None, Transaction::Open),
            (select, Step::Execute, 2, 0, None, Transaction::Open),
            ("COPY t FROM STDIN".to_owned(), Step::Text, 0, 2, None, Transaction::Open),
            ("INSERT 1".to_owned(), Step::Bound, 0, 0, error("23505"), Transaction::Unknown),
            ("INSERT 1".to_owned(), Step::Bound, 0, 0, error("skipped"), Transaction::Failed),
            ("ROLLBACK".to_owned(), Step::Text, 0, 0, None, Transaction::Unknown),
        ]
    );
    let parameters = [
        Parameter::new(23, true, vec![0, 0, 0, 7]),
        Parameter { chosen: true, ..Parameter::new(25, true, None) },
    ];
    assert_eq!(found[2].parameters, parameters);
    let untyped = Parameter { chosen: true, ..Parameter::new(0, false, b"x".to_vec()) };
    assert_eq!((&found[4].parameters[..], found.iter().any(|one| one.cut)), (&[untyped][..], false));
    assert!(found[5].pipelined && !found[4].pipelined && found[6].ended.is_none());
}

#[test]
fn rows_in_parts_have_their_maximum_and_all_have_the_formats_that_were_asked_for() {
    let mut said: Vec<_> = conversation().into_iter().take(2).collect();
    let (parse, bind) = (message(b'P', b"\0SELECT 1\0\0\0"), message(b'B', b"p\0\0\0\0\0\0\0\x01\0\x01"));
    let execute = [message(b'E', b"p\0\0\0\0\x02"), message(b'S', b"")].concat();
    said.push((true, [parse, bind, execute.clone()].concat()));
    let begun = [message(b'1', b""), message(b'2', b"")].concat();
    said.push((false, [begun, row(b"x"), row(b"y"), message(b's', b""), ready(b'T')].concat()));
    said.push((true, execute));
    said.push((false, [row(b"z"), message(b'C', b"SELECT 1\0"), ready(b'T')].concat()));
    let seen = seen(&said, usize::MAX);
    let found =
        exchanges(&seen).into_iter().map(|one| (one.rows, one.limit, one.goes_on, one.formats.clone()));
    assert_eq!(found.collect::<Vec<_>>(), [(2, 2, false, vec![true]), (1, 2, true, vec![true])]);
}

/// A statement that is prepared, bound and executed in one go.
fn at_once(name: &str, text: &str) -> Vec<u8> {
    let parse = message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat());
    let bind = message(b'B', &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat());
    [parse, bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
}

fn failed(code: &str) -> Vec<u8> {
    message(b'E', &[b"SERROR\0C", code.as_bytes(), b"\0Mno\0\0"].concat())
}

/// What is seen of these messages after a login, in pieces of several sizes.
fn after_login(rest: &[(bool, Vec<u8>)]) -> Vec<Event> {
    let mut said: Vec<_> = conversation().into_iter().take(2).collect();
    said.extend_from_slice(rest);
    let whole = seen(&said, usize::MAX);
    for piece in [1, 7] {
        let texts = |events: &[Event]| {
            exchanges(events).iter().map(|one| (one.text.clone(), one.error.clone())).collect::<Vec<_>>()
        };
        assert_eq!(texts(&seen(&said, piece)), texts(&whole));
    }
    whole
}

#[test]
fn error_that_comes_at_sync_is_that_of_the_last_request_before_it() {
    let insert = at_once("", "INSERT 1");
    let done = [message(b'1', b""), message(b'2', b""), message(b'C', b"INSERT 0 1\0")].concat();
    let events = after_login(&[
        (true, insert.clone()),
        (false, [done.clone(), failed("23503"), ready(b'I')].concat()),
        (true, insert),
        (false, [done, ready(b'I')].concat()),
    ]);
    let errors: Vec<_> = exchanges(&events).iter().map(|one| one.error.clone()).collect();
    assert_eq!(errors, [Some("23503".to_owned()), None]);
}

#[test]
fn answers_without_a_sync_are_given_as_they_come_but_for_the_last() {
    let execute = [
        message(b'P', b"\0SELECT 1\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
    ];
    let done = [message(b'1', b""), message(b'2', b""), message(b'C', b"SELECT 1\0")];
    let (now, mut events) = (std::time::Instant::now(), Vec::new());
    let mut view = Postgres::new(Dialect::POSTGRES);
    view.let_in(0);
    for n in 0..1_000 {
        view.sent(&execute.concat(), now, &mut events).unwrap();
        view.received(&done.concat(), now, &mut events).unwrap();
        assert_eq!(exchanges(&events).len(), n);
    }
}

#[test]
fn name_that_is_refused_or_passed_over_keeps_its_statement() {
    let prepared =
        [message(b'1', b""), message(b'2', b""), message(b'C', b"SELECT 1\0"), ready(b'I')].concat();
    let execute =
        [message(b'B', b"\0s\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    let executed = [message(b'2', b""), message(b'C', b"SELECT 1\0"), ready(b'I')].concat();
    // The second Parse has the name of the first; what follows it is passed over, with its Close.
    let again = [message(b'P', b"s\0SELECT 2\0\0\0"), message(b'C', b"Ss\0"), message(b'S', b"")].concat();
    let events = after_login(&[
        (true, at_once("s", "SELECT 1")),
        (false, prepared),
        (true, again),
        (false, [failed("42P05"), ready(b'I')].concat()),
        (true, execute),
        (false, executed),
    ]);
    let texts: Vec<_> = exchanges(&events).iter().map(|one| one.text.clone()).collect();
    assert_eq!(texts, ["SELECT 1", "SELECT 1", "SELECT 2", "SELECT 1"]);
}

#[test]
fn copy_in_the_extended_protocol_has_its_data_and_what_follows_is_read() {
    let begun = [message(b'1', b""), message(b'2', b""), message(b'G', b"\0\0\0")].concat();
    let data = [message(b'd', b"1\n"), message(b'c', b""), message(b'S', b"")].concat();
    let select = [message(b'C', b"SELECT 1\0"), ready(b'I')].concat();
    // Before it, a statement is prepared, and the client waits for no Sync.
    let events = after_login(&[
        (true, [message(b'P', b"s\0SELECT a FROM t\0\0\0"), message(b'H', b"")].concat()),
        (false, message(b'1', b"")),
        (true, at_once("", "COPY t FROM STDIN")),
        (false, begun),
        (true, data),
        (false, [message(b'C', b"COPY 1\0"), ready(b'I')].concat()),
        (true, message(b'Q', b"SELECT 1\0")),
        (false, select),
    ]);
    let shown: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Exchange(one) => Some(one.text.clone()),
            Event::Data { of, .. } => Some(format!("data of {of}")),
            Event::Unreadable(stop) => Some(stop.why().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["SELECT a FROM t", "data of COPY t FROM STDIN", "COPY t FROM STDIN", "SELECT 1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cut_loses_only_what_follows(piece in 1_usize..40, end in any::<prop::sample::Index>()) {
        let whole = seen(&conversation(), usize::MAX);
        let mut cut = conversation();
        cut.truncate(1 + end.index(cut.len()));
        let last = &mut cut.last_mut().unwrap().1;
        last.truncate(end.index(last.len()));
        let (seen, whole) = (seen(&cut, piece), exchanges(&whole));
        for (at, one) in exchanges(&seen).into_iter().enumerate() {
            // What was not answered before the cut is said to be so.
            prop_assert!(one.ended.is_none() || (one.rows, &one.error, &one.text) == (whole[at].rows, &whole[at].error, &whole[at].text));
            prop_assert_eq!((&one.text, &one.parameters), (&whole[at].text, &whole[at].parameters));
        }
    }
}
