//! What a statement writes to: whether each table that it changes is one of the run's.
//!
//! This is not a parser. A statement whose targets it does not find asks for `--write`.

use kurabe_protocol::sql::{Kind, Statement};

/// A token in lower case, of which only words, names and signs count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// A quoted name, or a text between double quotes.
    Name(String),
    /// A character that is neither in a word nor in a text.
    Mark(char),
    Value,
}

impl Token {
    /// The word, if it is not quoted.
    fn word(&self) -> Option<&str> {
        if let Self::Word(word) = self { Some(word) } else { None }
    }

    /// The word or name.
    fn name(&self) -> Option<&str> {
        if let Self::Word(name) | Self::Name(name) = self { Some(name) } else { None }
    }
}

/// The tokens of a statement.
pub(super) fn tokens(statement: &Statement<'_>) -> Vec<Token> {
    let token = |token: &kurabe_protocol::sql::Token<'_>| match (token.kind, token.name()) {
        (Kind::Word, Some(word)) => Token::Word(word.to_lowercase()),
        (_, Some(name)) => Token::Name(name.to_lowercase()),
        (Kind::Mark, None) => Token::Mark(token.text.chars().next().unwrap_or_default()),
        _ => Token::Value,
    };
    statement.tokens().iter().map(token).collect()
}

/// The word that stands for the name of a table of the run.
pub(super) const OURS: &str = "kurabe_own_table";

/// The first words of statements that only read, or that control a session or a transaction.
const PLAIN: [&str; 22] = [
    "select", "with", "values", "table", "show", "explain", "describe", "desc", "set", "reset", "begin",
    "start", "commit", "end", "rollback", "abort", "savepoint", "release", "insert", "replace", "update",
    "delete",
];
/// Those of statements that name the table after these words, and change nothing else.
const DIRECT: [&str; 9] =
    ["alter", "analyze", "cluster", "drop", "lock", "optimize", "reindex", "truncate", "vacuum"];
/// Words between a verb and its table.
const BETWEEN: [&str; 23] = [
    "abort", "analyze", "concurrently", "delayed", "exists", "fail", "freeze", "full", "high_priority", "if",
    "ignore", "into", "local", "low_priority", "no_write_to_binlog", "only", "or", "quick", "replace",
    "rollback", "table", "tables", "verbose",
];
/// Words before `UPDATE` or `DELETE` where these are no statement: `ON CONFLICT DO UPDATE`, `FOR UPDATE`, `THEN DELETE`.
const NO_VERB: [&str; 7] = ["do", "for", "key", "on", "then", "after", "before"];

/// Whether a statement defines something, so that a word before a parenthesis is a type.
pub(super) fn defines(tokens: &[Token]) -> bool {
    let begun = tokens.first().and_then(Token::word).unwrap_or_default();
    begun == "create" || DIRECT.contains(&begun)
}

/// Why a statement may change a table that is not the run's; `None` if it changes none.
pub(super) fn others(tokens: &[Token]) -> Option<String> {
    let first = tokens.iter().position(|token| *token != Token::Mark('(')).unwrap_or(tokens.len());
    let begun = tokens.get(first).and_then(Token::word).unwrap_or_default();
    if DIRECT.contains(&begun) {
        // After the table of ALTER a comma divides what is altered; in LOCK, words follow each table.
        let commas =
            tokens.iter().enumerate().filter(|(_, token)| **token == Token::Mark(',')).map(|(at, _)| at);
        let mut locked = commas.filter(|_| begun == "lock").map(|comma| target(tokens, comma + 1, false));
        if let Some(name) = locked.find_map(Result::err) {
            return Some(changed(begun, &name));
        }
        let is_list = begun != "alter";
        return target(tokens, first + 1, is_list).err().map(|name| changed(begun, &name));
    }
    if begun == "create" {
        let is_index = tokens[first..].iter().take(3).any(|token| token.word() == Some("index"));
        let on = tokens.iter().position(|token| token.word() == Some("on"));
        let found = on.filter(|_| is_index).map(|on| target(tokens, on + 1, false));
        return (found != Some(Ok(()))).then(|| "it creates something".to_owned());
    }
    if begun != "merge" && !PLAIN.contains(&begun) {
        return Some(format!("what {} changes is not known", begun.to_uppercase()));
    }
    let mut number = first;
    while let Some(token) = tokens.get(number) {
        let word = token.word().unwrap_or_default();
        let before = number.checked_sub(1).and_then(|before| tokens[before].word()).unwrap_or_default();
        let is_called = tokens.get(number + 1) == Some(&Token::Mark('('));
        let found = match word {
            _ if NO_VERB.contains(&before) || is_called => Ok(()),
            "insert" | "replace" | "merge" if before != "or" => target(tokens, number + 1, false),
            "update" => updated(tokens, number + 1),
            "delete" => deleted(tokens, number + 1),
            // SELECT … INTO, unless it is a variable.
            "into" if !of_verb(tokens, number) && tokens.get(number + 1) != Some(&Token::Mark('@')) => {
                target(tokens, number + 1, true)
            }
            _ => Ok(()),
        };
        if let Err(name) = found {
            return Some(changed(word, &name));
        }
        number += 1;
    }
    None
}

fn changed(verb: &str, name: &str) -> String {
    if name.is_empty() {
        return format!("what its {} changes is not known", verb.to_uppercase());
    }
    format!("its {} changes {name}, which is no table of the run", verb.to_uppercase())
}

