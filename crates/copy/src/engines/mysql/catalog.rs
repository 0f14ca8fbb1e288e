//! The catalogue of MySQL and MariaDB: `information_schema`.

use super::super::queries::query;
use super::MYSQL;
use super::characters::{UNKNOWN, tell};
use crate::catalog::{
    Catalog, Collation, Column, DefaultValue, ForeignKey, Index, Leftover, Named, Native, Table, Text,
    read_default,
};
use crate::issue::IssueKind;
use crate::script::mask;
use crate::sql::{Row, Side, by_object, only_refused, text, texts};
use kurabe_core::Result;
use kurabe_protocol::sql::{Kind, Token, tokens};
use std::collections::BTreeSet;

/// Reads the schema of the session's database.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    tables(side, &mut catalog)?;
    columns(side, &mut catalog)?;
    let mut expressions = indexes(side, &mut catalog)?;
    let Catalog { tables, leftovers, .. } = &mut catalog;
    let is_table = |of: &String| tables.iter().any(|table| table.name == *of);
    leftovers.retain(|left| left.table.as_ref().is_none_or(is_table));
    expressions.extend(checks(side)?);
    rest(side, &mut catalog)?;
    // MariaDB's catalogue has keys and checks of those tables only that the user may change.
    let usual = if is_mariadb(side)? { "RESTRICT" } else { "NO ACTION" };
    let (mut checks, mut lossy) = (Vec::new(), Vec::new());
    for table in &mut catalog.tables {
        let name = side.quoted(&table.name);
        let rows = match side.rows(&format!("SHOW CREATE TABLE {name}")) {
            Ok(rows) => rows,
            // The catalogue has only those columns that the user may read.
            Err(error) => {
                table.hides = Some(only_refused(error)?.to_string());
                continue;
            }
        };
        let row = rows.into_iter().next().unwrap_or_default();
        let mut text: Vec<String> = lines(text(&row, 1)).iter().map(|(line, _)| (*line).to_owned()).collect();
        let of_table = expressions.iter().filter(|(of, ..)| *of == table.name);
        let of_table: Vec<_> = of_table.map(|(_, name, text)| (name.clone(), text.clone())).collect();
        for (kind, part) in tell(side, table, &mut text, &of_table)? {
            lossy.push((kind, table.name.clone(), part, UNKNOWN.to_owned()));
        }
        for (line, bare) in text.iter().map(|line| (line, bare(line))) {
            table.foreign.extend(foreign_key(line, &bare, usual));
            let check = bare.find(" CHECK (").map(|at| line[at + 1..].trim_end_matches(',').to_owned());
            checks.extend(check.map(|check| (table.name.clone(), quoted_name(line), check)));
        }
        let sql = text.join("\n");
        table.native = Some(native(&name, &sql));
        // MariaDB writes the bytes of a default as they are, which are no text then; and the database of a sequence.
        let is_lossy = |line: &str, bare: &str| line.contains('\0') || bare.contains(" DEFAULT nextval(");
        for (line, _) in lines(&sql).iter().filter(|(line, bare)| is_lossy(line, bare)) {
            let name = quoted_name(line.trim());
            for column in table.columns.iter_mut().filter(|column| column.name == name) {
                column.default = DefaultValue::Null;
            }
            let text = if line.contains('\0') { "bytes that are no text" } else { line.trim() };
            lossy.push((IssueKind::Default, table.name.clone(), name, text.to_owned()));
        }
    }
    if side.number("SELECT @@lower_case_table_names")? != 0 {
        catalog.name_parents();
    }
    leave_checks(side, &mut catalog, &checks);
    for at in 0..catalog.tables.len() {
        options(&mut catalog, at);
    }
    for (kind, table, name, what) in lossy {
        // Its text is not what the server executes.
        let is_it = |left: &&mut Leftover| left.table.as_ref() == Some(&table) && left.name == name;
        for left in catalog.leftovers.iter_mut().filter(is_it) {
            left.text = Text::Words(left.detail.clone());
        }
        catalog.leave(kind, Some(&table), &name, &what);
        // Then the rest of the table's text is not made either.
        catalog.table_mut(&table).into_iter().for_each(|table| table.native = None);
    }
    Ok(catalog)
}

