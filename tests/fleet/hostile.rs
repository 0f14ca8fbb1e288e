//! Hostile messages on a broker, to an agent: no file is read, written or removed.

use super::common::Agent;
use super::common::broker::Broker;
use crate::support::{Place, eventually, signal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

/// The number of messages: 200, or as many as the variable says (`KURABE_HOSTILE_MESSAGES=1000`).
fn messages() -> usize {
    std::env::var("KURABE_HOSTILE_MESSAGES").map_or(200, |count| count.parse().unwrap())
}

/// What there is in a folder: each path with its kind, length, times of change and of access, and the target of a link.
fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
        let described = if meta.is_dir() {
            all.extend(fingerprint(&path));
            "folder".to_owned()
        } else if meta.is_symlink() {
            format!("link to {:?}", fs::read_link(&path))
        } else {
            format!("{} bytes, {:?}, {:?}", meta.len(), meta.modified().unwrap(), meta.accessed().unwrap())
        };
        all.insert(path, described);
    }
    all
}

/// A tree of files that belong to nobody here. A read is seen by the time of access, where the file system keeps it.
fn tree(root: &Path) {
    for name in ["canary/a", "canary/b/c.toml", "canary/suite.toml", "tmp/canary/a", "home/x"] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "experiment = \"point-read\"\ntargets = [\"null:\"]\n").unwrap();
        let day = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
        let times = FileTimes::new().set_accessed(day(1)).set_modified(day(2));
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    }
}

/// Names that lead to the tree, or break something.
fn names(root: &Path) -> Vec<String> {
    let canary = root.join("canary").display().to_string();
    let mut all: Vec<String> =
        ["", ".", "..", "../canary", "../../canary", "a/b", "a\0b", "é", "-rf", "--help", "a.b", "*"]
            .map(str::to_owned)
            .into();
    all.extend([">", "a b", "a\r\nPUB x 0\r\n", "\u{1b}[2J", "~", "$HOME"].map(str::to_owned));
    all.extend([
        canary.clone(),
        format!("{canary}/b"),
        format!("/proc/self/root{canary}"),
        format!("x/../..{canary}"),
    ]);
    all.push("x".repeat(5_000));
    all
}

/// An order of a trial.
fn order(experiment: &str, axes: &Value, url: &str) -> Value {
    json!({ "load": { "part": { "number": 0, "of": 1 }, "url": url, "order": {
        "cell": { "experiment": experiment, "axes": axes, "seed": 1, "records": 10, "slot": 0, "target": 0,
            "second_instance": false, "durability": null, "timeout_ns": null, "largest_answer": 1_000, "threads": null },
        "operation": "read", "number": 1, "stop": { "requests": 10, "duration": null, "min": null },
        "load_model": "closed", "seed": 1, "clients": 1,
    } } })
}

/// Messages to an agent.
fn orders(root: &Path) -> Vec<Vec<u8>> {
    let names = names(root);
    let canary = root.join("canary");
    let frame = |number: u64, message: Value| json!({ "number": number, "seen": 0, "message": message });
    let file = |name: &str| canary.join(name).display().to_string();
    (0..messages())
        .map(|nth| {
            let name = &names[nth / 8 % names.len()];
            let value = match nth % 8 {
                0 => frame(1, json!({ "join": { "run": name } })),
                1 => frame(1, json!({ "join": { "run": "valid" } })),
                2 => frame(
                    2,
                    order("point-read", &json!({ "clients": 1 }), &format!("sqlite:{}", file("new.db"))),
                ),
                3 => {
                    frame(2, order("point-read", &json!({ "clients": 1 }), &format!("lmdb:{}", file("new"))))
                }
                4 => frame(2, order("webapp", &json!({ "clients": 1, "postal-codes": file("a") }), "null:")),
                5 => frame(2, order(name, &json!({ "clients": name }), name)),
                6 => frame(3, json!({ "observe": { "begin": { "host": name, "port": 1 } } })),
                _ => json!(name),
            };
            let mut bytes = value.to_string().into_bytes();
            bytes.truncate(if nth % 16 == 7 { nth % bytes.len() } else { bytes.len() });
            bytes
        })
        .collect()
}

