//! Wrong answers of servers without SQL are found: another value, a key that is missing or that was not there, another count, another
//! order, an error in place of a value.

use super::mongodb::{Client, recorded};
use super::replay;
use crate::support::Place;
use kurabe_testbed::{Server, testing};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Something that is changed before a replay, how that is undone, and what is said then.
type Planted<'a> = (&'a str, &'a str, &'a str);

fn own(server: &Server) -> SocketAddr {
    ([127, 0, 0, 1], server.port()).into()
}

/// Reads an answer of Redis or memcached to its end.
fn read_answer(from: &mut impl BufRead) {
    let mut line = String::new();
    assert!(from.read_line(&mut line).unwrap() > 0, "no answer");
    let words: Vec<_> = line.split_whitespace().collect();
    let (kind, count) = words[0].split_at(1);
    let mut read = |bytes: &str| {
        let mut value = vec![0; bytes.parse::<usize>().unwrap() + 2];
        from.read_exact(&mut value).unwrap();
    };
    match (words[0], kind, count) {
        ("VALUE", ..) => {
            read(words[3]);
            read_answer(from);
        }
        ("VA", ..) => read(words[1]),
        (_, "$" | "*", "-1") => {}
        (_, "$", length) => read(length),
        (_, "*", answers) => (0..answers.parse().unwrap()).for_each(|_: u32| read_answer(from)),
        _ => {}
    }
}

/// Sends requests one by one.
fn ask(server: &Server, address: SocketAddr, requests: &[String]) {
    let mut stream = TcpStream::connect(address).unwrap();
    testing::log_in(server, &mut stream).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for request in requests {
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut answers);
    }
}

