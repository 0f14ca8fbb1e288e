//! The catalogue of PostgreSQL.

use super::before::{Positions, UNREADABLE, positions, sequences, types};
use super::later;
use super::renderings::{rendered, renderings};
use crate::catalog::{
    Catalog, Collation, Column, DefaultValue, ForeignKey, Named, Table, Text, read_default,
};
use crate::issue::IssueKind;
use crate::script::literal;
use crate::sql::{Side, text};
use kurabe_core::Result;

/// Reads the first schema of the session's search path.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    tables(side, &mut catalog)?;
    types(side, &mut catalog)?;
    let positions = positions(side)?;
    sequences(side, &mut catalog, &positions)?;
    columns(side, &mut catalog, &positions)?;
    indexes(side, &mut catalog)?;
    constraints(side, &mut catalog)?;
    renderings(side, &mut catalog)?;
    properties(side, &mut catalog)?;
    later::read(side, &mut catalog)?;
    later::needs(side, &mut catalog)?;
    Ok(catalog)
}

/// How the database compares text by default.
pub(super) fn of_database(side: &mut Side) -> Result<Collation> {
    // A database may compare by ICU, whatever its locale of libc is.
    let sql = "SELECT d->>'datlocprovider', d->>'datcollate', coalesce(d->>'datlocale', d->>'daticulocale') \
               FROM (SELECT to_jsonb(d) AS d FROM pg_catalog.pg_database d WHERE datname = current_database()) AS d";
    let row = side.catalogue(sql)?.into_iter().next().unwrap_or_default();
    let (provider, locale) = (text(&row, 0), text(&row, 1));
    Ok(match (provider, locale) {
        ("i", _) => Collation::Named(format!("{} of ICU", text(&row, 2))),
        ("b", _) | (_, "C" | "POSIX" | "C.UTF-8" | "C.utf8") => {
            Collation::Binary("the database's C".to_owned())
        }
        (_, locale) => Collation::Named(locale.to_owned()),
    })
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    // Identity and serial columns own their sequences.
    let sql = "SELECT c.relname::text, c.relkind::text, c.relispartition::text, \
               (c.relkind = 'r' AND c.relhassubclass)::text FROM pg_catalog.pg_class c \
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'i', 'I') \
               AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid \
               AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))) ORDER BY 1";
    for row in side.catalogue(sql)? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        let what = match kind {
            "r" | "p" if text(&row, 2) == "true" => continue,
            "r" | "p" => {
                let inherited = text(&row, 3) == "true";
                catalog.tables.push(Table { name: name.to_owned(), inherited, ..Table::default() });
                continue;
            }
            "S" => "a sequence that no column owns",
            "f" => "a foreign table",
            _ => continue,
        };
        // Between servers of PostgreSQL, a sequence is made before the tables.
        catalog.leave(IssueKind::View, None, name, what).carried = kind == "S";
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog, positions: &Positions) -> Result<()> {
    let database = of_database(side)?;
    let sql = "SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)::text, \
               a.attnotnull::text, pg_catalog.pg_get_expr(d.adbin, d.adrelid)::text, a.attidentity::text, \
               a.attgenerated::text, co.collname::text, \
               CASE WHEN t.typtype = 'd' THEN pg_catalog.format_type(t.typbasetype, t.typtypmod)::text END, \
               quote_ident(a.attname)::text, CASE WHEN a.attcollation <> t.typcollation THEN \
               CASE WHEN co.collnamespace = 'pg_catalog'::regnamespace THEN '' ELSE co.collnamespace::regnamespace || '.' END \
               || quote_ident(co.collname) END, s.seqstart::text, s.seqincrement::text, quote_ident(q.relname)::text, \
               ' MINVALUE ' || s.seqmin || ' MAXVALUE ' || s.seqmax || ' CACHE ' || s.seqcache \
               || CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END, \
               q.oid::text, \
               (s.seqincrement <> 1 OR s.seqmin <> 1 OR s.seqcycle OR s.seqmax <> CASE s.seqtypid WHEN 'int2'::regtype THEN 32767 \
               WHEN 'int4'::regtype THEN 2147483647 ELSE 9223372036854775807 END)::text \
               FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
               JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
               LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
               LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation \
               LEFT JOIN (pg_catalog.pg_depend o JOIN pg_catalog.pg_sequence s ON s.seqrelid = o.objid \
               JOIN pg_catalog.pg_class q ON q.oid = o.objid) ON o.classid = 'pg_class'::regclass \
               AND o.refclassid = 'pg_class'::regclass AND o.refobjid = c.oid AND o.refobjsubid = a.attnum \
               AND o.deptype IN ('a', 'i') \
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') \
               AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum";
    for row in side.catalogue(sql)? {
        let (table, default) = (text(&row, 0), text(&row, 4));
        let generated = !text(&row, 6).is_empty();
        let sequence = text(&row, 13);
        let is_serial =
            default.starts_with("nextval(") && default.ends_with("::regclass)") && !sequence.is_empty();
        let identity = text(&row, 5);
        let declared = if text(&row, 8).is_empty() { text(&row, 2) } else { text(&row, 8) };
        let collation = match text(&row, 7) {
            "" | "C" | "POSIX" => Collation::Bytes,
            "default" => database.clone(),
            name => Collation::Named(name.to_owned()),
        };
        let number = |at: usize| text(&row, at).parse::<i128>().ok();
        let position = positions.get(text(&row, 15));
        let next =
            position.map(|(last, is_called)| last + if *is_called { number(12).unwrap_or(1) } else { 0 });
        let column = Column {
            name: text(&row, 1).to_owned(),
            declared: declared.to_owned(),
            nullable: text(&row, 3) != "true",
            default: match default {
                _ if generated || is_serial => DefaultValue::Null,
                // A text of a boolean.
                "true" | "false" if declared != "boolean" => DefaultValue::Literal(default.to_owned()),
                default => read_default(default, false),
            },
            identity: is_serial || !identity.is_empty(),
            collation,
            generated: generated.then(|| default.to_owned()),
            next: next.or(number(11)),
        };
        let (Some(found), name) = (catalog.table_mut(table), text(&row, 1)) else { continue };
        let native = found.native.get_or_insert_default();
        let comma = if native.create.is_empty() { "" } else { ", " };
        native.create.push_str(comma);
        native.create.push_str(&rendered(&row));
        if !sequence.is_empty() {
            let (table_sql, column_sql) = (side.quoted(table), text(&row, 9));
            if identity.is_empty() {
                let sql = format!("ALTER SEQUENCE {sequence} OWNED BY {table_sql}.{column_sql}");
                native.later.push(Named { name: String::new(), sql });
            }
            // The position of a serial column's sequence is set with those of others.
            let set = match position {
                Some((last, is_called)) if !identity.is_empty() => Some(format!("{last}, {is_called})")),
                Some(_) => None,
                None => {
                    let (largest, start) = (format!("max({column_sql})"), text(&row, 11));
                    Some(format!("coalesce({largest}, {start}), {largest} IS NOT NULL) FROM {table_sql}"))
                }
            };
            if let Some(set) = set {
                let sql = format!("SELECT pg_catalog.setval({}, {set}", literal(side.engine, sequence)?);
                native.later.push(Named { name: String::new(), sql });
            }
        }
        found.columns.push(column);
        if !sequence.is_empty() && position.is_none() {
            catalog.leave(IssueKind::Identity, Some(table), name, UNREADABLE);
        }
        if identity == "a" || text(&row, 16) == "true" {
            let always = if identity == "a" { "ALWAYS, " } else { "" };
            let detail = format!("{always}INCREMENT BY {}{}", text(&row, 12), text(&row, 14));
            catalog.leave_to_others(IssueKind::Identity, table, name, &detail);
        }
        if !text(&row, 8).is_empty() {
            let domain = catalog.before.iter().find(|named| text(&row, 2).trim_matches('"') == named.name);
            let sql = domain.map_or(text(&row, 2).to_owned(), |domain| domain.sql.clone());
            catalog.leave_to_others(IssueKind::Check, table, name, &sql);
        }
    }
    Ok(())
}

