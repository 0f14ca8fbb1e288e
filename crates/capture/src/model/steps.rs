//! The step of a statement: one that every engine has, or SQL.

use super::writer::{Field, NUMBER, Writer, list, quoted};
use crate::draws::Draw;
use crate::forms::{Piece, Value};
use crate::rows::{Expr, Plain, Verb};
use crate::variables::{self, Plan, Source, Use};
use kurabe_protocol::sql::{Dialect, Statement, first_word};
use std::collections::BTreeSet;
use std::fmt::Write as _;

impl Writer<'_> {
    pub(super) fn step(
        &mut self,
        statement: &variables::Statement,
        text: &str,
        plan: &Plan,
    ) -> std::result::Result<String, &'static str> {
        const WORDS: [&str; 8] =
            ["select", "insert", "update", "delete", "with", "values", "table", "replace"];
        let first = first_word(text, Dialect::ANY).unwrap_or_default().to_ascii_lowercase();
        if !self.is_translated() && !WORDS.contains(&first.as_str()) {
            return Err(match first.as_str() {
                "copy" | "load" => "bulk data",
                "declare" | "fetch" | "close" | "move" => "a cursor",
                "call" | "execute" | "do" => "a procedure",
                _ => "not a statement on rows",
            });
        }
        let values =
            statement.values.as_ref().ok_or("values of a type that is not read, or were not recorded")?;
        let simple = self.simple(statement);
        if let Some(step) = simple.as_ref().and_then(|(simple, values)| self.portable(simple, values, plan)) {
            return Ok(step);
        }
        if !self.made {
            let sql = self.sql(statement, values, plan)?;
            // What is so simple is the same on all SQL engines.
            let has_default =
                Statement::read(&sql, Dialect::ANY).tokens().iter().any(|one| one.is("default"));
            let is_common = simple.is_some() && !has_default;
            let engine = if is_common { String::new() } else { format!(".{}", self.family) };
            return Ok(format!("{{ sql{engine} = {} }}", quoted(&sql)));
        }
        let (simple, values) = simple.ok_or("not a statement on rows of one table by equal values")?;
        self.braces(&simple, &values, plan)
            .ok_or("its table has no key of a single number from 1 on, or a value is NULL")
    }

    /// A step that every engine has, if it is known well enough.
    fn portable(&mut self, simple: &Plain, values: &[Use], plan: &Plan) -> Option<String> {
        let made = self.made;
        let table = self.tables.get_mut(&simple.table)?;
        let is_good = |column: &String| {
            let field = table.fields.get(column).copied().unwrap_or_default();
            matches!(field, Field::Int | Field::Text(_)) || made && field != Field::Other
        };
        if made && !table.can_be_made(&simple.table) {
            return None;
        }
        let operand = |slot: usize| plan.operand(values.get(slot)?);
        let columns = simple.columns.iter().chain(simple.sets.iter().map(|(column, _)| column));
        let columns: Vec<&String> = columns.chain(simple.by.iter().map(|(column, _)| column)).collect();
        if !columns.iter().all(|column| is_good(column)) {
            return None;
        }
        let by: Vec<String> = simple.by.iter().map(|(column, _)| column.clone()).collect();
        let keyed = !by.is_empty() && by == table.key;
        let key =
            || Some(list(simple.by.iter().map(|(_, slot)| operand(*slot)).collect::<Option<Vec<_>>>()?));
        let adds = simple.sets.iter().any(|(_, expr)| matches!(expr, Expr::Changed(..)));
        let written = || -> Option<Vec<(String, String)>> {
            let one = |(column, expr): &(String, Expr)| match expr {
                // Not every engine can add to what is there: the value alone is written.
                Expr::Changed(_, slot) if made => Some((column.clone(), operand(*slot)?)),
                Expr::Slot(slot) => Some((column.clone(), operand(*slot)?)),
                Expr::Now => Some((column.clone(), quoted(":now"))),
                Expr::Changed(..) => None,
            };
            simple.sets.iter().map(one).collect()
        };
        let name = quoted(&simple.table);
        let wanted: Vec<String> = simple.columns.iter().map(|column| quoted(column)).collect();
        let fields = if wanted.is_empty() { String::new() } else { format!(", fields = {}", list(wanted)) };
        let step = match simple.verb {
            Verb::Select if keyed => {
                format!("{{ get = {name}, key = {}{fields}, rows = [0, 1] }}", key()?)
            }
            Verb::Select if made => {
                let by = simple.by.iter().map(|(column, slot)| Some((column.clone(), operand(*slot)?)));
                let by = by.collect::<Option<Vec<_>>>()?;
                format!("{{ find-equal = {name}, where = {}{fields} }}", inline(&by))
            }
            Verb::Put if table.fields.keys().all(|field| simple.sets.iter().any(|(own, _)| own == field)) => {
                format!("{{ put = {name}, values = {} }}", inline(&written()?))
            }
            // What writes some fields only leaves the others.
            Verb::Update | Verb::Put if keyed => {
                self.adds |= adds && made;
                let mut sets = written()?;
                sets.retain(|(column, _)| !table.key.contains(column));
                format!("{{ update = {name}, key = {}, set = {}, affected = [0, 1] }}", key()?, inline(&sets))
            }
            Verb::Delete if keyed => format!("{{ delete = {name}, key = {}, affected = [0, 1] }}", key()?),
            // Every field needs a value, and the key one that no other row has.
            Verb::Insert if !table.key.is_empty() => {
                let mut written = written()?;
                if made && table.is_numbered {
                    written.push((NUMBER.to_owned(), quoted(&format!(":{NUMBER}_{}", simple.table))));
                }
                let all: BTreeSet<&String> =
                    if made { table.fields.keys().collect() } else { table.used.iter().collect() };
                let own: BTreeSet<&String> = written.iter().map(|(column, _)| column).collect();
                if !table.key.iter().all(|column| own.contains(column))
                    || !all.is_subset(&own)
                    || all.is_empty()
                {
                    return None;
                }
                format!("{{ insert = {name}, values = {} }}", inline(&written))
            }
            _ => return None,
        };
        let columns: Vec<String> = columns.into_iter().cloned().collect();
        table.used.extend(columns);
        table.used.extend(table.key.clone());
        Some(step)
    }

    /// A statement on a collection, for all SQL engines.
    fn braces(&mut self, simple: &Plain, values: &[Use], plan: &Plan) -> Option<String> {
        let table = self.tables.get_mut(&simple.table).filter(|table| table.can_be_made(&simple.table))?;
        let operand = |slot: usize| match values.get(slot)? {
            Use::Variable(variable) => Some(format!(":{}", plan.variables.get(*variable)?.name)),
            Use::Text(Value::Int(number)) => Some(number.to_string()),
            Use::Text(Value::Text(text)) if !text.contains('\\') => {
                Some(format!("'{}'", text.replace('\'', "''")))
            }
            Use::Text(_) => None,
        };
        let value = |(column, expr): &(String, Expr)| match expr {
            Expr::Slot(slot) => operand(*slot),
            Expr::Now => Some("CURRENT_TIMESTAMP".to_owned()),
            Expr::Changed(sign, slot) => Some(format!("{column} {sign} {}", operand(*slot)?)),
        };
        let by: Option<Vec<String>> =
            simple.by.iter().map(|(column, slot)| Some(format!("{column} = {}", operand(*slot)?))).collect();
        let (by, name) = (by?.join(" AND "), &simple.table);
        let pairs: Option<Vec<String>> =
            simple.sets.iter().map(|set| Some(format!("{} = {}", set.0, value(set)?))).collect();
        let columns: Vec<&str> = simple.sets.iter().map(|(column, _)| column.as_str()).collect();
        let (sql, rest) = match simple.verb {
            Verb::Update => {
                (format!("UPDATE {{{name}}} SET {} WHERE {by}", pairs?.join(", ")), String::new())
            }
            Verb::Insert => {
                let values: Option<Vec<String>> = simple.sets.iter().map(value).collect();
                // A key that the server gave is not in the statement.
                table.key.iter().all(|column| columns.contains(&column.as_str())).then_some(())?;
                let sql = format!(
                    "INSERT INTO {{{name}}} ({}) VALUES ({})",
                    columns.join(", "),
                    values?.join(", ")
                );
                (sql, format!(", affected = 1, adds = {}", quoted(name)))
            }
            Verb::Delete => {
                (format!("DELETE FROM {{{name}}} WHERE {by}"), format!(", removes = {}", quoted(name)))
            }
            Verb::Select | Verb::Put => return None,
        };
        table.used.extend(table.fields.keys().cloned());
        Some(format!("{{ sql = {}{rest} }}", quoted(&sql)))
    }

    /// The statement's own text, with variables for values.
    fn sql(
        &self,
        statement: &variables::Statement,
        values: &[Use],
        plan: &Plan,
    ) -> std::result::Result<String, &'static str> {
        let form = self.analysis.forms.get(statement.form).ok_or("too many forms of statements")?;
        let mut sql = String::new();
        let mut uses = values.iter();
        for piece in &form.pieces {
            let Piece::Value(..) = piece else {
                if let Piece::Text(text) = piece {
                    is_spelt_safely(text)?;
                    sql.push_str(text);
                }
                continue;
            };
            match uses.next() {
                Some(Use::Variable(variable)) => {
                    let name = plan.variables.get(*variable).map_or("", |one| one.name.as_str());
                    let quote = if self.is_literal && plan.is_text(*variable)? { "'" } else { "" };
                    // A typed literal: no parameter may stand behind its type's name.
                    let trimmed = sql.trim_end().len();
                    let word =
                        sql[..trimmed].rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                    let typed = ["date", "time", "timestamp", "timestamptz"]
                        .contains(&word.to_ascii_lowercase().as_str())
                        || (word.eq_ignore_ascii_case("interval") && self.family == "postgres");
                    if typed {
                        let kind = if self.family == "mysql" && word.eq_ignore_ascii_case("timestamp") {
                            "DATETIME"
                        } else {
                            word
                        };
                        let cast = format!("CAST({quote}:{name}{quote} AS {kind})");
                        sql.truncate(trimmed - word.len());
                        sql.push_str(&cast);
                    } else {
                        let _ = write!(sql, "{quote}:{name}{quote}");
                    }
                }
                Some(Use::Text(value)) => self.literal(value, &mut sql)?,
                None => return Err("its values are not known"),
            }
        }
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let sql = sql.trim_end_matches([';', ' ']);
        if sql.contains(';') {
            return Err("several statements in one text");
        }
        Ok(sql.to_owned())
    }

    fn literal(&self, value: &Value, sql: &mut String) -> std::result::Result<(), &'static str> {
        match value {
            Value::Int(number) => {
                // Two signs begin a comment.
                let space = if sql.ends_with('-') && *number < 0 { " " } else { "" };
                let _ = write!(sql, "{space}{number}");
            }
            Value::Text(text)
                if text.contains(';') || text.contains(char::is_whitespace) && text.contains("  ") =>
            {
                return Err("a text in it cannot be written in a line");
            }
            Value::Text(text) => {
                let text = text.replace('\'', "''");
                let text = if self.family == "mysql" { text.replace('\\', "\\\\") } else { text };
                let _ = write!(sql, "'{text}'");
            }
            Value::Verbatim(text) => {
                let is_comment = ["--", "/*", "#"].iter().any(|sign| text.starts_with(sign));
                // Hints of optimizers are comments.
                sql.push_str(if is_comment && !text.starts_with("/*+") { " " } else { text });
            }
            Value::Null => sql.push_str("NULL"),
            Value::Unknown => return Err("its values are not known"),
        }
        Ok(())
    }
}