/// The foreign key in a line of a table's text. `usual`: the action of which the server writes nothing.
fn foreign_key(line: &str, bare: &str, usual: &str) -> Option<ForeignKey> {
    let names = |text: &str| -> Vec<String> {
        let names = tokens(text, MYSQL.syntax).filter(|token| token.kind == Kind::Name);
        names.map(|token| quoted_name(token.text)).collect()
    };
    let rule = |of: &str| {
        let rule = bare.split_once(of).map_or(usual, |(_, rest)| rest.trim_end_matches(','));
        rule.split(" ON ").next().unwrap_or_default().to_owned()
    };
    let own = bare.find(" FOREIGN KEY (")?;
    let parent = own + bare[own..].find(") REFERENCES ")?;
    let open = parent + bare[parent..].find(" (")?;
    let close = open + bare[open..].find(')')?;
    let (columns, parent_columns) = (names(&line[own..parent]), names(&line[open..close]));
    // A parent of another database has its name before it.
    let parent = if let [parent] = &names(&line[parent..open])[..] { parent.clone() } else { String::new() };
    let [on_update, on_delete] = [" ON UPDATE ", " ON DELETE "].map(rule);
    // A session can turn the check off.
    Some(ForeignKey {
        name: quoted_name(line),
        columns,
        parent,
        parent_columns,
        on_update,
        on_delete,
        proven: false,
    })
}

/// A table by its own text, in which each line defines one thing: keys and foreign keys are made after the rows.
fn native(table: &str, sql: &str) -> Native {
    const OPTION: &str = " AUTO_INCREMENT=";
    let lines = lines(sql);
    let end = lines.iter().position(|(_, bare)| bare.starts_with(')')).unwrap_or(lines.len());
    let auto = lines[..end].iter().find(|(_, bare)| bare.contains(" AUTO_INCREMENT"));
    let auto = auto.map(|(line, _)| quoted_name(line));
    let has = |words: &str| lines.iter().any(|(_, bare)| bare.contains(words));
    let versioned = has("WITH SYSTEM VERSIONING") || has("PARTITION BY");
    let mut native = Native::default();
    let mut kept: Vec<&str> = Vec::new();
    for (line, bare) in lines.iter().take(end).skip(1) {
        let line = line.trim().trim_end_matches(',');
        let add = || Named { name: quoted_name(line), sql: format!("ALTER TABLE {table} ADD {line}") };
        // The column whose numbers the server gives must have its key.
        let first = bare.trim_start().find('(').map(|at| quoted_name(&line[at..]));
        let of_auto = auto.is_some() && first == auto;
        if bare.trim_start().starts_with("CONSTRAINT `") && bare.contains("` FOREIGN KEY (") {
            native.foreign.push(add());
        } else if is_key(bare) && !of_auto && !versioned {
            native.later.push(add());
        } else {
            native.has_key |= bare.trim_start().starts_with("PRIMARY KEY");
            kept.push(line);
        }
    }
    let head = lines.first().map_or("", |(line, _)| line);
    let tail: Vec<&str> = lines.iter().skip(end).map(|(line, _)| *line).collect();
    let mut tail = tail.join("\n");
    // A definition that does not change with each row.
    if let Some(at) = bare(&tail).find(OPTION) {
        let digits =
            tail[at + OPTION.len()..].split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let option = format!("{OPTION}{digits}");
        native.later.push(Named { name: String::new(), sql: format!("ALTER TABLE {table}{option}") });
        tail.replace_range(at..at + option.len(), "");
    }
    native.create = format!("{head}\n  {}\n{tail}", kept.join(",\n  "));
    native
}

pub(super) fn bare(sql: &str) -> String {
    mask(&MYSQL, sql).0
}

/// The lines of a statement, each with its [`bare`] text. A line does not end within quotes.
fn lines(sql: &str) -> Vec<(&str, String)> {
    let mut rest = sql;
    let mut lines = Vec::new();
    for bare in bare(sql).split('\n') {
        let (line, after) = rest.split_at(bare.len().min(rest.len()));
        lines.push((line, bare.to_owned()));
        rest = after.get(1..).unwrap_or_default();
    }
    lines
}

pub(super) fn is_key(bare: &str) -> bool {
    let keys = ["KEY `", "UNIQUE KEY `", "FULLTEXT KEY `", "SPATIAL KEY `"];
    keys.iter().any(|key| bare.trim_start().starts_with(key))
}