#[test]
fn hostile_messages_touch_nothing_outside_of_the_agent() {
    let Some(broker) = Broker::start() else { return };
    let (place, around) = (Place::new(), tempfile::tempdir().unwrap());
    let root = around.path();
    tree(root);
    let before = fingerprint(root);
    let mut agent = Agent::with(&place, &broker, "a", &[], |command| {
        command.env("TMPDIR", root.join("tmp")).env("HOME", root.join("home")).current_dir(root);
    });
    let subject = broker.agent("a");
    for (nth, order) in orders(root).iter().enumerate() {
        let replies = ["_INBOX.x", "_INBOX.x", "_INBOX.y", "$KV.evil", "kurabe.fleet.call"];
        broker.publish(
            if nth % 50 == 49 { "kurabe.fleet.call" } else { &subject },
            Some(replies[nth % replies.len()]),
            order,
        );
    }
    // It still does its work.
    assert!(!broker.agent("a").is_empty());
    assert!(agent.0.try_wait().unwrap().is_none(), "a hostile message ended it");
    signal(&agent.0, "-INT");
    let status = eventually(30, || agent.0.try_wait().unwrap()).expect("it does not end");
    assert_eq!(status.code(), Some(0));
    let after = fingerprint(root);
    let changed: Vec<_> = before
        .iter()
        .filter(|(path, was)| after.get(*path) != Some(was))
        .map(|(path, was)| (path, was, after.get(path)))
        .collect();
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(changed.is_empty() && new.is_empty(), "changed: {changed:?}, new: {new:?}");
}

/// A server that asks for a password, and what clients sent to it.
fn asking_server() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (to, sent) = channel();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut bytes = [0; 1_024];
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = client.read(&mut bytes);
            // AuthenticationMD5Password, with its salt.
            let _ = client.write_all(b"R\0\0\0\x0c\0\0\0\x05salt");
            let mut answer = Vec::new();
            while let Ok(read @ 1..) = client.read(&mut bytes) {
                answer.extend_from_slice(&bytes[..read]);
                if answer.contains(&0) && answer.len() > 5 {
                    break;
                }
            }
            if to.send(String::from_utf8_lossy(&answer).into_owned()).is_err() {
                return;
            }
        }
    });
    (port, sent)
}

#[test]
fn password_of_an_agent_goes_only_to_hosts_that_its_own_configuration_allows() {
    let (port, sent) = asking_server();
    let place = Place::new();
    let axes = json!({ "clients": 1, "statement": "once", "connection": "kept", "pipeline": 1 });
    // What an agent answers to an order, and what the server got.
    let orders = |allow: &[&str], url: &str, password: Option<&str>| {
        let mut command = place.command(&[&["agent", "--stdio"], allow].concat());
        let passfile = place.file("pgpass", "*:*:*:*:of-the-file\n");
        fs::set_permissions(&passfile, fs::Permissions::from_mode(0o600)).unwrap();
        command.env("PGPASSFILE", passfile).env("PGPASSWORD", "of-the-agent");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut lines) =
            (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()).lines());
        let mut load = order("point-read", &axes, url);
        if let Some(password) = password {
            load["load"]["password"] = password.into();
        }
        for (number, message) in [(1, json!({ "join": { "run": "r" } })), (2, load)] {
            writeln!(input, "{}", json!({ "number": number, "seen": number, "message": message })).unwrap();
        }
        let answer = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["message"].get("failed").cloned()
        });
        drop(input);
        process.wait().unwrap();
        answer.expect("it ends without an answer")["message"].to_string()
    };
    let here = format!("postgres://u@127.0.0.1:{port}/d");
    // An answer to the request for a password is a message 'p' with a digest. A driver may connect more than once.
    let has_answered = || {
        let all = std::iter::from_fn(|| sent.recv_timeout(Duration::from_secs(2)).ok());
        all.filter(|sent| sent.starts_with("p\0\0\0(md5")).count() > 0
    };
    orders(&["--allow", "none"], &here, None);
    assert!(!has_answered(), "the agent's password was sent to a host that is not allowed");
    orders(&["--allow", "none"], &here, Some("of-the-order"));
    assert!(has_answered(), "the password of the order was not used");
    for allow in [&["--allow", &format!("other,127.0.0.1:{port}")][..], &["--allow", "127.0.0.1"], &[]] {
        orders(allow, &here, None);
        assert!(has_answered(), "{allow:?}: the agent's password was not sent");
    }
    for (allow, url, host) in [
        ("none", "postgres://u@198.18.0.1:5432/d", "198.18.0.1:5432"),
        ("127.0.0.1", "redis://198.18.0.1", "198.18.0.1:6379"),
        ("198.18.0.1:1", "mysql://u@198.18.0.1/d", "198.18.0.1:3306"),
        ("127.0.0.1", "postgres://u@127.0.0.1,198.18.0.1/d", "198.18.0.1:5432"),
        ("127.0.0.1", "mongodb://127.0.0.1:1,198.18.0.1:2", "198.18.0.1"),
        ("none", "http://198.18.0.1:80", "198.18.0.1:80"),
    ] {
        // Applications have no password.
        let why = orders(&["--allow", allow], url, Some("x").filter(|_| !url.starts_with("http")));
        assert!(why.contains(host) && why.contains("kurabe agent --allow"), "{url}: {why}");
    }
}

