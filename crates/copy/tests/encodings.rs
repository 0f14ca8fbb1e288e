//! Texts in other encodings than UTF-8, and in none: carried, or named by column and row, and never made into other characters. What
//! arrives is read by the engines' own programs where they can be asked.

use crate::choices::{Done, all};
use crate::common::{NEVER, Place, assert_lists, copy_all, lists, planned, run, side};
use kurabe_copy::plan::Plan;
use kurabe_copy::reject::Rejects;
use kurabe_copy::run::Copy;
use kurabe_copy::wanted::Wanted;

/// A new database of a server of PostgreSQL.
fn database(server: &Place, name: &str, encoding: &str) -> String {
    server.ask(&format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    ));
    server.url().strip_suffix("/kurabe").unwrap().to_owned() + "/" + name
}

fn plan_of(from: &str, to: &str) -> Plan {
    Copy::new(side(from), side(to), &NEVER).plan(&Wanted::default(), &mut []).unwrap()
}

#[test]
fn bytes_of_a_database_without_an_encoding_are_carried_or_their_rows_are_named() {
    let Some(server) = Place::new("postgres") else { return };
    let from = database(&server, "any_bytes", "SQL_ASCII");
    run(
        &from,
        &[
            "CREATE TABLE t (id int PRIMARY KEY, x text, c char(6), j json, d text DEFAULT 'plain')",
            "INSERT INTO t SELECT g, 'x' || g, 'c', '[]' FROM generate_series(1, 120) g",
            "UPDATE t SET x = E'caf\\xe9' WHERE id = 70",
            "UPDATE t SET c = E'\\xff', x = E'\\xc3\\xa9' WHERE id = 80",
            "UPDATE t SET j = E'[\"\\xe9\"]' WHERE id = 90",
            "CREATE TABLE k (w text PRIMARY KEY)",
            "INSERT INTO k VALUES ('a'), (E'\\xe9')",
        ],
    );
    let to = database(&server, "any_bytes_too", "SQL_ASCII");
    assert!(plan_of(&from, &to).issues.is_empty());
    Done::default().between(&from, &to, &all()).unwrap();
    let sum = "SELECT md5(string_agg(t::text, ',' ORDER BY id)) || (SELECT string_agg(w, ',' ORDER BY w) FROM k) FROM t";
    let bytes = |url: &str| {
        side(url).value(&format!("SELECT encode(convert_to(s.s, 'SQL_ASCII'), 'hex') FROM ({sum}) AS s (s)"))
    };
    assert_eq!(bytes(&from).unwrap().unwrap(), bytes(&to).unwrap().unwrap());
    for (engine, cast) in
        [("postgres", "bytea"), ("sqlite", "blob"), ("mysql", "longblob"), ("mariadb", "longblob")]
    {
        let Some(to) = Place::new(engine) else { continue };
        let listed = [
            ("storage-class", "t.x 1 texts UTF-8 --reject"),
            ("storage-class", "t.j 1 texts"),
            ("storage-class", "k.w 1 texts"),
        ];
        assert_lists(&plan_of(&from, &to.url()), &listed);
        assert_lists(&plan_of(&from, &to.url()), &[("storage-class", "t.c 1 texts")]);
        let only_t = Wanted { tables: vec!["t".to_owned()], ..all() };
        let error = Done::default().between(&from, &to.url(), &only_t).unwrap_err().to_string();
        assert!(error.contains("row 70") && error.contains("UTF"), "{engine}: {error}");
        let folder = tempfile::tempdir().unwrap();
        let rejected = Some(Rejects::open(&folder.path().join("rows")).unwrap());
        let done = Done { rejected, restart: true, ..Done::default() };
        let (_, tables) = done.between(&from, &to.url(), &all()).unwrap();
        assert_eq!(
            tables.iter().map(|table| (table.rows, table.rejected)).collect::<Vec<_>>(),
            [(1, 1), (117, 3)],
            "{engine}"
        );
        let rows = std::fs::read_to_string(folder.path().join("rows")).unwrap();
        assert!(rows.contains("\"x\":\"\\\\x636166e9\"") && rows.contains("\"id\":90"), "{rows}");
        assert_eq!(to.ask("SELECT count(*), max(id) FROM t").replace('\t', "|"), "117|120");
        // Bytes, which the server keeps.
        let mut wanted = only_t;
        for column in ["x", "c", "j"] {
            wanted.casts.add(&format!("t.{column}={cast}")).unwrap();
        }
        let to = Place::new(engine).unwrap();
        Done::default().between(&from, &to.url(), &wanted).unwrap();
        let of = if engine == "postgres" { "encode(x, 'hex')" } else { "lower(hex(x))" };
        assert_eq!(to.ask(&format!("SELECT {of} FROM t WHERE id IN (70, 80) ORDER BY id")), "636166e9\nc3a9");
    }
}