/// The first name in backquotes.
pub(super) fn quoted_name(line: &str) -> String {
    let quoted = line.split_once('`').map_or("", |(_, rest)| rest).replace("``", "\0");
    quoted.split('`').next().unwrap_or_default().replace('\0', "`")
}

/// Lists what the table's own text has and other engines do not get.
fn options(catalog: &mut Catalog, at: usize) {
    let Some(Native { create, later, .. }) = catalog.tables[at].native.clone() else { return };
    let name = catalog.tables[at].name.clone();
    let masked = bare(&create);
    let tail = masked.rfind("\n)").map_or(create.len(), |at| at + 2);
    let known = ["ENGINE=", "CHARSET=", "COLLATE=", "DEFAULT", "COMMENT="];
    let (mut rest, mut start) = (Vec::new(), tail);
    for word in masked[tail..].split(|c: char| c.is_ascii_whitespace()) {
        let end = start + word.len();
        if !word.is_empty() && !known.iter().any(|known| word.starts_with(known)) {
            rest.push(&create[start..end]);
        }
        start = end + 1;
    }
    if !rest.is_empty() {
        catalog.leave_to_others(IssueKind::TableOption, &name, &name, &rest.join(" "));
    }
    if masked[tail..].contains("WITH SYSTEM VERSIONING") {
        catalog.leave(IssueKind::TableOption, Some(&name), &name, "rows of the past are not copied");
    }
    let next = later
        .iter()
        .find_map(|made| made.sql.rsplit_once(" AUTO_INCREMENT=").filter(|_| made.name.is_empty()));
    if let Some((_, next)) = next {
        let columns = catalog.tables[at].columns.iter_mut().filter(|column| column.identity);
        columns.for_each(|column| column.next = next.parse().ok());
    }
    // The last lines are options of the table.
    for (line, masked) in lines(&create[..tail]).into_iter().skip(1) {
        part(catalog, &name, &quoted_name(line), line.trim(), masked.trim_start());
    }
    for key in later {
        for left in &mut catalog.leftovers {
            if left.table.as_ref() == Some(&name) && left.name == key.name {
                left.with_statement(&key.sql);
            }
        }
        let masked = bare(&key.sql);
        let added = masked.find(" ADD ").map_or("", |at| &masked[at + 5..]);
        part(catalog, &name, &key.name, &key.sql, added);
    }
}

/// Lists what one line of a table's text has and other engines do not get: whatever words it has besides those that are known.
/// `masked` is its text without what is in quotes. The server writes its words in capital letters, and types and functions in small
/// ones.
fn part(catalog: &mut Catalog, table: &str, name: &str, sql: &str, masked: &str) {
    let name = if masked.starts_with("PRIMARY KEY") { "PRIMARY" } else { name };
    let is_index = is_key(masked) || name == "PRIMARY";
    if masked.starts_with("CONSTRAINT `") && masked.contains("` CHECK (") {
        return;
    }
    // Of an index, its columns may be in an order.
    let mut depth = 0;
    let outside = |c: &char| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0 && *c != ')' || is_index
    };
    let masked: String = masked.chars().filter(outside).collect();
    let known: Vec<&str> = query("mysql", "known_words").split_whitespace().collect();
    let is_known = |word: &&str| {
        let is_capital = word.len() > 1
            && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            && word.bytes().any(|b| b != b'_');
        !is_capital || known.contains(word) && !(is_index && ["INVISIBLE", "HASH"].contains(word))
    };
    let mut words =
        masked.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    if let Some(unknown) = words.find(|word| !is_known(word)) {
        let kind = match is_index {
            true if unknown == "WITHOUT" => IssueKind::Constraint,
            true => IssueKind::IndexOption,
            false => IssueKind::TableOption,
        };
        let left = catalog.leave_to_others(kind, table, name, sql.trim_end_matches(','));
        // Other engines have no such indexes.
        left.internal = unknown == "HASH";
    }
}

