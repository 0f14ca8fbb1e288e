//! Single objects of a schema: each is made as it was, or the plan lists what is lost.

use crate::common::{Place, assert_lists, copy_all, copy_as, lists, planned, wanted_all};
use kurabe_copy::page::PageSize;
use kurabe_copy::plan::Plan;
use kurabe_copy::wanted::Wanted;
use kurabe_core::Result;

/// A copy of all tables, with every difference accepted but for what is said.
fn copy_with(from: &Place, to: &Place, change: impl Fn(&mut Wanted)) -> Result<Plan> {
    let mut wanted = wanted_all(PageSize::default());
    change(&mut wanted);
    copy_as(from, to, &wanted).map(|(plan, _)| plan)
}

#[test]
fn foreign_key_goes_to_the_table_of_its_exact_name() {
    let Some(from) = Place::new("postgres") else { return };
    let schema = "CREATE TABLE \"P\" (id int PRIMARY KEY); CREATE TABLE p (id int PRIMARY KEY); \
                  CREATE TABLE c (x int REFERENCES p (id)); INSERT INTO \"P\" VALUES (1); INSERT INTO p VALUES (2); \
                  INSERT INTO c VALUES (2)";
    from.ask(schema);
    for (engine, sql) in [
        ("postgres", "SELECT confrelid::regclass FROM pg_constraint WHERE contype = 'f'"),
        (
            "mysql",
            "SELECT referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()",
        ),
    ] {
        let Some(to) = Place::new(engine) else { continue };
        let plan =
            copy_with(&from, &to, |wanted| wanted.rename = vec![("c".to_owned(), "cc".to_owned())]).unwrap();
        assert!(!lists(&plan, "foreign-key", ""), "{:?}", plan.issues);
        assert_eq!(to.ask(sql), "p", "{engine}");
    }
    // SQLite finds names without regard to case.
    let from = Place::sqlite();
    from.ask("CREATE TABLE Par (Id INTEGER PRIMARY KEY); CREATE TABLE kid (x INT REFERENCES PAR (ID)); INSERT INTO kid VALUES (NULL)");
    let Some(to) = Place::new("postgres") else { return };
    copy_with(&from, &to, |wanted| wanted.rename = vec![("Par".to_owned(), "parent".to_owned())]).unwrap();
    assert_eq!(to.ask("SELECT confrelid::regclass FROM pg_constraint WHERE contype = 'f'"), "parent");
}

#[test]
fn defaults_of_sqlite_are_what_it_stores() {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE \"a\\b\" (id INTEGER PRIMARY KEY); INSERT INTO \"a\\b\" VALUES (1); \
         CREATE TABLE t (id INTEGER PRIMARY KEY, b text DEFAULT 1e3, m text DEFAULT 007, d varchar(9) DEFAULT 1.50, \
           q text DEFAULT '007', s string DEFAULT 007, v string DEFAULT '1e3', n int DEFAULT 007, r real DEFAULT 1e3, \
           day date DEFAULT 'soon', w varchar(5000)); INSERT INTO t (id, day) VALUES (1, '2024-01-01')",
    );
    let values = "SELECT b, m, d, q, s, v, n, r FROM t ORDER BY id";
    for engine in ["postgres", "mysql"] {
        let Some(to) = Place::new(engine) else { continue };
        let plan = planned(&from, &to).unwrap();
        assert_lists(&plan, &[("default", "t.day soon")]);
        assert!(!lists(&plan, "text-length", ""), "{:?}", plan.issues);
        copy_all(&from, &to).unwrap();
        if engine == "postgres" {
            to.ask("INSERT INTO t (id) VALUES (2)");
            assert_eq!(to.ask(values).lines().nth(1), Some("1000.0|7|1.5|007|7|1000|7|1000"));
            assert_eq!(to.ask("SELECT id FROM \"a\\b\""), "1");
        }
    }
}

