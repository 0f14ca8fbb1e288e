//! The columns of a statement: those of its answer, and those to which its values belong.

use super::lexer::Token;
use super::statement::Statement;

/// Words between a column and its value.
const BETWEEN: &[&str] =
    &["all", "and", "any", "between", "case", "else", "in", "is", "like", "not", "or", "then", "when"];
/// Words after the columns of an answer.
const AFTER: &[&str] = &[
    "except", "fetch", "for", "from", "group", "having", "intersect", "into", "limit", "order", "union",
    "where",
];

/// The column of each value, beside the place of the value's token: of rows that are inserted the one in its place, else the name
/// before it; empty if there is none. `is_value`: of which tokens.
pub fn columns_of_values<'a>(
    tokens: &[Token<'a>],
    is_value: impl Fn(&Token<'a>) -> bool,
) -> Vec<(usize, &'a str)> {
    let is_insert = tokens.first().is_some_and(|first| first.is_one_of(&["insert", "replace"]));
    // Rows are lists of values, or columns that are arrays.
    let is_rows = |token: &Token<'_>| is_insert && token.is_one_of(&["unnest", "value", "values"]);
    let listed = tokens
        .iter()
        .take_while(|token| !is_rows(token) && !token.is("select"))
        .skip_while(|token| !token.is_mark('('));
    let listed: Vec<&str> = listed.filter_map(Token::name).collect();
    let (mut found, mut last, mut depth) = (Vec::new(), "", 0);
    // How deep the values of a row are, whether they are arrays, and the place in it.
    let (mut row, mut place) = (None, 0);
    for (at, token) in tokens.iter().enumerate() {
        if is_value(token) {
            let is_of_row = row.is_some_and(|(of, by_arrays)| depth == of || by_arrays && depth > of);
            found.push((at, listed.get(place).filter(|_| is_of_row).copied().unwrap_or(last)));
        } else if is_rows(token) {
            row = Some((depth + 1, token.is("unnest")));
        } else if token.is_mark('(') || token.is_mark('[') {
            depth += 1;
            place = if row.is_some_and(|(of, _)| depth == of) { 0 } else { place };
        } else if token.is_mark(')') || token.is_mark(']') {
            depth -= 1;
        } else if token.is_mark(',') && row.is_some_and(|(of, _)| depth == of) {
            place += 1;
        } else if let Some(name) = token.name().filter(|_| !token.is_one_of(BETWEEN)) {
            last = name;
            // What follows the rows is about other columns.
            row.take_if(|(of, _)| depth < *of);
        }
    }
    found
}

impl Statement<'_> {
    /// The places of the columns of its answer whose values depend on time, chance or the server; `None` if it is not known which
    /// these are, or if rows depend on that too.
    pub fn volatile_columns(&self) -> Option<Vec<usize>> {
        let tokens = self.tokens();
        let is_query = tokens.first()?.is("select");
        let (mut depth, mut begins, mut ends) = (0, is_query.then_some(1), tokens.len());
        for (at, token) in tokens.iter().enumerate().skip(1) {
            depth += i32::from(token.is_mark('(')) - i32::from(token.is_mark(')'));
            if depth != 0 || self.is_named(at) {
                continue;
            }
            if token.is("returning") && !is_query {
                begins = Some(at + 1);
            } else if token.is_mark(';') || is_query && token.is_one_of(AFTER) {
                ends = ends.min(at);
            }
        }
        let begins = begins.filter(|begins| *begins <= ends)?;
        let rest = tokens.get(ends..).unwrap_or_default();
        let is_joined = rest.iter().any(|token| token.is_one_of(&["except", "intersect", "union"]));
        let is_followed =
            rest.iter().skip_while(|token| !token.is_mark(';')).any(|token| !token.is_mark(';'));
        let stored = if is_query { Vec::new() } else { self.stored() };
        let outside =
            (0..tokens.len()).any(|at| is_query && !(begins..ends).contains(&at) && self.is_volatile(at));
        if is_joined || is_followed || outside || stored.iter().any(|name| name == "*") {
            return None;
        }
        let (mut columns, mut place, mut is_volatile, mut depth) = (Vec::new(), 0, false, 0);
        for at in begins..=ends {
            let token = tokens.get(at).filter(|_| at < ends);
            let opens =
                token.map_or(0, |token| i32::from(token.is_mark('(')) - i32::from(token.is_mark(')')));
            depth += opens;
            let is_end = token.is_none_or(|token| depth == 0 && token.is_mark(','));
            if !is_end {
                // Only PostgreSQL and MariaDB have `*` there, and nobody says how many columns that are.
                let is_all = depth == 0 && self.is_all(at);
                if is_all || token.is_some_and(|token| token.is("on") && at == begins + 1) {
                    return None;
                }
                is_volatile |= self.is_volatile(at);
                continue;
            }
            let name = self.before(at).and_then(Token::name);
            let is_stored =
                name.is_some_and(|name| stored.iter().any(|known| name.eq_ignore_ascii_case(known)));
            if std::mem::take(&mut is_volatile) || is_stored {
                columns.push(place);
            }
            place += 1;
        }
        Some(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::{Dialect, Kind};
    use super::*;

    #[test]
    fn column_of_a_value_is_the_one_to_which_it_is_compared_or_set() {
        for (text, expected) in [
            ("INSERT INTO t (a, b) VALUES (1, $1), (1, lower($2))", &["a", "b", "a", "lower"][..]),
            (
                "INSERT INTO t (a, b) SELECT * FROM UNNEST((ARRAY[1, 1])::int[], ARRAY[1, $1])",
                &["a", "a", "b", "b"],
            ),
            ("UPDATE t SET \"Aa\" = 1, b = b + 1 WHERE t.c_id IN (1, 1)", &["Aa", "b", "c_id", "c_id"]),
            ("SELECT a FROM t WHERE b > $1 LIMIT 1", &["b", "LIMIT"]),
            (
                "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1 WHERE c IN (1)",
                &["a", "b", "c"],
            ),
            ("INSERT INTO t (a, b) VALUES (DEFAULT, 1)", &["b"]),
            ("SELECT 1", &["SELECT"]),
        ] {
            let statement = Statement::read(text, Dialect::POSTGRES);
            let is_value = |token: &Token<'_>| matches!(token.kind, Kind::Number | Kind::Parameter);
            let found = columns_of_values(statement.tokens(), is_value);
            assert_eq!(found.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn columns_that_time_and_chance_make_are_known_where_they_are_listed() {
        for (text, expected) in [
            ("SELECT now(), count(*) FROM t", Some(&[0][..])),
            ("SELECT a, coalesce(b, now()) AS c, 'now()' FROM t WHERE d = 1;", Some(&[1])),
            ("SELECT DISTINCT a, (SELECT count(*) FROM t WHERE b > now()), random() FROM u", Some(&[1, 2])),
            ("SELECT nextval('s'), a * 2", Some(&[0])),
            ("SELECT a FROM t", Some(&[])),
            ("INSERT INTO t (a, at) VALUES (1, now()) RETURNING id, at, a", Some(&[1])),
            ("UPDATE t SET at = now() WHERE b = 1 RETURNING t.at, b, random()", Some(&[0, 2])),
            ("SELECT *, now() FROM t", None),
            ("SELECT t.*, now() FROM t", None),
            ("SELECT a FROM t ORDER BY random()", None),
            ("SELECT a FROM t WHERE at < now()", None),
            ("SELECT now() UNION SELECT 1", None),
            ("SELECT now(); SELECT 1", None),
            ("SELECT DISTINCT ON (a) a, now() FROM t", None),
            ("INSERT INTO t VALUES (now()) RETURNING a", None),
            ("INSERT INTO t (at) VALUES (now()) RETURNING *", None),
            ("WITH x AS (SELECT now()) SELECT * FROM x", None),
            ("", None),
        ] {
            let found = Statement::read(text, Dialect::POSTGRES).volatile_columns();
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