/// The servers' digests of a table with a cast are of texts.
#[test]
fn bytes_of_a_database_without_an_encoding_are_compared_by_servers_where_one_column_is_cast() {
    let Some(server) = Place::new("postgres") else { return };
    let [from, to] = ["any_cast", "any_cast_too"].map(|name| database(&server, name, "SQL_ASCII"));
    let rows = "INSERT INTO t SELECT g, g, E'caf\\xe9' FROM generate_series(1, 120) g";
    run(&from, &["CREATE TABLE t (id int PRIMARY KEY, n int, x text)", rows]);
    let mut wanted = all();
    wanted.casts.add("t.n=bigint").unwrap();
    let (_, tables) = Done::default().between(&from, &to, &wanted).unwrap();
    assert!(tables[0].rows == 120 && tables[0].by_servers, "{tables:?}");
    let other = side(&to).value("SELECT count(*) FROM t WHERE x <> E'caf\\xe9'").unwrap();
    assert_eq!(other.as_deref(), Some("0"));
}

#[test]
fn characters_that_the_targets_encoding_lacks_are_known_before_they_are_refused() {
    let Some(server) = Place::new("postgres") else { return };
    let [latin, wide] =
        [("latin", "LATIN1"), ("wide", "UTF8")].map(|(name, encoding)| database(&server, name, encoding));
    let rows =
        ["CREATE TABLE t (id int PRIMARY KEY, x varchar(5))", "INSERT INTO t VALUES (1, 'é'), (2, 'b')"];
    run(&latin, &rows);
    assert!(plan_of(&latin, &wide).issues.is_empty());
    Done::default().between(&latin, &wide, &all()).unwrap();
    run(&wide, &["INSERT INTO t VALUES (3, '€')"]);
    let to = database(&server, "latin_too", "LATIN1");
    assert_lists(&plan_of(&wide, &to), &[("storage-class", "the target LATIN1 (--reject)")]);
    let error = Done::default().between(&wide, &to, &all()).unwrap_err().to_string();
    assert!(error.contains("row 3") && error.contains("LATIN1"), "{error}");
}

