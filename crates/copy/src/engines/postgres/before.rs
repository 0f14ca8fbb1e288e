//! What is made before the tables of PostgreSQL: extensions, types and sequences.

use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::sql::{Side, text};
use kurabe_core::Result;
use std::collections::BTreeMap;

/// Extensions that columns, indexes and defaults need; enumerations, domains and composite types, each after those that were made before it.
pub(super) fn types(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT DISTINCT e.extname::text, 'CREATE EXTENSION IF NOT EXISTS ' || quote_ident(e.extname) \
               FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_depend x ON x.classid = d.refclassid AND x.objid = d.refobjid \
               AND x.deptype = 'e' JOIN pg_catalog.pg_extension e ON e.oid = x.refobjid \
               LEFT JOIN pg_catalog.pg_attrdef a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid \
               JOIN pg_catalog.pg_class c ON c.oid = coalesce(a.adrelid, d.objid) \
               WHERE (a.oid IS NOT NULL OR d.classid = 'pg_class'::regclass AND c.relkind IN ('i', 'I', 'r', 'p')) \
               AND c.relnamespace = current_schema()::regnamespace ORDER BY 1";
    for row in side.catalogue(sql)? {
        catalog.before.push(Named { name: text(&row, 0).to_owned(), sql: text(&row, 1).to_owned() });
    }
    // One in a schema that is not searched has its name before the type's: the target may have the extension elsewhere.
    let sql = "SELECT pg_catalog.format_type(t.oid, NULL)::text FROM pg_catalog.pg_type t JOIN pg_catalog.pg_depend x \
               ON x.classid = 'pg_type'::regclass AND x.objid = t.oid AND x.deptype = 'e' \
               WHERE pg_catalog.pg_type_is_visible(t.oid)";
    catalog.extension_types = side.catalogue(sql)?.iter().map(|row| text(row, 0).to_owned()).collect();
    let collate = |own: &str, of: &str| {
        format!(
            "coalesce((SELECT ' COLLATE ' || CASE WHEN o.collnamespace = 'pg_catalog'::regnamespace THEN '' \
             ELSE o.collnamespace::regnamespace || '.' END || quote_ident(o.collname) FROM pg_catalog.pg_collation o \
             JOIN pg_catalog.pg_type b ON b.oid = {of} WHERE o.oid = {own} AND o.oid <> b.typcollation), '')"
        )
    };
    let sql = "SELECT t.typname::text, CASE t.typtype \
               WHEN 'e' THEN 'CREATE TYPE ' || quote_ident(t.typname) || ' AS ENUM (' || coalesce((SELECT \
               string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e \
               WHERE e.enumtypid = t.oid), '') || ')' \
               WHEN 'd' THEN 'CREATE DOMAIN ' || quote_ident(t.typname) || ' AS ' \
               || pg_catalog.format_type(t.typbasetype, t.typtypmod) || COLLATE_OF(t.typcollation, t.typbasetype) \
               || coalesce(' DEFAULT ' || pg_catalog.pg_get_expr(t.typdefaultbin, 0), '') \
               || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END \
               || coalesce((SELECT string_agg(' CONSTRAINT ' || quote_ident(k.conname) || ' ' \
               || pg_catalog.pg_get_constraintdef(k.oid), '' ORDER BY k.conname) FROM pg_catalog.pg_constraint k \
               WHERE k.contypid = t.oid AND k.contype = 'c'), '') \
               ELSE 'CREATE TYPE ' || quote_ident(t.typname) || ' AS (' || coalesce((SELECT string_agg( \
               quote_ident(a.attname) || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod) \
               || COLLATE_OF(a.attcollation, a.atttypid), ', ' ORDER BY a.attnum) \
               FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), '') \
               || ')' END FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid \
               WHERE t.typnamespace = current_schema()::regnamespace \
               AND (t.typtype IN ('e', 'd') OR t.typtype = 'c' AND c.relkind = 'c') ORDER BY t.typtype <> 'e', t.oid";
    let sql = sql
        .replace("COLLATE_OF(t.typcollation, t.typbasetype)", &collate("t.typcollation", "t.typbasetype"))
        .replace("COLLATE_OF(a.attcollation, a.atttypid)", &collate("a.attcollation", "a.atttypid"));
    for row in side.catalogue(&sql)? {
        catalog.before.push(Named { name: text(&row, 0).to_owned(), sql: text(&row, 1).to_owned() });
    }
    Ok(())
}

/// Where sequences are, by their numbers: the last value, and whether it was given. Those that the user may not read are missing.
pub(super) type Positions = BTreeMap<String, (i128, bool)>;

/// The view `pg_sequences` does not tell the position of a sequence that has given no number since it was set.
pub(super) fn positions(side: &mut Side) -> Result<Positions> {
    let sql = "SELECT 'SELECT ' || quote_literal(c.oid) || ', last_value::text, is_called::text FROM ' || c.oid::regclass \
               FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid \
               WHERE c.relnamespace = current_schema()::regnamespace AND has_sequence_privilege(s.seqrelid, 'SELECT')";
    let queries: Vec<String> = side.catalogue(sql)?.iter().map(|row| text(row, 0).to_owned()).collect();
    let mut positions = Positions::new();
    for some in queries.chunks(100) {
        for row in side.rows(&some.join(" UNION ALL "))? {
            let last = text(&row, 1).parse().unwrap_or_default();
            positions.insert(text(&row, 0).to_owned(), (last, text(&row, 2) == "true"));
        }
    }
    Ok(positions)
}

/// Why the numbers of a new table may be given again.
pub(super) const UNREADABLE: &str =
    "the user may not read the position of its sequence (GRANT SELECT ON SEQUENCE)";

/// Sequences that are no part of an identity column: made before the tables, and set after the rows.
pub(super) fn sequences(side: &mut Side, catalog: &mut Catalog, positions: &Positions) -> Result<()> {
    let sql = "SELECT c.relname::text, 'CREATE SEQUENCE ' || quote_ident(c.relname) || ' AS ' \
               || pg_catalog.format_type(s.seqtypid, NULL) || ' INCREMENT BY ' || s.seqincrement || ' MINVALUE ' || s.seqmin \
               || ' MAXVALUE ' || s.seqmax || ' START WITH ' || s.seqstart || ' CACHE ' || s.seqcache \
               || CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END, \
               quote_literal(quote_ident(c.relname)), c.oid::text, EXISTS (SELECT FROM pg_catalog.pg_depend d \
               WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'a')::text \
               FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid \
               WHERE c.relnamespace = current_schema()::regnamespace AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
               WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'i') ORDER BY 1";
    for row in side.catalogue(sql)? {
        let name = text(&row, 0).to_owned();
        let left = catalog.leftovers.iter_mut().find(|left| left.table.is_none() && left.name == name);
        if let Some(left) = left {
            left.with_statement(text(&row, 1));
        }
        catalog.before.push(Named { name: name.clone(), sql: text(&row, 1).to_owned() });
        if let Some((last, is_called)) = positions.get(text(&row, 3)) {
            let sql = format!("SELECT pg_catalog.setval({}, {last}, {is_called})", text(&row, 2));
            catalog.after.push(Named { name, sql });
        } else if text(&row, 4) != "true" {
            catalog.leave(IssueKind::Identity, None, &name, UNREADABLE);
        }
    }
    Ok(())
}
