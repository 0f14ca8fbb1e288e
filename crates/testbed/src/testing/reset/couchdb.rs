//! CouchDB and its substitute, over HTTP, as an administrator.

use super::common::{Reset, State};
use crate::testing::authorization;
use crate::{Server, wire};

pub(super) static RESET: Reset = Reset { with_tls: false, state, clean };

fn state(server: &Server) -> Result<State, String> {
    Ok(databases(server)?.into_iter().map(|name| (format!("database {name}"), String::new())).collect())
}

fn clean(server: &Server, first: &State) -> Result<(), String> {
    for name in databases(server)? {
        if !first.contains_key(&format!("database {name}")) {
            let name = name.replace('/', "%2F").replace('+', "%2B");
            wire::http_request(server.port(), "DELETE", &format!("/{name}"), &authorization(server))?;
        }
    }
    Ok(())
}

fn databases(server: &Server) -> Result<Vec<String>, String> {
    let answer = wire::http_request(server.port(), "GET", "/_all_dbs", &authorization(server))?;
    let (start, end) = (answer.find('['), answer.rfind(']'));
    let names = start.zip(end).and_then(|(start, end)| serde_json::from_str(answer.get(start..=end)?).ok());
    names.ok_or_else(|| "it lists no databases".to_owned())
}
