//! Minimal clients of each protocol, to check whether a server answers.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::mysql_login;

/// The time limit of an answer after a connection was accepted.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of a login and of a statement: on a busy machine a new process of the server starts for them.
const STATEMENT: Duration = Duration::from_secs(20);

/// A Unix socket, and the OS user who must listen at it: a server's folder may have a link to another one.
#[derive(Clone, Copy)]
pub(crate) struct Socket<'a> {
    pub path: &'a Path,
    pub uid: u32,
}

/// Asks the server on a Unix socket. `allowed`: for each answer.
fn on_socket<T>(
    socket: Socket<'_>,
    allowed: Duration,
    ask: impl FnOnce(UnixStream) -> io::Result<T>,
) -> Result<T, String> {
    let Socket { path, uid } = socket;
    let connect = || {
        let stream = UnixStream::connect(path)?;
        if socket_peercred(&stream)?.uid.as_raw() != uid {
            return Err(io::Error::other("a process of another user listens there"));
        }
        stream.set_read_timeout(Some(allowed))?;
        stream.set_write_timeout(Some(allowed))?;
        Ok(stream)
    };
    connect().and_then(ask).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => format!("{} (no answer within {} s)", path.display(), allowed.as_secs()),
        _ => format!("{} ({error})", path.display()),
    })
}

/// Asks the server at an address.
fn at<T>(address: SocketAddrV4, ask: impl FnOnce(TcpStream) -> io::Result<T>) -> Result<T, String> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&address.into(), TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    };
    connect().and_then(ask).map_err(|error| format!("{address} ({error})"))
}

/// Waits for the greeting of a MySQL or MariaDB server on its Unix socket: protocol version 10, or an error packet
/// ("Connection Phase Packets" of the MySQL internals manual).
pub(crate) fn mysql(socket: Socket<'_>) -> Result<(), String> {
    let packet = on_socket(socket, TIMEOUT, |mut stream| {
        let mut header = [0; 4];
        stream.read_exact(&mut header)?;
        let length = usize::from(header[0]) | usize::from(header[1]) << 8;
        let mut packet = vec![0; length];
        stream.read_exact(&mut packet)?;
        Ok(packet)
    })?;
    match packet.split_first() {
        Some((10, _)) => Ok(()),
        Some((0xff, rest)) => Err(String::from_utf8_lossy(rest.get(2..).unwrap_or_default()).into_owned()),
        _ => Err("the greeting is not MySQL's".to_owned()),
    }
}

/// Logs in to a MySQL server on its Unix socket.
pub(crate) fn mysql_login(socket: Socket<'_>, user: &str, password: &str) -> Result<(), String> {
    on_socket(socket, STATEMENT, |mut stream| Ok(mysql_login::log_in(&mut stream, user, password)))?
}

/// Opens a session of the superuser on the database `kurabe` of a PostgreSQL server on its Unix socket, which asks for
/// no password, and has a statement executed; without one, only checks that the server is ready ("Message Flow" of its manual).
pub(crate) fn postgres(socket: Socket<'_>, statement: Option<&str>) -> Result<(), String> {
    const LARGEST: u64 = 1 << 16;
    const PARAMETERS: &[u8] = b"user\0postgres\0database\0kurabe\0\0";
    const VERSION_3_0: u32 = 3 << 16;
    const TERMINATE: &[u8] = b"X\0\0\0\x04";
    let allowed = statement.map_or(TIMEOUT, |_| STATEMENT);
    on_socket(socket, allowed, |mut stream| {
        let mut message = Vec::new();
        message.extend((8 + PARAMETERS.len() as u32).to_be_bytes());
        message.extend(VERSION_3_0.to_be_bytes());
        message.extend(PARAMETERS);
        stream.write_all(&message)?;
        if let Some(statement) = statement {
            stream.write_all(b"Q")?;
            stream.write_all(&(statement.len() as u32 + 5).to_be_bytes())?;
            stream.write_all(statement.as_bytes())?;
            stream.write_all(b"\0")?;
        }
        // The server is ready for a statement after the login, and again after the statement.
        let mut ready = 0;
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head)?;
            let [kind, length @ ..] = head;
            let length = u64::from(u32::from_be_bytes(length)).saturating_sub(4);
            let mut body = Vec::new();
            (&mut stream).take(length.min(LARGEST)).read_to_end(&mut body)?;
            match kind {
                b'E' => return Ok(Err(postgres_message(&[&[0; 4], &body[..]].concat()))),
                // The start of the authentication means that the server is ready.
                b'R' if statement.is_none() => break,
                b'Z' if ready == 1 => break,
                b'Z' => ready += 1,
                _ => {}
            }
        }
        stream.write_all(TERMINATE)?;
        Ok(Ok(()))
    })?
}

