//! Statements that name the rows of one table by equal values: what every engine can do.

use crate::forms::Form;
use crate::variables::plain;
use kurabe_protocol::sql::Token;
use kurabe_wire::statement::GAP;

/// The field of a row that is its key, and the one that has the value of a key, where stores of keys and documents are shown as tables.
pub(crate) const KEY: &str = "id";
pub(crate) const VALUE: &str = "value";

/// A statement on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) verb: Verb,
    pub(crate) table: String,
    /// The columns that are read; none: all but the key.
    pub(crate) columns: Vec<String>,
    pub(crate) sets: Vec<(String, Expr)>,
    /// The columns that are compared, with their slots.
    pub(crate) by: Vec<(String, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Select,
    Insert,
    /// Inserts, or replaces what is there.
    Put,
    Update,
    Delete,
}

/// A value that is written into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Slot(usize),
    Now,
    /// The column itself plus or minus a value.
    Changed(char, usize),
}

/// A statement on the rows of a table that have these values. A field is written, with a value that may be added.
pub(crate) fn translated<T>(
    verb: Verb,
    columns: Vec<String>,
    table: String,
    by: Vec<(String, T)>,
    fields: Vec<(String, T, bool)>,
) -> Result<(Plain, Vec<T>), &'static str> {
    if verb == Verb::Update && fields.is_empty() {
        return Err("a change of no field");
    }
    // The fields of an update are before those by which it finds its row.
    let is_update = verb == Verb::Update;
    let (first, first_by) = if is_update { (0, fields.len()) } else { (by.len(), 0) };
    let column = |(at, (column, _)): (usize, &(String, T))| (column.clone(), first_by + at);
    let keys: Vec<(String, usize)> = by.iter().enumerate().map(column).collect();
    let set = |(at, (column, _, is_added)): (usize, &(String, T, bool))| {
        let slot = first + at;
        (column.clone(), if *is_added { Expr::Changed('+', slot) } else { Expr::Slot(slot) })
    };
    // An inserted document has its key as a field.
    let is_inserted = matches!(verb, Verb::Insert | Verb::Put);
    let given = keys.iter().filter(|_| is_inserted).map(|(column, slot)| (column.clone(), Expr::Slot(*slot)));
    let sets = given.chain(fields.iter().enumerate().map(set)).collect();
    let is_compared = |(column, _): &(String, usize)| !is_inserted || verb == Verb::Put && column == KEY;
    let compared = keys.iter().filter(|key| is_compared(key)).cloned().collect();
    let by = by.into_iter().map(|(_, value)| value);
    let fields = fields.into_iter().map(|(_, value, _)| value);
    let values = if is_update { fields.chain(by).collect() } else { by.chain(fields).collect() };
    Ok((Plain { verb, table, columns, sets, by: compared }, values))
}

impl Plain {
    /// The column of each value, in the order of slots. A slot without a column, as that of a limit, is the last one.
    pub(crate) fn columns_of_values(&self) -> Vec<String> {
        let sets = self.sets.iter().filter_map(|(column, expr)| match expr {
            Expr::Slot(slot) | Expr::Changed(_, slot) => Some((*slot, column)),
            Expr::Now => None,
        });
        let by = self.by.iter().map(|(column, slot)| (*slot, column));
        let mut all: Vec<(usize, &String)> = sets.chain(by).collect();
        all.sort_unstable();
        // What is put has its key in both.
        all.dedup_by_key(|(slot, _)| *slot);
        all.into_iter().map(|(_, column)| column.clone()).collect()
    }

    /// The word for what is done.
    pub(crate) fn word(&self) -> &'static str {
        match self.verb {
            Verb::Select => "get",
            Verb::Insert => "insert",
            Verb::Put => "put",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }

    /// For people, of what is translated into a statement: `GET value FROM session WHERE id = ?`.
    pub(crate) fn text(&self) -> String {
        let Self { verb, table, columns, sets, by } = self;
        let compared: Vec<String> = by.iter().map(|(column, _)| format!("{column} = ?")).collect();
        let compared = compared.join(" AND ");
        let wanted = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
        let written: Vec<&str> = sets.iter().map(|(column, _)| column.as_str()).collect();
        let written = written.join(", ");
        let set = |(column, expr): &(String, Expr)| match expr {
            Expr::Changed(sign, _) => format!("{column} = {column} {sign} ?"),
            _ => format!("{column} = ?"),
        };
        let word = self.word().to_uppercase();
        match verb {
            Verb::Select => format!("{word} {wanted} FROM {table} WHERE {compared}"),
            Verb::Insert | Verb::Put => format!("{word} INTO {table} ({written}) VALUES (?)"),
            Verb::Update => {
                let sets: Vec<String> = sets.iter().map(set).collect();
                format!("{word} {table} SET {} WHERE {compared}", sets.join(", "))
            }
            Verb::Delete => format!("{word} FROM {table} WHERE {compared}"),
        }
    }
}

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