impl Plan {
    /// Whether a variable that is put into the text of a statement as it is needs quotes there.
    fn is_text(&self, variable: usize) -> std::result::Result<bool, &'static str> {
        let (draw, nulls) = match self.variables.get(variable).map(|variable| &variable.source) {
            Some(Source::Draw(draw, nulls)) => (draw, *nulls),
            _ => return Ok(false),
        };
        let values: Vec<&Value> = match draw {
            Draw::Constant(value) => vec![value],
            Draw::List(values) | Draw::Recorded(values, _) => values.iter().map(|(value, _)| value).collect(),
            Draw::Sequence(..) | Draw::Uniform(..) | Draw::Zipf { .. } => return Ok(false),
        };
        let texts = values.iter().filter(|value| matches!(value, Value::Text(_))).count();
        let ends = |value: &&Value| matches!(value, Value::Text(text) if text.contains(['\'', '\\']));
        match texts {
            0 => Ok(false),
            _ if nulls > 0.0 || texts < values.len() => Err("values of several types in one place of a text"),
            _ if values.iter().any(ends) => {
                Err("texts with quotes, which cannot be put into a text as they are")
            }
            _ => Ok(true),
        }
    }

    /// A value in a step that every engine has.
    fn operand(&self, value: &Use) -> Option<String> {
        match value {
            Use::Variable(variable) => Some(quoted(&format!(":{}", self.variables.get(*variable)?.name))),
            Use::Text(Value::Int(number)) => Some(number.to_string()),
            Use::Text(Value::Text(text)) => {
                let colon = if text.starts_with(':') { ":" } else { "" };
                Some(quoted(&format!("{colon}{text}")))
            }
            Use::Text(_) => None,
        }
    }
}

/// Columns with their values, as an inline table of TOML.
fn inline(values: &[(String, String)]) -> String {
    let each = values.iter().map(|(column, value)| format!("{} = {value}", quoted(column)));
    format!("{{ {} }}", each.collect::<Vec<_>>().join(", "))
}

/// Refuses what the language of workloads would read as a variable or a collection.
fn is_spelt_safely(text: &str) -> std::result::Result<(), &'static str> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == b'_');
        let doubled = at > 0 && bytes.get(at - 1) == Some(&b':');
        if *byte == b':' && next && !doubled {
            return Err("a name behind a colon");
        }
        if *byte == b'{' {
            return Err("a name in braces");
        }
    }
    Ok(())
}
