//! What the target cannot have is found, and listed, before anything is made.

use crate::common::{Place, assert_lists, begun, copy, copy_all, lists, planned};

#[test]
fn what_other_engines_do_not_get_is_listed() {
    let Some(postgres) = Place::new("postgres") else { return };
    postgres.ask(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE DOMAIN short AS text CHECK (length(value) <= 3); \
         CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY (INCREMENT BY 10) PRIMARY KEY, \
           p int REFERENCES p DEFERRABLE INITIALLY DEFERRED, u int UNIQUE DEFERRABLE, s short, \
           o text DEFAULT 'ord-' || id_of(1)::text)"
            .replace(" DEFAULT 'ord-' || id_of(1)::text", " DEFAULT 'ord-' || clock_timestamp()::text")
            .as_str(),
    );
    postgres.ask(
        "CREATE INDEX i1 ON c (p DESC) INCLUDE (u); CREATE UNLOGGED TABLE fast (id int PRIMARY KEY); \
         CREATE TABLE cust (id int PRIMARY KEY); INSERT INTO cust SELECT generate_series(1, 10); \
         CREATE TABLE pay (id int, cust int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); \
         CREATE TABLE pay_1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-07-01'); \
         CREATE TABLE pay_2 PARTITION OF pay FOR VALUES FROM ('2024-07-01') TO ('2025-01-01'); \
         ALTER TABLE pay_1 ADD FOREIGN KEY (cust) REFERENCES cust (id); ALTER TABLE pay_1 ADD CHECK (cust > 0); \
         CREATE INDEX pay_1_cust ON pay_1 (cust); \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
         CREATE TRIGGER tr BEFORE INSERT ON pay_1 FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE TABLE top (id int); CREATE TABLE sub () INHERITS (top); \
         INSERT INTO pay SELECT g, 1 + g % 10, date '2024-01-01' + g FROM generate_series(1, 300) g",
    );
    let to = Place::sqlite();
    let plan = planned(&postgres, &to).unwrap();
    assert_lists(
        &plan,
        &[
            ("constraint", "c.c_p_fkey DEFERRABLE"),
            ("constraint", "c.c_u_key DEFERRABLE"),
            ("identity", "c.id ALWAYS 10"),
            ("check", "c.s length"),
            ("default", "c.o clock_timestamp"),
            ("index-option", "c.i1 DESC INCLUDE"),
            ("table-option", "fast UNLOGGED"),
            ("table-option", "pay partitioned RANGE"),
            ("table-option", "sub inherits top"),
            ("foreign-key", "pay_1 cust"),
            ("check", "pay_1 cust"),
            ("index-option", "pay_1_cust"),
            ("trigger", "pay tr"),
        ],
    );
    copy_all(&postgres, &to).unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM pay"), "300");
    // Of SQLite.
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE account (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT NOT NULL, name TEXT, nickname TEXT COLLATE NOCASE, \
           n INT CHECK (n > 0), UNIQUE (name) ON CONFLICT REPLACE); \
         CREATE UNIQUE INDEX account_email ON account (email COLLATE NOCASE); CREATE INDEX by_n ON account (n DESC); \
         INSERT INTO account VALUES (1, 'a', 'b', 'c', 1), (7, 'd', 'e', 'f', 2); DELETE FROM account WHERE id = 7",
    );
    let plan = planned(&from, &postgres).unwrap();
    assert_lists(
        &plan,
        &[
            ("collation", "account.account_email NOCASE"),
            ("collation", "account.nickname NOCASE"),
            ("check", "n > 0"),
            ("constraint", "CONFLICT REPLACE"),
            ("index-option", "by_n DESC"),
        ],
    );
    assert!(!lists(&plan, "collation", "account.name "), "{:#?}", plan.issues);
    let Some(to) = Place::new("postgres") else { return };
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("INSERT INTO account (email) VALUES ('x') RETURNING id"), "8");
}