/// Records requests, and replays them on their server as it was, with each change, and as it was again.
fn each_is_found(
    server: &Server,
    reads: &[String],
    planted: &[Planted<'_>],
    sent: impl Fn(&str) -> Vec<String>,
) {
    let place = Place::new();
    let path = recorded(&place, "reads", server, |address| ask(server, address, reads));
    let replayed = || replay(&place, &path, &[server.url(), "--write"]);
    replayed().success();
    for (plant, undo, said) in planted {
        ask(server, own(server), &sent(plant));
        let answer = replayed();
        let all = format!("{}{}", answer.out, answer.err);
        assert!(answer.code != Some(0) && all.contains("1 of ") && all.contains(said), "{plant}: {all}");
        ask(server, own(server), &sent(undo));
    }
    replayed().success();
}

#[test]
fn each_wrong_answer_of_redis_is_found() {
    for engine in ["redis", "valkey"] {
        let Some(server) = testing::server(engine) else { continue };
        let lines = |text: &str| -> Vec<String> {
            text.split(';').map(|line| format!("{}\r\n", line.trim())).collect()
        };
        let data = "SET a x;SADD s 1 2;RPUSH l 1 2 3;HSET h f v;ZADD z 1 m 2 n;SETRANGE e 0 x;SET k 1;HSET empty f 1;HDEL empty f";
        ask(&server, own(&server), &lines(data));
        let reads = "GET a;GET missing;STRLEN e;SCARD s;LRANGE l 0 -1;HGETALL h;ZRANGE z 0 -1 WITHSCORES;GET k;LLEN none;HGET h g";
        each_is_found(
            &server,
            &lines(reads),
            &[
                ("SET a y", "SET a x", "other values in 1 rows for 'GET"),
                ("DEL a", "SET a x", "0 rows instead of 1 for 'GET"),
                ("SET missing x", "DEL missing", "1 rows instead of 0 for 'GET"),
                ("APPEND e x", "SET e x", "2 rows changed instead of 1 for 'STRLEN"),
                ("SADD s 9", "SREM s 9", "3 rows changed instead of 2 for 'SCARD"),
                ("LSET l 1 9", "LSET l 1 2", "other values in 3 rows for 'LRANGE"),
                ("LSET l 0 2;LSET l 1 1", "LSET l 0 1;LSET l 1 2", "other values in 3 rows for 'LRANGE"),
                ("RPUSH l 4", "RPOP l", "4 rows instead of 3 for 'LRANGE"),
                ("HSET h f w", "HSET h f v", "other values in 2 rows for 'HGETALL"),
                ("ZADD z 1.5 m", "ZADD z 1 m", "other values in 4 rows for 'ZRANGE"),
                ("DEL k;LPUSH k 1", "DEL k;SET k 1", "error WRONGTYPE instead of no error for 'GET"),
                ("RPUSH none x", "DEL none", "1 rows changed instead of 0 for 'LLEN"),
                ("HSET h g \"\"", "HDEL h g", "for 'HGET"),
            ],
            lines,
        );
    }
}

#[test]
fn each_wrong_answer_of_memcached_is_found() {
    let Some(server) = testing::server("memcached") else { return };
    let lines = |text: &str| -> Vec<String> {
        text.split(';').map(|line| format!("{}\r\n", line.trim().replace('|', "\r\n"))).collect()
    };
    ask(&server, own(&server), &lines("set a 0 0 1|x;set n 0 0 1|5;set m 0 0 2|zz;set k 7 0 1|1"));
    each_is_found(
        &server,
        &lines("get a;get missing;get m k;incr n 1;decr n 1;mg k f v;mg gone v"),
        &[
            ("set a 0 0 1|y", "set a 0 0 1|x", "other values in 1 rows for 'get"),
            ("set a 3 0 1|x", "set a 0 0 1|x", "other values in 1 rows for 'get"),
            ("delete a", "set a 0 0 1|x", "0 rows instead of 1 for 'get"),
            ("set missing 0 0 0|", "delete missing", "1 rows instead of 0 for 'get"),
            ("delete m", "set m 0 0 2|zz", "1 rows instead of 2 for 'get"),
            ("set gone 0 0 1|x", "delete gone", "1 rows instead of 0 for 'mg"),
        ],
        lines,
    );
    // Both commands differ: the count, and the error that comes in its place.
    let place = Place::new();
    let path =
        recorded(&place, "count", &server, |address| ask(&server, address, &lines("incr n 1;decr n 1")));
    for (value, said) in
        [("7", "other values in 1 rows for 'incr"), ("x", "error CLIENT_ERROR instead of no error")]
    {
        ask(&server, own(&server), &lines(&format!("set n 0 0 1|{value}")));
        let answer = replay(&place, &path, &[server.url(), "--write"]);
        let all = format!("{}{}", answer.out, answer.err);
        assert!(answer.code != Some(0) && all.contains("2 of 2") && all.contains(said), "{all}");
    }
}

#[test]
fn each_wrong_answer_of_mongodb_is_found() {
    let Some(server) = testing::server("mongodb") else { return };
    let place = Place::new();
    let items = json!("items");
    let mut client = Client::of(&server);
    let documents: Vec<_> = (0..9).map(|n| json!({ "_id": n, "n": n % 3, "t": "x" })).collect();
    client.ask("insert", &items, &json!({ "documents": documents }));
    let path = recorded(&place, "reads", &server, |address| {
        let mut client = Client::connect(&server, address);
        for (command, rest) in [
            ("find", json!({ "filter": { "_id": 3 } })),
            ("find", json!({ "filter": { "_id": 70 }, "limit": 1 })),
            ("find", json!({ "filter": { "n": { "$lt": 9 } }, "sort": { "n": 1, "_id": 1 } })),
            ("count", json!({ "query": { "n": 1 } })),
            ("distinct", json!({ "key": "t" })),
            ("insert", json!({ "documents": [{ "_id": 50, "n": 99 }] })),
            ("delete", json!({ "deletes": [{ "q": { "_id": 50 }, "limit": 1 }] })),
        ] {
            client.ask(command, &items, &rest);
        }
    });
    let replayed = || replay(&place, &path, &[server.url(), "--write"]);
    replayed().success();
    let set = |id: i32, field: &str, value: serde_json::Value| {
        ("update", json!({ "updates": [{ "q": { "_id": id }, "u": { "$set": { field: value } } }] }))
    };
    let insert = |document: serde_json::Value| ("insert", json!({ "documents": [document] }));
    let delete = |id: i32| ("delete", json!({ "deletes": [{ "q": { "_id": id }, "limit": 1 }] }));
    for (plant, undo, said) in [
        (
            set(3, "t", json!("y")),
            set(3, "t", json!("x")),
            &["other values in 1 rows for 'find", "for 'distinct"][..],
        ),
        // Another type of the same number.
        (set(3, "n", json!({ "$long": 0 })), set(3, "n", json!(0)), &["other values in 1 rows for 'find"]),
        (delete(3), insert(json!({ "_id": 3, "n": 0, "t": "x" })), &["0 rows instead of 1 for 'find"]),
        (insert(json!({ "_id": 70, "n": 9, "t": "x" })), delete(70), &["1 rows instead of 0 for 'find"]),
        (set(1, "n", json!(9)), set(1, "n", json!(1)), &["for 'count", "8 rows instead of 9 for 'find"]),
        (
            insert(json!({ "_id": 50, "n": 99, "t": "x" })),
            delete(50),
            &["error 11000 instead of no error for 'insert"],
        ),
    ] {
        client.ask(plant.0, &items, &plant.1);
        let answer = replayed();
        let all = format!("{}{}", answer.out, answer.err);
        assert!(answer.code != Some(0) && said.iter().all(|said| all.contains(said)), "{plant:?}: {all}");
        client.ask(undo.0, &items, &undo.1);
    }
    replayed().success();
}

#[test]
fn each_wrong_answer_of_couchdb_is_found() {
    let Some(server) = testing::server("couchdb") else { return };
    let place = Place::new();
    let header = testing::authorization(&server);
    let ask = |address: SocketAddr, method: &str, path: &str, body: &str| -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    for (n, (method, path, body, said)) in [
        ("PUT", "a?rev", r#"{"n":2}"#, "for 'GET /DB/a'"),
        ("DELETE", "a?rev", "", "error 404 instead of no error for 'GET /DB/a'"),
        ("PUT", "missing", r#"{"n":2}"#, "no error instead of error 404 for 'GET /DB/missing'"),
        ("PUT", "other", r#"{"n":2}"#, "for 'GET /DB/_all_docs'"),
        ("PUT", "found", r#"{"n":1}"#, "for 'POST /DB/_find'"),
        ("DELETE", "", "", "error 404 instead of no error"),
    ]
    .into_iter()
    .enumerate()
    {
        let database = format!("shop{n}");
        let at = |path: &str| format!("/{database}{}{path}", if path.is_empty() { "" } else { "/" });
        ask(own(&server), "PUT", &at(""), "");
        let made = ask(own(&server), "PUT", &at("a"), r#"{"n":1}"#);
        let revision =
            made.split("\"rev\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
        let capture = recorded(&place, &database, &server, |address| {
            ask(address, "GET", &at("a"), "");
            ask(address, "GET", &at("missing"), "");
            ask(address, "GET", &at("_all_docs"), "");
            ask(address, "POST", &at("_find"), r#"{"selector":{"n":1}}"#);
        });
        let replayed = || replay(&place, &capture, &[server.url()]);
        replayed().success();
        let planted = path.replace("?rev", &format!("?rev={revision}"));
        let planted = ask(own(&server), method, &at(&planted), body);
        assert!(planted.starts_with("HTTP/1.1 20"), "{planted}");
        let answer = replayed();
        let all = format!("{}{}", answer.out, answer.err);
        let said = said.replace("DB", &database);
        assert!(answer.code != Some(0) && all.contains(&said), "{method} {path}: {said}: {all}");
    }
}
