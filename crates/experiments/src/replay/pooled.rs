//! Connections that are kept: which of a capture leave their session as the next one would have it.

use super::traffic::{Connection, Traffic};
use kurabe_protocol::sql::{Dialect, Statement};
use kurabe_wire::view::Transaction;

/// Statements that leave nothing behind their transaction.
const PLAIN: &[&str] = &[
    "select", "insert", "update", "delete", "replace", "merge", "with", "values", "show", "explain", "begin",
    "start", "commit", "end", "rollback", "abort", "savepoint", "release",
];
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
        if statement.begins(&["set"]) {
            settings.push(traffic.text(sent));
        } else if text != "COM_PING"
            && (!statement.is_empty() && !statement.begins(PLAIN)
                || leaves(&statement, traffic.language.dialect()))
        {
            return None;
        }
    }
    Some(settings)
}

/// Whether a statement of these leaves something all the same: a setting, a lock, a table or a variable of its session.
fn leaves(statement: &Statement<'_>, dialect: Dialect) -> bool {
    let tokens = statement.tokens();
    let is_sign = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|one| one.is_mark('@'));
    tokens.iter().enumerate().any(|(at, token)| {
        let next = tokens.get(at + 1);
        let leaves = |name: &str| {
            let name = name.to_ascii_lowercase();
            name == "set_config" || name.trim_end_matches("_shared").ends_with("_lock")
        };
        let calls = token.name().is_some_and(leaves) && next.is_some_and(|next| next.is_mark('('));
        let makes = token.is("into") && next.is_some_and(|next| next.is_one_of(&["temp", "temporary"]));
        // Two of these signs begin the name of a setting.
        let names_variable =
            is_sign(Some(at)) && !is_sign(Some(at + 1)) && !is_sign(at.checked_sub(1)) && dialect.is_mysql();
        calls || makes || names_variable
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_leaves_something_by_its_words_and_not_by_its_texts() {
        for (text, dialect, wanted) in [
            ("SELECT a INTO  TEMP t FROM b", Dialect::POSTGRES, true),
            ("SELECT pg_advisory_lock_shared (1)", Dialect::POSTGRES, true),
            ("SELECT SET_CONFIG('a', 'b', false)", Dialect::POSTGRES, true),
            ("SELECT 'into temp t, set_config(', a @> b FROM get_lock", Dialect::POSTGRES, false),
            ("SELECT get_lock ('a', 1)", Dialect::MYSQL, true),
            ("SELECT @a := 1", Dialect::MYSQL, true),
            ("SELECT @@version, 'a@b'", Dialect::MYSQL, false),
        ] {
            assert_eq!(leaves(&Statement::read(text, dialect), dialect), wanted, "{text}");
        }
    }
}
