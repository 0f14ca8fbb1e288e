//! The same of MongoDB's protocol, with the server of the testbed, which is FerretDB where there is no mongod.

use super::{cells, replay, requests, shown};
use crate::support::{KURABE, Place, metric};
use kurabe_capture::file::{self, About};
use kurabe_capture::recorder::Recorder;
use kurabe_relay::Server as Address;
use kurabe_testbed::{Server, testing};
use kurabe_wire::registry::of_scheme;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// The bytes of a document or a list.
fn bson(value: &Json) -> Vec<u8> {
    let mut out = vec![0; 4];
    let mut push = |name: &str, value: &Json| {
        let (kind, bytes) = match value {
            Json::Null => (10, Vec::new()),
            Json::Bool(truth) => (8, vec![u8::from(*truth)]),
            Json::Number(number) => match number.as_i64().map(|number| (i32::try_from(number), number)) {
                Some((Ok(number), _)) => (16, number.to_le_bytes().to_vec()),
                Some((Err(_), number)) => (18, number.to_le_bytes().to_vec()),
                None => (1, number.as_f64().unwrap().to_le_bytes().to_vec()),
            },
            Json::String(text) => {
                (2, [&(text.len() as u32 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat())
            }
            Json::Array(_) => (4, bson(value)),
            Json::Object(all) if all.contains_key("$long") => {
                (18, all["$long"].as_i64().unwrap().to_le_bytes().to_vec())
            }
            Json::Object(_) => (3, bson(value)),
        };
        out.push(kind);
        out.extend([name.as_bytes(), &[0], &bytes].concat());
    };
    match value {
        Json::Array(all) => all.iter().enumerate().for_each(|(n, value)| push(&n.to_string(), value)),
        other => other.as_object().unwrap().iter().for_each(|(name, value)| push(name, value)),
    }
    out.push(0);
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// A document of the types that are needed here.
fn read(bytes: &mut &[u8]) -> Json {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    }
    fn number(bytes: &mut &[u8]) -> usize {
        u32::from_le_bytes(take(bytes, 4).try_into().unwrap()) as usize
    }
    take(bytes, 4);
    let mut found = serde_json::Map::new();
    loop {
        let kind = take(bytes, 1)[0];
        if kind == 0 {
            return Json::Object(found);
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap();
        let name = String::from_utf8(take(bytes, end).to_vec()).unwrap();
        take(bytes, 1);
        let value = match kind {
            1 => json!(f64::from_le_bytes(take(bytes, 8).try_into().unwrap())),
            2 => {
                let length = number(bytes);
                json!(String::from_utf8_lossy(&take(bytes, length)[..length - 1]))
            }
            3 | 4 => read(bytes),
            5 => {
                let length = number(bytes);
                json!(take(bytes, length + 1))
            }
            7 => json!(take(bytes, 12)),
            8 => json!(take(bytes, 1)[0] == 1),
            9 | 17 | 18 => json!(i64::from_le_bytes(take(bytes, 8).try_into().unwrap())),
            10 => Json::Null,
            16 => json!(i32::from_le_bytes(take(bytes, 4).try_into().unwrap())),
            other => panic!("{other}"),
        };
        found.insert(name, value);
    }
}

/// The commands of a login.
const LOGIN: u32 = 3;

/// A client that sends documents of inserts as most drivers do, beside the command.
pub(crate) struct Client {
    stream: TcpStream,
    sent: u32,
}

impl Client {
    /// Logs in at a server, or at a relay before it.
    pub(crate) fn connect(server: &Server, address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        testing::log_in(server, &mut stream).unwrap();
        Self { stream, sent: LOGIN }
    }

    pub(crate) fn of(server: &Server) -> Self {
        Self::connect(server, ([127, 0, 0, 1], server.port()).into())
    }

    /// Executes a command, in the order of these fields.
    pub(crate) fn ask(&mut self, command: &str, value: &Json, rest: &Json) -> Json {
        let mut fields = serde_json::Map::new();
        fields.insert(command.to_owned(), value.clone());
        fields.extend(rest.as_object().unwrap().clone());
        let documents = fields.remove("documents").filter(|_| command == "insert");
        fields.insert("$db".to_owned(), json!("kurabe"));
        // The command is the first one, whatever the order of a map is.
        let first = bson(&json!({ command: fields.remove(command) }));
        let others = bson(&Json::Object(fields));
        let document = [&first[4..first.len() - 1], &others[4..]].concat();
        let mut sections = [&[0][..], &(document.len() as u32 + 4).to_le_bytes(), &document].concat();
        if let Some(documents) = documents {
            let all: Vec<u8> = documents.as_array().unwrap().iter().flat_map(bson).collect();
            sections.push(1);
            sections.extend((all.len() as u32 + 14).to_le_bytes());
            sections.extend([b"documents\0", all.as_slice()].concat());
        }
        self.sent += 1;
        let words =
            [sections.len() as u32 + 20, self.sent, 0, 2013, 0].into_iter().flat_map(u32::to_le_bytes);
        let message: Vec<u8> = words.chain(sections).collect();
        self.stream.write_all(&message).unwrap();
        let mut head = [0; 21];
        self.stream.read_exact(&mut head).unwrap();
        let mut answer = vec![0; u32::from_le_bytes(head[..4].try_into().unwrap()) as usize - 21];
        self.stream.read_exact(&mut answer).unwrap();
        read(&mut answer.as_slice())
    }

    /// Reads with a cursor to its end.
    fn read_all(&mut self, rest: &Json) -> u64 {
        let mut answer = self.ask("find", &json!("items"), rest);
        let mut rows = 0;
        loop {
            let cursor = &answer["cursor"];
            let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).unwrap();
            rows += batch.as_object().unwrap().len() as u64;
            if cursor["id"] == 0 {
                return rows;
            }
            let rest = json!({ "collection": "items", "batchSize": 30 });
            answer = self.ask("getMore", &json!({ "$long": cursor["id"] }), &rest);
        }
    }
}

/// How often the server has executed each command that it knows.
pub(crate) fn counted(server: &Server) -> BTreeMap<String, u64> {
    let mut client = Client::of(server);
    let status = client.ask("serverStatus", &json!(1), &json!({}));
    let all = status["metrics"]["commands"].as_object().unwrap();
    all.iter().map(|(name, one)| (name.clone(), one["total"].as_u64().unwrap())).collect()
}

/// Checks that a capture has as many of each command as the server has counted since.
fn assert_counted(report: &Json, server: &Server, before: &BTreeMap<String, u64>) {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for one in report["statements"].as_array().unwrap() {
        let command = one["text"].as_str().unwrap().split(' ').next().unwrap();
        *calls.entry(command).or_default() += one["calls"].as_u64().unwrap();
    }
    for (command, count) in counted(server) {
        let since = count - before.get(&command).copied().unwrap_or(0);
        // This function logs in and asks for it too.
        let is_own = ["saslStart", "saslContinue", "serverStatus"].contains(&command.as_str());
        let recorded = calls.get(command.as_str()).copied().unwrap_or(0);
        assert!(recorded == since || is_own, "{command}: {since} times: {report:#}");
    }
}

/// Records what clients do. Gives the capture.
pub(crate) fn recorded(place: &Place, name: &str, server: &Server, act: impl FnOnce(SocketAddr)) -> String {
    let (path, unreadable) = recorded_as_read(place, name, server, act);
    assert!(unreadable.is_empty(), "{unreadable:?}");
    path
}

/// As [`recorded`], with why connections could not be read to their ends.
pub(super) fn recorded_as_read(
    place: &Place,
    name: &str,
    server: &Server,
    act: impl FnOnce(SocketAddr),
) -> (String, Vec<String>) {
    let path = place.at(name);
    let (scheme, _) = server.url().split_once(':').unwrap();
    let about = About { protocol: scheme.to_owned(), ..About::default() };
    let to = Address::Tcp("127.0.0.1".to_owned(), server.port());
    let listen = &SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let recorder =
        Recorder::start(listen, to, of_scheme(scheme).unwrap(), Path::new(&path), &about, None, None)
            .unwrap();
    act(recorder.at().to_string().parse().unwrap());
    let totals = recorder.finish(Path::new(&path)).unwrap();
    (path, totals.unreadable.iter().map(ToString::to_string).collect())
}

/// Inserts, cursors, updates and deletes of three clients at once.
fn work(server: &Server, address: SocketAddr) -> u64 {
    let mut client = Client::connect(server, address);
    client.ask("hello", &json!(1), &json!({}));
    let items = json!("items");
    let documents: Vec<Json> = (0..100).map(|n| json!({ "_id": n, "n": n % 7, "t": "x" })).collect();
    let answer = client.ask("insert", &items, &json!({ "documents": documents }));
    assert_eq!(answer["n"], 100, "{answer}");
    assert_eq!(client.read_all(&json!({ "filter": {}, "batchSize": 30 })), 100);
    assert_eq!(client.read_all(&json!({ "sort": { "_id": -1 }, "batchSize": 30 })), 100);
    let change = json!([{ "q": { "n": 3 }, "u": { "$inc": { "n": 100 } }, "multi": true }]);
    assert_eq!(client.ask("update", &items, &json!({ "updates": change }))["nModified"], 14);
    let made = json!([{ "q": { "_id": 900 }, "u": { "$set": { "n": 1 } }, "upsert": true }]);
    assert_eq!(client.ask("update", &items, &json!({ "updates": made }))["upserted"]["0"]["_id"], 900);
    let twice = client.ask("insert", &items, &json!({ "documents": [{ "_id": 7 }] }));
    assert_eq!(twice["writeErrors"]["0"]["code"], 11_000, "{twice}");
    client.ask("distinct", &items, &json!({ "key": "n" }));
    client.ask("nonsense", &json!(1), &json!({}));
    client.ask("insert", &json!("users"), &json!({ "documents": [{ "_id": 1, "password": "hunter2" }] }));
    client.ask("saslStart", &json!(1), &json!({ "mechanism": "PLAIN", "payload": "hunter2" }));
    client.ask("createUser", &json!("bob"), &json!({ "pwd": "hunter2", "roles": [] }));
    let others = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..4)
        .map(|thread| {
            scope.spawn(move || {
                let (mut client, items) = (Client::connect(server, address), json!("items"));
                for n in 0..20 {
                    let id = 1_000 * thread + n;
                    client.ask("insert", &items, &json!({ "documents": [{ "_id": id, "n": thread }] }));
                    let change = json!([{ "q": { "_id": id }, "u": { "$inc": { "n": 1 } } }]);
                    client.ask("update", &items, &json!({ "updates": change }));
                    let found = client.ask("find", &items, &json!({ "filter": { "_id": id }, "limit": 1 }));
                    assert_eq!(found["cursor"]["firstBatch"]["0"]["n"], thread + 1, "{found}");
                }
                let gone =
                    json!([{ "q": { "n": thread + 1, "_id": { "$gte": 1_000 * thread, "$lt": 1_000 * thread + 20 } }, "limit": 0 }]);
                let answer = client.ask("delete", &items, &json!({ "deletes": gone }));
                assert_eq!(answer["n"], 20, "{answer}");
                u64::from(client.sent)
            })
        })
        .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
    });
    u64::from(client.sent) + others
}

