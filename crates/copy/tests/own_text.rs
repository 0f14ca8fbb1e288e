//! Tables between servers of one kind keep what the server itself writes of them.

use crate::choices::Done;
use crate::common::{
    PAGE, Place, assert_lists, begun, copy, copy_all, copy_as, lists, planned, run_planned, side, wanted_all,
};
use crate::harm::stopped;
use kurabe_copy::casts::UserCasts;
use kurabe_copy::event::Event;
use kurabe_copy::reject::Rejects;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::ErrorKind;
use std::sync::atomic::Ordering;

/// Copies between servers of one kind, with nothing accepted but what is named.
fn same(engine: &str, sql: &str, accept: &str) -> Option<(Place, Place)> {
    let (from, to) = (Place::new(engine)?, Place::new(engine)?);
    from.ask(sql);
    copy(&from.url(), &to.url(), accept).unwrap();
    Some((from, to))
}

#[test]
fn sqlite_tables_keep_their_own_text() {
    let sql = "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT); \
        INSERT INTO a (x) VALUES ('1'), ('2'), ('3'); DELETE FROM a WHERE id = 3; \
        CREATE TABLE b (k TEXT PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID; \
        INSERT INTO b VALUES ('a', 1), ('b', 'x'), ('c', 2.5), ('d', x'00ff'), ('e', 1e300 * 1e300); \
        CREATE TABLE c (id INTEGER PRIMARY KEY, x INT DEFAULT (1+1) CHECK (x > 0), y TEXT DEFAULT \"q\", \
          z TEXT COLLATE RTRIM, g INT AS (x * 2) VIRTUAL, UNIQUE (z) ON CONFLICT IGNORE); \
        INSERT INTO c (x, z) VALUES (3, 'z'); CREATE INDEX some ON c (x DESC) WHERE x > 1; \
        CREATE UNIQUE INDEX fold ON c (y COLLATE NOCASE); \
        CREATE TRIGGER count_c AFTER INSERT ON c BEGIN UPDATE a SET x = x || '!'; END; \
        CREATE TABLE d (id INTEGER PRIMARY KEY, a INT REFERENCES a DEFERRABLE INITIALLY DEFERRED); \
        INSERT INTO d VALUES (1, 99)";
    let Some((from, to)) = same("sqlite", sql, "") else { return };
    let schema = "SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    assert_eq!(to.ask(schema), from.ask(schema));
    let values =
        "SELECT k, typeof(v), quote(v) FROM b; SELECT *, typeof(x) FROM c; SELECT * FROM a; SELECT * FROM d";
    assert_eq!(to.ask(values), from.ask(values));
    assert_eq!(to.ask("INSERT INTO a (x) VALUES ('new'); SELECT max(id) FROM a"), "4");
}

