//! MongoDB and its substitute, on their Unix socket.

use super::common::{Reset, State};
use crate::wire::Socket;
use crate::{Server, wire};

pub(super) static RESET: Reset = Reset { with_tls: true, state, clean };

/// Databases that belong to the server.
const OF_SERVER: [&str; 3] = ["admin", "config", "local"];

fn state(server: &Server) -> Result<State, String> {
    Ok(databases(server)?.into_iter().map(|name| (format!("database {name}"), String::new())).collect())
}

fn clean(server: &Server, _first: &State) -> Result<(), String> {
    let socket = socket(server)?;
    for name in databases(server)? {
        if !OF_SERVER.contains(&&*name) {
            wire::mongodb_command(socket, &name, "dropDatabase")?;
        }
    }
    Ok(())
}

/// Its socket. It runs as this user.
fn socket(server: &Server) -> Result<Socket<'_>, String> {
    let path = server.socket().ok_or("it has no socket")?;
    Ok(Socket { path, uid: rustix::process::geteuid().as_raw() })
}

/// Each database is a document with a text `name`: a kind, a name, a length, the text, and a zero.
const NAME: &[u8] = b"\x02name\0";

fn databases(server: &Server) -> Result<Vec<String>, String> {
    let socket = socket(server)?;
    let answer = wire::mongodb_command(socket, "admin", "listDatabases")?;
    let mut found = Vec::new();
    for at in 0..answer.len() {
        let Some(rest) = answer[at..].strip_prefix(NAME) else { continue };
        let text = rest.get(4..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        found.push(String::from_utf8_lossy(text).into_owned());
    }
    Ok(found)
}