#[test]
fn defaults_and_lengths_that_the_target_has_not_are_listed() {
    let (Some(postgres), Some(mysql)) = (Place::new("postgres"), Place::new("mysql")) else {
        return;
    };
    postgres.ask(
        "CREATE TABLE a (id int PRIMARY KEY, t timestamp DEFAULT 'infinity', z timestamptz DEFAULT '2024-01-01 00:00:00+00', \
         b text DEFAULT true, v varchar(5000), c char(300))",
    );
    mysql.ask("CREATE TABLE m (id int PRIMARY KEY, t time DEFAULT '-01:00:00', u time DEFAULT '01:00:00')");
    for engine in ["mysql", "mariadb"] {
        let Some(to) = Place::new(engine) else { continue };
        let plan = planned(&postgres, &to).unwrap();
        assert_lists(
            &plan,
            &[("default", "a.t infinity"), ("text-length", "a.v 5000"), ("text-length", "a.c 300")],
        );
        assert!(!lists(&plan, "default", "a.z"), "{:?}", plan.issues);
        copy_all(&postgres, &to).unwrap();
    }
    let plan = planned(&mysql, &postgres).unwrap();
    assert_lists(&plan, &[("default", "m.t -01:00:00")]);
    assert!(!lists(&plan, "default", "m.u"), "{:?}", plan.issues);
    copy_all(&mysql, &postgres).unwrap();
    let to = Place::sqlite();
    copy_all(&postgres, &to).unwrap();
    to.ask("INSERT INTO a (id) VALUES (1)");
    assert_eq!(to.ask("SELECT t, z, b FROM a"), "infinity|2024-01-01 00:00:00|true");
}

#[test]
fn objects_of_postgres_are_carried_to_another_server_of_it() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE DOMAIN d AS text COLLATE \"C\" CONSTRAINT dc CHECK (value <> ''); CREATE TYPE pair AS (a text COLLATE \"C\", b int); \
         CREATE TYPE row_type AS (id int, name text); CREATE TYPE mood AS ENUM ('ok'); CREATE SEQUENCE s; \
         CREATE TABLE t (id int GENERATED BY DEFAULT AS IDENTITY CONSTRAINT tp PRIMARY KEY, a text, b int NOT NULL, c int, d d, \
           p pair, CONSTRAINT tc CHECK (b > 0), CONSTRAINT tu UNIQUE NULLS NOT DISTINCT (c), \
           CONSTRAINT tf FOREIGN KEY (c) REFERENCES t); CREATE UNIQUE INDEX tb ON t (b); \
         CREATE TABLE o OF row_type; INSERT INTO o VALUES (1, 'x'); INSERT INTO t (b) VALUES (1); \
         COMMENT ON INDEX tb IS 'i'; COMMENT ON CONSTRAINT tc ON t IS 'c'; COMMENT ON CONSTRAINT tf ON t IS 'f'; \
         COMMENT ON SEQUENCE s IS 's'; COMMENT ON SEQUENCE t_id_seq IS 'own'; COMMENT ON TYPE mood IS 'm'; COMMENT ON DOMAIN d IS 'd'; \
         COMMENT ON CONSTRAINT dc ON DOMAIN d IS 'dc'; COMMENT ON COLUMN pair.a IS 'pa'; \
         ALTER TABLE t REPLICA IDENTITY USING INDEX tb; ALTER TABLE t CLUSTER ON tb; CREATE STATISTICS st ON b, c FROM t; \
         ALTER TABLE t ALTER a SET STATISTICS 7; ALTER TABLE t ALTER a SET STORAGE EXTERNAL; \
         ALTER TABLE t ALTER a SET COMPRESSION pglz; ALTER TABLE t ALTER b SET (n_distinct = 5)",
    );
    let Some(to) = Place::new("postgres") else { return };
    let plan = crate::common::copy(&from.url(), &to.url(), "").unwrap().0;
    assert!(plan.issues.is_empty(), "{:?}", plan.issues);
    let of = "oid > 16384 AND relnamespace = 'public'::regnamespace";
    for sql in [
        "SELECT i.type, replace(i.identity, 'public.', ''), description FROM pg_description d, \
         pg_identify_object(d.classoid, d.objoid, d.objsubid) i WHERE d.objoid > 16384 ORDER BY 1, 2".to_owned(),
        "SELECT typname, typcollation::regcollation FROM pg_type WHERE typname = 'd'".to_owned(),
        "SELECT attrelid::regclass, attname, attcollation::regcollation, attstattarget, attstorage, attcompression, \
         ARRAY(SELECT o FROM unnest(attoptions) o WHERE left(o, 3) <> 'pg_') FROM pg_attribute WHERE attrelid > 16384 AND attnum > 0 AND attrelid::regclass::text !~ 'pg_' ORDER BY attrelid::regclass::text, attnum".to_owned(),
        format!("SELECT relname, relreplident, reloftype::regtype FROM pg_class WHERE {of} ORDER BY 1"),
        "SELECT indexrelid::regclass, indisreplident, indisclustered, indnullsnotdistinct FROM pg_index WHERE indrelid > 16384 \
         AND indrelid::regclass::text !~ 'pg_' ORDER BY indexrelid::regclass::text".to_owned(),
        "SELECT stxname, stxkeys FROM pg_statistic_ext".to_owned(),
    ] {
        let made = to.ask(&sql.replace("16384 AND rel", "16384 AND relname <> 'kurabe_copy' AND rel"));
        assert_eq!(made, from.ask(&sql), "{sql}");
    }
    // A table of another name is not made by the server's own text.
    let mut renamed = wanted_all(PageSize::default());
    renamed.rename = vec![("t".to_owned(), "t2".to_owned())];
    let Some(to) = Place::new("postgres") else { return };
    let plan = copy_as(&from, &to, &renamed).unwrap().0;
    assert_lists(
        &plan,
        &[("table-option", "t STORAGE EXTERNAL"), ("table-option", "t.tb CLUSTER"), ("comment", "t.tc IS")],
    );
    // An index goes with what needs it, and only what a table needs is made.
    let Some(to) = Place::new("postgres") else { return };
    copy_with(&from, &to, |wanted| {
        wanted.leave_out = ["tb", "tf", "st"].map(str::to_owned).to_vec();
        wanted.tables = vec!["t".to_owned()];
    })
    .unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM pg_index WHERE indexrelid::regclass::text = 'tb'"), "0");
    assert_eq!(
        to.ask("SELECT typname FROM pg_type WHERE typname IN ('d', 'pair', 'mood', 'row_type') ORDER BY 1"),
        "d\npair"
    );
    assert_eq!(to.ask("SELECT count(*) FROM pg_class WHERE relname = 's'"), "0");
}

