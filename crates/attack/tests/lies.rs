//! The relay's lies, between a client and a server that the test implements.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

use kurabe_attack::relay::lie::Lie;
use kurabe_attack::relay::{Plan, Relay};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The values of the test's server, by key.
type Store = Arc<Mutex<HashMap<String, String>>>;

/// A server that supports `SET` and `GET` of RESP.
fn server() -> (u16, Store) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let store = Store::default();
    let kept = Arc::clone(&store);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let store = Arc::clone(&kept);
            thread::spawn(move || {
                let mut from = BufReader::new(client.try_clone().unwrap());
                let mut to = client;
                while let Some(words) = request(&mut from) {
                    let mut store = store.lock().unwrap();
                    let answer = match words[0].as_str() {
                        "SET" => {
                            store.insert(words[1].clone(), words[2].clone());
                            "+OK\r\n".to_owned()
                        }
                        _ => store.get(&words[1]).map_or("$-1\r\n".to_owned(), |value| bulk(value)),
                    };
                    to.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (port, store)
}

fn line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (from.read_line(&mut line).unwrap_or(0) > 0).then(|| line.trim_end().to_owned())
}

fn word(from: &mut impl BufRead) -> Option<String> {
    let length: i64 = line(from)?[1..].parse().unwrap();
    let mut bytes = vec![0; usize::try_from(length).ok()? + 2];
    from.read_exact(&mut bytes).unwrap();
    Some(String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned())
}

fn request(from: &mut impl BufRead) -> Option<Vec<String>> {
    let count: usize = line(from)?[1..].parse().unwrap();
    (0..count).map(|_| word(from)).collect()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A client of the relay.
struct Client(BufReader<TcpStream>);

impl Client {
    fn send(&mut self, words: &[&str]) {
        let words: String = words.iter().map(|word| bulk(word)).collect();
        let text = format!("*{}\r\n{words}", words.matches('$').count());
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn set(&mut self, key: &str, value: &str) {
        self.send(&["SET", key, value]);
        assert_eq!(line(&mut self.0).unwrap(), "+OK", "every write is acknowledged");
    }

    fn get(&mut self, key: &str) -> String {
        self.send(&["GET", key]);
        word(&mut self.0).unwrap_or_default()
    }
}

fn value(n: usize) -> String {
    format!("{n:0>64}")
}

/// 40 writes and 40 reads through a relay with this lie: the server's values, the values read, and the lies.
fn through(lie: Option<Lie>) -> (HashMap<String, String>, Vec<String>, usize) {
    let (port, store) = server();
    let runs = tempfile::tempdir().unwrap();
    let plan = Plan { scheme: "redis".to_owned(), port, lie, seed: 7, ..Plan::default() };
    let relay = Relay::start(plan, runs.path()).unwrap();
    let mut client = Client(BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap()));
    let keys: Vec<String> = (0..40).map(|n| format!("kurabe_t:{n}")).collect();
    for (n, key) in keys.iter().enumerate() {
        client.set(key, &value(n));
    }
    let read = keys.iter().map(|key| client.get(key)).collect();
    let held = store.lock().unwrap().clone();
    (held, read, relay.told().len())
}

fn right() -> Vec<String> {
    (0..40).map(value).collect()
}

fn wrong(read: &[String]) -> usize {
    read.iter().zip(right()).filter(|(read, right)| *read != right).count()
}

#[test]
fn relay_without_lie_changes_nothing() {
    let (held, read, told) = through(None);
    assert_eq!((held.len(), read, told), (40, right(), 0));
}

#[test]
fn dropped_write_is_acknowledged_and_not_stored() {
    let (port, store) = server();
    let runs = tempfile::tempdir().unwrap();
    let plan = Plan { scheme: "redis".to_owned(), port, lie: Some(Lie::Drop), seed: 7, ..Plan::default() };
    let relay = Relay::start(plan, runs.path()).unwrap();
    let mut client = Client(BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap()));
    (0..40).for_each(|n| client.set(&format!("kurabe_t:{n}"), &value(n)));
    assert_eq!((store.lock().unwrap().len(), relay.told().len()), (39, 1));
}

#[test]
fn write_with_flipped_bit_is_stored_changed() {
    let (held, read, told) = through(Some(Lie::FlipRequest));
    assert_eq!((held.len(), wrong(&read), told), (40, 1, 1));
}

#[test]
fn answer_with_flipped_bit_is_read_once() {
    let (_, read, told) = through(Some(Lie::FlipAnswer));
    assert_eq!((wrong(&read), told), (1, 1));
}

#[test]
fn read_gets_answer_of_another_key() {
    let (_, read, told) = through(Some(Lie::OtherKey));
    assert_eq!((wrong(&read), told), (1, 1));
    assert!(read.iter().all(|read| right().contains(read)));
}

#[test]
fn request_is_executed_twice_instead_of_the_next() {
    let (held, _, told) = through(Some(Lie::Twice));
    assert_eq!((held.len(), told), (39, 1));
}