/// Whether the word before, but for modifiers, is a verb that `INTO` belongs to.
fn of_verb(tokens: &[Token], into: usize) -> bool {
    let words = tokens[..into].iter().rev().map_while(Token::word);
    let verb = words.clone().find(|word| !BETWEEN.contains(word) || *word == "replace");
    matches!(verb, Some("insert" | "replace" | "merge"))
}

/// Whether the name at a place, after words that may stand before it, is a table of the run's, and with `is_list` those after commas
/// too. The error is the name.
fn target(tokens: &[Token], at: usize, is_list: bool) -> Result<(), String> {
    let between = |token: &&Token| token.word().is_some_and(|word| BETWEEN.contains(&word));
    let mut at = at + tokens.iter().skip(at).take_while(between).count();
    loop {
        let (name, length) = name(tokens, at);
        if name != OURS {
            return Err(name);
        }
        at += length;
        if !is_list || tokens.get(at) != Some(&Token::Mark(',')) {
            return Ok(());
        }
        at += 1;
    }
}

/// The name at a place, with what qualifies it, and the number of its tokens.
fn name(tokens: &[Token], at: usize) -> (String, usize) {
    let mut found = String::new();
    let mut length = 0;
    while let Some(part) = tokens.get(at + length).and_then(Token::name) {
        found += part;
        length += 1;
        if tokens.get(at + length) != Some(&Token::Mark('.')) {
            break;
        }
        found.push('.');
        length += 1;
    }
    (found, length)
}

/// UPDATE: its table, and all of MySQL's list or join.
fn updated(tokens: &[Token], at: usize) -> Result<(), String> {
    target(tokens, at, true)?;
    let end = tokens.iter().skip(at).position(|token| token.word() == Some("set"));
    let end = end.map_or(tokens.len(), |end| at + end);
    let others = (at..end).filter(|at| tokens[*at] == Token::Mark(',') || tokens[*at].word() == Some("join"));
    others.map(|at| at + 1).try_for_each(|at| target(tokens, at, false))
}

/// DELETE: the table after FROM, or of MySQL those before it.
fn deleted(tokens: &[Token], at: usize) -> Result<(), String> {
    let is_modifier =
        |token: &&Token| token.word().is_some_and(|word| ["ignore", "low_priority", "quick"].contains(&word));
    let at = at + tokens.iter().skip(at).take_while(is_modifier).count();
    let from = tokens.get(at).and_then(Token::word) == Some("from");
    target(tokens, if from { at + 1 } else { at }, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;

    fn found(sql: &str) -> Option<String> {
        let sql = sql.replace("{t}", OURS);
        Dialect::all_of(None).iter().find_map(|dialect| others(&tokens(&Statement::read(&sql, *dialect))))
    }

    #[test]
    fn statement_that_changes_tables_of_the_run_alone_is_found() {
        for sql in [
            "SELECT a FROM {t} JOIN other USING (id) FOR UPDATE",
            "INSERT INTO {t} SELECT * FROM other",
            "INSERT OR REPLACE INTO {t} VALUES (1)",
            "INSERT IGNORE {t} VALUES (1)",
            "REPLACE INTO {t} VALUES (replace('a', 'b', 'c'))",
            "INSERT INTO {t} VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1",
            "INSERT INTO {t} VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
            "UPDATE {t} SET a = (SELECT max(b) FROM other) FROM other WHERE other.id = 1",
            "UPDATE ONLY {t} AS x SET a = 1, b = 2",
            "DELETE FROM {t} USING other WHERE other.id = 1",
            "WITH gone AS (DELETE FROM {t} RETURNING *) INSERT INTO {t} SELECT * FROM gone",
            "MERGE INTO {t} USING other ON true WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1)",
            "TRUNCATE TABLE {t}",
            "ALTER TABLE {t} ADD COLUMN a int, ADD COLUMN b int",
            "CREATE INDEX i ON {t} (a)",
            "SELECT a INTO @x FROM {t}",
        ] {
            assert_eq!(found(sql), None, "{sql}");
        }
    }

    #[test]
    fn statement_that_changes_another_table_beside_those_of_the_run_is_not() {
        for sql in [
            "UPDATE dl SET v = 777 FROM {t} b WHERE dl.id = 2 AND b.bid = 1",
            "UPDATE {t}, dl SET dl.v = 1",
            "UPDATE {t} JOIN dl ON true SET dl.v = 1",
            "UPDATE public.{t} SET a = 1",
            "UPDATE {t}.dl SET a = 1",
            "DELETE FROM dl USING {t}",
            "DELETE dl FROM dl JOIN {t}",
            "DELETE {t}, dl FROM dl JOIN {t}",
            "INSERT INTO dl SELECT * FROM {t}",
            "REPLACE dl SELECT * FROM {t}",
            "WITH gone AS (DELETE FROM dl RETURNING *) INSERT INTO {t} SELECT * FROM gone",
            "WITH one AS (SELECT 1) UPDATE \"dl\" SET v = 1 FROM {t}",
            "MERGE INTO dl USING {t} ON true WHEN MATCHED THEN DELETE",
            "SELECT a INTO dl FROM {t}",
            "TRUNCATE {t}, dl",
            "DROP TABLE {t}, dl",
            "CREATE TABLE dl AS SELECT * FROM {t}",
            "CREATE INDEX i ON dl ((SELECT 1 FROM {t}))",
            "COPY {t} TO '/tmp/x'",
            "CALL pay('{t}')",
            "ALTER VIEW v RENAME TO {t}",
            "LOCK TABLES {t} WRITE, dl WRITE",
        ] {
            assert!(found(sql).is_some(), "{sql}");
        }
    }
}