/// A definition that is no text cannot be made: a default, a comment, a view.
#[test]
fn definitions_that_are_not_utf8_are_refused_or_listed() {
    let file = Place::sqlite();
    file.ask(
        "CREATE TABLE d (id INTEGER PRIMARY KEY, x TEXT DEFAULT 'caf#'); CREATE TABLE t (id INTEGER PRIMARY KEY); \
         CREATE VIEW v AS SELECT 'caf#'; CREATE TABLE \"n#\" (id INTEGER PRIMARY KEY); PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(sql, '#', CAST(x'e9' AS TEXT)), name = replace(name, '#', CAST(x'e9' AS TEXT)), \
         tbl_name = replace(tbl_name, '#', CAST(x'e9' AS TEXT)); PRAGMA writable_schema = RESET",
    );
    let wanted =
        |tables: &[&str]| Wanted { tables: tables.iter().map(|name| (*name).to_owned()).collect(), ..all() };
    let to = Place::sqlite();
    for tables in [&["d"][..], &[]] {
        let error = Done::default().copy(&file, &to, &wanted(tables)).unwrap_err().to_string();
        assert!(error.contains("is not UTF-8") && error.contains("--exclude"), "{error}");
    }
    Done::default().copy(&file, &to, &wanted(&["t"])).unwrap();
    let Some(server) = Place::new("postgres") else { return };
    let (plan, _) = Done::default().copy(&file, &server, &wanted(&["d"])).unwrap();
    assert_lists(&plan, &[("default", "d.x caf")]);
    assert_eq!(server.ask("SELECT count(*) FROM information_schema.columns WHERE table_name = 'd' AND column_default IS NOT NULL"), "0");
    let from = database(&server, "old", "SQL_ASCII");
    run(
        &from,
        &[
            "CREATE TABLE d (id int PRIMARY KEY, x text)",
            "COMMENT ON TABLE d IS E'caf\\xe9'",
            "COMMENT ON COLUMN d.x IS 'plain'",
            "DO $$ BEGIN EXECUTE E'CREATE VIEW v AS SELECT ''caf\\xe9''::text AS a'; END $$",
        ],
    );
    let to = Place::new("postgres").unwrap();
    let (plan, _) = Done::default().between(&from, &to.url(), &all()).unwrap();
    assert_lists(&plan, &[("comment", "d caf"), ("view", "v caf")]);
    assert!(!lists(&plan, "comment", "d.x"), "{:?}", plan.issues);
    assert_eq!(
        to.ask("SELECT objsubid, description FROM pg_description WHERE objoid = 'd'::regclass"),
        "2|plain"
    );
    let text = plan.left_text(to.engine());
    assert!(text.contains("\n-- CREATE VIEW v") && to.feed(&text).0, "{text}");
    run(&from, &["DO $$ BEGIN EXECUTE E'ALTER TABLE d ALTER x SET DEFAULT ''caf\\xe9'''; END $$"]);
    let error = Done::default().between(&from, &Place::new("postgres").unwrap().url(), &all()).unwrap_err();
    assert!(error.to_string().contains("table d") && error.to_string().contains("not UTF-8"), "{error}");
}

/// Another engine gets an index by another name; what cannot be named hinders no other table.
#[test]
fn index_names_and_comments_that_are_not_utf8_hinder_no_other_copy() {
    let file = Place::sqlite();
    file.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT); CREATE INDEX \"ix#\" ON u (x); \
         PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '#', CAST(x'e9' AS TEXT)), \
         name = replace(name, '#', CAST(x'e9' AS TEXT)); PRAGMA writable_schema = RESET",
    );
    let wanted = |name: &str| Wanted { tables: vec![name.to_owned()], ..all() };
    Done::default().copy(&file, &Place::sqlite(), &wanted("t")).unwrap();
    let error = Done::default().copy(&file, &Place::sqlite(), &wanted("u")).unwrap_err().to_string();
    assert!(error.contains("table u") && error.contains("not UTF-8"), "{error}");
    let more = Place::sqlite();
    more.ask("CREATE TABLE w (id INTEGER PRIMARY KEY)");
    copy_all(&more, &file).unwrap();
    let Some(server) = Place::new("postgres") else { return };
    let from = database(&server, "old_names", "SQL_ASCII");
    run(
        &from,
        &[
            "CREATE TYPE mood AS ENUM ('ok')",
            "COMMENT ON TYPE mood IS E'caf\\xe9'",
            "CREATE TABLE d (id int PRIMARY KEY, x mood)",
            "CREATE TABLE e (id int PRIMARY KEY, x int)",
        ],
    );
    for wanted in [all(), wanted("d")] {
        let to = Place::new("postgres").unwrap();
        let (plan, _) = Done::default().between(&from, &to.url(), &wanted).unwrap();
        assert_lists(&plan, &[("comment", "mood caf\u{fffd}")]);
    }
    run(&from, &["DO $$ BEGIN EXECUTE E'CREATE INDEX \"ix_caf\\xe9\" ON e (x)'; END $$"]);
    let to = Place::sqlite();
    Done::default().between(&from, &to.url(), &all()).unwrap();
    assert_eq!(to.ask("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql <> ''"), "ix_caf_");
    // A database without an encoding takes every character.
    let (wide, any) = (database(&server, "all_wide", "UTF8"), database(&server, "all_any", "SQL_ASCII"));
    run(&wide, &["CREATE TABLE t (id int PRIMARY KEY, x text)", "INSERT INTO t VALUES (1, '€')"]);
    let plan = plan_of(&wide, &any);
    assert_lists(&plan, &[("storage-class", "the target SQL_ASCII bytes (--reject)")]);
    assert!(!lists(&plan, "storage-class", "characters"), "{:?}", plan.issues);
    Done::default().between(&wide, &any, &all()).unwrap();
}