#[test]
fn foreign_keys_that_cannot_be_made_are_listed_and_left_out() {
    let Some(to) = Place::new("postgres") else { return };
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY, p INT REFERENCES p (id)); \
         CREATE TABLE d (id INTEGER PRIMARY KEY, p INT REFERENCES p (id)); INSERT INTO p VALUES (1); \
         INSERT INTO c VALUES (1, 99), (2, NULL), (3, 1); INSERT INTO d VALUES (1, 1)",
    );
    let plan = planned(&from, &to).unwrap();
    assert_lists(&plan, &[("foreign-key", "c. 1 rows refer to no row of p")]);
    assert_eq!(plan.issues.len(), 1, "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f'"), "d");
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new("postgres"), Place::new(engine)) else {
            continue;
        };
        from.ask(
            "CREATE TABLE p (id bigint PRIMARY KEY); INSERT INTO p VALUES (1); \
             CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id)); INSERT INTO c VALUES (1, 1); \
             CREATE TABLE d (id int PRIMARY KEY, p bigint REFERENCES p (id)); INSERT INTO d VALUES (1, 1); \
             CREATE TABLE e (id int PRIMARY KEY, p bigint NOT NULL REFERENCES p (id) ON DELETE SET NULL)",
        );
        assert!(lists(&planned(&from, &to).unwrap(), "foreign-key", "e.e_p_fkey SET NULL"));
        assert!(lists(&planned(&from, &to).unwrap(), "foreign-key", "c.c_p_fkey one type"));
        copy_all(&from, &to).unwrap();
        let keys = "SELECT table_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()";
        assert_eq!(to.ask(keys), "d");
    }
}

/// Documents go as they were written to engines that keep text; what others lose is listed.
#[test]
fn documents_keep_their_text_or_the_plan_lists_what_they_lose() {
    let Some(from) = Place::new("postgres") else { return };
    let document = r#"{ "b": 1.00, "a": 12345678901234567890123.5, "b": 2 }"#;
    from.ask(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, j json, n numeric); INSERT INTO t VALUES (1, '{document}', 1e40)"
    ));
    let to = Place::sqlite();
    assert!(!lists(&planned(&from, &to).unwrap(), "json", "t.j"));
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT j FROM t"), document);
    let Some(to) = Place::new("mysql") else { return };
    let plan = planned(&from, &to).unwrap();
    assert_lists(&plan, &[("json", "t.j keys 64")]);
    assert_lists(&plan, &[("decimal", "t.n more digits")]);
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT j->'$.b', n FROM t"), format!("2\t1{}", "0".repeat(40)));
}

/// Values that are not what a column's declared type says, of kinds that no engine reads.
#[test]
fn texts_that_are_no_numbers_or_times_are_copied_as_text() {
    let Some(to) = Place::new("postgres") else { return };
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, d DECIMAL_TEXT(9,2), u UNSIGNED64_TEXT, h TIME_TEXT(6), s DATETIME); \
         INSERT INTO t VALUES (1, 'Inf', '-1', '0', '2024-01-01 00:00:00.123456789')",
    );
    let plan = planned(&from, &to).unwrap();
    for column in ["t.d", "t.u", "t.h", "t.s"] {
        assert!(lists(&plan, "storage-class", column), "{column}: {:?}", plan.issues);
    }
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT d, u, h, s FROM t"), "Inf|-1|0|2024-01-01 00:00:00.123456789");
}