#[test]
fn agent_reads_no_file_and_uses_no_socket_that_an_order_names() {
    let (place, around) = (Place::new(), tempfile::tempdir().unwrap());
    let root = around.path();
    tree(root);
    let socket = root.join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let before = fingerprint(root);
    let (file, folder) = (root.join("canary/a").display().to_string(), root.display().to_string());
    let escaped = folder.replace('/', "%2F");
    let axes = json!({ "clients": 1, "statement": "once", "connection": "kept", "pipeline": 1 });
    let orders: Vec<Value> = [
        format!("postgres://u@127.0.0.1:1/d?tls=verify&ca={file}"),
        format!("postgres://u@127.0.0.1:1/d?sslmode=verify-ca&sslrootcert={file}"),
        format!("postgres://u@127.0.0.1:1/d?tls=require&cert={file}&key={file}"),
        format!("postgres://u@/d?host=127.0.0.1,{folder}&port=1,5432"),
        format!("postgres://u@127.0.0.1:1,{escaped}:5432/d"),
        format!("postgres://u@/d?socket={folder}"),
        format!("mysql://127.0.0.1:1/d?server_public_key_path={file}"),
        format!("mysql://127.0.0.1:1/d?ssl-mode=VERIFY_CA&ssl-ca={file}"),
        format!("redis://127.0.0.1:1?tls=verify&ca={file}"),
        format!("mongodb://127.0.0.1:1/?tls=true&tlsCAFile={file}"),
        format!("couchdbs://127.0.0.1:1/?ca={file}"),
        "redis://127.0.0.1:1?tls=verify&ca=/dev/zero".to_owned(),
        format!("sqlite:{folder}/new.db"),
        format!("lmdb:{folder}/new"),
    ]
    .iter()
    .map(|url| order("point-read", &axes, url))
    .chain([order("webapp", &json!({ "clients": 1, "connection": "kept", "postal-codes": file }), "null:")])
    .collect();
    let mut process =
        place.command(&["agent", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut lines) =
        (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()).lines());
    let mut number = 0;
    let mut send = |message: &Value| {
        number += 1;
        writeln!(input, "{}", json!({ "number": number, "seen": number, "message": message })).unwrap();
    };
    send(&json!({ "join": { "run": "r" } }));
    for order in &orders {
        send(order);
        let answer = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            line["message"].get("failed").cloned()
        });
        let why = answer.unwrap_or_else(|| panic!("{order} ended the agent"))["message"].to_string();
        assert!(
            why.contains("a file of the agent's host") || why.contains("over TCP only"),
            "{order}: {why}"
        );
    }
    drop(input);
    assert_eq!(process.wait().unwrap().code(), Some(0));
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        ErrorKind::WouldBlock,
        "the agent connected to a socket"
    );
    assert_eq!(fingerprint(root), before);
}
