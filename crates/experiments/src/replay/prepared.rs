//! Requests as a client with prepared statements sends them: their literals are parameters.

use super::commands::Sent;
use super::traffic::Traffic;
use kurabe_protocol::call::Parameter;
use kurabe_protocol::mysql::message::kind;
use kurabe_protocol::sql::{Dialect, Statement, tokens};
use kurabe_wire::statement::GAP;
use kurabe_wire::view::Step;
use std::fmt::Write as _;

/// Statements that every server prepares.
const PREPARED: &[&str] = &["select", "insert", "update", "delete", "replace", "with", "values"];
/// Words behind which a number is no place of a column any more.
const ENDS: [&str; 9] =
    ["limit", "offset", "fetch", "for", "having", "where", "union", "window", "returning"];
/// Types of PostgreSQL: `int4`, `int8` and `numeric`, which a number without a type has there.
const NUMBERS: [u32; 3] = [23, 20, 1700];
/// MySQL's type of texts.
const TEXT: u32 = 253;

/// A request as an execution of a text with parameters; `None` if it is one already, or cannot be one.
pub(super) fn execution(traffic: &Traffic, sent: &Sent) -> Option<(String, Sent)> {
    let request = &sent.request;
    let dialect = traffic.language.sql()?;
    let template = &traffic.templates[sent.template].text;
    let statement = Statement::read(template, dialect);
    let are_several = statement.tokens().iter().rev().skip(1).any(|token| token.is_mark(';'));
    if !statement.begins(PREPARED)
        || are_several
        || request.limit > 0
        || request.goes_on
        || !sent.data.is_empty()
    {
        return None;
    }
    let mut sent = sent.clone();
    let text = match request.step {
        Step::Text => {
            let (text, parameters) = parametrised(template, &request.literals, dialect)?;
            sent.types = parameters.iter().map(|one| one.kind).collect();
            sent.request.parameters = parameters;
            text
        }
        Step::Bound if dialect.is_postgres() => traffic.text(&sent),
        _ => return None,
    };
    sent.request.step = Step::Execute;
    Some((text, sent))
}

/// How many requests could be executions of prepared statements, and are none.
pub(super) fn left_out(traffic: &Traffic) -> u64 {
    let sent = traffic.units.iter().filter_map(|unit| <&[Sent; 1]>::try_from(&unit.requests[..]).ok());
    sent.filter(|[sent]| execution(traffic, sent).is_some()).count() as u64
}

/// A template with parameters in its gaps, and their values.
fn parametrised(template: &str, literals: &[String], dialect: Dialect) -> Option<(String, Vec<Parameter>)> {
    let (mut text, mut parameters, mut literals) = (String::new(), Vec::new(), literals.iter());
    let mut names_columns = false;
    for token in tokens(template, dialect) {
        if !token.is_mark(GAP) {
            names_columns = token.is("by")
                || names_columns && !token.is_one_of(&ENDS) && !token.is_mark(')') && !token.is_mark(';');
            text.push_str(token.text);
            continue;
        }
        let literal = literals.next()?;
        if literal.starts_with("--") || literal.starts_with("/*") || literal.starts_with('#') {
            text.push_str(literal);
            continue;
        }
        // `ORDER BY 2` is no value.
        parameters.push(parameter(literal, dialect).filter(|_| !names_columns)?);
        if dialect.is_mysql() {
            text.push('?');
        } else {
            let _ = write!(text, "${}", parameters.len());
        }
    }
    Some((text, parameters))
}

/// A literal as a value; `None` of one that is read by other rules than those of texts and numbers.
fn parameter(literal: &str, dialect: Dialect) -> Option<Parameter> {
    if let Some(text) = literal.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        let kind = if dialect.is_mysql() { TEXT } else { 0 };
        return (!text.contains('\\'))
            .then(|| Parameter::new(kind, false, text.replace("''", "'").into_bytes()));
    }
    if !literal.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let number = literal.parse::<i64>();
    if dialect.is_mysql() {
        return Some(Parameter::new(kind::LONGLONG.into(), true, number.ok()?.to_le_bytes().to_vec()));
    }
    let [int4, int8, numeric] = NUMBERS;
    let kind = match number {
        Ok(number) if i32::try_from(number).is_ok() => int4,
        Ok(_) => int8,
        Err(_) => numeric,
    };
    Some(Parameter::new(kind, false, literal.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_parameters_and_places_of_columns_do_not() {
        let literals = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        for (template, given, dialect, wanted) in [
            (
                "SELECT \0 FROM t WHERE a = \0",
                &["7", "'it''s'"][..],
                Dialect::POSTGRES,
                Some("SELECT $1 FROM t WHERE a = $2"),
            ),
            (
                "SELECT a \0FROM t WHERE a = \0",
                &["/* x */", "7"],
                Dialect::MYSQL,
                Some("SELECT a /* x */FROM t WHERE a = ?"),
            ),
            ("SELECT a FROM t ORDER BY b, \0", &["2"], Dialect::POSTGRES, None),
            (
                "SELECT a FROM t ORDER BY b LIMIT \0",
                &["2"],
                Dialect::POSTGRES,
                Some("SELECT a FROM t ORDER BY b LIMIT $1"),
            ),
            ("SELECT a FROM t WHERE a = \0", &["'a\\b'"], Dialect::POSTGRES, None),
            ("SELECT a FROM t WHERE a = \0", &["x'00'"], Dialect::MYSQL, None),
        ] {
            let found = parametrised(template, &literals(given), dialect);
            assert_eq!(found.as_ref().map(|(text, _)| text.as_str()), wanted, "{template}");
        }
        let (_, values) =
            parametrised("\0, \0, \0", &literals(&["7", "3000000000", "1.5"]), Dialect::POSTGRES).unwrap();
        assert_eq!(values.iter().map(|one| one.kind).collect::<Vec<_>>(), NUMBERS);
    }
}