#[test]
fn types_and_names_that_the_target_lacks_are_found_by_the_plan() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE wide (id int PRIMARY KEY, c1 varchar(4000), c2 varchar(4000), c3 varchar(4000), c4 varchar(4000), \
           c5 varchar(4000)); INSERT INTO wide VALUES (1, 'a', 'b', 'c', 'd', 'e'); \
         CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE TABLE person (id uuid PRIMARY KEY, m mood, i interval, n inet); \
         CREATE INDEX ON person (m); INSERT INTO person VALUES (md5('a')::uuid, 'bad', '1 day', '10.0.0.1'); \
         CREATE TABLE t (id int PRIMARY KEY, a numeric(5,-2), b numeric(3,5)); INSERT INTO t VALUES (1, 1234500, 0.00123)",
    );
    for engine in ["mysql", "mariadb"] {
        let Some(to) = Place::new(engine) else { continue };
        let plan = planned(&from, &to).unwrap();
        assert!(lists(&plan, "text-length", "wide. maximum length"), "{engine}: {:?}", plan.issues);
        copy_all(&from, &to).unwrap();
        assert_eq!(to.ask("SELECT c1, c5 FROM wide"), "a\te");
        assert_eq!(to.ask("SELECT a, b FROM t"), "1234500\t0.00123");
        assert_eq!(to.ask("SELECT m, n FROM person"), "bad\t10.0.0.1/32");
    }
    let cased = Place::new("postgres").unwrap();
    cased.ask("CREATE TABLE t (id int PRIMARY KEY, \"Name\" text, name text)");
    let tables = Place::new("postgres").unwrap();
    tables.ask("CREATE TABLE \"Order\" (id int); CREATE TABLE \"order\" (id int)");
    let to = Place::sqlite();
    for from in [&cased, &tables] {
        let error = planned(from, &to).unwrap_err().to_string();
        assert!(error.contains("are one name on the target"), "{error}");
    }
    let (Some(mariadb), Some(mysql)) = (Place::new("mariadb"), Place::new("mysql")) else {
        return;
    };
    mariadb.ask(
        "CREATE TABLE t (id uuid PRIMARY KEY, ip inet6, j json, g point, n varchar(0), c char(0), w varchar(10)); \
         INSERT INTO t VALUES ('123e4567-e89b-12d3-a456-426655440000', '::1', '{\"b\":1,\"a\":[]}', point(1, 2), '', '', 'x')",
    );
    let plan = planned(&mariadb, &mysql).unwrap();
    assert!(lists(&plan, "type", "t.ip inet6") && lists(&plan, "json", "t.j keys"), "{:?}", plan.issues);
    assert_eq!(plan.issues.len(), 2, "{:?}", plan.issues);
    copy_all(&mariadb, &mysql).unwrap();
    assert_eq!(
        mysql.ask("SELECT id, ip, j->'$.b', ST_AsText(g), w FROM t"),
        "123e4567-e89b-12d3-a456-426655440000\t::1\t1\tPOINT(1 2)\tx"
    );
    let to = Place::new("postgres").unwrap();
    copy_all(&mariadb, &to).unwrap();
    assert_eq!(
        to.ask("SELECT id, ip, g, n, w FROM t"),
        "123e4567-e89b-12d3-a456-426655440000|::1|POINT(1 2)||x"
    );
}

/// A type of an extension, or of another schema, that the target's server does not have.
#[test]
fn type_that_the_other_server_does_not_have_is_refused_by_name() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else {
        return;
    };
    from.ask("CREATE SCHEMA other; CREATE TYPE other.kind AS ENUM ('a'); CREATE TABLE t (id int PRIMARY KEY, k other.kind)");
    let error = copy_all(&from, &to).unwrap_err().to_string();
    assert!(error.contains("nothing was copied, but the target refused t;"), "{error}");
    assert!(error.contains("schema \"other\" does not exist"), "{error}");
    assert_eq!(to.ask("SELECT count(*) FROM pg_class WHERE relname = 't'"), "0");
    // The database compares by ICU, whatever its locale of libc says.
    from.ask("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE)");
    let (made, ..) = from.try_ask(
        "CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    let Place::Server(server) = &from else { panic!("it is a server") };
    if made {
        let icu = server.url().strip_suffix("/kurabe").unwrap().to_owned() + "/icu";
        crate::common::run(&icu, &["CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE)"]);
        let error = copy(&icu, &to.url(), "").unwrap_err().to_string();
        assert!(error.contains("collation"), "{error}");
    }
}