/// Lists what the database has besides what other queries know: the rest of `information_schema`, privileges of routines, and
/// what is set for the database.
fn rest(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let rows = side.rows(query("mysql", "unread"))?;
    let read = query("mysql", "read_tables").split_whitespace();
    for rows in rows.chunk_by(|a, b| a[0] == b[0]) {
        let (kind, columns) = (text(&rows[0], 0), texts(rows, 1));
        if read.clone().any(|known| known.eq_ignore_ascii_case(kind)) {
            continue;
        }
        let is_schema = |column: &&String| column.ends_with("_SCHEMA") || *column == "SCHEMA_NAME";
        let Some(schema) = columns.iter().find(is_schema) else { continue };
        let stem = schema.trim_end_matches("_SCHEMA");
        let own = columns.iter().find(|column| column.strip_suffix("_NAME").is_some_and(|own| own == stem));
        let Some(name) = own.or_else(|| columns.iter().find(|column| !is_schema(column))) else { continue };
        let sql = format!(
            "SELECT DISTINCT {name} FROM information_schema.{kind} WHERE {schema} = DATABASE() ORDER BY 1"
        );
        for row in refusable(side, &sql)? {
            let name = text(&row, 0);
            let is_table = catalog.tables.iter().any(|table| table.name == name);
            let own = own.filter(|_| !is_table).map(|_| own_text(side, stem, name)).transpose()?;
            let own = own.filter(|own| !matches!(own, Text::Words(_)));
            let own = own.unwrap_or_else(|| Text::Words(format!("{name}: information_schema.{kind}")));
            let kind = if is_table { IssueKind::TableOption } else { IssueKind::View };
            catalog.leave_text(kind, is_table.then_some(name), name, own);
        }
    }
    for row in refusable(side, query("mysql", "routine_privileges"))? {
        let (given, roles) = side.engine.dialect.own_text(side, IssueKind::Grant, &row)?;
        catalog.leave_text(IssueKind::Grant, None, text(&row, 1), given).roles = roles;
    }
    let Some(name) = side.value("SELECT DATABASE()")? else { return Ok(()) };
    let name = side.quoted(&name);
    let made = side.rows(&format!("SHOW CREATE DATABASE {name}"))?;
    let made = made.first().map_or("", |row| text(row, 1));
    let usual = side.value("SELECT @@collation_server")?.unwrap_or_default();
    let (is_internal, is_encrypted) = (!made.contains(" COMMENT '"), made.contains("ENCRYPTION='Y'"));
    let is_usual = made.contains(&format!("COLLATE {usual} ")) && !is_encrypted && is_internal;
    if let Some((_, options)) = made.split_once(&name).filter(|_| !is_usual) {
        let sql = format!("ALTER DATABASE {}", options.trim());
        // A parameter of a routine has the collation of the database.
        catalog.leave_text(IssueKind::Comment, None, "the database", Text::First(sql)).internal = is_internal;
    }
    Ok(())
}

/// The rows of a query that the server may refuse, since the user may not read the table, or a version has none.
fn refusable(side: &mut Side, sql: &str) -> Result<Vec<Row>> {
    side.rows(sql).or_else(|error| only_refused(error).map(|_| Vec::new()))
}

/// The server's own text of a view, a trigger, a routine or an event, with the settings of the session that made it.
pub(super) fn own_text(side: &mut Side, what: &str, name: &str) -> Result<Text> {
    let of = side.quoted(name);
    let is_other = matches!(what, "VIEW" | "SEQUENCE" | "TABLE");
    let column = if is_other { 1 } else { 2 + usize::from(what == "EVENT") };
    let rows = side.rows(&format!("SHOW CREATE {what} {of}"));
    // A view may have lost what it reads.
    let lost = if column == 1 { side.rows(&format!("SHOW COLUMNS FROM {of}")).err() } else { None };
    let why = match rows.map(|rows| rows.into_iter().next().unwrap_or_default()) {
        Err(error) => only_refused(error)?.to_string(),
        Ok(row) => match (row.get(column).cloned().flatten(), lost) {
            (None, _) => "the user may not read its text".to_owned(),
            (Some(own), Some(error)) => format!("{}\n{own}", only_refused(error)?),
            (Some(own), None) => {
                let names = ["sql_mode", "time_zone"].into_iter().take(column - 1).zip(1..);
                let of_text = ["character_set_client", "collation_connection"].into_iter().zip(column + 1..);
                let settings =
                    names.chain(of_text).filter_map(|(name, at)| Some((name, row.get(at)?.clone()?)));
                // The file's own text is UTF-8, and words of SQL are other characters in one set.
                let is_read = |(name, value): &(&str, String)| {
                    *name != "character_set_client" || own.is_ascii() && value != "swe7"
                };
                let set: Vec<_> = settings.filter(is_read).collect();
                return Ok(if set.is_empty() { Text::Statement(own) } else { Text::Under(set, own) });
            }
        },
    };
    Ok(Text::Words(format!("{} {name}: {why}", what.to_lowercase())))
}