/// Lists what is made by no statement of the copy: partitions with what belongs to them alone, inheritance, policies.
fn properties(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let of = "coalesce((SELECT r.relname FROM pg_catalog.pg_class r WHERE r.oid = pg_catalog.pg_partition_root(c.oid)), \
              c.relname)::text";
    let own = "c.relnamespace = current_schema()::regnamespace";
    let sql = format!(
        "SELECT {of}, c.relname::text, 'partitioned by ' || pg_catalog.pg_get_partkeydef(c.oid) || ': an ordinary table', '', \
         (SELECT string_agg('CREATE TABLE ' || quote_ident(r.relname) || ' PARTITION OF ' || i.inhparent::regclass || ' ' \
         || pg_catalog.pg_get_expr(r.relpartbound, r.oid) \
         || coalesce(' PARTITION BY ' || pg_catalog.pg_get_partkeydef(r.oid), ''), chr(10) ORDER BY t.level, r.relname) \
         FROM pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class r ON r.oid = t.relid \
         JOIN pg_catalog.pg_inherits i ON i.inhrelid = r.oid WHERE t.level > 0) FROM pg_catalog.pg_class c WHERE {own} AND c.relkind = 'p' AND NOT c.relispartition \
         UNION ALL SELECT {of}, c.relname::text, 'inherits from ' || i.inhparent::regclass || ': an ordinary table', '', '' \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid \
         WHERE {own} AND c.relkind = 'r' AND NOT c.relispartition \
         UNION ALL SELECT {of}, p.policyname::text, 'CREATE POLICY ' || quote_ident(p.policyname) || ' ON ' \
         || quote_ident(c.relname) || ' AS ' || p.permissive || ' FOR ' || p.cmd || ' TO ' || (SELECT string_agg( \
         CASE r WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(r) END, ', ') FROM unnest(p.roles) r) \
         || coalesce(' USING (' || p.qual || ')', '') || coalesce(' WITH CHECK (' || p.with_check || ')', ''), 's', '' \
         FROM pg_catalog.pg_policies p JOIN pg_catalog.pg_class c ON c.relname = p.tablename \
         WHERE {own} AND p.schemaname = current_schema() \
         UNION ALL SELECT {of}, c.relname::text, 'ALTER TABLE ' || quote_ident(c.relname) || o.option, 's', '' \
         FROM pg_catalog.pg_class c CROSS JOIN LATERAL (VALUES \
         (CASE WHEN c.relrowsecurity THEN ' ENABLE ROW LEVEL SECURITY' END), \
         (CASE WHEN c.relforcerowsecurity THEN ' FORCE ROW LEVEL SECURITY' END)) AS o(option) \
         WHERE {own} AND c.relkind IN ('r', 'p') AND o.option IS NOT NULL \
         UNION ALL SELECT {of}, r.rulename::text, pg_catalog.pg_get_ruledef(r.oid, true), 's', '' FROM pg_catalog.pg_rewrite r \
         JOIN pg_catalog.pg_class c ON c.oid = r.ev_class WHERE {own} AND c.relkind IN ('r', 'p', 'v') \
         AND r.rulename <> '_RETURN' \
         UNION ALL SELECT {of}, i.relname::text, pg_catalog.pg_get_indexdef(i.oid, 0, true), 'm', '' FROM pg_catalog.pg_index x \
         JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid \
         WHERE {own} AND c.relkind = 'm' \
         UNION ALL SELECT {of}, i.relname::text, 'invalid: ' || pg_catalog.pg_get_indexdef(i.oid, 0, true), 'i', '' \
         FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid \
         WHERE {own} AND c.relkind = 'r' AND NOT x.indisvalid \
         UNION ALL SELECT {of}, c.relname::text, 'OF ' || pg_catalog.format_type(c.reloftype, NULL), '', '' \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type y ON y.oid = c.reloftype \
         WHERE {own} AND y.typnamespace <> c.relnamespace \
         UNION ALL SELECT {of}, c.relname || '.' || k.conname, pg_catalog.pg_get_constraintdef(k.oid), k.contype::text, '' \
         FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid \
         WHERE {own} AND c.relispartition AND k.conparentid = 0 AND (k.contype <> 'c' OR k.conislocal) AND k.contype <> 'n' \
         UNION ALL SELECT {of}, c.relname || '.' || x.indexrelid::regclass, \
         pg_catalog.pg_get_indexdef(x.indexrelid), 'i', '' FROM pg_catalog.pg_index x \
         JOIN pg_catalog.pg_class c ON c.oid = x.indrelid WHERE {own} AND c.relispartition \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = x.indexrelid) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = x.indexrelid) ORDER BY 1, 2"
    );
    for row in side.catalogue(&sql)? {
        let kind = match text(&row, 3) {
            "f" => IssueKind::ForeignKey,
            "c" => IssueKind::Check,
            "i" | "u" | "p" | "m" => IssueKind::IndexOption,
            _ => IssueKind::TableOption,
        };
        let left = catalog.leave(kind, Some(text(&row, 0)), text(&row, 1), text(&row, 2));
        match text(&row, 3) {
            "s" | "m" => drop(left.with_statement(text(&row, 2))),
            _ if text(&row, 4).is_empty() => {}
            _ => left.text = Text::Words(format!("{}\n{}", text(&row, 2), text(&row, 4))),
        }
    }
    Ok(())
}

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.relname::text, i.relname::text, x.indisunique::text, x.indisprimary::text, \
               (x.indpred IS NOT NULL)::text, (x.indexprs IS NOT NULL)::text, m.amname::text, a.attname::text, \
               coalesce('ALTER TABLE ' || quote_ident(t.relname) || ' ADD CONSTRAINT ' || quote_ident(e.conname) || ' ' \
               || pg_catalog.pg_get_constraintdef(e.oid), pg_catalog.pg_get_indexdef(x.indexrelid, 0, true))::text, \
               (e.oid IS NOT NULL)::text FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid \
               LEFT JOIN pg_catalog.pg_constraint e ON e.conindid = x.indexrelid AND e.contype = 'x' \
               JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_am m ON m.oid = i.relam \
               CROSS JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, position) \
               LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum AND k.attnum > 0 \
               WHERE t.relnamespace = current_schema()::regnamespace AND k.position <= x.indnkeyatts AND x.indisvalid \
               AND NOT t.relispartition ORDER BY t.relname, i.relname, k.position";
    let mut last = (String::new(), String::new());
    for row in side.catalogue(sql)? {
        let (table, name, is) = (text(&row, 0), text(&row, 1), |at| text(&row, at) == "true");
        let what = if is(4) {
            Some(IssueKind::PartialIndex)
        } else if is(5) {
            Some(IssueKind::ExpressionIndex)
        } else if text(&row, 6) != "btree" && text(&row, 6) != "hash" || is(9) {
            Some(IssueKind::IndexType)
        } else {
            None
        };
        if let Some(kind) = what {
            let this = (table.to_owned(), name.to_owned());
            if last != this {
                catalog.leave_to_others(kind, table, name, text(&row, 8)).with_statement(text(&row, 8));
                last = this;
            }
        } else if is(3) {
            if let Some(table) = catalog.table_mut(table) {
                table.primary.push(text(&row, 7).to_owned());
            }
        } else {
            catalog.add_to_index(table, name, is(2), text(&row, 7).to_owned());
        }
    }
    Ok(())
}

