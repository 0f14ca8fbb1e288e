use super::*;
use crate::wire::script::Script;

fn client(answers: &str) -> Client<Script> {
    Client::new(Script::new(answers.as_bytes().to_vec()))
}

#[test]
fn foreign_ownership_table_is_refused() {
    for answer in [
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        "%1\r\n+kurabe_a\r\n+x\r\n",
        "%2\r\n+title\r\n+collections of Kurabe\r\n+users\r\n+x\r\n",
        "%1\r\n+title\r\n+something else\r\n",
    ] {
        let error = read_marker(&mut client(answer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{answer}: {error}");
    }
    let ours = "%2\r\n+title\r\n+collections of Kurabe\r\n+kurabe_a\r\n+x\r\n";
    assert_eq!(read_marker(&mut client(ours)).unwrap(), ["kurabe_a"]);
    assert!(read_marker(&mut client("%0\r\n")).unwrap().is_empty());
}

#[test]
fn claim_is_added_if_absent_and_names_its_holder() {
    assert!(!client("_\r\n").add("run y").unwrap());
    assert!(client("+OK\r\n").add("run y").unwrap());
    assert_eq!(client("$5\r\nrun x\r\n").holder().unwrap().as_deref(), Some("run x"));
    assert_eq!(client("_\r\n").holder().unwrap(), None);
}

#[test]
fn claim_of_another_run_is_not_changed() {
    let mut lost = client("+OK\r\n$5\r\nrun x\r\n+OK\r\n");
    while_ours(&mut lost, "run y", &["DEL", CLAIM]).unwrap();
    let sent = String::from_utf8(lost.wire.stream().sent.clone()).unwrap();
    assert!(sent.contains("UNWATCH") && !sent.contains("DEL"), "{sent}");
    let mut ours = client("+OK\r\n$5\r\nrun y\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    while_ours(&mut ours, "run y", &["DEL", CLAIM]).unwrap();
}

#[test]
fn scan_continues_until_cursor_zero() {
    let mut walked =
        client("*2\r\n+17\r\n*0\r\n*2\r\n+0\r\n*2\r\n$10\r\nkurabe_a:1\r\n$10\r\nkurabe_a:2\r\n:2\r\n");
    each_key(&mut walked, "kurabe_a", unlink).unwrap();
    let sent = String::from_utf8(walked.wire.stream().sent.clone()).unwrap();
    assert!(sent.contains("$2\r\n17\r\n") && sent.contains("UNLINK\r\n$10\r\nkurabe_a:1\r\n"), "{sent}");
    let there = foreign_key(&mut client("*2\r\n+0\r\n*1\r\n$10\r\nkurabe_a:1\r\n"), "kurabe_a");
    assert_eq!(there.unwrap().as_deref(), Some("the key 'kurabe_a:1'"));
    assert_eq!(foreign_key(&mut client("*2\r\n+0\r\n*0\r\n"), "kurabe_a").unwrap(), None);
}