/// Kinds that no query of the catalogue names: all that depends on the schema is known or listed.
#[test]
fn objects_of_any_kind_are_listed_by_the_servers_own_description() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE FUNCTION myeq(int, int) RETURNS bool LANGUAGE sql AS 'SELECT $1 = $2'; \
         CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = myeq); CREATE TEXT SEARCH CONFIGURATION cfg (COPY = simple); \
         CREATE TEXT SEARCH DICTIONARY dict (TEMPLATE = simple); CREATE TYPE rng AS RANGE (SUBTYPE = int); CREATE PUBLICATION pub FOR TABLE t; \
         CREATE TYPE pair AS (a int); CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE sql AS 'SELECT ROW($1)::pair'; \
         CREATE CAST (int AS pair) WITH FUNCTION to_pair(int); CREATE COLLATION coll FROM \"C\"; \
         CREATE FUNCTION hook() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; CREATE EVENT TRIGGER et ON ddl_command_start EXECUTE FUNCTION hook(); \
         CREATE AGGREGATE total (int) (SFUNC = int4pl, STYPE = int); SELECT lo_create(4711); CREATE TYPE mood AS ENUM ('a'); \
         CREATE SEQUENCE s; CREATE STATISTICS st ON id, n FROM t; CREATE VIEW v AS SELECT id FROM t; CREATE TABLE u (r rng)",
    );
    from.ask("DROP TABLE u");
    let to = Place::sqlite();
    let plan = planned(&from, &to).unwrap();
    assert_lists(
        &plan,
        &[
            ("view", "=== CREATE OPERATOR"),
            ("view", "cfg CREATE TEXT SEARCH CONFIGURATION"),
            ("view", "dict CREATE TEXT SEARCH DICTIONARY"),
            ("view", "rng RANGE"),
            ("view", "t publication pub"),
            ("view", "CREATE CAST integer pair"),
            ("view", "coll CREATE COLLATION"),
            ("view", "et event trigger"),
            ("routine", "total CREATE AGGREGATE"),
            ("view", "4711 large object"),
        ],
    );
    // What another query lists or carries is listed once.
    let lines = plan.issues.iter().filter(|issue| issue.kind.name() == "view").count();
    assert_eq!(lines, 9 + ["s", "v", "mood", "pair"].len(), "{:#?}", plan.issues);
    let text = plan.left_text(to.engine());
    assert!(
        text.contains("-- CREATE OPERATOR === (PROCEDURE = myeq, LEFTARG = integer, RIGHTARG = integer)"),
        "{text}"
    );
}

/// The same of MySQL and MariaDB: what `information_schema` and the server's own texts have besides what is known.
#[test]
fn objects_of_any_kind_of_mysql_are_listed() {
    let usual = "CREATE PROCEDURE p() SELECT 1; CREATE USER IF NOT EXISTS other@'%' IDENTIFIED BY 'x'; GRANT SELECT ON kurabe.* TO other@'%'; \
                 GRANT EXECUTE ON PROCEDURE kurabe.p TO other@'%'; ALTER DATABASE kurabe DEFAULT CHARACTER SET latin1 COLLATE latin1_bin; ";
    let of_both = [
        ("grant", "to 'other'@'%' GRANT SELECT ON *"),
        ("grant", "p to 'other'@'%' GRANT Execute ON PROCEDURE `p`"),
    ];
    let Some(to) = Place::new("postgres") else { return };
    if let Some(from) = Place::new("mysql") {
        from.ask(&format!(
            "{usual} CREATE TABLE t (id int PRIMARY KEY, n int, g point NOT NULL SRID 4326, c varchar(10) COLUMN_FORMAT DYNAMIC) \
             ROW_FORMAT=COMPRESSED; ANALYZE TABLE t UPDATE HISTOGRAM ON n WITH 4 BUCKETS"
        ));
        let plan = planned(&from, &to).unwrap();
        assert_lists(&plan, &of_both);
        assert_lists(
            &plan,
            &[
                ("table-option", "t information_schema.COLUMN_STATISTICS"),
                ("table-option", "t.g SRID 4326"),
                ("table-option", "t.c COLUMN_FORMAT"),
                ("table-option", "t ROW_FORMAT=COMPRESSED"),
            ],
        );
        assert!(!lists(&plan, "table-option", "t.id"), "{:#?}", plan.issues);
        let same = planned(&from, &Place::new("mysql").unwrap()).unwrap();
        assert_lists(&same, &[("comment", "database latin1_bin")]);
        from.ask("DROP USER other@'%'; ALTER DATABASE kurabe DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci");
    }
    if let Some(from) = Place::new("mariadb") {
        from.ask(&format!(
            "{usual} CREATE TABLE t (id int PRIMARY KEY, c varchar(200) COMPRESSED); CREATE SEQUENCE s START WITH 5; DO NEXTVAL(s)"
        ));
        let plan = planned(&from, &to).unwrap();
        assert_lists(&plan, &of_both);
        assert_lists(
            &plan,
            &[
                ("table-option", "t.c COMPRESSED"),
                ("view", "s CREATE SEQUENCE"),
                ("view", "s SETVAL(`s`, 1005"),
            ],
        );
        assert!(!lists(&plan, "type", "t.c") && !lists(&plan, "comment", "s.cycle"), "{:#?}", plan.issues);
        from.ask("DROP USER other@'%'; ALTER DATABASE kurabe DEFAULT CHARACTER SET utf8mb4");
    }
}