#[test]
fn mysql_tables_keep_their_own_text() {
    let sql = "CREATE TABLE t (id int PRIMARY KEY, title text, v varchar(500), g point NOT NULL, e int AS (id * 2) STORED, \
          c int CHECK (c > 0), d datetime DEFAULT (now() + interval 1 day), b binary(1) DEFAULT '0', f float, j bit(64), \
          KEY k (title(20)), UNIQUE KEY kv (v(100)), SPATIAL INDEX (g), FULLTEXT KEY (title)); \
        INSERT INTO t (id, title, v, g, c, f, j) VALUES (1, 'a', 'b', point(1, 2), 3, 0.1, 18446744073709551615); \
        CREATE TABLE n (id int AUTO_INCREMENT PRIMARY KEY, x int); INSERT INTO n (x) VALUES (1), (2), (3); \
        ALTER TABLE n AUTO_INCREMENT = 1000; INSERT INTO n (x) VALUES (4); DELETE FROM n WHERE id >= 1000; \
        CREATE TABLE u (name varchar(20) PRIMARY KEY, id int NOT NULL AUTO_INCREMENT, UNIQUE KEY (id)); \
        INSERT INTO u (name) VALUES ('a'), ('b'); \
        CREATE TABLE h (h bigint unsigned PRIMARY KEY, v int); \
        INSERT INTO h VALUES (1, 1), (9223372036854775807, 2), (9223372036854775808, 3), (18446744073709551615, 4); \
        CREATE TABLE p (id int PRIMARY KEY, c int) PARTITION BY HASH (id) PARTITIONS 4; INSERT INTO p VALUES (1, 1); \
        CREATE TABLE kid (id int PRIMARY KEY, n int, CONSTRAINT of_n FOREIGN KEY (n) REFERENCES n (id) ON DELETE CASCADE); \
        INSERT INTO kid VALUES (1, 2)";
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = same(engine, sql, "") else { continue };
        for table in ["t", "n", "u", "h", "p", "kid"] {
            let mut lines: Vec<Vec<String>> = [&from, &to]
                .map(|place| place.ask(&format!("SHOW CREATE TABLE {table}")))
                .iter()
                .map(|text| text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect())
                .collect();
            // Indexes that were added later come in another order.
            for lines in &mut lines {
                lines.sort();
            }
            assert_eq!(lines[0], lines[1], "{engine} {table}");
        }
        let values = "SELECT id, ST_AsText(g), e, f, HEX(j), HEX(b) FROM t; SELECT * FROM h ORDER BY h; SELECT * FROM kid";
        assert_eq!(to.ask(values), from.ask(values), "{engine}");
        assert_eq!(to.ask("INSERT INTO n (x) VALUES (9); SELECT LAST_INSERT_ID()"), "1001", "{engine}");
    }
    let history = "CREATE TABLE t (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING; INSERT INTO t VALUES (1, 1); UPDATE t SET v = 2";
    let Some(from) = Place::new("mariadb") else { return };
    from.ask(history);
    let Some(to) = Place::new("mariadb") else { return };
    assert!(lists(&planned(&from, &to).unwrap(), "table-option", "t past"));
    copy(&from.url(), &to.url(), "table-option").unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM t FOR SYSTEM_TIME ALL"), "1");
    // Times that are columns.
    let Some(from) = Place::new("mariadb") else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, b timestamp(6) GENERATED ALWAYS AS ROW START, e timestamp(6) GENERATED ALWAYS AS ROW END, \
           PERIOD FOR SYSTEM_TIME (b, e)) WITH SYSTEM VERSIONING; INSERT INTO t (id) VALUES (1), (2)",
    );
    let times = from.ask("SELECT CAST(b AS char(26)) FROM t ORDER BY id");
    for (engine, text) in
        [("mariadb", "CAST(b AS char(26))"), ("postgres", "to_char(b, 'YYYY-MM-DD HH24:MI:SS.US')")]
    {
        let Some(to) = Place::new(engine) else { continue };
        copy(&from.url(), &to.url(), "table-option,time-zone").unwrap();
        assert_eq!(to.ask(&format!("SELECT {text} FROM t ORDER BY id")), times, "{engine}");
    }
}

#[test]
fn postgres_tables_keep_the_servers_own_text() {
    let sql = "CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE DOMAIN short AS text CHECK (length(value) <= 3); \
        CREATE TYPE pair AS (a int, b mood); CREATE SEQUENCE ords START 5; CREATE EXTENSION citext; \
        CREATE TABLE person (id serial PRIMARY KEY, m mood DEFAULT 'ok', s short, moods mood[], ab pair, n numeric(5,-2), \
          o text DEFAULT 'ord-' || nextval('ords'), day date DEFAULT '2024-01-01'::date + make_interval(days => 1), \
          g int GENERATED ALWAYS AS (length(s)) STORED, price numeric(8,2), doc json, docb jsonb, w varchar(3) COLLATE \"C\", ci citext); \
        INSERT INTO person (ci, m, s, moods, ab, n, price, doc, docb) VALUES ('Ci', 'bad', 'abc', '{ok,bad}', '(1,ok)', 1234567, 1.50, \
          '{ \"b\": 1.0, \"a\" : 1 }', '{\"b\": 1.00, \"a\": 1}'); \
        CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)); INSERT INTO p VALUES (1, 1); \
        CREATE TABLE c (id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1000 INCREMENT BY 10) PRIMARY KEY, a int, b int, \
          u int UNIQUE DEFERRABLE INITIALLY DEFERRED, x int CHECK (x > 0), \
          FOREIGN KEY (a, b) REFERENCES p ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED); \
        CREATE INDEX i1 ON c (a DESC NULLS LAST) INCLUDE (b); \
        CREATE EXTENSION btree_gist; CREATE INDEX box ON c USING gist (a, b); \
        INSERT INTO c (a, b, u) SELECT 1, 1, g FROM generate_series(1, 5) g; DELETE FROM c WHERE id > 1020; \
        CREATE TABLE n (id int PRIMARY KEY, a int, b int); INSERT INTO n VALUES (1, 9, 9); \
        ALTER TABLE n ADD CONSTRAINT nv FOREIGN KEY (a, b) REFERENCES p NOT VALID; \
        ALTER TABLE n ADD CONSTRAINT ck CHECK (a < 5) NOT VALID; \
        CREATE TABLE m (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES p MATCH FULL); \
        CREATE UNLOGGED TABLE fast (id int, x text) WITH (fillfactor = 70); INSERT INTO fast VALUES (1, 'x'), (1, 'x'); \
        CREATE INDEX i2 ON person (lower(s)) WHERE price > 1; \
        CREATE INDEX i3 ON person USING gin (docb); CREATE UNIQUE INDEX i4 ON person (s text_pattern_ops)";
    let Some((from, to)) = same("postgres", sql, "") else { return };
    for sql in [
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid > 16384 AND indrelid::regclass::text !~ 'pg_' ORDER BY 1",
        "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = \
         'public'::regnamespace ORDER BY 1::text, 2",
        "SELECT table_name, column_name, column_default, is_nullable, is_identity, identity_generation, identity_start, \
         generation_expression, udt_name, collation_name FROM information_schema.columns WHERE table_schema = 'public' \
         ORDER BY 1, ordinal_position",
        "SELECT relname, relpersistence, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT * FROM person; SELECT * FROM c ORDER BY id; SELECT * FROM n; SELECT * FROM fast",
        "INSERT INTO c (a, b) VALUES (1, 1) RETURNING id; INSERT INTO person (s) VALUES ('x') RETURNING id, o",
    ] {
        assert_eq!(to.ask(sql), from.ask(sql), "{sql}");
    }
}

