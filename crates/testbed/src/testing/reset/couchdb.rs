//! CouchDB and its substitute, over HTTP, as an administrator or where each user is one.

use super::common::{Reset, State};
use crate::{Server, wire};

pub(super) static RESET: Reset = Reset { with_tls: false, state, clean };

fn state(server: &Server) -> Result<State, String> {
    Ok(databases(server)?.into_iter().map(|name| (format!("database {name}"), String::new())).collect())
}

fn clean(server: &Server, first: &State) -> Result<(), String> {
    for name in databases(server)? {
        if !first.contains_key(&format!("database {name}")) {
            let name = name.replace('/', "%2F").replace('+', "%2B");
            wire::http_request(server.port(), "DELETE", &format!("/{name}"), credentials(server))?;
        }
    }
    Ok(())
}

fn databases(server: &Server) -> Result<Vec<String>, String> {
    let answer = wire::http_request(server.port(), "GET", "/_all_dbs", credentials(server))?;
    let (start, end) = (answer.find('['), answer.rfind(']'));
    let names = start.zip(end).and_then(|(start, end)| serde_json::from_str(answer.get(start..=end)?).ok());
    names.ok_or_else(|| "it lists no databases".to_owned())
}

/// The header of the administrator that Apache CouchDB has, by the password in the server's URL.
fn credentials(server: &Server) -> &'static str {
    // kurabe:kurabe
    if server.url().contains("kurabe:kurabe@") { "Authorization: Basic a3VyYWJlOmt1cmFiZQ==\r\n" } else { "" }
}
