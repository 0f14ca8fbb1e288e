//! Effects of statements and other calls, as far as their words say.

use crate::rows::{Plain, Verb};
use kurabe_protocol::call::Call;
use kurabe_protocol::sql::Statement;

/// Effect of a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Does {
    /// Whether it sets up a connection or a transaction, or asks about the server.
    pub(super) is_setup: bool,
    pub(crate) transaction: Option<Transaction>,
    /// Whether it only reads, and whether it may change or lock something.
    pub(super) reads: bool,
    pub(crate) writes: bool,
    /// The word for what it does, and its table.
    pub(crate) name: String,
}

/// Effect of a statement on its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    Begins,
    Commits,
    RollsBack,
}

impl Does {
    pub(super) fn read(call: &Call<'_>) -> Self {
        let is_setup = call.is_setup();
        let is_one_of = |name: &str, of: &[&str]| of.contains(&name);
        match call {
            Call::Sql(text, dialect) => {
                let statement = Statement::read(text, *dialect);
                let reads = statement.reads();
                let first = statement.first().unwrap_or("statement").to_lowercase();
                let table = statement.tables().into_iter().next().unwrap_or_default();
                Self {
                    is_setup,
                    transaction: transaction(&first).filter(|_| is_setup),
                    reads,
                    writes: !reads || statement.locks(),
                    name: format!("{first}-{table}"),
                }
            }
            Call::Command(command) => {
                let transaction = transaction(command.name());
                let name = command.name().to_lowercase();
                Self { is_setup, transaction, reads: false, writes: true, name }
            }
            Call::Document(command) => {
                let reads = is_one_of(&command.name(), &["aggregate", "count", "distinct", "find"]);
                let name = command.name().to_lowercase();
                Self { is_setup, reads, writes: !reads, name, ..Self::default() }
            }
            Call::Http(request) => {
                let reads = is_one_of(request.method(), &["GET", "HEAD"]);
                Self { is_setup, reads, writes: !reads, ..Self::default() }
            }
        }
    }

    /// Effect of a call that was translated into a statement.
    pub(super) fn translated(plain: &Plain) -> Self {
        let reads = plain.verb == Verb::Select;
        Self { reads, writes: !reads, name: format!("{}-{}", plain.word(), plain.table), ..Self::default() }
    }
}

/// Effect of a first word of a statement, or of a name of a command of Redis, on the transaction.
fn transaction(word: &str) -> Option<Transaction> {
    match word {
        "begin" | "start" | "MULTI" => Some(Transaction::Begins),
        "commit" | "end" | "EXEC" => Some(Transaction::Commits),
        "abort" | "rollback" | "DISCARD" => Some(Transaction::RollsBack),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;

    #[test]
    fn statement_is_named_after_its_table_and_not_after_the_schema() {
        let named = |text| Does::read(&Call::Sql(text, Dialect::POSTGRES)).name;
        assert_eq!(named("SELECT a FROM public.\"Item\" WHERE b = 1"), "select-item");
        assert_eq!(named("/* a */ BEGIN"), "begin-");
    }
}