/// Properties of types, tables and indexes that no definition shows.
#[test]
fn properties_of_postgres_that_no_definition_has_are_kept() {
    let sql = "CREATE DOMAIN d AS int CHECK (value > 0); CREATE UNLOGGED SEQUENCE q; \
        CREATE TYPE f AS RANGE (subtype = float8, subtype_diff = float8mi); CREATE TYPE r AS RANGE (subtype = text, collation = \"C\"); \
        CREATE TABLE t (id int PRIMARY KEY, v d, f f, r r, x text) WITH (fillfactor = 70, toast.autovacuum_enabled = false); \
        INSERT INTO t VALUES (1, 50, '[1.5,2)', '[a,b]', 'x'); CREATE INDEX e ON t ((id + 1)); ALTER INDEX e ALTER COLUMN 1 SET STATISTICS 44; \
        ALTER DOMAIN d ADD CONSTRAINT nv CHECK (value < 9) NOT VALID; COMMENT ON CONSTRAINT nv ON DOMAIN d IS 'nv'; \
        CREATE STATISTICS st ON id, v FROM t; ALTER STATISTICS st SET STATISTICS 33";
    let Some((from, to)) = same("postgres", sql, "") else { return };
    for sql in [
        "SELECT conname, pg_get_constraintdef(oid), obj_description(oid) FROM pg_constraint WHERE contypid = 'd'::regtype ORDER BY 1",
        "SELECT rngsubtype::regtype, rngsubdiff, rngcollation::regcollation FROM pg_range WHERE rngtypid >= 16384 ORDER BY 1",
        "SELECT reloptions FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')",
        "SELECT stxstattarget, attstattarget, relpersistence FROM pg_statistic_ext, pg_attribute, pg_class \
         WHERE attrelid = 'e'::regclass AND relname = 'q'",
        "SELECT * FROM t",
    ] {
        let there = from.ask(sql);
        assert!(!there.is_empty() && to.ask(sql) == there, "{sql}: {there}");
    }
    from.ask("CREATE TABLE u (id int PRIMARY KEY, v d); INSERT INTO u VALUES (1, 5)");
    let second = Wanted { tables: vec!["u".to_owned()], ..wanted_all(PAGE) };
    copy_as(&from, &to, &second).unwrap();
    assert_eq!(to.ask("SELECT * FROM u"), "1|5", "the domain is there with its constraints");
    // Others lose these properties, and the plan says under which word.
    let lost = planned(&from, &Place::sqlite()).unwrap();
    assert_lists(
        &lost,
        &[("constraint", "d nv NOT VALID"), ("table-option", "q UNLOGGED"), ("comment", "nv DOMAIN")],
    );
}

