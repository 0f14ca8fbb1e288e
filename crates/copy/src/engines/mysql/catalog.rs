//! The catalogue of MySQL and MariaDB: `information_schema`.

use super::MYSQL;
use crate::catalog::{
    Catalog, Collation, Column, DefaultValue, ForeignKey, Leftover, Named, Native, Table, Text, read_default,
};
use crate::issue::IssueKind;
use crate::script::{mask, quoted};
use crate::sql::{Side, only_refused, text};
use kurabe_core::Result;

/// Reads the schema of the session's database.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    tables(side, &mut catalog)?;
    columns(side, &mut catalog)?;
    indexes(side, &mut catalog)?;
    foreign_keys(side, &mut catalog)?;
    if side.number("SELECT @@lower_case_table_names")? != 0 {
        catalog.name_parents();
    }
    checks(side, &mut catalog)?;
    let mut lossy = Vec::new();
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
        table.native = Some(native(&name, text(&row, 1)));
        // MariaDB writes the bytes of a default as they are, which are no text then; and the database of a sequence.
        let is_lossy =
            |line: &str, bare: &str| line.contains('\u{fffd}') || bare.contains(" DEFAULT nextval(");
        for (line, _) in lines(text(&row, 1)).iter().filter(|(line, bare)| is_lossy(line, bare)) {
            let name = quoted_name(line.trim());
            for column in table.columns.iter_mut().filter(|column| column.name == name) {
                column.default = DefaultValue::Null;
            }
            table.native = None;
            lossy.push((table.name.clone(), name, line.trim().to_owned()));
        }
    }
    for (table, column, line) in lossy {
        let text = if line.contains('\u{fffd}') { "bytes that are no text" } else { &line };
        catalog.leave(IssueKind::Default, Some(&table), &column, text);
    }
    for at in 0..catalog.tables.len() {
        options(&mut catalog, at);
    }
    Ok(catalog)
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