/// Between databases without an encoding, they are made with their bytes.
#[test]
fn names_and_labels_that_are_not_utf8_are_carried_listed_or_refused_with_their_table() {
    let Some(server) = Place::new("postgres") else { return };
    let from = database(&server, "any_names", "SQL_ASCII");
    let types = r#"DO $$ BEGIN EXECUTE E'CREATE TYPE mood AS ENUM (''caf\xe9'', ''\\\xe9'''''')';
        EXECUTE E'CREATE SEQUENCE "s\xe9''\\"'; EXECUTE E'SELECT setval(''"s\xe9''''\\"'', 7)'; END $$"#;
    run(&from, &["CREATE TABLE d (id int PRIMARY KEY)", types]);
    let wide = || Place::new("postgres").unwrap();
    let to = wide();
    let (plan, _) = Done::default().between(&from, &to.url(), &all()).unwrap();
    assert_lists(&plan, &[("view", "mood caf\u{fffd}"), ("view", "s\u{fffd}'\\ SEQUENCE")]);
    assert_eq!(to.ask("SELECT count(*) FROM pg_enum"), "0");
    run(&from, &["ALTER TABLE d ADD x mood"]);
    let error = Done::default().between(&from, &wide().url(), &all()).unwrap_err().to_string();
    assert!(error.contains("table d") && error.contains("not UTF-8"), "{error}");
    let of_table = r#"DO $$ BEGIN EXECUTE E'CREATE INDEX "i\xe9" ON d (id)'; EXECUTE E'COMMENT ON TABLE d IS ''caf\xe9''';
        EXECUTE E'ALTER TABLE d ADD t text DEFAULT ''caf\xe9'''; END $$"#;
    run(&from, &[of_table]);
    let to = database(&server, "any_names_too", "SQL_ASCII");
    let (plan, _) = Done::default().between(&from, &to, &all()).unwrap();
    assert!(plan.issues.is_empty(), "{:?}", plan.issues);
    for sql in [
        "SELECT md5(string_agg(enumlabel::text, ',' ORDER BY enumsortorder)) FROM pg_enum",
        "SELECT md5(string_agg(relname::text, ',' ORDER BY relname)) FROM pg_class WHERE relnamespace = 'public'::regnamespace",
        "SELECT md5(obj_description('d'::regclass) || column_default) FROM information_schema.columns WHERE column_name = 't'",
        "SELECT last_value::text FROM pg_sequences",
    ] {
        let [ours, theirs] = [&from, &to].map(|url| side(url).value(sql).unwrap());
        assert!(ours.is_some() && ours == theirs, "{sql}");
    }
}

/// Zero characters, which MySQL has in defaults and comments, and no other engine.
#[test]
fn zero_characters_of_definitions_are_written_for_mysql() {
    let (Some(from), Some(to)) = (Place::new("mysql"), Place::new("mysql")) else { return };
    from.ask("CREATE TABLE z (id int PRIMARY KEY, a varchar(9) DEFAULT 'a\\0b' COMMENT 'c\\0d')");
    let mut wanted = all();
    wanted.casts.add("z.id=bigint").unwrap();
    let (plan, _) = Done::default().copy(&from, &to, &wanted).unwrap();
    let default = "SELECT HEX(column_default) FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'a'";
    assert_eq!(to.ask(default), "610062");
    let text = plan.left_text(to.engine());
    assert!(text.contains("COMMENT 'c\\0d'"), "{text}");
}