#[test]
fn commands_of_mongodb_are_recorded_and_replayed_as_often_as_the_server_counts() {
    let Some(server) = testing::own_server("mongodb") else { return };
    let place = Place::that_starts_servers();
    let (mut sent, before) = (0, counted(&server));
    let path = recorded(&place, "work", &server, |address| sent = work(&server, address));
    let report = shown(&place, &path);
    assert_eq!(report["requests"], sent, "{report:#}");
    assert_counted(&report, &server, &before);
    let (mut records, mut has_password) = (0, false);
    file::read(Path::new(&path), |_, record| {
        let shown = format!("{record:?}");
        let bytes = format!("{:?}", b"hunter2");
        (records, has_password) = (records + 1, has_password || shown.contains(&bytes[1..bytes.len() - 1]));
        assert!(!shown.contains("hunter2"), "{shown}");
    })
    .unwrap();
    assert!(records > sent && !has_password);
    let of = |text: &str| report["statements"].as_array().unwrap().iter().find(|one| one["text"] == text);
    let insert = of(r#"insert items {"documents": [{"_id": ?, "n": ?, "t": ?}]}"#).unwrap();
    assert_eq!((&insert["calls"], &insert["affected"]), (&1.into(), &100.into()));
    let more = of(r#"getMore items ? {"batchSize": ?}"#).unwrap();
    assert_eq!((&more["calls"], &more["rows"], &report["errors"]), (&6.into(), &140.into(), &3.into()));

    let made =
        of(r#"update items {"updates": [{"q": {"_id": ?}, "u": {"$set": {"n": ?}}, "upsert": ?}]}"#).unwrap();
    assert_eq!(made["affected"], 1, "{made:#}");

    // The user's own server is left alone.
    replay(&place, &path, &[server.url()]).exit_code(2).err_has("may change documents");
    place.run(&["capture", "model", &path, "-o", "model.toml"]).exit_code(2).err_has("add --made");
    replay(&place, &path, &["up:mongodb"]).success();
    let report = place.report();
    for cell in cells(&report) {
        // All but the logins, `hello`, what no server knows, and what has a password.
        assert_eq!(cell["verified"]["answers"], sent - u64::from(4 * LOGIN) - 5, "{cell:#}");
    }
}

#[test]
fn document_that_was_changed_before_a_replay_of_mongodb_is_found() {
    let Some(server) = testing::own_server("mongodb") else { return };
    let place = Place::new();
    let mut client = Client::of(&server);
    let documents: Vec<Json> = (0..50).map(|n| json!({ "_id": n, "t": "as it was" })).collect();
    client.ask("insert", &json!("items"), &json!({ "documents": documents }));
    let path = recorded(&place, "reads", &server, |address| {
        let mut client = Client::connect(&server, address);
        assert_eq!(client.read_all(&json!({ "batchSize": 20 })), 50);
        for n in 0..50 {
            client.ask("find", &json!("items"), &json!({ "filter": { "_id": n }, "limit": 1 }));
        }
    });
    let report = shown(&place, &path).to_string();
    assert!(report.contains(r#""id":"#), "{report}");
    replay(&place, &path, &[server.url()]).success();
    for cell in cells(&place.report()) {
        assert_eq!(cell["verified"]["answers"], requests(&place, &path) - u64::from(LOGIN), "{cell:#}");
    }
    let change = json!([{ "q": { "_id": 30 }, "u": { "$set": { "t": "other" } } }]);
    client.ask("update", &json!("items"), &json!({ "updates": change }));
    let answer = replay(&place, &path, &[server.url()]);
    let said = format!("{}{}", answer.out, answer.err);
    let named = "other values in 1 rows for 'find items {\"filter\": {\"_id\": ?}, \"limit\": ?}'";
    // The last answer of the cursor differs too: it is compared by all documents, of any of its answers.
    let last = "other values in 1 rows for 'getMore items";
    assert!(answer.code != Some(0) && said.contains("2 of 53 answers differ"), "{answer:?}");
    assert!(said.contains(named) && said.contains(last), "{answer:?}");
    // With a limit nobody knows which documents are right: only their number is compared, which is counted.
    let path = recorded(&place, "some", &server, |address| {
        let mut client = Client::connect(&server, address);
        assert_eq!(client.read_all(&json!({ "batchSize": 20, "limit": 45 })), 45);
    });
    let change = json!([{ "q": { "_id": 30 }, "u": { "$set": { "t": "again" } } }]);
    client.ask("update", &json!("items"), &json!({ "updates": change }));
    replay(&place, &path, &[server.url()]).success();
    for cell in cells(&place.report()) {
        assert_eq!(metric(cell, "answers compared in part"), Some(1.0), "{cell:#}");
        assert_eq!(cell["verified"]["answers"], requests(&place, &path) - u64::from(LOGIN) - 1, "{cell:#}");
    }
}

#[test]
fn requests_of_the_own_driver_are_those_that_the_server_counted() {
    let Some(server) = testing::own_server("mongodb") else { return };
    let place = Place::new();
    let path = place.at("driver");
    let script = format!(
        "'{KURABE}' run point-read \"$KURABE_URL\" --clients 2 --requests 100 --records 50 --rounds 1 --no-html \
         --interleave=off --quiet"
    );
    let before = counted(&server);
    let args = ["capture", server.url(), "-o", &path, "--", "sh", "-ec", &script];
    place.run(&args).success();
    let report = shown(&place, &path);
    assert_eq!(report["connections"]["unreadable"], json!({}), "{report:#}");
    assert_eq!(report["unanswered"], 0, "{report:#}");
    assert_counted(&report, &server, &before);
}