#[test]
fn domain_of_others_gets_no_constraint() {
    let domain = "CREATE DOMAIN d AS int CHECK (value > 0);";
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask(&format!(
        "{domain} ALTER DOMAIN d ADD CONSTRAINT nv CHECK (value < 9) NOT VALID; CREATE TABLE t (id int PRIMARY KEY, v d)"
    ));
    to.ask(domain);
    let error = copy_all(&from, &to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
    assert_eq!(to.ask("SELECT conname FROM pg_constraint WHERE contypid = 'd'::regtype"), "d_check");
}

#[test]
fn statement_after_the_rows_that_the_target_refuses_is_refused_before_them() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask("CREATE UNLOGGED TABLE t (id serial PRIMARY KEY); INSERT INTO t DEFAULT VALUES");
    let (mut copy, mut plan) = begun(&from, &to, &wanted_all(PAGE)).unwrap();
    assert!(copy.try_out(&plan).unwrap().is_empty());
    // An older server refuses a word of the statement.
    let unlogged = plan.after.iter_mut().find(|(_, made)| made.sql.ends_with("SET UNLOGGED")).unwrap();
    unlogged.1.sql.push('_');
    let refused = copy.try_out(&plan).unwrap();
    assert_eq!(refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["t_id_seq"]);
    assert_eq!(to.ask("SELECT to_regclass('t') IS NULL AND to_regclass('t_id_seq') IS NULL"), "t");
}

#[test]
fn type_that_the_target_refuses_is_told_once() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask("CREATE DOMAIN d AS int; COMMENT ON DOMAIN d IS 'x'; CREATE TABLE t (id int PRIMARY KEY)");
    let (mut copy, mut plan) = begun(&from, &to, &wanted_all(PAGE)).unwrap();
    plan.before[0].sql.push('_');
    let refused = copy.try_out(&plan).unwrap();
    assert_eq!(refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["d"]);
}

/// Also by a copy that begins again, and began nothing.
#[test]
fn sequence_of_others_is_refused() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    let sequence = "CREATE SEQUENCE q;";
    from.ask(&format!("{sequence} CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('q'))"));
    to.ask(sequence);
    for restart in [false, true] {
        let error = Done { restart, ..Done::default() }.copy(&from, &to, &wanted_all(PAGE)).unwrap_err();
        assert!(error.kind() == ErrorKind::NotOurs && error.to_string().contains("q exists"), "{error}");
    }
}

/// A copy that is continued, or begins again, still knows which types it found.
#[test]
fn types_of_others_keep_their_comments() {
    let Some(from) = Place::new("postgres") else { return };
    let types = "CREATE DOMAIN d AS int; CREATE TYPE e AS ENUM ('a');";
    from.ask(&format!(
        "{types} CREATE DOMAIN n AS int; COMMENT ON DOMAIN d IS 'd'; COMMENT ON TYPE e IS 'e'; COMMENT ON DOMAIN n IS 'n'; \
         CREATE TABLE t (id int PRIMARY KEY, d d, e e, n n); INSERT INTO t SELECT generate_series(1, 120)"
    ));
    let comments =
        "SELECT typname, obj_description(oid) FROM pg_type WHERE typname IN ('d', 'e', 'n') ORDER BY 1";
    for restart in [false, true] {
        let to = Place::new("postgres").unwrap();
        to.ask(&format!("{types} COMMENT ON DOMAIN d IS 'of others'"));
        stopped(&from, &to, &wanted_all(PAGE));
        Done { restart, ..Done::default() }.copy(&from, &to, &wanted_all(PAGE)).unwrap();
        assert_eq!(to.ask(comments), "d|of others\ne|\nn|n", "{restart}");
    }
}

#[test]
fn types_of_one_binary_form_are_known_by_identity() {
    let sql = "CREATE TYPE region AS ENUM ('a'); CREATE DOMAIN span AS interval; CREATE DOMAIN whole AS int; \
        CREATE TABLE t (id int PRIMARY KEY, yes1 region, yes2 int[], yes3 whole, yes4 int4range, yes5 name, no1 region[], no2 interval, \
          no3 interval[], no4 span, no5 regclass, no6 regtype[], no7 xml, no8 information_schema.sql_identifier[])";
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask(sql);
    for column in &planned(&from, &to).unwrap().tables[0].columns {
        assert_eq!(column.has_binary, !column.name.starts_with("no"), "{}", column.name);
    }
}

#[test]
fn multiranges_of_own_ranges_are_copied() {
    let sql = "CREATE TYPE f AS RANGE (subtype = float8); CREATE TYPE my_range AS RANGE (subtype = float8); \
        CREATE TYPE named AS RANGE (subtype = float8, multirange_type_name = many); \
        CREATE TABLE t (id int PRIMARY KEY, a f_multirange, b my_multirange[], c many); \
        INSERT INTO t VALUES (1, '{[1,2)}', '{\"{[1,2)}\"}', '{[3,4)}')";
    let Some((from, to)) = same("postgres", sql, "") else { return };
    assert_eq!(to.ask("SELECT * FROM t"), from.ask("SELECT * FROM t"));
    // Versions before 14 do not know the name.
    let other = Place::new("postgres").unwrap();
    for made in planned(&from, &other).unwrap().before {
        assert_eq!(made.sql.contains("MULTIRANGE_TYPE_NAME"), made.name == "named", "{}", made.sql);
    }
}

