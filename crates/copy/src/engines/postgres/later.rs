//! What the columns, indexes and constraints of a table do not say: statements after its rows, in the server's own words.

use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::sql::{Side, text};
use kurabe_core::Result;

/// Of each: the table, the object's name, the statement, what other engines do not get, and whether it is of a foreign key.
/// A statement has the name of the index or constraint that it needs, and is left out with it. Options of columns that begin
/// with `pg_` are the server's own: PostgreSQL 15.20 keeps `pg_attver` there, and others refuse it.
const OF_TABLES: &str = "\
SELECT c.relname::text AS t, i.relname::text, \
  'COMMENT ON INDEX ' || quote_ident(i.relname) || ' IS ' || quote_literal(d.description), 'comment', '' \
  FROM pg_catalog.pg_description d JOIN pg_catalog.pg_index x ON x.indexrelid = d.objoid AND x.indisvalid \
  JOIN pg_catalog.pg_class i ON i.oid = d.objoid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid \
  WHERE d.classoid = 'pg_class'::regclass AND of_copy \
UNION ALL SELECT c.relname, k.conname, 'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || quote_ident(c.relname) \
  || ' IS ' || quote_literal(d.description), 'comment', CASE k.contype WHEN 'f' THEN 'f' ELSE '' END \
  FROM pg_catalog.pg_description d JOIN pg_catalog.pg_constraint k ON k.oid = d.objoid \
  JOIN pg_catalog.pg_class c ON c.oid = k.conrelid \
  WHERE d.classoid = 'pg_constraint'::regclass AND k.contype IN ('p', 'u', 'x', 'c', 'f') AND of_copy \
UNION ALL SELECT c.relname, c.relname, 'COMMENT ON SEQUENCE ' || quote_ident(q.relname) || ' IS ' || quote_literal(d.description), \
  'comment', '' FROM pg_catalog.pg_description d JOIN pg_catalog.pg_class q ON q.oid = d.objoid AND q.relkind = 'S' \
  JOIN pg_catalog.pg_depend o ON o.classid = d.classoid AND o.objid = q.oid AND o.deptype = 'i' \
  JOIN pg_catalog.pg_class c ON c.oid = o.refobjid WHERE d.classoid = 'pg_class'::regclass AND of_copy \
UNION ALL SELECT c.relname, coalesce(i.relname, c.relname), 'ALTER TABLE ' || quote_ident(c.relname) || ' REPLICA IDENTITY ' \
  || CASE c.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE 'USING INDEX ' || quote_ident(i.relname) END, \
  'table-option', '' FROM pg_catalog.pg_class c \
  LEFT JOIN (pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid) \
  ON x.indrelid = c.oid AND x.indisreplident AND c.relreplident = 'i' \
  WHERE (c.relreplident IN ('f', 'n') OR i.oid IS NOT NULL) AND of_copy \
UNION ALL SELECT c.relname, i.relname, 'ALTER TABLE ' || quote_ident(c.relname) || ' CLUSTER ON ' || quote_ident(i.relname), '', '' \
  FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid \
  WHERE x.indisclustered AND c.relkind = 'r' AND of_copy \
UNION ALL SELECT c.relname, s.stxname, 'CREATE STATISTICS ' || quote_ident(s.stxname) \
  || substr(pg_catalog.pg_get_statisticsobjdef(s.oid), length('CREATE STATISTICS ' || quote_ident(n.nspname) || '.' \
  || quote_ident(s.stxname)) + 1), 'table-option', '' FROM pg_catalog.pg_statistic_ext s \
  JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace JOIN pg_catalog.pg_class c ON c.oid = s.stxrelid WHERE of_copy \
UNION ALL SELECT c.relname, '', 'ALTER TABLE ' || quote_ident(c.relname) || ' ALTER COLUMN ' || quote_ident(a.attname) \
  || ' SET ' || o.option, '', '' FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
  JOIN pg_catalog.pg_type y ON y.oid = a.atttypid CROSS JOIN LATERAL (VALUES \
  (CASE WHEN a.attstattarget >= 0 THEN 'STATISTICS ' || a.attstattarget END), \
  (CASE WHEN a.attstorage <> y.typstorage THEN 'STORAGE ' || CASE a.attstorage WHEN 'p' THEN 'PLAIN' \
  WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END), \
  ('COMPRESSION ' || CASE to_jsonb(a)->>'attcompression' WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END), \
  ('(' || (SELECT string_agg(held, ', ') FROM unnest(a.attoptions) held WHERE left(held, 3) <> 'pg_') || ')')) AS o(option) \
  WHERE a.attnum > 0 AND NOT a.attisdropped AND o.option IS NOT NULL AND of_copy \
UNION ALL SELECT c.relname, '', 'ALTER TABLE ' || quote_ident(c.relname) || ' OF ' || pg_catalog.format_type(c.reloftype, NULL), \
  '', '' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type y ON y.oid = c.reloftype \
  WHERE y.typnamespace = c.relnamespace AND of_copy ORDER BY 1, 2, 3";

