//! The catalogue of MySQL and MariaDB: `information_schema`.

use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Native, Table, read_default};
use crate::issue::IssueKind;
use crate::plan::Named;
use crate::sql::{Side, text};
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
    for table in &mut catalog.tables {
        let sql = format!("SHOW CREATE TABLE `{}`", table.name.replace('`', "``"));
        let row = side.rows(&sql)?.into_iter().next().unwrap_or_default();
        table.native = Some(native(&table.name, text(&row, 1)));
    }
    for at in 0..catalog.tables.len() {
        options(&mut catalog, at);
    }
    Ok(catalog)
}

/// A table by its own text, in which each line defines one thing: keys and foreign keys are made after the rows.
fn native(name: &str, sql: &str) -> Native {
    let table = format!("`{}`", name.replace('`', "``"));
    let lines: Vec<&str> = sql.lines().collect();
    let end = lines.iter().position(|line| line.starts_with(')')).unwrap_or(lines.len());
    let auto =
        lines[..end].iter().find(|line| line.contains(" AUTO_INCREMENT")).map(|line| quoted_name(line));
    let versioned = sql.contains("WITH SYSTEM VERSIONING") || sql.contains("PARTITION BY");
    let mut native = Native::default();
    let mut kept: Vec<&str> = Vec::new();
    for line in lines.iter().take(end).skip(1) {
        let line = line.trim().trim_end_matches(',');
        let add =
            || Named { name: quoted_name(line).to_owned(), sql: format!("ALTER TABLE {table} ADD {line}") };
        let is_key = ["KEY `", "UNIQUE KEY `", "FULLTEXT KEY `", "SPATIAL KEY `"]
            .iter()
            .any(|key| line.starts_with(key));
        // The column whose numbers the server gives must have its key.
        let of_auto = auto.is_some_and(|column| line.contains(&format!("(`{column}`")));
        if line.starts_with("CONSTRAINT `") && line.contains("` FOREIGN KEY (") {
            native.foreign.push(add());
        } else if is_key && !of_auto && !versioned {
            native.later.push(add());
        } else {
            kept.push(line);
        }
    }
    let head = lines.first().copied().unwrap_or_default();
    let mut tail = lines.get(end..).unwrap_or_default().join("\n");
    // A definition that does not change with each row.
    let options = tail.split(" COMMENT=").next().unwrap_or_default();
    if let Some(number) =
        options.split_once(" AUTO_INCREMENT=").and_then(|(_, rest)| rest.split_whitespace().next())
    {
        let option = format!(" AUTO_INCREMENT={number}");
        native.later.push(Named { name: String::new(), sql: format!("ALTER TABLE {table}{option}") });
        tail = tail.replacen(&option, "", 1);
    }
    native.create = format!("{head}\n  {}\n{tail}", kept.join(",\n  "));
    native
}

/// The first name in backquotes.
fn quoted_name(line: &str) -> &str {
    line.split('`').nth(1).unwrap_or_default()
}

/// Lists what the table's own text has and other engines do not get.
fn options(catalog: &mut Catalog, at: usize) {
    let Some(Native { create, later, .. }) = catalog.tables[at].native.clone() else { return };
    let name = catalog.tables[at].name.clone();
    let tail = create.rsplit_once("\n)").map_or("", |(_, tail)| tail);
    let known = ["ENGINE=", "CHARSET=", "COLLATE=", "DEFAULT", "COMMENT="];
    let words: Vec<&str> = tail.split_whitespace().collect();
    // A comment is the last option that is not a partition, and may have spaces.
    let before = words.iter().position(|word| word.starts_with("COMMENT=")).unwrap_or(words.len());
    let other = |word: &&&str| !known.iter().any(|known| word.starts_with(known));
    let mut rest: Vec<&str> = words[..before].iter().filter(other).copied().collect();
    if let Some(partitions) = tail.find("PARTITION BY").filter(|_| !rest.contains(&"PARTITION")) {
        rest.push(&tail[partitions..]);
    }
    if !rest.is_empty() {
        catalog.leave_to_others(IssueKind::TableOption, &name, &name, &rest.join(" "));
    }
    if tail.contains("WITH SYSTEM VERSIONING") {
        catalog.leave(IssueKind::TableOption, Some(&name), &name, "rows of the past are not copied");
    }
    let next = later
        .iter()
        .find_map(|made| made.sql.rsplit_once(" AUTO_INCREMENT=").filter(|_| made.name.is_empty()));
    if let Some((_, next)) = next {
        let columns = catalog.tables[at].columns.iter_mut().filter(|column| column.identity);
        columns.for_each(|column| column.next = next.parse().ok());
    }
    let descending = later.iter().filter(|key| key.sql.contains("` DESC"));
    for key in descending.cloned().collect::<Vec<_>>() {
        catalog.leave_to_others(IssueKind::IndexOption, &name, &key.name, &key.sql);
    }
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1";
    for row in side.rows(sql)? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        if kind == "BASE TABLE" || kind == "SYSTEM VERSIONED" {
            catalog.tables.push(Table { name: name.to_owned(), ..Table::default() });
        } else if kind != "VIEW" {
            catalog.leave(IssueKind::View, None, name, &kind.to_lowercase());
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
            Some(default) if is_expression => read_default(default),
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
        let name = text(&row, 1);
        let Some(table) = catalog.table_mut(text(&row, 0)) else { continue };
        let at = table.foreign.iter().position(|key| key.name == name).unwrap_or_else(|| {
            let parent = if text(&row, 7) == "1" { text(&row, 3).to_owned() } else { String::new() };
            table.foreign.push(ForeignKey {
                name: name.to_owned(),
                columns: Vec::new(),
                parent,
                parent_columns: Vec::new(),
                on_update: text(&row, 5).to_owned(),
                on_delete: text(&row, 6).to_owned(),
                // A session can turn the check off.
                proven: false,
            });
            table.foreign.len() - 1
        });
        table.foreign[at].columns.push(text(&row, 2).to_owned());
        table.foreign[at].parent_columns.push(text(&row, 4).to_owned());
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
        match column {
            Some(column) => {
                // Unlike MySQL's.
                "json(text)".clone_into(&mut column.declared);
                column.collation = Collation::Bytes;
            }
            None => catalog.leave_to_others(IssueKind::Check, table, name, clause),
        }
    }
    Ok(())
}
