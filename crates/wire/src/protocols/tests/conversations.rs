//! A conversation of each protocol with requests for setting it up, and with what must not be seen.

use super::Said;
use crate::protocols::mongodb::tests::{asked, bytes, int, of, op_msg, text};
pub(super) use crate::protocols::mysql::tests::packet;
pub(super) use crate::protocols::postgres::tests::message;
use crate::protocols::postgres::tests::messages;

pub(super) fn client(bytes: &[&[u8]]) -> Said {
    (true, bytes.concat())
}

pub(super) fn server(bytes: &[&[u8]]) -> Said {
    (false, bytes.concat())
}

/// A greeting with these flags.
pub(super) fn greeting(flags: u32) -> Vec<u8> {
    let flags = flags.to_le_bytes();
    let after = [0; 13];
    packet(
        0,
        &[b"\x0a8.4.0\0".as_slice(), &[7; 4], &[1; 8], &[0], &flags[..2], &[33, 2, 0], &flags[2..], &after]
            .concat(),
    )
}

/// A client's answer to it.
fn response(flags: u32) -> Vec<u8> {
    let attributes = b"\x0c_client_name\x04libx\x0f_client_version\x039.1";
    let body = [
        &flags.to_le_bytes()[..],
        &[0, 0, 0, 1, 33],
        &[0; 23],
        b"bob\0\x07hunter2shop\0mysql_native_password\0",
        &[attributes.len() as u8],
        attributes,
    ];
    packet(1, &body.concat())
}

pub(super) const FLAGS: u32 = 1 << 3 | 1 << 9 | 1 << 15 | 1 << 19 | 1 << 20 | 1 << 21;
const ATTRIBUTES: u32 = 1 << 27;

fn mysql() -> Vec<Said> {
    let ok = packet(1, &[0, 0, 0, 2, 0, 0, 0]);
    let prepared = packet(1, &[0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let attribute = b"\x03\x01\x01\0\x01\xfd\0\x01a\x02xySELECT 2 FROM t";
    vec![
        server(&[&greeting(FLAGS | ATTRIBUTES)]),
        client(&[&response(FLAGS | ATTRIBUTES)]),
        server(&[&packet(2, &[0, 0, 0, 2, 0, 0, 0])]),
        client(&[&packet(0, b"\x03\0\x01SET NAMES utf8mb4")]),
        server(&[&ok]),
        client(&[&packet(0, attribute)]),
        server(&[&ok]),
        client(&[&packet(0, b"\x16SELECT ?")]),
        server(&[&prepared]),
        client(&[&packet(0, &[0x17, 5, 0, 0, 0, 0]), &packet(0, &[0x19, 5, 0, 0, 0])]),
        server(&[&ok]),
        // The server requests a file. A packet of it looks like a command.
        client(&[&packet(0, b"\x03\0\x01LOAD DATA LOCAL INFILE 'x' INTO TABLE t")]),
        server(&[&packet(1, b"\xfbx")]),
        client(&[&packet(0, b"\x03no statement"), &packet(3, b"")]),
        server(&[&packet(4, &[0, 0, 0, 2, 0, 0, 0])]),
        client(&[&packet(0, b"\x11bob\0\x07hunter2"), &packet(0, b"\x0e"), &packet(0, b"\x01")]),
    ]
}

pub(super) fn postgres() -> Vec<Said> {
    let start = b"\0\x03\0\0user\0bob\0application_name\0psql\0DateStyle\0ISO\0\0";
    let (bind, all) = (b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0");
    vec![
        client(&[&message(0, &80_877_103_u32.to_be_bytes())]),
        server(&[b"N"]),
        client(&[&message(0, start)]),
        server(&[&message(b'R', &[0, 0, 0, 3])]),
        client(&[&message(b'p', b"hunter2\0")]),
        (false, messages(&[(b'R', &[0; 4]), (b'Z', b"I")])),
        (true, message(b'Q', b"SET a = 1\0")),
        (false, message(b'Z', b"I")),
        (true, messages(&[(b'P', b"\0SELECT $1\0\0\0"), (b'B', bind), (b'E', all), (b'S', b"")])),
        (false, messages(&[(b'1', b""), (b'2', b""), (b'C', b"SELECT 0\0"), (b'Z', b"I")])),
        (true, messages(&[(b'P', b"s1\0SELECT id FROM t\0\0\0"), (b'S', b"")])),
        (false, messages(&[(b'1', b""), (b'Z', b"I")])),
        (true, messages(&[(b'B', b"\0s1\0\0\0\0\0\0\0"), (b'E', all), (b'S', b""), (b'X', b"")])),
    ]
}

fn mongodb() -> Vec<Said> {
    let driver = of(&[("name", text("nodejs")), ("version", text("6.1"))]);
    let hello = [("hello", int(1)), ("client", of(&[("driver", driver)]))];
    let login = [("saslStart", int(1)), ("payload", text("hunter2"))];
    let (rows, insert) =
        ([&14_u32.to_le_bytes()[..], b"documents\0"].concat(), bytes(&of(&[("insert", text("users"))])));
    // Documents may precede their command.
    let insert = op_msg(3, 0, 0, &[&[1], &rows, &[0], &insert]);
    vec![asked(1, &hello), asked(2, &login), client(&[&insert])]
}

pub(super) fn conversation(scheme: &str) -> Vec<Said> {
    match scheme {
        "mysql" => mysql(),
        "postgres" => postgres(),
        "redis" => vec![client(&[
            b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$8\r\nredis-py\r\n",
            b"*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$7\r\nhunter2\r\n",
            b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$11\r\nrequirepass\r\n$7\r\nhunter2\r\n",
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\na\r\n*1\r\n$1\r\n",
            b"PING\r\nget k\r\n",
        ])],
        "memcached" => vec![client(&[
            b"version\r\nset a 0 0 10\r\nget b\r\n123\r\n",
            b"ms c 2 T0\r\nab\r\nmg c v\r\n",
            b"quit\r\n",
        ])],
        "mongodb" => mongodb(),
        "couchdb" => vec![client(&[
            b"GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/8\r\nAuthorization: hunter2\r\n\r\n",
            b"POST /_session?next=hunter2 HTTP/1.1\r\nContent-Length: 7\r\n\r\nhunter2",
            b"PUT http://bob:hunter2@h/db/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\nx: y\r\n\r\n",
            b"GET /db/1 HTTP/1.1\r\n\r\n",
        ])],
        other => panic!("no conversation for {other}"),
    }
}