#[test]
fn comments_privileges_and_settings_of_objects_of_postgres_are_listed() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, x text); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; COMMENT ON FUNCTION f() IS 'fc'; \
         CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW \
         EXECUTE FUNCTION g(); COMMENT ON TRIGGER tr ON t IS 'tc'; ALTER TABLE t DISABLE TRIGGER tr; REVOKE EXECUTE ON FUNCTION f() FROM PUBLIC; \
         CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO PUBLIC; ALTER DATABASE kurabe SET work_mem = '8MB'; CREATE TABLE i (n int); \
         INSERT INTO i VALUES (1), (1); CREATE ACCESS METHOD own TYPE TABLE HANDLER heap_tableam_handler; CREATE TABLE a (id int) USING own",
    );
    // One that was not made to its end.
    from.try_ask("CREATE UNIQUE INDEX CONCURRENTLY broken ON i (n)");
    let plan = planned(&from, &Place::new("postgres").unwrap()).unwrap();
    assert_lists(
        &plan,
        &[
            ("comment", "f() fc"),
            ("comment", "tr on public.t tc"),
            ("trigger", "t.tr DISABLE TRIGGER tr"),
            ("grant", "f() to PUBLIC REVOKE EXECUTE"),
            ("grant", "s to PUBLIC GRANT USAGE ON SEQUENCE"),
            ("comment", "work_mem a setting of the database: work_mem=8MB"),
            ("index-option", "i.broken invalid:"),
            ("table-option", "a USING own"),
        ],
    );
    from.ask("DROP TABLE a; DROP ACCESS METHOD own; ALTER DATABASE kurabe RESET work_mem");
}

/// What a target refuses of a plan, without a change that stays.
#[test]
fn limits_of_the_target_are_known_without_a_change() {
    let Some(from) = Place::new("postgres") else { return };
    let columns = |count: usize, declared: &str| {
        (0..count).map(|at| format!(", c{at} {declared}")).collect::<Vec<_>>().concat()
    };
    from.ask(&format!(
        "CREATE TABLE many (id int PRIMARY KEY{}); CREATE TABLE short (id int PRIMARY KEY{}); \
         CREATE TABLE keyed (id int PRIMARY KEY, a text, b text, n bigint, i inet); CREATE INDEX by_all ON keyed (a, b, n, i); \
         CREATE TABLE kid (id int PRIMARY KEY, k int, CONSTRAINT fk FOREIGN KEY (k) REFERENCES keyed (id))",
        columns(1_100, "int"),
        columns(100, "varchar(40)"),
    ));
    for engine in ["mysql", "mariadb", "postgres", "sqlite"] {
        let Some(to) = Place::new(engine) else { continue };
        to.ask("CREATE TABLE mine (id int PRIMARY KEY)");
        if engine.starts_with('m') {
            to.ask("CREATE TABLE child (id int, CONSTRAINT fk FOREIGN KEY (id) REFERENCES mine (id)); CREATE TABLE keyed (id int)");
        } else {
            to.ask("CREATE INDEX by_all ON mine (id)");
        }
        let (mut copy, plan) = begun(&from, &to, &crate::choices::all()).unwrap();
        let refused = copy.try_out(&plan).unwrap();
        let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
        match engine {
            // Rows that are too long have got longer columns, and the index fits.
            "mysql" | "mariadb" => assert_eq!(names, ["many", "keyed", "kid.fk"], "{engine}"),
            _ => assert_eq!(names, ["keyed.by_all"], "{engine}"),
        }
        let (is_there, ..) = to.try_ask("SELECT * FROM short");
        assert!(!is_there, "{engine}");
    }
    let Some(to) = Place::new("mysql") else { return };
    from.ask(&format!("CREATE TABLE long (id int PRIMARY KEY{})", columns(300, "varchar(40)")));
    let error = planned(&from, &to).unwrap_err().to_string();
    assert!(error.contains("table long") && error.contains("in a page"), "{error}");
}

