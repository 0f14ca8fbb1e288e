//! A grammar of the part of Oracle's SQL that the driver uses ("SQL Language Reference", 19c), for tests of its statements.

use super::tokens::{MARKS, Token, tokens};

/// Whether a text is one statement, or what is wrong.
pub(super) fn recognise(sql: &str) -> Result<(), String> {
    let tokens = tokens(sql)?;
    let mut reader = Reader { tokens: &tokens, at: 0 };
    reader.statement()?;
    reader.expect(reader.at == tokens.len(), "the end")
}

/// Words that are no names without quotes ("Oracle SQL Reserved Words").
const RESERVED: [&str; 27] = [
    "ALTER", "AND", "AS", "BY", "CREATE", "DELETE", "DROP", "FOR", "FROM", "IN", "INDEX", "INSERT", "INTO",
    "NOT", "NOWAIT", "NULL", "ON", "OR", "ORDER", "SELECT", "SET", "TABLE", "THEN", "UPDATE", "VALUES",
    "WHERE", "WITH",
];
/// Words after which no alias can be meant.
const CLAUSES: [&str; 4] = ["JOIN", "LEFT", "USING", "WHEN"];

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

type Done<T = ()> = Result<T, String>;

impl Reader<'_> {
    fn expect(&self, holds: bool, what: &str) -> Done {
        if holds { Ok(()) } else { Err(format!("expected {what} at {:?}", self.tokens.get(self.at..))) }
    }

    fn takes(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    /// Takes a mark, or words that are separated by spaces.
    fn has(&mut self, text: &str) -> bool {
        if let Some(mark) = MARKS.into_iter().find(|mark| *mark == text) {
            return self.takes(&Token::Mark(mark));
        }
        let begin = self.at;
        let all = text.split(' ').all(|word| self.takes(&Token::Word(word.to_owned())));
        if !all {
            self.at = begin;
        }
        all
    }

    fn needs(&mut self, text: &str) -> Done {
        let found = self.has(text);
        self.expect(found, text)
    }

    fn list<T>(&mut self, item: fn(&mut Self) -> Done<T>) -> Done<usize> {
        let mut count = 0;
        loop {
            item(self)?;
            count += 1;
            if !self.has(",") {
                return Ok(count);
            }
        }
    }

    fn in_parentheses<T>(&mut self, item: fn(&mut Self) -> Done<T>) -> Done<T> {
        self.needs("(")?;
        let found = item(self)?;
        self.needs(")")?;
        Ok(found)
    }

    fn names(&mut self) -> Done<usize> {
        self.in_parentheses(|this| this.list(Self::quoted))
    }

    fn quoted(&mut self) -> Done {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(name)) if !name.is_empty());
        self.at += usize::from(found);
        self.expect(found, "a quoted name")
    }

    fn is_name(&self) -> bool {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) => !name.is_empty(),
            Some(Token::Word(word)) => !RESERVED.contains(&word.as_str()),
            _ => false,
        }
    }

    fn name(&mut self) -> Done {
        self.expect(self.is_name(), "a name")?;
        self.at += 1;
        Ok(())
    }

    fn column(&mut self) -> Done {
        self.name()?;
        if self.has(".") { self.name() } else { Ok(()) }
    }

    fn alias(&mut self) -> Done {
        let clause =
            matches!(self.tokens.get(self.at), Some(Token::Word(word)) if CLAUSES.contains(&word.as_str()));
        if self.is_name() && !clause { self.name() } else { Ok(()) }
    }

    fn statement(&mut self) -> Done {
        if self.has("CREATE TABLE") {
            self.quoted()?;
            self.in_parentheses(|this| this.list(Self::definition))?;
            if self.has("LOB") {
                self.names()?;
                self.needs("STORE AS")?;
                let storage = |this: &mut Self| {
                    let known = this.has("ENABLE STORAGE IN ROW") || this.has("DISABLE STORAGE IN ROW");
                    this.expect(known, "ENABLE or DISABLE")
                };
                self.in_parentheses(storage)?;
            }
            return Ok(());
        }
        if self.has("CREATE INDEX") {
            self.quoted()?;
            self.needs("ON")?;
            self.quoted()?;
            return self.names().map(drop);
        }
        if self.has("TRUNCATE TABLE") {
            return self.quoted();
        }
        if self.has("DROP TABLE") {
            self.quoted()?;
            return self.needs("PURGE");
        }
        if self.has("ALTER SESSION SET") {
            while self.at < self.tokens.len() {
                self.name()?;
                self.needs("=")?;
                // NOWAIT is a value here.
                let word = matches!(self.tokens.get(self.at), Some(Token::Word(_)));
                self.expect(word, "a word")?;
                self.at += 1;
            }
            return self.expect(self.tokens.len() > 3, "a setting");
        }
        if self.has("SAVEPOINT") || self.has("ROLLBACK TO SAVEPOINT") {
            return self.name();
        }
        if self.has("INSERT INTO") {
            self.quoted()?;
            return self.values();
        }
        if self.has("UPDATE") {
            self.quoted()?;
            self.assignments()?;
            self.needs("WHERE")?;
            return self.condition();
        }
        if self.has("DELETE FROM") {
            self.quoted()?;
            self.needs("WHERE")?;
            return self.condition();
        }
        if self.has("MERGE INTO") {
            return self.merge();
        }
        self.query()
    }

    /// A column or the key of a table.
    fn definition(&mut self) -> Done {
        if self.has("PRIMARY KEY") {
            return self.names().map(drop);
        }
        self.quoted()?;
        let number = |this: &mut Self| this.needs_number();
        if self.has("VARCHAR2") {
            self.in_parentheses(|this| this.needs_number().and_then(|()| this.needs("CHAR")))?;
        } else if self.has("NUMBER") || self.has("RAW") || self.has("TIMESTAMP") {
            self.in_parentheses(number)?;
        } else {
            let known = self.has("BLOB") || self.has("CLOB");
            self.expect(known, "a type")?;
        }
        let _ = self.has("NOT NULL");
        Ok(())
    }

    fn needs_number(&mut self) -> Done {
        let found = self.takes(&Token::Number);
        self.expect(found, "a number")
    }

    /// As many values as columns, if these are named.
    fn values(&mut self) -> Done {
        let named = self.tokens.get(self.at) == Some(&Token::Mark("("));
        let columns = if named { Some(self.names()?) } else { None };
        self.needs("VALUES")?;
        let values = self.in_parentheses(|this| this.list(Self::operand))?;
        self.expect(columns.is_none_or(|columns| columns == values), "as many values as columns")
    }

    fn assignments(&mut self) -> Done {
        self.needs("SET")?;
        let assignment = |this: &mut Self| {
            this.column()?;
            this.needs("=")?;
            this.operand()
        };
        self.list(assignment).map(drop)
    }

    fn merge(&mut self) -> Done {
        self.quoted()?;
        self.alias()?;
        self.needs("USING")?;
        self.in_parentheses(Self::query)?;
        self.alias()?;
        self.needs("ON")?;
        self.in_parentheses(Self::condition)?;
        if self.has("WHEN MATCHED THEN UPDATE") {
            self.assignments()?;
        }
        self.needs("WHEN NOT MATCHED THEN INSERT")?;
        self.values()
    }

    fn query(&mut self) -> Done {
        self.needs("SELECT")?;
        let selected = |this: &mut Self| {
            this.operand()?;
            if this.has("AS") { this.name() } else { Ok(()) }
        };
        self.list(selected)?;
        self.needs("FROM")?;
        self.name()?;
        self.alias()?;
        while self.has("LEFT JOIN") || self.has("JOIN") {
            self.name()?;
            self.alias()?;
            self.needs("ON")?;
            self.condition()?;
        }
        if self.has("WHERE") {
            self.condition()?;
        }
        if self.has("ORDER BY") {
            self.list(Self::column)?;
        }
        let _ = self.has("FOR UPDATE NOWAIT");
        Ok(())
    }

    /// Comparisons, joined by AND.
    fn condition(&mut self) -> Done {
        loop {
            self.operand()?;
            if self.has("NOT IN") || self.has("IN") {
                self.in_parentheses(|this| this.list(Self::operand))?;
            } else {
                let compared = ["<>", ">=", "<=", "=", "<", ">"].into_iter().any(|mark| self.has(mark));
                self.expect(compared, "a comparison")?;
                self.operand()?;
            }
            if !self.has("AND") {
                return Ok(());
            }
        }
    }

    /// Values, joined by `||`.
    fn operand(&mut self) -> Done {
        loop {
            self.value()?;
            if !self.has("||") {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Done {
        if self.has("(") {
            self.query()?;
            return self.needs(")");
        }
        if self.has("-") {
            return self.needs_number();
        }
        if self.has("TIMESTAMP") {
            let found = self.takes(&Token::Text);
            return self.expect(found, "a text");
        }
        let simple = matches!(self.tokens.get(self.at), Some(Token::Text | Token::Number | Token::Bind(_)));
        if simple {
            self.at += 1;
            return Ok(());
        }
        self.column()?;
        if self.has("(") {
            if !self.has("*") {
                self.list(Self::operand)?;
            }
            self.needs(")")?;
        }
        Ok(())
    }
}

#[test]
fn what_is_not_a_statement_is_not_recognised() {
    for sql in [
        "SELECT \"a\" FROM",
        "SELECT \"a\", FROM \"t\"",
        "SELECT \"a\" \"b\" FROM \"t\"",
        "SELECT \"a\" FROM \"t\" WHERE",
        "SELECT \"a\" FROM \"t\" WHERE \"a\" = :1 AND",
        "SELECT \"a\" FROM \"t\" WHERE \"a\" :1",
        "SELECT \"a\" FROM \"t\" LIMIT 1",
        "SELECT \"a\" FROM \"t\"; SELECT \"a\" FROM \"t\"",
        "SELECT 'a FROM \"t\"",
        "INSERT INTO \"t\" (\"a\", \"b\") VALUES (:1)",
        "INSERT INTO \"t\" (\"a\") VALUES (:1), (:2)",
        "INSERT INTO \"t\" () VALUES ()",
        "UPDATE \"t\" SET WHERE \"a\" = :1",
        "UPDATE \"t\" SET \"a\" = :1",
        "DELETE FROM \"t\"",
        "CREATE TABLE \"t\" (\"a\" TEXT)",
        "CREATE TABLE \"t\" (\"a\" NUMBER(19) NOT NULL,)",
        "CREATE INDEX \"i\" ON \"t\"",
        "MERGE INTO \"t\" t USING (SELECT :1 AS \"a\" FROM DUAL) s ON (t.\"a\" = s.\"a\")",
        "ALTER SESSION SET NLS_COMP =",
        "COMMIT WORK NOW",
        "",
    ] {
        assert!(recognise(sql).is_err(), "{sql}");
    }
}