fn constraints(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.relname::text, k.conname::text, a.attname::text, p.relname::text, b.attname::text, \
               k.confupdtype::text, k.confdeltype::text, (p.relnamespace = t.relnamespace)::text, k.convalidated::text \
               FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid \
               JOIN pg_catalog.pg_class p ON p.oid = k.confrelid \
               CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS c(own, theirs, position) \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.own \
               JOIN pg_catalog.pg_attribute b ON b.attrelid = p.oid AND b.attnum = c.theirs \
               WHERE k.contype = 'f' AND k.conparentid = 0 AND t.relnamespace = current_schema()::regnamespace \
               ORDER BY t.relname, k.conname, c.position";
    let action = |letter: &str| match letter {
        "c" => "CASCADE",
        "n" => "SET NULL",
        "d" => "SET DEFAULT",
        "r" => "RESTRICT",
        _ => "NO ACTION",
    };
    for row in side.catalogue(sql)? {
        let part = ForeignKey {
            name: text(&row, 1).to_owned(),
            columns: vec![text(&row, 2).to_owned()],
            parent: if text(&row, 7) == "true" { text(&row, 3).to_owned() } else { String::new() },
            parent_columns: vec![text(&row, 4).to_owned()],
            on_update: action(text(&row, 5)).to_owned(),
            on_delete: action(text(&row, 6)).to_owned(),
            proven: text(&row, 8) == "true",
        };
        catalog.add_to_foreign_key(text(&row, 0), part);
    }
    let sql = "SELECT t.relname::text, k.conname::text, pg_catalog.pg_get_constraintdef(k.oid)::text \
               FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid \
               WHERE k.contype = 'c' AND t.relnamespace = current_schema()::regnamespace AND NOT t.relispartition ORDER BY 1, 2";
    for row in side.catalogue(sql)? {
        let (table, name, check) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let left = catalog.leave_to_others(IssueKind::Check, table, name, check);
        left.with_statement(format!(
            "ALTER TABLE {} ADD CONSTRAINT {} {check}",
            side.quoted(table),
            side.quoted(name)
        ));
    }
    Ok(())
}