#[test]
fn documents_beyond_the_targets_limits_are_listed_and_rejected() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let documents = [
        "[1e400]".to_owned(),
        "{\"s\": \"1e400 [\"}".to_owned(),
        nested(31),
        nested(32),
        nested(100),
        nested(101),
        "[\"\\u0000\"]".to_owned(),
        "[\"\\ud800\"]".to_owned(),
        "[1e307]".to_owned(),
    ];
    let from = Place::sqlite();
    from.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, j JSON_TEXT)");
    for (at, document) in documents.iter().enumerate() {
        from.ask(&format!("INSERT INTO t VALUES ({at}, '{document}')"));
    }
    for (engine, refused) in [("mysql", &[0, 5, 7][..]), ("mariadb", &[3, 4, 5, 7]), ("postgres", &[6, 7])] {
        let Some(to) = Place::new(engine) else { continue };
        let words = format!("t.j documents in {} row (--reject)", refused.len());
        assert_lists(&planned(&from, &to).unwrap(), &[("json", &words)]);
        let folder = tempfile::tempdir().unwrap();
        let rejected = kurabe_copy::reject::Rejects::open(&folder.path().join("rows")).unwrap();
        let done = crate::choices::Done { rejected: Some(rejected), ..crate::choices::Done::default() };
        done.copy(&from, &to, &crate::choices::all()).unwrap();
        let kept: Vec<String> =
            (0..documents.len()).filter(|at| !refused.contains(at)).map(|at| at.to_string()).collect();
        assert_eq!(to.ask("SELECT id FROM t ORDER BY id"), kept.join("\n"), "{engine}");
    }
}

#[test]
fn long_entries_of_indexes_and_parents_that_are_not_unique_are_listed() {
    let Some(to) = Place::new("postgres") else { return };
    let from = Place::sqlite();
    from.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); CREATE INDEX by_x ON t (x); INSERT INTO t VALUES (1, hex(randomblob(3000))), (2, 'a')");
    assert_lists(&planned(&from, &to).unwrap(), &[("text-length", "t.by_x 1 row 2690 bytes")]);
    let Some(from) = Place::new("mariadb") else { return };
    from.ask(
        "CREATE TABLE p (id int PRIMARY KEY, n int, KEY (n)); CREATE TABLE c (id int PRIMARY KEY, n int, CONSTRAINT fk FOREIGN KEY (n) \
         REFERENCES p (n)); INSERT INTO p VALUES (1, 5), (2, 5); INSERT INTO c VALUES (1, 5)",
    );
    assert_lists(&planned(&from, &to).unwrap(), &[("foreign-key", "c.fk p (n) no index is unique")]);
    copy_all(&from, &to).unwrap();
}

#[test]
fn numbers_of_a_file_of_sqlite_are_carried_or_listed() {
    let from = Place::sqlite();
    from.ask(
        "PRAGMA user_version = 7; PRAGMA application_id = 252006674; CREATE TABLE t (id INTEGER PRIMARY KEY)",
    );
    let to = Place::sqlite();
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("PRAGMA user_version; PRAGMA application_id"), "7\n252006674");
    let Some(other) = Place::new("postgres") else { return };
    let plan = copy_all(&from, &other).unwrap().0;
    assert_lists(&plan, &[("comment", "user_version 7"), ("comment", "application_id 252006674")]);
    let kept = Place::sqlite();
    kept.ask(
        "PRAGMA encoding = 'UTF-16le'; PRAGMA auto_vacuum = 1; CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE INDEX i ON t (x); \
         INSERT INTO t VALUES (1, 2); ANALYZE; PRAGMA journal_mode = wal",
    );
    let plan = copy_all(&kept, &Place::sqlite()).unwrap().0;
    for name in ["auto_vacuum", "encoding UTF-16le", "journal_mode wal", "sqlite_stat1 ANALYZE"] {
        assert_lists(&plan, &[("comment", name)]);
    }
    assert_eq!(planned(&kept, &other).unwrap().issues.len(), 0);
}

