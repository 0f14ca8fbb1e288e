//! MongoDB and CouchDB: an ownership table in which others wrote the name of a collection that is theirs.

use super::*;
use crate::replay::mongodb::Client;
use kurabe_testbed::{Server, testing};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A run is refused while the ownership table lists a collection of others, which stays as it is; then it is measured.
fn is_left(server: &Server, strike: &mut dyn FnMut(), count: &mut dyn FnMut() -> String) {
    let place = Place::new();
    let run = || place.run(&[&["run", "session", server.url()][..], &SESSION].concat());
    let (answer, before) = (run(), count());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    for part in ["kurabe_wages", "was not made by Kurabe", "left alone"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    assert!(before.contains('7'), "{before}");
    strike();
    run().success();
    assert_eq!(count(), before);
}

#[test]
fn entry_of_a_collection_of_others_removes_nothing_on_mongodb() {
    let Some(server) = testing::server("mongodb") else { return };
    let mut client = Client::of(&server);
    client.ask("insert", &json!("kurabe_wages"), &json!({ "documents": [{ "_id": 7 }] }));
    let entry = |id: &str| json!({ "_id": id, "made_by": "kurabe 0.1.0", "made_at": 1_700_000_000 });
    let entries = [entry("Kurabe's own collections"), entry("kurabe_wages")];
    let written = client.ask("insert", &json!("kurabe_marker"), &json!({ "documents": entries }));
    assert_eq!(written["n"], 2, "{written}");
    let strike = &mut || {
        let of = json!([{ "q": { "_id": "kurabe_wages" }, "limit": 1 }]);
        assert_eq!(
            Client::of(&server).ask("delete", &json!("kurabe_marker"), &json!({ "deletes": of }))["n"],
            1
        );
    };
    is_left(&server, strike, &mut || {
        Client::of(&server).ask("find", &json!("kurabe_wages"), &json!({ "filter": {} }))["cursor"]["firstBatch"].to_string()
    });
}

#[test]
fn entry_of_a_database_of_others_removes_nothing_on_couchdb() {
    let Some(server) = testing::server("couchdb") else { return };
    let ask = |method: &str, path: &str, body: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let (user, length) = (testing::authorization(&server), body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: a\r\n{user}Content-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{method} {path}: {answer}");
        answer.rsplit_once("\r\n\r\n").unwrap().1.to_owned()
    };
    ask("PUT", "/kurabe_wages", "");
    ask("PUT", "/kurabe_wages/7", "{}");
    ask("PUT", "/kurabe_marker", "");
    let entry = r#"{"made_by":"kurabe 0.1.0","made_at":1700000000}"#;
    let written = ask("PUT", "/kurabe_marker/!kurabe_wages", entry);
    let revision = written.split("\"rev\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let strike = &mut || drop(ask("DELETE", &format!("/kurabe_marker/!kurabe_wages?rev={revision}"), ""));
    is_left(&server, strike, &mut || ask("GET", "/kurabe_wages/7", ""));
}
