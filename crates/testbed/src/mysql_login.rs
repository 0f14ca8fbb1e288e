//! A login to MySQL or MariaDB (MySQL's internals manual, "Connection Phase").

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Logs in on a Unix socket.
pub(crate) fn log_in(stream: &mut UnixStream, user: &str, password: &str) -> Result<(), String> {
    // Long password, protocol 4.1, authentication of 4.1, name of the method.
    const CAPABILITIES: u32 = 1 | 1 << 9 | 1 << 15 | 1 << 19;
    const UTF8MB4: u8 = 45;
    let (mut number, greeting) = receive(stream)?;
    if let Some(why) = failure(&greeting) {
        return Err(why);
    }
    let mut answer = CAPABILITIES.to_le_bytes().to_vec();
    answer.extend((1_u32 << 24).to_le_bytes());
    answer.push(UTF8MB4);
    answer.extend([0; 23]);
    // The user, no answer, and a method that no user has, so that the server names the user's.
    answer.extend(user.as_bytes());
    answer.extend(b"\0\0none\0");
    loop {
        send(stream, number.wrapping_add(1), &answer)?;
        let mut reply;
        (number, reply) = receive(stream)?;
        // The server knows the user's digest already, and lets it in.
        if reply == [1, 3] {
            (number, reply) = receive(stream)?;
        }
        match &reply[..] {
            [0, ..] => return Ok(()),
            [0xfe, rest @ ..] => answer = scrambled(rest, password)?,
            // It asks for the password itself, which it may have on a Unix socket.
            [1, 4] => answer = [password.as_bytes(), b"\0"].concat(),
            _ => return Err(failure(&reply).unwrap_or_else(|| "unknown answer to a login".to_owned())),
        }
    }
}

/// The answer to a request for another method: its name, and the bytes that the password is mixed with.
fn scrambled(request: &[u8], password: &str) -> Result<Vec<u8>, String> {
    let mut parts = request.splitn(2, |byte| *byte == 0);
    let (method, mixed) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mixed = mixed.strip_suffix(b"\0").unwrap_or(mixed);
    let hash = |algorithm, parts: &[&[u8]]| digest(algorithm, &parts.concat()).as_ref().to_vec();
    let (algorithm, last_is_mixed) = match method {
        b"mysql_native_password" => (&SHA1_FOR_LEGACY_USE_ONLY, false),
        b"caching_sha2_password" => (&SHA256, true),
        other => return Err(format!("unknown method {}", String::from_utf8_lossy(other))),
    };
    let once = hash(algorithm, &[password.as_bytes()]);
    let twice = hash(algorithm, &[&once]);
    let key =
        if last_is_mixed { hash(algorithm, &[&twice, mixed]) } else { hash(algorithm, &[mixed, &twice]) };
    Ok(once.iter().zip(key).map(|(one, other)| one ^ other).collect())
}

/// Sends a packet.
pub(crate) fn send(stream: &mut UnixStream, number: u8, packet: &[u8]) -> Result<(), String> {
    let [a, b, c, _] = (packet.len() as u32).to_le_bytes();
    stream.write_all(&[&[a, b, c, number], packet].concat()).map_err(|error| error.to_string())
}

/// Receives a packet, with its number.
pub(crate) fn receive(stream: &mut UnixStream) -> Result<(u8, Vec<u8>), String> {
    let mut read = || -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let [a, b, c, number] = head;
        let mut packet = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        stream.read_exact(&mut packet)?;
        Ok((number, packet))
    };
    read().map_err(|error| error.to_string())
}

/// The message of an error packet, after its number and the marked state.
pub(crate) fn failure(packet: &[u8]) -> Option<String> {
    let text = packet.strip_prefix(&[0xff])?.get(2..).unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}