fn bare(sql: &str) -> String {
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

fn is_key(bare: &str) -> bool {
    let keys = ["KEY `", "UNIQUE KEY `", "FULLTEXT KEY `", "SPATIAL KEY `"];
    keys.iter().any(|key| bare.trim_start().starts_with(key))
}

/// The first name in backquotes.
fn quoted_name(line: &str) -> String {
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
    for (line, masked) in lines(&create).into_iter().skip(1) {
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

/// Lists what one line of a table's text has and other engines do not get. `masked` is its text without what is in quotes.
fn part(catalog: &mut Catalog, table: &str, name: &str, sql: &str, masked: &str) {
    let name = if masked.starts_with("PRIMARY KEY") { "PRIMARY" } else { name };
    if is_key(masked) || name == "PRIMARY" {
        if ["` DESC", "INVISIBLE", " IGNORED"].iter().any(|word| masked.contains(word)) {
            catalog.leave_to_others(IssueKind::IndexOption, table, name, sql);
        }
        if masked.contains(" WITHOUT OVERLAPS") {
            catalog.leave_to_others(IssueKind::Constraint, table, name, sql);
        }
    } else if masked.starts_with("CONSTRAINT `") && masked.contains("` CHECK (") {
        // The catalogue's text of it has escapes that no statement has.
        let is_it = |left: &&mut Leftover| {
            left.kind == IssueKind::Check && left.table.as_deref() == Some(table) && left.name == name
        };
        for left in catalog.leftovers.iter_mut().filter(is_it) {
            let line = sql.trim_end_matches(',');
            line[masked.find("CHECK (").unwrap_or(0)..].clone_into(&mut left.detail);
            left.with_statement(format!("ALTER TABLE {} ADD {line}", quoted(&MYSQL, table)));
        }
    } else if masked.starts_with("PERIOD FOR `") {
        catalog.leave_to_others(IssueKind::TableOption, table, name, sql);
    }
}

/// The server's own text of a view, a trigger, a routine or an event.
pub(super) fn own_text(side: &mut Side, what: &str, name: &str) -> Result<Text> {
    let sql = format!("SHOW CREATE {what} {}", side.quoted(name));
    let column = match what {
        "VIEW" | "SEQUENCE" => 1,
        "EVENT" => 3,
        _ => 2,
    };
    let why = match side.rows(&sql) {
        Ok(rows) => {
            let row = rows.into_iter().next().unwrap_or_default();
            match row.get(column).cloned().flatten() {
                Some(sql) if column == 1 => return Ok(Text::Statement(sql)),
                Some(sql) => return Ok(Text::InMode(text(&row, 1).to_owned(), sql)),
                None => "the user may not read its text".to_owned(),
            }
        }
        Err(error) => only_refused(error)?.to_string(),
    };
    Ok(Text::Words(format!("{} {name}: {why}", what.to_lowercase())))
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1";
    for row in side.rows(sql)? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        if kind == "BASE TABLE" || kind == "SYSTEM VERSIONED" {
            catalog.tables.push(Table { name: name.to_owned(), ..Table::default() });
        } else if kind != "VIEW" {
            let is_known = kind == "SEQUENCE";
            let text = if is_known { own_text(side, kind, name)? } else { Text::Words(kind.to_owned()) };
            catalog.leave_text(IssueKind::View, None, name, text);
        }
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let mariadb = is_mariadb(side)?;
    let sql = "SELECT table_name, column_name, column_type, is_nullable, column_default, extra, collation_name, \
               generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() \
               ORDER BY table_name, ordinal_position";
    for row in side.rows(sql)? {
        let (declared, extra) = (text(&row, 2), text(&row, 5).to_ascii_lowercase());
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
            generated: Some(text(&row, 7).to_owned()).filter(|text| !text.is_empty()),
            next: None,
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

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    // MariaDB has no indexes on expressions, and no such column.
    let sql = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'information_schema' \
               AND LOWER(table_name) = 'statistics' AND LOWER(column_name) = 'expression'";
    let expression = if side.number(sql)? > 0 { "expression" } else { "CAST(NULL AS CHAR)" };
    let sql = format!(
        "SELECT table_name, index_name, non_unique, column_name, sub_part, index_type, {expression} \
         FROM information_schema.statistics WHERE table_schema = DATABASE() \
         ORDER BY table_name, index_name, seq_in_index"
    );
    let rows = side.rows(&sql)?;
    let mut left = Vec::new();
    for row in &rows {
        let (table, name, kind) = (text(row, 0), text(row, 1), text(row, 5));
        let special = !matches!(kind, "BTREE" | "HASH");
        let what = special.then(|| (IssueKind::IndexType, kind.to_owned()));
        let what = what
            .or_else(|| row[6].as_ref().map(|text| (IssueKind::ExpressionIndex, text.clone())))
            .or_else(|| {
                row[4]
                    .as_ref()
                    .map(|n| (IssueKind::PrefixIndex, format!("the first {n} of {}", text(row, 3))))
            });
        if let Some((kind, detail)) = what {
            left.push((table.to_owned(), name.to_owned(), kind, detail));
        }
    }
    for row in &rows {
        let (table, name) = (text(row, 0), text(row, 1));
        if left.iter().any(|(of, index, ..)| of == table && index == name) {
            continue;
        }
        if name == "PRIMARY" {
            if let Some(table) = catalog.table_mut(table) {
                table.primary.push(text(row, 3).to_owned());
            }
        } else {
            catalog.add_to_index(table, name, text(row, 2) == "0", text(row, 3).to_owned());
        }
    }
    left.dedup_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
    for (table, name, kind, detail) in left {
        catalog.leave_to_others(kind, &table, &name, &detail);
    }
    Ok(())
}

fn foreign_keys(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT k.table_name, k.constraint_name, k.column_name, k.referenced_table_name, \
               k.referenced_column_name, r.update_rule, r.delete_rule, k.referenced_table_schema = DATABASE() \
               FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r \
               ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name \
               AND r.table_name = k.table_name \
               WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL \
               ORDER BY k.table_name, k.constraint_name, k.ordinal_position";
    for row in side.rows(sql)? {
        let part = ForeignKey {
            name: text(&row, 1).to_owned(),
            columns: vec![text(&row, 2).to_owned()],
            parent: if text(&row, 7) == "1" { text(&row, 3).to_owned() } else { String::new() },
            parent_columns: vec![text(&row, 4).to_owned()],
            on_update: text(&row, 5).to_owned(),
            on_delete: text(&row, 6).to_owned(),
            // A session can turn the check off.
            proven: false,
        };
        catalog.add_to_foreign_key(text(&row, 0), part);
    }
    Ok(())
}

/// Check constraints. MariaDB's JSON is a long text with the constraint that it is JSON.
fn checks(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.table_name, c.constraint_name, c.check_clause FROM information_schema.check_constraints c \
               JOIN information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema \
               AND t.constraint_name = c.constraint_name AND t.constraint_type = 'CHECK' \
               WHERE c.constraint_schema = DATABASE() ORDER BY 1, 2";
    // MariaDB names a column's constraint as the column: the table is needed too.
    let sql = if is_mariadb(side)? {
        sql.replace(" AND t.constraint_type", " AND t.table_name = c.table_name AND t.constraint_type")
    } else {
        sql.to_owned()
    };
    let rows = match side.rows(&sql) {
        Ok(rows) => rows,
        // Versions without check constraints.
        Err(error) if error.server_code() == Some("1109") => return Ok(()),
        Err(error) => return Err(error),
    };
    for row in rows {
        let (table, name, clause) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let json = clause.strip_prefix("json_valid(`").and_then(|rest| rest.strip_suffix("`)"));
        let column = json.and_then(|column| {
            catalog.table_mut(table)?.columns.iter_mut().find(|known| known.name == column)
        });
        if let Some(column) = column {
            // Unlike MySQL's.
            "json(text)".clone_into(&mut column.declared);
            column.collation = Collation::Bytes;
        } else {
            let left = catalog.leave_to_others(IssueKind::Check, table, name, clause);
            let [table, name] = [table, name].map(|name| side.quoted(name));
            left.with_statement(format!("ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({clause})"));
        }
    }
    Ok(())
}