/// Takes the name of its own database out of a view's text, which the servers write before some names. Returns what it names of others, in quotes.
pub(super) fn placed(side: &mut Side, sql: &mut String) -> Result<BTreeSet<String>> {
    let known = texts(&side.rows(query("mysql", "databases"))?, 0);
    let (mut text, mut named, mut is_from) = (String::new(), BTreeSet::new(), false);
    let mut all = tokens(sql, MYSQL.syntax);
    while let Some(token) = all.next() {
        let mut rest = all.clone();
        let [dot, name, after] = [(); 3].map(|()| rest.next());
        let is = |token: Option<Token<'_>>, mark| token.is_some_and(|token| token.is_mark(mark));
        // Otherwise it is a table, which may have the name of a database, before its column.
        let is_place = is(dot, '.') && (is_from || is(after, '.') || is(after, '('));
        let database = known.iter().position(|known| is_place && known == token.text);
        is_from &= token.is_blank() || token.is_mark('(');
        is_from |= token.is_one_of(&["FROM", "JOIN", "STRAIGHT_JOIN"]);
        if database == Some(0) {
            all.next();
            continue;
        }
        named.extend(database.zip(name).map(|(_, name)| format!("{}.{}", token.text, name.text)));
        text.push_str(token.text);
    }
    *sql = text;
    Ok(named)
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    for row in side.rows(query("mysql", "tables"))? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        if text(&row, 4) == "0" {
            let engine = text(&row, 3);
            let what = format!("a table of the engine {engine}: its rows are elsewhere");
            // The text of a table of another server may have a password.
            let is_union = engine.eq_ignore_ascii_case("MRG_MyISAM");
            let own = if is_union { own_text(side, "TABLE", name)? } else { Text::Words(what.clone()) };
            catalog.leave(IssueKind::View, None, name, &what).text = own;
        } else if kind == "BASE TABLE" || kind == "SYSTEM VERSIONED" {
            let collation = text(&row, 2).to_owned();
            catalog.tables.push(Table { name: name.to_owned(), collation, ..Table::default() });
            if text(&row, 3) != "InnoDB" {
                let engine = format!("ENGINE={}", text(&row, 3));
                catalog.leave_to_others(IssueKind::TableOption, name, name, &engine).internal = true;
            }
        } else if kind != "VIEW" {
            let is_known = kind == "SEQUENCE";
            let own = if is_known { own_text(side, kind, name)? } else { Text::Words(kind.to_owned()) };
            catalog.leave_text(IssueKind::View, None, name, own);
            let quoted = side.quoted(name);
            let next = format!("SELECT CONCAT('DO SETVAL(', next_not_cached_value, ', 0)') FROM {quoted}");
            for row in if is_known { refusable(side, &next)? } else { Vec::new() } {
                let sql = text(&row, 0).replace('(', &format!("({quoted}, "));
                catalog.leave_text(IssueKind::View, None, name, Text::Statement(sql));
            }
        }
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let mariadb = is_mariadb(side)?;
    for row in side.rows(query("mysql", "columns"))? {
        // How the server stores it is no part of the type.
        let declared = text(&row, 2).split(" /*").next().unwrap_or_default();
        let extra = text(&row, 5).to_ascii_lowercase();
        let is_expression = mariadb || extra.contains("default_generated");
        let default = match row.get(4).and_then(Option::as_deref) {
            None => DefaultValue::Null,
            Some(default) if is_expression => read_default(default, true),
            // A BIT's default is written as b'1'.
            Some(default) if default.starts_with("b'") => DefaultValue::Expression(default.to_owned()),
            Some(default) => DefaultValue::Literal(default.to_owned()),
        };
        let name = text(&row, 1);
        let collation = match text(&row, 6) {
            "" | "binary" => Collation::Bytes,
            name if name.ends_with("_bin") => Collation::Binary(name.to_owned()),
            name => Collation::Named(name.to_owned()),
        };
        if extra.contains("on update") {
            let column = format!("{name}, {extra}");
            catalog.leave_to_others(IssueKind::Trigger, text(&row, 0), name, &column);
        }
        if ["enum", "set"].iter().any(|of| declared.starts_with(of)) && declared.contains('?') {
            catalog.leave(IssueKind::Enum, Some(text(&row, 0)), name, &format!("{declared}: {UNKNOWN}"));
        }
        if extra.contains("invisible") {
            catalog.leave_to_others(IssueKind::TableOption, text(&row, 0), name, "INVISIBLE");
        }
        let column = Column {
            name: name.to_owned(),
            declared: declared.to_owned(),
            nullable: text(&row, 3) == "YES",
            default,
            identity: extra.contains("auto_increment"),
            collation,
            generated: Some(text(&row, 7))
                .filter(|how| !matches!(*how, "" | "ROW START" | "ROW END"))
                .map(str::to_owned),
            next: None,
            has_binary: false,
        };
        if let Some(table) = catalog.table_mut(text(&row, 0)) {
            table.columns.push(column);
        }
    }
    Ok(())
}