/// While rows are copied, commits of PostgreSQL do not wait for the disk.
#[test]
fn last_commit_of_a_copy_waits_as_the_servers_settings_say() {
    const FLUSHED: &str = "SELECT @@innodb_flush_log_at_trx_commit";
    for (engine, setting, meanwhile) in [
        ("postgres", "SHOW synchronous_commit", Some("off")),
        ("mysql", FLUSHED, None),
        ("mariadb", FLUSHED, None),
        ("sqlite", "PRAGMA synchronous", None),
    ] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
        let own = side(&to.url()).value(setting).unwrap().unwrap();
        let (mut copy, plan) = begun(&from, &to, &wanted_all(PAGE)).unwrap();
        let shown = |copy: &mut Copy<'_>| copy.target.value(setting).unwrap().unwrap();
        assert_eq!(shown(&mut copy), meanwhile.unwrap_or(&own), "{engine}");
        run_planned(&to.url(), &mut copy, &plan, How::default(), &mut |_| {}).unwrap();
        assert_eq!(shown(&mut copy), own, "{engine}");
    }
}

/// What a copy tells as done, as copied or as kept is there after the target's server was killed, however the copy ends.
#[test]
fn rows_are_on_the_disk_before_they_are_told_as_copied() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    // Otherwise the server writes by itself before it is asked.
    to.ask("ALTER SYSTEM SET wal_writer_delay = '10s'");
    to.ask("SELECT pg_reload_conf()");
    // No trial without rows tells what it refuses.
    let twice = "CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 / ($1 - 300); END';";
    from.ask(&format!(
        "{} CREATE TABLE t (id int PRIMARY KEY, n int, s text); CREATE INDEX by_twice ON t (twice(n)); \
         INSERT INTO t SELECT g, g, g FROM generate_series(1, 300) g; UPDATE t SET s = 'x' WHERE id = 120; \
         CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 300)",
        twice.replace("300", "301")
    ));
    let folder = tempfile::tempdir().unwrap();
    let mut casts = UserCasts::default();
    casts.add("t.s=integer").unwrap();
    let all = || wanted_all(PAGE);
    let rejected = || Some(Rejects::open(&folder.path().join("rows")).unwrap());
    for (what, done, wanted) in [
        ("", Done::by(1), all()),
        ("", Done::by(3), all()),
        ("", Done { keep: true, ..Done::by(1) }, all()),
        ("", Done::by(1), Wanted { parts: Parts::Schema, ..all() }),
        ("", Done { rejected: rejected(), ..Done::by(1) }, Wanted { casts: casts.clone(), ..all() }),
        ("twice", Done::by(1), all()),
        ("twice", Done::by(3), all()),
        ("twice", Done::by(1), Wanted { parts: Parts::Schema, ..all() }),
        ("stopped", Done::by(1), all()),
        ("stopped", Done::by(3), all()),
        ("invalid input", Done::by(1), Wanted { casts, ..all() }),
    ] {
        let made = if what == "twice" { twice.to_owned() } else { twice.replace("300", "301") };
        to.ask(&format!("DROP SCHEMA public CASCADE; CREATE SCHEMA public; {made}"));
        let case = format!("{what} {} {:?} {}", done.jobs, wanted.parts, done.rejected.is_some());
        let (mut written, mut ended) = (String::new(), 0);
        let is_flushed = |written: &str| {
            assert_eq!(to.ask(&format!("SELECT pg_current_wal_flush_lsn() >= '{written}'")), "t", "{case}");
        };
        let copied = done.watched(&from, &to, &wanted, &mut |event| match event {
            Event::Done(_) => {
                is_flushed(&written);
                ended += 1;
            }
            Event::Resumed => {}
            _ => {
                if what == "twice" && wanted.parts == Parts::Schema {
                    to.ask("DROP FUNCTION IF EXISTS twice(int)");
                }
                done.stop.store(what == "stopped", Ordering::Relaxed);
                written = to.ask("SELECT pg_current_wal_insert_lsn()");
            }
        });
        match copied {
            Ok(_) => assert!(what.is_empty() && ended == 1, "{case}"),
            Err(error) => {
                assert!(!what.is_empty() && error.to_string().contains(what), "{case}: {error}");
                is_flushed(&written);
            }
        }
    }
}
