//! The state of a session's transaction, which a log does not say, from what the session asked.

use kurabe_protocol::sql::{Dialect, Statement, Token};
use kurabe_wire::view::{Exchange, Step, Transaction};

/// MySQL's code of an error that ends the transaction: a deadlock.
const DEADLOCK: &str = "1213";

/// A session, as far as its transaction depends on it.
#[derive(Debug, Default)]
pub(super) struct Followed {
    state: Option<Transaction>,
    /// Whether each statement begins a transaction (`autocommit = 0`).
    is_manual: bool,
}

impl Followed {
    /// The state after a request.
    pub(super) fn after(&mut self, exchange: &Exchange, dialect: Dialect) -> Transaction {
        let before = self.state.unwrap_or(Transaction::None);
        let statement = Statement::read(&exchange.text, dialect);
        let next = match &exchange.error {
            _ if exchange.step == Step::Prepare => before,
            // Other errors do not end a transaction of MySQL.
            Some(error) if dialect == Dialect::MYSQL => {
                if error == DEADLOCK {
                    Transaction::None
                } else {
                    before
                }
            }
            Some(_) => match statement.first().map(str::to_ascii_lowercase).as_deref() {
                Some("commit" | "end") => Transaction::None,
                _ if before == Transaction::None => before,
                _ => Transaction::Failed,
            },
            None => {
                let manual = (dialect == Dialect::MYSQL).then(|| autocommit(&exchange.text)).flatten();
                if let Some(is_on) = manual {
                    self.is_manual = !is_on;
                    // To switch it on commits.
                    if is_on { Transaction::None } else { before }
                } else {
                    let statements = statement.tokens().split(|token| token.is_mark(';'));
                    statements.fold(before, |state, one| self.step(state, one, dialect))
                }
            }
        };
        self.state = Some(next);
        next
    }

    /// The state after one statement that was executed.
    fn step(&self, before: Transaction, tokens: &[Token<'_>], dialect: Dialect) -> Transaction {
        let is_mysql = dialect == Dialect::MYSQL;
        let words: Vec<String> = tokens
            .iter()
            .skip_while(|one| one.is_mark('('))
            .map_while(Token::name)
            .take(6)
            .map(str::to_lowercase)
            .collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["set" | "use" | "show", ..] | ["commit" | "rollback", "prepared", ..] => before,
            ["rollback" | "abort", rest @ ..] if rest.iter().take(2).any(|word| *word == "to") => {
                if before == Transaction::None { before } else { Transaction::Open }
            }
            ["begin", ..]
            | ["start", "transaction", ..]
            | ["commit" | "end" | "rollback" | "abort", .., "and", "chain"] => Transaction::Open,
            ["commit" | "end" | "rollback" | "abort", ..] | ["prepare", "transaction", ..] => {
                Transaction::None
            }
            ["create" | "drop", "temporary", ..] if is_mysql => before,
            // They commit by themselves.
            ["create" | "alter" | "drop" | "truncate" | "rename" | "lock", ..] if is_mysql => {
                Transaction::None
            }
            _ if self.is_manual && before == Transaction::None => Transaction::Open,
            _ => before,
        }
    }
}

/// Whether a statement switches `autocommit` on or off.
fn autocommit(text: &str) -> Option<bool> {
    let text: String = text.chars().take(100).filter(|c| !c.is_whitespace()).collect();
    let text = text.to_ascii_lowercase().replace(":=", "=");
    let (_, value) = text.strip_prefix("set")?.split_once("autocommit=")?;
    Some(!["0", "off", "false"].iter().any(|off| value.starts_with(off)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements with the codes of their errors, and the states after them.
    type Case<'a> = (Dialect, &'a [(&'a str, &'a str, Transaction)]);

    #[test]
    fn transactions_are_those_that_servers_have() {
        use Transaction::{Failed, None as No, Open};
        let cases: &[Case<'_>] = &[
            (
                Dialect::POSTGRES,
                &[
                    ("BEGIN; UPDATE t SET a = 'x;y'; COMMIT;", "", No),
                    ("/* a */ begin", "", Open),
                    ("SELECT 1 / 0", "22012", Failed),
                    ("ROLLBACK TO SAVEPOINT gone", "3B001", Failed),
                    ("ROLLBACK TO SAVEPOINT a", "", Open),
                    ("COMMIT AND CHAIN", "", Open),
                    ("COMMIT", "23503", No),
                    ("SELECT 1 / 0", "22012", No),
                    ("START TRANSACTION READ ONLY", "", Open),
                    ("PREPARE TRANSACTION 'a'", "", No),
                    ("COMMIT PREPARED 'a'", "", No),
                ],
            ),
            (
                Dialect::MYSQL,
                &[
                    ("SET NAMES utf8mb4", "", No),
                    ("SET @@session.autocommit = 0", "", No),
                    ("SELECT 1", "", Open),
                    ("UPDATE t SET a = 1", "1062", Open),
                    ("CREATE TEMPORARY TABLE x (a INT)", "", Open),
                    ("CREATE TABLE x (a INT)", "", No),
                    ("UPDATE t SET a = 1", "", Open),
                    ("UPDATE t SET a = 1", "1213", No),
                    ("SET autocommit=1", "", No),
                    ("SELECT 1", "", No),
                ],
            ),
        ];
        for (dialect, statements) in cases {
            let mut followed = Followed::default();
            for (text, error, expected) in *statements {
                let error = Some((*error).to_owned()).filter(|error| !error.is_empty());
                let exchange = Exchange { text: (*text).to_owned(), error, ..Exchange::default() };
                assert_eq!(followed.after(&exchange, *dialect), *expected, "{text}");
            }
        }
    }
}
