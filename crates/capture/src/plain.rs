//! Reads what a statement of SQL does to the rows of one table, if it does nothing else.

use crate::forms::Form;
use crate::rows::{Expr, Plain, Verb};
use crate::variables::plain;
use kurabe_protocol::sql::Token;
use kurabe_wire::statement::GAP;

/// What an INSERT gives a column.
enum Given {
    Value(Expr),
    /// What the table gives.
    Default,
}

/// Reads a form; `None` if it is anything else. What was translated into a statement is read already.
pub(crate) fn read(form: &Form) -> Option<Plain> {
    if form.translated.is_some() {
        return form.translated.clone();
    }
    let template = form.template();
    let mut rest = Rest { tokens: &form.tokens(&template), slots: 0 };
    let found = match rest.word()?.to_ascii_lowercase().as_str() {
        "select" => {
            let columns = rest.list(Rest::column)?;
            rest.keyword("from")?;
            let table = rest.table()?;
            let by = rest.by()?;
            if rest.keyword("limit").is_some() {
                rest.slot()?;
            }
            Plain { verb: Verb::Select, table, columns, sets: Vec::new(), by }
        }
        "insert" => {
            rest.keyword("into")?;
            let table = rest.word().filter(|word| !word.contains('.')).map(|word| plain(&word))?;
            let columns = rest.enclosed(|rest| rest.word().map(|word| plain(&word)))?;
            rest.keyword("values")?;
            let values = rest.enclosed(Rest::value)?;
            if columns.len() != values.len() {
                return None;
            }
            let given = |(column, value)| match value {
                Given::Value(value) => Some((column, value)),
                Given::Default => None,
            };
            let sets: Vec<(String, Expr)> = columns.into_iter().zip(values).filter_map(given).collect();
            Plain { verb: Verb::Insert, table, columns: Vec::new(), sets, by: Vec::new() }
        }
        "update" => {
            let table = rest.table()?;
            rest.keyword("set")?;
            let sets = rest.list(Rest::set)?;
            let by = rest.by()?;
            Plain { verb: Verb::Update, table, columns: Vec::new(), sets, by }
        }
        "delete" => {
            rest.keyword("from")?;
            let table = rest.table()?;
            let by = rest.by()?;
            Plain { verb: Verb::Delete, table, columns: Vec::new(), sets: Vec::new(), by }
        }
        _ => return None,
    };
    let _ = rest.sign(';');
    rest.tokens.is_empty().then_some(found)
}

/// What is left of a statement, and how many values were before it. Methods give `None`, and take nothing, if it is something else.
struct Rest<'a> {
    tokens: &'a [Token<'a>],
    slots: usize,
}