#[test]
fn types_of_any_name_are_carried_to_another_server_of_postgres() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask(
        "CREATE TYPE \"a(1)[\"\"b\" AS ENUM ('x'); CREATE DOMAIN \"d[](\"\"\" AS varchar(9) CHECK (VALUE <> 'y'); \
         CREATE TABLE t (e \"a(1)[\"\"b\", l \"a(1)[\"\"b\"[], d \"d[](\"\"\", n timestamp(3) without time zone, i interval day to second(2)); \
         INSERT INTO t VALUES ('x', '{x,NULL}', 'z', '2024-01-02 03:04:05.678', '1 day')",
    );
    copy_all(&from, &to).unwrap();
    for sql in [
        "SELECT * FROM t",
        "SELECT atttypid::regtype, atttypmod FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0",
    ] {
        assert_eq!(to.ask(sql), from.ask(sql));
    }
}

#[test]
fn objects_that_are_not_made_are_listed() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE t (id int GENERATED BY DEFAULT AS IDENTITY (MINVALUE 1 MAXVALUE 9 CYCLE) PRIMARY KEY, a int, \
           CONSTRAINT tu UNIQUE NULLS NOT DISTINCT (a)); GRANT SELECT (a) ON t TO PUBLIC; ALTER TABLE t REPLICA IDENTITY FULL; CREATE STATISTICS st ON id, a FROM t; \
         CREATE TABLE r (id int PRIMARY KEY); ALTER TABLE r ENABLE ROW LEVEL SECURITY; ALTER TABLE r FORCE ROW LEVEL SECURITY; \
         CREATE VIEW v AS SELECT * FROM t; CREATE MATERIALIZED VIEW mv AS SELECT * FROM t; CREATE INDEX mi ON mv (a); \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; COMMENT ON VIEW v IS 'view'; \
         CREATE TRIGGER vt INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE RULE vr AS ON DELETE TO v DO INSTEAD NOTHING",
    );
    let lost = [
        ("table-option", "r ENABLE ROW"),
        ("table-option", "r FORCE ROW"),
        ("trigger", "v.vt INSTEAD"),
        ("table-option", "v.vr DELETE"),
        ("index-option", "mv.mi INDEX"),
        ("comment", "v COMMENT"),
        ("grant", "t SELECT (a)"),
    ];
    let of_others = [
        ("constraint", "t.tu NULLS"),
        ("identity", "t.id MAXVALUE CYCLE"),
        ("table-option", "t REPLICA FULL"),
        ("table-option", "t.st STATISTICS"),
    ];
    for engine in ["postgres", "mysql", "mariadb", "sqlite"] {
        let Some(to) = Place::new(engine) else { continue };
        let plan = planned(&from, &to).unwrap();
        assert_lists(&plan, &lost);
        if engine == "postgres" {
            assert!(!lists(&plan, "constraint", "t.tu"), "{:?}", plan.issues);
        } else {
            assert_lists(&plan, &of_others);
        }
        assert!(plan.left_text(to.engine()).contains("CREATE TRIGGER vt"), "{engine}");
    }
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE VIEW v AS SELECT id FROM t; \
         CREATE TRIGGER vt INSTEAD OF INSERT ON v BEGIN SELECT 1; END",
    );
    let to = Place::sqlite();
    assert_lists(&planned(&from, &to).unwrap(), &[("trigger", "v.vt INSTEAD")]);
}