/// The servers' connections are in Unicode: such a character would become a question mark on both sides.
#[test]
fn characters_that_unicode_lacks_are_refused_by_name() {
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else { continue };
        from.ask(
            "CREATE TABLE t (id int PRIMARY KEY, a varchar(9) CHARACTER SET cp1251, b varchar(9) CHARACTER SET latin1, \
               c varchar(9) CHARACTER SET cp932, d varchar(9) CHARACTER SET ucs2, e enum('?', 'b') CHARACTER SET gbk); \
             INSERT INTO t VALUES (1, _cp1251 x'3FC1', _latin1 x'818D3F', _cp932 x'87903F', '?é', '?'), (2, 'a?', '?', '?', '?', 'b')",
        );
        copy_all(&from, &to).unwrap();
        assert_eq!(to.ask("SELECT HEX(a), HEX(b) FROM t WHERE id = 1"), "3FC1\t818D3F", "{engine}");
        from.ask("INSERT INTO t (id, a) VALUES (3, _cp1251 x'3F98')");
        for to in [Place::new(engine), Place::new("postgres"), Some(Place::sqlite())].iter().flatten() {
            let error = planned(&from, to).unwrap_err().to_string();
            assert!(
                error.contains("column t.a: texts have characters that Unicode lacks, in 1 row"),
                "{engine}: {error}"
            );
        }
    }
}

/// The servers show question marks for such characters. What a copy makes is asked of the target: by rows that have its defaults,
/// and by rows that its check refuses.
#[test]
fn characters_of_four_bytes_in_definitions_are_carried_or_listed() {
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else { continue };
        from.ask(
            "CREATE TABLE d (id int PRIMARY KEY, a varchar(9) DEFAULT '😀''?', b varchar(9) DEFAULT '?', \
               c varchar(9) DEFAULT (CONCAT('é\\'?', '😀')), g varchar(19) AS (CONCAT(a, '日😁')) STORED, n varchar(9) NOT NULL DEFAULT 'x', \
               CONSTRAINT o CHECK (a <> '😁'), CONSTRAINT p CHECK (a <> '?')) CHARSET utf8mb4; \
             CREATE TABLE f (id int PRIMARY KEY, n varchar(9) NOT NULL DEFAULT '😀') CHARSET utf8mb4; INSERT INTO f (id) VALUES (1)",
        );
        let plan = planned(&from, &to).unwrap();
        assert!(plan.issues.iter().all(|issue| issue.kind.is_only_listed()), "{engine}: {:?}", plan.issues);
        copy_all(&from, &to).unwrap();
        to.ask("INSERT INTO d (id) VALUES (1); INSERT INTO f (id) VALUES (2)");
        let rows =
            to.ask("SELECT HEX(a), HEX(b), HEX(c), HEX(g), (SELECT HEX(n) FROM f WHERE id = 2) FROM d");
        let smile = "F09F9880";
        assert_eq!(
            rows,
            format!("{smile}273F\t3F\tC3A9273F{smile}\t{smile}273FE697A5F09F9881\t{smile}"),
            "{engine}"
        );
        for refused in ["😁", "?"] {
            assert!(!to.try_ask(&format!("INSERT INTO d (id, a) VALUES (2, '{refused}')")).0, "{engine}");
        }
        for (to, hex) in [("postgres", "encode(convert_to({x}, 'UTF8'), 'hex')"), ("sqlite", "HEX({x})")] {
            let to = if to == "sqlite" { Some(Place::sqlite()) } else { Place::new(to) };
            let Some(to) = to else { continue };
            let (plan, _) = copy_all(&from, &to).unwrap();
            assert!(
                lists(&plan, "check", "😁") && lists(&plan, "generated-column", "日😁"),
                "{:?}",
                plan.issues
            );
            to.ask("INSERT INTO d (id) VALUES (1)");
            let [a, b] = ["a", "b"].map(|x| hex.replace("{x}", x));
            let row = to.ask(&format!("SELECT {a}, {b} FROM d")).to_uppercase();
            assert_eq!(row.replace('|', "\t"), format!("{smile}273F\t3F"), "{engine}");
        }
    }
}

/// Neither server tells the words, and MariaDB not each default of a table without rows.
#[test]
fn definitions_whose_characters_the_server_does_not_tell_are_listed() {
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        from.ask(
            "CREATE TABLE e (id int PRIMARY KEY, w enum('a', '😀') DEFAULT '😀', s set('😀', 'b'), n varchar(9) NOT NULL DEFAULT '😀') \
               CHARSET utf8mb4",
        );
        for to in [Place::new(engine), Place::new("postgres"), Some(Place::sqlite())].iter().flatten() {
            let plan = planned(&from, to).unwrap();
            let words = "may not show all of its characters";
            assert!(lists(&plan, "enum", words), "{engine}: {:?}", plan.issues);
            assert_eq!(lists(&plan, "default", words), engine == "mariadb", "{:?}", plan.issues);
        }
        from.ask("INSERT INTO e (id, w, s) VALUES (1, 'a', ''), (2, '😀', 'b'), (3, 'a', '😀,b')");
        let Some(to) = Place::new(engine) else { continue };
        let plan = planned(&from, &to).unwrap();
        for column in ["w", "s"] {
            let is_counted = |issue: &kurabe_copy::issue::Issue| {
                issue.object == format!("e.{column}")
                    && issue.detail.contains("no word of the type, in 1 row")
            };
            assert!(plan.issues.iter().any(is_counted), "{engine}: {:?}", plan.issues);
        }
    }
}