impl Rest<'_> {
    fn take(&mut self, is_it: impl Fn(&Token<'_>) -> bool) -> Option<()> {
        let (first, rest) = self.tokens.split_first()?;
        is_it(first).then(|| self.tokens = rest)
    }

    /// A name, with those before it and their dots.
    fn word(&mut self) -> Option<String> {
        let mut word = self.tokens.first().filter(|token| token.name().is_some())?.text.to_owned();
        self.tokens = &self.tokens[1..];
        while let [dot, name, rest @ ..] = self.tokens
            && dot.is_mark('.')
            && name.name().is_some()
        {
            word = format!("{word}.{}", name.text);
            self.tokens = rest;
        }
        Some(word)
    }

    fn keyword(&mut self, wanted: &str) -> Option<()> {
        self.take(|token| token.is(wanted))
    }

    fn sign(&mut self, wanted: char) -> Option<()> {
        self.take(|token| token.is_mark(wanted))
    }

    fn slot(&mut self) -> Option<usize> {
        self.sign(GAP)?;
        self.slots += 1;
        Some(self.slots - 1)
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = vec![one(self)?];
        while self.sign(',').is_some() {
            found.push(one(self)?);
        }
        Some(found)
    }

    fn enclosed<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.sign('(')?;
        let found = self.list(one)?;
        self.sign(')')?;
        Some(found)
    }

    /// A word that names something once more, and is none of those that go on with the statement.
    fn alias(&mut self) {
        const GO_ON: [&str; 14] = [
            "cross", "for", "from", "full", "group", "inner", "join", "left", "limit", "natural", "order",
            "right", "set", "where",
        ];
        let is_alias = self.keyword("as").is_some()
            || self.tokens.first().is_some_and(|token| token.name().is_some() && !token.is_one_of(&GO_ON));
        if is_alias {
            let _ = self.word();
        }
    }

    fn column(&mut self) -> Option<String> {
        let column = plain(&self.word()?);
        self.alias();
        Some(column)
    }

    /// A table without a schema.
    fn table(&mut self) -> Option<String> {
        let table = self.word().filter(|word| !word.contains('.')).map(|word| plain(&word))?;
        self.alias();
        Some(table)
    }

    /// What is inserted into a column.
    fn value(&mut self) -> Option<Given> {
        if self.keyword("default").is_some() {
            return Some(Given::Default);
        }
        self.slot().map(Expr::Slot).or_else(|| self.now()).map(Given::Value)
    }

    fn now(&mut self) -> Option<Expr> {
        let word = self.word()?.to_ascii_lowercase();
        if word == "now" {
            self.sign('(')?;
            self.sign(')')?;
        } else if word != "current_timestamp" {
            return None;
        }
        Some(Expr::Now)
    }

    fn set(&mut self) -> Option<(String, Expr)> {
        let column = plain(&self.word()?);
        self.sign('=')?;
        if let Some(slot) = self.slot() {
            return Some((column, Expr::Slot(slot)));
        }
        let before = plain(&self.word()?);
        let sign = self.sign('+').map(|()| '+').or_else(|| self.sign('-').map(|()| '-'))?;
        let slot = self.slot()?;
        (before == column).then_some((column, Expr::Changed(sign, slot)))
    }

    fn by(&mut self) -> Option<Vec<(String, usize)>> {
        self.keyword("where")?;
        let mut found = Vec::new();
        loop {
            let column = plain(&self.word()?);
            self.sign('=')?;
            found.push((column, self.slot()?));
            if self.keyword("and").is_none() {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;
    use kurabe_wire::statement::split;

    #[test]
    fn statements_by_key_are_read_and_others_are_not() {
        let of = |text: &str| read(&Form::of(&split(text, Dialect::POSTGRES).template, Dialect::POSTGRES));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = of("SELECT \"i\".\"id\", total FROM item WHERE \"item\".\"id\" = $1 LIMIT 21;").unwrap();
        assert_eq!((found.columns, found.by), (names(&["id", "total"]), vec![("id".to_owned(), 0)]));
        let found = of("UPDATE a SET b = b + -3, c = $1 WHERE id = 7 AND d = 'x'").unwrap();
        assert_eq!(found.sets, [("b".to_owned(), Expr::Changed('+', 0)), ("c".to_owned(), Expr::Slot(1))]);
        assert_eq!(found.by.len(), 2);
        let found = of("INSERT INTO h (a, b, t) VALUES (1, 'x', CURRENT_TIMESTAMP)").unwrap();
        assert_eq!((found.verb, found.sets.len()), (Verb::Insert, 3));
        assert_eq!(of("DELETE FROM a WHERE id=$1").unwrap().verb, Verb::Delete);
        // As Hibernate names tables and columns.
        let found =
            of("select c1_0.id, c1_0.name as name2_0_, c1_0.at at3_ from customer c1_0 where c1_0.id=$1")
                .unwrap();
        assert_eq!((found.table.as_str(), found.columns), ("customer", names(&["id", "name", "at"])));
        let found = of("INSERT INTO h (id, a) VALUES (DEFAULT, 1)").unwrap();
        assert_eq!(found.sets, [("a".to_owned(), Expr::Slot(0))]);
        for other in [
            "SELECT * FROM a WHERE id = 1",
            "SELECT a FROM b WHERE id = 1 FOR UPDATE",
            "SELECT a FROM b x JOIN c y ON x.id = y.id WHERE id = 1",
            "SELECT a FROM b JOIN c USING (d) WHERE id = 1",
            "SELECT a FROM s.b WHERE id = 1",
            "UPDATE a SET b = c + 1 WHERE id = 2",
            "UPDATE a SET b = 1 WHERE id > 2",
            "INSERT INTO a (b) VALUES (1), (2)",
            "INSERT INTO a (b) VALUES (1) RETURNING id",
            "DELETE FROM a",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