/// Comments on what is made before the tables: its name, and the statement.
const OF_OTHERS: &str = "\
SELECT y.typname::text, 'COMMENT ON ' || CASE y.typtype WHEN 'd' THEN 'DOMAIN ' ELSE 'TYPE ' END || quote_ident(y.typname) \
  || ' IS ' || quote_literal(d.description) FROM pg_catalog.pg_description d JOIN pg_catalog.pg_type y ON y.oid = d.objoid \
  LEFT JOIN pg_catalog.pg_class c ON c.oid = y.typrelid WHERE d.classoid = 'pg_type'::regclass \
  AND y.typnamespace = current_schema()::regnamespace AND (y.typtype IN ('d', 'e') OR c.relkind = 'c') \
UNION ALL SELECT y.typname, 'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON DOMAIN ' || quote_ident(y.typname) \
  || ' IS ' || quote_literal(d.description) FROM pg_catalog.pg_description d JOIN pg_catalog.pg_constraint k ON k.oid = d.objoid \
  JOIN pg_catalog.pg_type y ON y.oid = k.contypid WHERE d.classoid = 'pg_constraint'::regclass AND k.contype = 'c' \
  AND y.typnamespace = current_schema()::regnamespace \
UNION ALL SELECT c.relname, 'COMMENT ON ' || CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'COLUMN ' END || quote_ident(c.relname) \
  || coalesce('.' || quote_ident(a.attname), '') || ' IS ' || quote_literal(d.description) FROM pg_catalog.pg_description d \
  JOIN pg_catalog.pg_class c ON c.oid = d.objoid LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
  AND a.attnum = d.objsubid AND d.objsubid > 0 WHERE d.classoid = 'pg_class'::regclass AND c.relkind IN ('S', 'c') \
  AND c.relnamespace = current_schema()::regnamespace AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend o \
  WHERE o.classid = d.classoid AND o.objid = c.oid AND c.relkind = 'S' AND o.deptype = 'i') ORDER BY 1, 2";

/// Adds the statements after a table's rows, and after the types and sequences that tables need.
pub(super) fn read(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let of_copy = "c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition";
    for row in side.catalogue(&OF_TABLES.replace("of_copy", of_copy))? {
        let (table, name, sql) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let is_comment = text(&row, 3) == "comment";
        let kind = if is_comment { IssueKind::Comment } else { IssueKind::TableOption };
        let of = if name.is_empty() { table } else { name };
        catalog.leave_to_others(kind, table, of, sql).with_statement(sql).internal = text(&row, 3).is_empty();
        let Some(native) = catalog.table_mut(table).and_then(|table| table.native.as_mut()) else { continue };
        let made = Named { name: name.to_owned(), sql: sql.to_owned() };
        if text(&row, 4) == "f" { native.foreign.push(made) } else { native.later.push(made) }
    }
    for row in side.catalogue(OF_OTHERS)? {
        let (name, sql) = (text(&row, 0).to_owned(), text(&row, 1).to_owned());
        catalog.leave(IssueKind::Comment, None, &name, &sql).with_statement(&sql).carried = true;
        catalog.after.push(Named { name, sql });
    }
    Ok(())
}

/// Which tables, types and domains need which types, sequences and extensions.
pub(super) fn needs(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT DISTINCT coalesce(c.relname, y.typname)::text, coalesce(r.typname, q.relname)::text, e.extname::text \
               FROM pg_catalog.pg_depend d \
               LEFT JOIN pg_catalog.pg_attrdef a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid \
               LEFT JOIN pg_catalog.pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid \
               LEFT JOIN pg_catalog.pg_index x ON d.classid = 'pg_class'::regclass AND x.indexrelid = d.objid \
               LEFT JOIN pg_catalog.pg_class c ON c.oid = coalesce(a.adrelid, nullif(k.conrelid, 0), x.indrelid, \
               CASE d.classid WHEN 'pg_class'::regclass THEN d.objid END) \
               LEFT JOIN pg_catalog.pg_type y ON y.oid = coalesce(nullif(k.contypid, 0), \
               CASE d.classid WHEN 'pg_type'::regclass THEN d.objid END) \
               LEFT JOIN pg_catalog.pg_type l ON d.refclassid = 'pg_type'::regclass AND l.oid = d.refobjid \
               LEFT JOIN pg_catalog.pg_type r ON r.oid = CASE l.typcategory WHEN 'A' THEN l.typelem ELSE l.oid END \
               LEFT JOIN pg_catalog.pg_class q ON d.refclassid = 'pg_class'::regclass AND q.oid = d.refobjid AND q.relkind = 'S' \
               LEFT JOIN pg_catalog.pg_depend m ON m.classid = d.refclassid AND m.objid = coalesce(r.oid, d.refobjid) \
               AND m.deptype = 'e' LEFT JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid \
               WHERE coalesce(c.relnamespace, y.typnamespace) = current_schema()::regnamespace \
               AND coalesce(r.typname, q.relname, e.extname) IS NOT NULL";
    for row in side.catalogue(sql)? {
        for at in 1..3 {
            let needed = row.get(at).cloned().flatten();
            catalog.needs.extend(needed.map(|needed| (text(&row, 0).to_owned(), needed)));
        }
    }
    Ok(())
}
