//! A server of the tests, which reads and writes messages by the crate `bson`: it shares nothing with the driver.

use bson::{Bson, Document, doc};
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the server does with a request.
pub(super) enum Reaction {
    Answer(Document),
    /// Answers twice.
    Twice(Document),
    /// Answers another request.
    Astray(Document),
    /// Answers nothing, and waits for the next request.
    Nothing,
    Close,
}

/// A request: the number of its connection, whether it was compressed, and the command.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) connection: usize,
    pub(super) compressor: Option<u8>,
    pub(super) command: Document,
}

impl Request {
    /// The name of the command.
    pub(super) fn name(&self) -> &str {
        self.command.keys().next().map_or("", String::as_str)
    }
}

/// A running server. It ends with the process.
#[derive(Clone)]
pub(super) struct Fake {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    /// Starts one. `react` is also given the server, to know its port.
    pub(super) fn start(react: impl Fn(&Self, &Request) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = Self { port: listener.local_addr().unwrap().port(), requests: Arc::default() };
        let (own, react) = (fake.clone(), Arc::new(react));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (own, react) = (own.clone(), Arc::clone(&react));
                thread::spawn(move || own.serve(stream, connection, &*react));
            }
        });
        fake
    }

    /// One that greets as `hello` says, and reacts to the other commands.
    pub(super) fn greeting(
        hello: impl Fn(&Self) -> Document + Send + Sync + 'static,
        react: impl Fn(&Request) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |fake, request| match request.name() {
            "hello" => Reaction::Answer(hello(fake)),
            "buildInfo" => Reaction::Answer(doc! { "version": "8.0.4", "ok": 1.0 }),
            "listCollections" => Reaction::Answer(cursor(0, "firstBatch", vec![doc! { "name": "kurabe_a" }])),
            _ => react(request),
        })
    }

    pub(super) fn url(&self, options: &str) -> String {
        format!("mongodb://127.0.0.1:{}/db{options}", self.port)
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The requests of this name, in their order.
    pub(super) fn requests(&self, name: &str) -> Vec<Request> {
        let all = self.requests.lock().unwrap();
        all.iter().filter(|request| request.name() == name).cloned().collect()
    }

    fn serve(
        &self,
        mut stream: TcpStream,
        connection: usize,
        react: &(dyn Fn(&Self, &Request) -> Reaction + Send + Sync),
    ) {
        while let Ok((number, request)) = read(&mut stream, connection) {
            self.requests.lock().unwrap().push(request.clone());
            let compressor = request.compressor;
            let done = match react(self, &request) {
                Reaction::Answer(answer) => send(&mut stream, number, compressor, &answer),
                Reaction::Twice(answer) => {
                    let twice = [message(number, compressor, &answer), message(number, compressor, &answer)];
                    stream.write_all(&twice.concat())
                }
                Reaction::Astray(answer) => send(&mut stream, number - 1, compressor, &answer),
                Reaction::Nothing => Ok(()),
                Reaction::Close => return,
            };
            if done.is_err() {
                return;
            }
        }
    }
}

/// A primary's answer to `hello`, without a replica set.
pub(super) fn alone(_: &Fake) -> Document {
    doc! {
        "isWritablePrimary": true, "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000,
        "logicalSessionTimeoutMinutes": 30, "minWireVersion": 0, "maxWireVersion": 21, "ok": 1.0,
    }
}

/// That of a member of the replica set `rs`.
pub(super) fn member(is_primary: bool, members: &[String], primary: Option<&str>) -> Document {
    let mut hello = doc! {
        "setName": "rs", "isWritablePrimary": is_primary, "secondary": !is_primary, "hosts": members,
        "maxBsonObjectSize": 16_777_216, "logicalSessionTimeoutMinutes": 30, "maxWireVersion": 21, "ok": 1.0,
    };
    if let Some(primary) = primary {
        hello.insert("primary", primary);
    }
    hello
}

/// An answer with rows.
pub(super) fn cursor(id: i64, batch: &str, rows: Vec<Document>) -> Document {
    let rows: Vec<Bson> = rows.into_iter().map(Bson::Document).collect();
    doc! { "cursor": { batch: rows, "id": id, "ns": "db.kurabe_a" }, "ok": 1.0 }
}

fn word(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Reads a request, and returns its number too.
fn read(stream: &mut TcpStream, connection: usize) -> io::Result<(i32, Request)> {
    let mut header = [0; 16];
    stream.read_exact(&mut header)?;
    let mut rest = vec![0; word(&header, 0) as usize - 16];
    stream.read_exact(&mut rest)?;
    let mut compressor = None;
    if word(&header, 12) == 2012 {
        assert_eq!(word(&rest, 0), 2013);
        compressor = Some(rest[8]);
        let length = word(&rest, 4) as usize;
        let mut content = Vec::new();
        match rest[8] {
            2 => drop(ZlibDecoder::new(&rest[9..]).read_to_end(&mut content)?),
            3 => content = zstd::decode_all(&rest[9..])?,
            other => panic!("compressor {other}"),
        }
        assert_eq!(content.len(), length);
        rest = content;
    } else {
        assert_eq!(word(&header, 12), 2013);
    }
    assert_eq!((word(&rest, 0), rest[4]), (0, 0), "flags and kind");
    let command = Document::from_reader(&rest[5..]).unwrap();
    assert_eq!(command.to_vec().unwrap(), rest[5..], "nothing follows the command");
    Ok((word(&header, 4), Request { connection, compressor, command }))
}

fn send(stream: &mut TcpStream, answers: i32, compressor: Option<u8>, document: &Document) -> io::Result<()> {
    stream.write_all(&message(answers, compressor, document))
}

/// An answer to the request of this number.
pub(super) fn message(answers: i32, compressor: Option<u8>, document: &Document) -> Vec<u8> {
    let mut body = vec![0; 5];
    body.extend(document.to_vec().unwrap());
    let mut code = 2013_i32;
    if let Some(number) = compressor {
        let mut packed = [2013_i32.to_le_bytes(), (body.len() as i32).to_le_bytes()].concat();
        packed.push(number);
        match number {
            2 => {
                let mut encoder = ZlibEncoder::new(&*body, flate2::Compression::default());
                encoder.read_to_end(&mut packed).unwrap();
            }
            _ => packed.extend(zstd::encode_all(&*body, 3).unwrap()),
        }
        (body, code) = (packed, 2012);
    }
    let header = [body.len() as i32 + 16, 77, answers, code].map(i32::to_le_bytes).concat();
    [header, body].concat()
}
