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
    let keys = "$17\r\nkurabe_a~kurabe:1\r\n$17\r\nkurabe_a~kurabe:2\r\n";
    let mut walked = client(&format!("*2\r\n+17\r\n*0\r\n*2\r\n+0\r\n*2\r\n{keys}:2\r\n"));
    each_key(&mut walked, "kurabe_a", unlink).unwrap();
    let sent = String::from_utf8(walked.wire.stream().sent.clone()).unwrap();
    assert!(
        sent.contains("$2\r\n17\r\n") && sent.contains("UNLINK\r\n$17\r\nkurabe_a~kurabe:1\r\n"),
        "{sent}"
    );
}

#[test]
fn rows_are_recognised_without_the_ownership_table() {
    let found = |answer: &str| search(&mut client(answer), "kurabe_a").unwrap();
    let (row, other) = ("$17\r\nkurabe_a~kurabe:1\r\n", "$10\r\nkurabe_a:1\r\n");
    assert_eq!(found(&format!("*2\r\n+0\r\n*2\r\n{other}{row}")), (true, None));
    assert_eq!(
        found(&format!("*2\r\n+0\r\n*1\r\n{other}")),
        (false, Some("the key 'kurabe_a:1'".to_owned()))
    );
    assert_eq!(found("*2\r\n+0\r\n*0\r\n"), (false, None));
    // The name of somebody else's key is no name of a collection.
    let upper = "$17\r\nkurabe_A~kurabe:1\r\n";
    let names = signed(&mut client(&format!("*2\r\n+0\r\n*3\r\n{row}{upper}{row}"))).unwrap();
    assert_eq!(names, ["kurabe_a"]);
}