/// The message (`M`) in the zero-terminated fields of an `ErrorResponse`.
pub(crate) fn postgres_message(rest: &[u8]) -> String {
    let mut fields = rest.get(4..).unwrap_or_default().split(|byte| *byte == 0);
    let message = fields.find_map(|field| field.strip_prefix(b"M"));
    message.map_or_else(|| "it refused".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
}

/// Checks that the memcached at an address is this process. `user`: a user and the password, if it asks for them.
pub(crate) fn memcached_at(address: SocketAddrV4, user: Option<&str>, pid: u32) -> Result<(), String> {
    let ask = |mut stream: TcpStream| {
        if let Some(user) = user {
            // Logs in, as an attempt to store the two under any key (doc/protocol.txt, "Authentication").
            stream.write_all(format!("set auth 0 0 {}\r\n{user}\r\n", user.len()).as_bytes())?;
            let mut answer = [0; b"STORED\r\n".len()];
            stream.read_exact(&mut answer)?;
            if answer != *b"STORED\r\n" {
                return Err(io::Error::other("another memcached answers"));
            }
        }
        statistics(stream)
    };
    at(address, ask).and_then(of(pid))
}

/// Checks that the memcached on a Unix socket is this process.
pub(crate) fn memcached_on_socket(socket: Socket<'_>, pid: u32) -> Result<(), String> {
    on_socket(socket, TIMEOUT, statistics).and_then(of(pid))
}

/// memcached's statistics, which include its process: `STAT pid N`.
fn statistics(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(b"stats\r\n")?;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !text.ends_with(b"END\r\n") {
        match stream.read(&mut buffer)? {
            0 => break,
            n => text.extend(&buffer[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Checks that the statistics are those of this process.
fn of(pid: u32) -> impl FnOnce(String) -> Result<(), String> {
    move |text| match text.lines().find_map(|line| line.strip_prefix("STAT pid ")) {
        Some(number) if number.trim() == pid.to_string() => Ok(()),
        Some(_) => Err("another memcached answers".to_owned()),
        None => Err("the server on this port is not memcached".to_owned()),
    }
}

/// Checks that a Redis on its Unix socket is ready. It asks for the password before it says that it still loads its data.
pub(crate) fn redis(socket: Socket<'_>, password: Option<&str>) -> Result<(), String> {
    let answers = on_socket(socket, TIMEOUT, |mut stream| {
        let login =
            password.map(|password| format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len()));
        stream.write_all(login.as_deref().unwrap_or_default().as_bytes())?;
        stream.write_all(b"PING\r\n")?;
        let wanted = 1 + usize::from(login.is_some());
        let mut answers = Vec::new();
        while answers.split(|byte| *byte == b'\n').count() <= wanted {
            let mut answer = [0; 256];
            let length = stream.read(&mut answer)?;
            if length == 0 {
                break;
            }
            answers.extend_from_slice(&answer[..length]);
        }
        Ok(String::from_utf8_lossy(&answers).trim().to_owned())
    })?;
    match answers.lines().last() {
        Some("+PONG") => Ok(()),
        _ => Err(answers),
    }
}

/// Sends a `ping` to MongoDB or a compatible server on its Unix socket.
pub(crate) fn mongodb(socket: Socket<'_>) -> Result<(), String> {
    mongodb_request(socket, "ping", [bson_number("ping", 1), bson_text("$db", "admin")].concat())
}

/// Creates the first user of a MongoDB, a superuser, which clients of this machine may create without a login.
pub(crate) fn mongodb_user(socket: Socket<'_>, user: &str, password: &str) -> Result<(), String> {
    let mut fields = [bson_text("createUser", user), bson_text("pwd", password)].concat();
    // An array is a document whose fields have numbers for names.
    fields.extend(b"\x04roles\0");
    fields.extend(bson_document(bson_text("0", "root")));
    fields.extend(bson_text("$db", "admin"));
    mongodb_request(socket, "createUser", fields)
}

/// A field with a whole number.
pub(crate) fn bson_number(name: &str, number: i32) -> Vec<u8> {
    [format!("\x10{name}\0").as_bytes(), &number.to_le_bytes()].concat()
}

/// A field with bytes of no special sort.
pub(crate) fn bson_binary(name: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("\x05{name}\0").as_bytes(), &(bytes.len() as u32).to_le_bytes(), b"\0", bytes].concat()
}

/// A field with a text, whose length includes its zero.
pub(crate) fn bson_text(name: &str, text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 1).to_le_bytes();
    [format!("\x02{name}\0").as_bytes(), &length, text.as_bytes(), b"\0"].concat()
}

/// A document of these fields: its length, which includes itself and the final zero, and the fields.
fn bson_document(mut fields: Vec<u8>) -> Vec<u8> {
    fields.push(0);
    [&(4 + fields.len() as u32).to_le_bytes(), &fields[..]].concat()
}

/// Sends a command with these fields to MongoDB or a compatible server on its Unix socket.
fn mongodb_request(socket: Socket<'_>, command: &str, fields: Vec<u8>) -> Result<(), String> {
    let answer = on_socket(socket, STATEMENT, |mut stream| mongodb_exchange(&mut stream, fields))?;
    mongodb_ok(command)(answer).map(drop)
}

/// Sends a command with these fields, and returns its answer: one message with one document each
/// (<https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>, `OP_MSG`).
pub(crate) fn mongodb_exchange(stream: &mut (impl Read + Write), fields: Vec<u8>) -> io::Result<Vec<u8>> {
    const OP_MSG: u32 = 2_013;
    const LARGEST: u64 = 1 << 20;
    let document = bson_document(fields);
    let mut message = Vec::new();
    for word in [21 + document.len() as u32, 1, 0, OP_MSG, 0] {
        message.extend(word.to_le_bytes());
    }
    // A section of kind 0: one document.
    message.push(0);
    message.extend(&document);
    stream.write_all(&message)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut rest = Vec::new();
    stream.take(u64::from(u32::from_le_bytes(length)).clamp(4, LARGEST) - 4).read_to_end(&mut rest)?;
    Ok(rest)
}

/// Whether an answer to a command says that it was executed.
pub(crate) fn mongodb_ok(command: &str) -> impl FnOnce(Vec<u8>) -> Result<Vec<u8>, String> {
    move |answer| {
        // `ok` is a double: 1.0.
        let ok = answer.windows(12).any(|part| part == b"\x01ok\0\0\0\0\0\0\0\xf0\x3f");
        if ok { Ok(answer) } else { Err(format!("the reply to {command} is not ok")) }
    }
}

/// Requests a path from an HTTP server on a port of 127.0.0.1, and returns the body of a 200 response.
pub(crate) fn http(port: u16, path: &str) -> Result<String, String> {
    http_request(port, "GET", path, "")
}

/// Like [`http`], with a method, and a header line or nothing.
pub(crate) fn http_request(port: u16, method: &str, path: &str, header: &str) -> Result<String, String> {
    let answer = at(local(port), |mut stream| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{header}\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(65_536).read_to_end(&mut answer)?;
        Ok(answer)
    })?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.split_whitespace().nth(1) {
        Some("200") => Ok(answer),
        Some(status) => {
            // The reason is the first line of the body.
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            Err(format!("HTTP status {status} {}", body.lines().next().unwrap_or_default())
                .trim_end()
                .to_owned())
        }
        None => Err("the server on this port is not an HTTP server".to_owned()),
    }
}

/// Checks that an address accepts connections.
pub(crate) fn tcp(address: SocketAddrV4) -> Result<(), String> {
    at(address, |_| Ok(()))
}

/// A port of 127.0.0.1.
fn local(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}