/// The target executes each expression as the source does, or the plan lists it: alike ones, parts of others, other character sets.
#[test]
fn expressions_with_characters_that_the_server_shows_wrongly_are_executed_alike_or_listed() {
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else { continue };
        from.ask(
            "CREATE TABLE a (id int PRIMARY KEY, x varchar(20) DEFAULT (CONCAT('😀', id)), y varchar(20) DEFAULT (CONCAT('😁', id)), \
               z varchar(20) DEFAULT (CONCAT('????', id)), n varchar(20) DEFAULT '\\n😀' COMMENT ' DEFAULT 0x', CONSTRAINT c3 CHECK (x <> '😀' OR id = 1), \
               CONSTRAINT c4 CHECK (x <> '😀'), CONSTRAINT c5 CHECK (x <> '😁')) CHARSET utf8mb4; \
             CREATE TABLE e (id int PRIMARY KEY, x varchar(20) DEFAULT (CONCAT('x', _gbk x'D6D0')), y varchar(20) DEFAULT (CONCAT('x', _utf16 x'D83DDE00'))) CHARSET utf8mb4; \
             CREATE TABLE f (id int PRIMARY KEY, x varbinary(20) DEFAULT (CONCAT('x', _binary x'FF00'))); \
             CREATE TABLE l (id int PRIMARY KEY, x varchar(9) CHARSET latin1, CHECK (x <> UPPER('é') OR id > 3)) CHARSET utf8mb4; ALTER TABLE l ADD c int",
        );
        let (plan, _) = copy_all(&from, &to).unwrap();
        let listed: Vec<&str> =
            plan.issues.iter().filter(|one| !one.kind.is_only_listed()).map(|one| &*one.object).collect();
        assert!(!listed.contains(&"a.x") && !listed.contains(&"a.c4"), "{engine}: {:?}", plan.issues);
        let rows = "INSERT INTO a (id) VALUES (1), (2); SELECT id, HEX(x), HEX(y), HEX(z), HEX(n) FROM a";
        assert_eq!(from.ask(rows), to.ask(rows), "{engine}");
        for row in ["INSERT INTO a (id, x) VALUES (3, '😀')", "INSERT INTO a (id, x) VALUES (3, '😁')"] {
            assert!(!to.try_ask(row).0, "{engine}: {row}");
        }
        for (table, column) in [("e", "x"), ("e", "y"), ("f", "x")] {
            let made = format!(
                "INSERT INTO {table} (id) VALUES (9); SELECT HEX({column}) FROM {table} WHERE id = 9; DELETE FROM {table}"
            );
            let is_listed = listed.contains(&&*format!("{table}.{column}"));
            assert!(is_listed || from.ask(&made) == to.ask(&made), "{engine}: {table}.{column}");
        }
        let row = "INSERT INTO l (id, x) VALUES (1, 'É')";
        let is_listed =
            plan.issues.iter().any(|one| one.kind.name() == "check" && one.object.starts_with("l."));
        assert!(is_listed || from.try_ask(row).0 == to.try_ask(row).0, "{engine}: {:?}", plan.issues);
    }
    let Some(from) = Place::new("mariadb") else { return };
    from.ask("CREATE TABLE j (id int PRIMARY KEY, j json DEFAULT '\"😀\"') CHARSET utf8mb4");
    let to = Place::sqlite();
    copy_all(&from, &to).unwrap();
    to.ask("INSERT INTO j (id) VALUES (1)");
    assert_eq!(to.ask("SELECT HEX(j) FROM j"), "22F09F988022");
}