/// What the target refuses is known before the first row, and nothing of the trial stays.
#[test]
fn indexes_and_keys_are_tried_before_rows_are_copied() {
    for engine in ["mysql", "mariadb", "postgres", "sqlite"] {
        let (Some(from), Some(to)) = (Place::new("mysql"), Place::new(engine)) else { continue };
        from.ask("CREATE TABLE a (id int PRIMARY KEY, v varchar(20)); CREATE INDEX other ON a (v); INSERT INTO a VALUES (1, 'x'); \
                  CREATE TABLE b (id int PRIMARY KEY, a int, CONSTRAINT fk FOREIGN KEY (a) REFERENCES a (id)); INSERT INTO b VALUES (1, 1)");
        // A name that is taken, where names of indexes or keys are shared.
        to.ask("CREATE TABLE mine (id int PRIMARY KEY)");
        match engine {
            "postgres" | "sqlite" => to.ask("CREATE INDEX other ON mine (id)"),
            _ => to.ask("CREATE TABLE kid (id int, CONSTRAINT fk FOREIGN KEY (id) REFERENCES mine (id))"),
        };
        let tables = || match engine {
            "sqlite" => to.ask("SELECT name FROM sqlite_schema WHERE type = 'table'"),
            "postgres" => to.ask(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
            ),
            _ => to.ask("SHOW TABLES"),
        };
        let before = tables();
        let error = copy_all(&from, &to).unwrap_err().to_string();
        assert!(error.contains("nothing was copied"), "{engine}: {error}");
        assert_eq!(tables(), before, "{engine}");
    }
}

#[test]
fn what_a_target_cannot_name_or_a_user_cannot_see_is_refused() {
    if let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("mysql")) {
        from.ask("CREATE TABLE \"t😀\" (id int PRIMARY KEY)");
        let error = copy_all(&from, &to).unwrap_err().to_string();
        assert!(error.contains("t😀") && error.contains("--rename"), "{error}");
        from.ask(
            "DROP TABLE \"t😀\"; CREATE TABLE t (id int PRIMARY KEY, c int); CREATE INDEX \"i😀\" ON t (c)",
        );
        copy_all(&from, &to).unwrap();
        assert_eq!(to.ask("SELECT index_name FROM information_schema.statistics WHERE table_name = 't' AND index_name <> 'PRIMARY'"), "i_");
    }
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        from.ask(
            "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, secret int, open int); INSERT INTO a VALUES (1); \
             CREATE USER part@'%' IDENTIFIED BY 'part'; GRANT SELECT ON kurabe.a TO part@'%'; GRANT SELECT (id, open) ON kurabe.b TO part@'%'",
        );
        let url = from.url();
        let url = format!("{engine}://part:part@{}", url.split_once('@').unwrap().1);
        let to = Place::sqlite();
        let mut wanted = crate::choices::all();
        wanted.tables = vec!["a".to_owned()];
        crate::choices::Done::default().between(&url, &to.url(), &wanted).unwrap();
        wanted.tables.clear();
        let done = crate::choices::Done::default().between(&url, &Place::sqlite().url(), &wanted);
        let error = done.unwrap_err().to_string();
        assert!(error.contains('b') && error.contains("--exclude b"), "{engine}: {error}");
        from.ask("DROP USER part@'%'");
    }
}

/// MySQL counts what rows may have, MariaDB what they have.
#[test]
fn row_that_no_page_takes_is_refused_before_anything_is_made() {
    let from = Place::sqlite();
    let columns: Vec<String> = (1..=300).map(|at| format!("c{at} varchar(40)")).collect();
    let fill = |length: u32| {
        let values = vec![format!("'{}'", "x".repeat(length as usize)); 300].join(", ");
        from.ask(&format!("DELETE FROM t; INSERT INTO t VALUES (1, {values})"));
    };
    from.ask(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns.join(", ")));
    for (engine, short, is_refused) in [("mysql", 5, true), ("mariadb", 40, true), ("mariadb", 5, false)] {
        let Some(to) = Place::new(engine) else { continue };
        fill(short);
        let copied = copy_all(&from, &to).map_err(|error| error.to_string());
        let refused = copied.as_ref().err().is_some_and(|error| error.contains("bytes in a page"));
        assert_eq!(refused, is_refused, "{engine} {short}: {:?}", copied.err());
        let made = to.ask("SHOW TABLES LIKE 't'");
        assert_eq!(made.is_empty(), is_refused, "{engine} {short}: {made}");
    }
}