#[test]
fn text_of_mysql_is_read_outside_of_its_literals() {
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else {
            continue;
        };
        from.ask(
            "CREATE TABLE a (x varchar(10) COMMENT 'was AUTO_INCREMENT', `i``d` int AUTO_INCREMENT, KEY `k``(` (`i``d`), \
               KEY y (x) COMMENT 'not ` DESC' ) AUTO_INCREMENT = 7 COMMENT = 'no PARTITION BY, AUTO_INCREMENT=5 or WITH SYSTEM VERSIONING\n) \\\\'; \
             INSERT INTO a (x) VALUES ('a'); \
             CREATE TABLE w (u varchar(9) CHARACTER SET ucs2, v varchar(9) CHARACTER SET utf32, n int INVISIBLE, d text); \
             INSERT INTO w (u, v, n) VALUES ('a', 'b', 3); \
             CREATE VIEW vw (a) AS SELECT u FROM w WHERE v <> 'x' WITH CASCADED CHECK OPTION; \
             CREATE FUNCTION f() RETURNS int DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER RETURN 1; \
             CREATE PROCEDURE p(IN a int) SELECT a; CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SET @a = 1; \
             CREATE TRIGGER tr BEFORE INSERT ON w FOR EACH ROW SET new.d = 'x'",
        );
        let plan = crate::common::copy(&from.url(), &to.url(), "view,routine,trigger").unwrap().0;
        let text = plan.left_text(to.engine());
        for words in [
            "CHECK OPTION", "DETERMINISTIC", "READS SQL DATA", "SQL SECURITY INVOKER", "PROCEDURE `p`(",
            "EVENT `e`", "TRIGGER", "BEFORE INSERT",
        ] {
            assert!(text.contains(words), "{engine} {words}: {text}");
        }
        assert_eq!(to.ask("SHOW CREATE TABLE a"), from.ask("SHOW CREATE TABLE a"), "{engine}");
        let Some(other) = Place::new("postgres") else { continue };
        let plan = planned(&from, &other).unwrap();
        assert_lists(&plan, &[("table-option", "w.n INVISIBLE"), ("comment", "a.y not")]);
        for (kind, words) in [("table-option", "a"), ("nul-character", ""), ("index-option", "a.")] {
            assert!(!lists(&plan, kind, words), "{engine} {kind}: {:#?}", plan.issues);
        }
        copy_all(&from, &other).unwrap();
        assert_eq!(other.ask("SELECT u, v, n FROM w"), "a|b|3");
        assert_eq!(other.ask("INSERT INTO a (x) VALUES ('b') RETURNING \"i`d\""), "8");
    }
    let (Some(from), Some(to)) = (Place::new("mariadb"), Place::new("postgres")) else {
        return;
    };
    from.ask(
        "CREATE TABLE o (id int, s date, e date, PERIOD FOR p (s, e), UNIQUE KEY of_time (id, p WITHOUT OVERLAPS), \
           KEY d (id) IGNORED)",
    );
    let plan = planned(&from, &to).unwrap();
    assert_lists(
        &plan,
        &[
            ("constraint", "o.of_time OVERLAPS"),
            ("table-option", "o.p PERIOD"),
            ("index-option", "o.d IGNORED"),
        ],
    );
}

