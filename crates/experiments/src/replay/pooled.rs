//! Connections that are kept: which of a capture leave their session as the next one would have it.

use super::traffic::{Connection, Traffic};
use kurabe_protocol::sql::Statement;
use kurabe_wire::view::Transaction;

/// Statements that leave nothing behind their transaction.
const PLAIN: &[&str] = &[
    "select", "insert", "update", "delete", "replace", "merge", "with", "values", "show", "explain", "begin",
    "start", "commit", "end", "rollback", "abort", "savepoint", "release",
];
/// What leaves something all the same: settings, locks, tables and variables of a session.
const LEAVING: [&str; 5] = ["set_config", "_lock(", "_lock_shared(", "into temp", "@"];

/// Of each connection, the texts by which it set something in its session; `None`: it left more than that there.
pub(super) fn left(traffic: &Traffic) -> Vec<Option<Vec<String>>> {
    traffic.connections.iter().map(|connection| of(connection, traffic)).collect()
}

fn of(connection: &Connection, traffic: &Traffic) -> Option<Vec<String>> {
    let sent = || connection.units.iter().flat_map(|unit| &traffic.units[*unit].requests);
    let ended = sent().last().is_none_or(|sent| sent.request.transaction == Transaction::None);
    if !ended {
        return None;
    }
    let mut settings = Vec::new();
    for sent in sent() {
        let text = &traffic.templates[sent.template].text;
        let statement = Statement::read(text, traffic.language.dialect());
        let plain = text.to_ascii_lowercase().replace("@@", "");
        if statement.begins(&["set"]) {
            settings.push(traffic.text(sent));
        } else if text != "COM_PING"
            && (!statement.is_empty() && !statement.begins(PLAIN)
                || LEAVING.iter().any(|word| plain.contains(word)))
        {
            return None;
        }
    }
    Some(settings)
}