pub(super) fn is_mariadb(side: &mut Side) -> Result<bool> {
    Ok(side.value("SELECT VERSION()")?.unwrap_or_default().to_ascii_lowercase().contains("mariadb"))
}

/// Reads the indexes, and returns the expressions of some, with their tables and names.
fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<Vec<Expression>> {
    // MariaDB has no indexes on expressions, and no such column.
    let expression =
        if side.number(query("mysql", "indexes"))? > 0 { "expression" } else { "CAST(NULL AS CHAR)" };
    let rows = side.rows(&query("mysql", "index_columns").replace("{expression}", expression))?;
    let of = |row: &Row| Some((text(row, 0).to_owned(), text(row, 1).to_owned(), row[6].clone()?));
    let expressions = rows.iter().filter_map(of);
    for rows in by_object(&rows) {
        let [table, name] = [0, 1].map(|at| text(&rows[0], at));
        let what = |row: &Row| match (text(row, 5), &row[6], &row[4]) {
            ("BTREE" | "HASH", None, None) => None,
            ("BTREE" | "HASH", Some(text), _) => Some((IssueKind::ExpressionIndex, text.clone())),
            ("BTREE" | "HASH", None, Some(n)) => {
                Some((IssueKind::PrefixIndex, format!("the first {n} of {}", text(row, 3))))
            }
            (kind, ..) => Some((IssueKind::IndexType, kind.to_owned())),
        };
        if let Some((kind, detail)) = rows.iter().find_map(what) {
            catalog.leave_to_others(kind, table, name, &detail);
        } else {
            let unique = text(&rows[0], 2) == "0";
            let index = Index { name: name.to_owned(), unique, columns: texts(rows, 3) };
            catalog.add_index(table, index, name == "PRIMARY");
        }
    }
    Ok(expressions.collect())
}

/// An expression of a check or an index: the table, its name and its text.
type Expression = (String, String, String);

/// The check constraints of MySQL as its catalogue has them, whose characters are others than those in the text of their table.
fn checks(side: &mut Side) -> Result<Vec<Expression>> {
    // Versions without check constraints refuse it.
    let rows = if is_mariadb(side)? { Vec::new() } else { refusable(side, query("mysql", "checks"))? };
    let of = |row: &Row| (text(row, 0).to_owned(), text(row, 1).to_owned(), text(row, 2).to_owned());
    Ok(rows.iter().map(of).collect())
}

/// Lists the check constraints. MariaDB's JSON is a long text with the constraint that it is JSON.
fn leave_checks(side: &Side, catalog: &mut Catalog, checks: &[Expression]) {
    for (table, name, check) in checks {
        let json = check.strip_prefix("CHECK (json_valid(`").and_then(|rest| rest.strip_suffix("`))"));
        let column = json.and_then(|column| {
            catalog.table_mut(table)?.columns.iter_mut().find(|known| known.name == column)
        });
        if let Some(column) = column {
            // Unlike MySQL's.
            "json(text)".clone_into(&mut column.declared);
            column.collation = Collation::Bytes;
        } else {
            let left = catalog.leave_to_others(IssueKind::Check, table, name, check);
            let [table, name] = [table, name].map(|name| side.quoted(name));
            left.with_statement(format!("ALTER TABLE {table} ADD CONSTRAINT {name} {check}"));
        }
    }
}