#[test]
fn leftovers_are_statements_or_comments() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else {
        return;
    };
    let low = from.url_of("low:a");
    from.ask("CREATE ROLE low LOGIN PASSWORD 'a'; CREATE TABLE secret (id int)");
    let error = crate::common::copy(&low, &to.url(), "").unwrap_err().to_string();
    assert!(error.contains("permission denied") && error.contains("--exclude secret"), "{error}");
    from.ask("DROP TABLE secret");
    let objects = "CREATE VIEW v WITH (security_barrier) AS SELECT id FROM t WHERE id > 0 WITH LOCAL CHECK OPTION; ALTER VIEW v ALTER id SET DEFAULT 9; \
                   CREATE POLICY po ON t AS RESTRICTIVE FOR UPDATE TO PUBLIC USING (id > 0) WITH CHECK (id > 1); \
                   CREATE RULE ru AS ON DELETE TO t WHERE old.id = 3 DO INSTEAD NOTHING; ALTER TABLE t ENABLE ALWAYS RULE ru; \
                   ALTER TABLE t ENABLE ROW LEVEL SECURITY";
    from.ask(&format!(
        "CREATE TABLE t (id int PRIMARY KEY); {objects}; CREATE TABLE p (id int) PARTITION BY RANGE (id); CREATE TABLE zero (); \
         INSERT INTO zero DEFAULT VALUES"
    ));
    let plan = copy_all(&from, &to).unwrap().0;
    assert_lists(&plan, &[("table-option", "zero without columns"), ("table-option", "p partitioned")]);
    let text = plan.left_text(to.engine());
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        assert!(!line.starts_with("partitioned"), "{text}");
    }
    // The file makes what the copy did not.
    to.ask(&text);
    for sql in [
        "SELECT reloptions, pg_get_viewdef(oid) FROM pg_class WHERE relname = 'v'",
        "SELECT * FROM pg_policies",
        "SELECT * FROM pg_rules WHERE schemaname = 'public'; SELECT ev_enabled FROM pg_rewrite WHERE rulename = 'ru'",
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'v'::regclass",
        "SELECT relrowsecurity FROM pg_class WHERE relname = 't'",
        "SELECT count(*) FROM pg_class WHERE relname = 'zero'",
    ] {
        assert_eq!(to.ask(sql), from.ask(sql), "{sql}");
    }
    let Some(to) = Place::new("mysql") else { return };
    from.ask("CREATE TABLE a (x int, y int CHECK (y > 0)); CREATE TABLE b (id int); CREATE SEQUENCE s");
    let error =
        copy_with(&from, &to, |wanted| wanted.rename = vec![("a".to_owned(), "b".to_owned())]).unwrap_err();
    assert!(error.to_string().contains("--rename: two tables of the copy would be named b"), "{error}");
    let text = planned(&from, &to).unwrap().left_text(to.engine());
    assert!(text.contains("-- ALTER TABLE \"a\" ADD CONSTRAINT \"a_y_check\" CHECK ((y > 0))\n"), "{text}");
    assert!(text.contains("CREATE SEQUENCE s "), "{text}");
}
