//! MongoDB and its substitute.

use super::common::{Reset, State};
use crate::{Server, testing, wire};

pub(super) static RESET: Reset = Reset { with_tls: false, state, clean };

/// Databases that belong to the server.
const OF_SERVER: [&str; 3] = ["admin", "config", "local"];

fn state(server: &Server) -> Result<State, String> {
    Ok(databases(server)?.into_iter().map(|name| (format!("database {name}"), String::new())).collect())
}

fn clean(server: &Server, _first: &State) -> Result<(), String> {
    for name in databases(server)? {
        if !OF_SERVER.contains(&&*name) {
            command(server, &name, "dropDatabase")?;
        }
    }
    Ok(())
}

/// Logs in, and executes a command that needs no arguments.
fn command(server: &Server, database: &str, command: &str) -> Result<Vec<u8>, String> {
    let asked = testing::connected(server).and_then(|mut stream| {
        let fields = [wire::bson_number(command, 1), wire::bson_text("$db", database)].concat();
        wire::mongodb_exchange(&mut stream, fields)
    });
    asked.map_err(|error| error.to_string()).and_then(wire::mongodb_ok(command))
}

/// Each database is a document with a text `name`: a kind, a name, a length, the text, and a zero.
const NAME: &[u8] = b"\x02name\0";

fn databases(server: &Server) -> Result<Vec<String>, String> {
    let answer = command(server, "admin", "listDatabases")?;
    let mut found = Vec::new();
    for at in 0..answer.len() {
        let Some(rest) = answer[at..].strip_prefix(NAME) else { continue };
        let text = rest.get(4..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        found.push(String::from_utf8_lossy(text).into_owned());
    }
    Ok(found)
}
